//! Jobs in depth: trials that have begun come first, so that some end early and few are under way.
//!
//! A slot keeps to its trial. When that has ended, it takes the one that has least left, of those that have begun and wait for a
//! slot. Another trial begins where none of them waits. A trial that would otherwise be under way when nothing else is left for the
//! other slots comes before all of these: one that is *critical*.
//!
//! ```text
//!   all work on all slots           |=====================|
//!   the longest, on the fastest     |===================|    critical: it begins now, before others go on
//!   another, on the fastest         |===========|            has time
//! ```
//!
//! Where the transfer of a checkpoint takes time, trials are pinned to machines by a plan, and its order is one of depth.

use super::scheduler::Scheduler;
use crate::{
    cost::Cost,
    hosts::{DeviceRef, Hosts},
    index::{DerivedIndex, RemainingWorkIndex},
    leases::{Leases, Occupancy},
};
use sojourn_protocol::{
    ids::{HostId, LeaseId, TrialId},
    inventory::Links,
    quantity::{mul_div, to_u64},
    spec::{Replicas, Spread},
    time::{Millis, UnixMillis},
};
use sojourn_state::{Job, Lease, State, Trial, UnitKey};
use std::{cmp::Reverse, collections::BTreeSet, sync::Arc};

/// Trials that are tried for one slot: those behind them are left for the next one.
const MAX_TRIED: usize = 32;
/// Trials that are looked at for those that a host trained last.
const MAX_LOOKED_AT: usize = 256;
/// For so long at most a slot is kept for its trial. Where checkpoints move in no time a result is on its way for less.
const MAX_KEPT: Millis = Millis::from_secs(1);
/// A trial is critical whose remaining time is so many hundredths of that of all work on all slots: what is left never fits as
/// well as it could.
const CRITICAL: u64 = 90;

/// Jobs in depth. It reads, and changes nothing.
#[derive(Clone, Copy)]
pub struct Depth<'a> {
    pub state: &'a State,
    pub hosts: &'a Hosts,
    pub leases: &'a Leases,
    pub index: &'a DerivedIndex,
    pub now: UnixMillis,
    pub occupancy: Occupancy<'a>,
}

impl<'a> Depth<'a> {
    pub fn of(from: &Scheduler<'a>) -> Self {
        Self {
            state: from.state,
            hosts: from.hosts,
            leases: from.leases,
            index: from.index,
            now: from.now,
            occupancy: from.occupancy,
        }
    }
}

impl Depth<'_> {
    /// May a job's trials go in depth? Any host may train any of them, and checkpoints move in no time over these links.
    pub(super) fn may_go_in_depth(&self, job: &Job, links: impl FnOnce() -> Links) -> bool {
        let placement = &job.spec.placement;
        if job.spec.search.spread != Spread::Depth
            || placement.replicas != Replicas::Demand
            || placement.max_hosts.is_some()
        {
            return false;
        }
        let remaining = self.index.remaining(job.id).filter(|remaining| !remaining.any_merges());
        let first = remaining.and_then(|remaining| job.trial(remaining.trials().next()?));
        first.is_some_and(|trial| Cost::transfer_time_over(trial, links()).is_negligible())
    }

    /// Do a job's trials go in depth now? They may, and some haven't begun, or there are more of them than slots.
    pub(super) fn is_in_depth(&self, job: &Job, links: impl FnOnce() -> Links) -> bool {
        let Some(remaining) = self.index.remaining(job.id) else { return false };
        let held_back = self.index.stopping_rules().held_back(job.id);
        let more = to_come(job).saturating_add(to_u64(held_back + remaining.to_begin()));
        (more > 0 || to_u64(remaining.count()) > self.hosts.fleet().slots())
            && self.may_go_in_depth(job, links)
    }

    /// Does a trial go on at the host that trained it last, as soon as that has evaluated it? In depth others leave it there, unless
    /// they are faster.
    pub(super) fn is_kept_by_its_host(&self, trial: &Trial, host: HostId) -> bool {
        let last = trial.history.last().map(|hop| hop.host).filter(|last| *last != host);
        let evaluations = || trial.evaluations.values().flat_map(|evaluation| &evaluation.live);
        last.is_some_and(|last| {
            let fleet = self.hosts.fleet();
            let here = |lease: &LeaseId| self.state.lease(*lease).is_some_and(|of| of.host == last);
            fleet.speed(last) >= fleet.speed(host) && evaluations().any(here)
        })
    }

    /// For how many microseconds an idle slot waits, in depth, rather than take another trial: the result of the hop that its host
    /// has trained is on its way, and the slot keeps to its trial.
    pub(super) fn keeps_slot_for(&self, job: &Job, at: DeviceRef<'_>) -> Option<u64> {
        let session = self.hosts.session(at.host).filter(|_| !at.ahead)?;
        let until = session.idle_since.unwrap_or(self.now) + MAX_KEPT;
        let left = Some((until - self.now).0.saturating_mul(1000)).filter(|left| *left > 0)?;
        let is_sent = |lease: &LeaseId| {
            let of_job = |lease: &Arc<Lease>| matches!(lease.unit, UnitKey::Train { job: of, .. } if of == job.id);
            self.leases.deadline(*lease).is_some_and(|deadline| deadline.is_finished())
                && self.state.leases.get(lease).is_some_and(of_job)
        };
        let is_on_its_way =
            self.occupancy.leases_on(at.host, &at.slots.device.name).any(|lease| is_sent(&lease));
        (is_on_its_way && self.is_in_depth(job, || session.links)).then_some(left)
    }

    /// The remaining work from which a job's trials are critical.
    pub(super) fn critical_work(&self, job: &Job, remaining: &RemainingWorkIndex) -> u64 {
        let mean = remaining.total() / to_u64(remaining.count()).max(1);
        let total = remaining.total().saturating_add(mean.saturating_mul(to_come(job)));
        let fleet = self.hosts.fleet();
        let on_fastest = mul_div(total, fleet.fastest(None), fleet.capacity().max(1));
        mul_div(on_fastest, CRITICAL, 100).max(1)
    }

    /// The trials of a job that a host's slot should train, the best choice first: those of the highest priority; of these the
    /// critical ones, the longest first; then those that the host trained last, so that a slot keeps to its trial; then the
    /// others that have begun, by what they have left; then those that haven't, by number.
    pub(super) fn deepest_first(
        &self,
        job: &Job,
        remaining: &RemainingWorkIndex,
        critical: u64,
        host: HostId,
    ) -> Vec<TrialId> {
        let is_critical = |(_, work, _): &(TrialId, u64, _)| *work >= critical;
        let is_own = |trial: &TrialId| {
            let last = job.trial(*trial).and_then(|trial| trial.history.last());
            last.is_some_and(|hop| hop.host == host)
        };
        let longest = remaining.open().take_while(is_critical).map(|(trial, ..)| trial);
        let own = remaining.deepest_first().take(MAX_LOOKED_AT).filter(is_own);
        let all = longest.take(MAX_TRIED).chain(own.take(MAX_TRIED));
        if job.priorities.is_empty() {
            // A critical trial or an own one may be among the deepest too, and isn't tried twice.
            let mut seen = BTreeSet::new();
            let all = all.chain(remaining.deepest_first().take(MAX_TRIED));
            return all.filter(|trial| seen.insert(*trial)).collect();
        }
        // Those without a priority are in order already, and may be many.
        let has_none = |trial: &TrialId| !job.priorities.contains_key(trial);
        let others = all.chain(remaining.deepest_first().filter(has_none).take(MAX_TRIED));
        let mut all: Vec<TrialId> = job.priorities.keys().copied().chain(others).collect();
        all.retain(|trial| remaining.open_trial(*trial).is_some());
        all.sort_by_key(|trial| {
            let work = remaining.open_trial(*trial).map(|(_, work, _)| work);
            let if_critical = work.filter(|work| *work >= critical);
            let depth = remaining.depth_of(*trial);
            (Reverse(job.priority_of(*trial)), Reverse(if_critical), !is_own(trial), depth)
        });
        all.dedup();
        all.truncate(MAX_TRIED);
        all
    }
}

/// Combinations that a search is still to try.
fn to_come(job: &Job) -> u64 {
    let search = Some(&job.search).filter(|search| search.is_open());
    search.map_or(0, |of| u64::from(of.wanted.saturating_sub(of.suggested)))
}
