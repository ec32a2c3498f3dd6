//! Model architectures as plain data: layers, tensor names and shapes, FLOPs, initial weights. No libtorch.
//!
//! The server computes upload sizes and estimates times with it, the trainer builds its network from it, and the
//! assimilator checks checkpoints against it. So all three mean the same model.
//!
//! ```text
//! Architecture + row shape + outputs --> Network (steps)  --> CheckpointLayout (tensors of a file)
//!                                              |                     |
//!                                        flops_per_row        initial_checkpoint, weights_checkpoint
//! ```
//!
//! ```
//! use sojourn_model::Network;
//! use sojourn_protocol::spec::Architecture;
//!
//! // 8 features, 16 hidden units, 2 outputs: weights and biases of two layers.
//! let network = Network::of(&Architecture::mlp([16]), &[8], 2)?;
//! assert_eq!(network.parameter_count(), 8 * 16 + 16 + 16 * 2 + 2);
//! # Ok::<(), sojourn_model::ModelError>(())
//! ```
//!
//! [`portable`] is the file format of exported models.

mod base;
mod build;
mod checkpoint;
mod error;
mod initial;
mod initial_weights;
mod layer;
mod lineage;
mod memory;
mod network;
pub mod portable;
pub mod shard;
mod step;
mod trial_model;
mod validate;

pub use base::base_checkpoint;
pub use checkpoint::{BufferKind, CheckpointLayout, Moment, OptimizerSlot, Role, optimizer_slots};
pub use error::ModelError;
pub use initial::{GIVEN, graph_checkpoint, initial_checkpoint, initial_values};
pub use initial_weights::{weights_checkpoint, weights_parameters};
pub use layer::{Layer, LayerKind, Parameter};
pub use lineage::Lineage;
pub use memory::{ModelSize, Place, Work, least_memory};
pub use network::Network;
pub use sojourn_codec::{Dtype, TensorSpec};
pub use sojourn_protocol::spec::Start;
pub use step::{MAX_PARAMETERS, Step};
pub use trial_model::{
    Computation, LINEAGE, MAX_TENSOR_NAME, MAX_TENSORS, TrialModel, check_tensors,
};
pub use validate::{flops_per_row, validate};
