//! No schedule is shorter than this: what a makespan is measured against.
//!
//! Where results are merged, a trial's hops of one epoch go side by side; its epochs follow each other.
//! Else, where every host may hold every shard: all work over all capacity, or the longest trial, one hop after
//! the other, on the fastest host. Where shards are pinned, the core says to which hosts: then the bound is
//! that of its best choice ([`Pins`]), as long as it chooses but once: where hosts come and go, or rest
//! after failures, a shard finds other homes, and the bound is as if any host could hold it. A fixed order of visits
//! makes chains of what was an open shop; no bound here looks at the order, so all of them hold for both.
//! Absences, transfers, noise and failures are left out: they are what a schedule has to live with.

use super::{
    bound::{Bound, Names},
    job::SimJob,
    pins::Pins,
    plan::Plan,
    quantity::{float, whole},
};
use std::collections::BTreeMap;

/// The bound of a plan.
pub(crate) fn of(plan: &Plan) -> Bound {
    let fleet = kinds_of_hosts(plan);
    let (mut pool, mut longest, mut largest): (f64, f64, f64) = (0.0, 0.0, 0.0);
    for (n, job) in plan.jobs.iter().enumerate() {
        let pins = Pins::of(plan, n, job, &fleet);
        let fast = fastest(plan, n, job, &fleet);
        let rows = float(job.data.train_rows()) * f64::from(job.epochs);
        let merges = job.spec.placement.may_merge();
        let largest_shard = job.data.train.iter().map(|shard| shard.rows).max().unwrap_or(0);
        let largest_shards = f64::from(largest_shard) * f64::from(job.epochs);
        for trial in 0..job.trials.len() {
            let alone = |flops: f64| fast.get(trial).map_or(0.0, |speed| flops / speed * 1e6);
            let work = job.flops(trial) * rows;
            let length = match &pins {
                _ if merges => alone(job.flops(trial) * largest_shards),
                Some(pins) => pins.length(trial),
                None => alone(work),
            };
            // The last evaluation follows the last hop; all others go on beside later ones.
            let evaluated = job.flops(trial) / 3.0 * float(job.valid_rows);
            pool += work + evaluated * f64::from(job.epochs);
            longest = longest.max(float(job.at) + length + alone(evaluated));
        }
        largest = largest.max(pins.map_or(0.0, |pins| pins.load()));
    }
    let best = best_factors(plan);
    let slots = plan.hosts.iter().map(|host| {
        let flops = plan.kinds.get(host.kind).map_or(0.0, |kind| kind.flops);
        flops * best.get(host.kind).copied().unwrap_or(1.0) * f64::from(plan.slots(*host))
    });
    let all: f64 = slots.sum();
    let capacity = pool / all * 1e6;
    let (load, names) = match largest > 0.0 && largest >= capacity {
        true => (largest, Names::LargestLoad),
        false => (capacity, Names::Capacity),
    };
    let (bound, names) =
        if longest > load { (longest, Names::LongestTrial) } else { (load, names) };
    let begins = plan.jobs.iter().map(|job| job.at).min().unwrap_or(0);
    let bound = whole(bound).unwrap_or(u64::MAX / 4);
    let micros = if names == Names::LongestTrial { bound - begins.min(bound) } else { bound };
    Bound { micros, capacity, names }
}

/// The kinds that there are hosts of, and how many of each.
fn kinds_of_hosts(plan: &Plan) -> BTreeMap<usize, usize> {
    let mut kinds = BTreeMap::new();
    for host in &plan.hosts {
        *kinds.entry(host.kind).or_default() += 1;
    }
    kinds
}

/// The speed of the fastest host for each trial.
fn fastest(plan: &Plan, n: usize, job: &SimJob, fleet: &BTreeMap<usize, usize>) -> Vec<f64> {
    let of_trial = |trial| {
        let speeds = fleet.keys().map(|kind| plan.speed(*kind, n, trial));
        speeds.fold(f64::MIN_POSITIVE, f64::max)
    };
    (0..job.trials.len()).map(of_trial).collect()
}

/// Each kind's best factor: no host does more work in a second than with that.
fn best_factors(plan: &Plan) -> Vec<f64> {
    let best = plan.kinds.iter().map(|kind| {
        let factors = kind.factors.iter().flatten().copied();
        factors.reduce(f64::max).unwrap_or(1.0)
    });
    best.collect()
}
