//! Jobs that users delete, with what the store keeps because of them.

use super::JobHandler;
use crate::reply::Reply;
use sojourn_protocol::{
    api::{DeletedJob, DeletedJobs},
    digest::Digest,
    error::{ApiError, ErrorKind},
    ids::JobId,
    quantity::{SaturatingFrom as _, to_usize},
    view::BestView,
};
use sojourn_state::{Event, Job, State, Trial};
use std::collections::{BTreeMap, BTreeSet};

impl JobHandler<'_> {
    /// Deletes jobs that have ended, or says what that would lose. Either all of them go or none. One that was deleted before
    /// is passed over, so that the same request may come again; it is refused where that is only asked.
    pub(crate) fn delete(&mut self, jobs: &[JobId], preview: bool) -> Reply<DeletedJobs> {
        let state = self.state();
        let named: BTreeSet<JobId> = jobs.iter().copied().collect();
        let there = named.into_iter().filter(|job| preview || !state.is_deleted(*job));
        let known: Vec<&Job> =
            there.map(|job| state.find_job(job)).collect::<Result<_, ApiError>>()?;
        known.iter().try_for_each(|job| check_at_rest(state, job))?;
        let freed = state.blobs_of_only(&known);
        let deleted = known.iter().map(|job| deleted(job, &freed)).collect();
        let bytes_freed = freed.values().copied().fold(0, u64::saturating_add);
        let answer = DeletedJobs { jobs: deleted, bytes_freed };
        let known: Vec<JobId> = known.iter().map(|job| job.id).collect();
        for job in known.into_iter().filter(|_| !preview) {
            self.record(Event::JobDeleted { job })?;
        }
        Ok(answer)
    }
}

fn check_at_rest(state: &State, job: &Job) -> Result<(), ApiError> {
    if state.is_at_rest(job) {
        return Ok(());
    }
    let id = job.id;
    let message = match (job.is_running(), job.extras.is_empty()) {
        (true, _) => format!("job {id} hasn't ended: cancel it first"),
        (false, false) => format!("an evaluation of job {id} is open: wait for it, or cancel it"),
        (false, true) => format!("a result of job {id} is still taken in: try again in a minute"),
    };
    Err(ApiError::new(ErrorKind::Conflict, message))
}

/// The answer about a deleted job. `freed`: the blobs that go.
fn deleted(job: &Job, freed: &BTreeMap<Digest, u64>) -> DeletedJob {
    let best = job.best().map(|(trial, best)| BestView {
        unverified: job.trial(trial).map_or(0, |trial| job.unverified_of(trial)),
        trial,
        name: job.trials.get(to_usize(trial.0)).map(Trial::name).unwrap_or_default(),
        epoch: best.epoch,
        value: best.value,
        checkpoint: best.checkpoint,
    });
    DeletedJob {
        job: job.id,
        name: job.spec.name.clone(),
        trials: u32::saturating_from(job.trials.len()),
        disk_bytes: job.disk(),
        metric: job.spec.search.metric.name().into(),
        best_is_kept: best
            .as_ref()
            .is_some_and(|best| !freed.contains_key(&best.checkpoint.sha256)),
        best,
    }
}
