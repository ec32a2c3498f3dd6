//! Why there is no model for an architecture, or no lineage in a checkpoint.

use sojourn_codec::CodecError;

/// Why an architecture doesn't fit its data, or a checkpoint's lineage isn't valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says it")]
pub enum ModelError {
    #[error("a row of shape {0:?} has no values")]
    EmptyRow(Vec<u32>),
    #[error("`{what}` needs rows of shape [channels, height, width], these are {shape:?}")]
    NotAnImage { what: &'static str, shape: Vec<u32> },
    #[error("`depth` is {depth}, which isn't 9n + 2 (11, 20, 29 and so on, up to {limit})")]
    Depth { depth: u32, limit: u32 },
    #[error("`crop` is {crop}, more than the images' shorter side, {side}")]
    Crop { crop: u32, side: u32 },
    #[error("`cnn` needs at least one entry in `channels`")]
    NoChannels,
    #[error("`{key}` has a layer of size 0")]
    EmptyLayer { key: &'static str },
    #[error("a model needs at least one output")]
    NoOutputs,
    #[error("`{key}` has {layers} layers, at most {limit} are accepted")]
    TooManyLayers { key: &'static str, layers: usize, limit: usize },
    #[error("the model has more than {limit} parameters")]
    TooLarge { limit: u64 },
    #[error("tensor `{0}` of the model is missing")]
    LacksTensor(String),
    #[error("tensor `{name}` is {actual}, the model's is {expected}")]
    OtherTensor { name: String, actual: String, expected: String },
    #[error("tensor `{0}` is none of the model's")]
    ForeignTensor(String),
    #[error("`{0}` has not been exported as a graph for these values")]
    NotExported(String),
    #[error("`{0}` isn't a built-in architecture")]
    NotBuiltIn(String),
    #[error("the graph has more than {limit} tensors")]
    TooManyTensors { limit: usize },
    #[error("the graph has no parameters, so there is nothing to train")]
    NoParameters,
    #[error("the graph's tensor `{name}` {fault}")]
    Tensor { name: String, fault: &'static str },
    #[error("tensor `{0}` begins with numbers of the graph's file, which isn't at hand")]
    NotGiven(String),
    #[error("the lineage {0}")]
    Lineage(String),
    #[error("the checkpoint can't be laid out")]
    Codec(#[from] CodecError),
}
