//! When the plans of jobs are due.

use super::scheduler::Scheduler;
use sojourn_protocol::{
    ids::JobId,
    time::{Millis, UnixMillis},
};
use sojourn_state::Job;

/// Plans of a job are requested at least this far apart.
pub const PLAN_INTERVAL: Millis = Millis::from_secs(1);

impl Scheduler<'_> {
    /// When the next plan is due that somebody could follow.
    pub fn next_plan(&self) -> Option<UnixMillis> {
        let plans = self.planner.plans();
        let due = plans.filter_map(|(job, plan)| Some((job, plan.due_at(PLAN_INTERVAL)?)));
        due.filter(|(job, _)| self.can_be_planned(*job)).map(|(_, at)| at).min()
    }

    /// Could somebody follow a plan of this job?
    pub fn can_be_planned(&self, job: JobId) -> bool {
        let open = self.state.jobs.get(&job).is_some_and(Job::is_open);
        open && self.hosts.fleet().capacity() > 0
    }
}
