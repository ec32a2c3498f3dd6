//! `sojourn extend`: trials train for longer, or a search tries more of them, also of a job that has finished.

use crate::cli::{
    jobs::job_args::{JobArgs, state_text},
    terminal::exit::Failure,
};
use sojourn_api::endpoints;
use sojourn_protocol::{
    api::{ExtendRequest, SearchRequest},
    ids::TrialId,
};

/// Trials that run or have finished go on from their last checkpoint, optimiser state and all, until
/// they have trained for N epochs in all; a finished job runs again. Trials that failed by errors stay as they
/// are. A cancelled job goes on with `--reopen`: its cancelled trials train on to N epochs. A job that has used up its `wall_time` has it once more, and trials that had to
/// end for it go on, also where N is the number of epochs that they had. What is trained stays as it is; from here on a `cosine`
/// schedule is that of the longer trial, so its learning rate rises to what it would be by now.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Epochs in all, those trained already among them: 50 after 30 trains 20 more.
    #[arg(long, value_name = "N", required_unless_present = "trials")]
    epochs: Option<u32>,
    /// Extend this trial alone.
    #[arg(long, value_name = "N", requires = "epochs")]
    trial: Option<TrialId>,
    /// Combinations that the search is to try in all, those tried already among them; a job that has ended runs again.
    #[arg(long, value_name = "N", conflicts_with = "trial")]
    trials: Option<u32>,
    /// Have a cancelled job go on.
    #[arg(long, requires = "epochs")]
    reopen: bool,
    #[command(flatten)]
    job: JobArgs,
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    args.job
        .call(
            async |client, job| {
                if args.trials.is_some() {
                    let request = SearchRequest { trials: args.trials, ..SearchRequest::default() };
                    client.call(endpoints::ChangeSearch::request(job, &request)).await?;
                }
                match args.epochs {
                    Some(epochs) => {
                        client
                            .call(endpoints::ExtendJob::request(
                                job,
                                &ExtendRequest { epochs, trial: args.trial, reopen: args.reopen },
                            ))
                            .await
                    }
                    None => {
                        client.call(endpoints::Job::request(job)).await.map(|detail| detail.summary)
                    }
                }
            },
            |view| format!("{}: {} of {} hops", state_text(view), view.hops, view.hops_expected),
        )
        .await
}
