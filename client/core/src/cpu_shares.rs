//! How the units that run here divide the host's processor: the trials of a job by the policy that their leases name, jobs and all other
//! units equally.
//!
//! Units come and go as they begin and leave their slots; a trial stays for an interval after its unit, since its next hop often follows here. Samples of what they take come in each second, plans are made when they are due,
//! and what has been learnt of a trial goes to the server with the lease.

use crate::{slots::SlotId, time::Micros};
use sojourn_protocol::{
    api::Held,
    cpu_shares::{Carried, HeldCpuShare, LeaseCpuShares, List},
    ids::{JobId, LeaseId},
    spec::{Apply, CpuSharePolicy},
    trainer::UsageSample,
    unit::{Lease, Unit},
};
use sojourn_shares::{CpuShare, Estimate, Planner, Sample, TrialKey};
use std::collections::{BTreeMap, VecDeque};

/// Trials of which is remembered what was seen of them here, so that their next units begin with it.
const MAX_REMEMBERED: usize = 64;

/// The CPU share that a running unit has of its device's processor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UnitCpuShare {
    /// How much it gets beside others, where a unit without a policy has 1.
    pub weight: f64,
    /// The most that it may have of the processor that is lent, as a part of it.
    pub cap: Option<f64>,
    /// The unit's CPU share as planned, above 0, at most 1.
    pub cpu_share: f64,
    /// The list that its trial is in.
    pub list: List,
}

/// The CPU shares of all devices of a host.
#[derive(Debug, Default)]
pub(crate) struct CpuShares {
    /// By device and job.
    groups: BTreeMap<(usize, JobId), Group>,
    /// Of ended units that are held yet.
    ended: BTreeMap<LeaseId, HeldCpuShare>,
    /// Has a unit begun since CPU shares were set?
    has_begun: bool,
    /// Of trials that ran here, the latest last.
    remembered: VecDeque<(TrialKey, Carried)>,
}

/// The units of a job on a device.
#[derive(Debug)]
struct Group {
    planner: Planner,
    policy: CpuSharePolicy,
    units: BTreeMap<LeaseId, TrialUnit>,
    /// Trials between two hops, and until when they count as ones that run here: with each that comes or goes planning begins anew.
    between: BTreeMap<TrialKey, (Carried, Micros)>,
}

/// A hop that runs.
#[derive(Debug, Clone, Copy)]
struct TrialUnit {
    trial: TrialKey,
    carried: Carried,
    /// Batches of training that the trial has in all.
    batches: u64,
    /// Batches that were done before the unit.
    before: u64,
    /// Processor time that the unit has taken.
    busy: Micros,
}

impl CpuShares {
    /// A unit has got a slot. Of jobs whose leases name no policy nothing is kept.
    pub(crate) fn begin(&mut self, lease: &Lease, slot: SlotId) {
        let (Some(cpu_shares), Unit::Train(hop)) = (lease.cpu_shares, &lease.unit) else { return };
        let LeaseCpuShares { policy, carried } = cpu_shares;
        if policy == CpuSharePolicy::Equal {
            return;
        }
        let trial = (hop.job, hop.trial);
        let here = self.remembered.iter().find(|(known, _)| *known == trial);
        // What was seen here may be newer than what the server knew when it granted the lease.
        let newer = here.map(|(_, carried)| *carried).into_iter().chain(carried);
        let carried = newer.max_by_key(|carried| carried.attained).unwrap_or_default();
        let unit = TrialUnit {
            trial,
            carried,
            batches: hop.context.total_steps,
            before: hop.start.step,
            busy: Micros::ZERO,
        };
        let group = self.groups.entry((slot.device, hop.job)).or_insert_with(|| Group {
            planner: Planner::new(policy, 1.0),
            policy,
            units: BTreeMap::new(),
            between: BTreeMap::new(),
        });
        group.between.remove(&trial);
        group.units.insert(lease.id, unit);
        self.has_begun = true;
    }

    /// Notes what a running unit took. `capacity`: the cores that the units of its device may take together. `done`:
    /// batches that the unit has done.
    pub(crate) fn record(
        &mut self,
        lease: LeaseId,
        sample: &UsageSample,
        (done, capacity): (u32, f64),
    ) {
        let group = self.groups.values_mut().find(|group| group.units.contains_key(&lease));
        let Some(group) = group else { return };
        group.planner.set_capacity(capacity);
        let Some(unit) = group.units.get_mut(&lease) else { return };
        unit.busy += sample.busy;
        let unit = *unit;
        // Of several units of a trial one stands for it.
        let speaks = group.units.iter().find(|(_, other)| other.trial == unit.trial);
        if speaks.is_none_or(|(first, _)| *first != lease) {
            return;
        }
        let UsageSample { span, busy, loss, .. } = *sample;
        group.planner.record(unit.trial, Sample { span, busy, loss });
        group.planner.estimate(unit.trial, unit.estimate(done, capacity));
    }

    /// Plans anew where units have come or gone, or a plan is due. Gives the CPU shares of all units under a policy where one has changed.
    /// `is_running`: is the unit in a slot? `is_held`: is its lease known yet?
    pub(crate) fn settle(
        &mut self,
        now: Micros,
        is_running: impl Fn(LeaseId) -> bool,
        is_held: impl Fn(LeaseId) -> bool,
    ) -> Option<Vec<(LeaseId, UnitCpuShare)>> {
        let mut has_changed = std::mem::take(&mut self.has_begun);
        for group in self.groups.values_mut() {
            for (lease, trial, held) in group.take_ended(&is_running) {
                self.ended.insert(lease, held);
                remember(&mut self.remembered, trial, held.carried);
                let until = now + group.policy.interval();
                group.between.insert(trial, (held.carried, until));
                has_changed = true;
            }
            has_changed |= group.plan(now);
        }
        self.groups.retain(|_, group| !group.units.is_empty() || !group.between.is_empty());
        self.ended.retain(|lease, _| is_held(*lease));
        has_changed.then(|| self.all())
    }

    /// When a plan is due; none where nothing runs under a policy.
    pub(crate) fn due(&self) -> Option<Micros> {
        let running = self.groups.values().filter(|group| !group.units.is_empty());
        running.filter_map(|group| group.planner.due()).min()
    }

    /// A held lease as the server is told of it, with what was seen of its trial.
    pub(crate) fn tell(&self, held: Held) -> Held {
        let running = self.groups.values().find_map(|group| group.held(held.lease));
        Held { cpu_share: running.or_else(|| self.ended.get(&held.lease).copied()), ..held }
    }

    fn all(&self) -> Vec<(LeaseId, UnitCpuShare)> {
        self.groups.values().flat_map(Group::cpu_shares).collect()
    }
}

fn remember(remembered: &mut VecDeque<(TrialKey, Carried)>, trial: TrialKey, carried: Carried) {
    remembered.retain(|(known, _)| *known != trial);
    if remembered.len() == MAX_REMEMBERED {
        remembered.pop_front();
    }
    remembered.push_back((trial, carried));
}

impl Group {
    /// Has a CPU share changed, or a unit come?
    fn plan(&mut self, now: Micros) -> bool {
        self.between.retain(|_, (_, until)| *until > now);
        let between = self.between.iter().map(|(trial, (carried, _))| (*trial, *carried));
        let running = self.units.values().map(|unit| (unit.trial, unit.carried));
        let trials: BTreeMap<TrialKey, Carried> = between.chain(running).collect();
        let trials: Vec<(TrialKey, Carried)> = trials.into_iter().collect();
        let moved = !self.planner.set_members(now, &trials).is_empty();
        let planned = !self.planner.run(now).is_empty();
        moved || planned
    }

    /// Takes out the units that aren't in a slot any more.
    fn take_ended(
        &mut self,
        is_running: impl Fn(LeaseId) -> bool,
    ) -> Vec<(LeaseId, TrialKey, HeldCpuShare)> {
        let ended = self.units.iter().filter(|(lease, _)| !is_running(**lease));
        let ended: Vec<_> = ended
            .filter_map(|(lease, unit)| Some((*lease, unit.trial, self.held(*lease)?)))
            .collect();
        self.units.retain(|lease, _| is_running(*lease));
        ended
    }

    fn held(&self, lease: LeaseId) -> Option<HeldCpuShare> {
        let trial = self.units.get(&lease)?.trial;
        let (cpu_share, carried) = (self.planner.cpu_share(trial)?, self.planner.carried(trial)?);
        Some(HeldCpuShare { cpu_share: cpu_share.get(), carried })
    }

    /// The CPU shares of the units. As weights they add up to as many as there are units, so that no job has more of a host for its policy.
    fn cpu_shares(&self) -> impl Iterator<Item = (LeaseId, UnitCpuShare)> {
        let cpu_share =
            |unit: &TrialUnit| self.planner.cpu_share(unit.trial).unwrap_or(CpuShare::FULL).get();
        let sum: f64 = self.units.values().map(cpu_share).sum();
        #[expect(clippy::cast_precision_loss, reason = "units of one host are few")]
        let units = self.units.len() as f64;
        self.units.iter().map(move |(lease, unit)| {
            let cpu_share = cpu_share(unit);
            let cap = (self.policy.apply() == Apply::Cap).then_some(cpu_share);
            let list = self.planner.list(unit.trial).unwrap_or_default();
            (*lease, UnitCpuShare { weight: cpu_share * units / sum, cap, cpu_share, list })
        })
    }
}

impl TrialUnit {
    /// How long the trial takes with all the processor, by what a batch has taken so far.
    fn estimate(&self, done: u32, capacity: f64) -> Estimate {
        let (busy, batches) = match done {
            0 => (self.carried.attained, self.before),
            done => (self.busy, u64::from(done)),
        };
        if batches == 0 || busy.is_zero() {
            return Estimate::default();
        }
        let left = self.batches.saturating_sub(self.before + u64::from(done));
        let takes = |of: u64| Some(whole(float(busy.0) / float(batches) * float(of) / capacity));
        Estimate { whole: takes(self.batches), remaining: takes(left) }
    }
}

#[expect(clippy::cast_precision_loss, reason = "an estimate")]
const fn float(number: u64) -> f64 {
    number as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a time that is not negative; one that is too long is the longest"
)]
const fn whole(micros: f64) -> Micros {
    Micros(micros as u64)
}
