//! Submission of a job that was checked and prepared.

use super::JobHandler;
use crate::{
    event::Event,
    reply::{Refusal, Reply},
    state::{Job, JobEnd},
    submission::PreparedSubmission,
};
use sojourn_protocol::{
    api::{MAX_NONCE_CHARS, SubmitAnswer, Submitted},
    error::ErrorKind,
};

impl JobHandler<'_> {
    /// Submits a job whose blobs are published. The same job again is the one that is there, unless `again` is set or it
    /// failed. `nonce` names the call: repeated, it has no other effect.
    pub(crate) fn submit(
        &mut self,
        prepared: PreparedSubmission,
        again: bool,
        nonce: Option<String>,
    ) -> Reply<SubmitAnswer> {
        let PreparedSubmission { job: new, trials, before } = prepared;
        let key = new.key;
        let nonce = nonce.map(|nonce| nonce.chars().take(MAX_NONCE_CHARS).collect::<String>());
        let state = self.state();
        let same_call = nonce.as_ref().and_then(|nonce| state.job_nonces.get(nonce));
        let mut known = [key, before].into_iter().filter_map(|key| state.job_keys.get(&key));
        let existing = known.find_map(|job| state.jobs.get(job).filter(|job| is_of_use(job)));
        let existing = existing.filter(|_| !again).map(|job| job.id);
        if let Some(job) = same_call.copied().or(existing) {
            return Ok(SubmitAnswer { job, trials, submitted: Submitted::Existing });
        }
        let mut blobs = new.data.blobs().chain(new.spec.blobs());
        if let Some(missing) = blobs.find(|blob| !state.blobs.is_published(blob)) {
            let message = format!("blob {} of the job isn't here: upload it first", missing.sha256);
            return Err(Refusal::new(ErrorKind::Conflict, message));
        }
        drop(blobs);
        let job = state.next_job();
        let (spec, data) = (Box::new(new.spec.clone()), Box::new(new.data.clone()));
        let event = Event::JobSubmitted { job, spec, data, key, nonce, at_end: new.at_end };
        let ledger = &mut self.results.ledger;
        ledger.record_submitted(event, new)?;
        let jobs = &ledger.state.jobs;
        ledger.planner.keep_shares(|job| jobs.get(&job).is_some_and(Job::is_running));
        Ok(SubmitAnswer { job, trials, submitted: Submitted::New })
    }
}

/// A job that failed or was cancelled doesn't stand in the way of the same job again.
fn is_of_use(job: &Job) -> bool {
    !matches!(job.end, Some((JobEnd::Failed | JobEnd::Cancelled, _)))
}
