//! Blocks: hops of a trial that a machine trains in a row.

use super::instance::Instance;
use crate::plan::{Step, problem::id};

/// Hops of a trial that a machine trains in a row. Its checkpoint is sent after each epoch, and at the end. The machine
/// trains on meanwhile, but no further than until the next one is to be sent.
///
/// ```text
///   machine   [ epoch 3 ][ epoch 4 ]         [ epoch 5 ]
///   line                 [ checkpoint 3 .... ][ checkpoint 4 .... ][ checkpoint 5 .... ]
/// ```
#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    pub(super) trial: usize,
    pub(super) machine: usize,
    /// The first of them, and the one behind the last.
    pub(super) first: u64,
    pub(super) end: u64,
    pub(super) start: u64,
    /// When the machine's line has sent what it had before.
    pub(super) line_free: u64,
}

impl Block {
    /// Adds the block's hops, one by one, to `steps`.
    pub(super) fn steps(&self, instance: &Instance<'_>, steps: &mut Vec<Step>) {
        self.walk(instance, &mut |step| steps.push(step));
    }

    /// When it is trained and its last checkpoint begins to be sent, each hop being whole, as steps have it.
    pub(super) fn ends(&self, instance: &Instance<'_>) -> u64 {
        self.walk(instance, &mut |_| {})
    }

    /// Goes through its hops. When the last checkpoint begins to be sent.
    fn walk(&self, instance: &Instance<'_>, step: &mut dyn FnMut(Step)) -> u64 {
        let (trial, machine) = (id(self.trial), id(self.machine));
        let latency = instance.problem.machines[self.machine].latency;
        let interval = instance.transfer(self.trial, self.machine).interval;
        let (mut start, mut line_free) = (self.start, self.line_free);
        let (mut first, mut sends) = (self.first, self.start);
        while first < self.end {
            let end_of_epoch = instance.next_epoch(self.trial, first).min(self.end);
            for hop in first..end_of_epoch {
                let (epoch, shard) = instance.hop(self.trial, hop);
                let end = start + instance.problem.time(trial, shard, machine);
                step(Step { trial, epoch, shard, machine, start, end });
                sends = end;
                start = end + latency;
            }
            sends = sends.max(line_free);
            (start, line_free) = (start.max(sends), sends + interval);
            first = end_of_epoch;
        }
        sends
    }

    /// About the same, at once: as if all hops of a trial took equally long.
    pub(super) fn ends_about(&self, instance: &Instance<'_>) -> u64 {
        let latency = instance.problem.machines[self.machine].latency;
        let interval = instance.transfer(self.trial, self.machine).interval;
        let hop = instance.hop_takes(self.trial, self.machine) + latency;
        let train = |hops: u64| hops * hop;
        let hops = self.end - self.first;
        if interval == 0 {
            return self.start + train(hops) - latency;
        }
        let first = instance.next_epoch(self.trial, self.first).min(self.end) - self.first;
        let sends = (self.start + train(first) - latency).max(self.line_free);
        let further = instance.epochs_of(self.trial, self.first, self.end) - 1;
        sends + train(hops - first).max(further * interval)
    }
}
