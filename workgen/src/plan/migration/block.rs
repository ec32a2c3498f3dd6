//! Blocks: hops of a trial that a machine trains in a row.

use super::instance::Instance;
use crate::plan::{Step, problem::id};

/// Hops of a trial that a machine trains in a row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    pub(super) trial: usize,
    pub(super) machine: usize,
    /// The first of them, and the one behind the last.
    pub(super) first: u64,
    pub(super) end: u64,
    pub(super) start: u64,
}

impl Block {
    /// Its hops, one by one.
    pub(super) fn steps(&self, instance: &Instance<'_>, steps: &mut Vec<Step>) {
        let (trial, machine) = (id(self.trial), id(self.machine));
        let latency = instance.problem.machines[self.machine].latency;
        let mut start = self.start;
        for hop in self.first..self.end {
            let (epoch, shard) = instance.hop(self.trial, hop);
            let end = start + instance.problem.time(trial, shard, machine);
            steps.push(Step { trial, epoch, shard, machine, start, end });
            start = end + latency;
        }
    }

    /// Microseconds of its hops, each of them whole, as steps have it.
    pub(super) fn takes(&self, instance: &Instance<'_>) -> u64 {
        let (trial, machine) = (id(self.trial), id(self.machine));
        let time = |hop| instance.problem.time(trial, instance.hop(self.trial, hop).1, machine);
        (self.first..self.end).map(time).sum()
    }

    /// About the same, at once: as if all hops of a trial took equally long.
    pub(super) fn takes_about(&self, instance: &Instance<'_>) -> u64 {
        (self.end - self.first) * instance.hop_takes(self.trial, self.machine)
    }
}
