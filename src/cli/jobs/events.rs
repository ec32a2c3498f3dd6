//! `sojourn events`: a job's history, a sentence an event.

use crate::cli::{
    jobs::job_ref::JobRef,
    render::text,
    terminal::{connection::Connection, exit::Failure, output},
};
use sojourn_api::endpoints;
use sojourn_protocol::view::EventView;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The job's number or name.
    #[arg(value_name = "JOB")]
    job: JobRef,
    /// Print what was decided and why: what each machine was given, of which choices, how long it should take, whether others
    /// stood idle, and by which policy it divides its processor; and which trials a search adds, lets go on or stops. A job that waits
    /// now says why at the end.
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
    let job = args.job.find(&client).await?;
    let mut after = 0;
    loop {
        let events = client.call(endpoints::Events::request(job).after(after)).await?;
        let Some(last) = events.last() else { break };
        after = last.position;
        for event in &events {
            let text = match (args.why, &event.decision) {
                (true, None) => continue,
                (true, Some(decision)) => decision.as_str().into(),
                (false, _) => event.sentence(),
            };
            if args.json {
                output::json_line(event)?;
            } else {
                output::line(&format!("{} {text}", place(event)))?;
            }
        }
    }
    if args.why && !args.json {
        // A job that waits has no decisions to show.
        let waiting = client.call(endpoints::Job::request(job)).await?.summary.waiting;
        if let Some(reason) = waiting {
            output::line(&format!("now it waits: {reason}"))?;
        }
    }
    Ok(())
}

/// Where the event is in the journal, and when it was.
fn place(event: &EventView) -> String {
    format!("{} {}", event.position, text::timestamp(event.at))
}
