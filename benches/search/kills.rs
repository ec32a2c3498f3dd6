//! The training that a search loses to machines that go: two clients of a slot each, each of which is ended every 30
//! seconds on average and started again, with units of many seconds.

use crate::{
    job::Job,
    site::{self, Site},
    size,
};
use serde_json::Value;
use std::{
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// Seconds between the ends of a client: the quantiles of an exponential distribution with mean 30, shuffled.
const LIVES: [u64; 10] = [15, 40, 8, 90, 27, 5, 54, 2, 21, 38];
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Milliseconds that a hop may train on after it was told to stop.
const LAST_BATCH: f64 = 1000.0;
/// How often what is trained is kept on disk.
const KEEP_SECONDS: &str = "2";

/// How a client ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// As a power cut does; its disk stays.
    Kill,
    /// As a notice does, or `SIGTERM`.
    Notice,
}

/// A client that has ended.
struct Death {
    client: usize,
    /// Milliseconds since 1970.
    at: f64,
}

/// Seconds that were trained and came to nothing, over those that came into a model. All that a client did
/// between the beginning of a unit and its end counts as trained.
pub(crate) fn redone(end: End) -> f64 {
    let site = Site::start(&Job::long_hops(4));
    let names = ["client-1", "client-2"];
    for name in names {
        site.client_with(name, 1, &["--keep-seconds", KEEP_SECONDS]);
    }
    site.await_hosts(2);
    site.submit();
    let begun = Instant::now();
    let mut lives = LIVES.iter().cycle();
    let mut life = || Duration::from_secs(*lives.next().unwrap()) / size::of(1, 20);
    let mut due = [Duration::ZERO; 2].map(|_| life());
    let mut deaths = Vec::new();
    while !site.is_over() {
        for (client, due) in due.iter_mut().enumerate() {
            if begun.elapsed() < *due {
                continue;
            }
            deaths.push(Death { client, at: now() });
            match end {
                End::Kill => site.kill(client),
                End::Notice => site.end(client),
            }
            site.again(client, names[client], 1, &["--keep-seconds", KEEP_SECONDS]);
            *due = begun.elapsed() + life();
        }
        thread::sleep(LOOK_EVERY);
    }
    let events = site.events();
    let hosts = site.read(&["hosts"]);
    let host_of = |client: usize| {
        let hosts = hosts.as_array().unwrap();
        hosts.iter().find(|host| host["name"] == names[client]).unwrap()["host"].clone()
    };
    let each = deaths.iter().map(|death| lost(&events, &host_of(death.client), death.at));
    let each: Vec<f64> = each.collect();
    let lost: f64 = each.iter().sum();
    let detail = site.read(&["status", "1"]);
    let trained = detail["summary"]["train_micros"].as_f64().unwrap() / 1e3;
    let each: Vec<String> = each.iter().map(|millis| format!("{:.1}", millis / 1e3)).collect();
    let (lost_seconds, seconds) = (lost / 1e3, trained / 1e3);
    eprintln!("{end:?}: {lost_seconds:.1} s of {seconds:.1} s, at the ends {}", each.join(", "));
    lost / trained
}

/// Milliseconds of the host's unit at its death that came to nothing.
fn lost(events: &[Value], host: &Value, death: f64) -> f64 {
    let mut free = f64::MIN;
    let mut held: Vec<(&Value, f64)> = Vec::new();
    let (before, after): (Vec<&Value>, Vec<&Value>) =
        events.iter().partition(|event| site::at(event) <= death);
    for event in before {
        let about = &event["event"];
        match site::kind(event) {
            "lease-granted" if about["host"] == *host => {
                held.push((&about["lease"], site::at(event)));
            }
            "lease-ended" => held.retain(|(lease, _)| **lease != about["lease"]),
            "report-acknowledged" if about["host"] == *host => {
                held.retain(|(lease, _)| **lease != about["report"]["lease"]);
                free = site::at(event);
            }
            _ => {}
        }
    }
    // One runs and one waits. What was trained of the former is the next that comes.
    let granted_to = |lease: &Value| held.iter().find(|(held, _)| *held == lease);
    let next =
        after.iter().filter(|event| site::kind(event) == "report-acknowledged").find_map(|event| {
            let report = &event["event"]["report"];
            let (_, granted) = granted_to(&report["lease"])?;
            let outcomes =
                ["trained", "evaluated"].map(|outcome| &report["outcome"][outcome]["train_micros"]);
            Some((*granted, outcomes.iter().find_map(|micros| micros.as_f64())? / 1e3))
        });
    let Some((granted, used)) = next.or_else(|| held.first().map(|(_, granted)| (*granted, 0.0)))
    else {
        return 0.0;
    };
    let ran = death - granted.max(free);
    // Longer ones were begun anew.
    if used > ran + LAST_BATCH { ran } else { (ran - used).max(0.0) }
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64() * 1e3
}
