//! Bought machines, and what they have cost: for whom, and for how long.
//!
//! A machine's whole cost, from launch to end, is shared out among the trials whose units its host held, in proportion to
//! the time for which it held them. So starts, idle times and lost units are paid by whoever the machine was there for, and
//! the sum over all trials is the cloud's bill.

use super::{FoldFault, Lease, State, is_default};
use serde::{Deserialize, Serialize};
use sojourn_protocol::{
    ids::{HostId, JobId, TrialId},
    machines::{MachineName, MachineReport},
    money::MicroUsd,
    quantity::mul_div,
    time::{Millis, UnixMillis},
};
use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    ops::AddAssign,
};

/// How long a machine that has ended is kept by itself. After that only its cost is, by trial.
pub const KEEP_ENDED_MACHINES: Millis = Millis::from_secs(7 * 24 * 3600);

/// An amount, and what it would have been on demand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// The amount that was paid.
    pub paid: MicroUsd,
    /// The amount that the same time on the same types would have cost on demand.
    pub on_demand: MicroUsd,
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Cost) {
        self.paid += other.paid;
        self.on_demand += other.on_demand;
    }
}

/// Times for which a machine held units, by job and trial.
pub type HeldTimes = BTreeMap<JobId, BTreeMap<TrialId, Millis>>;
/// Costs by job and trial.
pub type TrialCosts = BTreeMap<JobId, BTreeMap<TrialId, Cost>>;

/// A bought machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// How it was bought. `None` as long as its buyer hasn't said so, though its host has enrolled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<MachineReport>,
    /// The machine's host, once it has enrolled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostId>,
    /// Since when its host holds no unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_since: Option<UnixMillis>,
    /// The times for which it held units that have ended.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub held: HeldTimes,
}

impl Machine {
    fn hold(held: &mut HeldTimes, job: JobId, trial: TrialId, time: Millis) {
        let sum = held.entry(job).or_default().entry(trial).or_default();
        sum.0 = sum.0.saturating_add(time.0);
    }

    /// Has it ended, as far as its buyer has said?
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.report.as_ref().is_some_and(|report| report.ended_at.is_some())
    }
}

/// All bought machines.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machines {
    /// The machines that run, and those that ended less than [`KEEP_ENDED_MACHINES`] ago.
    #[serde(default, skip_serializing_if = "is_default")]
    known: BTreeMap<MachineName, Machine>,
    /// The costs of all others.
    #[serde(default, skip_serializing_if = "is_default")]
    settled: Costs,
}

/// All costs up to a time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Costs {
    /// By trial.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub trials: TrialCosts,
    /// Of machines that held no unit.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unused: Cost,
    /// Of jobs that were deleted.
    #[serde(default, skip_serializing_if = "is_default")]
    pub deleted: Cost,
}

impl Costs {
    /// The sum.
    #[must_use]
    pub fn total(&self) -> Cost {
        let mut total = self.unused;
        total += self.deleted;
        self.trials.values().flat_map(BTreeMap::values).for_each(|cost| total += *cost);
        total
    }

    /// The cost of a job.
    #[must_use]
    pub fn of_job(&self, job: JobId) -> Cost {
        let mut sum = Cost::default();
        self.trials.get(&job).into_iter().flat_map(BTreeMap::values).for_each(|cost| sum += *cost);
        sum
    }

    /// Shares a cost out in proportion to times. The parts are whole, and their sum is the cost.
    fn share(&mut self, cost: Cost, held: &HeldTimes) {
        let mut times: Vec<(JobId, TrialId, u64)> = Vec::new();
        for (job, trials) in held {
            times.extend(trials.iter().map(|(trial, time)| (*job, *trial, time.0)));
        }
        let whole = times.iter().fold(0_u64, |sum, (.., time)| sum.saturating_add(*time));
        if whole == 0 {
            // Units that were held for no time at all: the first has it.
            match times.first() {
                Some((job, trial, _)) => self.add(*job, *trial, cost),
                None => self.unused += cost,
            }
            return;
        }
        let (mut before, mut shared) = (0_u64, Cost::default());
        for (job, trial, time) in times {
            before = before.saturating_add(time);
            let up_to = |amount: MicroUsd| MicroUsd(mul_div(amount.0, before, whole));
            let sum = Cost { paid: up_to(cost.paid), on_demand: up_to(cost.on_demand) };
            let part = Cost {
                paid: sum.paid.saturating_sub(shared.paid),
                on_demand: sum.on_demand.saturating_sub(shared.on_demand),
            };
            shared = sum;
            self.add(job, trial, part);
        }
    }

    fn add(&mut self, job: JobId, trial: TrialId, cost: Cost) {
        *self.trials.entry(job).or_default().entry(trial).or_default() += cost;
    }

    /// Jobs that are gone are counted together.
    fn without(mut self, is_there: impl Fn(JobId) -> bool) -> Self {
        let gone: BTreeSet<JobId> =
            self.trials.keys().copied().filter(|job| !is_there(*job)).collect();
        for job in gone {
            let trials = self.trials.remove(&job).unwrap_or_default();
            trials.values().for_each(|cost| self.deleted += *cost);
        }
        self
    }
}

impl Machines {
    /// Was none ever heard of?
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The machines that run, and those that ended lately, by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&MachineName, &Machine)> {
        self.known.iter()
    }

    /// A machine by its name.
    #[must_use]
    pub fn get(&self, name: &MachineName) -> Option<&Machine> {
        self.known.get(name)
    }

    /// A host has enrolled as this machine.
    pub(super) fn enrolled(&mut self, name: &MachineName, host: HostId, at: UnixMillis) {
        let machine = self.known.entry(name.clone()).or_default();
        (machine.host, machine.idle_since) = (Some(host), Some(at));
    }

    /// The machine's host holds a unit.
    pub(super) fn took_unit(&mut self, name: &MachineName) {
        if let Some(machine) = self.known.get_mut(name) {
            machine.idle_since = None;
        }
    }

    /// The machine's host holds a unit no more. `idle`: nor any other.
    pub(super) fn gave_unit(
        &mut self,
        name: &MachineName,
        lease: &Lease,
        idle: bool,
        at: UnixMillis,
    ) {
        let Some(machine) = self.known.get_mut(name) else { return };
        let (job, trial) = (lease.unit.job(), lease.unit.trial());
        Machine::hold(&mut machine.held, job, trial, at - lease.granted_at);
        machine.idle_since = idle.then_some(at);
    }

    /// A host was forgotten. A machine whose buyer never said a word of it goes with it.
    pub(super) fn host_forgotten(&mut self, host: HostId) {
        self.known.retain(|_, machine| machine.host != Some(host) || machine.report.is_some());
    }
}

impl State {
    /// Takes in the buyer's reports on machines. From now on a machine that ended long ago is counted by trial alone.
    pub(super) fn machines_reported(&mut self, reports: &[MachineReport], at: UnixMillis) {
        for report in reports {
            let machine = self.machines.known.entry(report.name.clone()).or_default();
            machine.report = Some(report.clone());
        }
        let is_old = |report: &MachineReport| {
            report.ended_at.is_some_and(|ended| ended + KEEP_ENDED_MACHINES < at)
        };
        let old = self.machines.known.iter();
        let old = old.filter(|(_, machine)| machine.report.as_ref().is_some_and(is_old));
        for name in old.map(|(name, _)| name.clone()).collect::<Vec<_>>() {
            let Some(Machine { report: Some(report), held, .. }) =
                self.machines.known.remove(&name)
            else {
                continue;
            };
            let mut costs = std::mem::take(&mut self.machines.settled);
            costs.share(cost_of(&report, at), &held);
            self.machines.settled = costs.without(|job| self.jobs.contains_key(&job));
        }
    }

    /// The costs of all machines up to `now`. Units that are held count for as long as they have been.
    #[must_use]
    pub fn costs(&self, now: UnixMillis) -> Costs {
        let mut costs = self.machines.settled.clone();
        for machine in self.machines.known.values() {
            let Some(report) = &machine.report else { continue };
            let held = self.held_times(machine, now);
            costs.share(cost_of(report, now), &held);
        }
        costs.without(|job| self.jobs.contains_key(&job))
    }

    /// The times for which a machine's host has held units up to now.
    fn held_times<'a>(&self, machine: &'a Machine, now: UnixMillis) -> Cow<'a, HeldTimes> {
        let mut held = Cow::Borrowed(&machine.held);
        let host = machine.host.and_then(|host| self.hosts.get(&host));
        let live = host.into_iter().flat_map(|host| &host.live);
        for lease in live.filter_map(|lease| self.leases.get(lease)) {
            let (job, trial) = (lease.unit.job(), lease.unit.trial());
            Machine::hold(held.to_mut(), job, trial, now - lease.granted_at);
        }
        held
    }

    /// The bought machine that a host is.
    #[must_use]
    pub fn machine_of(&self, host: HostId) -> Option<&MachineName> {
        self.hosts.get(&host)?.machine.as_ref()
    }

    /// The host of a lease holds it from now on.
    pub(super) fn machine_took(&mut self, host: HostId) {
        if let Some(name) = self.hosts.get(&host).and_then(|host| host.machine.as_ref()) {
            self.machines.took_unit(name);
        }
    }

    /// The host of a lease holds it no more.
    pub(super) fn machine_gave(&mut self, lease: &Lease, at: UnixMillis) -> Result<(), FoldFault> {
        let host = self.hosts.get(&lease.host).ok_or(FoldFault::UnknownHost(lease.host))?;
        let idle = host.live.is_empty();
        if let Some(name) = &host.machine {
            self.machines.gave_unit(name, lease, idle, at);
        }
        Ok(())
    }
}

fn cost_of(report: &MachineReport, now: UnixMillis) -> Cost {
    Cost { paid: report.cost(now), on_demand: report.on_demand_cost(now) }
}
