//! `sojourn pause`: a job stands still, and its machines work for others.

use crate::{
    api_client::ApiClient,
    cli::{
        render::text,
        terminal::{connection::Connection, exit::Failure, simple::simple},
    },
};
use sojourn_protocol::{api::PauseRequest, ids::JobId, view::JobView};

/// Nothing of the job is handed out until `sojourn resume`; it stays paused when the server restarts.
/// Units that machines run end as usual, and their results count.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The job's number.
    #[arg(value_name = "JOB")]
    job: JobId,
    /// End running units at once: a hop after the batch that it is at, from where it goes on later; an
    /// evaluation is done anew.
    #[arg(long)]
    now: bool,
    /// Print the job as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    let request = PauseRequest { now: args.now };
    let call = async |client: &ApiClient| client.pause(args.job, &request).await;
    simple(&args.connection, args.json, call, |view| text(view, args.now)).await
}

fn text(view: &JobView, now: bool) -> String {
    let paused = format!("job {} `{}` is {}", view.job, view.name, text::job_state(view.state));
    match view.leases_live {
        0 => paused,
        live => {
            let units = text::counted(live, "unit");
            let how = if now { "which end them early" } else { "(`--now` ends them early)" };
            format!("{paused}; {units} still with machines{} {how}", if now { "," } else { "" })
        }
    }
}
