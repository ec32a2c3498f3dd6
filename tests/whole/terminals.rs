//! Commands on terminals: without a size, narrow, and with a question.

use crate::{
    site::{Site, program},
    support::{Answer, FakeServer},
    terminal::Terminal,
};
use serde_json::{Value, json};
use std::process::Command;

/// A job of which the name, and that of its best trial, are of 180 characters.
fn job() -> Value {
    let name = |of: &str| format!("{of}-{}-end", "x".repeat(180 - of.len() - 5));
    json!({
        "job": 1, "name": name("job"), "state": "running", "submitted_at": 0, "ended_at": null, "metric": "valid/accuracy",
        "best": {
            "trial": 3, "name": name("trial"), "epoch": 2, "value": 0.9375,
            "checkpoint": {"sha256": "ab".repeat(32), "bytes": 9}
        },
        "waiting": null, "trials": 12, "trials_finished": 4, "trials_failed": 0, "hops": 120, "hops_expected": 360,
        "evaluations": 0, "evaluations_expected": 1, "leases_live": 0, "leases_expired": 0, "leases_returned": 0,
        "superseded": 0, "rejected": 0, "train_micros": 0
    })
}

fn on_fake_server(args: &[&str]) -> (FakeServer, Command) {
    let server = FakeServer::start(|request| match request.line.as_str() {
        "GET /v1/jobs" => Answer::json(200, json!([job()]).to_string()),
        _ => Answer::json(404, "{}"),
    });
    let mut command = Command::new(program());
    command.args(args).env("SOJOURN_SERVER", &server.url).env("SOJOURN_TOKEN", "t");
    (server, command)
}

fn widest(lines: &[String]) -> usize {
    lines.iter().map(|line| line.chars().count()).max().unwrap_or(0)
}

#[test]
fn help_is_as_wide_as_the_terminal_and_80_columns_where_that_says_none() {
    for args in [&["--help"][..], &["serve", "--help"], &["help", "submit"]] {
        let help = |columns| {
            let mut command = Command::new(program());
            command.args(args);
            Terminal::sized(command, columns / 2, columns).prints(0)
        };
        let of = [0, 40, 80].map(help);
        assert_eq!(of[0], of[2], "{args:?}");
        assert!((60..=80).contains(&widest(&of[0])), "{args:?}:\n{}", of[0].join("\n"));
        // Flags, variables and URLs are never broken, and usage is a line.
        let is_whole =
            |line: &&String| ["Usage:", "--", "://", "="].iter().any(|part| line.contains(part));
        let wide: Vec<&String> =
            of[1].iter().filter(|line| line.chars().count() > 40 && !is_whole(line)).collect();
        assert!(wide.is_empty(), "{args:?}: {wide:#?}");
    }
}

#[test]
fn tables_fit_the_terminal_and_json_has_whole_names() {
    let (_server, command) = on_fake_server(&["jobs"]);
    let wide = Terminal::sized(command, 0, 0).prints(0);
    assert!(wide[0].trim_start().starts_with("JOB") && wide[0].contains("HOPS"), "{wide:?}");
    assert!((50..=80).contains(&widest(&wide)), "{wide:?}");

    let (_server, command) = on_fake_server(&["jobs"]);
    let narrow = Terminal::sized(command, 24, 40).prints(0);
    assert!(widest(&narrow) <= 40, "{narrow:?}");
    assert!(narrow.contains(&"HOPS       120/360".to_owned()), "{narrow:?}");
    assert!(narrow.iter().any(|line| line.starts_with("NAME") && line.ends_with("-end")));

    let (_server, mut command) = on_fake_server(&["jobs", "--json"]);
    let printed: Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
    assert_eq!(printed[0]["name"], job()["name"]);
    let (_server, mut command) = on_fake_server(&["jobs"]);
    let piped = String::from_utf8(command.output().unwrap().stdout).unwrap();
    assert_eq!(piped.lines().count(), 2, "{piped}");
    assert!(piped.contains('…') && !piped.contains(job()["name"].as_str().unwrap()), "{piped}");
}

#[test]
fn the_whole_screen_is_drawn_where_the_terminal_has_no_size() {
    let site = Site::start();
    let mut terminal = Terminal::sized(site.command(&["top"]), 0, 0);
    terminal.until("connected");
    terminal.until("quit");
    terminal.press("q");
    terminal.ends_clean(0);
}

#[test]
fn cancel_says_on_a_terminal_what_is_lost_and_asks() {
    let site = Site::start();
    let job = site.submit(5, 2);
    let cancel =
        |more: &[&str]| Terminal::with(site.command(&[&["cancel", job.as_str()], more].concat()));
    let mut refused = cancel(&[]);
    refused.until("go on? [y/N]");
    refused.press("n\n");
    let lines = refused.prints(1).join(" ");
    assert!(
        lines.contains("4 of 4 trials not finished, 0 of them begun, with 0 of 8 epochs"),
        "{lines}"
    );
    assert!(lines.contains("nothing was changed"), "{lines}");
    assert_eq!(site.job(&job)["state"], "running");

    let mut agreed = cancel(&[]);
    agreed.until("go on? [y/N]");
    agreed.press("y\n");
    agreed.prints(0);
    assert_eq!(site.job(&job)["state"], "cancelled");
    // Nothing is left to lose.
    cancel(&[]).prints(0);

    let other = site.submit(6, 1);
    Terminal::with(site.command(&["cancel", &other, "--yes"])).prints(0);
    assert_eq!(site.job(&other)["state"], "cancelled");
}
