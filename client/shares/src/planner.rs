//! The CPU shares of one host: who runs there, and when they are planned next.

use crate::{
    cpu_share::CpuShare,
    first,
    flowcon::{self, Learning},
    history::Sample,
    member::{Estimate, Member},
};
use sojourn_protocol::{
    cpu_shares::{Carried, List},
    ids::{JobId, TrialId},
    quantity::Micros,
    spec::{CpuSharePolicy, First, Order},
};
use std::collections::{BTreeMap, BTreeSet};

/// A trial of a job.
pub type TrialKey = (JobId, TrialId);

/// From now on a trial has this CPU share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SetCpuShare {
    /// The trial.
    pub trial: TrialKey,
    /// How much.
    pub cpu_share: CpuShare,
}

/// Why CPU shares are planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// The time has come.
    Timer,
    /// A trial has come or gone.
    Members,
}

/// Divides one host's processor.
#[derive(Debug, Clone)]
pub struct Planner {
    policy: CpuSharePolicy,
    /// The cores that trials may use.
    capacity: f64,
    members: BTreeMap<TrialKey, Member>,
    interval: Micros,
    due: Option<Micros>,
}

impl Planner {
    /// A host on which nothing runs. `capacity`: the cores that its trials may use together, above 0.
    #[must_use]
    pub fn new(policy: CpuSharePolicy, capacity: f64) -> Self {
        let interval = policy.interval();
        Self { policy, capacity, members: BTreeMap::new(), interval, due: None }
    }

    /// The owner allows another number of cores.
    pub const fn set_capacity(&mut self, capacity: f64) {
        self.capacity = capacity;
    }

    /// Says which trials run here from now on, with what they come with (FlowCon's algorithm 2). Of those that are here already
    /// what is known here counts. Gives the CPU shares that change.
    pub fn set_members(&mut self, now: Micros, trials: &[(TrialKey, Carried)]) -> Vec<SetCpuShare> {
        let present: BTreeSet<TrialKey> = trials.iter().map(|(trial, _)| *trial).collect();
        if self.members.keys().copied().eq(present.iter().copied()) {
            return Vec::new();
        }
        self.members.retain(|trial, _| present.contains(trial));
        let mut came = BTreeSet::new();
        let window = self.policy.interval();
        for (trial, carried) in trials {
            self.members.entry(*trial).or_insert_with(|| {
                came.insert(*trial);
                Member::new(now, window, carried)
            });
        }
        self.interval = window;
        let mut set = self.plan(now, Cause::Members);
        // Whoever came has to be given a CPU share, also where it is the one that a trial begins with.
        let told: BTreeSet<TrialKey> = set.iter().map(|set| set.trial).collect();
        set.extend(came.difference(&told).filter_map(|trial| self.set(*trial)));
        set
    }

    /// A trial has run a little further. One that isn't here is left alone.
    pub fn record(&mut self, trial: TrialKey, sample: Sample) {
        if let Some(member) = self.members.get_mut(&trial) {
            member.history.record(sample);
        }
    }

    /// How long a trial takes is known better. Where its rest decides and wasn't known before, a plan is due.
    pub fn estimate(&mut self, trial: TrialKey, estimate: Estimate) {
        let Some(member) = self.members.get_mut(&trial) else { return };
        let before = std::mem::replace(&mut member.estimate, estimate);
        let by_rest = matches!(
            self.policy,
            CpuSharePolicy::First(First { order: Order::ShortestRemaining, .. })
        );
        if by_rest && before.remaining.is_none() && estimate.remaining.is_some() {
            self.due = Some(Micros::ZERO);
        }
    }

    /// When [`Planner::run`] is to be called next; `None` while nothing runs, or CPU shares never change.
    #[must_use]
    pub const fn due(&self) -> Option<Micros> {
        self.due
    }

    /// Plans anew if that is due. Gives the CPU shares that change.
    pub fn run(&mut self, now: Micros) -> Vec<SetCpuShare> {
        match self.due {
            Some(due) if due <= now => self.plan(now, Cause::Timer),
            _ => Vec::new(),
        }
    }

    /// The CPU share of a trial that is here.
    #[must_use]
    pub fn cpu_share(&self, trial: TrialKey) -> Option<CpuShare> {
        self.members.get(&trial).map(|member| member.cpu_share)
    }

    /// The list of a trial that is here.
    #[must_use]
    pub fn list(&self, trial: TrialKey) -> Option<List> {
        self.members.get(&trial).map(|member| member.list)
    }

    /// The data that goes with a trial to another host.
    #[must_use]
    pub fn carried(&self, trial: TrialKey) -> Option<Carried> {
        self.members.get(&trial).map(|member| member.history.carried(member.list))
    }

    fn set(&self, trial: TrialKey) -> Option<SetCpuShare> {
        self.cpu_share(trial).map(|cpu_share| SetCpuShare { trial, cpu_share })
    }

    fn plan(&mut self, now: Micros, cause: Cause) -> Vec<SetCpuShare> {
        let before: Vec<CpuShare> = self.members.values().map(|member| member.cpu_share).collect();
        match &self.policy {
            CpuSharePolicy::Equal => {}
            CpuSharePolicy::First(policy) => first::plan(policy, self.members.values_mut()),
            CpuSharePolicy::FlowCon(flowcon) => {
                let members = self.members.values_mut();
                let learning = flowcon::plan(flowcon, now, self.capacity, members);
                self.interval = match (learning, cause) {
                    (Learning::Some, _) => flowcon.interval,
                    (Learning::None, Cause::Timer) => {
                        let doubled = Micros(self.interval.0.saturating_mul(2));
                        doubled.min(flowcon.longest_interval)
                    }
                    (Learning::None, Cause::Members) => self.interval,
                };
            }
        }
        let is_planned = self.policy != CpuSharePolicy::Equal && !self.members.is_empty();
        self.due = is_planned.then(|| now + self.interval);
        let changed = self.members.iter().zip(before);
        changed
            .filter(|((_, member), before)| member.cpu_share != *before)
            .map(|((trial, member), _)| SetCpuShare { trial: *trial, cpu_share: member.cpu_share })
            .collect()
    }
}
