//! Assimilation over real uploads and blobs, with a queue that remembers.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod claims;
mod hop;
mod http_queue;
mod merge;
mod world;
