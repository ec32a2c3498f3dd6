//! A host's inventory, and its demand for work.
//!
//! Both are parts of requests, so a server refuses fields that it doesn't know: a new field needs a word of
//! [`FEATURES_HEADER`](crate::api::FEATURES_HEADER).

use crate::{
    digest::Digest,
    metrics::is_default,
    spec::{Architecture, OptimizerName, Precision},
    unit::TrialContext,
};
use serde::{Deserialize, Serialize};

/// The properties of a host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Inventory {
    /// Digests of cached blobs.
    pub cached: Vec<Digest>,
    /// Its devices, each kind once.
    pub devices: Vec<Device>,
    /// Version of the client program.
    pub client: String,
    /// How fast bytes go between it and the server.
    #[serde(default, skip_serializing_if = "is_default")]
    pub links: Links,
    /// Bytes that its cache may hold; unknown where left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<u64>,
}

/// Bytes per second between a host and its server, as the host measured or its owner allows; unknown where left
/// out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Links {
    /// From the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub download: Option<u64>,
    /// To the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upload: Option<u64>,
}

/// The processors of one kind that a host trains on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// `cpu`, or the GPUs' name: what names it among the host's devices.
    pub name: String,
    /// The numeric class of its trainers.
    pub numeric_class: Digest,
    /// Floating-point operations per second of one slot, as its trainer measured.
    pub flops: f64,
    /// Bytes of memory that one unit may take; unknown where left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// Measurements of units there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub measured: Vec<Measured>,
}

impl Device {
    /// A device of which nothing more is known.
    #[must_use]
    pub fn new(name: impl Into<String>, numeric_class: Digest, flops: f64) -> Self {
        Self { name: name.into(), numeric_class, flops, memory: None, measured: Vec::new() }
    }
}

/// The name of the device that is the machine's cores.
pub const CPU: &str = "cpu";

/// Measured time and memory of one workload's units on a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// The workload that was trained.
    pub workload: Workload,
    /// Nanoseconds of training per row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nanos_per_row: Option<u64>,
    /// The most bytes of the device's memory that a unit took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_memory: Option<u64>,
    /// A unit ran out of memory: no unit of the workload is wanted there again.
    #[serde(default, skip_serializing_if = "is_default")]
    pub out_of_memory: bool,
}

/// The properties of units that decide their time per row and their memory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// The model.
    pub model: Architecture,
    /// Shape of one row.
    pub shape: Vec<u32>,
    /// Outputs of the model.
    pub outputs: u32,
    /// Rows in a batch.
    pub batch_size: u32,
    /// The numbers that the model computes in.
    #[serde(default, skip_serializing_if = "is_default")]
    pub precision: Precision,
    /// The optimizer. Its state lies in memory beside the parameters.
    pub optimizer: OptimizerName,
}

impl Workload {
    /// The workload of a trial's units.
    #[must_use]
    pub fn of(context: &TrialContext) -> Self {
        let training = &context.config.training;
        Self {
            model: context.config.model.clone(),
            shape: context.shape.clone(),
            outputs: context.outputs,
            batch_size: training.batch_size,
            precision: training.precision,
            optimizer: training.optimizer.name,
        }
    }
}

/// The demand of one device's slots for work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Demand {
    /// [`Device::name`].
    pub device: String,
    /// Its slots in all.
    pub slots: u32,
    /// Slots without a unit to run: work for them is never held back.
    pub idle: u32,
    /// Leases wanted beside those held, `idle` included.
    pub wanted: u32,
}
