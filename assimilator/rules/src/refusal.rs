//! Why a returned checkpoint is refused.

use sojourn_codec::{CodecError, Dtype};
use sojourn_model::ModelError;
use sojourn_protocol::{
    digest::Digest,
    ids::{Epoch, ShardId, TrialId, Version},
};

/// The one reason that a report's host, and whoever looks into it, gets to read.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// Trained from another version than the unit says.
    #[error("trained from version {actual}, the unit's base is version {expected}")]
    Base {
        /// The unit's base.
        expected: Version,
        /// The value of the report.
        actual: Version,
    },
    /// The upload is longer or shorter than reported.
    #[error("the upload has {actual} bytes, {expected} were reported")]
    Size {
        /// The value of the report.
        expected: u64,
        /// The value of the upload.
        actual: u64,
    },
    /// The upload isn't what was reported.
    #[error("the upload's digest is `{actual}`, `{expected}` was reported")]
    Digest {
        /// The value of the report.
        expected: Digest,
        /// The value of the upload.
        actual: Digest,
    },
    /// No canonical safetensors file.
    #[error("the checkpoint can't be read: {0}")]
    Codec(#[from] CodecError),
    /// A tensor of the trial's model isn't there.
    #[error("tensor `{0}` is missing")]
    MissingTensor(String),
    /// A tensor that the trial's model doesn't have.
    #[error("tensor `{0}` isn't one of the trial's checkpoint")]
    UnknownTensor(String),
    /// A tensor of another shape.
    #[error("tensor `{tensor}` has the shape {actual:?}, expected {expected:?}")]
    Shape {
        /// The tensor.
        tensor: String,
        /// The model's.
        expected: Vec<u64>,
        /// The value of the upload.
        actual: Vec<u64>,
    },
    /// A tensor of another type.
    #[error("tensor `{tensor}` holds {actual}, expected {expected}")]
    Dtype {
        /// The tensor.
        tensor: String,
        /// The model's.
        expected: Dtype,
        /// The value of the upload.
        actual: Dtype,
    },
    /// A lineage that can't be read.
    #[error(transparent)]
    Lineage(#[from] ModelError),
    /// A checkpoint of another trial.
    #[error("a checkpoint of trial {actual}, expected trial {expected}")]
    Trial {
        /// The unit's.
        expected: TrialId,
        /// The value of the checkpoint.
        actual: TrialId,
    },
    /// A checkpoint of another hop of the trial, or of another job.
    #[error(
        "a checkpoint of another hop (it says epoch {}, shard {shard}, and the hop seed differs)",
        epoch.0 + 1
    )]
    Hop {
        /// The value of the checkpoint.
        epoch: Epoch,
        /// The value of the checkpoint.
        shard: ShardId,
    },
    /// The position isn't one that the unit can end at, or isn't the reported one.
    #[error("the {what} is {actual}, expected {expected}")]
    Position {
        /// Which part of whose position.
        what: &'static str,
        /// The expected value.
        expected: String,
        /// The result.
        actual: u64,
    },
    /// A mean of squares below zero.
    #[error("tensor `{tensor}` holds {value} at {index}, and can't hold what is negative")]
    Negative {
        /// The tensor.
        tensor: String,
        /// Where in it.
        index: usize,
        /// The value that is there.
        value: f32,
    },
    /// The result would undo what others have trained.
    #[error(
        "its loss on held-out rows is {result}, more than {most} times the {current} of the current version"
    )]
    Canary {
        /// The result's mean loss.
        result: f64,
        /// The current version's, over the same rows.
        current: f64,
        /// So many times that is too much.
        most: f64,
    },
    /// An infinite number or NaN among the values.
    #[error("tensor `{tensor}` holds the non-finite value {value} at index {index}")]
    NonFinite {
        /// The tensor.
        tensor: String,
        /// Where, in row-major order.
        index: usize,
        /// The tensor or value.
        value: f32,
    },
}
