//! No schedule is shorter than this: what a makespan is measured against.
//!
//! Where results are merged, a trial's hops of one epoch go side by side; its epochs follow each other.
//! Else, where every host may hold every shard: all work over all capacity, that of lines too; the longest trial, one hop after
//! the other, on the fastest host; the k longest on the k fastest slots. Where shards are pinned, the core says to which hosts: then the bound is
//! that of its best choice ([`Pins`]), as long as it chooses but once: where hosts come and go, or rest
//! after failures, a shard finds other homes, and the bound is as if any host could hold it. A fixed order of visits
//! makes chains of what was an open shop; no bound here looks at the order, so all of them hold for both.
//! Of transfers those count that no schedule can do without: a host's first shard, a trial's last checkpoint, and of the lines of
//! all hosts together one checkpoint for each epoch of a trial, since several hops of an epoch may go under one lease. Absences, noise and failures are left out: they are
//! what a schedule has to live with.

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
    let (mut pool, mut hops, mut longest, mut largest): (f64, f64, f64, f64) = (0.0, 0.0, 0.0, 0.0);
    // Of trials whose hops follow each other.
    let mut in_order: Vec<f64> = Vec::new();
    let mut uploads = Uploads::default();
    for (n, job) in plan.jobs.iter().enumerate() {
        let pins = Pins::of(plan, n, job, &fleet);
        let rows = float(job.data.train_rows()) * job.passes();
        let merges = job.spec.placement.may_merge();
        let largest_shard = job.data.train.iter().map(|shard| shard.rows).max().unwrap_or(0);
        let largest_shards = f64::from(largest_shard) * job.passes();
        uploads.add(job);
        for trial in 0..job.trials.len() {
            let fastest = fleet.keys().map(|kind| plan.speed(*kind, n, trial));
            let fastest = fastest.fold(f64::MIN_POSITIVE, f64::max);
            let alone = |flops: f64| flops / fastest * 1e6;
            let work = job.flops(trial) * rows;
            let length = match &pins {
                _ if merges => alone(job.flops(trial) * largest_shards),
                Some(pins) => pins.length(trial),
                // A host goes on while a result of its is on its way, but for the last one.
                None => alone(work) + shortest_upload(plan, job),
            };
            if !merges {
                in_order.push(work);
            }
            // The last evaluation follows the last hop; all others go on beside later ones.
            let evaluated = job.flops(trial) / 3.0 * float(job.valid_rows);
            hops += work;
            pool += work + evaluated * f64::from(job.epochs);
            longest = longest.max(float(job.at) + length + alone(evaluated));
        }
        largest = largest.max(pins.map_or(0.0, |pins| pins.load()));
    }
    let slots = slots(plan);
    let all: f64 = slots.iter().map(|of| of.speed * of.count).sum();
    let capacity = pool / all * 1e6;
    let begins = plan.jobs.iter().map(|job| job.at).min().unwrap_or(0);
    let bounds = [
        (largest, Names::LargestLoad),
        (capacity, Names::Capacity),
        (with_lines(plan, hops, &uploads), Names::Lines),
        ((longest - float(begins)).max(0.0), Names::LongestTrial),
        (longest_on_fastest(in_order, &slots), Names::LongestTrials),
    ];
    // Of equal ones the first.
    let larger = |best: (f64, Names), of: (f64, Names)| if of.0 > best.0 { of } else { best };
    let (bound, names) = bounds.into_iter().fold((0.0, Names::Capacity), larger);
    Bound { micros: whole(bound).unwrap_or(u64::MAX / 4), capacity, names }
}

/// Microseconds in which the host with the fastest line sends a checkpoint of a job.
fn shortest_upload(plan: &Plan, job: &SimJob) -> f64 {
    let bytes = float(job.checkpoint_bytes.unwrap_or(0));
    let uploads = plan.hosts.iter().filter_map(|host| {
        let kind = plan.kinds.get(host.kind)?;
        plan.groups.get(kind.group).map(|group| transfer(bytes, group.upload))
    });
    uploads.reduce(f64::min).unwrap_or(0.0)
}

/// Microseconds of so many bytes on a line of so many Mbit/s; 0: it is free.
fn transfer(bytes: f64, mbits: f64) -> f64 {
    if mbits > 0.0 { bytes * 8.0 / mbits } else { 0.0 }
}

/// Like slots, and how many there are.
struct Slots {
    /// Operations a second, at the most.
    speed: f64,
    count: f64,
}

/// The slots of all hosts, the fastest first.
fn slots(plan: &Plan) -> Vec<Slots> {
    let best = best_factors(plan);
    let slots = plan.hosts.iter().map(|host| {
        let flops = plan.kinds.get(host.kind).map_or(0.0, |kind| kind.flops);
        let speed = flops * best.get(host.kind).copied().unwrap_or(1.0);
        Slots { speed, count: f64::from(plan.slots(*host)) }
    });
    let mut slots: Vec<Slots> = slots.collect();
    slots.sort_by(|a, b| b.speed.total_cmp(&a.speed));
    slots
}

/// The preemptive bound of uniform machines (Gonzalez and Sahni, 1978): a trial is on one slot at a time, so the k longest
/// trials aren't done faster than by the k fastest slots. In microseconds.
fn longest_on_fastest(mut works: Vec<f64>, slots: &[Slots]) -> f64 {
    works.sort_by(|a, b| b.total_cmp(a));
    let (mut slots, mut left) = (slots.iter(), 0.0);
    let (mut speed, mut work, mut of_all, mut bound) = (0.0, 0.0, 0.0, 0.0_f64);
    for trial in works {
        while left < 1.0 {
            let Some(next) = slots.next() else { return bound };
            (speed, left) = (next.speed, next.count);
        }
        left -= 1.0;
        work += trial;
        of_all += speed;
        bound = bound.max(work / of_all * 1e6);
    }
    bound
}

/// The uploads without which no work counts, over all trials.
#[derive(Debug)]
struct Uploads {
    /// The most operations that an uploaded byte brings: a whole epoch's, with one checkpoint.
    work_per_byte: f64,
    /// The smallest checkpoint.
    checkpoint: f64,
    /// The smallest shard.
    shard: f64,
}

impl Default for Uploads {
    fn default() -> Self {
        Self { work_per_byte: 0.0, checkpoint: f64::INFINITY, shard: f64::INFINITY }
    }
}

impl Uploads {
    fn add(&mut self, job: &SimJob) {
        let bytes = float(job.checkpoint_bytes.unwrap_or(0));
        let rows = float(job.data.train_rows()) * f64::from(job.spec.training.local_epochs);
        for trial in 0..job.trials.len() {
            self.work_per_byte = self.work_per_byte.max(job.flops(trial) * rows / bytes);
        }
        self.checkpoint = self.checkpoint.min(bytes);
        let shards = job.data.train.iter().map(|shard| float(shard.blob.bytes));
        self.shard = shards.fold(self.shard, f64::min);
    }
}

/// The work of all hops over all capacity, where a host begins when it has a shard, ends when its last result is uploaded, and
/// trains no more in a second than its line takes away. In microseconds.
fn with_lines(plan: &Plan, hops: f64, uploads: &Uploads) -> f64 {
    let best = best_factors(plan);
    let mut hosts: Vec<(f64, f64)> = plan
        .hosts
        .iter()
        .filter_map(|host| {
            let kind = plan.kinds.get(host.kind)?;
            let group = plan.groups.get(kind.group)?;
            let factor = best.get(host.kind).copied().unwrap_or(1.0);
            let trains = kind.flops * factor * f64::from(plan.slots(*host));
            let line = group.upload * 1e6 / 8.0 * uploads.work_per_byte;
            let rate = if group.upload > 0.0 { trains.min(line) } else { trains };
            let away = transfer(uploads.shard, group.download)
                + transfer(uploads.checkpoint, group.upload);
            Some((away, rate / 1e6))
        })
        .collect();
    hosts.sort_by(|a, b| a.0.total_cmp(&b.0));
    // The end before which those that have begun by then do all work.
    let (mut rate, mut begun, mut end) = (0.0, 0.0, f64::INFINITY);
    for (away, of) in hosts {
        if away >= end {
            break;
        }
        rate += of;
        begun += of * away;
        end = (hops + begun) / rate;
    }
    end
}

/// The kinds that there are hosts of, and how many of each.
fn kinds_of_hosts(plan: &Plan) -> BTreeMap<usize, usize> {
    let mut kinds = BTreeMap::new();
    for host in &plan.hosts {
        *kinds.entry(host.kind).or_default() += 1;
    }
    kinds
}

/// Each kind's best factor: no host does more work in a second than with that.
fn best_factors(plan: &Plan) -> Vec<f64> {
    let best = plan.kinds.iter().map(|kind| {
        let factors = kind.factors.iter().flatten().copied();
        factors.reduce(f64::max).unwrap_or(1.0)
    });
    best.collect()
}
