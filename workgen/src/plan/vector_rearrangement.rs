//! Cerebro's section 5.2: an open shop by vector rearrangement.
//!
//! All places visit the trials in one order, each beginning a part of the whole later than the one
//! before it, and going on from the first after the last:
//!
//! ```text
//!   place 0   a a a b b c c c d d
//!   place 1   c c d d d a a b b b      the same order a b c d, shifted by half of the whole
//! ```
//!
//! A trial is at no two places at a time as long as all places are about as far in the order, whichever
//! trials come first. That is a question of vectors: with one for each trial, of what it takes at each place
//! less what it takes at the first, all partial sums must stay small. E. Steinitz showed that some order of
//! vectors that add up to zero has sums within a bound that only their dimension and length decide; I.
//! Bárány ("A vector-sum theorem and its application to improving flow shop guarantees", Math. of OR
//! 6(3), 1981) how to find one; T. Fiala ("An algorithm for the open-shop problem", Math. of OR 8(1),
//! 1983) that the largest load is then reached where it is many times the longest hop. Here the next
//! trial is the one that keeps the sums least, which is simpler, and without that proof.
//!
//! Loads are made equal first by padding hops up to the longest. Where the loads are too small for the
//! shifts to keep hops of a trial apart, they wait for each other. So there is a schedule for every
//! problem, and a good one where trials are many times as many as places. Shards with several holders
//! are given to the least loaded first.

#![expect(clippy::indexing_slicing, reason = "ids of a checked problem are indices of its tables")]

use super::{Budget, Planner, Problem, Schedule, Step, problem::id, shop::Shop};

/// One order of the trials for all places, each shifted.
#[derive(Debug, Clone, Copy, Default)]
pub struct VectorRearrangement;

impl Planner for VectorRearrangement {
    fn plan(&self, problem: &Problem, _: u64, _: &mut dyn Budget) -> Option<Schedule> {
        let shop = Shop::new(problem);
        let place_of = assign(&shop);
        let table = padded(&shop, &place_of);
        let order = rearrange(&table);
        Some(shifted(&shop, &place_of, &table, &order))
    }
}

/// By shard: its place; of several the one with the least load so far, the largest shards first.
fn assign(shop: &Shop<'_>) -> Vec<u32> {
    let total = |shard: u32, place: u32| -> u64 {
        (0..id(shop.trials)).map(|trial| shop.time(trial, shard, place)).sum()
    };
    let mut loads = vec![0_u64; shop.places];
    let mut place_of = shop.place_of.clone();
    let mut free = Vec::new();
    for shard in 0..id(shop.shards) {
        match loads.get_mut(place_of[shard as usize] as usize) {
            Some(load) => *load += total(shard, place_of[shard as usize]),
            None => {
                free.push(((0..id(shop.trials)).map(|t| shop.best(t, shard)).sum::<u64>(), shard))
            }
        }
    }
    free.sort_unstable_by_key(|(work, shard)| (std::cmp::Reverse(*work), *shard));
    for (_, shard) in free {
        let all: Vec<u32> = (0..id(shop.places)).collect();
        let holders = shop.holders[shard as usize].as_ref().unwrap_or(&all);
        let ends =
            holders.iter().map(|place| (loads[*place as usize] + total(shard, *place), *place));
        if let Some((load, place)) = ends.min() {
            loads[place as usize] = load;
            place_of[shard as usize] = place;
        }
    }
    place_of
}

/// By trial, then place: what it takes there in an epoch, padded so that all places take the same in all.
fn padded(shop: &Shop<'_>, place_of: &[u32]) -> Vec<Vec<u64>> {
    let mut table = vec![vec![0_u64; shop.places]; shop.trials];
    for (trial, row) in table.iter_mut().enumerate() {
        for (shard, place) in place_of.iter().enumerate() {
            if let Some(time) = row.get_mut(*place as usize) {
                *time += shop.time(id(trial), id(shard), *place);
            }
        }
    }
    let longest = table.iter().flatten().copied().max().unwrap_or(0);
    let load = |place: usize| table.iter().map(|row| row[place]).sum::<u64>();
    let loads: Vec<u64> = (0..shop.places).map(load).collect();
    let most = loads.iter().copied().max().unwrap_or(0);
    for (place, load) in loads.into_iter().enumerate() {
        let mut lacking = most - load;
        for row in &mut table {
            let more = lacking.min(longest - row[place]);
            row[place] += more;
            lacking -= more;
        }
    }
    table
}

/// An order of the trials in which no place gets far ahead of another; ties to the lower id.
fn rearrange(table: &[Vec<u64>]) -> Vec<usize> {
    let mut left: Vec<usize> = (0..table.len()).collect();
    let mut sums = vec![0_u64; table.first().map_or(0, Vec::len)];
    let mut order = Vec::with_capacity(table.len());
    while !left.is_empty() {
        let spread = |trial: usize| {
            let sums = sums.iter().zip(&table[trial]).map(|(sum, time)| sum + time);
            let (low, high) =
                sums.fold((u64::MAX, 0), |(low, high), sum| (low.min(sum), high.max(sum)));
            high.saturating_sub(low)
        };
        let next = left.iter().enumerate().min_by_key(|(_, trial)| (spread(**trial), **trial));
        let Some((index, _)) = next else { break };
        let trial = left.remove(index);
        sums.iter_mut().zip(&table[trial]).for_each(|(sum, time)| *sum += time);
        order.push(trial);
    }
    order
}

/// The order at each place, shifted; then each hop as soon as its trial and its place are free.
fn shifted(shop: &Shop<'_>, place_of: &[u32], table: &[Vec<u64>], order: &[usize]) -> Schedule {
    let whole = order.iter().filter_map(|trial| table[*trial].first()).sum::<u64>().max(1);
    let mut at: Vec<u64> =
        (0..shop.places as u64).map(|place| whole / shop.places as u64 * place).collect();
    let mut visits = Vec::new();
    for &trial in order {
        let plan = &shop.problem.trials[trial];
        let open = |shard: u32, epoch: u32| epoch > 0 || plan.open.contains(&shard);
        for (shard, &place) in place_of.iter().enumerate() {
            for epoch in (0..=plan.epochs_after).filter(|epoch| open(id(shard), *epoch)) {
                let wish = at[place as usize] % whole;
                visits.push((epoch, wish, id(trial), id(shard), place));
            }
        }
        at.iter_mut().zip(&table[trial]).for_each(|(at, time)| *at += time);
    }
    visits.sort_unstable();
    let mut trials: Vec<u64> = shop.problem.trials.iter().map(|trial| trial.free_at).collect();
    let mut places: Vec<u64> = shop.problem.places.iter().map(|place| place.free_at).collect();
    let steps = visits.into_iter().map(|(epoch, _, trial, shard, place)| {
        let start = trials[trial as usize].max(places[place as usize]);
        let end = start + shop.time(trial, shard, place);
        trials[trial as usize] = end;
        places[place as usize] = end + shop.problem.places[place as usize].latency;
        Step { trial, epoch, shard, place, start, end }
    });
    Schedule::new(steps.collect())
}
