//! Why bytes are no canonical safetensors file, or tensors can't be made into one.

use crate::Dtype;

/// Why a file isn't valid, or tensors can't be encoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says it")]
pub enum CodecError {
    #[error("not a safetensors file: {bytes} bytes are too few for its header")]
    Truncated { bytes: u64 },
    #[error("not a safetensors file: a header of {bytes} bytes is over the limit of {limit}")]
    HeaderTooLarge { bytes: u64, limit: u64 },
    #[error("not a safetensors file: {0}")]
    Header(String),
    #[error("not canonical: the file carries metadata")]
    Metadata,
    #[error("tensor `{tensor}` has the unsupported type `{dtype}`")]
    UnknownDtype { tensor: String, dtype: String },
    #[error("tensor `{0}` is there twice")]
    Duplicate(String),
    #[error("not canonical: tensor `{0}` is out of order")]
    OutOfOrder(String),
    #[error(
        "tensor `{tensor}` lies at bytes {begin} to {end}, expected {expected_begin} to {expected_end}"
    )]
    Offsets { tensor: String, begin: u64, end: u64, expected_begin: u64, expected_end: u64 },
    #[error("not canonical: the header is not written as Sojourn writes it")]
    HeaderBytes,
    #[error("the file has {actual} bytes, its header says {expected}")]
    Length { expected: u64, actual: u64 },
    #[error("`{0}` can't be a tensor's name")]
    Name(String),
    #[error("tensor `{0}` is too large")]
    TooLarge(String),
    #[error("tensor `{tensor}` has {actual} bytes, its shape takes {expected}")]
    DataLength { tensor: String, expected: u64, actual: u64 },
    #[error("tensor `{tensor}` holds {actual}, not {expected}")]
    WrongDtype { tensor: String, expected: Dtype, actual: Dtype },
}
