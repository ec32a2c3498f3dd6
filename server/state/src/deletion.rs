//! Jobs that were deleted or thinned: what the state loses, and which blobs the store has no use for then.

use super::{FoldFault, Job, PastState, State, StoredCheckpoints};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    error::{ApiError, ErrorKind},
    ids::{JobId, LeaseId},
    time::UnixMillis,
};
use std::collections::BTreeMap;

impl Job {
    /// Each reference to a blob that the state counts for it.
    pub(super) fn references(&self) -> impl Iterator<Item = BlobRef> + '_ {
        let trials = self.trials.iter().flat_map(super::Trial::blobs);
        self.blobs().chain(trials).chain(self.extras.iter().map(|extra| extra.checkpoint))
    }

    /// Refuses what needs the data and the checkpoints of a job that was thinned.
    pub fn check_whole(&self) -> Result<(), ApiError> {
        if !self.thinned {
            return Ok(());
        }
        let message = format!(
            "job {} is thinned: the server keeps only its figures and its best model (`--keep-jobs`); `sojourn submit --again` runs it anew",
            self.id
        );
        Err(ApiError::new(ErrorKind::Conflict, message))
    }

    /// Gives its data up, and all checkpoints but that of the best epoch of the best trial.
    fn thin(&mut self) {
        let best = self.best().map(|(trial, _)| trial);
        self.thinned = true;
        for trial in &mut self.trials {
            trial.kept.clear();
            trial.unevaluated.clear();
            trial.stored = match best == Some(trial.id) {
                true => StoredCheckpoints::Best,
                false => StoredCheckpoints::Nothing,
            };
        }
        self.kept = self.count_kept();
    }
}

impl State {
    /// The id of the next job. One that was deleted doesn't give its id to another.
    #[must_use]
    pub fn next_job(&self) -> JobId {
        let last = self.jobs.keys().next_back().copied().unwrap_or_default();
        last.max(self.last_deleted).next()
    }

    /// Was a job of this id there, and is no more?
    #[must_use]
    pub fn is_deleted(&self, job: JobId) -> bool {
        job > JobId(0) && job < self.next_job() && !self.jobs.contains_key(&job)
    }

    /// Has a job ended, with all its leases, results and evaluations?
    pub fn is_at_rest(&self, job: &Job) -> bool {
        let waits = |state: &PastState| matches!(state, PastState::Acknowledged(_));
        let mut past = self.past.values().filter(|past| past.lease.unit.job() == job.id);
        !job.is_running()
            && job.extras.is_empty()
            && job.counters.leases_live == 0
            && !past.any(|past| waits(&past.state))
    }

    /// The blobs that only these jobs refer to, with their bytes.
    pub fn blobs_of_only(&self, jobs: &[&Job]) -> BTreeMap<Digest, u64> {
        let mut counts: BTreeMap<Digest, (u32, u64)> = BTreeMap::new();
        for blob in jobs.iter().flat_map(|job| job.references()) {
            let (count, bytes) = counts.entry(blob.sha256).or_default();
            (*count, *bytes) = (count.saturating_add(1), blob.bytes);
        }
        counts.retain(|blob, (count, _)| self.blobs.references(blob) == *count);
        counts.into_iter().map(|(blob, (_, bytes))| (blob, bytes)).collect()
    }

    /// Has a job that is at rest give up all blobs but those of its best model.
    pub(super) fn job_thinned(&mut self, job: JobId, at: UnixMillis) -> Result<(), FoldFault> {
        let known = self.known_job(job)?;
        if !self.is_at_rest(known) {
            return Err(FoldFault::JobNeeded(job));
        }
        let before: Vec<Digest> = known.references().map(|blob| blob.sha256).collect();
        before.iter().try_for_each(|blob| self.blobs.known(blob))?;
        let known = self.known_job_mut(job)?;
        known.thin();
        let after: Vec<Digest> = known.references().map(|blob| blob.sha256).collect();
        after.into_iter().try_for_each(|blob| self.blobs.retain(blob))?;
        before.into_iter().try_for_each(|blob| self.blobs.release(blob, at))
    }

    /// Loses a job that is at rest, and its references to blobs. Its leases of before are forgotten with it.
    pub(super) fn job_deleted(&mut self, job: JobId, at: UnixMillis) -> Result<(), FoldFault> {
        let known = self.known_job(job)?;
        if !self.is_at_rest(known) {
            return Err(FoldFault::JobNeeded(job));
        }
        let references: Vec<Digest> = known.references().map(|blob| blob.sha256).collect();
        references.iter().try_for_each(|blob| self.blobs.known(blob))?;
        references.into_iter().try_for_each(|blob| self.blobs.release(blob, at))?;
        self.jobs.remove(&job);
        self.job_keys.retain(|_, of| *of != job);
        self.job_nonces.retain(|_, of| *of != job);
        let leases = self.past.extract_if(.., |_, past| past.lease.unit.job() == job);
        let leases: Vec<(UnixMillis, LeaseId)> =
            leases.map(|(lease, past)| (past.forget_at, lease)).collect();
        for place in leases {
            self.past_order.remove(&place);
        }
        self.last_deleted = self.last_deleted.max(job);
        Ok(())
    }
}
