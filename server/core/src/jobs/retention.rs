//! Retention: how much of jobs that have ended a server keeps, and which jobs lose what.

use super::JobHandler;
use crate::fault::CoreFault;
use sojourn_protocol::{
    digest::Digest,
    ids::JobId,
    quantity::to_usize,
    time::{Millis, UnixMillis},
};
use sojourn_scheduling::config::{BeyondRetention, Retention};
use sojourn_state::{Event, Job, State};
use std::{cmp::Reverse, collections::BTreeSet};

/// Jobs that lose something in one step, so that a step stays short.
const MAX_JOBS_A_STEP: usize = 16;
/// How often jobs that have ended are looked at.
const RETENTION_INTERVAL: Millis = Millis::from_secs(60);

/// Jobs that aren't kept as they are, the one that ended first first. Those that wait for something are left for later.
fn expired(retention: Retention, state: &State, now: UnixMillis) -> Vec<JobId> {
    let concerns = |job: &&Job| retention.beyond == BeyondRetention::Delete || !job.thinned;
    let ended = state.jobs.values().filter(concerns);
    let mut ended: Vec<(UnixMillis, &Job)> =
        ended.filter_map(|job| job.end.map(|(_, at)| (at, job))).collect();
    ended.sort_by_key(|(at, job)| Reverse((*at, job.id)));
    let (mut bytes, mut counted): (u64, BTreeSet<Digest>) = (0, BTreeSet::new());
    let mut is_kept = |n: usize, at: UnixMillis, job: &Job| {
        if retention.bytes.is_some() {
            bytes = bytes.saturating_add(job.disk_beside(&mut counted));
        }
        retention.jobs.is_none_or(|most| n < to_usize(most))
            && retention.age.is_none_or(|age| now < at + age)
            && retention.bytes.is_none_or(|most| bytes <= most)
    };
    let kept = ended.iter().enumerate().take_while(|(n, (at, job))| is_kept(*n, *at, job)).count();
    let expired = ended.iter().skip(kept).rev().filter(|(_, job)| state.is_at_rest(job));
    // One more says that more are left.
    expired.take(MAX_JOBS_A_STEP + 1).map(|(_, job)| job.id).collect()
}

impl JobHandler<'_> {
    /// Thins or deletes jobs that the operator doesn't keep, a few at a time. Says when to look again.
    pub(crate) fn retain(&mut self) -> Result<UnixMillis, CoreFault> {
        let ledger = &self.results.ledger;
        let (now, retention) = (ledger.clock.now(), ledger.config.retention);
        let expired = expired(retention, ledger.state, now);
        for job in expired.iter().copied().take(MAX_JOBS_A_STEP) {
            self.record(match retention.beyond {
                BeyondRetention::Thin => Event::JobThinned { job },
                BeyondRetention::Delete => Event::JobDeleted { job },
            })?;
        }
        Ok(if expired.len() > MAX_JOBS_A_STEP { now } else { now + RETENTION_INTERVAL })
    }
}
