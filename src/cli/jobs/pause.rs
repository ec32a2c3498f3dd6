//! `sojourn pause`: pauses a job, and its machines work for others.

use crate::{
    api_client::ApiClient,
    cli::{
        jobs::job_args::{JobArgs, state_text},
        render::text,
        terminal::exit::Failure,
    },
};
use sojourn_api::endpoints;
use sojourn_protocol::{api::PauseRequest, view::JobView};

/// The job gives out no work until `sojourn resume`, also after a restart of the server. Running units end as usual,
/// and their results count.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// End running units at once. A hop ends after its current batch, and continues from there later; an evaluation is
    /// repeated.
    #[arg(long)]
    now: bool,
    #[command(flatten)]
    job: JobArgs,
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    let request = PauseRequest { now: args.now };
    let call = async |client: &ApiClient, job| {
        client.call(endpoints::PauseJob::request(job, &request)).await
    };
    args.job.call(call, |view| text(view, args.now)).await
}

fn text(view: &JobView, now: bool) -> String {
    let paused = state_text(view);
    match view.leases_live {
        0 => paused,
        live => {
            let units = text::counted(live, "unit");
            let how = if now { "which end them early" } else { "(`--now` ends them early)" };
            format!("{paused}; {units} still with machines{} {how}", if now { "," } else { "" })
        }
    }
}
