//! The shell around the core.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod durability;
mod faults;
mod support;
