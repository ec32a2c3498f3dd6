//! Architectures as plain data; their tensors and costs are in `sojourn-model`.

use super::dimension::{Chooser, Dimension};
use serde::{Deserialize, Serialize};

/// One concrete architecture.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "arch", rename_all = "snake_case", deny_unknown_fields)]
pub enum Architecture {
    /// Fully connected layers with ReLU between them, over the flattened row.
    Mlp {
        /// Units of each hidden layer; empty for a linear model.
        hidden: Vec<u32>,
    },
    /// Per entry one 3x3 convolution (padding 1), ReLU and 2x2 max pooling where both sides are
    /// still at least 2; then one fully connected layer.
    Cnn {
        /// Channels of each convolution.
        channels: Vec<u32>,
    },
}

impl Architecture {
    /// The word that a job file uses for it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Architecture::Mlp { .. } => "mlp",
            Architecture::Cnn { .. } => "cnn",
        }
    }
}

/// One `[[model]]` table: an architecture with its own dimensions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "arch", rename_all = "snake_case", deny_unknown_fields)]
pub enum ModelSpace {
    /// See [`Architecture::Mlp`].
    Mlp {
        /// Units of each hidden layer.
        hidden: Dimension<Vec<u32>>,
    },
    /// See [`Architecture::Cnn`].
    Cnn {
        /// Channels of each convolution.
        channels: Dimension<Vec<u32>>,
    },
}

impl ModelSpace {
    /// The concrete architecture that `chooser` takes; dimension names start with `prefix`.
    pub fn close(&self, prefix: &str, chooser: &mut dyn Chooser) -> Option<Architecture> {
        Some(match self {
            ModelSpace::Mlp { hidden } => {
                Architecture::Mlp { hidden: hidden.close(&format!("{prefix}.hidden"), chooser)? }
            }
            ModelSpace::Cnn { channels } => Architecture::Cnn {
                channels: channels.close(&format!("{prefix}.channels"), chooser)?,
            },
        })
    }
}
