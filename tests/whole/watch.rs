//! `sojourn client ctl --watch` on a terminal and on none: what it shows, and how it leaves it.

use crate::{
    ctl::{NAME, Owned},
    site::program,
    terminal::Terminal,
};
use rustix::process::Signal;
use serde_json::Value;
use std::{
    io::{BufRead, BufReader, Read},
    process::{Command, Stdio},
};

fn ctl(owned: &Owned, args: &[&str]) -> Command {
    let mut command = Command::new(program());
    command.args(["client", "ctl", "--data"]).arg(owned.data()).args(args);
    command
}

#[test]
fn a_terminal_is_left_as_it_was() {
    let mut owned = Owned::start();
    let watch = |args| Terminal::with(ctl(&owned, args));

    let mut terminal = watch(&["status", "--watch"]);
    terminal.until("computing");
    terminal.press("p");
    terminal.until("paused:");
    // Both at once: what was asked for before the end is done.
    terminal.press("rq");
    terminal.ends_clean(0);
    assert!(owned.json(&["status"])["paused"].is_null());

    let mut terminal = watch(&["--watch"]);
    terminal.until("cache");
    terminal.press("\u{3}");
    terminal.ends_clean(0);

    let terminal = watch(&["--watch"]);
    terminal.until("limits");
    terminal.signal(Signal::TERM);
    terminal.ends_clean(0);

    // None of these is a terminal: a line a second.
    let lines = |args: &[&str]| {
        let mut command = ctl(&owned, args);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        // Later lines are of a client that ends.
        let mut text = String::new();
        said.read_line(&mut text).unwrap();
        (child, said, text)
    };
    let (plain, json) = (lines(&["--watch"]), lines(&["status", "--watch", "--json"]));
    let mut terminal = watch(&["--watch"]);
    terminal.until("drain");
    terminal.press("d");
    terminal.until("finish");
    terminal.press("y");
    assert_eq!(owned.client.wait(), Some(0), "{}", owned.site.log(NAME));
    terminal.until("the client has ended");
    terminal.ends_clean(0);
    let [plain, json] = [plain, json].map(|(child, mut said, mut text)| {
        said.read_to_string(&mut text).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(String::from_utf8_lossy(&output.stderr), "the client has ended\n");
        text
    });
    assert!(plain.starts_with("1 slot on cpu, computing; unit "), "{plain}");
    let first: Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert_eq!(first["slots"], 1);
    let other = ctl(&owned, &["--watch", "pause"]).output().unwrap();
    assert_eq!(other.status.code(), Some(2));
}
