//! Events as users see them.

use serde::de::Error as _;
use sojourn_core::Record;
use sojourn_protocol::{decimal, spec::CpuSharePolicy, view::EventView};

/// An event, as `/v1` tells it. The journal has it as `{"kind": {...}}`. `cpu_shares`: by which policy of the job hosts divide their
/// processors among its trials.
///
/// # Errors
/// Where it can't be serialised, which is a fault of the program.
pub fn event_view(
    record: &Record,
    cpu_shares: CpuSharePolicy,
) -> Result<EventView, serde_json::Error> {
    let value = decimal::as_text(|| serde_json::to_value(&record.event))?;
    let entry = match value {
        serde_json::Value::Object(object) => object.into_iter().next(),
        _ => None,
    };
    let (kind, event) = entry.ok_or_else(|| {
        let position = record.position.0;
        serde_json::Error::custom(format!("event {position} is serialised without its kind"))
    })?;
    Ok(EventView {
        position: record.position.0,
        at: record.at,
        kind,
        event,
        text: record.event.sentence().unwrap_or_default(),
        decision: record.event.decision(cpu_shares),
    })
}
