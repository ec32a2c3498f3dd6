//! Old samples of what is stored: every event as version 1 wrote it still reads, and writes the same.

use sojourn_core::{EVENT_VERSION, Event, Record};
use std::collections::BTreeSet;

const VERSION_1: &str = include_str!("samples/events-v1.jsonl");

/// The names of all events; a new one must be given a sample.
fn kind(event: &Event) -> &'static str {
    match event {
        Event::HostEnrolled { .. } => "host-enrolled",
        Event::HostRevoked { .. } => "host-revoked",
        Event::BlobPublished { .. } => "blob-published",
        Event::BlobCondemned { .. } => "blob-condemned",
        Event::BlobDoomed { .. } => "blob-doomed",
        Event::BlobDeleted { .. } => "blob-deleted",
        Event::JobSubmitted { .. } => "job-submitted",
        Event::JobCancelled { .. } => "job-cancelled",
        Event::LeaseGranted { .. } => "lease-granted",
        Event::LeaseEnded { .. } => "lease-ended",
        Event::ReportAcknowledged { .. } => "report-acknowledged",
        Event::Assimilated { .. } => "assimilated",
        Event::Evaluated { .. } => "evaluated",
        Event::Rejected { .. } => "rejected",
        Event::Superseded { .. } => "superseded",
        Event::UnitFailed { .. } => "unit-failed",
        Event::TrialFailed { .. } => "trial-failed",
    }
}

#[test]
fn events_of_version_1_still_read_and_write_the_same() {
    assert_eq!(EVENT_VERSION, 1, "add samples of the new version beside the old ones");
    let mut kinds = BTreeSet::new();
    for line in VERSION_1.lines() {
        let record: Record = serde_json::from_str(line).unwrap();
        let kind = kind(&record.event);
        assert!(line.contains(&format!("\"{kind}\"")), "{line}");
        kinds.insert(kind);
        assert_eq!(serde_json::to_string(&record).unwrap(), line);
    }
    assert_eq!(kinds.len(), 17, "{kinds:?}");
}
