//! The state machine of jobs, hosts, leases, versions and blob references.
//!
//! It decides and does nothing else (DESIGN section 5): no clock, no randomness, no I/O, no threads.
//! A shell feeds [`Envelope`]s to [`Core::apply`] and carries out the [`Effect`]s.
//!
//! ```text
//!   Envelope --> Core::apply --> handle/* decide Events --> State::fold
//!   (time, seed,    |                    |
//!    command)       '-- Soft (terms,     '--> Effects: Persist, Reply{after}, Assimilate, Delete...
//!                       contacts, who waits)
//! ```
//!
//! [`State`] is durable and is the fold of the events alone; [`soft`](crate::Core) state comes back by
//! itself after a restart.

mod assimilations;
mod command;
mod config;
mod contact;
mod core;
mod effect;
mod event;
mod fault;
mod handle;
mod invariants;
mod parked;
mod promises;
mod round;
mod schedule;
mod shares;
mod soft;
pub mod state;
mod view;
mod view_extra;
mod waits;

pub use command::{Command, Envelope, MergeOffer, Query, ReplyTo};
pub use config::CoreConfig;
pub use core::{Core, RecoverError, snapshot_of};
pub use effect::{Answer, AssimilationCounts, AssimilationUnit, Effect, JournalPosition, Offered};
pub use event::{EVENT_VERSION, Event, Fault, LeaseEnd, MergeMode, READ_VERSIONS, Record, UnitKey};
pub use fault::{CoreFault, SnapshotError};
pub use invariants::Violation;
pub use state::{
    AtEnd, BlobStatus, Change, Changes, FoldError, FoldFault, RequestedEvaluation, State, Trust,
};
