//! Early stopping: has the rule of a search decide which of its trials go on, and carries that out.

use super::JobHandler;
use crate::{fault::CoreFault, ledger::Ledger};
use sojourn_protocol::{
    ids::{JobId, TrialId},
    quantity::to_usize,
    spec::{SearchBudget, Spread},
};
use sojourn_scheduling::cost::Cost;
use sojourn_state::{Event, Job};
use sojourn_workgen::search::stopping::Decision;

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
        if let Some(budget) = self.used_up(job) {
            return self.end_training(job, Some(budget));
        }
        self.decide_on_trials(job, slots)?;
        self.decide_on_population(job)?;
        self.end_waiting(job)?;
        let suggested = self.suggest(job, slots)?;
        if suggested.any() {
            self.decide_on_trials(job, slots)?;
        }
        self.refit(job)?;
        self.results.ledger.index.searches_mut().decided(job, suggested.has_more());
        Ok(())
    }

    /// Where the search is over: has its best configuration trained on all folds, if that is wanted.
    fn refit(&mut self, job: JobId) -> Result<(), CoreFault> {
        let known = self.state().jobs.get(&job);
        let Some((known, trial)) = known.and_then(|known| Some((known, known.refit_due()?))) else {
            return Ok(());
        };
        let (trials, first) = (vec![trial], known.trials.len());
        let why = "the best in the mean of its folds, trained on all of them".to_owned();
        let (suggested, nonce, by) = (0, None, None);
        self.record(Event::TrialsAdded { job, trials, suggested, why, nonce, by })?;
        self.look_at_added(job, first);
        self.results.ledger.planner.outdate_plan(job);
        Ok(())
    }

    /// The budget of epochs that a job's trials have used up, if they have.
    fn used_up(&self, job: JobId) -> Option<SearchBudget> {
        let job = self.state().jobs.get(&job)?;
        let limit = job.epoch_limit().filter(|_| job.grace.is_none())?;
        (job.trained_epochs() >= limit).then_some(SearchBudget::Epochs(limit))
    }

    /// Where a program decides epoch by epoch, and has ended the search: nobody decides on trials that wait any more.
    fn end_waiting(&mut self, job: JobId) -> Result<(), CoreFault> {
        let known = self.state().jobs.get(&job).filter(|job| job.is_running());
        let Some((known, over)) = known.and_then(|job| Some((job, job.ended_by_program()?))) else {
            return Ok(());
        };
        let why = format!("the search has ended: {over}");
        let waiting = known.trials.iter().filter(|trial| trial.is_held()).map(|trial| trial.id);
        let stops: Vec<Decision> =
            waiting.map(|trial| Decision::Stop { trial, why: why.clone() }).collect();
        stops.into_iter().try_for_each(|stop| self.carry_out(job, stop))
    }

    /// Has the job's rule of early stopping decide on its trials.
    fn decide_on_trials(&mut self, job: JobId, slots: u64) -> Result<(), CoreFault> {
        for mut decision in self.decisions(job, slots) {
            if let Decision::Continue { trial, epochs, .. } = &mut decision {
                *epochs = self.epochs_of(job, *trial, *epochs);
            }
            self.carry_out(job, decision)?;
        }
        Ok(())
    }

    /// Lets a trial go on, or ends it.
    pub(super) fn carry_out(&mut self, job: JobId, decision: Decision) -> Result<(), CoreFault> {
        match decision {
            Decision::Continue { trial, epochs, why } => {
                self.record(Event::TrialContinued { job, trial, epochs, why, by: None })?;
            }
            Decision::Stop { trial, why } => {
                let in_flight = self.state().in_flight(job, trial);
                self.record(Event::TrialStopped { job, trial, why, by: None })?;
                self.results.abandon(in_flight)?;
            }
        }
        // Its hops are planned beside others'.
        self.results.ledger.planner.outdate_plan(job);
        Ok(())
    }

    /// The decisions of the job's rule now.
    fn decisions(&mut self, job: JobId, slots: u64) -> Vec<Decision> {
        let Ledger { state, index, .. } = &mut self.results.ledger;
        // Once its time is up nothing more is trained, and its trials end together.
        let running = state.jobs.get(&job).filter(|job| job.is_running() && job.grace.is_none());
        let Some((job, rule)) = running.and_then(|job| Some((job, job.spec.search.stopping?)))
        else {
            return Vec::new();
        };
        index.stopping_rules_mut().decide(job, &rule, at_once(slots))
    }

    /// The epochs that a trial trains up to, where its rule says so many: all of its own, if these are all of the job's.
    pub(super) fn epochs_of(&self, job: JobId, trial: TrialId, epochs: u32) -> u32 {
        let of_job = self.state().jobs.get(&job).map(|job| job.spec.training.epochs);
        match self.state().trial(job, trial) {
            Some(trial) if of_job.is_some_and(|all| epochs >= all) => trial.epochs(),
            _ => epochs,
        }
    }

    /// How many further combinations a procedure may suggest that learns from those before. In depth, where checkpoints move in no
    /// time, one trial for each slot is enough: a combination that is suggested ahead knows less.
    pub(super) fn room_for_suggestions(&self, job: &Job, slots: u64) -> usize {
        let room = room(job, slots);
        if room == 0 || job.spec.search.spread != Spread::Depth {
            return room;
        }
        let links = self.results.ledger.cost(self.results.hosts).slowest_links();
        let mut running = job.trials.iter().filter(|trial| trial.is_running());
        let takes_time = |trial| !Cost::transfer_time_over(trial, links).is_negligible();
        if running.next().is_some_and(takes_time) {
            return room;
        }
        room.saturating_sub(at_once(slots).saturating_sub(to_usize(slots.max(MIN_TRIALS_AT_ONCE))))
    }
}

/// How many trials of a job train at once, with so many slots.
fn at_once(slots: u64) -> usize {
    to_usize(slots.saturating_mul(TRIALS_PER_SLOT).max(MIN_TRIALS_AT_ONCE))
}

/// How many more trials of a job should train at once, with so many slots.
pub(crate) fn room(job: &Job, slots: u64) -> usize {
    at_once(slots).saturating_sub(job.trials.iter().filter(|trial| trial.is_busy()).count())
}
