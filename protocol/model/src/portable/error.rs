//! Why a file is no exported model.

use crate::error::ModelError;
use sojourn_codec::CodecError;

/// Why a model file isn't valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelFileError {
    /// Another format, or half a file.
    #[error("not a whole safetensors file: {0}")]
    NotSafetensors(String),
    /// Valid, and somebody else's.
    #[error("not written by `sojourn export`: its metadata has no `{}`", super::KEY)]
    NotOurs,
    /// From the future.
    #[error("its format is {found}, this program reads {}", super::FORMAT)]
    Format {
        /// The file's format.
        found: u64,
    },
    /// A description that isn't one.
    #[error("its description can't be read: {0}")]
    Description(String),
    /// A description that contradicts itself.
    #[error("its description contradicts itself: {0}")]
    Contradiction(String),
    /// A type that models don't have.
    #[error("tensor `{tensor}` holds {dtype}, not F32")]
    Dtype {
        /// The tensor.
        tensor: String,
        /// The word for what it holds.
        dtype: String,
    },
    /// A number that no model can be used with.
    #[error("tensor `{0}` has a value that isn't finite")]
    NotFinite(String),
    /// Tensors that aren't the model's.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// What can't be written.
    #[error("the model can't be written")]
    Codec(#[from] CodecError),
}
