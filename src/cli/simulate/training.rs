//! Really trains what a simulation asks for: its data made into shards as `submit` does, its units done by one
//! trainer, one after the other, as a client's slot does them.

use crate::cli::{
    cutting,
    failure::{Failure, with_sources},
    workspace::Workspace,
};
use sojourn_ingest::{IngestError, Ingested};
use sojourn_protocol::{
    digest::Digest, manifest::DataManifest, report::Outcome, spec::JobSpec, trainer::RunUnit,
    unit::Unit,
};
use sojourn_sim::fleet::Trains;
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
    /// What the scenario's paths are relative to.
    folder: PathBuf,
    workspace: Workspace,
    slot: Slot,
    /// Shards by the jobs that they are of.
    ingested: BTreeMap<String, DataManifest>,
    data: BTreeMap<Digest, PathBuf>,
    checkpoints: BTreeMap<Digest, PathBuf>,
    /// Counts what was written.
    outputs: u64,
}

impl Training {
    pub(super) fn new(folder: &Path) -> Result<Self, Failure> {
        Ok(Self {
            folder: folder.to_owned(),
            workspace: Workspace::new()?,
            slot: Slot::new(SlotConfig::find()?),
            ingested: BTreeMap::new(),
            data: BTreeMap::new(),
            checkpoints: BTreeMap::new(),
            outputs: 0,
        })
    }

    /// A run has ended: nobody needs its checkpoints any more.
    pub(super) fn clear(&mut self) {
        for path in std::mem::take(&mut self.checkpoints).into_values() {
            // Only space is lost until the workspace goes.
            let _ = fs::remove_file(path);
        }
    }
}

impl Trains for Training {
    fn ingest(
        &mut self,
        file: &str,
        spec: &JobSpec,
        hosts: &[ShardHost],
    ) -> Result<DataManifest, String> {
        let same = serde_json::to_string(&(file, spec.seed, &spec.data));
        let same = format!("{} {hosts:?}", same.map_err(|error| error.to_string())?);
        if let Some(known) = self.ingested.get(&same) {
            return Ok(known.clone());
        }
        let path = self.folder.join(file);
        let folder = path.parent().unwrap_or(Path::new(""));
        let out = self.workspace.path().join(format!("data-{}", self.ingested.len()));
        fs::create_dir_all(&out).map_err(|error| format!("`{}`: {error}", out.display()))?;
        let made = block_in_place(|| cut(spec, folder, &out, hosts));
        let made = made.map_err(|error| format!("`{file}`: {error}"))?;
        self.data.extend(made.files);
        self.ingested.insert(same, made.manifest.clone());
        Ok(made.manifest)
    }

    fn run(&mut self, unit: &Unit, until: Option<u32>) -> Result<Outcome, String> {
        let mut files = BTreeMap::new();
        for blob in unit.blobs() {
            let path = self.data.get(&blob.sha256).or_else(|| self.checkpoints.get(&blob.sha256));
            let path = path.ok_or_else(|| format!("nobody has made the blob {}", blob.sha256))?;
            files.insert(blob.sha256, path.clone());
        }
        self.outputs += 1;
        let output = self.workspace.path().join(format!("checkpoint-{}", self.outputs));
        let request = RunUnit {
            unit: unit.clone(),
            files,
            coming: BTreeSet::new(),
            output: output.clone(),
            until,
            keep_every: None,
        };
        let slot = &mut self.slot;
        let done = block_in_place(|| {
            Handle::current().block_on(slot.run(request, |_| {}, pending(), full_pace()))
        });
        let outcome = done.map_err(|error| with_sources(&error))?;
        if let Outcome::Trained(trained) = &outcome {
            self.checkpoints.insert(trained.checkpoint.sha256, output);
        }
        Ok(outcome)
    }
}

/// Makes the shards that `submit` would make where a server has these hosts.
fn cut(spec: &JobSpec, folder: &Path, out: &Path, hosts: &[ShardHost]) -> Result<Ingested, String> {
    let trials = sojourn_workgen::trials(spec).map_err(|error| with_sources(&error))?;
    let bad = |error: IngestError| with_sources(&error);
    let data = sojourn_ingest::survey(spec, folder, out, &mut |_| {}).map_err(bad)?;
    let chosen = cutting::choose_for(spec, &trials, &data, hosts);
    let chosen = chosen.map_err(|error| with_sources(&error))?;
    data.ingest(&chosen.cut, out, &mut |_| {}).map_err(bad)
}
