//! Replays a trial that a server knows: fetches its history, finds a device that can judge it, shows a progress bar.

use crate::{
    api_client::ApiClient,
    cli::{
        render::{
            progress::{Meter, Unit},
            text,
        },
        submit::workspace::Workspace,
        terminal::{causes::slot_failure, exit::Failure},
    },
    replay::{MadeFile, Replayed, lineage::Lineage, replay},
};
use sojourn_client::{GpuChoice, gpu_slot};
use sojourn_protocol::{
    digest::Digest,
    error::error_chain,
    ids::{JobId, TrialId},
    trainer::CLASS_THREADS,
};
use sojourn_slot::{Slot, SlotConfig, supported_instructions};

/// Replays a trial, with a progress bar.
pub(crate) async fn replay_trial(
    client: &ApiClient,
    job: JobId,
    trial: TrialId,
    gpus: &GpuChoice,
) -> Result<Replayed, Failure> {
    let lineage = Lineage::fetch(client, job, trial).await?;
    let history = lineage.own()?;
    if history.hops.is_empty() {
        let message = format!("trial {trial} of job {job} has no checkpoint: nothing to replay");
        return Err(Failure::work(message));
    }
    let workspace = Workspace::new()?;
    // Without pinned threads no device can judge it.
    let class = history.numeric_class.filter(|_| history.context.pinned_threads.is_some());
    let mut slot = slot(gpus, class).await?;
    let of = lineage.versions();
    let mut meter = Meter::new(&format!("replaying trial {trial}"), Unit::Steps, of);
    let mut progress = |done| meter.set(done, of, "");
    replay(client, &lineage, &mut slot, workspace.path(), &mut progress).await
}

/// A slot on the device of this machine that can judge trials of the class, pinned to the class's instruction set; where
/// none can, on the one whose class the verdict then names.
async fn slot(gpus: &GpuChoice, class: Option<Digest>) -> Result<Slot, Failure> {
    let base = SlotConfig::find().map_err(slot_failure)?;
    let mut cpu = Slot::new(base.clone());
    if matches!(gpus, GpuChoice::Auto | GpuChoice::Off) {
        let Some(class) = class else { return Ok(cpu) };
        if pin_to(&mut cpu, class).await? {
            return Ok(cpu);
        }
    }
    let gpu = gpu_slot(gpus, &base).await;
    let gpu = gpu.map_err(|error| Failure::work(error_chain(&error)))?;
    Ok(gpu.unwrap_or(cpu))
}

/// Pins a slot on the CPU to the instruction set in which this machine computes the class. False where it has none.
async fn pin_to(cpu: &mut Slot, class: Digest) -> Result<bool, Failure> {
    // The fastest first: most trials are trained in it.
    for instructions in supported_instructions().into_iter().rev() {
        cpu.set_instructions(instructions);
        if cpu.hello(Some(CLASS_THREADS)).await.map_err(slot_failure)?.numeric_class == class {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The verdict for people.
pub(crate) fn verdict_text(replayed: &Replayed) -> String {
    let verdict = replayed.verdict.name();
    match (&replayed.first_difference, &replayed.reason, replayed.sha256) {
        (Some(difference), _, _) => format!(
            "replay: {verdict}: {}version {}{} (epoch {}, {}) was {} and is {}",
            match difference.file {
                MadeFile::Checkpoint => "",
                MadeFile::MergeState => "the merge state of ",
            },
            difference.version,
            difference.trial.map_or_else(String::new, |trial| format!(" of trial {trial}")),
            difference.epoch.0 + 1,
            text::shards(difference.shard, &difference.then),
            difference.recorded.short(),
            difference.replayed.short()
        ),
        (None, Some(reason), _) => format!("replay: {verdict}: {reason}"),
        (None, None, Some(sha256)) => {
            format!(
                "replay: {verdict} ({}, SHA-256 {sha256})",
                text::counted(replayed.versions, "version")
            )
        }
        (None, None, None) => format!("replay: {verdict}"),
    }
}
