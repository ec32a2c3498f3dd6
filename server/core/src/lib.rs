//! The state machine of jobs, hosts, leases, versions and blob references.
//!
//! It decides and does nothing else (DESIGN section 5): no clock, no randomness, no I/O, no threads.
//! A shell feeds [`Envelope`]s to [`Core::apply`] and carries out the [`Effect`]s.

mod command;
mod effect;
mod event;

pub use command::{Command, Envelope, Query, ReplyTo};
pub use effect::{Answer, AssimilationUnit, Effect, JournalPosition, Offered};
pub use event::{EVENT_VERSION, Event, LeaseEnd, Record, UnitKey};

/// The state machine.
#[derive(Debug, Default)]
pub struct Core {}
