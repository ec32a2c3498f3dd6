//! Architecture as plain data to tensors: layers, names, shapes, FLOPs, initial weights. No libtorch.
//!
//! The server sizes uploads and guesses times with it, the trainer builds its network from it, the
//! assimilator checks checkpoints against it; so all three mean the same model by the same words.
//!
//! ```text
//! Architecture + row shape + outputs --> Network (steps)  --> CheckpointLayout (tensors of a file)
//!                                              |                     |
//!                                        flops_per_row        initial_checkpoint, given_checkpoint
//! ```
//!
//! [`portable`] is the file that an exported model lies in.

mod base;
mod build;
mod checkpoint;
mod error;
mod given;
mod initial;
mod layer;
mod lineage;
mod network;
pub mod portable;

pub use base::base_checkpoint;
pub use checkpoint::{CheckpointLayout, LINEAGE, optimizer_slots};
pub use error::ModelError;
pub use given::{given_checkpoint, given_parameters};
pub use initial::{initial_checkpoint, initial_values};
pub use layer::{Layer, LayerKind, Parameter, Start};
pub use lineage::Lineage;
pub use network::{MAX_PARAMETERS, Network, Step, flops_per_row, validate};
pub use sojourn_codec::{Dtype, TensorSpec};
