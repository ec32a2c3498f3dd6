//! `GET /v1/demand`: the work that there is for machines, for whoever buys them.

use crate::{
    ids::{HostId, JobId},
    machines::MachineName,
    metrics::is_default,
    money::MicroUsd,
    time::UnixMillis,
};
use serde::{Deserialize, Serialize};

/// Work that could be done, and the bought machines that are there for it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DemandView {
    /// Up to when.
    pub at: UnixMillis,
    /// The cost of all machines together up to then, as far as the server was told.
    pub spent: MicroUsd,
    /// Jobs with work left that aren't paused; those that come first are first.
    pub jobs: Vec<JobDemand>,
    /// The bought machines that have enrolled and haven't ended.
    pub machines: Vec<MachineLoad>,
    /// Slots of live hosts that weren't bought. They work for nothing.
    pub other_slots: u32,
}

/// The work that is left of a job.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobDemand {
    /// The job.
    pub job: JobId,
    /// The job's name.
    pub name: String,
    /// Jobs of a higher one come first.
    pub priority: i32,
    /// When it is to end, where that was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<UnixMillis>,
    /// The most that the job may cost, where that was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<MicroUsd>,
    /// The cost of the job so far.
    pub spent: MicroUsd,
    /// The most hosts that may work for it at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_hosts: Option<u32>,
    /// The job's units, by what decides their time and memory.
    pub workloads: Vec<WorkloadDemand>,
}

/// Units of one job that are alike in time and memory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WorkloadDemand {
    /// The model, for people: its architecture and size.
    pub model: String,
    /// Bytes of memory that a unit takes: the highest measured peak, or what it takes at least where none was measured.
    pub memory: u64,
    /// Trials that train on. In hop order no more slots are of use at a time.
    pub trials: u32,
    /// Slots that can be of use at a time: one for each trial in hop order, more while results are merged.
    pub parallel: u32,
    /// Units that could start now, if there were a slot for each.
    pub runnable: u32,
    /// Units that run.
    pub running: u32,
    /// Units that can start once those that run have ended.
    pub soon: u32,
    /// Rows that are still to be trained on, over all trials and epochs; a row of another epoch is another one.
    pub rows: u64,
    /// The same of the trial with most of them.
    pub longest: u64,
    /// Nanoseconds for a row at one GFLOP/s, from the model's operations alone.
    pub nanos_per_row: u64,
    /// Times that were measured, by type of machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub measured: Vec<MeasuredSpeed>,
}

/// How fast machines of one type are at a workload.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MeasuredSpeed {
    /// The type.
    pub instance_type: String,
    /// Slots of such a machine.
    pub slots: u32,
    /// Nanoseconds for a row in one slot: the median over the machines.
    pub nanos_per_row: u64,
    /// Machines that this is from.
    pub machines: u32,
}

/// `GET /v1/speeds`: what was measured of bought machines, for whoever estimates what a job will cost.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SpeedsView {
    /// The types of machines that were bought, by name.
    pub types: Vec<TypeSpeed>,
}

/// The speed and the price of a type of machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TypeSpeed {
    /// The type.
    pub instance_type: String,
    /// Slots of such a machine.
    pub slots: u32,
    /// Machines of it that were measured.
    pub machines: u32,
    /// Operations per second of one slot in training, from what units took there: the median over the machines.
    pub flops: u64,
    /// The price of an hour when the last one was launched.
    pub price: MicroUsd,
    /// The price of an hour on demand.
    pub on_demand_price: MicroUsd,
}

/// The load of a bought machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MachineLoad {
    /// The machine.
    pub machine: MachineName,
    /// The machine's host.
    pub host: HostId,
    /// When it was last in contact; none since the server started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_at: Option<UnixMillis>,
    /// The host's slots; 0 until it has said them.
    pub slots: u32,
    /// Units that it holds.
    pub held: u32,
    /// Since when it holds none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_since: Option<UnixMillis>,
    /// The machine was told to end.
    #[serde(default, skip_serializing_if = "is_default")]
    pub draining: bool,
    /// The host has said that it ends, and holds no unit any more.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stopped: bool,
}
