//! Samples of what is stored: every event as each version wrote it still reads, and writes the same;
//! fields that came later are written with what they mean where they are missing.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use sojourn_core::{Core, CoreConfig, EVENT_VERSION, Event, Record};
use sojourn_protocol::{
    api::{
        EnrolAnswer, EnrolRequest, HeartbeatAnswer, HeartbeatRequest, ReleaseAnswer,
        ReleaseRequest, ReportAnswer, WorkAnswer, WorkRequest,
    },
    bounds::{Bounded, MAX_MESSAGE_CHARS},
    digest::Digest,
    report::Report,
};
use std::collections::BTreeSet;

/// The events that each version was the first to write, the oldest version first.
const SAMPLES: &[&str] = &[
    include_str!("samples/events-v1.jsonl"),
    include_str!("samples/events-v2.jsonl"),
    include_str!("samples/events-v3.jsonl"),
    include_str!("samples/events-v4.jsonl"),
    include_str!("samples/events-v5.jsonl"),
    include_str!("samples/events-v6.jsonl"),
    include_str!("samples/events-v7.jsonl"),
    include_str!("samples/events-v8.jsonl"),
    include_str!("samples/events-v9.jsonl"),
];

/// The journal that the program of commit 8d7e143 wrote: a server with two clients, of which one was killed, and three
/// jobs, of which one was extended.
const JOURNAL: &str = include_str!("samples/journal-8d7e143.jsonl");
/// The SHA-256 of the state in that server's last snapshot.
const STATE: &str = "6121b60e4749fc042fa1eaf6c9eb3efcbb1580dd650dc10e789d77e39a40bd93";

/// Requests of clients of commit 8d7e143 with the answers of their server, a call a line. The last two calls were not
/// recorded, but written as that version writes them.
const CLIENT: &str = include_str!("samples/client-8d7e143.jsonl");

/// Does `written` hold all that `sample` says?
fn holds(written: &Value, sample: &Value) -> bool {
    match (written, sample) {
        (Value::Object(written), Value::Object(sample)) => sample
            .iter()
            .all(|(key, sample)| written.get(key).is_some_and(|written| holds(written, sample))),
        _ => written == sample,
    }
}

#[test]
fn events_of_every_version_still_read_and_write_the_same() {
    let versions = u32::try_from(SAMPLES.len()).unwrap();
    assert_eq!(EVENT_VERSION, versions, "add samples of the new version beside the old ones");
    let mut kinds = BTreeSet::new();
    for line in SAMPLES.iter().flat_map(|samples| samples.lines()) {
        let record: Record = serde_json::from_str(line).unwrap();
        let kind = record.event.name();
        assert!(line.contains(&format!("\"{kind}\"")), "{line}");
        kinds.insert(kind);
        let written = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<Record>(&written).unwrap(), record);
        let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        assert!(holds(&value(&written), &value(line)), "{line} is written as {written}");
    }
    assert_eq!(kinds.len(), 57, "{kinds:?}");
}

/// An earlier server took what is refused now, and its journal goes on.
#[test]
fn events_with_values_past_the_bounds_of_requests_are_still_read() {
    let mut core = Core::new(CoreConfig::default());
    let mut altered = 0;
    for line in JOURNAL.lines() {
        let mut record: Record = serde_json::from_str(line).unwrap();
        let long = format!("\u{1b}[31m{}", "x".repeat(MAX_MESSAGE_CHARS));
        match &mut record.event {
            Event::HostEnrolled { name, .. } => *name = long,
            Event::JobSubmitted { spec, data, .. } => {
                spec.name.clone_from(&long);
                data.features.push(long);
                assert!(Bounded::new(spec.clone()).is_err() && Bounded::new(data.clone()).is_err());
            }
            Event::LeaseGranted { why, .. } => *why = long,
            _ => altered -= 1,
        }
        altered += 1;
        let written = serde_json::to_string(&record).unwrap();
        let read: Record = serde_json::from_str(&written).unwrap();
        assert_eq!(read, record);
        core.fold(&read).unwrap();
    }
    assert!(altered > 5, "{altered}");
    core.check_invariants().unwrap();
}

#[test]
fn a_journal_of_the_version_before_leads_to_the_state_that_it_led_to() {
    let mut core = Core::new(CoreConfig::default());
    let mut kinds = BTreeSet::new();
    for line in JOURNAL.lines() {
        let record: Record = serde_json::from_str(line).unwrap();
        kinds.insert(record.event.name());
        core.fold(&record).unwrap();
    }
    core.check_invariants().unwrap();
    // The program that wrote it knew events of version 6.
    let snapshot = String::from_utf8(core.snapshot().unwrap()).unwrap();
    let written = snapshot.replacen(&format!("\"version\":{EVENT_VERSION}"), "\"version\":6", 1);
    let written = without_times(&written);
    assert_eq!(Digest::of(written.as_bytes()).to_string(), STATE);
    assert_eq!((core.position().0, kinds.len()), (445, 9), "{kinds:?}");
}

/// A snapshot without the times of the points of curves, which that version didn't keep.
fn without_times(snapshot: &str) -> String {
    let mut parts = snapshot.split("\"curve\":[");
    let mut text = parts.next().unwrap().to_owned();
    for part in parts {
        let mut depth = 1;
        let end = part.find(|c| {
            depth += i32::from(c == '[') - i32::from(c == ']');
            depth == 0
        });
        let (curve, rest) = part.split_at(end.unwrap());
        let mut points = curve.split(",\"at\":");
        text += "\"curve\":[";
        text += points.next().unwrap();
        for point in points {
            text += point.trim_start_matches(|c: char| c.is_ascii_digit());
        }
        text += rest;
    }
    text
}

/// Reads what the version before has sent, and sees that it is written with all that it said.
fn is_read<T: Serialize + DeserializeOwned>(sent: &Value) {
    let read: T = serde_json::from_str(&sent.to_string()).unwrap();
    let written = serde_json::to_string(&read).unwrap();
    assert!(
        holds(&serde_json::from_str(&written).unwrap(), sent),
        "{sent} is written as {written}"
    );
}

#[test]
fn requests_of_the_version_before_are_read_and_their_answers_have_the_same_fields() {
    let mut calls = BTreeSet::new();
    for line in CLIENT.lines() {
        let recorded: Value = serde_json::from_str(line).unwrap();
        let (body, answer) = (&recorded["body"], &recorded["answer"]);
        let call = recorded["call"].as_str().unwrap();
        match call {
            "POST /v1/enrol" => {
                is_read::<Bounded<EnrolRequest>>(body);
                is_read::<EnrolAnswer>(answer);
            }
            "POST /v1/work" => {
                is_read::<Bounded<WorkRequest>>(body);
                is_read::<WorkAnswer>(answer);
            }
            "POST /v1/heartbeat" => {
                is_read::<Bounded<HeartbeatRequest>>(body);
                is_read::<HeartbeatAnswer>(answer);
            }
            "POST /v1/results" => {
                is_read::<Bounded<Report>>(body);
                is_read::<ReportAnswer>(answer);
            }
            "POST /v1/release" => {
                is_read::<Bounded<ReleaseRequest>>(body);
                is_read::<ReleaseAnswer>(answer);
            }
            other => assert_eq!(other, "", "an unknown call"),
        }
        calls.insert(call.to_owned());
    }
    assert_eq!(calls.len(), 5, "{calls:?}");
}
