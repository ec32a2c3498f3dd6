//! Architecture as plain data to tensors: layers, names, shapes, FLOPs, initial weights. No libtorch.
//!
//! The server sizes uploads and guesses times with it, the trainer builds its network from it, the
//! assimilator checks checkpoints against it; so all three mean the same model by the same words.
//!
//! ```text
//! Architecture + row shape + outputs --> Network (steps)  --> CheckpointLayout (tensors of a file)
//!                                              |                     |
//!                                        flops_per_row        initial_checkpoint, weights_checkpoint
//! ```
//!
//! [`portable`] is the file that an exported model lies in.

mod base;
mod build;
mod checkpoint;
mod error;
mod initial;
mod initial_weights;
mod layer;
mod lineage;
mod network;
pub mod portable;
mod step;

pub use base::base_checkpoint;
pub use checkpoint::{CheckpointLayout, LINEAGE, optimizer_slots};
pub use error::ModelError;
pub use initial::{initial_checkpoint, initial_values};
pub use initial_weights::{weights_checkpoint, weights_parameters};
pub use layer::{Layer, LayerKind, Parameter, Start};
pub use lineage::Lineage;
pub use network::{Network, flops_per_row, validate};
pub use sojourn_codec::{Dtype, TensorSpec};
pub use step::{MAX_PARAMETERS, Step};
