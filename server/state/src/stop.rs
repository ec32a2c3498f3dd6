//! How trials end before they have trained all their epochs: at their target, or when their job's wall time is
//! over.

use super::{FoldFault, Job, PendingEvaluation, State, Trial, TrialEnd};
use serde::{Deserialize, Serialize};
use sojourn_protocol::{
    ids::{Epoch, JobId, LeaseId, ShardId, TrialId},
    money::MicroUsd,
    spec::{SearchBudget, SearchSpec},
    time::{Millis, UnixMillis},
};
use std::collections::BTreeMap;

/// Why a trial finished before its last epoch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Stopped {
    /// After this epoch it was as good as the search's target.
    Target {
        /// The epoch.
        epoch: Epoch,
    },
    /// The job's wall time was over.
    WallTime,
    /// The trials of its job had used up what they may together.
    UsedUp(SearchBudget),
    /// The search's rule of early stopping ended it.
    Search {
        /// Epochs that it had trained.
        epochs: u32,
        /// The reason.
        why: String,
    },
}

/// The amounts that a job's trials had used up together when its budgets last began. The budgets `total_epochs` and
/// `total_cost` count from then on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Spent {
    /// Epochs that were trained.
    #[serde(default)]
    pub epochs: u64,
    /// The amount that was paid for bought machines.
    #[serde(default)]
    pub cost: MicroUsd,
}

impl State {
    /// The search lets a trial train up to so many epochs.
    pub(super) fn trial_continued(
        &mut self,
        job: JobId,
        id: TrialId,
        epochs: u32,
        at: UnixMillis,
    ) -> Result<(), FoldFault> {
        let trial = self.known_trial(job, id)?;
        let allowed = trial.chain.epochs();
        if !trial.is_running() || epochs <= allowed || epochs > trial.epochs() {
            return Err(FoldFault::NotContinued { job, trial: id, epochs });
        }
        self.change_trial(job, id, at, |trial| {
            trial.leave_home_if_done();
            trial.chain.extend(epochs);
            trial.renew_merging();
        })?;
        let known = self.known_job_mut(job)?;
        let Some(trial) = usize::try_from(id.0).ok().and_then(|index| known.trials.get(index))
        else {
            return Ok(());
        };
        for (shard, visits) in (0..).map(ShardId).zip(&mut known.load) {
            if trial.chain.visits(shard) {
                *visits += u64::from(epochs - allowed);
            }
        }
        Ok(())
    }

    /// The search ends a trial with what it has.
    pub(super) fn trial_stopped(
        &mut self,
        job: JobId,
        id: TrialId,
        why: &str,
        at: UnixMillis,
    ) -> Result<(), FoldFault> {
        let trial = self.known_trial(job, id)?;
        let epochs = trial.chain.epoch().0;
        if !trial.is_running() {
            return Err(FoldFault::NotContinued { job, trial: id, epochs });
        }
        let load = self.known_job(job)?.load_without(trial)?;
        let stopped = Stopped::Search { epochs, why: why.to_owned() };
        self.change_trial(job, id, at, |trial| trial.stop(stopped))?;
        self.known_job_mut(job)?.load = load;
        self.settle(job, at)
    }
}

impl Trial {
    /// Of so many epochs, those that aren't of the trial that it goes on from.
    #[must_use]
    pub fn own_epochs(&self, epochs: u32) -> u32 {
        epochs.saturating_sub(self.origin.map_or(0, |origin| origin.epochs))
    }

    /// Ends it as finished. The caller ends its live leases.
    fn stop(&mut self, why: Stopped) {
        self.end_as(TrialEnd::Finished);
        self.stopped = Some(why);
    }

    /// Ends it for want of time: with what is evaluated, or without anything. Where its job can be extended, evaluations that are
    /// left are kept for then.
    fn end_for_time(&mut self, failed: Option<String>, is_kept: bool, why: Stopped) {
        let left = is_kept.then(|| std::mem::take(&mut self.evaluations));
        self.end_as(failed.map_or(TrialEnd::Finished, TrialEnd::Failed));
        if self.end == Some(TrialEnd::Finished) || is_kept {
            self.stopped = Some(why);
        }
        self.set_aside(left.unwrap_or_default());
    }

    /// Ends it as its job is cancelled. Evaluations that are left are kept: the job may be reopened.
    pub(super) fn cancel(&mut self) {
        let left = std::mem::take(&mut self.evaluations);
        self.end_as(TrialEnd::Cancelled);
        self.set_aside(left);
    }

    /// Keeps evaluations that are left, until the trial goes on.
    fn set_aside(&mut self, left: BTreeMap<Epoch, PendingEvaluation>) {
        self.unevaluated = left;
        for evaluation in self.unevaluated.values_mut() {
            evaluation.live.clear();
            evaluation.failures.clear();
            evaluation.verification = None;
        }
    }

    /// Did it end for want of time, or is nothing more of it trained for that: could it go on if its job had more time?
    #[must_use]
    pub fn lacks_time(&self) -> bool {
        match self.end {
            None => self.training_over,
            Some(_) => {
                matches!(self.stopped, Some(Stopped::WallTime | Stopped::UsedUp(_)))
            }
        }
    }

    /// Live leases of its hops, but for those that check a result which waits.
    pub fn live_training(&self) -> impl Iterator<Item = LeaseId> + '_ {
        let next = self.live.iter().filter(|_| self.verification.is_none());
        let units = self.merging.iter().flat_map(|merging| merging.units.values());
        let merging = units.filter(|unit| unit.verification.is_none()).flat_map(|unit| &unit.live);
        next.chain(merging).copied()
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
        Some(match self.stopped.as_ref()? {
            Stopped::Search { epochs, why } => {
                format!(
                    "stopped after {epochs} epoch{}: {why}",
                    if *epochs == 1 { "" } else { "s" }
                )
            }
            Stopped::Target { epoch } => {
                let target = search.target.unwrap_or_default();
                format!("reached {target} after epoch {}", epoch.0 + 1)
            }
            Stopped::UsedUp(budget @ SearchBudget::Epochs(_)) => {
                format!("stopped when all trials together had trained {budget}")
            }
            Stopped::UsedUp(SearchBudget::Cost(cost)) => {
                format!("stopped when all trials together had cost {cost}")
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

    /// When its wall time will be over, if it runs until then; once it is, the time until which what is trained is evaluated.
    #[must_use]
    pub fn time_up_at(&self) -> Option<UnixMillis> {
        let over = self.wall().map(|wall| wall + self.grace.unwrap_or_default());
        over.filter(|_| self.is_open() && !self.search_ended())
    }

    /// Is its time up, and nothing left that it waited for: no evaluation, no result that is taken in?
    #[must_use]
    pub fn has_evaluated_all(&self) -> bool {
        // The first of these are there as a rule, and cost nothing: so trials are hardly ever looked at.
        if self.grace.is_none()
            || !self.is_open()
            || self.counters.leases_live > 0
            || self.open.count() > 0
        {
            return false;
        }
        let mut running = self.trials.iter().filter(|trial| trial.is_running()).peekable();
        let waits =
            |trial: &Trial| !trial.evaluations.is_empty() || trial.waiting().next().is_some();
        (running.peek().is_some() || self.search.is_open()) && !running.any(waits)
    }

    /// Epochs that its trials have trained together. Those that a clone goes on from are of the other trial.
    #[must_use]
    pub fn trained_epochs(&self) -> u64 {
        self.trials.iter().map(|trial| u64::from(trial.own_epochs(trial.chain.epoch().0))).sum()
    }

    /// The epochs that its trials may have trained together, since its search has a budget of them.
    #[must_use]
    pub fn epoch_limit(&self) -> Option<u64> {
        Some(self.spec.search.total_epochs?.saturating_add(self.spent.epochs))
    }

    /// The most that the job may have cost, since its search has a budget of that.
    #[must_use]
    pub fn cost_limit(&self) -> Option<MicroUsd> {
        Some(self.spec.search.total_cost? + self.spent.cost)
    }

    /// Is its time up, or a budget used up?
    #[must_use]
    pub(super) fn is_over(&self, at: UnixMillis) -> bool {
        self.grace.is_some() || self.is_time_up(at)
    }

    /// The job has its wall time once more, from now on, or the budget that is used up. `paid` is the job's cost by now. The
    /// search tries more combinations only where `tries_more`.
    pub(super) fn begin_anew(&mut self, at: UnixMillis, paid: MicroUsd, tries_more: bool) {
        let from = self.paused_at.unwrap_or(at);
        self.paused_for = from - self.submitted_at;
        self.grace = None;
        if tries_more && std::mem::take(&mut self.search.over_by_time) {
            self.search.over = None;
        }
        match self.used_up.take() {
            Some((SearchBudget::Epochs(_), _)) => self.spent.epochs = self.trained_epochs(),
            Some((SearchBudget::Cost(_), _)) => self.spent.cost = paid,
            None => {}
        }
        self.trials.iter_mut().for_each(|trial| trial.training_over = false);
    }

    fn wall(&self) -> Option<UnixMillis> {
        if let Some((_, since)) = self.used_up {
            return Some(since);
        }
        Some(self.submitted_at + self.spec.search.wall_time? + self.paused_for)
    }
}

impl State {
    /// The cost of a job by now, where that is its used-up budget; else 0.
    pub(super) fn paid_of_used_up(&self, job: JobId, at: UnixMillis) -> MicroUsd {
        let used_up = self.jobs.get(&job).and_then(|job| job.used_up);
        match used_up {
            Some((SearchBudget::Cost(_), _)) => self.costs(at).of_job(job).paid,
            Some((SearchBudget::Epochs(_), _)) | None => MicroUsd::default(),
        }
    }

    /// The job of an evaluation that has ended its trial early: other units of the trial are over too.
    pub(super) fn stopped_by(&self, evaluation: LeaseId) -> Option<JobId> {
        let unit = self.past.get(&evaluation)?.lease.unit;
        let trial = self.trial(unit.job(), unit.trial())?;
        trial.stopped.as_ref().map(|_| unit.job())
    }

    /// A job's wall time is over, or a budget is used up: nothing more of it is trained, and its trials wait for evaluations for so
    /// long at most.
    pub(super) fn end_training(
        &mut self,
        job: JobId,
        grace: Millis,
        used_up: Option<(SearchBudget, UnixMillis)>,
    ) -> Result<(), FoldFault> {
        let known = self.known_job_mut(job)?;
        (known.grace, known.used_up) = (Some(grace), used_up);
        let running = known.trials.iter_mut().filter(|trial| trial.is_running());
        running.for_each(|trial| trial.training_over = true);
        Ok(())
    }

    /// The search of a job whose time is up ends: trials of which an epoch has been evaluated have finished, the others failed.
    pub(super) fn stop(&mut self, job: JobId, at: UnixMillis) -> Result<(), FoldFault> {
        let known = self.known_job(job)?;
        let (after, why) = match known.used_up {
            Some((budget, _)) => (budget.to_string(), Stopped::UsedUp(budget)),
            None => {
                let length = known.spec.search.wall_time.unwrap_or_default();
                (length.to_string(), Stopped::WallTime)
            }
        };
        // In journals of before, such a job wasn't extended.
        let is_kept = known.grace.is_some();
        let running = known.trials.iter().filter(|trial| trial.is_running());
        let running: Vec<(TrialId, bool, bool)> = running
            .map(|trial| (trial.id, trial.curve.is_empty(), trial.refit.is_some()))
            .collect();
        for (trial, is_new, is_refit) in running {
            let error = || match why {
                _ if is_refit => format!("stopped after {after}, before it was trained to its end"),
                Stopped::UsedUp(SearchBudget::Epochs(_)) => format!(
                    "all trials together had trained {after} before an epoch of this one was evaluated"
                ),
                Stopped::UsedUp(SearchBudget::Cost(cost)) => format!(
                    "all trials together had cost {cost} before an epoch of this one was evaluated"
                ),
                _ => format!("stopped after {after}, before an epoch was evaluated"),
            };
            let failed = is_new.then(error);
            let why = why.clone();
            self.change_trial(job, trial, at, |trial| trial.end_for_time(failed, is_kept, why))?;
        }
        let known = self.known_job_mut(job)?;
        known.recount_load();
        if known.search.is_open() {
            known.search.over = Some(format!("stopped after {after}"));
            known.search.over_by_time = true;
        }
        self.settle(job, at)
    }
}
