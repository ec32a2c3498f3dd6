//! Why there is no delta, or why one can't be used.

use crate::error::CodecError;

/// Why a delta isn't valid, or can't be made from two checkpoints.
#[derive(Debug, thiserror::Error)]
pub enum DeltaError {
    /// The new checkpoint has other tensors than the base, so that nothing can be compared.
    #[error("the checkpoint's tensors aren't those of its base")]
    OtherTensors,
    /// The base isn't a canonical file.
    #[error("the base can't be read")]
    Base(#[source] CodecError),
    /// The bytes don't begin as a delta does.
    #[error("not a delta")]
    NotADelta,
    /// A delta of a version that isn't known here.
    #[error("a delta of version {0}, which isn't known")]
    Version(u8),
    /// The delta was made against another base.
    #[error("the delta belongs to another base")]
    OtherBase,
    /// The delta declares another length than its base has, or more than is allowed.
    #[error("the delta declares {declared} bytes, where {allowed} are allowed")]
    Length {
        /// The declared size.
        declared: u64,
        /// The largest size that it may declare.
        allowed: u64,
    },
    /// The delta's bytes make no sense.
    #[error("the delta is damaged: {0}")]
    Damaged(&'static str),
    /// The result isn't the checkpoint that the delta names.
    #[error("the delta gives another checkpoint than it declares")]
    OtherResult,
    /// The entropy coder failed, for want of memory.
    #[error("zstd failed")]
    Zstd(#[source] std::io::Error),
}
