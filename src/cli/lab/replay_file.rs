//! `sojourn replay JOB.TOML`: trains a trial from its job file and data, without a server.

use crate::{
    cli::{
        render::{
            progress::{Meter, Unit},
            text,
        },
        submit::{
            command::cut,
            graphs::PythonArgs,
            init_weights,
            jobfile::{self, Job},
            reading::Reading,
            sharding::Known,
            workspace::Workspace,
        },
        terminal::{causes::slot_failure, exit::Failure, output},
    },
    replay::alone::{EpochMade, TrialAlone},
};
use serde::Serialize;
use sojourn_client::GpuChoice;
use sojourn_ingest::{Progress, Unbounded};
use sojourn_protocol::{
    digest::Digest,
    ids::TrialId,
    seeds,
    spec::Visits,
    trainer::{CLASS_THREADS, InstructionSet},
    unit::{Base, TrialContext},
};
use sojourn_slot::{Slot, SlotConfig, supported_instructions};
use std::{path::Path, sync::Arc};

/// The options of the command line beside the job file.
pub(crate) struct Options<'a> {
    pub(crate) trial: TrialId,
    pub(crate) gpus: &'a GpuChoice,
    pub(crate) instructions: Option<&'a str>,
    pub(crate) json: bool,
    pub(crate) python: &'a PythonArgs,
}

/// The JSON of it.
#[derive(Debug, Serialize)]
struct Report {
    name: String,
    trial: TrialId,
    shards: usize,
    instructions: &'static str,
    numeric_class: Digest,
    /// The checkpoint after each epoch.
    epochs: Vec<EpochMade>,
    /// The last of them.
    sha256: Option<Digest>,
}

pub(crate) async fn run(path: &Path, options: &Options<'_>) -> Result<(), Failure> {
    let mut job = jobfile::read(path).map_err(|(failure, _)| failure)?;
    check(&job, options)?;
    let instructions = instructions(options.instructions)?;
    let workspace = Workspace::new()?;
    let known = Known::default();
    let mut reading = Reading::new();
    let tell = &mut |progress: Progress<'_>| reading.tell(progress);
    let (ingested, chosen) = tokio::task::block_in_place(|| {
        cut(&mut job, options.python, &known, (workspace.path(), Arc::new(Unbounded)), tell)
    })?;
    if chosen.visits.visits == Visits::Free {
        return Err(Failure::call(format!(
            "the visits of `{}` are {}; without its server's history nobody knows their order. \
             `placement.visits = \"fixed\"` lets the job file say it",
            job.spec.name, chosen.visits
        )));
    }
    job.spec.data.shards = Some(chosen.shards);
    job.spec.placement.visits = Some(Visits::Fixed);
    let mut files = ingested.files.clone();
    files.extend(init_weights::write(&job, workspace.path())?);
    files.extend(job.graphs.clone());
    let mut slot = Slot::new(SlotConfig::find().map_err(slot_failure)?);
    slot.set_instructions(instructions);
    let hello = slot.hello(Some(CLASS_THREADS)).await.map_err(slot_failure)?;

    let trial = options.trial;
    let of = find_trial(&job, trial)?;
    let fold = of.fold.and_then(|number| job.spec.fold(number));
    let context = TrialContext::of(&job.spec, &ingested.manifest, of.config.clone(), fold);
    let seed = of.seed.unwrap_or(job.spec.seed);
    let alone = TrialAlone {
        spec: &job.spec,
        data: &ingested.manifest,
        trial,
        seed,
        fold,
        context: context.into(),
        first: Base::first(seeds::initial_weights(seed, trial), job.spec.initial_weights(of.model)),
        files,
    };
    let all = u64::from(job.spec.training.epochs);
    let mut meter = Meter::new(&format!("training trial {trial}"), Unit::Steps, all);
    let mut epochs = Vec::new();
    let mut made = |of: EpochMade| {
        meter.set(u64::from(of.epoch.0) + 1, all, "");
        epochs.push(of);
    };
    alone.train(&mut slot, workspace.path(), &mut made).await?;
    let report = Report {
        name: job.spec.name,
        trial,
        shards: ingested.manifest.train.len(),
        instructions: instructions.name(),
        numeric_class: hello.numeric_class,
        sha256: epochs.last().map(|last| last.sha256),
        epochs,
    };
    if options.json { output::json(&report) } else { output::line(&text(&report)) }
}

/// Is there such a trial, and is its arithmetic pinned?
fn check(job: &Job, options: &Options<'_>) -> Result<(), Failure> {
    find_trial(job, options.trial)?;
    if !job.spec.placement.reproducible {
        let why = "`placement.reproducible` is false: nothing pins the arithmetic of its trials";
        return Err(Failure::call(why));
    }
    if matches!(options.gpus, GpuChoice::Auto | GpuChoice::Off) {
        return Ok(());
    }
    Err(Failure::call("with a job file, `replay` trains on the CPU"))
}

fn find_trial(job: &Job, trial: TrialId) -> Result<&sojourn_workgen::Trial, Failure> {
    let found = usize::try_from(trial.0).ok().and_then(|at| job.trials.get(at));
    found.ok_or_else(|| {
        let count = text::counted(u64::try_from(job.trials.len()).unwrap_or(u64::MAX), "trial");
        Failure::call(format!(
            "`{}` has {count}, counted from 0: there is no trial {trial}",
            job.spec.name
        ))
    })
}

/// The instruction set of this name, where this machine has it; the fastest where none is named.
fn instructions(name: Option<&str>) -> Result<InstructionSet, Failure> {
    let here = supported_instructions();
    let Some(name) = name else { return Ok(here.last().copied().unwrap_or_default()) };
    here.iter().copied().find(|set| set.name() == name).ok_or_else(|| {
        let names: Vec<&str> = here.iter().map(|set| set.name()).collect();
        Failure::call(format!("this machine computes in {}, not in `{name}`", names.join(", ")))
    })
}

fn text(report: &Report) -> String {
    let Report { name, trial, numeric_class, instructions, .. } = report;
    let shards = text::counted(u64::try_from(report.shards).unwrap_or(u64::MAX), "shard");
    let class = numeric_class.short();
    let first =
        format!("trial {trial} of `{name}`: {shards}, numeric class {class} ({instructions})");
    let epochs =
        report.epochs.iter().map(|of| format!("epoch {}  SHA-256 {}", of.epoch.0 + 1, of.sha256));
    std::iter::once(first).chain(epochs).collect::<Vec<_>>().join("\n")
}
