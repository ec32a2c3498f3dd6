//! Jobs in depth: trials that have begun come first, so that some end early and few are under way.
//!
//! A free slot takes the trial that has least left, of those that have begun and wait for one. That is its own where no other is
//! further. Another trial begins where none of them waits. When most have begun the longest go first, as in breadth: else the last
//! ones would be under way when nothing else is left for the other slots.
//!
//! Where the transfer of a checkpoint takes time, trials are pinned to machines by a plan, and its order is one of depth.

use super::scheduler::Scheduler;
use crate::{
    cost::Cost,
    index::RemainingWorkIndex,
    state::{Job, Trial},
};
use sojourn_protocol::{
    ids::{TrialId, Version},
    quantity::to_usize,
    spec::{Replicas, Spread},
};
use std::cmp::Reverse;

/// Trials that are tried for one slot: those behind them are left for the next one.
const MAX_TRIED: usize = 32;

impl Scheduler<'_> {
    /// Do a job's trials go in depth now? More of them than half the slots haven't begun, any host may train any of them, and
    /// checkpoints move in no time.
    pub(super) fn is_in_depth(&self, job: &Job) -> bool {
        let placement = &job.spec.placement;
        if job.spec.search.spread != Spread::Depth
            || placement.replicas != Replicas::Demand
            || placement.max_hosts.is_some()
            || self.index.remaining(job.id).is_none_or(RemainingWorkIndex::any_merges)
        {
            return false;
        }
        let enough = to_usize(self.hosts.fleet().slots() / 2) + 1;
        let search = Some(&job.search).filter(|search| search.is_open());
        let to_come = search.map_or(0, |of| to_usize(of.wanted.saturating_sub(of.suggested)));
        let new = job.trials.iter().rev().filter(|trial| is_new(trial));
        if to_come + new.take(enough).count() < enough {
            return false;
        }
        let links = self.slowest_links();
        let first = job.trials.iter().find(|trial| trial.is_running());
        first.is_some_and(|trial| Cost::transfer_time_over(trial, links).is_negligible())
    }

    /// The trials of a job that a slot should train, the best choice first: those of the highest priority; of these the ones
    /// that have begun, by what they have left; then the others by number.
    pub(super) fn deepest_first(&self, job: &Job, remaining: &RemainingWorkIndex) -> Vec<TrialId> {
        let open = remaining.open().filter_map(|(id, work, _)| {
            let new = is_new(job.trial(id)?);
            Some((Reverse(job.priority_of(id)), new, if new { 0 } else { work }, id))
        });
        let mut open: Vec<_> = open.collect();
        if open.len() > MAX_TRIED {
            open.select_nth_unstable(MAX_TRIED);
            open.truncate(MAX_TRIED);
        }
        open.sort_unstable();
        open.into_iter().map(|(.., id)| id).collect()
    }
}

/// Is nothing of it trained yet, and may something be?
fn is_new(trial: &Trial) -> bool {
    trial.is_running() && trial.version == Version::default()
}
