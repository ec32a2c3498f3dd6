//! The state of a rule between two results: its counters, and its slots for each parameter.
//!
//! The state is kept as a safetensors file beside the checkpoint that it belongs to, both made by one merge and named
//! by one version:
//!
//! ```text
//! merge.counters                I64   see `Counters`
//! merge.momentum.<parameter>    F32   of the parameter's shape, where the rule keeps momentum
//! merge.sum.<parameter>         F32   of the parameter's shape, where the rule keeps a sum
//! ```

mod counters;
mod error;
mod layout;

pub use counters::Counters;
pub use error::StateError;
pub(crate) use layout::{StateLayout, begin, bounds, header_of};

/// The name of the tensor of counters.
pub const COUNTERS: &str = "merge.counters";
