//! The program `sojourn-trainer`, which trains, evaluates and predicts. Only this package links libtorch.
//!
//! ```text
//! stdin --lines--> serve -- one unit --> unit --> data       shards as columns, kept in memory
//!                    |                    |-----> model      flat parameters, buffers, optimiser state
//!                 stdout <-- progress ----|-----> train      batches: forward, backward, update
//!                    |                    |-----> evaluate   sums over the shards of a split
//!                    |                    '-----> objective  of a network (forward) or a graph (graph)
//!                    '-- some rows -----> predict            outputs, for people
//! ```
//!
//! Nothing here decides what is trained or whether it counts; a unit says all, and the same unit on
//! the same arithmetic gives the same bytes. A bad unit is answered, never a reason to end.

mod arrays;
mod augment;
mod batch;
mod buffers;
mod calibrate;
mod columns;
mod data;
mod device;
mod engine;
mod error;
mod evaluate;
mod files;
mod flat_layout;
mod forward;
mod graph;
mod hop;
mod kind;
mod listener;
mod memory;
mod model;
mod moves;
mod objective;
mod optimizer;
mod options;
mod pace;
mod predict;
mod save_interval;
mod scaler;
mod schedule;
mod serve;
mod sums;
mod tally;
mod targets;
mod train;
mod unit;
mod unit_control;
mod usage;

#[cfg(test)]
mod fixture;

pub use device::DeviceChoice;
pub use options::Options;
pub use serve::serve;
