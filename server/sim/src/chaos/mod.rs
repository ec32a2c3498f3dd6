//! Seeded worlds in which everything goes wrong that can.
//!
//! A [`World`] is made from one seed: hosts that crash, go silent, fail and lie; a network that loses, delays and repeats
//! messages; a server that dies and loses what it had not synced; assimilators that forget or refuse work. Training is a hash
//! ([`training`]), so that "trained once, in this order" can be checked by a digest. All invariants are checked after each step;
//! then the faults stop and everything must finish.
//!
//! | file | holds |
//! |---|---|
//! | `scenario.rs` | what a seed makes: the job, the hosts, how often what goes wrong |
//! | `world/` | the queue of virtual time, and who does what when |
//! | `server.rs` | the core, its journal, and replies that wait for the journal |
//! | `host.rs` | a virtual client |
//! | `fate.rs` | how its units end |
//! | `hostile.rs` | what hosts do that do harm on purpose |
//! | `liar.rs` | strangers whose lies are hard to find |
//! | `training.rs` | training as a hash |
//! | `verified_hours.rs` | what verification costs a quiet fleet |
//! | `outcome.rs` | what must hold when all is done |

mod fate;
mod host;
mod hostile;
mod liar;
mod lying_strangers;
mod outcome;
mod scenario;
mod server;
pub mod training;
mod verified_hours;
mod world;

pub use hostile::Hostile;
pub use liar::Liar;
pub use outcome::{Broken, Outcome};
pub use scenario::{Faults, Scenario};
pub use verified_hours::VerifiedFleet;
pub use world::World;
