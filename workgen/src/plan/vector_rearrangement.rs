//! Cerebro's section 5.2: an open shop by vector rearrangement.
//!
//! All machines visit the trials in one order, each beginning a part of the whole later than the one
//! before it, and going on from the first after the last:
//!
//! ```text
//!   machine 0   a a a b b c c c d d
//!   machine 1   c c d d d a a b b b      the same order a b c d, shifted by half of the whole
//! ```
//!
//! A trial is at no two machines at a time as long as all machines are about as far in the order, whichever
//! trials come first. That is a question of vectors: with one for each trial, of what it takes at each machine
//! less what it takes at the first, all partial sums must stay small. E. Steinitz showed that some order of
//! vectors that add up to zero has sums within a bound that only their dimension and length decide; I.
//! Bárány ("A vector-sum theorem and its application to improving flow shop guarantees", Math. of OR
//! 6(3), 1981) how to find one; T. Fiala ("An algorithm for the open-shop problem", Math. of OR 8(1),
//! 1983) that the largest load is then reached where it is many times the longest hop. Here the next
//! trial is the one that keeps the sums least, which is simpler, and without that proof.
//!
//! Loads are made equal first by padding hops up to the longest. Where the loads are too small for the
//! shifts to keep hops of a trial apart, they wait for each other. So there is a schedule for every
//! problem, and a good one where trials are many times as many as machines. Shards with several holders
//! are given to the least loaded first.

#![expect(clippy::indexing_slicing, reason = "ids of a checked problem are indices of its tables")]

use super::{Budget, Planner, Problem, Schedule, Step, problem::id, shop::Shop};

/// One order of the trials for all machines, each shifted.
#[derive(Debug, Clone, Copy, Default)]
pub struct VectorRearrangement;

impl Planner for VectorRearrangement {
    fn plan_class(&self, problem: &Problem, _: u64, _: &mut dyn Budget) -> Option<Schedule> {
        let shop = Shop::new(problem);
        let machine_of = assign(&shop);
        let table = padded(&shop, &machine_of);
        let order = rearrange(&table);
        Some(shifted(&shop, &machine_of, &table, &order))
    }
}

/// By shard: its machine; of several the one with the least load so far, the largest shards first.
fn assign(shop: &Shop<'_>) -> Vec<u32> {
    let total = |shard: u32, machine: u32| -> u64 {
        (0..id(shop.trials)).map(|trial| shop.time(trial, shard, machine)).sum()
    };
    let mut loads = vec![0_u64; shop.machines];
    let mut machine_of = shop.machine_of.clone();
    let mut free = Vec::new();
    for shard in 0..id(shop.shards) {
        match loads.get_mut(machine_of[shard as usize] as usize) {
            Some(load) => *load += total(shard, machine_of[shard as usize]),
            None => {
                free.push(((0..id(shop.trials)).map(|t| shop.best(t, shard)).sum::<u64>(), shard))
            }
        }
    }
    free.sort_unstable_by_key(|(work, shard)| (std::cmp::Reverse(*work), *shard));
    for (_, shard) in free {
        let all: Vec<u32> = (0..id(shop.machines)).collect();
        let holders = shop.holders[shard as usize].as_ref().unwrap_or(&all);
        let ends = holders
            .iter()
            .map(|machine| (loads[*machine as usize] + total(shard, *machine), *machine));
        if let Some((load, machine)) = ends.min() {
            loads[machine as usize] = load;
            machine_of[shard as usize] = machine;
        }
    }
    machine_of
}

/// By trial, then machine: what it takes there in an epoch, padded so that all machines take the same in all.
fn padded(shop: &Shop<'_>, machine_of: &[u32]) -> Vec<Vec<u64>> {
    let mut table = vec![vec![0_u64; shop.machines]; shop.trials];
    for (trial, row) in table.iter_mut().enumerate() {
        for (shard, machine) in machine_of.iter().enumerate() {
            if let Some(time) = row.get_mut(*machine as usize) {
                *time += shop.time(id(trial), id(shard), *machine);
            }
        }
    }
    let longest = table.iter().flatten().copied().max().unwrap_or(0);
    let load = |machine: usize| table.iter().map(|row| row[machine]).sum::<u64>();
    let loads: Vec<u64> = (0..shop.machines).map(load).collect();
    let most = loads.iter().copied().max().unwrap_or(0);
    for (machine, load) in loads.into_iter().enumerate() {
        let mut lacking = most - load;
        for row in &mut table {
            let more = lacking.min(longest - row[machine]);
            row[machine] += more;
            lacking -= more;
        }
    }
    table
}

/// An order of the trials in which no machine gets far ahead of another; ties to the lower id.
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

/// The order at each machine, shifted; then each hop as soon as its trial and its machine are free.
fn shifted(shop: &Shop<'_>, machine_of: &[u32], table: &[Vec<u64>], order: &[usize]) -> Schedule {
    let whole = order.iter().filter_map(|trial| table[*trial].first()).sum::<u64>().max(1);
    let mut at: Vec<u64> =
        (0..shop.machines as u64).map(|machine| whole / shop.machines as u64 * machine).collect();
    let mut visits = Vec::new();
    for &trial in order {
        let plan = &shop.problem.trials[trial];
        let open = |shard: u32, epoch: u32| epoch > 0 || plan.open.contains(&shard);
        for (shard, &machine) in machine_of.iter().enumerate() {
            for epoch in (0..=plan.epochs_after).filter(|epoch| open(id(shard), *epoch)) {
                let wish = at[machine as usize] % whole;
                visits.push((epoch, wish, id(trial), id(shard), machine));
            }
        }
        at.iter_mut().zip(&table[trial]).for_each(|(at, time)| *at += time);
    }
    visits.sort_unstable();
    let mut visited = vec![0; shop.trials];
    for (_, _, trial, shard, machine) in &mut visits {
        // A fixed order has the trial's turns, in its own sequence.
        let trial = *trial as usize;
        if let Some(next) = shop.problem.trials[trial].ordered(visited[trial]) {
            (*shard, *machine) = (next, machine_of[next as usize]);
        }
        visited[trial] += 1;
    }
    let mut trials: Vec<u64> = shop.problem.trials.iter().map(|trial| trial.free_at).collect();
    let mut machines: Vec<u64> =
        shop.problem.machines.iter().map(|machine| machine.free_at).collect();
    let steps = visits.into_iter().map(|(epoch, _, trial, shard, machine)| {
        let start = trials[trial as usize].max(machines[machine as usize]);
        let end = start + shop.time(trial, shard, machine);
        trials[trial as usize] = end;
        machines[machine as usize] = end + shop.problem.machines[machine as usize].latency;
        Step { trial, epoch, shard, machine, start, end }
    });
    Schedule::new(steps.collect())
}
