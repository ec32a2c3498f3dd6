//! Searches end before their last epoch: trials at their target, jobs when their wall time is over.

use super::failing::cleanup_of;
use crate::{core::Core, event::Event, state::Job};
use sojourn_protocol::ids::{JobId, LeaseId, TrialId};

impl Core {
    /// Ends the searches whose wall time is over.
    pub(crate) fn stop_jobs(&mut self) {
        if self.soft.time_up.is_none_or(|at| at > self.now) {
            return;
        }
        let over = |job: &&Job| job.time_up_at().is_some_and(|at| at <= self.now);
        let over: Vec<JobId> = self.state.jobs.values().filter(over).map(|job| job.id).collect();
        for job in over {
            let trials = self.state.jobs.get(&job).map(|job| &job.trials);
            let running = trials.into_iter().flatten().filter(|trial| trial.is_running());
            let under_way: Vec<_> = running.map(cleanup_of).collect();
            self.emit(Event::JobTimeUp { job });
            for under_way in under_way {
                self.clean_up(under_way);
            }
            self.soft.work_changed = true;
        }
        self.look_at_wall_times();
    }

    /// After an event that may move the end of a job's wall time, or bring one.
    pub(crate) fn renew_wall_times(&mut self, event: &Event) {
        let may_move = matches!(
            event,
            Event::JobSubmitted { .. }
                | Event::JobPaused { .. }
                | Event::JobResumed { .. }
                | Event::JobExtended { .. }
        );
        if may_move {
            self.look_at_wall_times();
        }
    }

    /// Finds out when the next job's wall time is over. It may have ended by then.
    pub(crate) fn look_at_wall_times(&mut self) {
        self.soft.time_up = self.state.jobs.values().filter_map(Job::time_up_at).min();
    }

    /// What is under way for a trial: to be ended if the trial does.
    pub(crate) fn under_way(&self, job: JobId, trial: TrialId) -> (Vec<LeaseId>, Vec<LeaseId>) {
        self.state.trial(job, trial).map(cleanup_of).unwrap_or_default()
    }

    /// Ends what was under way for a trial, where an evaluation has ended it.
    pub(crate) fn end_if_stopped(
        &mut self,
        job: JobId,
        trial: TrialId,
        under_way: (Vec<LeaseId>, Vec<LeaseId>),
    ) {
        if self.state.trial(job, trial).is_some_and(|trial| trial.stopped.is_some()) {
            // Its hops are planned beside others'.
            self.plan_outdated(job);
            self.clean_up(under_way);
        }
    }
}
