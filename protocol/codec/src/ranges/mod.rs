//! A blob as a sequence of ranges, each compressed by itself, and the index that says which they are.
//!
//! ```text
//! index                                                    pieces, each one zstd frame
//! sojourn ranges 1 <sha256 of the blob> <its bytes>
//! <name> <bytes> <packed bytes> <sha256 of the bytes>  ->  bytes 0 .. a of the blob
//! <name> <bytes> <packed bytes> <sha256 of the bytes>  ->  bytes a .. b
//! end <sha256 of all lines before>
//! ```
//!
//! The blob is named by its whole raw bytes, as if it were stored in one piece: how it is cut, and what zstd made of
//! it, is nobody's business but the store's. Who wants a few bytes reads the pieces that have them, and finds each to
//! be right by its own digest.

mod index;
mod piece;

pub use index::{Index, IndexError};
pub use piece::{MAX_PIECE_BYTES, Piece, PieceError, pack};
