//! What a place trains in one go.

use super::ground::Ground;
use crate::plan::{Step, problem::id};

/// Hops of a trial that a place trains in a row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    pub(super) trial: usize,
    pub(super) place: usize,
    /// The first of them, and the one behind the last.
    pub(super) first: u64,
    pub(super) end: u64,
    pub(super) start: u64,
}

impl Block {
    /// Its hops, one by one.
    pub(super) fn steps(&self, ground: &Ground<'_>, steps: &mut Vec<Step>) {
        let (trial, place) = (id(self.trial), id(self.place));
        let latency = ground.problem.places[self.place].latency;
        let mut start = self.start;
        for hop in self.first..self.end {
            let (epoch, shard) = ground.hop(self.trial, hop);
            let end = start + ground.problem.time(trial, shard, place);
            steps.push(Step { trial, epoch, shard, place, start, end });
            start = end + latency;
        }
    }

    /// Microseconds of its hops, each of them whole, as steps have it.
    pub(super) fn takes(&self, ground: &Ground<'_>) -> u64 {
        let (trial, place) = (id(self.trial), id(self.place));
        let time = |hop| ground.problem.time(trial, ground.hop(self.trial, hop).1, place);
        (self.first..self.end).map(time).sum()
    }

    /// About the same, at once: as if all hops of a trial took equally long.
    pub(super) fn takes_about(&self, ground: &Ground<'_>) -> u64 {
        (self.end - self.first) * ground.hop_takes(self.trial, self.place)
    }
}
