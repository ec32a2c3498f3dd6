//! Why there is no delta, or why one can't be used.

use crate::error::CodecError;

/// Why a delta isn't valid, or can't be made from two checkpoints.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says it")]
pub enum DeltaError {
    #[error("the checkpoint's tensors aren't those of its base")]
    OtherTensors,
    /// The base isn't a canonical file.
    #[error("the base can't be read")]
    Base(#[source] CodecError),
    #[error("not a delta")]
    NotADelta,
    #[error("a delta of version {0}, which isn't known")]
    Version(u8),
    #[error("the delta belongs to another base")]
    OtherBase,
    #[error("the delta declares {declared} bytes, where {allowed} are allowed")]
    Length { declared: u64, allowed: u64 },
    #[error("the delta is damaged: {0}")]
    Damaged(&'static str),
    #[error("the delta gives another checkpoint than it declares")]
    OtherResult,
    #[error("zstd failed")]
    Zstd(#[source] std::io::Error),
}
