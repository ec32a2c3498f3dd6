//! Why there is no model for an architecture, or no lineage in a checkpoint.

use sojourn_codec::CodecError;

/// Why an architecture doesn't fit its data, or a checkpoint's lineage isn't valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// A row needs at least one side, and each side at least one value.
    #[error("a row of shape {0:?} has no values")]
    EmptyRow(Vec<u32>),
    /// Convolutions take images.
    #[error("`{what}` needs rows of shape [channels, height, width], these are {shape:?}")]
    NotAnImage {
        /// The word in the job file that asks for images.
        what: &'static str,
        /// The shape that was met.
        shape: Vec<u32>,
    },
    /// A residual network of this depth isn't defined.
    #[error("`depth` is {depth}, which isn't 9n + 2 (11, 20, 29 and so on, up to {limit})")]
    Depth {
        /// The requested value.
        depth: u32,
        /// The deepest that is accepted.
        limit: u32,
    },
    /// A crop that could leave nothing of an image.
    #[error("`crop` is {crop}, more than the images' shorter side, {side}")]
    Crop {
        /// The requested value.
        crop: u32,
        /// Height or width, whichever is less.
        side: u32,
    },
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
    /// Parameters without one of the model's.
    #[error("tensor `{0}` of the model is missing")]
    LacksTensor(String),
    /// A parameter of another type or shape than the model's.
    #[error("tensor `{name}` is {actual}, the model's is {expected}")]
    OtherTensor {
        /// Its name.
        name: String,
        /// Its type and shape.
        actual: String,
        /// The model's.
        expected: String,
    },
    /// A parameter that the model hasn't got.
    #[error("tensor `{0}` is none of the model's")]
    ForeignTensor(String),
    /// A lineage tensor that isn't one.
    #[error("the lineage {0}")]
    Lineage(String),
    /// The checkpoint can't be laid out.
    #[error("the checkpoint can't be laid out")]
    Codec(#[from] CodecError),
}
