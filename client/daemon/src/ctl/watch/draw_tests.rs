//! Screens as they are drawn, large and small.

use super::*;
use ratatui::{Terminal, backend::TestBackend};
use serde_json::json;
use sojourn_client::control::{Answer, LogEnd};

fn view() -> View {
    let blob = "ab".repeat(32);
    let status = json!({
        "host": "3", "server": "https://sojourn.example.org", "server_away": false, "device": "cpu",
        "slots": 2, "pace": 50, "draining": false,
        "units": [
            { "lease": 7, "state": { "running": { "done": 350, "of": 900 } }, "batches_per_second": 12.34,
              "work": { "job": 1, "trial": 4, "task": { "train": { "epoch": 1, "shard": 3 } }, "download": 5 } },
            { "lease": 8, "state": { "fetching": { "fetched": 12_000_000 } },
              "work": { "job": 1, "trial": 5, "task": { "evaluate": { "epoch": 0 } }, "download": 40_000_000 } },
            { "lease": 6, "state": "finished" }
        ],
        "transfers": [
            { "direction": "down", "blob": blob, "bytes": 12_000_000, "of": 40_000_000,
              "bytes_per_second": 1_400_000.0 },
            { "direction": "up", "blob": blob, "lease": 6, "bytes": 0, "of": 2_000_000 }
        ],
        "limits": { "cpu": "50", "disk": "20GiB", "download": "2MB/s", "nice": "19" },
        "cache": { "used": 5_000_000_000_u64, "limit": 21_474_836_480_u64, "shards": 12 }
    });
    let log = json!({ "next": 3, "lines": [
        { "timestamp": "2026-11-21T17:39:25.123456Z", "level": "INFO",
          "fields": { "message": "client started", "host": "3", "slots": 2 } },
        { "timestamp": "2026-11-21T17:41:02.5Z", "level": "WARN",
          "fields": { "message": "the server is away; keeping what is held and trying again" } },
        { "timestamp": "2026-11-21T17:41:07.0Z", "level": "INFO", "fields": { "message": "the server is back" } }
    ] });
    let mut view = View::new(serde_json::from_value(status).unwrap());
    let log: LogEnd = serde_json::from_value(log).unwrap();
    view.take_answer(Ok(Answer::Log(log)));
    view
}

/// The screen of a terminal of this size, without the blanks at the ends of its lines.
fn screen(view: &View, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(view, frame.area(), frame.buffer_mut())).unwrap();
    let buffer = terminal.backend().buffer();
    let lines = buffer.content().chunks(usize::from(width)).map(|cells| {
        let line: String = cells.iter().map(|cell| cell.symbol()).collect();
        line.trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_terminal_shows_every_section() {
    insta::assert_snapshot!(screen(&view(), 80, 24), @r#"
    host 3 of https://sojourn.example.org
    2 slots on cpu, computing 50 % of the time
     units ─────────────────────────────────────────────────────────────────────────
    job 1, trial 4, epoch 2, shard 3   batch 350 of 900        12.3/s   45 s left
    job 1, trial 5, evaluates epoch 1  12 MB of 40 MB here
    unit 6                             done, to be reported
     transfers: 1.4 MB/s down, 0 B/s up ────────────────────────────────────────────
    down  blob abababababab             12 MB of 40 MB      1.4 MB/s   20 s left
    up    checkpoint of unit 6          0 B of 2.0 MB
     cache and limits ──────────────────────────────────────────────────────────────
    cache 5.0 GB of 21 GB, 12 shards   cpu=50 (now 50 %)   disk=20GiB (23 % used)
    download=2MB/s (now 1.4 MB/s)   nice=19
     log ───────────────────────────────────────────────────────────────────────────
    17:39:25 INFO  client started host=3 slots=2
    17:41:02 WARN  the server is away; keeping what is held and trying again
    17:41:07 INFO  the server is back







    q quit  p pause  r resume  d drain
    "#);
}

#[test]
fn a_wide_terminal_has_bars() {
    insta::assert_snapshot!(screen(&view(), 120, 30), @r#"
    host 3 of https://sojourn.example.org
    2 slots on cpu, computing 50 % of the time
     units ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────
    job 1, trial 4, epoch 2, shard 3                  ███░░░░░░░ batch 350 of 900                      12.3/s   45 s left
    job 1, trial 5, evaluates epoch 1                 12 MB of 40 MB here
    unit 6                                            done, to be reported
     transfers: 1.4 MB/s down, 0 B/s up ────────────────────────────────────────────────────────────────────────────────────
    down  blob abababababab                                                     12 MB of 40 MB      1.4 MB/s   20 s left
    up    checkpoint of unit 6                                                  0 B of 2.0 MB
     cache and limits ──────────────────────────────────────────────────────────────────────────────────────────────────────
    cache 5.0 GB of 21 GB, 12 shards   cpu=50 (now 50 %)   disk=20GiB (23 % used)   download=2MB/s (now 1.4 MB/s)   nice=19
     log ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────
    17:39:25 INFO  client started host=3 slots=2
    17:41:02 WARN  the server is away; keeping what is held and trying again
    17:41:07 INFO  the server is back














    q quit  p pause  r resume  d drain
    "#);
}

#[test]
fn a_small_terminal_shows_the_most_important_lines() {
    insta::assert_snapshot!(screen(&view(), 40, 12), @r#"
    host 3 of https://sojourn.example.org
    2 slots on cpu, computing 50 % of the
    time
     units ─────────────────────────────────
    job 1, trial 4   batch 350 of 900
    job 1, trial 5   12 MB of 40 MB here
    unit 6           done, to be reported
     cache and limits ──────────────────────
    cache 5.0 GB of 21 GB, 12 shards
    cpu=50 (now 50 %)
    disk=20GiB (23 % used)
    q quit  p pause  r resume  d drain
    "#);
}

#[test]
fn problems_questions_and_pauses_are_shown() {
    let mut view = view();
    view.status.units.clear();
    view.status.transfers.clear();
    view.status.server_away = true;
    view.status.draining = true;
    view.status.paused = serde_json::from_value(json!({
        "reason": "hours", "why": "not one of its hours", "given_back": true
    }))
    .unwrap();
    view.status.limits = serde_json::from_value(json!({ "hours": "22:00-06:00" })).unwrap();
    view.problem = Some("the client on the data folder `/d` doesn't answer".to_owned());
    view.question = Some(Question::Drain);
    insta::assert_snapshot!(screen(&view, 80, 16), @r#"
    host 3 of https://sojourn.example.org
    the server doesn't answer; what is held goes on
    2 slots on cpu, paused: not one of its hours; its units are given back
    ends once what runs has ended
    the client on the data folder `/d` doesn't answer
     units ─────────────────────────────────────────────────────────────────────────
    none
     cache and limits ──────────────────────────────────────────────────────────────
    cache 5.0 GB of 21 GB, 12 shards   hours=22:00-06:00 (pauses it now)
     log ───────────────────────────────────────────────────────────────────────────
    17:39:25 INFO  client started host=3 slots=2
    17:41:02 WARN  the server is away; keeping what is held and trying again
    17:41:07 INFO  the server is back


    drain: finish what runs, take nothing new, and end?  y yes  n no
    "#);
}

#[test]
fn any_size_can_be_drawn() {
    let mut view = view();
    for _ in 0..40 {
        let (unit, transfer) = (view.status.units[0].clone(), view.status.transfers[0]);
        view.status.units.push(unit);
        view.status.transfers.push(transfer);
    }
    for width in [1, 2, 10, 39, 59, 61, 200] {
        for height in 1..40 {
            screen(&view, width, height);
        }
    }
    let screen = screen(&view, 80, 24);
    assert!(screen.contains("and 35 more") && screen.contains("17:41:07"), "{screen}");
}
