//! The merge mode of trials, where the server chooses: in hop order while that keeps the hosts busy, else merged.
//!
//! Trials merge while the running trials are fewer than a share of the live slots: as many of them as fill the idle slots,
//! those with the most remaining work first. They go back to hop order when there are half as many trials again. So no
//! single host that comes and goes makes them switch. A trial whose validation loss has risen too far isn't merged any more.
//! `docs/internals/merging.md` has the reasons.

use crate::{fault::CoreFault, ledger::Ledger};
use sojourn_protocol::{
    ids::{JobId, TrialId},
    quantity::to_u64,
    spec::OrderChoice,
};
use sojourn_scheduling::{hosts::Hosts, index::RemainingWorkIndex, leases::Occupancy};
use sojourn_state::{Event, MergeMode, Merging, Trial};
use std::cmp::Reverse;

/// Slots, and running trials.
struct Balance {
    slots: u64,
    trials: u64,
    /// Slots that stay idle after the decisions so far.
    idle: u64,
}

impl Balance {
    /// Are there fewer trials than such a share of the slots, in thousandths?
    fn is_below(&self, ratio: u32) -> bool {
        u128::from(self.trials) * 1000 < u128::from(self.slots) * u128::from(ratio)
    }
}

/// The next step of a trial towards its merge mode.
enum NextMode {
    /// The trial switches to this mode.
    Switch(MergeMode),
    /// The trial can't switch yet.
    Later,
}

/// Chooses the merge mode of trials.
pub(crate) struct MergeModeHandler<'a> {
    pub(crate) ledger: Ledger<'a>,
    pub(crate) hosts: &'a Hosts,
}

impl MergeModeHandler<'_> {
    fn occupancy(&self) -> Occupancy<'_> {
        self.ledger.occupancy(self.hosts)
    }

    /// Chooses anew where the fleet or the number of trials has changed, or a switch could not be made yet.
    pub(crate) fn switch(&mut self) -> Result<(), CoreFault> {
        let fleet = self.hosts.fleet();
        let inputs = (fleet.version(), self.ledger.index.running_trials());
        if fleet.slots() == 0 || !self.ledger.planner.merge_modes().changed(inputs) {
            return Ok(());
        }
        let mut balance = self.balance();
        let jobs: Vec<JobId> = self.ledger.index.jobs().collect();
        for job in jobs {
            for (trial, merges) in self.to_merge(job, &mut balance) {
                self.switch_trial(job, trial, merges)?;
            }
        }
        Ok(())
    }

    /// Has a trial's results merged from now on, or not, as soon as that can be.
    fn switch_trial(&mut self, job: JobId, trial: TrialId, merges: bool) -> Result<(), CoreFault> {
        let Some(order) = self.next_mode(job, trial, merges) else { return Ok(()) };
        let order = match order {
            NextMode::Switch(order) => order,
            NextMode::Later => {
                self.ledger.planner.merge_modes().invalidate();
                return Ok(());
            }
        };
        if order == MergeMode::Draining {
            self.ledger.planner.merge_modes().invalidate();
        }
        let reason = match order {
            MergeMode::Draining => self.ledger.state.trial(job, trial).and_then(Trial::merge_fault),
            MergeMode::Hop | MergeMode::Merging => None,
        };
        self.ledger.record(Event::TrialOrdered { job, trial, order, reason })?;
        self.ledger.planner.outdate_plan(job);
        Ok(())
    }

    /// The mode that a trial goes to next; `None` where it has the right one.
    fn next_mode(&self, job: JobId, trial: TrialId, merges: bool) -> Option<NextMode> {
        let known = self.ledger.state.jobs.get(&job)?;
        let gathers = known.spec.placement.merging().rule.gathers();
        let of = known.trial(trial)?;
        let is_warming_up = self.ledger.clock.is_warming_up(self.ledger.config.lease_term);
        Some(match (&of.merging, merges) {
            (None, false) => return None,
            (Some(merging), true) if !merging.draining => return None,
            (Some(_), true) => NextMode::Switch(MergeMode::Merging),
            (None, true) if self.can_begin(of) => NextMode::Switch(MergeMode::Merging),
            // Right after a start nobody knows the fleet.
            (Some(_), false) if is_warming_up => NextMode::Later,
            (Some(merging), false) if is_drained(merging, gathers) => {
                NextMode::Switch(MergeMode::Hop)
            }
            (Some(merging), false) if !merging.draining => NextMode::Switch(MergeMode::Draining),
            // When the units in flight have ended.
            (None, true) | (Some(_), false) => NextMode::Later,
        })
    }

    fn balance(&self) -> Balance {
        let slots = self.hosts.fleet().slots();
        let open = self.ledger.state.jobs.values().filter(|job| job.is_open());
        let trials = open.filter_map(|job| self.ledger.index.remaining(job.id));
        let trials = trials.map(RemainingWorkIndex::count).sum::<usize>();
        let trials = to_u64(trials);
        Balance { slots, trials, idle: slots.saturating_sub(trials) }
    }

    /// The trials of a job where the server chooses, and which of them merge: as many as fill the idle slots. Trials that
    /// merge already go on up to half as many trials again.
    fn to_merge(&self, job: JobId, balance: &mut Balance) -> Vec<(TrialId, bool)> {
        let Some(job) = self.ledger.state.jobs.get(&job) else { return Vec::new() };
        let Some(remaining) = self.ledger.index.remaining(job.id) else { return Vec::new() };
        let placement = &job.spec.placement;
        if placement.order != OrderChoice::Auto || !placement.may_merge() || !job.is_open() {
            return Vec::new();
        }
        let ratio = job.spec.placement.merge_below;
        let none_begins = balance.idle == 0 || !balance.is_below(ratio);
        if none_begins && !remaining.any_merges() {
            // Each trial has the right mode. This is asked whenever a host comes or goes, and there may be many trials.
            return Vec::new();
        }
        let mut trials: Vec<&Trial> =
            remaining.running().filter_map(|(trial, _)| job.trial(trial)).collect();
        trials.sort_by_key(|of| {
            (Reverse(of.merging.is_some()), Reverse(remaining.work_of(of.id)), of.id)
        });
        let limit = job.spec.placement.merge_in_flight.map_or(u64::MAX, u64::from);
        let merges = trials.iter().map(|trial| {
            let more = trial.chain.hops_per_epoch().min(limit).saturating_sub(1);
            let ratio = if trial.merging.is_some() { ratio + ratio / 2 } else { ratio };
            let merges = balance.idle > 0
                && more > 0
                && balance.is_below(ratio)
                && trial.merge_fault().is_none();
            if merges {
                balance.idle = balance.idle.saturating_sub(more);
            }
            (trial.id, merges)
        });
        merges.collect()
    }

    /// Are only single hops of a trial running, without a provisional lease after them?
    fn can_begin(&self, trial: &Trial) -> bool {
        trial.waiting().next().is_none()
            && self.occupancy().provisional_of(trial).is_none()
            && trial.live.iter().all(|lease| {
                self.ledger.state.leases.get(lease).is_some_and(|lease| lease.then.is_empty())
            })
    }
}

/// Is nothing of it in flight, nor gathered and not used yet?
fn is_drained(merging: &Merging, gathers: bool) -> bool {
    merging.in_flight().next().is_none() && (merging.flushed || !gathers)
}
