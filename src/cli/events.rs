//! `sojourn events`: a job's history, a line an event.

use super::{connection::Connection, failure::Failure, output, words};
use serde_json::Value;
use sojourn_protocol::{ids::JobId, view::EventView};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The job's number.
    #[arg(value_name = "JOB")]
    job: JobId,
    /// Print one JSON object a line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    let events = args.connection.client()?.events(args.job).await?;
    for event in &events {
        if args.json {
            output::json_line(event)?;
        } else {
            output::line(&text(event))?;
        }
    }
    Ok(())
}

fn text(event: &EventView) -> String {
    // An event is an object with one key, its kind; what counts is below it.
    let inner = match &event.event {
        Value::Object(fields) => fields.get(&event.kind).unwrap_or(&event.event),
        other => other,
    };
    let details = match inner {
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| format!("{name}={}", short(value)));
            fields.collect::<Vec<_>>().join(" ")
        }
        other => short(other),
    };
    format!("{} {} {} {details}", event.position, words::timestamp(event.at), event.kind)
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
