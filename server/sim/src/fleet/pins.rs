//! Shards that the core pins to hosts: the least that its best choice leaves to be done.
//!
//! The core gives each host at most `part` shards, its part of all copies, and larger ones to faster hosts. Times
//! are rows times what a row takes on a kind of host; so shards in order of size against hosts in order of
//! speed say what no choice can beat.

use super::{
    job::{SimJob, count, index},
    plan::Plan,
    quantity::float,
    scenario::HostGroup,
};
use std::collections::BTreeMap;

/// A job's shards, and the hosts that they may be pinned to.
#[derive(Debug)]
pub(crate) struct Pins<'a> {
    plan: &'a Plan,
    job: usize,
    of: &'a SimJob,
    /// Kinds of hosts, and how many there are of each.
    fleet: &'a BTreeMap<usize, usize>,
    /// Rows of the shards, the largest first.
    rows: Vec<f64>,
    /// Shards that a host keeps, at the most.
    part: usize,
    /// Hosts that keep a shard.
    copies: usize,
}

impl<'a> Pins<'a> {
    /// None where a shard has no homes, or doesn't keep the ones that it has.
    pub(crate) fn of(
        plan: &'a Plan,
        job: usize,
        of: &'a SimJob,
        fleet: &'a BTreeMap<usize, usize>,
    ) -> Option<Self> {
        let hosts = plan.hosts.len();
        let copies = index(of.holders).min(hosts);
        let groups = plan.hosts.iter().filter_map(|host| plan.kinds.get(host.kind));
        let mut groups = groups.filter_map(|kind| plan.groups.get(kind.group));
        if copies == 0 || of.spec.placement.reproducible || !groups.all(HostGroup::is_steady) {
            return None;
        }
        let mut rows: Vec<f64> = of.data.train.iter().map(|shard| shard.rows.into()).collect();
        rows.sort_by(|a, b| b.total_cmp(a));
        let part = (rows.len() * copies).div_ceil(hosts.max(1));
        Some(Self { plan, job, of, fleet, rows, part, copies })
    }

    /// A trial's length in microseconds: its largest shards on the fastest hosts, as many as these may keep.
    pub(crate) fn length(&self, trial: usize) -> f64 {
        let mut kinds: Vec<(f64, usize)> = self
            .fleet
            .iter()
            .map(|(kind, hosts)| (self.plan.speed(*kind, self.job, trial), hosts * self.part))
            .collect();
        kinds.sort_by(|a, b| b.0.total_cmp(&a.0));
        let places = kinds.iter().flat_map(|(speed, places)| std::iter::repeat_n(*speed, *places));
        let work = self.of.flops(trial) * self.of.passes();
        self.rows.iter().zip(places).map(|(rows, speed)| rows * work / speed * 1e6).sum()
    }

    /// The largest load of a host in microseconds: it is least where this time lets all shards be kept.
    /// Nothing where others can help with a shard.
    pub(crate) fn load(&self) -> f64 {
        if self.copies > 1 {
            return 0.0;
        }
        // By kind of host: what a row of all trials takes, and how many there are.
        let costs = self.fleet.iter().map(|(kind, hosts)| {
            let slots = self.plan.hosts.iter().find(|host| host.kind == *kind);
            let slots = slots.map_or(1, |host| self.plan.slots(*host)).max(1);
            let trials = 0..self.of.trials.len();
            let micros =
                trials.map(|trial| self.plan.micros(*kind, self.job, trial, self.of.flops(trial)));
            (micros.sum::<f64>() * self.of.passes() / f64::from(slots), *hosts)
        });
        let costs: Vec<(f64, usize)> = costs.collect();
        // The last of each size: so many are at least that large.
        let sizes = self.rows.chunk_by(|a, b| a.to_bits() == b.to_bits()).scan(0, |seen, alike| {
            *seen += alike.len();
            Some((alike.first().copied()?, *seen))
        });
        sizes.map(|(rows, shards)| self.time_for(&costs, rows, shards)).fold(0.0, f64::max)
    }

    /// The first time at which hosts have room for so many shards of so many rows.
    fn time_for(&self, costs: &[(f64, usize)], rows: f64, shards: usize) -> f64 {
        let times = costs.iter().flat_map(|(cost, _)| {
            (1..=self.part).map(move |kept| cost * rows * float(count(kept)))
        });
        let mut times: Vec<f64> = times.collect();
        times.sort_by(f64::total_cmp);
        let room = |time: f64| {
            let kept = costs.iter().map(|(cost, hosts)| {
                let fits = |kept: &usize| cost * rows * float(count(*kept)) <= time;
                (1..=self.part).take_while(fits).count() * hosts
            });
            kept.sum::<usize>()
        };
        let first = times.partition_point(|time| room(*time) < shards);
        times.get(first).copied().unwrap_or(0.0)
    }
}
