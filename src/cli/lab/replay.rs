//! `sojourn replay`: train a trial again on this machine and compare.

use crate::{
    cli::terminal::{connection::Connection, exit::Failure, output},
    replay::{
        Replayed, Verdict,
        trial::{replay_trial, verdict_text},
    },
};
use serde::Serialize;
use sojourn_client::GpuChoice;
use sojourn_protocol::ids::{JobId, TrialId};

/// Trains everything again that is in the trial's model, in the same order, and compares each
/// checkpoint with the recorded one. The verdict is `identical` (exit code 0), `different` with the
/// first hop that differs, or `not judgeable here` on a machine of another numeric class (both 1).
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The job's number.
    #[arg(value_name = "JOB")]
    job: JobId,
    /// The trial.
    #[arg(long, value_name = "N")]
    trial: TrialId,
    /// The device to train on: `auto` (the CPU where it calculates as the trial's machines did, else a GPU that
    /// does), `none` (the CPU alone), or GPUs by number, as for `sojourn client`.
    #[arg(long, env = "SOJOURN_GPUS", value_name = "GPUS", default_value = "auto")]
    gpus: GpuChoice,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

#[derive(Debug, Serialize)]
struct Report {
    job: JobId,
    trial: TrialId,
    #[serde(flatten)]
    replayed: Replayed,
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    let client = args.connection.client()?;
    let replayed = replay_trial(&client, args.job, args.trial, &args.gpus).await?;
    let verdict = replayed.verdict;
    let report = Report { job: args.job, trial: args.trial, replayed };
    if args.json {
        output::json(&report)?;
    } else {
        output::line(&verdict_text(&report.replayed))?;
    }
    match verdict {
        Verdict::Identical => Ok(()),
        Verdict::Different | Verdict::NotJudgeable => Err(Failure::work(format!(
            "the replay of trial {} of job {}: {}",
            args.trial,
            args.job,
            verdict.name()
        ))
        .silent()),
    }
}
