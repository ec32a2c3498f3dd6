//! A merge by ranges in simulated time: what each process does next, at the costs that were measured.
//!
//! Each process has one core, and a link to the store that carries as much each way; what a process fetches comes while
//! it computes, so a range takes the longer of the two. The leader hashes whatever is next in a file's order before it
//! takes a range, as its threads share its core.

use crate::costs::Costs;
use std::{cmp::Reverse, collections::BinaryHeap};

/// The time of one range, for whoever does it.
#[derive(Debug, Clone, Copy)]
struct Range {
    own: f64,
    others: f64,
    /// For the leader to hash it where it has made it, and where another has.
    hash_own: f64,
    hash_others: f64,
}

/// Merges a second of so many processes, over links of so many bytes a second.
pub(crate) fn merges_per_second(costs: &Costs, link: f64, processes: usize) -> f64 {
    let alone = read_and_check(costs, link);
    let squares = round(costs, squares(costs, link), processes);
    let merge = round(costs, merge(costs, link), processes);
    1.0 / (alone + squares + merge)
}

/// The merges a second that no number of processes exceeds: the leader reads and checks, and hashes what others have made.
pub(crate) fn bound(costs: &Costs, link: f64) -> f64 {
    let hashing = merge(costs, link).hash_others * costs.ranges as f64;
    1.0 / (read_and_check(costs, link) + hashing)
}

/// The leader's seconds before anything can be shared: the upload is fetched, hashed, screened, and its ranges hashed.
fn read_and_check(costs: &Costs, link: f64) -> f64 {
    costs.checkpoint_bytes * (1.0 / link + 2.0 * costs.hash + costs.screen)
}

fn squares(costs: &Costs, link: f64) -> Range {
    let bytes = costs.checkpoint_bytes / costs.ranges as f64;
    let base = bytes * costs.packed / link;
    let work = bytes * (costs.unpack + costs.squares);
    Range {
        own: work.max(base),
        others: (work + bytes * costs.hash).max(base + bytes / link),
        hash_own: 0.0,
        hash_others: 0.0,
    }
}

fn merge(costs: &Costs, link: f64) -> Range {
    let ranges = costs.ranges as f64;
    let (bytes, state) = (costs.checkpoint_bytes / ranges, costs.state_bytes / ranges);
    let read = (2.0 * bytes + state) * costs.packed / link;
    let made = bytes + state;
    let work = (2.0 * bytes + state) * costs.unpack
        + bytes * costs.merge
        + made * (costs.hash + costs.pack);
    let written = made * costs.packed / link;
    Range {
        own: work.max(read).max(written),
        others: (work + bytes * costs.hash).max(read + bytes / link).max(written),
        hash_own: made * costs.hash,
        hash_others: (made * (costs.unpack + costs.hash)).max(made * costs.packed / link),
    }
}

/// How long a round takes.
fn round(costs: &Costs, of: Range, processes: usize) -> f64 {
    let mut left = costs.ranges;
    // When each range is there to be hashed, in the order in which they were taken.
    let mut made: Vec<Option<(f64, f64)>> = vec![None; costs.ranges];
    let mut others: BinaryHeap<Reverse<Ended>> =
        (1..processes).map(|_| Reverse(Ended(0.0))).collect();
    let (mut leader, mut hashed) = (0.0f64, 0);
    while hashed < costs.ranges {
        // Whoever is free first takes the next range.
        while left > 0 && others.peek().is_some_and(|Reverse(free)| free.0 <= leader) {
            let Reverse(Ended(free)) = others.pop().unwrap();
            let ended = free + of.others;
            made[costs.ranges - left] = Some((ended, of.hash_others));
            left -= 1;
            others.push(Reverse(Ended(ended)));
        }
        match made[hashed] {
            Some((at, cost)) if at <= leader => {
                leader += cost;
                hashed += 1;
            }
            _ if left > 0 => {
                leader += of.own;
                made[costs.ranges - left] = Some((leader, of.hash_own));
                left -= 1;
            }
            // It waits for another.
            Some((at, _)) => leader = at,
            None => unreachable!("every range was taken"),
        }
    }
    leader
}

/// A time, ordered.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Ended(f64);

impl Eq for Ended {}

impl PartialOrd for Ended {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ended {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}
