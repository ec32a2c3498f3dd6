//! A slot runs one unit at a time, in a trainer child process.
//!
//! The daemon, replay, and simulations that really train all drive a trainer through [`Slot`]. A trainer lives for many
//! units, so that libtorch starts once. It is started anew after it has died, for a unit that needs other arithmetic
//! ([`Mode`]), and after its unit was aborted.
//!
//! | file | holds |
//! |---|---|
//! | `config.rs` | which program, how many threads |
//! | `device.rs` | on which processor |
//! | `trainer_group.rs` | trainers that are looked after together |
//! | `slot.rs` | the slot: units in, outcomes out |
//! | `child.rs` | one process: its lines, its log, its end |
//! | `error.rs` | why there is no trainer |
//!
//! ```
//! use sojourn_slot::MemoryRatio;
//!
//! // A quarter of a GPU's memory, as libtorch reads it.
//! assert_eq!(MemoryRatio::of(10 << 30, 40 << 30).to_string(), "0.2500");
//! ```

mod child;
mod config;
mod device;
mod error;
mod slot;
mod trainer_group;

pub use config::{Mode, SlotConfig, supported_instructions};
pub use device::{Device, MemoryRatio};
pub use error::SlotError;
pub use slot::{Slot, full_pace, no_more_files};
pub use trainer_group::{Places, TrainerGroup};
