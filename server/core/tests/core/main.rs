//! Command in, exact effects out.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test ends at what it did not expect"
)]

mod assimilations;
mod copies;
mod course;
mod devices;
mod evaluating;
mod extras;
mod faults;
mod given;
mod legs;
mod merging;
mod placement;
mod plans;
mod promises;
mod recovery;
mod reliability;
mod replicas;
mod sequences;
mod shares;
mod stopping;
mod support;
mod units;
mod verify;
mod waiting;
