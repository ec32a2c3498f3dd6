//! Events as sentences for people.

mod event;
mod fields;
mod residency;
mod search;

pub use event::decision;

use crate::view::EventView;
use serde_json::Value;

/// An event as a sentence; in general words where there are none for its kind, as of a newer server.
#[must_use]
pub fn of_event(event: &EventView) -> String {
    event::sentence(event).unwrap_or_else(|| general(event))
}

/// An event for which there is no sentence.
fn general(event: &EventView) -> String {
    let details = match &event.event {
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| format!("{name}={}", short(value)));
            fields.collect::<Vec<_>>().join(" ")
        }
        other => short(other),
    };
    format!("{} {details}", event.kind)
}

/// A value in a few characters: the event itself has all of it.
fn short(value: &Value) -> String {
    const LIMIT: usize = 80;
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    if text.chars().count() <= LIMIT {
        return text;
    }
    text.chars().take(LIMIT).chain(['…']).collect()
}
