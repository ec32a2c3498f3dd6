//! What `sojourn-trainer` does: the only package that links libtorch.
//!
//! ```text
//! stdin --lines--> serve -- one unit --> unit --> data       shards, scaled, kept in memory
//!                    |                    |-----> model      flat parameters, buffers, optimiser state
//!                 stdout <-- progress ----|-----> train      batches: forward, backward, update
//!                    |                    '-----> evaluate   sums over the shards of a split
//!                    '-- some rows -----> predict            outputs, for people
//! ```
//!
//! Nothing here decides what is trained or whether it counts; a unit says all, and the same unit on
//! the same arithmetic gives the same bytes. A bad unit is answered, never a reason to end.

mod augment;
mod calibrate;
mod data;
mod device;
mod error;
mod evaluate;
mod forward;
mod hop;
mod keeper;
mod listener;
mod memory;
mod model;
mod optimizer;
mod options;
mod orders;
mod pace;
mod places;
mod predict;
mod schedule;
mod serve;
mod sums;
mod tally;
mod train;
mod unit;

#[cfg(test)]
mod fixture;

pub use device::DeviceChoice;
pub use options::Options;
pub use serve::serve;
