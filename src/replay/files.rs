//! A replay's files: the data until its end, each version until the last that is made from it.

use crate::{
    api_client::ApiClient,
    cli::terminal::{causes::model_failure, exit::Failure},
};
use sojourn_model::{ModelError, base_checkpoint};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::Version,
    manifest::Scaling,
    quantity::to_u64,
    unit::{Base, shard_index},
    view::{HopRecord, TrialHistory},
};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// A checkpoint that can't be read or built.
struct Unreadable(Failure);

impl From<ModelError> for Unreadable {
    fn from(error: ModelError) -> Self {
        Self(model_failure(error))
    }
}

/// A replay's files in a folder of its own.
pub(super) struct Files<'a> {
    history: &'a TrialHistory,
    folder: PathBuf,
    known: BTreeMap<Digest, PathBuf>,
    /// The versions that are there.
    versions: BTreeMap<Version, BlobRef>,
    /// The last version that is made from each.
    needed: BTreeMap<Version, Version>,
}

impl<'a> Files<'a> {
    /// Fetches all data that the history's hops need, but for what is known already: other data, and the checkpoint from which a
    /// clone goes on.
    pub(super) async fn fetch(
        client: &ApiClient,
        history: &'a TrialHistory,
        folder: &Path,
        known: BTreeMap<Digest, PathBuf>,
    ) -> Result<Self, Failure> {
        let visited =
            history.hops.iter().flat_map(HopRecord::shards).filter_map(|shard| {
                history.data.train.get(shard_index(shard)).map(|shard| shard.blob)
            });
        let scaling = match history.context.scaling {
            Scaling::Standard(blob) => Some(blob),
            _ => None,
        };
        let graph = history.context.config.model.exported().map(|graph| graph.file);
        let mut files = Self::new(history, folder, known);
        for blob in visited.chain(scaling).chain(history.initial_weights).chain(graph) {
            if files.known.contains_key(&blob.sha256) {
                continue;
            }
            let path = folder.join(blob.sha256.to_string());
            let bytes = client.download(blob, &mut |_| {}).await?;
            fs::write(&path, bytes).map_err(|error| io_failure(&path, &error))?;
            files.known.insert(blob.sha256, path);
        }
        Ok(files)
    }

    /// The files of a replay in a folder that is empty, and known ones.
    pub(super) fn new(
        history: &'a TrialHistory,
        folder: &Path,
        known: BTreeMap<Digest, PathBuf>,
    ) -> Self {
        let mut needed = BTreeMap::new();
        let mut before = Version(0);
        for record in &history.hops {
            needed.insert(before, record.version);
            needed.extend(record.merged.map(|merged| (merged.base, record.version)));
            before = record.version;
        }
        let versions = BTreeMap::new();
        Self { history, folder: folder.to_owned(), known, versions, needed }
    }

    /// The files that a trainer may read.
    pub(super) const fn known(&self) -> &BTreeMap<Digest, PathBuf> {
        &self.known
    }

    /// The same, for the trial that goes on from the last version.
    pub(super) fn into_known(self) -> BTreeMap<Digest, PathBuf> {
        self.known
    }

    /// Where a trainer is to write what it makes for a version.
    pub(super) fn output(&self, version: Version) -> PathBuf {
        self.folder.join(format!("trained-{version}"))
    }

    /// A version as a base, for whoever makes a record's version from it.
    pub(super) fn version(&self, version: Version, of: &HopRecord) -> Result<Base, Failure> {
        if version == Version(0) {
            return Ok(self.history.first_base());
        }
        let known = self.versions.get(&version);
        known.map(|blob| Base::Checkpoint { version, blob: *blob }).ok_or_else(|| {
            let made = of.version;
            Failure::work(format!(
                "version {made} was trained from version {version}, which isn't before it"
            ))
        })
    }

    /// The checkpoint of a base.
    pub(super) fn checkpoint(&self, base: Base) -> Result<Vec<u8>, Failure> {
        let read = |blob: BlobRef| {
            let path = self.known.get(&blob.sha256);
            let missing = || Failure::work(format!("blob `{}` isn't kept", blob.sha256));
            let path = path.ok_or_else(missing).map_err(Unreadable)?;
            fs::read(path).map_err(|error| Unreadable(io_failure(path, &error)))
        };
        base_checkpoint(&self.history.context, base, read).map_err(|Unreadable(failure)| failure)
    }

    /// Reads a file and removes it.
    pub(super) fn take(&self, path: &Path) -> Result<Vec<u8>, Failure> {
        let bytes = fs::read(path).map_err(|error| io_failure(path, &error))?;
        // Only space is lost where it can't be removed.
        let _ = fs::remove_file(path);
        Ok(bytes)
    }

    /// Keeps the checkpoint of a version that was made in memory.
    pub(super) fn write(&mut self, version: Version, bytes: &[u8]) -> Result<BlobRef, Failure> {
        let path = self.folder.join(format!("merged-{version}"));
        fs::write(&path, bytes).map_err(|error| io_failure(&path, &error))?;
        let length = to_u64(bytes.len());
        let blob = BlobRef { sha256: Digest::of(bytes), bytes: length };
        self.keep(version, blob, path);
        Ok(blob)
    }

    /// Keeps a version's checkpoint that lies there, and no others than are still needed.
    pub(super) fn keep(&mut self, version: Version, made: BlobRef, path: PathBuf) {
        self.versions.insert(version, made);
        self.known.insert(made.sha256, path);
        let done = |of: &Version| self.needed.get(of).is_none_or(|last| *last <= version);
        let done: Vec<BlobRef> = self
            .versions
            .extract_if(.., |of, _| *of < version && done(of))
            .map(|(_, b)| b)
            .collect();
        for blob in done {
            let is_kept = self.versions.values().any(|kept| *kept == blob);
            if !is_kept && let Some(path) = self.known.remove(&blob.sha256) {
                // Only space is lost where it can't be removed.
                let _ = fs::remove_file(path);
            }
        }
    }
}

fn io_failure(path: &Path, error: &std::io::Error) -> Failure {
    Failure::work(format!("`{}`: {error}", path.display()))
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
