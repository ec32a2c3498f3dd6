//! Hosts whose processors are shared without loss, and trials whose loss is a curve: what a division of processors and moves between
//! hosts do to completion times, apart from everything else. Virtual time goes from event to event and is exact.
//!
//! | file | holds |
//! |---|---|
//! | `trial.rs` | a trial: when it comes, how much it takes, how its loss falls |
//! | `arrivals.rs` | trials that come by chance |
//! | `host.rs` | one host: who is there, at which rates |
//! | `state.rs` | one trial in virtual time: what is done of it, what it reports |
//! | `moves.rs` | who moves from host to host |
//! | `world.rs` | hosts and trials in virtual time |
//! | `exclusive.rs` | the same with hosts that have one trial at a time |
//! | `thesis.rs` | the experiment of the thesis that FlowCon is held to |
//! | `result.rs` | when each trial ended, and what that makes in all |
//!
//! The study of FlowCon and SpeCon, whose page is `examples/shares/README.md`, uses this model. The policies are the ones that run for real.

mod arrivals;
mod exclusive;
mod host;
mod moves;
mod result;
mod state;
pub mod thesis;
mod trial;
mod world;

pub use arrivals::{Arrivals, Work};
pub use exclusive::{Exclusive, Queue};
pub use moves::Residency;
pub use result::{Ended, Kind, Moved, SharingRun};
pub use trial::{Curve, SharedTrial};
pub use world::{Placement, SharedHosts};
