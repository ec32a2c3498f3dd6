//! Why bytes are no canonical safetensors file, or tensors can't be made into one.

use crate::dtype::Dtype;

/// Why a file isn't valid, or tensors can't be encoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// The file ends before its header does.
    #[error("not a safetensors file: {bytes} bytes are too few for its header")]
    Truncated {
        /// Bytes that there are.
        bytes: u64,
    },
    /// The header claims to be larger than any that is accepted.
    #[error("not a safetensors file: a header of {bytes} bytes is over the limit of {limit}")]
    HeaderTooLarge {
        /// The size that the header claims.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// The header is no JSON object of tensors.
    #[error("not a safetensors file: {0}")]
    Header(String),
    /// Valid safetensors, but with free metadata.
    #[error("not canonical: the file carries metadata")]
    Metadata,
    /// A tensor of a type that Sojourn doesn't use.
    #[error("tensor `{tensor}` has the unsupported type `{dtype}`")]
    UnknownDtype {
        /// The tensor.
        tensor: String,
        /// Its type as the header writes it.
        dtype: String,
    },
    /// Two tensors have one name.
    #[error("tensor `{0}` is there twice")]
    Duplicate(String),
    /// Tensors aren't in name order.
    #[error("not canonical: tensor `{0}` is out of order")]
    OutOfOrder(String),
    /// A tensor's bytes don't follow those of the tensor before it, or don't fit its shape.
    #[error(
        "tensor `{tensor}` lies at bytes {begin} to {end}, expected {expected_begin} to {expected_end}"
    )]
    Offsets {
        /// The tensor.
        tensor: String,
        /// First byte as the header says.
        begin: u64,
        /// Byte after the last as the header says.
        end: u64,
        /// First byte as it must be.
        expected_begin: u64,
        /// Byte after the last as it must be.
        expected_end: u64,
    },
    /// The header says the right things in other bytes than the canonical ones.
    #[error("not canonical: the header is not written as Sojourn writes it")]
    HeaderBytes,
    /// The file is shorter or longer than its header says.
    #[error("the file has {actual} bytes, its header says {expected}")]
    Length {
        /// The size by the header.
        expected: u64,
        /// The size that there is.
        actual: u64,
    },
    /// A name that can't be used.
    #[error("`{0}` can't be a tensor's name")]
    Name(String),
    /// A shape whose size in bytes doesn't fit 64 bits.
    #[error("tensor `{0}` is too large")]
    TooLarge(String),
    /// A tensor whose data doesn't fit its shape.
    #[error("tensor `{tensor}` has {actual} bytes, its shape takes {expected}")]
    DataLength {
        /// The tensor.
        tensor: String,
        /// The size of the shape.
        expected: u64,
        /// The size that there is.
        actual: u64,
    },
    /// A tensor was read as another type than its own.
    #[error("tensor `{tensor}` holds {actual}, not {expected}")]
    WrongDtype {
        /// The tensor.
        tensor: String,
        /// The type that it was read as.
        expected: Dtype,
        /// Its type.
        actual: Dtype,
    },
}
