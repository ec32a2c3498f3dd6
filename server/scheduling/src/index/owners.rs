//! The jobs of each issued token, with the bytes that the store keeps because of them: kept up to date with each event, so that a
//! quota is checked without a look at all jobs.

use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::{JobId, TokenId},
};
use sojourn_state::{Job, State};
use std::collections::{BTreeMap, BTreeSet};

/// The jobs of issued tokens. Jobs of the server's own token, and of nobody, aren't in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Owners {
    by_token: BTreeMap<TokenId, OwnerUse>,
    by_job: BTreeMap<JobId, JobUse>,
}

/// The resources that the jobs of one token take.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct OwnerUse {
    /// Jobs that haven't ended.
    running: BTreeSet<JobId>,
    /// The blobs of its jobs' data and of the models that they start from: of how many jobs each is, and its bytes.
    data: BTreeMap<Digest, (u32, u64)>,
    /// Bytes of `data`, each blob once.
    data_bytes: u64,
    /// Bytes of the checkpoints that are kept because of its jobs.
    checkpoints: u64,
}

/// The resources that one job takes, as they were counted.
#[derive(Debug, Clone, PartialEq, Eq)]
struct JobUse {
    token: TokenId,
    /// Each blob once.
    data: BTreeMap<Digest, u64>,
    checkpoints: u64,
    thinned: bool,
}

impl OwnerUse {
    fn add(&mut self, blobs: &BTreeMap<Digest, u64>) {
        for (blob, bytes) in blobs {
            let (jobs, _) = self.data.entry(*blob).or_insert((0, *bytes));
            if *jobs == 0 {
                self.data_bytes = self.data_bytes.saturating_add(*bytes);
            }
            *jobs = jobs.saturating_add(1);
        }
    }

    fn remove(&mut self, blobs: &BTreeMap<Digest, u64>) {
        for blob in blobs.keys() {
            let Some((jobs, bytes)) = self.data.get_mut(blob) else { continue };
            *jobs = jobs.saturating_sub(1);
            if *jobs == 0 {
                self.data_bytes = self.data_bytes.saturating_sub(*bytes);
                self.data.remove(blob);
            }
        }
    }

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Owners {
    /// The jobs of a state, counted anew.
    pub fn of(state: &State) -> Self {
        let mut owners = Self::default();
        for (id, job) in &state.jobs {
            owners.job_changed(*id, Some(job));
        }
        owners
    }

    /// The jobs of a token that haven't ended.
    pub fn running(&self, token: TokenId) -> impl ExactSizeIterator<Item = JobId> + '_ {
        static NONE: BTreeSet<JobId> = BTreeSet::new();
        self.by_token.get(&token).map_or(&NONE, |owner| &owner.running).iter().copied()
    }

    /// Bytes that the store keeps because of a token's jobs: data that several of them have counts once.
    pub fn bytes(&self, token: TokenId) -> u64 {
        let owner = self.by_token.get(&token);
        owner.map_or(0, |owner| owner.data_bytes.saturating_add(owner.checkpoints))
    }

    /// Bytes of those of these blobs that no job of the token has yet.
    pub fn bytes_to_add(&self, token: TokenId, blobs: impl Iterator<Item = BlobRef>) -> u64 {
        let known = self.by_token.get(&token).map(|owner| &owner.data);
        let new = blobs.filter(|blob| !known.is_some_and(|known| known.contains_key(&blob.sha256)));
        let new: BTreeMap<Digest, u64> = new.map(|blob| (blob.sha256, blob.bytes)).collect();
        new.into_values().fold(0, u64::saturating_add)
    }

    /// Something of the job has changed; or it isn't there any more.
    pub fn job_changed(&mut self, id: JobId, job: Option<&Job>) {
        let owned = job.and_then(|job| Some((job, job.owner?.token()?)));
        let Some((job, token)) = owned else {
            self.forget(id);
            return;
        };
        let owner = self.by_token.entry(token).or_default();
        if job.is_running() {
            owner.running.insert(id);
        } else {
            owner.running.remove(&id);
        }
        let checkpoints = job.checkpoint_bytes();
        let before = self.by_job.get_mut(&id).filter(|known| known.thinned == job.thinned);
        if let Some(known) = before {
            owner.checkpoints =
                owner.checkpoints.saturating_sub(known.checkpoints).saturating_add(checkpoints);
            known.checkpoints = checkpoints;
            return;
        }
        if let Some(known) = self.by_job.remove(&id) {
            owner.remove(&known.data);
            owner.checkpoints = owner.checkpoints.saturating_sub(known.checkpoints);
        }
        let data: BTreeMap<Digest, u64> =
            job.blobs().map(|blob| (blob.sha256, blob.bytes)).collect();
        owner.add(&data);
        owner.checkpoints = owner.checkpoints.saturating_add(checkpoints);
        self.by_job.insert(id, JobUse { token, data, checkpoints, thinned: job.thinned });
    }

    fn forget(&mut self, id: JobId) {
        let Some(known) = self.by_job.remove(&id) else { return };
        let Some(owner) = self.by_token.get_mut(&known.token) else { return };
        owner.remove(&known.data);
        owner.checkpoints = owner.checkpoints.saturating_sub(known.checkpoints);
        owner.running.remove(&id);
        if owner.is_empty() {
            self.by_token.remove(&known.token);
        }
    }
}
