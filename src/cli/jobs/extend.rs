//! `sojourn extend`: trials train for longer, also those of a job that has finished.

use crate::cli::{
    jobs::job_args::{JobArgs, state_text},
    terminal::exit::Failure,
};
use sojourn_protocol::{api::ExtendRequest, ids::TrialId};

/// Trials that run or have finished go on from their last checkpoint, optimiser state and all, until
/// they have trained for N epochs in all; a finished job runs again. Trials that failed by errors stay as they
/// are, and a cancelled job can't be extended. A job that has used up its `wall_time` has it once more, and trials that had to
/// end for it go on, also where N is the number of epochs that they had. What is trained stays as it is; from here on a `cosine`
/// schedule is that of the longer trial, so its learning rate rises to what it would be by now.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Epochs in all, those trained already among them: 50 after 30 trains 20 more.
    #[arg(long, value_name = "N")]
    epochs: u32,
    /// Extend this trial alone.
    #[arg(long, value_name = "N")]
    trial: Option<TrialId>,
    #[command(flatten)]
    job: JobArgs,
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    let request = ExtendRequest { epochs: args.epochs, trial: args.trial };
    args.job
        .call(
            async |client, job| client.extend(job, &request).await,
            |view| format!("{}: {} of {} hops", state_text(view), view.hops, view.hops_expected),
        )
        .await
}
