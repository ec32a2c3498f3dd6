//! Why a merge can't be made.

use crate::{refusal::Refusal, state::StateError};
use sojourn_codec::CodecError;
use sojourn_model::ModelError;
use sojourn_protocol::spec::RuleFault;

/// Why a result can't be merged.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum MergeError {
    /// A parameter of the rule is out of its range.
    #[error(transparent)]
    Rule(#[from] RuleFault),
    /// A file that isn't one of the trial's.
    #[error("the {file} can't be used: {fit}")]
    File {
        /// Which one: base, current version, result, merge state.
        file: &'static str,
        /// The problem.
        fit: Fit,
    },
    /// A state that doesn't belong to the rule, or not to the version.
    #[error("the merge state can't be used: {0}")]
    State(#[from] StateError),
    /// A lineage that can't be read.
    #[error(transparent)]
    Lineage(#[from] ModelError),
    /// The result lies farther from its base than training ever leads, or isn't finite.
    #[error("the change has the norm {0}: no training changes a model so much")]
    Norm(f64),
    /// A file would be larger than this machine can hold.
    #[error(transparent)]
    Codec(#[from] CodecError),
}

/// Why a file isn't one of the trial's.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Fit {
    /// No canonical safetensors file.
    #[error(transparent)]
    Codec(CodecError),
    /// Other tensors.
    #[error(transparent)]
    Tensors(Box<Refusal>),
}

impl Fit {
    pub(crate) const fn of(self, file: &'static str) -> MergeError {
        MergeError::File { file, fit: self }
    }
}
