//! Places at work on their shares: each trains an epoch of the first of its trials that is there, or else of the
//! next to come.

use super::ground::{Ground, Share};
use crate::plan::{Step, problem::id};
use std::ops::Range;

/// Hops of one epoch that a place trains in a row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    trial: usize,
    place: usize,
    first: u64,
    end: u64,
    start: u64,
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
}

/// About when all is done and sent.
pub(super) fn ends(ground: &Ground<'_>, shares: &[Vec<Share>]) -> u64 {
    run(ground, shares, Ground::takes_about, &mut |_| {})
}

/// Works all shares off, block by block.
pub(super) fn work_off(ground: &Ground<'_>, shares: &[Vec<Share>], block: &mut dyn FnMut(Block)) {
    run(ground, shares, Ground::takes, block);
}

/// Where a trial is.
#[derive(Clone, Copy)]
struct Way {
    /// Its next hop.
    next: u64,
    /// When that may begin, and where without a move.
    at: u64,
    place: Option<usize>,
}

/// How long some hops of a trial take at a place.
type Takes<'a> = fn(&Ground<'a>, usize, Range<u64>, usize) -> u64;

/// Works all shares off; says when the last is done and sent.
fn run<'a>(
    ground: &Ground<'a>,
    shares: &[Vec<Share>],
    takes: Takes<'a>,
    block: &mut dyn FnMut(Block),
) -> u64 {
    let problem = ground.problem;
    let ways = problem.trials.iter().map(|trial| Way {
        next: 0,
        at: trial.free_at,
        place: trial.at.map(|at| at as usize),
    });
    let mut ways: Vec<Way> = ways.collect();
    let mut now: Vec<u64> = problem.places.iter().map(|place| place.free_at).collect();
    let mut left: Vec<Vec<Share>> = shares.to_vec();
    let mut last = 0;
    let mut places_of: Vec<Vec<usize>> = vec![Vec::new(); problem.trials.len()];
    for (place, shares) in left.iter().enumerate() {
        shares.iter().for_each(|share| places_of[share.trial].push(place));
    }
    let busy: Vec<usize> = (0..left.len()).filter(|place| !left[*place].is_empty()).collect();
    let mut next: Vec<Option<(u64, usize)>> = (0..left.len())
        .map(|place| first(ground, &ways, (place, now[place]), &left[place]))
        .collect();
    loop {
        let soonest = busy.iter().filter_map(|&place| next[place].map(|(at, n)| (at, place, n)));
        let Some((start, place, index)) = soonest.min() else { return last };
        let share = left[place][index];
        let trial = &problem.trials[share.trial];
        let way = &mut ways[share.trial];
        let until = ground.next_epoch(share.trial, way.next).min(share.end);
        let hops = until - way.next;
        let latency = problem.places[place].latency;
        let takes = takes(ground, share.trial, way.next..until, place) + latency * (hops - 1);
        block(Block { trial: share.trial, place, first: way.next, end: until, start });
        let end = start + takes;
        now[place] = end + latency;
        *way = Way { next: until, at: end + trial.send, place: Some(place) };
        last = last.max(way.at);
        if until == share.end {
            left[place].remove(index);
        }
        // Others don't know the difference.
        for &place in &places_of[share.trial] {
            next[place] = first(ground, &ways, (place, now[place]), &left[place]);
        }
    }
}

/// The share that a place goes on with, and when.
fn first(
    ground: &Ground<'_>,
    ways: &[Way],
    (place, now): (usize, u64),
    shares: &[Share],
) -> Option<(u64, usize)> {
    let mut best: Option<(u64, usize)> = None;
    for (index, share) in shares.iter().enumerate() {
        let way = ways[share.trial];
        if way.next < share.first {
            continue;
        }
        let moves = way.place.is_some_and(|at| at != place);
        let fetch = if moves { ground.problem.trials[share.trial].fetch } else { 0 };
        let start = now.max(way.at + fetch);
        if best.is_none_or(|(before, _)| start < before) {
            best = Some((start, index));
        }
        if start <= now {
            break;
        }
    }
    best
}
