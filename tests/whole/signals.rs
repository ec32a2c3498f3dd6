//! Signals that end a client in good order, and one that doesn't where it is ignored.

use crate::{
    http::poll,
    site::program,
    support::{Folder, script},
};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    fs,
    process::{Child, Command, Stdio},
};

/// Does one of the process's masks of signals name this one?
fn names(process: &Child, mask: &str, signal: Signal) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix(mask)).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap() >> (signal.as_raw() - 1) & 1 == 1
}

/// A client whose trainer never says hello, started by a shell that says this first, and hears signals.
fn listening(folder: &Folder, first: &str) -> Child {
    let trainer = folder.path().join("trainer");
    if !trainer.exists() {
        script(&trainer, "exec cat > /dev/null\n");
    }
    let mut client = Command::new("sh")
        .args(["-c", &format!("{first} exec \"$0\" \"$@\"")])
        .arg(program())
        .args(["client", "--server", "http://127.0.0.1:1", "--token", "t", "--gpus", "none"])
        .args(["--metadata", "none", "--data", "data", "--trainer"])
        .arg(&trainer)
        .current_dir(folder.path())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let listens = poll(|| {
        assert!(client.try_wait().unwrap().is_none(), "it has ended");
        let caught = |signal| names(&client, "SigCgt:", signal);
        (caught(Signal::TERM) && caught(Signal::INT)).then_some(())
    });
    assert!(listens.is_some(), "it never listened for signals");
    client
}

fn ends_well(mut client: Child, signal: Signal) {
    kill_process(Pid::from_child(&client), signal).unwrap();
    let status = client.wait().unwrap();
    assert_eq!(status.code(), Some(0), "{signal:?}: {status}");
}

#[test]
fn a_client_ends_in_good_order_when_its_terminal_closes() {
    let folder = Folder::with(&[]);
    for signal in [Signal::HUP, Signal::TERM, Signal::INT] {
        ends_well(listening(&folder, ""), signal);
    }
}

#[test]
fn a_client_under_nohup_survives_its_terminal() {
    let folder = Folder::with(&[]);
    // As `nohup` does.
    let client = listening(&folder, "trap '' HUP;");
    assert!(names(&client, "SigIgn:", Signal::HUP));
    kill_process(Pid::from_child(&client), Signal::HUP).unwrap();
    ends_well(client, Signal::TERM);
}
