//! Jobs in depth: trials that have begun come first, so that some end early and few are under way.
//!
//! A free slot takes the trial that has least left, of those that have begun and wait for one. That is its own where no other is
//! further. Another trial begins where none of them waits. When most have begun the longest go first, as in breadth: else the last
//! ones would be under way when nothing else is left for the other slots.
//!
//! Where the transfer of a checkpoint takes time, trials are pinned to machines by a plan, and its order is one of depth.

use super::scheduler::Scheduler;
use crate::{cost::Cost, index::RemainingWorkIndex, state::Job};
use sojourn_protocol::{
    ids::TrialId,
    inventory::Links,
    quantity::to_usize,
    spec::{Replicas, Spread},
};
use std::cmp::Reverse;

/// Trials that are tried for one slot: those behind them are left for the next one.
const MAX_TRIED: usize = 32;

impl Scheduler<'_> {
    /// Do a job's trials go in depth now? More of them than half the slots haven't begun, any host may train any of them, and
    /// checkpoints move in no time over these links.
    pub(super) fn is_in_depth(&self, job: &Job, links: impl FnOnce() -> Links) -> bool {
        let placement = &job.spec.placement;
        if job.spec.search.spread != Spread::Depth
            || placement.replicas != Replicas::Demand
            || placement.max_hosts.is_some()
        {
            return false;
        }
        let Some(remaining) = self.index.remaining(job.id) else { return false };
        let search = Some(&job.search).filter(|search| search.is_open());
        let to_come = search.map_or(0, |of| to_usize(of.wanted.saturating_sub(of.suggested)));
        let held_back = self.index.stopping_rules().held_back(job.id);
        let to_begin = to_come.saturating_add(held_back).saturating_add(remaining.to_begin());
        if remaining.any_merges() || to_begin <= to_usize(self.hosts.fleet().slots() / 2) {
            return false;
        }
        let first = remaining.trials().next().and_then(|trial| job.trial(trial));
        first.is_some_and(|trial| Cost::transfer_time_over(trial, links()).is_negligible())
    }

    /// The trials of a job that a slot should train, the best choice first: those of the highest priority; of these the ones
    /// that have begun, by what they have left; then the others by number.
    pub(super) fn deepest_first(&self, job: &Job, remaining: &RemainingWorkIndex) -> Vec<TrialId> {
        if job.priorities.is_empty() {
            return remaining.deepest_first().take(MAX_TRIED).collect();
        }
        // Those without a priority are in order already, and may be many.
        let has_none = |trial: &TrialId| !job.priorities.contains_key(trial);
        let others = remaining.deepest_first().filter(has_none).take(MAX_TRIED);
        let mut all: Vec<TrialId> = job.priorities.keys().copied().chain(others).collect();
        all.retain(|trial| remaining.open_trial(*trial).is_some());
        all.sort_by_key(|trial| (Reverse(job.priority_of(*trial)), remaining.depth_of(*trial)));
        all.truncate(MAX_TRIED);
        all
    }
}
