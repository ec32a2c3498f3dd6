//! Really trains what a simulation asks for: its data made into shards as `submit` does, its units done by one
//! trainer, one after the other, as a client's slot does them, its results merged as assimilators merge them.

use crate::cli::{
    lab::simulate::{
        lying::{self, Truth},
        skew,
    },
    submit::{sharding, workspace::Workspace},
    terminal::{causes::slot_failure, exit::Failure},
};
use sojourn_core::AssimilationUnit;
use sojourn_ingest::{IngestError, Ingested};
use sojourn_model::{CheckpointLayout, ModelError, base_checkpoint};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    error::error_chain,
    ids::{JobId, TrialId},
    manifest::DataManifest,
    quantity::to_u64,
    report::{FailureKind, Outcome},
    spec::{JobSpec, Visits},
    trainer::RunUnit,
    unit::{Base, Evaluation, Hop, Merge, TrialContext, Unit},
};
use sojourn_rules::{Arrival, MergeError, Merger, Update, check_canary, screen};
use sojourn_sim::{
    Corruption,
    fleet::{Merged, Trains},
};
use sojourn_slot::{Slot, SlotConfig, full_pace};
use sojourn_workgen::shards::ShardHost;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    future::pending,
    path::{Path, PathBuf},
};
use tokio::{runtime::Handle, task::block_in_place};

/// One trainer with its files.
pub(super) struct Training {
    /// The folder that the scenario's paths are relative to.
    folder: PathBuf,
    workspace: Workspace,
    slot: Slot,
    /// Shards by the jobs that they are of.
    ingested: BTreeMap<String, DataManifest>,
    data: BTreeMap<Digest, PathBuf>,
    /// Merged checkpoints, and the states of merge rules.
    checkpoints: BTreeMap<Digest, PathBuf>,
    /// Each trial's first and last result.
    results: BTreeMap<(JobId, TrialId), (BlobRef, BlobRef)>,
    /// Counts what was written.
    outputs: u64,
}

impl Training {
    pub(super) fn new(folder: &Path) -> Result<Self, Failure> {
        Ok(Self {
            folder: folder.to_owned(),
            workspace: Workspace::new()?,
            slot: Slot::new(SlotConfig::find().map_err(slot_failure)?),
            ingested: BTreeMap::new(),
            data: BTreeMap::new(),
            checkpoints: BTreeMap::new(),
            results: BTreeMap::new(),
            outputs: 0,
        })
    }

    /// A run has ended: nobody needs its checkpoints any more.
    pub(super) fn clear(&mut self) {
        self.results.clear();
        for path in std::mem::take(&mut self.checkpoints).into_values() {
            // Only space is lost until the workspace goes.
            let _ = fs::remove_file(path);
        }
    }

    fn path(&self, blob: &BlobRef) -> Result<&PathBuf, String> {
        let path = self.data.get(&blob.sha256).or_else(|| self.checkpoints.get(&blob.sha256));
        path.ok_or_else(|| format!("nobody has made the blob {}", blob.sha256))
    }

    fn read(&self, blob: BlobRef) -> Result<Vec<u8>, String> {
        let path = self.path(&blob)?;
        fs::read(path).map_err(|error| format!("`{}`: {error}", path.display()))
    }

    /// The checkpoint that a unit begins from.
    fn base(&self, context: &TrialContext, base: Base) -> Result<Vec<u8>, String> {
        let read = |blob| self.read(blob).map_err(Unreadable);
        base_checkpoint(context, base, read).map_err(|Unreadable(why)| why)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<BlobRef, String> {
        let path = self.next_output();
        fs::write(&path, bytes).map_err(|error| format!("`{}`: {error}", path.display()))?;
        let length = to_u64(bytes.len());
        let blob = BlobRef { sha256: Digest::of(bytes), bytes: length };
        self.checkpoints.insert(blob.sha256, path);
        Ok(blob)
    }

    fn loss(&mut self, evaluation: Evaluation) -> Result<f64, String> {
        match self.run(&Unit::Evaluate(evaluation), None)? {
            Outcome::Evaluated(evaluated) => Ok(evaluated.sums().mean_loss()),
            Outcome::Failed(failure) if failure.kind == FailureKind::NonFinite => Ok(f64::INFINITY),
            Outcome::Failed(failure) => Err(failure.message),
            Outcome::Trained(_) => Err("the trainer has trained instead".into()),
        }
    }

    /// The checkpoint that is reported instead of a hop's result.
    fn lied(&mut self, lie: Corruption, hop: &Hop, result: BlobRef) -> Result<BlobRef, String> {
        let of = (hop.job, hop.trial);
        let first = self.results.get(&of).map(|(first, _)| *first);
        // A corruption that changes nothing isn't one.
        let first = first.filter(|first| *first != result);
        let first = first.map(|first| self.read(first)).transpose()?;
        let mut others = self.results.iter().filter(|(other, _)| other.0 == of.0 && **other != of);
        let other = others.next().map(|(_, (_, last))| *last);
        let other = other.map(|other| self.read(other)).transpose()?;
        let truth = Truth {
            base: &self.base(&hop.context, hop.base)?,
            result: &self.read(result)?,
            first: first.as_deref(),
            other: other.as_deref(),
        };
        let corrupted = lying::corrupted(lie, &truth, hop.seed)?;
        self.write(&corrupted)
    }

    fn next_output(&mut self) -> PathBuf {
        self.outputs += 1;
        self.workspace.path().join(format!("checkpoint-{}", self.outputs))
    }
}

/// Why there is no checkpoint to begin from.
struct Unreadable(String);

impl From<ModelError> for Unreadable {
    fn from(error: ModelError) -> Self {
        Self(error_chain(&error))
    }
}

impl Trains for Training {
    fn ingest(
        &mut self,
        file: &str,
        spec: &JobSpec,
        hosts: &[ShardHost],
        skewed: Option<f64>,
    ) -> Result<DataManifest, String> {
        let same = serde_json::to_string(&(file, spec.seed, &spec.data, skewed));
        let same = format!("{} {hosts:?}", same.map_err(|error| error.to_string())?);
        if let Some(known) = self.ingested.get(&same) {
            return Ok(known.clone());
        }
        let path = self.folder.join(file);
        let folder = path.parent().unwrap_or(Path::new(""));
        let out = self.workspace.path().join(format!("data-{}", self.ingested.len()));
        fs::create_dir_all(&out).map_err(|error| format!("`{}`: {error}", out.display()))?;
        let made = block_in_place(|| cut(spec, folder, &out, hosts));
        let made = made.and_then(|made| match skewed {
            Some(skewed) => skew::apply(made, &out, skewed, spec.seed),
            None => Ok(made),
        });
        let made = made.map_err(|error| format!("`{file}`: {error}"))?;
        self.data.extend(made.files);
        self.ingested.insert(same, made.manifest.clone());
        Ok(made.manifest)
    }

    fn run(&mut self, unit: &Unit, until: Option<u32>) -> Result<Outcome, String> {
        let mut files = BTreeMap::new();
        for blob in unit.blobs() {
            files.insert(blob.sha256, self.path(&blob)?.clone());
        }
        let output = self.next_output();
        let request = RunUnit {
            unit: unit.clone(),
            files,
            pending: BTreeSet::new(),
            output: output.clone(),
            until,
            keep_every: None,
        };
        let slot = &mut self.slot;
        let done = block_in_place(|| {
            Handle::current().block_on(slot.run(request, |_| {}, pending(), full_pace()))
        });
        let outcome = done.map_err(|error| error_chain(&error))?;
        if let (Outcome::Trained(trained), Unit::Train(hop)) = (&outcome, unit) {
            self.checkpoints.insert(trained.checkpoint.sha256, output);
            let result = trained.checkpoint;
            let of_trial = self.results.entry((hop.job, hop.trial)).or_insert((result, result));
            of_trial.1 = result;
        }
        Ok(outcome)
    }

    fn lie(&mut self, lie: Corruption, unit: &Unit, outcome: Outcome) -> Result<Outcome, String> {
        match (unit, outcome) {
            (Unit::Train(hop), Outcome::Trained(mut trained)) => {
                trained.checkpoint = self.lied(lie, hop, trained.checkpoint)?;
                Ok(Outcome::Trained(trained))
            }
            (_, outcome) => Ok(outcome),
        }
    }

    fn screen(&mut self, unit: &AssimilationUnit) -> Result<Option<String>, String> {
        let layout =
            CheckpointLayout::of(&unit.hop.context).map_err(|error| error_chain(&error))?;
        let upload = self.read(unit.trained.checkpoint)?;
        let found = Digest::of(&upload);
        let screened = screen(&layout, &unit.hop, &unit.trained, found, &upload);
        if let Err(refusal) = screened {
            return Ok(Some(refusal.to_string()));
        }
        let Some(merge) = &unit.merge else { return Ok(None) };
        let Some(canary) = &merge.canary else { return Ok(None) };
        let current = match merge.current {
            Base::Checkpoint { blob, .. } => blob,
            first => {
                let bytes = self.base(&unit.hop.context, first)?;
                self.write(&bytes)?
            }
        };
        let of = |version, checkpoint| canary.evaluation(&unit.hop, version, checkpoint);
        let current = self.loss(of(merge.current.version(), current))?;
        let result = self.loss(of(unit.version, unit.trained.checkpoint))?;
        Ok(check_canary(canary.most, current, result).err().map(|refusal| refusal.to_string()))
    }

    fn merge(&mut self, unit: &AssimilationUnit, merge: &Merge) -> Result<Merged, String> {
        let context = &unit.hop.context;
        let layout = CheckpointLayout::of(context).map_err(|error| error_chain(&error))?;
        let merger = Merger::new(&merge.spec, layout).map_err(|error| error_chain(&error))?;
        let base = self.base(context, unit.hop.base)?;
        let current = self.base(context, merge.current)?;
        let returned = self.read(unit.trained.checkpoint)?;
        let state = merge.state.map(|state| self.read(state)).transpose()?;
        let update = Update {
            base: &base,
            current: &current,
            returned: &returned,
            state: state.as_deref(),
            version: merge.current.version(),
            arrival: Arrival::of(merge, unit.hop.start.epoch),
            position: merge.position,
        };
        let made = match merger.merge(&update) {
            Ok(merged) => merged.made,
            Err(error @ MergeError::Norm(_)) => return Ok(Merged::Refused(error.to_string())),
            Err(error) => return Err(error_chain(&error)),
        };
        Ok(Merged::Made {
            checkpoint: self.write(&made.checkpoint)?,
            state: self.write(&made.state)?,
        })
    }
}

/// Makes the shards that `submit` would make where a server has these hosts. Visits that nobody fixes are free in simulations.
fn cut(spec: &JobSpec, folder: &Path, out: &Path, hosts: &[ShardHost]) -> Result<Ingested, String> {
    let mut spec = spec.clone();
    spec.placement.visits.get_or_insert(Visits::Free);
    let spec = &spec;
    let trials = sojourn_workgen::trials(spec).map_err(|error| error_chain(&error))?;
    let bad = |error: IngestError| error_chain(&error);
    let data = sojourn_ingest::survey(spec, folder, out, &mut |_| {}).map_err(bad)?;
    let chosen = sharding::choose_for(spec, &trials, &data, hosts);
    let chosen = chosen.map_err(|error| error_chain(&error))?;
    data.ingest(&chosen.cut, out, &mut |_| {}).map_err(bad)
}
