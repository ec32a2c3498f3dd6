//! Early stopping: has the rule of a search decide which of its trials go on, and carries that out.

use super::JobHandler;
use crate::{event::Event, fault::CoreFault, state::Job};
use sojourn_protocol::{
    ids::{JobId, TrialId},
    quantity::to_usize,
};
use sojourn_workgen::search::stopping::{Decision, Search, TrialProgress};

/// Trials that train at once for each slot: while one hops or is evaluated, another trains.
const TRIALS_PER_SLOT: u64 = 2;
/// At least so many do: without work for more, nobody would bring more slots.
const MIN_TRIALS_AT_ONCE: u64 = 2;

impl JobHandler<'_> {
    /// Decides on all searches of whose trials more is known than before.
    pub(crate) fn decide_searches(&mut self, slots: u64) -> Result<(), CoreFault> {
        let due = self.results.ledger.index.searches_mut().take_due(slots);
        due.into_iter().try_for_each(|job| self.decide_search(job, slots))
    }

    fn decide_search(&mut self, job: JobId, slots: u64) -> Result<(), CoreFault> {
        let known = self.state().jobs.get(&job);
        let decisions = known.map(|job| decisions(job, slots)).unwrap_or_default();
        for decision in decisions {
            match decision {
                Decision::Continue { trial, epochs, why } => {
                    let epochs = self.epochs_of(job, trial, epochs);
                    self.record(Event::TrialContinued { job, trial, epochs, why })?;
                }
                Decision::Stop { trial, why } => {
                    let in_flight = self.state().in_flight(job, trial);
                    self.record(Event::TrialStopped { job, trial, why })?;
                    self.results.abandon(in_flight)?;
                }
            }
            // Its hops are planned beside others'.
            self.results.ledger.planner.outdate_plan(job);
        }
        self.results.ledger.index.searches_mut().decided(job);
        Ok(())
    }

    /// The epochs that a trial trains up to, where its rule says so many: all of its own, if these are all of the job's.
    fn epochs_of(&self, job: JobId, trial: TrialId, epochs: u32) -> u32 {
        let of_job = self.state().jobs.get(&job).map(|job| job.spec.training.epochs);
        match self.state().trial(job, trial) {
            Some(trial) if of_job.is_some_and(|all| epochs >= all) => trial.epochs(),
            _ => epochs,
        }
    }
}

/// What the job's rule decides now.
fn decisions(job: &Job, slots: u64) -> Vec<Decision> {
    let Some(rule) = job.spec.search.stopping.filter(|_| job.is_running()) else {
        return Vec::new();
    };
    // Once its time is up nothing more is trained, and its trials end together.
    if job.grace.is_some() {
        return Vec::new();
    }
    // Rungs stay where they were when the job was submitted. Who passes the last one trains all of its epochs.
    let (search, epochs) = (&job.spec.search, job.spec.training.epochs);
    let trials = job.trials.iter().map(|trial| {
        let points = (0u32..).zip(&trial.curve);
        // Epochs may be evaluated in another order than they were trained in.
        let known = points.take_while(|(epoch, point)| point.epoch.0 == *epoch);
        TrialProgress {
            // One that the user extended has passed all rungs.
            allowed: trial.chain.epochs().min(epochs),
            trained: trial.chain.epoch().0,
            values: known
                .map(|(_, point)| search.value(&point.valid, point.f1, &point.own))
                .collect(),
            has_ended: !trial.is_running(),
        }
    });
    let at_once = slots.saturating_mul(TRIALS_PER_SLOT).max(MIN_TRIALS_AT_ONCE);
    let running = job
        .trials
        .iter()
        .filter(|trial| trial.is_running() && !trial.is_held() && trial.chain.epochs() > 0);
    let room = to_usize(at_once).saturating_sub(running.count());
    Search::from_trials(&rule, epochs, search.goal, trials).decide(room)
}
