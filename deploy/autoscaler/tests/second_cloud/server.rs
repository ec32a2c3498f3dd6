//! A server with work for some machines, and a clock.

use sojourn_autoscaler::{driver, server::Server};
use sojourn_http::CallError;
use sojourn_protocol::{
    demand::{DemandView, JobDemand, WorkloadDemand},
    ids::JobId,
    machines::{
        CostsView, DrainRequest, LeaderAnswer, LeaderRequest, MachineName, MachinesRequest,
    },
    money::MicroUsd,
    time::{Millis, UnixMillis},
};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// Trials that wait.
pub(crate) const TRIALS: u32 = 2;

/// The server, and the time of the cloud that it is beside.
#[derive(Debug, Clone)]
pub(crate) struct WorkServer(pub(crate) Arc<AtomicU64>);

impl driver::World for WorkServer {
    fn now(&self) -> UnixMillis {
        UnixMillis(self.0.load(Ordering::Relaxed))
    }

    fn seed(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

impl Server for WorkServer {
    async fn lead(&self, request: &LeaderRequest) -> Result<LeaderAnswer, CallError> {
        let holder = Some(request.holder.clone());
        Ok(LeaderAnswer { holder, leads: true, term: request.term })
    }

    async fn demand(&self) -> Result<DemandView, CallError> {
        let workload = WorkloadDemand {
            memory: 1,
            trials: TRIALS,
            parallel: TRIALS,
            runnable: TRIALS,
            rows: 7_200_000,
            longest: 3_600_000,
            nanos_per_row: 40_000_000,
            ..WorkloadDemand::default()
        };
        let job = JobDemand { job: JobId(1), workloads: vec![workload], ..JobDemand::default() };
        Ok(DemandView {
            at: driver::World::now(self),
            spent: MicroUsd(0),
            jobs: vec![job],
            machines: Vec::new(),
            other_slots: 0,
        })
    }

    async fn report(&self, _: &MachinesRequest) -> Result<(), CallError> {
        Ok(())
    }

    async fn drain(&self, _: &DrainRequest) -> Result<(), CallError> {
        Ok(())
    }

    async fn costs(&self) -> Result<CostsView, CallError> {
        Ok(CostsView {
            at: driver::World::now(self),
            cost: MicroUsd(0),
            on_demand_cost: MicroUsd(0),
            unused: MicroUsd(0),
            deleted: MicroUsd(0),
            jobs: Vec::new(),
            machines: Vec::new(),
        })
    }

    async fn enrolment_token(&self, machine: &MachineName, _: Millis) -> Result<String, CallError> {
        Ok(format!("token-of-{machine}"))
    }
}
