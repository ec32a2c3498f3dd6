//! `sojourn cancel`: ends a job; what it has made so far stays. On a terminal it says what is lost, and asks.

use crate::{
    api_client::ApiClient,
    cli::{
        jobs::job_args::{JobArgs, state_text},
        render::text,
        terminal::{
            confirm::{self, confirm},
            exit::Failure,
            simple::show,
        },
    },
};
use sojourn_api::endpoints;
use sojourn_protocol::{
    ids::JobId,
    quantity::to_u64,
    view::{JobView, TrialState, TrialView},
};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    of: JobArgs,
    /// Don't ask. Where stdin is no terminal, nothing is asked anyway.
    #[arg(long, short = 'y')]
    yes: bool,
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    let client = args.of.connection.client()?;
    let job = args.of.job.find(&client).await?;
    if !args.yes && confirm::is_possible() {
        ask(&client, job).await?;
    }
    let cancelled = client.call(endpoints::CancelJob::request(job)).await?;
    show(&cancelled, args.of.json, state_text)
}

/// Asks whether a job is to end, unless it has.
async fn ask(client: &ApiClient, job: JobId) -> Result<(), Failure> {
    let view = client.call(endpoints::Job::request(job)).await?.summary;
    if view.state.has_ended() {
        return Ok(());
    }
    let trials = client.call(endpoints::Trials::request(job)).await?;
    confirm(&loss(&view, &trials), false)
}

/// The part of a job that is lost if it is cancelled now.
fn loss(job: &JobView, trials: &[TrialView]) -> String {
    let open = || trials.iter().filter(|trial| trial.state == TrialState::Running);
    let begun = open().filter(|trial| trial.hops > 0).count();
    let done: u64 = open().map(|trial| u64::from(trial.epoch.0)).sum();
    let wanted: u64 = open().map(|trial| u64::from(trial.epochs)).sum();
    let (id, name) = (job.job, &job.name);
    format!(
        "job {id} `{name}`: {open} of {all} not finished, {begun} of them begun, with {done} of {wanted}. They get no further \
         training. Its figures and checkpoints stay. `sojourn pause {id}` stops it for a while; a cancelled job goes on only by `sojourn extend {id} --epochs N --reopen`",
        open = open().count(),
        all = text::counted(to_u64(trials.len()), "trial"),
        wanted = text::counted(wanted, "epoch"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn trial(id: u64, state: &str, epoch: u64, hops: u64) -> TrialView {
        serde_json::from_value(json!({
            "trial": id, "state": state, "arch": "mlp", "choices": {}, "epoch": epoch, "epochs": 5, "hops": hops,
            "version": hops, "checkpoint": null, "numeric_class": null, "curve": [], "best": null, "waiting": null
        }))
        .unwrap()
    }

    #[test]
    fn the_question_says_how_much_is_lost() {
        let job = serde_json::from_value(json!({
            "job": 3, "name": "digits", "state": "running", "submitted_at": 0, "ended_at": null, "metric": "valid/accuracy",
            "best": null, "waiting": null, "trials": 4, "trials_finished": 1, "trials_failed": 0, "hops": 0,
            "hops_expected": 1, "evaluations": 0, "evaluations_expected": 1, "leases_live": 0, "leases_expired": 0,
            "leases_returned": 0, "superseded": 0, "rejected": 0, "train_micros": 0
        }));
        let trials = [
            trial(0, "running", 2, 7),
            trial(1, "running", 0, 0),
            trial(2, "finished", 5, 15),
            trial(3, "running", 1, 4),
        ];
        let said = loss(&job.unwrap(), &trials);
        let begin =
            "job 3 `digits`: 3 of 4 trials not finished, 2 of them begun, with 3 of 15 epochs. ";
        assert!(said.starts_with(begin), "{said}");
        assert!(said.contains("`sojourn pause 3`"), "{said}");
    }
}
