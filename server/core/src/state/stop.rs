//! How trials end before they have trained all their epochs: at their target, or when their job's wall time is
//! over.

use super::{FoldFault, Job, State, Trial, TrialEnd};
use serde::{Deserialize, Serialize};
use sojourn_protocol::{
    ids::{Epoch, JobId, LeaseId, TrialId},
    spec::SearchSpec,
    time::{Millis, UnixMillis},
};

/// Why a trial finished before its last epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Stopped {
    /// After this epoch it was as good as the search's target.
    Target {
        /// The epoch.
        epoch: Epoch,
    },
    /// Its job's wall time was over.
    WallTime,
}

impl Trial {
    /// Ends it as finished. The caller ends its live leases.
    fn stop(&mut self, why: Stopped) {
        self.end_as(TrialEnd::Finished);
        self.stopped = Some(why);
    }

    /// Ends it, with all its open units.
    pub(super) fn end_as(&mut self, end: TrialEnd) {
        self.end = Some(end);
        self.evaluations.clear();
        self.failures.clear();
        self.merging = None;
        self.verification = None;
    }

    /// Ends it where an epoch's value is as good as the target.
    pub(super) fn stop_at_target(&mut self, search: &SearchSpec, epoch: Epoch, value: f64) {
        if search.reaches_target(value) {
            self.stop(Stopped::Target { epoch });
        }
    }

    /// Why it finished early, as a text for views.
    #[must_use]
    pub fn stopped_because(&self, search: &SearchSpec) -> Option<String> {
        Some(match self.stopped? {
            Stopped::Target { epoch } => {
                let target = search.target.unwrap_or_default();
                format!("reached {target} after epoch {}", epoch.0 + 1)
            }
            Stopped::WallTime => format!("stopped after {}", search.wall_time.unwrap_or_default()),
        })
    }
}

impl Job {
    /// Adds a pause that began then and ends now.
    pub(super) fn was_paused_since(&mut self, since: UnixMillis, at: UnixMillis) {
        self.paused_for = Millis(self.paused_for.0.saturating_add((at - since).0));
    }

    /// Is its wall time over? Pauses don't count.
    #[must_use]
    pub fn is_time_up(&self, now: UnixMillis) -> bool {
        let until = self.end.map(|(_, at)| at).or(self.paused_at).unwrap_or(now);
        self.wall().is_some_and(|wall| wall <= until)
    }

    /// When its wall time will be over, if it runs until then.
    #[must_use]
    pub fn time_up_at(&self) -> Option<UnixMillis> {
        self.wall().filter(|_| self.is_open() && !self.search_ended())
    }

    fn wall(&self) -> Option<UnixMillis> {
        Some(self.submitted_at + self.spec.search.wall_time? + self.paused_for)
    }
}

impl State {
    /// The job of an evaluation that has ended its trial early: other units of the trial are over too.
    pub(super) fn stopped_by(&self, evaluation: LeaseId) -> Option<JobId> {
        let unit = self.past.get(&evaluation)?.lease.unit;
        let trial = self.trial(unit.job(), unit.trial())?;
        trial.stopped.map(|_| unit.job())
    }

    /// A job's wall time is over: trials of which an epoch has been evaluated have finished, the others failed.
    pub(super) fn stop(&mut self, job: JobId, at: UnixMillis) -> Result<(), FoldFault> {
        let known = self.known_job(job)?;
        let length = known.spec.search.wall_time.unwrap_or_default();
        let running = known.trials.iter().filter(|trial| trial.is_running());
        let running: Vec<(TrialId, bool)> =
            running.map(|trial| (trial.id, trial.curve.is_empty())).collect();
        for (trial, is_new) in running {
            if is_new {
                let error = format!("stopped after {length}, before an epoch was evaluated");
                self.end_trial(job, trial, TrialEnd::Failed(error), at)?;
            } else {
                self.change_trial(job, trial, at, |trial| trial.stop(Stopped::WallTime))?;
            }
        }
        self.known_job_mut(job)?.recount_load();
        self.settle(job, at)
    }
}
