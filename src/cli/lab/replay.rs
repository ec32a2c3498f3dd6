//! `sojourn replay`: train a trial again on this machine and compare, or train it from its job file alone.

use crate::{
    cli::{
        jobs::job_ref::JobRef,
        lab::replay_file,
        submit::graphs::PythonArgs,
        terminal::{connection::Connection, exit::Failure, output},
    },
    replay::{
        Replayed, Verdict,
        trial::{replay_trial, verdict_text},
    },
};
use serde::Serialize;
use sojourn_api::endpoints;
use sojourn_client::GpuChoice;
use sojourn_protocol::ids::{JobId, TrialId};
use std::{
    convert::Infallible,
    path::{Path, PathBuf},
    str::FromStr,
};

/// Trains everything again that is in the trial's model, in the same order, and compares each
/// checkpoint with the recorded one. The verdict is `identical` (exit code 0), `different` with the
/// first hop that differs, or `not judgeable here` on a machine of another numeric class (both 1).
///
/// With a job file whose visits are fixed it needs no server: it trains the trial from the file and its data, and prints
/// the digest of the checkpoint after each epoch. In one numeric class that is the checkpoint that any hosts make.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The job's number or name, or a job file.
    #[arg(value_name = "JOB|JOB.TOML")]
    of: ReplayOf,
    /// The trial.
    #[arg(long, value_name = "N")]
    trial: TrialId,
    /// The device to train on: `auto` (the CPU where it calculates as the trial's machines did, else a GPU that
    /// does), `none` (the CPU alone), or GPUs by number, as for `sojourn client`.
    #[arg(long, env = "SOJOURN_GPUS", value_name = "GPUS", default_value = "auto")]
    gpus: GpuChoice,
    /// With a job file: the instruction set to compute in, which is a numeric class of its own. Left out: the fastest
    /// that this machine has.
    #[arg(long, value_name = "SET")]
    instructions: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    python: PythonArgs,
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

/// The subject of a replay.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ReplayOf {
    /// A job of the server.
    Job(JobRef),
    /// A job file.
    File(PathBuf),
}

impl FromStr for ReplayOf {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let path = Path::new(text);
        let is_number = text.chars().all(|digit| digit.is_ascii_digit());
        if path.extension().is_some_and(|is| is == "toml") || (!is_number && path.is_file()) {
            return Ok(Self::File(path.to_owned()));
        }
        text.parse().map(Self::Job)
    }
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    match &args.of {
        ReplayOf::Job(job) if args.instructions.is_none() => run_job(args, job).await,
        ReplayOf::Job(_) => Err(Failure::call(
            "`--instructions` goes with a job file: a job of the server says itself in which class it was trained",
        )),
        ReplayOf::File(path) => {
            let options = replay_file::Options {
                trial: args.trial,
                gpus: &args.gpus,
                instructions: args.instructions.as_deref(),
                json: args.json,
                python: &args.python,
            };
            replay_file::run(path, &options).await
        }
    }
}

async fn run_job(args: &Args, job: &JobRef) -> Result<(), Failure> {
    let client = args.connection.client()?;
    let job = job.find(&client).await?;
    if client.call(endpoints::Job::request(job)).await?.summary.thinned {
        return Err(Failure::work(format!(
            "job {job} is thinned: the server doesn't keep its data and checkpoints (`--keep-jobs`); with fixed visits \
             `sojourn replay JOB.TOML` needs only the job file and its data"
        )));
    }
    let replayed = replay_trial(&client, job, args.trial, &args.gpus).await?;
    let verdict = replayed.verdict;
    let report = Report { job, trial: args.trial, replayed };
    if args.json {
        output::json(&report)?;
    } else {
        output::line(&verdict_text(&report.replayed))?;
    }
    match verdict {
        Verdict::Identical => Ok(()),
        Verdict::Different | Verdict::NotJudgeable => Err(Failure::work(format!(
            "the replay of trial {} of job {job}: {}",
            args.trial,
            verdict.name()
        ))
        .silent()),
    }
}
