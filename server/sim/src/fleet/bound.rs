//! No schedule is shorter than this: what a makespan is measured against.
//!
//! Where every host may hold every shard: all work over all capacity, or the longest trial, one hop after
//! the other, on the fastest host. Where shards are pinned: the largest load of a host whose shards no
//! other one has, or the longest trial with each of its hops on the fastest of the shard's hosts.
//! Absences, transfers, noise and failures are left out: they are what a schedule has to live with.

use super::{
    job::{SimJob, count, index},
    plan::Plan,
    quantity::{float, whole},
};
use serde::Serialize;
use std::collections::BTreeSet;

/// A lower bound of the makespan.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Bound {
    /// The larger of the two.
    pub(crate) micros: u64,
    /// All work over all capacity (or the largest load of a host), in microseconds.
    pub(crate) capacity: f64,
    pub(crate) names: Names,
}

/// Which bound it is that holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Names {
    /// All work over all capacity.
    #[default]
    Capacity,
    /// The largest load of a host.
    LargestLoad,
    /// The longest trial.
    LongestTrial,
}

impl Names {
    /// For tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Names::Capacity => "capacity",
            Names::LargestLoad => "largest load",
            Names::LongestTrial => "longest trial",
        }
    }
}

/// The hosts that may hold a shard that is pinned to so many, in order: round robin.
pub(crate) fn holders(shard: usize, replicas: u32, hosts: usize) -> impl Iterator<Item = usize> {
    let replicas = index(replicas).min(hosts);
    (0..replicas).map(move |n| (shard + n) % hosts.max(1))
}

/// The bound of a plan.
pub(crate) fn of(plan: &Plan) -> Bound {
    let (mut pool, mut loads) = (0.0, vec![0.0; plan.hosts.len()]);
    let (mut longest, mut pinned): (f64, bool) = (0.0, false);
    for (n, job) in plan.jobs.iter().enumerate() {
        let kinds = kinds_of_hosts(plan);
        let fast = fastest(plan, n, job, &kinds);
        for trial in 0..job.trials.len() {
            let length = match job.holders {
                0 => {
                    let rows = float(job.data.train_rows()) * f64::from(job.epochs);
                    let work = job.flops(trial) * rows;
                    pool += work;
                    fast.get(trial).map_or(0.0, |speed| work / speed * 1e6)
                }
                replicas => {
                    pinned = true;
                    on_holders(plan, (n, job), trial, replicas, &mut loads, &mut pool)
                }
            };
            // The last evaluation follows the last hop; all others go on beside later ones.
            let evaluated = job.flops(trial) / 3.0 * float(job.valid_rows);
            let last = fast.get(trial).map_or(0.0, |speed| evaluated / speed * 1e6);
            pool += evaluated * f64::from(job.epochs);
            longest = longest.max(float(job.at) + length + last);
        }
    }
    let best = best_factors(plan);
    let slots = plan.hosts.iter().map(|host| {
        let flops = plan.kinds.get(host.kind).map_or(0.0, |kind| kind.flops);
        flops * best.get(host.kind).copied().unwrap_or(1.0) * f64::from(plan.slots(*host))
    });
    let speeds: Vec<f64> = slots.collect();
    let all: f64 = speeds.iter().sum();
    let on_one: f64 = loads.iter().sum();
    let capacity = pool / all * 1e6 + on_one / float(count(loads.len()).max(1));
    let largest = loads.iter().copied().fold(0.0, f64::max);
    let (load, names) = match pinned && largest >= capacity {
        true => (largest, Names::LargestLoad),
        false => (capacity, Names::Capacity),
    };
    let (bound, names) =
        if longest > load { (longest, Names::LongestTrial) } else { (load, names) };
    let begins = plan.jobs.iter().map(|job| job.at).min().unwrap_or(0);
    let bound = whole(bound).unwrap_or(u64::MAX / 4);
    let micros = if names == Names::LongestTrial { bound - begins.min(bound) } else { bound };
    Bound { micros, capacity: load, names }
}

/// A trial's length with each hop on the fastest of its shard's hosts; adds to what each host has to do.
fn on_holders(
    plan: &Plan,
    (n, job): (usize, &SimJob),
    trial: usize,
    replicas: u32,
    loads: &mut [f64],
    pool: &mut f64,
) -> f64 {
    let mut length = 0.0;
    for (shard, data) in job.data.train.iter().enumerate() {
        let work = job.flops(trial) * f64::from(data.rows) * f64::from(job.epochs);
        let mut best = f64::INFINITY;
        let mut only = None;
        for (place, host) in holders(shard, replicas, plan.hosts.len())
            .filter_map(|place| Some((place, plan.hosts.get(place)?)))
        {
            let micros = plan.micros(host.kind, n, trial, work);
            best = best.min(micros);
            only = (replicas == 1).then_some((place, micros / f64::from(plan.slots(*host).max(1))));
        }
        match only.and_then(|(place, micros)| Some((loads.get_mut(place)?, micros))) {
            Some((load, micros)) => *load += micros,
            None => *pool += work,
        }
        length += if best.is_finite() { best } else { 0.0 };
    }
    length
}

/// The kinds that there are hosts of.
fn kinds_of_hosts(plan: &Plan) -> Vec<usize> {
    let kinds: BTreeSet<usize> = plan.hosts.iter().map(|host| host.kind).collect();
    kinds.into_iter().collect()
}

/// The speed of the fastest host for each trial.
fn fastest(plan: &Plan, n: usize, job: &SimJob, kinds: &[usize]) -> Vec<f64> {
    let of_trial = |trial| {
        let speeds = kinds.iter().map(|kind| plan.speed(*kind, n, trial));
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
