//! How jobs and trials go on for more epochs than they were to have, or for more time.

use super::{Job, Merging, Trial, TrialEnd};
use sojourn_protocol::{
    ids::{LeaseId, TrialId},
    money::MicroUsd,
    spec::{OrderChoice, SearchMethod},
    time::UnixMillis,
    unit::FormerLength,
};
use std::{collections::BTreeSet, sync::Arc};

impl Job {
    /// Extends trials to `epochs` epochs. A job that had ended runs again; one whose time was up has it once more, and so with a
    /// used-up budget; `paid` is what it has cost by now. Leases up to `until` were granted before.
    pub(super) fn extend(
        &mut self,
        trials: &[TrialId],
        epochs: u32,
        named: bool,
        until: LeaseId,
        (at, paid): (UnixMillis, MicroUsd),
    ) {
        let meant: BTreeSet<TrialId> = trials.iter().copied().collect();
        let is_over = self.is_over(at);
        // Generations go on, unless a trial is meant by name.
        let pbt = match self.spec.search.method {
            SearchMethod::Pbt(pbt) if !named => Some(pbt),
            _ => None,
        };
        let placement = &self.spec.placement;
        let (merges, limit) = (placement.order == OrderChoice::Merge, placement.merge_in_flight);
        for trial in self.trials.iter_mut().filter(|trial| meant.contains(&trial.id)) {
            let minibatches = trial.context.config.training.minibatches();
            let end = pbt.map(|pbt| pbt.end_after(trial.chain.epochs()).min(epochs));
            let allowed = end.unwrap_or(epochs);
            let steps_per_epoch = self.data.steps_per_epoch(trial.fold, minibatches);
            trial.extend(epochs, allowed, named, steps_per_epoch, until);
            if merges && trial.merging.is_none() {
                trial.merging = Some(Merging::new(&trial.chain, limit));
            }
        }
        if !trials.is_empty() {
            self.run_again(at);
        }
        if is_over {
            // Who means one trial means no other ones.
            self.begin_anew(at, paid, !named);
        }
        self.recount_load();
    }

    /// The job runs again where it had ended.
    pub(super) fn run_again(&mut self, at: UnixMillis) {
        if let Some((_, ended)) = self.end.take() {
            self.was_paused_since(ended, at);
        }
    }
}

impl Trial {
    /// Was a lease granted before the trial was extended, so that others would train its unit for another length now?
    pub fn is_of_former_length(&self, lease: LeaseId) -> bool {
        self.context_of(lease).total_steps != self.context.total_steps
    }

    /// Goes on to `epochs` epochs, to `allowed` of them at first, from the checkpoint that it has. Leases up to `until` were granted
    /// before, and are done as the trial was then.
    pub(super) fn extend(
        &mut self,
        epochs: u32,
        allowed: u32,
        named: bool,
        steps_per_epoch: u64,
        until: LeaseId,
    ) {
        let (was, total_steps) = (self.epochs(), self.context.total_steps);
        // The length of one that trains on all folds follows from these.
        let (epochs, allowed) = if self.refit.is_some() { (was, was) } else { (epochs, allowed) };
        // One that the search holds back goes on being held back, unless it is meant by name.
        let was_cancelled = self.end == Some(TrialEnd::Cancelled);
        let is_held_back = self.is_running() || self.lacks_time() || was_cancelled;
        let is_limited = !named && is_held_back && self.chain.epochs() < was;
        if epochs != was {
            self.former.push(FormerLength { until, epochs: was, total_steps });
        }
        let context = Arc::make_mut(&mut self.context);
        context.config.training.epochs = epochs;
        context.total_steps = u64::from(epochs) * steps_per_epoch;
        if !is_limited {
            self.leave_home_if_done();
            self.chain.extend(allowed);
        }
        (self.end, self.stopped) = (None, None);
        self.is_exempt |= named;
        let unevaluated = std::mem::take(&mut self.unevaluated);
        self.evaluations.extend(unevaluated);
        self.renew_merging();
    }
}
