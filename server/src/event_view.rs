//! Events as users see them.

use serde::de::Error as _;
use sojourn_core::Record;
use sojourn_protocol::{decimal, view::EventView};

/// An event, as `/v1` tells it. It is serialised as `{"kind": {...}}`.
///
/// # Errors
/// Where it can't be serialised, which is a fault of the program.
pub fn event_view(record: &Record) -> Result<EventView, serde_json::Error> {
    let value = decimal::as_text(|| serde_json::to_value(&record.event))?;
    let entry = match value {
        serde_json::Value::Object(object) => object.into_iter().next(),
        _ => None,
    };
    let (kind, event) = entry.ok_or_else(|| {
        let position = record.position.0;
        serde_json::Error::custom(format!("event {position} is serialised without its kind"))
    })?;
    Ok(EventView { position: record.position.0, at: record.at, kind, event })
}
