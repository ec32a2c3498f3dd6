//! Submission of a job that was checked and prepared.

use super::JobHandler;
use crate::{
    quotas::Wanted,
    reply::{Reply, conflict},
    submission::PreparedSubmission,
};
use sojourn_protocol::{
    api::{MAX_NONCE_CHARS, SubmitAnswer, Submitted},
    digest::Digest,
    ids::TokenId,
};
use sojourn_state::{By, Event, Job, JobEnd};

impl JobHandler<'_> {
    /// Submits a job whose blobs are published. The same job again is the one that is there, unless `again` is set or it
    /// failed. `nonce` names the call: repeated, it has no other effect. Users with issued tokens get jobs of their own: a job that
    /// another owner has submitted isn't the same one.
    pub(crate) fn submit(
        &mut self,
        prepared: PreparedSubmission,
        again: bool,
        nonce: Option<String>,
        by: Option<By>,
    ) -> Reply<SubmitAnswer> {
        let PreparedSubmission { job: mut new, trials, earlier } = prepared;
        let token = by.and_then(By::token);
        let (all, key) = (new.key, owned_key(new.key, token));
        new.key = key;
        let nonce = nonce.map(|nonce| nonce.chars().take(MAX_NONCE_CHARS).collect::<String>());
        let state = self.state();
        let same_call = nonce.as_ref().and_then(|nonce| state.job_nonces.get(nonce));
        let keys = [key, all].into_iter().chain(earlier);
        let mut known = keys.filter_map(|key| state.jobs.get(state.job_keys.get(&key)?));
        let is_of = |job: &Job| job.owner.and_then(By::token) == token || job.owner.is_none();
        let existing = known.find(|job| is_of(job) && is_of_use(job));
        let existing = existing.filter(|_| !again).map(|job| job.id);
        if let Some(job) = same_call.copied().or(existing) {
            return Ok(SubmitAnswer { job, trials, submitted: Submitted::Existing });
        }
        let mut blobs = new.data.blobs().chain(new.spec.blobs());
        if let Some(missing) = blobs.find(|blob| !state.blobs.is_published(blob)) {
            let message = format!("blob {} of the job isn't here: upload it first", missing.sha256);
            return conflict(message);
        }
        drop(blobs);
        let quotas = self.results.ledger.quotas();
        let bytes = quotas.bytes_to_add(by, new.data.blobs().chain(new.spec.blobs()));
        quotas.admit(by, Wanted { jobs: 1, trials, bytes })?;
        let job = state.next_job();
        let (spec, data) = (Box::new(new.spec.clone()), Box::new(new.data.clone()));
        let event = Event::JobSubmitted { job, spec, data, key, nonce, at_end: new.at_end, by };
        let ledger = &mut self.results.ledger;
        ledger.record_submitted(event, new)?;
        ledger.planner.keep_slot_shares(ledger.state);
        ledger.planner.enter_owner(ledger.state, job);
        Ok(SubmitAnswer { job, trials, submitted: Submitted::New })
    }
}

/// The digest by which a job with this key is known again among those of one issued token; the key itself among all others.
fn owned_key(key: Digest, token: Option<TokenId>) -> Digest {
    token.map_or(key, |token| Digest::of(format!("{key} {token}").as_bytes()))
}

/// A job that failed or was cancelled doesn't stand in the way of the same job again.
fn is_of_use(job: &Job) -> bool {
    !matches!(job.end, Some((JobEnd::Failed | JobEnd::Cancelled, _)))
}
