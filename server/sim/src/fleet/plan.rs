//! A scenario with one seed: every host its kind, every trial its cost, every length of time a number.

use super::{
    arrival::{self, Stays, Traced, day_time},
    bound::{self, Bound},
    feasible::{self, Remarks},
    job::{self, Fleet, SimJob, count, index},
    quantity::{Auto, Span, float, whole},
    read::Files,
    scenario::{HostGroup, Knowledge, Pick, Preempted, Scenario},
    training::Trains,
};
use rand_chacha::ChaCha8Rng;
use sojourn_core::CoreConfig;
use sojourn_protocol::{
    digest::Digest,
    ids::JobId,
    inventory::{CPU, Device, Measured, Workload},
    quantity::SaturatingFrom as _,
    seeds,
    time::Millis,
};
use sojourn_workgen::{PolicyName, shards::ShardHost};
use std::collections::BTreeMap;

/// The least lease term that the simulator chooses.
const MIN_TERM: u64 = 60_000_000;
/// How long hosts' asks are held open at the least, as by the server's defaults.
const MIN_WAIT: u64 = 25_000_000;
/// No more asks in vain than so many, all hosts together.
const MAX_ASKS: f64 = 500_000.0;
/// Given up after so many lower bounds, and this.
const MAX_BOUNDS: u64 = 1_000;
const PATIENCE: u64 = 30 * 86_400_000_000;

/// Everything that a run needs to know beforehand.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) groups: Vec<HostGroup>,
    traced: Vec<Vec<Traced>>,
    pub(crate) kinds: Vec<Kind>,
    pub(crate) hosts: Vec<Place>,
    /// In the order in which they are submitted.
    pub(crate) jobs: Vec<SimJob>,
    pub(crate) begun: u64,
    pub(crate) assimilation: u64,
    pub(crate) assimilators: u32,
    /// Hosts ask all together, once nobody has anything left to do.
    pub(crate) rounds: bool,
    pub(crate) milp_limit: Span,
    most_hops: Option<u32>,
    most_copied: Option<u32>,
    pub(crate) lease_term: u64,
    pub(crate) heartbeat: u64,
    pub(crate) longest_wait: u64,
    pub(crate) horizon: u64,
    pub(crate) bound: Bound,
    /// What is hardly meant, for people.
    pub(crate) remarks: Remarks,
}

/// Hosts of one group with the same processor.
#[derive(Debug, Clone)]
pub(crate) struct Kind {
    pub(crate) group: usize,
    pub(crate) name: String,
    /// Operations a second of one slot, in training.
    pub(crate) flops: f64,
    /// Factors on that, by job and cost.
    pub(crate) factors: Vec<Vec<f64>>,
    /// What its hosts tell of it.
    pub(crate) device: Device,
}

/// One host's place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) kind: usize,
    /// In its group.
    pub(crate) number: u32,
}

impl Plan {
    /// Makes up what follows from a seed.
    ///
    /// # Errors
    /// What speaks against the scenario that its file alone doesn't show.
    pub(crate) fn new(
        scenario: &Scenario,
        seed: u64,
        files: &mut Files<'_>,
        mut trains: Option<&mut (dyn Trains + '_)>,
    ) -> Result<Self, String> {
        let groups = scenario.hosts.clone();
        let (mut kinds, mut hosts, mut traced) = (Vec::new(), Vec::new(), Vec::new());
        for (n, group) in groups.iter().enumerate() {
            let first = kinds.len();
            kinds.extend(
                group.kinds().into_iter().map(|(name, tflops)| kind(n, group, name, tflops)),
            );
            let count = u32::saturating_from(kinds.len() - first);
            let mut chance = seeds::stream("sim-hosts", &[seed, job::count(n)]);
            hosts.extend((0..group.count).map(|number| {
                let own = match group.pick {
                    Pick::Sample => seeds::below(&mut chance, count),
                    Pick::Cycle => number % count,
                };
                Place { kind: first + index(own), number }
            }));
            let trace =
                group.trace.as_ref().map(|trace| arrival::traced(trace, group.count, files));
            traced.push(trace.transpose()?.unwrap_or_default());
        }
        let group_of =
            |place: &Place| kinds.get(place.kind).and_then(|kind| groups.get(kind.group));
        let shard_hosts = hosts.iter().map(|place| {
            let kind = kinds.get(place.kind).map_or(0.0, |kind| kind.flops);
            group_of(place).map_or_else(ShardHost::default, |group| group.for_shards(kind))
        });
        let shard_hosts: Vec<ShardHost> = shard_hosts.collect();
        let fleet = Fleet { hosts: &shard_hosts };
        let jobs = scenario.all_jobs().zip(0..);
        let jobs =
            jobs.map(|(entry, n)| job::make(entry, n, seed, fleet, files, trains.as_deref_mut()));
        let mut jobs = jobs.collect::<Result<Vec<_>, _>>()?;
        // The core counts them in the order in which they are submitted.
        jobs.sort_by_key(|job| job.at);
        for (n, kind) in kinds.iter_mut().enumerate() {
            let Some(group) = groups.get(kind.group) else { continue };
            kind.factors = factors(group, &jobs, seed, n);
            kind.device.measured = match scenario.estimates {
                Knowledge::Known => measured(kind, &jobs),
                Knowledge::Prior | Knowledge::Nothing => Vec::new(),
            };
            if scenario.estimates == Knowledge::Nothing {
                kind.device.flops = 0.0;
            }
        }
        let mut plan = Self {
            seed,
            groups,
            traced,
            kinds,
            hosts,
            jobs,
            begun: day_time(&scenario.starts_at)?,
            assimilation: scenario.server.assimilation.0,
            assimilators: scenario.server.assimilators,
            rounds: scenario.server.rounds,
            milp_limit: scenario.server.milp_limit,
            most_hops: scenario.server.most_hops,
            most_copied: scenario.server.most_copied,
            lease_term: 0,
            heartbeat: 0,
            longest_wait: 0,
            horizon: 0,
            bound: Bound::default(),
            remarks: Remarks::new(),
        };
        plan.bound = bound::of(&plan);
        plan.remarks = feasible::of(&plan)?;
        plan.set_times(scenario);
        Ok(plan)
    }

    /// Terms that keep virtual time from drowning in signs of life.
    fn set_times(&mut self, scenario: &Scenario) {
        let given = |auto: Auto<Span>, value: u64| auto.or(Span(value)).0.max(1_000);
        let server = &scenario.server;
        self.lease_term = given(server.lease_term, (self.mean_unit() / 2).max(MIN_TERM));
        self.heartbeat = given(server.heartbeat, self.lease_term / 2);
        let asks = float(count(self.hosts.len())) * float(self.bound.micros) / MAX_ASKS;
        let wait = MIN_WAIT.max(self.lease_term / 2).max(whole(asks).unwrap_or(0));
        self.longest_wait = given(server.longest_wait, wait);
        let last = self.jobs.iter().map(|job| job.at).max().unwrap_or(0);
        let patience = self.bound.micros.saturating_mul(MAX_BOUNDS).saturating_add(PATIENCE + last);
        self.horizon = given(scenario.horizon, patience);
    }

    /// What a unit takes on the average, in microseconds.
    fn mean_unit(&self) -> u64 {
        let slots: f64 = self.hosts.iter().map(|host| f64::from(self.slots(*host))).sum();
        let hops: u64 = self.jobs.iter().map(SimJob::hops).sum();
        whole(self.bound.capacity * slots / float(hops.max(1))).unwrap_or(0)
    }

    /// Do the hops of the core's job really train?
    pub(crate) fn is_trained(&self, job: JobId) -> bool {
        self.job(job).is_some_and(|job| job.is_trained)
    }

    /// The core's job: it counts them from 1, in the order in which they were submitted.
    pub(crate) fn job(&self, job: JobId) -> Option<&SimJob> {
        self.jobs.get(usize::try_from(job.0.checked_sub(1)?).ok()?)
    }

    /// The core's settings under a policy.
    pub(crate) fn config(&self, policy: PolicyName) -> CoreConfig {
        let millis = |micros: u64| Millis(micros.div_ceil(1000));
        let never = Millis(u64::MAX / 4);
        let defaults = CoreConfig::with_lease_term(millis(self.lease_term));
        let term = defaults.assimilation_term;
        CoreConfig {
            // Assimilators don't die here.
            assimilation_term: Millis(term.0.saturating_add(millis(self.assimilation).0)),
            heartbeat_every: millis(self.heartbeat),
            longest_wait: millis(self.longest_wait),
            // Deleting old checkpoints has no influence on who trains what.
            condemn_after: never,
            most_hops: self.most_hops.or(defaults.most_hops),
            most_copied: self.most_copied.unwrap_or(defaults.most_copied),
            policy,
            ..defaults
        }
    }

    pub(crate) fn slots(&self, host: Place) -> u32 {
        let kind = self.kinds.get(host.kind);
        kind.and_then(|kind| self.groups.get(kind.group)).map_or(0, HostGroup::places)
    }

    /// How hosts of this kind are taken away while units run.
    pub(crate) fn preempted(&self, kind: usize) -> Option<Preempted> {
        self.groups.get(self.kinds.get(kind)?.group)?.preempted
    }

    /// A kind of host, for people: by its group's name, where that has one.
    pub(crate) fn named(&self, kind: &Kind) -> String {
        let group = self.groups.get(kind.group);
        match group.map_or("", |group| group.name.as_str()) {
            "" => kind.name.clone(),
            name if self.kinds.iter().filter(|other| other.group == kind.group).count() > 1 => {
                format!("{name}, {}", kind.name)
            }
            name => name.to_owned(),
        }
    }

    /// Operations a second of a slot of this kind at a trial of a job.
    pub(crate) fn speed(&self, kind: usize, job: usize, trial: usize) -> f64 {
        let Some(kind) = self.kinds.get(kind) else { return 1.0 };
        let cost = self.jobs.get(job).and_then(|job| job.trials.get(trial));
        let factor = cost.and_then(|cost| kind.factors.get(job)?.get(*cost));
        kind.flops * factor.copied().unwrap_or(1.0)
    }

    /// Microseconds for so many operations there.
    pub(crate) fn micros(&self, kind: usize, job: usize, trial: usize, flops: f64) -> f64 {
        flops / self.speed(kind, job, trial) * 1e6
    }

    /// When a host is there.
    pub(crate) fn stays(&self, host: usize) -> Option<Stays> {
        let place = self.hosts.get(host)?;
        let group = self.kinds.get(place.kind)?.group;
        let seed = [self.seed, count(group), place.number.into()];
        let traced = self.traced.get(group)?;
        Some(Stays::new(self.groups.get(group)?, traced, place.number, seed, self.begun))
    }
}

fn kind(group: usize, of: &HostGroup, name: String, tflops: f64) -> Kind {
    let flops = tflops * 1e12 * of.efficiency;
    let device = if of.gpus > 0 { name.as_str() } else { CPU };
    let class = of.class.as_deref().unwrap_or(&name);
    let class = Digest::of(format!("numeric class of {class}").as_bytes());
    let device = Device::new(device, class, flops);
    Kind { group, name, flops, factors: Vec::new(), device }
}

/// How well a kind of processor suits each model.
fn factors(group: &HostGroup, jobs: &[SimJob], seed: u64, kind: usize) -> Vec<Vec<f64>> {
    let of_job = |(n, job): (usize, &SimJob)| {
        let factor = |(m, cost): (usize, &job::Cost)| {
            let named = group.speed_by_model.get(&cost.name).copied().unwrap_or(1.0);
            let parts = [seed, count(kind), count(n), count(m)];
            named * lognormal(&mut seeds::stream("sim-spread", &parts), group.spread)
        };
        job.costs.iter().enumerate().map(factor).collect()
    };
    jobs.iter().enumerate().map(of_job).collect()
}

/// A factor with the mean 1.
pub(crate) fn lognormal(chance: &mut ChaCha8Rng, sigma: f64) -> f64 {
    if sigma <= 0.0 {
        return 1.0;
    }
    // Box and Muller, 1958.
    let (a, b) = (1.0 - seeds::unit_f64(chance), seeds::unit_f64(chance));
    let normal = libm::sqrt(-2.0 * libm::log(a)) * libm::cos(2.0 * std::f64::consts::PI * b);
    libm::exp(sigma * normal - sigma * sigma / 2.0)
}

/// What a host of this kind would have measured of every trial's units.
fn measured(kind: &Kind, jobs: &[SimJob]) -> Vec<Measured> {
    let mut all: BTreeMap<Workload, u64> = BTreeMap::new();
    for (n, job) in jobs.iter().enumerate() {
        let trials = sojourn_workgen::trials(&job.spec).unwrap_or_default();
        for (trial, of) in trials.into_iter().zip(&job.trials) {
            let training = &trial.config.training;
            let workload = Workload {
                shape: job.data.shape.clone(),
                outputs: job.data.labels.outputs(),
                batch_size: training.batch_size,
                precision: training.precision,
                optimizer: training.optimizer.name,
                model: trial.config.model,
            };
            let factor = kind.factors.get(n).and_then(|factors| factors.get(*of)).unwrap_or(&1.0);
            let cost = job.costs.get(*of).map_or(0.0, |cost| cost.flops);
            let nanos = whole(cost / (kind.flops * factor) * 1e9).unwrap_or(u64::MAX).max(1);
            all.insert(workload, nanos);
        }
    }
    let measured = all.into_iter().map(|(workload, nanos)| Measured {
        workload,
        nanos_per_row: Some(nanos),
        peak_memory: None,
        out_of_memory: false,
    });
    measured.collect()
}
