//! The test vectors in `protocol/vectors`: what a conforming trainer or client computes, as JSON that any language reads.
//!
//! Each test computes a file's content anew and compares. `SOJOURN_GOLDEN=record cargo test -p sojourn-model --test vectors`
//! writes the files. Do that only where another content is meant: other seeds, names or bytes break every replay
//! of a finished job.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod deltas;
mod file;
mod files;
mod lines;
mod optimizers;
mod schedules;
mod seeds;
mod weights;
