//! Samples of what is stored: every event as each version wrote it still reads, and writes the same;
//! fields that came later are written with what they mean where they are missing.

use serde_json::Value;
use sojourn_core::{EVENT_VERSION, Event, Record};
use std::collections::BTreeSet;

/// What each version was the first to write, the oldest version first.
const SAMPLES: &[&str] = &[
    include_str!("samples/events-v1.jsonl"),
    include_str!("samples/events-v2.jsonl"),
    include_str!("samples/events-v3.jsonl"),
    include_str!("samples/events-v4.jsonl"),
    include_str!("samples/events-v5.jsonl"),
    include_str!("samples/events-v6.jsonl"),
];

/// The names of all events; a new one must be given a sample.
fn kind(event: &Event) -> &'static str {
    match event {
        Event::HostEnrolled { .. } => "host-enrolled",
        Event::HostRevoked { .. } => "host-revoked",
        Event::BlobPublished { .. } => "blob-published",
        Event::BlobCondemned { .. } => "blob-condemned",
        Event::BlobDoomed { .. } => "blob-doomed",
        Event::BlobDeleted { .. } => "blob-deleted",
        Event::BlobLost { .. } => "blob-lost",
        Event::JobSubmitted { .. } => "job-submitted",
        Event::JobCancelled { .. } => "job-cancelled",
        Event::JobPaused { .. } => "job-paused",
        Event::JobResumed { .. } => "job-resumed",
        Event::JobTimeUp { .. } => "job-time-up",
        Event::JobExtended { .. } => "job-extended",
        Event::JobPlaced { .. } => "job-placed",
        Event::LeaseGranted { .. } => "lease-granted",
        Event::LeaseEnded { .. } => "lease-ended",
        Event::ReportAcknowledged { .. } => "report-acknowledged",
        Event::Assimilated { .. } => "assimilated",
        Event::Evaluated { .. } => "evaluated",
        Event::Rejected { .. } => "rejected",
        Event::Superseded { .. } => "superseded",
        Event::UnitFailed { .. } => "unit-failed",
        Event::Challenged { .. } => "challenged",
        Event::Verified { .. } => "verified",
        Event::Unverified { .. } => "unverified",
        Event::TrialRolledBack { .. } => "trial-rolled-back",
        Event::TrialOrdered { .. } => "trial-ordered",
        Event::TrialFailed { .. } => "trial-failed",
        Event::ExtraAsked { .. } => "extra-asked",
        Event::ExtraEvaluated { .. } => "extra-evaluated",
        Event::ExtraFailed { .. } => "extra-failed",
    }
}

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
        let kind = kind(&record.event);
        assert!(line.contains(&format!("\"{kind}\"")), "{line}");
        kinds.insert(kind);
        let written = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<Record>(&written).unwrap(), record);
        let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        assert!(holds(&value(&written), &value(line)), "{line} is written as {written}");
    }
    assert_eq!(kinds.len(), 31, "{kinds:?}");
}
