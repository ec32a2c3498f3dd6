//! Canonical safetensors and the bounds that decoding keeps. Pure: bytes in, bytes out.
//!
//! A blob is named by the digest of its bytes, so the same tensors must always give the same bytes.
//! The safetensors format leaves three things open, and this package closes them:
//!
//! ```text
//! | u64 header length | JSON header, compact, padded with spaces to 8 bytes | tensor bytes ... |
//!                       tensors in name order, no `__metadata__`,              in the same order,
//!                       keys `dtype`, `shape`, `data_offsets`                  without gaps
//! ```
//!
//! [`decode`] refuses all other valid safetensors, because two encodings of one model
//! would be two blobs. Every reader of the format reads what is written here.
//!
//! [`delta`] says a checkpoint by what changed since another one; [`ranges`] stores one in several pieces; [`packed`] is a blob as
//! one compressed frame.
//!
//! ```
//! use sojourn_codec::{Tensor, decode, encode};
//!
//! let weights = Tensor::f32("weights", [2], &[1.0, -0.5]);
//! let file = encode(std::slice::from_ref(&weights))?;
//! let tensors = decode(&file)?;
//! assert_eq!(tensors[0].to_tensor(), weights);
//! # Ok::<(), sojourn_codec::CodecError>(())
//! ```
//!
//! [`encode_described`] writes a file for people, with a text in `__metadata__`; it never is a blob.

mod decode;
pub mod delta;
mod error;
mod layout;
pub mod packed;
pub mod ranges;
mod tensor;

pub use decode::{TensorView, decode, decode_header};
pub use error::CodecError;
pub use layout::{Layout, MAX_HEADER_BYTES, encode, encode_described};
pub use sojourn_protocol::dtype::Dtype;
pub use tensor::{Tensor, TensorSpec};
