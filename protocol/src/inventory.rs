//! A host's inventory, and its demand for work.
//!
//! Both are parts of requests of programs: a server leaves out fields that it doesn't know. A field without which the rest
//! means something else needs a word of
//! [`FEATURES_HEADER`](crate::api::FEATURES_HEADER).

use crate::{
    digest::Digest,
    engine::{Engine, MODELS_OF_BEFORE},
    metrics::is_default,
    spec::{Architecture, OptimizerName, Precision},
    unit::TrialContext,
};
use serde::{Deserialize, Serialize};

/// The properties of a host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Inventory {
    /// Digests of cached blobs.
    pub cached: Vec<Digest>,
    /// The host's devices, each kind once.
    pub devices: Vec<Device>,
    /// Version of the client program.
    pub client: String,
    /// How fast bytes go between it and the server.
    #[serde(default, skip_serializing_if = "is_default")]
    pub links: Links,
    /// Bytes that its cache may hold; unknown where left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<u64>,
    /// The host's disk has less room left than its owner keeps free, so it takes no units. Only for servers with the feature
    /// [`DISK_RESERVES`](crate::api::DISK_RESERVES).
    #[serde(default, skip_serializing_if = "is_default")]
    pub disk_is_low: bool,
}

/// Bytes per second between a host and its server, as the host measured or its owner allows; unknown where left
/// out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
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
    /// Measurements of units there. Times are those that the units would have taken in `numeric_class`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub measured: Vec<Measured>,
    /// The numeric classes that it computes in, the fastest first; `numeric_class` is one of them. Left out where that
    /// is the only one, or the instruction set isn't known. Only for servers with the feature
    /// [`SEVERAL_CLASSES`](crate::api::SEVERAL_CLASSES).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<OfferedClass>,
    /// The programs that train on it. Clients of before leave them out: theirs trains `mlp`, `cnn` and `resnet`. Only for
    /// servers with the feature [`ENGINES`](crate::api::ENGINES).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub engines: Vec<Engine>,
    /// Workloads that its engines have refused as unsupported: no unit of them is wanted there. Only for servers with the
    /// feature [`UNSUPPORTED_UNITS`](crate::api::UNSUPPORTED_UNITS).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsupported: Vec<Workload>,
}

/// A numeric class that a device computes in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OfferedClass {
    /// The instruction set that its trainers are pinned to: `avx2` or `avx512`. A lease names it.
    pub instructions: String,
    /// The class.
    pub numeric_class: Digest,
    /// Floating-point operations per second of one slot, as its trainer measured.
    pub flops: f64,
}

impl Device {
    /// A device of which nothing more is known.
    #[must_use]
    pub fn new(name: impl Into<String>, numeric_class: Digest, flops: f64) -> Self {
        Self {
            name: name.into(),
            numeric_class,
            flops,
            memory: None,
            measured: Vec::new(),
            classes: Vec::new(),
            engines: Vec::new(),
            unsupported: Vec::new(),
        }
    }

    /// Does one of its engines train that model?
    #[must_use]
    pub fn trains(&self, model: &str) -> bool {
        if self.names_no_engine() {
            return MODELS_OF_BEFORE.contains(&model);
        }
        self.engines.iter().any(|engine| engine.trains(model))
    }

    /// Is its client one of before, which doesn't say what trains there?
    #[must_use]
    pub const fn names_no_engine(&self) -> bool {
        self.engines.is_empty()
    }
}

/// The speed of a class in which a device is as fast as in its common one, [`Device::numeric_class`].
pub const COMMON_SPEED: u64 = 1000;

/// How fast a device is in a class, where it makes `flops` operations per second there and `common` in its common
/// class: thousandths of the latter, from a quarter to 16 times as fast.
#[must_use]
pub fn class_speed(flops: f64, common: f64) -> u64 {
    const MIN_SPEED: f64 = 250.0;
    const MAX_SPEED: f64 = 16_000.0;
    let speed = flops / common * 1000.0;
    if !speed.is_finite() {
        return COMMON_SPEED;
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to a range of whole numbers"
    )]
    let speed = speed.clamp(MIN_SPEED, MAX_SPEED).round() as u64;
    speed
}

/// The name of the device that is the machine's cores.
pub const CPU: &str = "cpu";

/// Measured time and memory of one workload's units on a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
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
            model: context.config.model.name_only(),
            shape: context.shape.clone(),
            outputs: context.outputs,
            batch_size: training.batch_size,
            precision: training.precision,
            optimizer: training.optimizer.name,
        }
    }

    /// Are two trials' units surely of one workload? Quicker than comparing the workloads themselves.
    #[must_use]
    pub fn is_shared(a: &TrialContext, b: &TrialContext) -> bool {
        let (first, second) = (&a.config.training, &b.config.training);
        a.shape == b.shape
            && a.outputs == b.outputs
            && first.batch_size == second.batch_size
            && first.precision == second.precision
            && first.optimizer.name == second.optimizer.name
            && a.config.model == b.config.model
    }
}

/// The demand of one device's slots for work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Demand {
    /// [`Device::name`].
    pub device: String,
    /// The device's slots in all.
    pub slots: u32,
    /// Slots without a unit to run: work for them is never held back.
    pub idle: u32,
    /// Leases wanted beside those held, `idle` included.
    pub wanted: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_names_no_engine_trains_what_trainers_of_before_did() {
        let device = Device::new(CPU, Digest::of(b"class"), 1e9);
        assert!(device.names_no_engine());
        assert_eq!(
            ["mlp", "cnn", "resnet", "graph"].map(|m| device.trains(m)),
            [true, true, true, false]
        );
        let engine = |model: &str| Engine {
            name: "numpy".into(),
            framework: "numpy 2.3.1".into(),
            models: vec![model.into()],
        };
        let device = Device { engines: vec![engine("mlp"), engine("graph")], ..device };
        assert!(!device.names_no_engine());
        assert_eq!(
            ["mlp", "cnn", "resnet", "graph"].map(|m| device.trains(m)),
            [true, false, false, true]
        );
    }

    #[test]
    fn servers_of_before_take_a_device_that_says_nothing_of_engines() {
        let device = Device::new(CPU, Digest::of(b"class"), 1e9);
        let json = serde_json::to_string(&device).unwrap();
        assert!(!json.contains("engines") && !json.contains("unsupported"), "{json}");
    }
}
