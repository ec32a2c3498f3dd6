//! The costs of bought machines: of all, by job and trial, and of each.

use super::Views;
use sojourn_protocol::{
    ids::JobId,
    machines::{CostsView, JobCost, MachineView, TrialCost},
};
use sojourn_state::{Costs, Machine, MachineCost};

impl Views<'_> {
    /// All costs up to now.
    pub(crate) fn costs(&self) -> CostsView {
        let costs = self.state.costs(self.now);
        let total = costs.total();
        CostsView {
            at: self.now,
            cost: total.paid,
            on_demand_cost: total.on_demand,
            unused: costs.unused.paid,
            deleted: costs.deleted.paid,
            jobs: costs.trials.keys().filter_map(|job| self.job_cost(*job, &costs)).collect(),
            machines: self.state.machines.iter().filter_map(|(_, m)| self.machine(m)).collect(),
        }
    }

    fn job_cost(&self, id: JobId, costs: &Costs) -> Option<JobCost> {
        let (job, trials) = (self.state.jobs.get(&id)?, costs.trials.get(&id)?);
        let MachineCost { paid, on_demand } = costs.of_job(id);
        let trials = trials.iter().map(|(trial, cost)| TrialCost {
            trial: *trial,
            cost: cost.paid,
            on_demand_cost: cost.on_demand,
        });
        Some(JobCost {
            job: id,
            name: job.spec.name.clone(),
            cost: paid,
            on_demand_cost: on_demand,
            budget: job.spec.placement.budget,
            trials: trials.collect(),
        })
    }

    fn machine(&self, machine: &Machine) -> Option<MachineView> {
        let report = machine.report.as_ref()?;
        let draining = report.ended_at.is_none() && self.hosts.drained_at(&report.name).is_some();
        Some(MachineView {
            machine: report.clone(),
            host: machine.host,
            run_time: report.run_time(self.now),
            cost: report.cost(self.now),
            draining,
        })
    }
}
