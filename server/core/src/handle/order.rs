//! How results are taken in where the server chooses: in hop order while that keeps the hosts busy, else merged
//! (DESIGN section 7).
//!
//! Trials merge while fewer of them can go on than a share of the live slots: as many as fill the slots that the others
//! leave idle, the most remaining work first. They go back when there are half as many trials again, so that no single
//! host that comes and goes makes them change their ways.

use crate::{
    core::Core,
    event::{Event, MergeMode},
    schedule::Ranks,
    state::{Merging, Trial},
};
use sojourn_protocol::{
    ids::{JobId, TrialId},
    spec::OrderChoice,
};
use std::cmp::Reverse;

/// Slots, and trials that can go on.
struct Balance {
    slots: u64,
    trials: u64,
    /// Slots that have nothing to do, beside what is decided so far.
    idle: u64,
}

impl Balance {
    /// Are there fewer trials than such a share of the slots, in thousandths?
    fn is_below(&self, share: u32) -> bool {
        u128::from(self.trials) * 1000 < u128::from(self.slots) * u128::from(share)
    }
}

impl Core {
    /// Decides anew how results are taken in, where what that rests on has changed.
    pub(crate) fn renew_orders(&mut self) {
        let schedule = &self.soft.schedule;
        let seen = schedule.ranks.values().map(Ranks::count).sum();
        let seen = Some((schedule.fleet.version(), seen));
        if schedule.ordered == seen || schedule.fleet.slots() == 0 {
            return;
        }
        self.soft.schedule.ordered = seen;
        let mut balance = self.balance();
        let jobs: Vec<JobId> = self.soft.schedule.ranks.keys().copied().collect();
        for job in jobs {
            for (trial, merges) in self.to_merge(job, &mut balance) {
                self.order(job, trial, merges);
            }
        }
    }

    fn balance(&self) -> Balance {
        let slots = self.soft.schedule.fleet.slots();
        let open = self.state.jobs.values().filter(|job| job.is_open());
        let trials = open.filter_map(|job| self.soft.schedule.ranks.get(&job.id));
        let trials = trials.map(Ranks::count).sum::<usize>();
        let trials = u64::try_from(trials).unwrap_or(u64::MAX);
        Balance { slots, trials, idle: slots.saturating_sub(trials) }
    }

    /// The trials of a job where the server chooses, and which of them merge: as many as fill what is idle. For those
    /// that do there may be half as many trials again.
    fn to_merge(&self, job: JobId, balance: &mut Balance) -> Vec<(TrialId, bool)> {
        let Some(job) = self.state.jobs.get(&job) else { return Vec::new() };
        let Some(ranks) = self.soft.schedule.ranks.get(&job.id) else { return Vec::new() };
        if job.spec.placement.order != OrderChoice::Auto || !job.is_open() {
            return Vec::new();
        }
        let mut trials: Vec<&Trial> =
            ranks.running().filter_map(|(trial, _)| job.trial(trial)).collect();
        trials.sort_by_key(|of| {
            (Reverse(of.merging.is_some()), Reverse(ranks.left_of(of.id)), of.id)
        });
        let more = u64::try_from(job.data.train.len()).unwrap_or(u64::MAX).saturating_sub(1);
        let share = job.spec.placement.merge_below;
        let merges = trials.iter().map(|trial| {
            let share = if trial.merging.is_some() { share + share / 2 } else { share };
            let merges = balance.idle > 0 && more > 0 && balance.is_below(share);
            if merges {
                balance.idle = balance.idle.saturating_sub(more);
            }
            (trial.id, merges)
        });
        merges.collect()
    }

    /// Has a trial's results merged from now on, or not, as soon as it can be.
    fn order(&mut self, job: JobId, trial: TrialId, merges: bool) {
        let Some(known) = self.state.jobs.get(&job) else { return };
        let gathers = known.spec.placement.merging().rule.gathers();
        let Some(of) = known.trial(trial) else { return };
        let order = match (&of.merging, merges) {
            (None, false) => return,
            (Some(merging), true) if !merging.draining => return,
            (Some(_), true) => MergeMode::Merging,
            (None, true) if self.can_begin(of) => MergeMode::Merging,
            // Right after a start nobody knows the fleet.
            (Some(_), false) if self.now < self.soft.started_at + self.config.lease_term => {
                return self.soft.schedule.ordered = None;
            }
            (Some(merging), false) if is_drained(merging, gathers) => MergeMode::Hop,
            (Some(merging), false) if !merging.draining => MergeMode::Draining,
            // When what is under way has ended.
            (None, true) | (Some(_), false) => return self.soft.schedule.ordered = None,
        };
        if order == MergeMode::Draining {
            self.soft.schedule.ordered = None;
        }
        self.emit(Event::TrialOrdered { job, trial, order });
        self.plan_outdated(job);
        self.soft.work_changed = true;
    }

    /// Is nothing under way of a trial but single hops, that nobody has been promised to go on from?
    fn can_begin(&self, trial: &Trial) -> bool {
        trial.waiting().next().is_none()
            && self.promised(trial).is_none()
            && trial.live.iter().all(|lease| {
                self.state.leases.get(lease).is_some_and(|lease| lease.then.is_empty())
            })
    }
}

/// Is nothing out of it, nor anything gathered that hasn't been used?
fn is_drained(merging: &Merging, gathers: bool) -> bool {
    merging.in_flight().next().is_none() && (merging.flushed || !gathers)
}
