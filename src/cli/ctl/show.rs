//! The client's answers, for people.

use sojourn_client::{
    control::{Answer, CacheState, Held, HeldState, LimitsState, Status},
    limits::{Keepers, Limits},
};
use std::fmt::Write as _;

/// The text, without the end of its last line.
pub(super) fn answer(answer: &Answer) -> String {
    match answer {
        Answer::Status(status) => self::status(status),
        Answer::Limits(limits) => self::limits(limits),
        Answer::Cache(cache) => self::cache(*cache),
        Answer::Log(log) => {
            log.lines.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
        }
        Answer::Refused(why) => why.clone(),
    }
}

fn status(status: &Status) -> String {
    let away = if status.server_away { ", which doesn't answer" } else { "" };
    let slots = if status.slots == 1 { "slot" } else { "slots" };
    let mut text = format!(
        "host {} of {}{away}\n{} {slots} on {}, ",
        status.host, status.server, status.slots, status.device
    );
    match &status.paused {
        Some(paused) => {
            let _ = write!(text, "paused: {}", paused.why);
            if let Some(seconds) = paused.seconds_left {
                let _ = write!(text, ", for {seconds} s yet");
            }
            if paused.given_back {
                text.push_str("; its units are given back");
            }
        }
        None if status.pace == 100 => text.push_str("computing"),
        None => {
            let _ = write!(text, "computing {} % of the time", status.pace);
        }
    }
    if status.draining {
        text.push_str("\nends once what runs has ended");
    }
    if status.units.is_empty() {
        text.push_str("\nno units");
    }
    for unit in &status.units {
        let _ = write!(text, "\n  unit {}: {}", unit.lease, state(unit));
    }
    let _ = write!(text, "\n{}", cache(status.cache));
    if let Some(month) = &status.month {
        let _ =
            write!(text, "\n{}: {} bytes of blobs have come and gone", month.month, month.bytes);
        if let Some(until) = month.closed_until {
            let _ = write!(text, ", as many as may: nothing new is taken until {until}");
        }
    }
    let _ = write!(text, "\nlimits: {}", in_a_line(&status.limits));
    if let Some(keepers) = keepers(&status.keepers) {
        let _ = write!(text, "\n{keepers}");
    }
    text
}

fn state(unit: &Held) -> String {
    match &unit.state {
        HeldState::Waiting => "waits for a slot".to_owned(),
        HeldState::Fetching { fetched } => format!("{fetched} bytes fetched"),
        HeldState::Running { done, of } => format!("batch {done} of {of}"),
        HeldState::Sending { sent } => format!("finished, {sent} bytes sent"),
        HeldState::Finished => "finished, on its way to the server".to_owned(),
    }
}

fn limits(limits: &LimitsState) -> String {
    let mut text = pairs(&limits.limits).join("\n");
    if text.is_empty() {
        "no limits".clone_into(&mut text);
    }
    text
}

fn in_a_line(limits: &Limits) -> String {
    let pairs = pairs(limits);
    if pairs.is_empty() { "none".to_owned() } else { pairs.join("; ") }
}

/// As they are given: `cpu=50`.
fn pairs(limits: &Limits) -> Vec<String> {
    let Ok(serde_json::Value::Object(limits)) = serde_json::to_value(limits) else {
        return Vec::new();
    };
    let pairs = limits.into_iter().map(|(key, value)| match value {
        serde_json::Value::String(text) => format!("{key}={text}"),
        value => format!("{key}={value}"),
    });
    pairs.collect()
}

/// By what processor time and memory are kept.
fn keepers(keepers: &Keepers) -> Option<String> {
    match (&keepers.groups, &keepers.why_none) {
        (Some(groups), _) => Some(format!("kept by control groups of {groups}")),
        (None, Some(why)) => {
            Some(format!("kept by the client itself, without control groups: {why}"))
        }
        (None, None) => None,
    }
}

fn cache(cache: CacheState) -> String {
    let shards = if cache.shards == 1 { "shard" } else { "shards" };
    let CacheState { used, limit, shards: count } = cache;
    format!("cache: {used} of {limit} bytes, {count} {shards}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &str) -> String {
        answer(&serde_json::from_str(line).unwrap())
    }

    #[test]
    fn a_status_says_what_runs_and_why_nothing_does() {
        let line = r#"{"status":{"host":"3","server":"http://a","server_away":false,"device":"cpu","slots":2,
            "pace":50,"draining":false,"units":[{"lease":7,"state":{"running":{"done":3,"of":9}}},
            {"lease":8,"state":{"fetching":{"fetched":10}}}],"limits":{"cpu":"50","not_on_battery":true},
            "keepers":{"groups":"version 1: cpu, memory"},
            "month":{"month":"2026-01","bytes":7,"closed_until":"2026-02-01"},"cache":{"used":5,"limit":100,"shards":1}}}"#;
        let text = "host 3 of http://a\n2 slots on cpu, computing 50 % of the time\n  unit 7: batch 3 of 9\n  \
            unit 8: 10 bytes fetched\ncache: 5 of 100 bytes, 1 shard\n2026-01: 7 bytes of \
            blobs have come and gone, as many as may: nothing new is taken until 2026-02-01\nlimits: cpu=50; not_on_battery=true\n\
            kept by control groups of version 1: cpu, memory";
        assert_eq!(said(line), text);
        let line = r#"{"status":{"host":"3","server":"http://a","server_away":true,"device":"cpu","slots":1,
            "pace":0,"paused":{"reason":"owner","why":"paused by hand","seconds_left":60,"given_back":true},
            "draining":true,"units":[],"limits":{},"keepers":{"why_none":"no rights"},"cache":{"used":0,"limit":100,"shards":0}}}"#;
        let text = "host 3 of http://a, which doesn't answer\n1 slot on cpu, paused: paused by hand, for 60 s yet; \
            its units are given back\nends once what runs has ended\nno units\ncache: 0 of 100 bytes, 0 shards\n\
            limits: none\nkept by the client itself, without control groups: no rights";
        assert_eq!(said(line), text);
    }

    #[test]
    fn limits_are_shown_as_they_are_given() {
        assert_eq!(
            said(r#"{"limits":{"limits":{"hours":"22:00-06:00","slots":2}}}"#),
            "hours=22:00-06:00\nslots=2"
        );
        assert_eq!(said(r#"{"limits":{"limits":{}}}"#), "no limits");
    }
}
