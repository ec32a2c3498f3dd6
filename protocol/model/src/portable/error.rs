//! Why a file is no exported model.

use crate::error::ModelError;
use sojourn_codec::CodecError;

/// Why a model file isn't valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says it")]
pub enum ModelFileError {
    #[error("not a whole safetensors file: {0}")]
    NotSafetensors(String),
    #[error("not written by `sojourn export`: its metadata has no `{}`", super::KEY)]
    NotOurs,
    #[error("its format is {found}, this program reads {}", super::FORMAT)]
    Format { found: u64 },
    #[error("its description can't be read: {0}")]
    Description(String),
    #[error("its description contradicts itself: {0}")]
    Contradiction(String),
    #[error("tensor `{tensor}` holds {dtype}, which no model has")]
    Dtype { tensor: String, dtype: String },
    #[error("tensor `{0}` has a value that isn't finite")]
    NotFinite(String),
    /// Tensors that aren't the model's.
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error("the model can't be written")]
    Codec(#[from] CodecError),
}
