//! The work that there is for machines, and how fast bought ones are at it.

use super::Views;
use sojourn_protocol::{
    demand::{
        DemandView, JobDemand, MachineLoad, MeasuredSpeed, SpeedsView, TypeSpeed, WorkloadDemand,
    },
    ids::HostId,
    inventory::{CPU, Workload},
    machines::{MachineName, MachineReport},
    quantity::{SaturatingFrom as _, mul_div, to_u64},
};
use sojourn_scheduling::{
    cost::WorkloadId,
    hosts::{DeviceSlots, PACE_ONE, Session},
};
use sojourn_state::{Costs, Host, Job, Machine, Trial};
use std::collections::BTreeMap;

/// Operations per second at which a workload takes its reference time.
const REFERENCE_FLOPS: u64 = 1_000_000_000;

/// A bought machine whose host has said what it has.
struct Measured<'a> {
    host: HostId,
    session: &'a Session,
    report: &'a MachineReport,
}

/// Slots and speeds of the machines of a type, and the one that was launched last.
type OfType<'a> = (Vec<(u32, u64)>, &'a MachineReport);

impl Views<'_> {
    /// The work that there is for machines.
    pub(crate) fn demand(&self) -> DemandView {
        let costs = self.state.costs(self.now);
        let mut jobs: Vec<&Job> =
            self.state.jobs.values().filter(|job| self.has_demand(job)).collect();
        jobs.sort_by_key(|job| (std::cmp::Reverse(job.spec.placement.priority), job.id));
        let machines = self.state.machines.iter();
        DemandView {
            at: self.now,
            spent: costs.total().paid,
            jobs: jobs.into_iter().map(|job| self.job_demand(job, &costs)).collect(),
            machines: machines.filter_map(|(name, machine)| self.load(name, machine)).collect(),
            other_slots: self.slots_of_others(),
        }
    }

    /// Has the job units that could be done, now or later?
    fn has_demand(&self, job: &Job) -> bool {
        let open = job.is_open() && job.paused_at.is_none() && self.state.lost_data(job).is_none();
        open && (self.index.has_work(job.id) || job.supply() > 0 || job.counters.leases_live > 0)
    }

    fn job_demand(&self, job: &Job, costs: &Costs) -> JobDemand {
        let placement = &job.spec.placement;
        let mut workloads: BTreeMap<WorkloadId, WorkloadDemand> = BTreeMap::new();
        for trial in &job.trials {
            let Some(id) = self.cost.estimates.workload_of(job.id, trial.id) else { continue };
            if !trial.trains() && trial.open_evaluations().next().is_none() {
                continue;
            }
            let demand = workloads.entry(id).or_insert_with(|| self.workload(id, job, trial));
            self.add(demand, job, trial);
        }
        JobDemand {
            job: job.id,
            name: job.spec.name.clone(),
            priority: placement.priority,
            deadline: placement.deadline.map(|time| job.submitted_at + time),
            budget: placement.budget,
            spent: costs.of_job(job.id).paid,
            max_hosts: placement.max_hosts,
            workloads: workloads.into_values().collect(),
        }
    }

    /// The demand that is the same for all trials of a workload.
    fn workload(&self, id: WorkloadId, job: &Job, trial: &Trial) -> WorkloadDemand {
        let workload = Workload::of(&trial.context);
        let checkpoint = trial.checkpoint_bytes;
        let names = self.machines_measured().flat_map(|of| of.session.devices.keys());
        let peaks = names
            .filter_map(|device| self.cost.estimates.expected_peak(device, &workload, checkpoint));
        let least = self.cost.estimates.least_memory(CPU, &workload, trial);
        WorkloadDemand {
            model: format!("{} of {}", workload.model.name(), job.spec.name),
            memory: peaks.max().unwrap_or(least).max(least),
            nanos_per_row: self.cost.estimates.reference_nanos(id),
            measured: self.measured(id),
            ..WorkloadDemand::default()
        }
    }

    /// Adds what a trial has left to do.
    fn add(&self, demand: &mut WorkloadDemand, job: &Job, trial: &Trial) {
        let evaluations = trial.open_evaluations();
        let (waiting, evaluated) =
            evaluations.fold((0_u32, 0_u32), |(waiting, evaluated), (_, of)| {
                match of.live.is_empty() {
                    true => (waiting + 1, evaluated),
                    false => (waiting, evaluated + 1),
                }
            });
        let held = u32::saturating_from(trial.live.len());
        let trains = trial.trains();
        let runnable = u32::from(trains && trial.is_runnable());
        let remaining = self.index.remaining(job.id).map_or(0, |index| index.work_of(trial.id));
        let has_left = trains && (remaining > 0 || held > 0);
        let hops = match &trial.merging {
            Some(_) => u32::saturating_from(trial.hops_in_flight()).saturating_add(runnable).max(1),
            None => 1,
        };
        let rows =
            trial.chain.remaining().saturating_mul(trial.context.config.training.batch_size.into());
        demand.trials += u32::from(has_left);
        demand.parallel = demand.parallel.saturating_add(if has_left { hops } else { 0 });
        demand.parallel = demand.parallel.saturating_add(waiting + evaluated);
        demand.runnable = demand.runnable.saturating_add(runnable + waiting);
        demand.running = demand.running.saturating_add(held + evaluated);
        demand.soon = demand.soon.saturating_add(u32::from(has_left && runnable == 0));
        if trains {
            demand.rows = demand.rows.saturating_add(rows);
            demand.longest = demand.longest.max(rows);
        }
    }

    /// How fast the types of bought machines are at a workload, where that was measured.
    fn measured(&self, workload: WorkloadId) -> Vec<MeasuredSpeed> {
        let mut by_type: BTreeMap<&str, Vec<(u32, u64)>> = BTreeMap::new();
        for of in self.machines_measured() {
            let nanos = of.session.devices.values().filter_map(|slots| {
                let key = slots.key(of.host, slots.classes.fastest().class);
                Some((slots.count, self.cost.estimates.measured_nanos(key, workload)?))
            });
            let fastest = nanos.filter(|(slots, _)| *slots > 0).min_by_key(|(_, nanos)| *nanos);
            by_type.entry(&of.report.instance_type).or_default().extend(fastest);
        }
        let speeds = by_type.into_iter().filter_map(|(name, speeds)| {
            Some(MeasuredSpeed {
                instance_type: name.to_owned(),
                slots: median(speeds.iter().map(|(slots, _)| u64::from(*slots)))
                    .map(u32::saturating_from)?,
                nanos_per_row: median(speeds.iter().map(|(_, nanos)| *nanos))?,
                machines: u32::saturating_from(speeds.len()),
            })
        });
        speeds.collect()
    }

    /// The speeds and prices of the types that were bought.
    pub(crate) fn speeds(&self) -> SpeedsView {
        let mut by_type: BTreeMap<&str, OfType<'_>> = BTreeMap::new();
        for of in self.machines_measured() {
            let speeds = of.session.devices.values().filter(|slots| slots.count > 0);
            let flops = speeds.map(|slots| (slots.count, self.training_flops(of.host, slots)));
            let entry = by_type.entry(&of.report.instance_type);
            let (of_type, last) = entry.or_insert_with(|| (Vec::new(), of.report));
            of_type.extend(flops.max_by_key(|(_, flops)| *flops));
            if of.report.launched_at > last.launched_at {
                *last = of.report;
            }
        }
        let types = by_type.into_iter().filter_map(|(name, (speeds, last))| {
            Some(TypeSpeed {
                instance_type: name.to_owned(),
                slots: median(speeds.iter().map(|(slots, _)| u64::from(*slots)))
                    .map(u32::saturating_from)?,
                machines: u32::saturating_from(speeds.len()),
                flops: median(speeds.iter().map(|(_, flops)| *flops))?,
                price: last.price,
                on_demand_price: last.on_demand_price,
            })
        });
        SpeedsView { types: types.collect() }
    }

    /// Operations per second of a slot in training, as estimates have it.
    pub(super) fn training_flops(&self, host: HostId, slots: &DeviceSlots) -> u64 {
        let pace = self.cost.estimates.pace(slots.key(host, slots.classes.fastest().class));
        mul_div(REFERENCE_FLOPS, PACE_ONE, pace.max(1))
    }

    /// Bought machines whose hosts have said what they have, also such as have ended.
    fn machines_measured(&self) -> impl Iterator<Item = Measured<'_>> {
        self.state.machines.iter().filter_map(|(_, machine)| {
            let (host, report) = (machine.host?, machine.report.as_ref()?);
            let session = self.hosts.session(host).filter(|session| session.is_known())?;
            Some(Measured { host, session, report })
        })
    }

    /// The load of a bought machine, if it has enrolled and not ended.
    fn load(&self, name: &MachineName, machine: &Machine) -> Option<MachineLoad> {
        let host: &Host = self.state.hosts.get(&machine.host?)?;
        if machine.has_ended() || host.revoked {
            return None;
        }
        let session = self.hosts.session(host.id);
        Some(MachineLoad {
            machine: name.clone(),
            host: host.id,
            seen_at: session.map(|session| session.seen_at),
            slots: session.map_or(0, |session| session.slots),
            held: u32::saturating_from(host.live.len()),
            idle_since: machine.idle_since,
            draining: self.hosts.drained_at(name).is_some(),
            // One that is told to end says so at once, and has its units to finish.
            stopped: host.live.is_empty() && session.is_some_and(Session::has_stopped),
        })
    }

    /// Slots of live hosts that weren't bought.
    fn slots_of_others(&self) -> u32 {
        let others = self.hosts.sessions().filter(|(host, _)| {
            let known = self.state.hosts.get(host);
            known.is_some_and(|host| host.machine.is_none() && host.is_admitted())
                && self.eligible.is_live(*host)
        });
        others.fold(0, |sum, (_, session)| sum.saturating_add(session.slots))
    }
}

/// The middle of some numbers, the lower one of two; none where there are none.
fn median(numbers: impl Iterator<Item = u64>) -> Option<u64> {
    let mut numbers: Vec<u64> = numbers.collect();
    numbers.sort_unstable();
    let middle = numbers.len().checked_sub(1)? / 2;
    debug_assert!(to_u64(middle) < to_u64(numbers.len()));
    numbers.get(middle).copied()
}
