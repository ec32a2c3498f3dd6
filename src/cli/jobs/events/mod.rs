//! `sojourn events`: a job's history, a line an event.

use crate::cli::{
    render::text,
    terminal::{connection::Connection, exit::Failure, output},
};
use serde_json::Value;
use sojourn_protocol::{ids::JobId, view::EventView};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The job's number.
    #[arg(value_name = "JOB")]
    job: JobId,
    /// Print what each machine was given and why: of which choices, how long it should take, whether
    /// others stood idle.
    #[arg(long)]
    why: bool,
    /// Print one JSON object a line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    let client = args.connection.client()?;
    let mut after = 0;
    loop {
        let events = client.events(args.job, after).await?;
        let Some(last) = events.last() else { return Ok(()) };
        after = last.position;
        for event in &events {
            let grant = args.why.then(|| grant(event));
            if let Some(None) = grant {
                continue;
            }
            if args.json {
                output::json_line(event)?;
            } else if let Some(Some(grant)) = grant {
                output::line(&grant)?;
            } else {
                output::line(&text(event))?;
            }
        }
    }
}

fn text(event: &EventView) -> String {
    let details = match &event.event {
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| format!("{name}={}", short(value)));
            fields.collect::<Vec<_>>().join(" ")
        }
        other => short(other),
    };
    format!("{} {} {} {details}", event.position, text::timestamp(event.at), event.kind)
}

/// The text of an event that grants a lease: the unit, the host and the reason.
fn grant(event: &EventView) -> Option<String> {
    let number = |value: &Value, name: &str| value.get(name).and_then(Value::as_u64);
    let lease = &event.event;
    let why = lease.get("why")?.as_str()?;
    let (kind, unit) = lease.get("unit")?.as_object()?.iter().next()?;
    let named = unit.get("name").unwrap_or(unit);
    let mut what =
        format!("{kind} trial {} epoch {}", number(named, "trial")?, number(named, "epoch")?);
    if let Some(shard) = number(unit, "shard") {
        what += &format!(" shard {shard}");
        for then in lease.get("then").and_then(Value::as_array).into_iter().flatten() {
            what += &format!(", {then}");
        }
    }
    let (id, host) = (number(lease, "lease")?, number(lease, "host")?);
    let at = text::timestamp(event.at);
    Some(format!("{} {at} lease {id} to host {host}: {what}: {why}", event.position))
}

/// A value in a few characters: `events --json` has all of it.
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

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_protocol::time::UnixMillis;

    fn event(event: Value) -> EventView {
        EventView { position: 9, at: UnixMillis(0), kind: "lease-granted".into(), event }
    }

    #[test]
    fn a_grant_names_the_unit_the_host_and_the_reason() {
        let unit =
            serde_json::json!({"train": {"job": 1, "trial": 2, "epoch": 0, "shard": 3, "from": 0}});
        let granted = serde_json::json!({
            "lease": 7, "host": 4, "device": "cpu", "unit": unit, "then": [5], "base": 0, "why": "it is the first"
        });
        let text = grant(&event(granted)).unwrap();
        let end = "lease 7 to host 4: train trial 2 epoch 0 shard 3, 5: it is the first";
        assert!(text.starts_with("9 ") && text.ends_with(end), "{text}");
        let name = serde_json::json!({"trial": 1, "split": "test", "epoch": 2});
        let extra = serde_json::json!({
            "lease": 8, "host": 4, "unit": {"extra": {"job": 1, "name": name}}, "base": 0, "why": "asked"
        });
        let text = grant(&event(extra)).unwrap();
        assert!(text.ends_with("lease 8 to host 4: extra trial 1 epoch 2: asked"), "{text}");
        assert_eq!(grant(&event(serde_json::json!({"lease": 8, "end": "silent"}))), None);
    }
}
