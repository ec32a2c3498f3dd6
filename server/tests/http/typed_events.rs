//! The events of a job's history in the document: each kind has a type of its own, and what journals hold is of it.

use crate::document::Described;
use serde_json::{Value, json};
use sojourn_core::{Event, Record};
use sojourn_protocol::decimal;
use std::collections::BTreeSet;

/// The samples of all versions of events.
const SAMPLES: [&str; 10] = [
    include_str!("../samples/events-v1.jsonl"),
    include_str!("../samples/events-v2.jsonl"),
    include_str!("../samples/events-v3.jsonl"),
    include_str!("../samples/events-v4.jsonl"),
    include_str!("../samples/events-v5.jsonl"),
    include_str!("../samples/events-v6.jsonl"),
    include_str!("../samples/events-v7.jsonl"),
    include_str!("../samples/events-v8.jsonl"),
    include_str!("../samples/events-v9.jsonl"),
    include_str!("../samples/journal-8d7e143.jsonl"),
];

/// A line of a job's history, as the server answers it.
fn line(record: &Record) -> Value {
    let event = decimal::as_text(|| serde_json::to_value(&record.event)).unwrap();
    let (kind, event) = event.as_object().unwrap().iter().next().unwrap();
    json!({ "position": record.position, "at": record.at, "kind": kind, "event": event })
}

#[test]
fn every_sample_is_of_the_type_that_the_document_has_for_its_kind() {
    let described = Described::of(sojourn_server::openapi().unwrap().clone());
    let any = json!({ "$ref": "#/components/schemas/EventView" });
    let mapping = &described.resolve(&any)["discriminator"]["mapping"];
    let any = described.validator(&any);
    let mut kinds = BTreeSet::new();
    for text in SAMPLES.iter().flat_map(|samples| samples.lines()) {
        let record: Record = serde_json::from_str(text).unwrap();
        let (kind, view) = (record.event.name(), line(&record));
        let errors: Vec<String> = any.iter_errors(&view).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{kind}: {view}\n{errors:?}");
        if kinds.insert(kind) {
            let own = described.validator(&json!({ "$ref": mapping[kind] }));
            assert!(own.is_valid(&view), "{kind}: {view}");
            let mut wrong = view.clone();
            wrong["event"] = json!({});
            assert!(!any.is_valid(&wrong), "{kind} may lack its fields");
            wrong = view;
            wrong["kind"] = json!("unheard-of");
            assert!(!any.is_valid(&wrong), "{kind} may be of any kind");
        }
    }
    let described: BTreeSet<&str> =
        mapping.as_object().unwrap().keys().map(|kind| &**kind).collect();
    assert_eq!(kinds, described, "a kind without a sample, or without a type");
}

#[test]
fn a_seed_of_64_bits_is_text_in_an_event() {
    let text = SAMPLES.iter().flat_map(|samples| samples.lines());
    let mut records = text.map(|line| serde_json::from_str::<Record>(line).unwrap());
    let submitted = |record: &Record| matches!(record.event, Event::JobSubmitted { .. });
    let mut record = records.find(submitted).unwrap();
    let Event::JobSubmitted { spec, .. } = &mut record.event else { unreachable!() };
    spec.seed = u64::MAX;
    assert_eq!(line(&record)["event"]["spec"]["seed"], u64::MAX.to_string());
    let journalled = serde_json::to_value(&record).unwrap();
    assert_eq!(journalled["event"]["job-submitted"]["spec"]["seed"], u64::MAX);
}
