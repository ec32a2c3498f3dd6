//! Assimilation over real uploads and blobs, with a queue that remembers.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod hop;
mod merge;
mod remote;
mod taking;
mod world;
