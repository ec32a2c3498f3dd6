//! The exact properties of the merge rules, over slices and over files.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "a test ends at what it did not expect"
)]

mod files;
mod overlap;
mod plain;
mod ranges;
mod refused;
mod slices;
mod support;
mod threads;
mod trial;
