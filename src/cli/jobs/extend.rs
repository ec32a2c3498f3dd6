//! `sojourn extend`: trials train for longer, also those of a job that has finished.

use crate::{
    api_client::ApiClient,
    cli::{
        render::text,
        terminal::{connection::Connection, exit::Failure, simple::simple},
    },
};
use sojourn_protocol::{
    api::ExtendRequest,
    ids::{JobId, TrialId},
};

/// Trials that run or have finished go on from their last checkpoint, optimiser state and all, until
/// they have trained for N epochs in all; a finished job runs again. Trials that failed stay as they
/// are, and a cancelled job can't be extended. What is trained stays as it is; from here on a `cosine`
/// schedule is that of the longer trial, so its learning rate rises to what it would be by now.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The job's number.
    #[arg(value_name = "JOB")]
    job: JobId,
    /// Epochs in all, those trained already among them: 50 after 30 trains 20 more.
    #[arg(long, value_name = "N")]
    epochs: u32,
    /// Extend this trial alone.
    #[arg(long, value_name = "N")]
    trial: Option<TrialId>,
    /// Print the job as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    let request = ExtendRequest { epochs: args.epochs, trial: args.trial };
    let call = async |client: &ApiClient| client.extend(args.job, &request).await;
    simple(&args.connection, args.json, call, |view| {
        let state = text::job_state(view.state);
        let (hops, expected) = (view.hops, view.hops_expected);
        format!("job {} `{}` is {state}: {hops} of {expected} hops", view.job, view.name)
    })
    .await
}
