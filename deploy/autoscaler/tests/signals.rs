//! `sojourn-autoscaler run` and the signals that ask it to end.

use rustix::process::{Pid, Signal, kill_process};
use std::{
    fs,
    io::{BufRead as _, BufReader},
    net::TcpListener,
    process::{Command, Stdio},
};

const FILE: &str = "fleet = 'night'
server = 'http://ADDRESS'
token_file = 'token'

[limits]
machines = 1

[ec2]
user_data = 'user-data.yaml'
";

/// A closed terminal, a service manager, a person.
#[test]
fn each_of_three_signals_ends_it_in_good_order() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("token"), "secret\n").unwrap();
    // Nobody answers there, so it waits for a server.
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    fs::write(folder.path().join("fleet.toml"), FILE.replace("ADDRESS", &closed)).unwrap();
    for signal in [Signal::HUP, Signal::TERM, Signal::INT] {
        let mut run = Command::new(env!("CARGO_BIN_EXE_sojourn-autoscaler"))
            .args(["run", "fleet.toml", "--log-format", "json"])
            .current_dir(folder.path())
            .env_remove("SOJOURN_TOKEN_FILE")
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(run.stderr.take().unwrap()).lines();
        let waits = log.find(|line| line.as_ref().unwrap().contains("the server isn't there yet"));
        let line: serde_json::Value = serde_json::from_str(&waits.unwrap().unwrap()).unwrap();
        assert_eq!(line["level"], "WARN");
        kill_process(Pid::from_child(&run), signal).unwrap();
        assert_eq!(run.wait().unwrap().code(), Some(0), "{signal:?}");
    }
}
