//! The work that there is for machines, from the core's state.

use super::{host::Host, job::count};
use sojourn_core::{Core, state::Job};
use sojourn_protocol::{
    demand::{DemandView, JobDemand, MachineLoad, WorkloadDemand},
    machines::MachineName,
    money::MicroUsd,
    quantity::SaturatingFrom as _,
    time::UnixMillis,
};
use std::collections::BTreeMap;

/// Forward and backward: three times the operations of a forward pass.
const PASSES: u64 = 3;

/// The demand of now, with the machines that are there.
pub(super) fn view<'a>(
    core: &Core,
    machines: impl Iterator<Item = (&'a MachineName, &'a Host)>,
    now: UnixMillis,
) -> DemandView {
    let state = core.state();
    let mut held: BTreeMap<_, u32> = BTreeMap::new();
    for lease in state.leases.values() {
        *held.entry(lease.host).or_default() += 1;
    }
    let machines = machines.map(|(name, host)| {
        let held = held.get(&host.id).copied().unwrap_or(0);
        MachineLoad {
            machine: name.clone(),
            host: host.id,
            seen_at: Some(now),
            slots: host.slots(),
            held,
            idle_since: host.idle_since().filter(|_| held == 0).map(|at| UnixMillis(at / 1000)),
            draining: false,
            stopped: false,
        }
    });
    let open = state.jobs.values().filter(|job| job.is_open());
    let jobs = open.map(|job| JobDemand {
        job: job.id,
        name: job.spec.name.clone(),
        priority: job.spec.placement.priority,
        deadline: None,
        budget: None,
        spent: MicroUsd(0),
        max_hosts: job.spec.placement.max_hosts,
        workloads: workloads(job),
    });
    DemandView {
        at: now,
        spent: MicroUsd(0),
        jobs: jobs.collect(),
        machines: machines.collect(),
        other_slots: 0,
    }
}

/// A job's trials by what a row of them costs.
fn workloads(job: &Job) -> Vec<WorkloadDemand> {
    let mut all: BTreeMap<u64, WorkloadDemand> = BTreeMap::new();
    for trial in job.trials.iter().filter(|trial| trial.is_running()) {
        let of = all.entry(trial.flops_per_row).or_insert_with(|| WorkloadDemand {
            model: trial.context.config.model.name().to_owned(),
            nanos_per_row: trial.flops_per_row.saturating_mul(PASSES),
            ..WorkloadDemand::default()
        });
        let batch = u64::from(trial.context.config.training.batch_size);
        let rows = trial.chain.remaining().saturating_mul(batch);
        let running = u32::saturating_from(trial.live_leases().len());
        let evaluations = u32::saturating_from(count(trial.open_evaluations().count()));
        of.trials += u32::from(trial.trains());
        of.parallel += u32::from(trial.trains()).max(evaluations);
        of.runnable += u32::from(trial.is_runnable()) + evaluations;
        of.running += running;
        of.soon += u32::from(running > 0 && trial.trains());
        of.rows = of.rows.saturating_add(rows);
        of.longest = of.longest.max(rows);
    }
    all.into_values().collect()
}
