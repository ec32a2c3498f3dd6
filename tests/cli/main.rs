//! The command line, whole process: what is said, on which stream, with which exit code.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod calls;
mod reading;
mod server;
mod submit;
mod support;
mod validate;
