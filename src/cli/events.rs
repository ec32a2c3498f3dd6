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
    let client = args.connection.client()?;
    let mut after = 0;
    loop {
        let events = client.events(args.job, after).await?;
        let Some(last) = events.last() else { return Ok(()) };
        after = last.position;
        for event in &events {
            if args.json {
                output::json_line(event)?;
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
