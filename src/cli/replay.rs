//! `sojourn replay`: train a trial again on this machine and compare.

use super::{
    connection::Connection,
    failure::{Failure, with_sources},
    meter::{Meter, Unit},
    output, words,
    workspace::Workspace,
};
use crate::{
    api_client::ApiClient,
    replay::{self, MadeFile, Replayed, Verdict},
};
use serde::Serialize;
use sojourn_client::{GpuChoice, gpu_slot};
use sojourn_protocol::{
    digest::Digest,
    ids::{JobId, TrialId},
    trainer::CLASS_THREADS,
};
use sojourn_slot::{Slot, SlotConfig};

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
    /// What to train on: `auto` (the CPU where it calculates as the trial's machines did, else a GPU that
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
    let replayed = of_trial(&client, args.job, args.trial, &args.gpus).await?;
    let verdict = replayed.verdict;
    let report = Report { job: args.job, trial: args.trial, replayed };
    if args.json {
        output::json(&report)?;
    } else {
        output::line(&text(&report.replayed))?;
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

/// Replays a trial, with a progress bar.
pub(crate) async fn of_trial(
    client: &ApiClient,
    job: JobId,
    trial: TrialId,
    gpus: &GpuChoice,
) -> Result<Replayed, Failure> {
    let history = client.history(job, trial).await?;
    if history.hops.is_empty() {
        let message = format!("trial {trial} of job {job} has no checkpoint: nothing to replay");
        return Err(Failure::work(message));
    }
    let workspace = Workspace::new()?;
    // What nothing pinned is no device's to judge.
    let class = history.numeric_class.filter(|_| history.context.pinned_threads.is_some());
    let mut slot = slot(gpus, class).await?;
    let of = u64::try_from(history.hops.len()).unwrap_or(u64::MAX);
    let mut meter = Meter::new(&format!("replaying trial {trial}"), Unit::Steps, of);
    let mut progress = |done| meter.set(done, of, "");
    replay::replay(client, &history, &mut slot, workspace.path(), &mut progress).await
}

/// A slot on the device of this machine that can judge trials of the class; where none can, on the one
/// whose class the verdict then names.
async fn slot(gpus: &GpuChoice, class: Option<Digest>) -> Result<Slot, Failure> {
    let base = SlotConfig::find()?;
    let mut cpu = Slot::new(base.clone());
    if *gpus == GpuChoice::Auto {
        let Some(class) = class else { return Ok(cpu) };
        if cpu.hello(Some(CLASS_THREADS)).await?.numeric_class == class {
            return Ok(cpu);
        }
    }
    let gpu = gpu_slot(gpus, &base).await;
    let gpu = gpu.map_err(|error| Failure::work(with_sources(&error)))?;
    Ok(gpu.unwrap_or(cpu))
}

/// The verdict for people.
pub(crate) fn text(replayed: &Replayed) -> String {
    let verdict = replayed.verdict.name();
    match (&replayed.first_difference, &replayed.reason, replayed.sha256) {
        (Some(difference), _, _) => format!(
            "replay: {verdict}: {}version {} (epoch {}, {}) was {} and is {}",
            match difference.file {
                MadeFile::Checkpoint => "",
                MadeFile::MergeState => "the merge state of ",
            },
            difference.version,
            difference.epoch,
            words::shards(difference.shard, &difference.then),
            difference.recorded.short(),
            difference.replayed.short()
        ),
        (None, Some(reason), _) => format!("replay: {verdict}: {reason}"),
        (None, None, Some(sha256)) => {
            format!(
                "replay: {verdict} ({}, SHA-256 {sha256})",
                words::counted(replayed.versions, "version")
            )
        }
        (None, None, None) => format!("replay: {verdict}"),
    }
}
