//! `sojourn pause`: pauses a job, and its machines work for others.

use crate::{
    api_client::ApiClient,
    cli::{
        render::text,
        terminal::{connection::Connection, exit::Failure, simple::simple},
    },
};
use sojourn_protocol::{api::PauseRequest, ids::JobId, view::JobView};

/// The job gives out no work until `sojourn resume`, also after a restart of the server. Running units end as usual,
/// and their results count.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The job's number.
    #[arg(value_name = "JOB")]
    job: JobId,
    /// End running units at once. A hop ends after its current batch, and continues from there later; an evaluation is
    /// repeated.
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
