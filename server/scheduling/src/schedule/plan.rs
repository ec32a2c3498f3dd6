//! A plan that is followed: each trial's hops and each device's, in order, and what they say of an idle device.
//!
//! Where the transfer of a checkpoint is negligible, devices keep to the order of the plan. Each takes the first hop of its
//! list whose trial is free and has nothing else planned before it. It waits for one that isn't only while that is about to
//! be. Where transfers take time, the plan says who trains which trial: a device takes the first of its own that is free.

use super::plan_request::{DeviceId, NO_CONTENTION, PlanRequest};
use sojourn_protocol::{
    ids::{Epoch, HostId, ShardId, TrialId},
    quantity::{SaturatingFrom as _, to_u64, to_usize},
    time::UnixMillis,
};
use sojourn_workgen::plan::Schedule;
use std::collections::{BTreeMap, VecDeque};

/// Trials of a device's list that are looked at for one decision.
const MAX_LOOKED_AT: usize = 32;
/// A hop may be late by this part of its length before others are taken before it.
const LATE_PART: u64 = 8;
/// Microseconds by which a hop may be late in any case.
const MIN_LATE: u64 = 20_000;

/// A plan that is followed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FollowedPlan {
    /// When it was requested.
    pub(super) at: UnixMillis,
    /// Moving a checkpoint takes time.
    pub(super) migrates: bool,
    /// Many of its devices were never measured.
    pub(super) is_guessed: bool,
    /// Had it more slots than trials, so that some were to be idle?
    pub(super) has_spare_slots: bool,
    /// How many hops were planned.
    pub(super) hops: u64,
    /// When the last one ends, in microseconds of the server's clock.
    pub(super) ends: u64,
    /// The trial that ends last, and when all others have ended.
    last: Option<(TrialId, u64)>,
    /// Each trial's hops, in order.
    trials: BTreeMap<TrialId, VecDeque<PlannedHop>>,
    /// Each device's hops, in order.
    lists: BTreeMap<HostId, BTreeMap<String, VecDeque<PlannedHop>>>,
}

/// A planned hop, in microseconds of the server's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedHop {
    /// The hop's number among all hops of the plan, by their start, from 1.
    pub step: u64,
    /// The trial.
    pub trial: TrialId,
    /// The epoch.
    pub epoch: Epoch,
    /// The shard.
    pub shard: ShardId,
    /// The host that is to train it.
    pub host: HostId,
    /// The slot, among all that were planned for.
    pub slot: u32,
    /// When the hop begins.
    pub start: u64,
    /// When the hop ends.
    pub end: u64,
    /// Microseconds that it takes where no other job trains anything.
    pub alone: u64,
}

/// The advice of a plan for an idle device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanAdvice {
    /// Grant this hop, and with it so many more of the same trial's epoch.
    Take(PlannedHop, u32),
    /// Wait, at most until then: the next hop is about to be runnable.
    Wait(UnixMillis),
    /// The device goes on with the trial that it trains.
    GoesOn,
    /// The plan says nothing of it.
    Nothing,
}

/// How a planned hop that isn't over stands now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HopStatus {
    /// The hop can be granted.
    Open,
    /// The hop's trial is on this very device, which goes on with it.
    GoesOn,
    /// The hop's trial is elsewhere, or not so far yet.
    Later,
}

impl PlannedHop {
    /// Is the other one of the same trial's epoch?
    fn is_in_a_row_with(&self, next: &Self) -> bool {
        self.trial == next.trial && self.epoch == next.epoch
    }

    /// Is it past the time at which it was to end?
    pub fn is_overdue(&self, now: UnixMillis) -> bool {
        self.end <= now.0.saturating_mul(1000)
    }

    /// Until then others wait for it, in microseconds of the server's clock.
    pub(super) fn patience_until(&self) -> u64 {
        let patience = self.end.saturating_sub(self.start) / LATE_PART + MIN_LATE;
        self.start.saturating_add(patience)
    }
}

impl FollowedPlan {
    /// The plan that was made for a request.
    pub(super) fn new(request: &PlanRequest, schedule: &Schedule) -> Self {
        let begin = request.at.0.saturating_mul(1000);
        // A plan may have more than 100,000 hops, so their lists are found by number. The slots of a device share one list.
        let mut of_trial = vec![VecDeque::new(); request.trials.len()];
        let mut of_device = vec![VecDeque::new(); request.devices.len()];
        let list_of_device = first_of_each(&request.devices);
        for (n, step) in (1..).zip(&schedule.steps) {
            let (trial_n, device_n) = (to_usize(step.trial), to_usize(step.machine));
            let (trial, device) = (request.trials.get(trial_n), request.devices.get(device_n));
            let (Some((trial, epoch)), Some((host, _))) = (trial, device) else { continue };
            let fold = request.folds.get(trial);
            if fold.is_some_and(|fold| fold.holds_out(ShardId(step.shard))) {
                continue;
            }
            let slowdown = request.contention.get(device_n);
            let takes = step.end.saturating_sub(step.start);
            let hop = PlannedHop {
                step: n,
                trial: *trial,
                epoch: Epoch(epoch.0 + step.epoch),
                shard: ShardId(step.shard),
                host: *host,
                slot: step.machine,
                start: begin + step.start,
                end: begin + step.end,
                alone: takes.saturating_mul(NO_CONTENTION)
                    / slowdown.copied().unwrap_or(NO_CONTENTION).max(1),
            };
            let list = list_of_device.get(device_n).and_then(|list| of_device.get_mut(*list));
            if let (Some(of_trial), Some(of_device)) = (of_trial.get_mut(trial_n), list) {
                of_trial.push_back(hop);
                of_device.push_back(hop);
            }
        }
        let trials = request.trials.iter().map(|(trial, _)| *trial).zip(of_trial);
        let trials: BTreeMap<TrialId, VecDeque<PlannedHop>> =
            trials.filter(|(_, hops)| !hops.is_empty()).collect();
        let mut lists: BTreeMap<HostId, BTreeMap<String, VecDeque<PlannedHop>>> = BTreeMap::new();
        for ((host, device), hops) in request.devices.iter().zip(of_device) {
            if !hops.is_empty() {
                lists.entry(*host).or_default().insert(device.clone(), hops);
            }
        }
        Self {
            at: request.at,
            migrates: request.migrates,
            is_guessed: request.is_guessed,
            has_spare_slots: request.devices.len() > request.trials.len(),
            hops: to_u64(schedule.steps.len()),
            ends: begin.saturating_add(schedule.makespan),
            last: last_of(&trials),
            trials,
            lists,
        }
    }

    /// Is it of the end of a job, on devices whose speeds are known? Some of their slots are to be idle then.
    pub(super) fn is_of_the_end(&self) -> bool {
        self.has_spare_slots && !self.is_guessed
    }

    /// Microseconds of the remaining hops of each device, without contention.
    pub(super) fn loads(&self) -> impl Iterator<Item = ((HostId, &str), u64)> {
        let lists = self.lists.iter().flat_map(|(host, of_host)| {
            of_host.iter().map(move |(device, list)| ((*host, device.as_str()), list))
        });
        lists.map(|(device, list)| (device, list.iter().map(|hop| hop.alone).sum()))
    }

    /// The advice for an idle device at `now`. The status of a hop is asked for only where it matters.
    pub(super) fn advise(
        &self,
        (host, device): (HostId, &str),
        now: UnixMillis,
        is_over: impl Fn(&PlannedHop) -> bool,
        status: impl Fn(&PlannedHop) -> HopStatus,
    ) -> PlanAdvice {
        let lists = self.lists.get(&host);
        let Some(list) = lists.and_then(|lists| lists.get(device)) else {
            return PlanAdvice::Nothing;
        };
        let micros = now.0.saturating_mul(1000);
        let remaining = || list.iter().filter(|hop| !is_over(hop));
        let is_next = |hop: &PlannedHop| {
            let next = self.next(hop.trial, &is_over);
            let gone_by = |next: &PlannedHop| !self.migrates && next.patience_until() <= micros;
            next.is_none_or(|next| next == hop || gone_by(next))
        };
        let mut looked: Vec<&PlannedHop> = Vec::new();
        for (n, hop) in remaining().enumerate() {
            // Hops in a row have the same status. Where a plan pins trials, so have all hops of a trial: the slots of a
            // device share a list, in which the trials that they train take turns.
            let is_known = match self.migrates {
                true => looked.iter().any(|before| before.trial == hop.trial),
                false => looked.last().is_some_and(|before| before.is_in_a_row_with(hop)),
            };
            if is_known {
                continue;
            }
            if looked.len() >= MAX_LOOKED_AT {
                break;
            }
            looked.push(hop);
            let stands = status(hop);
            if self.migrates && stands == HopStatus::GoesOn && is_next(hop) {
                return PlanAdvice::GoesOn;
            }
            if stands == HopStatus::Open && is_next(hop) {
                let further = remaining().skip(n + 1).filter(|next| next.slot == hop.slot);
                let further = further.take_while(|next| hop.is_in_a_row_with(next));
                return PlanAdvice::Take(*hop, u32::saturating_from(further.count()));
            }
            let until = hop.patience_until();
            if !self.migrates && micros < until {
                return PlanAdvice::Wait(UnixMillis(until.div_ceil(1000)));
            }
        }
        PlanAdvice::Nothing
    }

    /// Microseconds by which the latest of the trials is behind, where the plan pins them: its next hop begins no sooner
    /// than now, and no sooner than its host has a slot free, as of the request of the next plan.
    pub(super) fn overdue(
        &self,
        now: UnixMillis,
        free: &BTreeMap<HostId, u64>,
        is_over: impl Fn(&PlannedHop) -> bool,
    ) -> u64 {
        let micros = now.0.saturating_mul(1000);
        let next = self.trials.keys().filter_map(|trial| self.next(*trial, &is_over));
        let behind = next.filter(|_| self.migrates).map(|hop| {
            let free = free.get(&hop.host).copied().unwrap_or(0);
            micros.max(free).saturating_sub(hop.start)
        });
        behind.max().unwrap_or(0)
    }

    /// When all trials but this one end, in microseconds of the server's clock.
    pub(super) fn ends_beside(&self, trial: TrialId) -> u64 {
        self.last.map_or(0, |(last, others)| if last == trial { others } else { self.ends })
    }

    /// Has it hops, and none for this host?
    pub(super) fn leaves_out(&self, host: HostId) -> bool {
        !self.lists.is_empty() && !self.lists.contains_key(&host)
    }

    /// A trial's first hop that isn't over.
    pub(super) fn next(
        &self,
        trial: TrialId,
        is_over: impl Fn(&PlannedHop) -> bool,
    ) -> Option<&PlannedHop> {
        self.trials.get(&trial)?.iter().find(|hop| !is_over(hop))
    }

    /// Has a trial visit these shards on a device, instead of those of a planned hop and the hops of the same epoch after
    /// it there. The hops that were planned for these shards get the others, so that each device keeps its number of
    /// hops.
    pub(super) fn exchange(
        &mut self,
        device: &str,
        hop: &PlannedHop,
        shards: impl Iterator<Item = ShardId>,
    ) {
        let list = self.lists.get(&hop.host).and_then(|of_host| of_host.get(device));
        let here = list
            .into_iter()
            .flatten()
            .filter(|of| (of.trial, of.epoch) == (hop.trial, hop.epoch) && of.step >= hop.step);
        let here: Vec<u64> = here.map(|of| of.step).collect();
        let Some(of_trial) = self.trials.get_mut(&hop.trial) else { return };
        let first = of_trial.iter().take_while(|of| of.epoch < hop.epoch).count();
        let of_epoch = of_trial.range(first..).take_while(|of| of.epoch == hop.epoch);
        let of_epoch = first..first + of_epoch.count();
        let mut changed: Vec<PlannedHop> = Vec::new();
        for (own, shard) in here.into_iter().zip(shards) {
            let mut hops = of_trial.range(of_epoch.clone());
            let theirs = hops.clone().find(|of| of.shard == shard).map(|of| of.step);
            let planned = hops.find(|of| of.step == own).map(|of| of.shard);
            let (Some(theirs), Some(planned)) = (theirs, planned) else { continue };
            if theirs == own {
                continue;
            }
            for of in of_trial.range_mut(of_epoch.clone()) {
                let shard = match of.step {
                    step if step == own => shard,
                    step if step == theirs => planned,
                    _ => continue,
                };
                of.shard = shard;
                changed.push(*of);
            }
        }
        for hop in changed {
            let lists = self.lists.get_mut(&hop.host).into_iter();
            for list in lists.flat_map(BTreeMap::values_mut) {
                if let Ok(at) = list.binary_search_by_key(&hop.step, |of| of.step)
                    && let Some(same) = list.get_mut(at)
                {
                    same.shard = hop.shard;
                }
            }
        }
    }

    /// Removes hops that are over from the lists of a device and a trial.
    pub(super) fn clear(
        &mut self,
        (host, device): (HostId, &str),
        trial: TrialId,
        is_over: impl Fn(&PlannedHop) -> bool,
    ) {
        let of_host = self.lists.get_mut(&host);
        let list = of_host.and_then(|lists| lists.get_mut(device));
        let of_trial = self.trials.get_mut(&trial);
        for hops in list.into_iter().chain(of_trial) {
            while hops.front().is_some_and(&is_over) {
                hops.pop_front();
            }
        }
    }
}

/// The trial that ends last, and when all others have ended.
fn last_of(trials: &BTreeMap<TrialId, VecDeque<PlannedHop>>) -> Option<(TrialId, u64)> {
    let ends = trials.iter().filter_map(|(trial, hops)| Some((hops.back()?.end, *trial)));
    let (_, last) = ends.clone().max()?;
    let others = ends.filter(|(_, trial)| *trial != last).map(|(end, _)| end);
    Some((last, others.max().unwrap_or(0)))
}

/// For each device, the number of the first one that is equal to it.
fn first_of_each(devices: &[DeviceId]) -> Vec<usize> {
    let mut first: BTreeMap<&DeviceId, usize> = BTreeMap::new();
    devices.iter().enumerate().map(|(n, device)| *first.entry(device).or_insert(n)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_workgen::plan::Step;

    #[test]
    fn the_slots_of_a_device_share_one_list_in_the_order_of_the_plan() {
        let device = || (HostId(1), "cpu".to_owned());
        let request = PlanRequest {
            trials: vec![(TrialId(0), Epoch(0)), (TrialId(1), Epoch(0))],
            devices: vec![device(), device()],
            ..PlanRequest::empty(UnixMillis(0), 1)
        };
        let step = |trial, machine, start| Step {
            trial,
            machine,
            epoch: 0,
            shard: 0,
            start,
            end: start + 10,
        };
        let steps = vec![step(0, 0, 0), step(1, 1, 1), step(0, 0, 10), step(1, 1, 11)];
        let plan = FollowedPlan::new(&request, &Schedule { steps, makespan: 21 });
        let list: Vec<u64> = plan.lists[&HostId(1)]["cpu"].iter().map(|hop| hop.start).collect();
        assert_eq!(list, [0, 1, 10, 11]);
    }

    #[test]
    fn a_lease_covers_the_hops_of_its_slot_whatever_other_slots_train_between() {
        const SHARDS: u32 = 40;
        let device = || (HostId(1), "gpu".to_owned());
        let request = PlanRequest {
            migrates: true,
            trials: (0..3).map(|trial| (TrialId(trial), Epoch(0))).collect(),
            devices: vec![device(), device()],
            ..PlanRequest::empty(UnixMillis(0), 1)
        };
        // Trial 2 comes behind trial 1, in the same slot.
        let shards = (0..3).flat_map(|trial| (0..SHARDS).map(move |shard| (trial, shard)));
        let steps = shards.map(|(trial, shard)| {
            let (machine, first) = if trial == 2 { (1, SHARDS) } else { (trial, 0) };
            let start = u64::from(first + shard) * 10;
            Step { trial, machine, epoch: 0, shard, start, end: start + 10 }
        });
        let plan = FollowedPlan::new(&request, &Schedule::new(steps.collect()));
        let advice = |trains: &[u32]| {
            let status = |hop: &PlannedHop| match trains.contains(&hop.trial.0) {
                true => HopStatus::Later,
                false => HopStatus::Open,
            };
            match plan.advise((HostId(1), "gpu"), UnixMillis(0), |_| false, status) {
                PlanAdvice::Take(hop, further) => Some((hop.trial.0, further)),
                _ => None,
            }
        };
        assert_eq!(advice(&[]), Some((0, SHARDS - 1)));
        assert_eq!(advice(&[0]), Some((1, SHARDS - 1)));
        assert_eq!(advice(&[0, 1]), Some((2, SHARDS - 1)), "behind 80 hops of two trials");
    }
}
