//! Makes the plan of a scenario and a seed: draws what is left to chance, and looks whether it can be run.

use super::{
    arrival::traced as traced_stays,
    bound::Bound,
    day_time::day_time,
    feasible,
    files::Files,
    job::{Cost, Fleet, SimJob, count, index},
    lognormal::lognormal,
    lower_bound, make_job,
    plan::{Kind, Place, Plan},
    quantity::{Auto, Span, float, whole},
    scenario::{HostGroup, Knowledge, Pick, Scenario},
    training::Trains,
};
use sojourn_protocol::{
    digest::Digest,
    inventory::{CPU, Device, Measured, OfferedClass, Workload},
    quantity::SaturatingFrom as _,
    seeds,
};
use sojourn_workgen::shards::ShardHost;
use std::collections::BTreeMap;

/// The least lease term that the simulator chooses.
const MIN_TERM: u64 = 60_000_000;
/// How long hosts' asks are held open at the least, as by the server's defaults.
const MIN_WAIT: u64 = 25_000_000;
/// No more asks in vain than so many, all hosts together.
const MAX_ASKS: f64 = 500_000.0;
/// The instruction set of the class that hosts have beside their further ones.
const COMMON_CLASS: &str = "common";
/// Given up after so many lower bounds, and this.
const MAX_BOUNDS: u64 = 1_000;
const PATIENCE: u64 = 30 * 86_400_000_000;

/// Makes up what follows from a seed.
///
/// # Errors
/// What speaks against the scenario that its file alone doesn't show.
pub(crate) fn make(
    scenario: &Scenario,
    seed: u64,
    files: &mut Files<'_>,
    mut trains: Option<&mut (dyn Trains + '_)>,
) -> Result<Plan, String> {
    let groups = scenario.hosts.clone();
    let (mut kinds, mut hosts, mut traced) = (Vec::new(), Vec::new(), Vec::new());
    for (n, group) in groups.iter().enumerate() {
        let first = kinds.len();
        kinds.extend(group.kinds().into_iter().map(|(name, tflops)| kind(n, group, name, tflops)));
        let choices = u32::saturating_from(kinds.len() - first);
        let mut chance = seeds::stream("sim-hosts", &[seed, count(n)]);
        hosts.extend((0..group.count).map(|number| {
            let own = match group.pick {
                Pick::Sample => seeds::below(&mut chance, choices),
                Pick::Cycle => number % choices,
            };
            Place { kind: first + index(own), number }
        }));
        let trace = group.trace.as_ref().map(|trace| traced_stays(trace, group.count, files));
        traced.push(trace.transpose()?.unwrap_or_default());
    }
    let group_of = |place: &Place| kinds.get(place.kind).and_then(|kind| groups.get(kind.group));
    let shard_hosts = hosts.iter().map(|place| {
        let kind = kinds.get(place.kind).map_or(0.0, |kind| kind.flops);
        group_of(place).map_or_else(ShardHost::default, |group| group.for_shards(kind))
    });
    let shard_hosts: Vec<ShardHost> = shard_hosts.collect();
    let fleet = Fleet { hosts: &shard_hosts };
    let jobs = scenario.all_jobs().zip(0..);
    let jobs =
        jobs.map(|(entry, n)| make_job::make(entry, n, seed, fleet, files, trains.as_deref_mut()));
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
            kind.device.classes.iter_mut().for_each(|class| class.flops = 0.0);
        }
    }
    let mut plan = Plan {
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
        remarks: Vec::new(),
    };
    plan.bound = lower_bound::of(&plan);
    plan.remarks = feasible::of(&plan)?;
    set_times(&mut plan, scenario);
    Ok(plan)
}

/// Terms that keep virtual time from drowning in signs of life.
fn set_times(plan: &mut Plan, scenario: &Scenario) {
    let given = |auto: Auto<Span>, value: u64| auto.or(Span(value)).0.max(1_000);
    let server = &scenario.server;
    plan.lease_term = given(server.lease_term, (mean_unit(plan) / 2).max(MIN_TERM));
    plan.heartbeat = given(server.heartbeat, plan.lease_term / 2);
    let asks = float(count(plan.hosts.len())) * float(plan.bound.micros) / MAX_ASKS;
    let wait = MIN_WAIT.max(plan.lease_term / 2).max(whole(asks).unwrap_or(0));
    plan.longest_wait = given(server.longest_wait, wait);
    let last = plan.jobs.iter().map(|job| job.at).max().unwrap_or(0);
    let patience = plan.bound.micros.saturating_mul(MAX_BOUNDS).saturating_add(PATIENCE + last);
    plan.horizon = given(scenario.horizon, patience);
}

/// The mean duration of a unit, in microseconds.
fn mean_unit(plan: &Plan) -> u64 {
    let slots: f64 = plan.hosts.iter().map(|host| f64::from(plan.slots(*host))).sum();
    let hops: u64 = plan.jobs.iter().map(SimJob::hops).sum();
    whole(plan.bound.capacity * slots / float(hops.max(1))).unwrap_or(0)
}

fn kind(group: usize, of: &HostGroup, name: String, tflops: f64) -> Kind {
    let common_flops = tflops * 1e12 * of.efficiency * of.ratio_of_speed();
    let device = if of.gpus > 0 { name.as_str() } else { CPU };
    let class = of.class.as_deref().unwrap_or(&name);
    let mut device = Device::new(device, digest_of(class), common_flops);
    if !of.classes.is_empty() {
        let further = of.classes.iter().map(|(name, factor)| (name.as_str(), *factor));
        let mut classes: Vec<(&str, Digest, f64)> =
            further.map(|(name, factor)| (name, digest_of(name), factor)).collect();
        classes.push((COMMON_CLASS, device.numeric_class, 1.0));
        classes.sort_by(|(_, _, one), (_, _, other)| other.total_cmp(one));
        let offered = classes.into_iter().map(|(name, numeric_class, factor)| OfferedClass {
            instructions: name.to_owned(),
            numeric_class,
            flops: common_flops * factor,
        });
        device.classes = offered.collect();
    }
    let flops = common_flops * of.fastest_class();
    Kind { group, name, flops, common_flops, factors: Vec::new(), device }
}

fn digest_of(class: &str) -> Digest {
    Digest::of(format!("numeric class of {class}").as_bytes())
}

/// How well a kind of processor suits each model.
fn factors(group: &HostGroup, jobs: &[SimJob], seed: u64, kind: usize) -> Vec<Vec<f64>> {
    let of_job = |(n, job): (usize, &SimJob)| {
        let factor = |(m, cost): (usize, &Cost)| {
            let named = group.speed_by_model.get(&cost.name).copied().unwrap_or(1.0);
            let parts = [seed, count(kind), count(n), count(m)];
            named * lognormal(&mut seeds::stream("sim-spread", &parts), group.spread)
        };
        job.costs.iter().enumerate().map(factor).collect()
    };
    jobs.iter().enumerate().map(of_job).collect()
}

/// The measurements that a host of this kind would have made of every trial's units.
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
            let nanos = whole(cost / (kind.common_flops * factor) * 1e9).unwrap_or(u64::MAX).max(1);
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
