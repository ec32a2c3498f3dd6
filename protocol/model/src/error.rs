//! Why there is no model for an architecture, or no lineage in a checkpoint.

use sojourn_codec::CodecError;

/// What is wrong with an architecture and its data, or with a checkpoint's lineage.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// A row needs at least one side, and each side at least one value.
    #[error("a row of shape {0:?} has no values")]
    EmptyRow(Vec<u32>),
    /// `cnn` takes images.
    #[error("`cnn` needs rows of shape [channels, height, width], these are {0:?}")]
    NotAnImage(Vec<u32>),
    /// A `cnn` without a convolution is another model.
    #[error("`cnn` needs at least one entry in `channels`")]
    NoChannels,
    /// A layer without units.
    #[error("`{key}` has a layer of size 0")]
    EmptyLayer {
        /// The key in the job file.
        key: &'static str,
    },
    /// Nothing to predict.
    #[error("a model needs at least one output")]
    NoOutputs,
    /// More layers than are accepted.
    #[error("`{key}` has {layers} layers, at most {limit} are accepted")]
    TooManyLayers {
        /// The key in the job file.
        key: &'static str,
        /// Layers that were asked for.
        layers: usize,
        /// The limit.
        limit: usize,
    },
    /// More parameters than are accepted.
    #[error("the model has more than {limit} parameters")]
    TooLarge {
        /// The limit.
        limit: u64,
    },
    /// A lineage tensor that isn't one.
    #[error("the lineage {0}")]
    Lineage(String),
    /// The checkpoint can't be laid out.
    #[error("the checkpoint can't be laid out")]
    Codec(#[from] CodecError),
}
