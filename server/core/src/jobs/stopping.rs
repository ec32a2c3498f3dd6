//! Jobs whose wall time is over: first nothing more is trained, then the search ends with what is evaluated.

use super::JobHandler;
use crate::fault::CoreFault;
use sojourn_protocol::{
    ids::{JobId, LeaseId},
    money::MicroUsd,
    spec::SearchBudget,
    time::Millis,
};
use sojourn_state::{Event, Job, Trial, running_in_flight};

/// The least time in which what is trained is still evaluated: a host may have to fetch the validation data first.
const MIN_GRACE: Millis = Millis::from_secs(600);
/// Of a job's wall time it is at least this part: of a long job more is left to evaluate.
const GRACE_PART: u64 = 10;

impl JobHandler<'_> {
    /// Ends the training of jobs whose wall time is over, and the search of those that had time for evaluations besides.
    pub(crate) fn stop_overdue(&mut self) -> Result<(), CoreFault> {
        let now = self.results.ledger.clock.now();
        let over = |job: &&Job| job.time_up_at().is_some_and(|at| at <= now);
        let over: Vec<(JobId, bool)> =
            self.of_jobs(over).map(|job| (job.id, job.grace.is_some())).collect();
        for (job, had_grace) in over {
            if had_grace {
                self.end_search(job)?;
            } else {
                self.end_training(job, None)?;
            }
        }
        let ledger = &mut self.results.ledger;
        ledger.index.update_wall_time(ledger.state);
        Ok(())
    }

    /// Ends the search of jobs whose time is up and of which all is evaluated.
    pub(crate) fn end_evaluated(&mut self) -> Result<(), CoreFault> {
        let evaluated: Vec<JobId> =
            self.of_jobs(|job| job.has_evaluated_all()).map(|job| job.id).collect();
        evaluated.into_iter().try_for_each(|job| self.end_search(job))
    }

    fn of_jobs(&self, which: impl Fn(&&Job) -> bool) -> impl Iterator<Item = &Job> {
        self.state().jobs.values().filter(which)
    }

    /// Has nothing more of a job trained: its time is up, or a budget is used up.
    pub(super) fn end_training(
        &mut self,
        job: JobId,
        used_up: Option<SearchBudget>,
    ) -> Result<(), CoreFault> {
        let Some(known) = self.state().jobs.get(&job) else { return Ok(()) };
        let length = known.spec.search.wall_time.unwrap_or_default();
        let grace = MIN_GRACE.max(Millis(length.0 / GRACE_PART));
        let running = known.trials.iter().filter(|trial| trial.is_running());
        let hops: Vec<LeaseId> = running.flat_map(Trial::live_training).collect();
        self.record(Event::JobTrainingOver { job, grace, used_up })?;
        self.results.ledger.planner.outdate_plan(job);
        self.results.leases().revoke(hops)
    }

    /// Has nothing more trained of jobs that have cost as much as their search may.
    pub(crate) fn end_costly(&mut self, jobs: Vec<(JobId, MicroUsd)>) -> Result<(), CoreFault> {
        jobs.into_iter()
            .try_for_each(|(job, cost)| self.end_training(job, Some(SearchBudget::Cost(cost))))
    }

    fn end_search(&mut self, job: JobId) -> Result<(), CoreFault> {
        let in_flight = self.state().jobs.get(&job).map(running_in_flight);
        self.record(Event::JobTimeUp { job })?;
        in_flight.into_iter().flatten().try_for_each(|of_trial| self.results.abandon(of_trial))
    }
}
