//! A slot: one place on a machine where one unit runs at a time, in a trainer child process.
//!
//! The client's daemon, replay, and simulations that really train all drive a trainer through
//! [`Slot`]. A trainer lives for many units, so that libtorch starts once; it is started anew when it
//! died, when a unit needs other arithmetic ([`Mode`]), or when its unit was given up.
//!
//! | file | holds |
//! |---|---|
//! | `config.rs` | which program, how many threads |
//! | `device.rs` | on which processor |
//! | `crew.rs` | trainers that are looked after together |
//! | `slot.rs` | the slot: units in, outcomes out |
//! | `child.rs` | one process: its lines, its log, its end |
//! | `error.rs` | why there is no trainer |

mod child;
mod config;
mod crew;
mod device;
mod error;
mod slot;

pub use config::{Mode, SlotConfig};
pub use crew::{Crew, Places};
pub use device::{Device, MemoryShare};
pub use error::SlotError;
pub use slot::{Slot, full_pace, no_more_files};
