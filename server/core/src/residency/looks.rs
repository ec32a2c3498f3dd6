//! Findings of earlier looks at trials, and the times at which the next are due.
//!
//! Soft: after a restart looks begin anew, with the categories and moves that are journalled.

use sojourn_protocol::{
    ids::{JobId, TrialId},
    quantity::Micros,
    time::{Millis, UnixMillis},
};
use sojourn_workgen::residency::Convergence;
use std::collections::{BTreeMap, BTreeSet};

/// The checks of the trials of all jobs whose trials may move.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ConvergenceChecks {
    jobs: BTreeMap<JobId, JobChecks>,
}

/// The checks of the trials of one job.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct JobChecks {
    /// When they are due next.
    pub(super) due: UnixMillis,
    /// How many trials stayed somewhere when it was decided last who moves.
    pub(super) residents: u32,
    /// By trial.
    pub(super) trials: BTreeMap<TrialId, Convergence>,
}

impl ConvergenceChecks {
    /// When the first are due.
    pub(crate) fn next(&self) -> Option<UnixMillis> {
        self.jobs.values().map(|job| job.due).min()
    }

    /// Is it the time to look at a job's trials, or has one of them ended? `residents`: how many stay somewhere.
    pub(super) fn is_due(&self, job: JobId, residents: u32, now: UnixMillis) -> bool {
        self.jobs.get(&job).is_none_or(|of| of.due <= now || of.residents != residents)
    }

    /// Forgets jobs that have ended.
    pub(super) fn keep(&mut self, jobs: &BTreeSet<JobId>) {
        if self.jobs.len() > jobs.len() || !self.jobs.keys().all(|job| jobs.contains(job)) {
            self.jobs.retain(|job, _| jobs.contains(job));
        }
    }

    /// The looks of a job. The first are due an interval after it was heard of.
    pub(super) fn of(&mut self, job: JobId, now: UnixMillis, interval: Micros) -> &mut JobChecks {
        let new = || JobChecks { due: now + interval_of(interval), ..JobChecks::default() };
        self.jobs.entry(job).or_insert_with(new)
    }
}

/// As the clock counts it.
pub(super) const fn interval_of(interval: Micros) -> Millis {
    Millis(interval.0.div_ceil(1000))
}
