//! The state machine of jobs, hosts, leases, versions and blob references.
//!
//! The state machine decides and does nothing else: no clock, no randomness, no I/O, no threads. A shell feeds [`Envelope`]s to
//! [`Core::apply`] and carries out the [`Effect`]s.
//!
//! ```text
//!   Envelope --> Core::apply --> handlers --record(Event)--> Ledger --> Folded::fold
//!   (time, seed,                    |                          |           | Changes
//!    command)                       | views read               |           v
//!                                   '--> Effects <-------------'        index, leases, plans, wake-ups
//!                                        Persist, Reply{after}, Assimilate, Delete...
//! ```
//!
//! One step: an operator enrols a host. The event is to be journalled before the answer leaves.
//!
//! ```
//! use sojourn_core::{Answer, Command, Core, CoreConfig, CoreFault, Effect, Envelope, ReplyTo};
//! use sojourn_protocol::{digest::Digest, ids::HostId, time::UnixMillis};
//!
//! let mut core = Core::new(CoreConfig::default());
//! let (to, token_sha256) = (ReplyTo(1), Digest::of(b"the host's token"));
//! let command = Command::Enrol { to, name: "worker-1".into(), token_sha256 };
//! let effects = core.apply(Envelope { at: UnixMillis(1_000), seed: 7, command })?;
//!
//! let [Effect::Persist(record), Effect::Reply { after, answer, .. }] = &effects[..] else {
//!     panic!("an event and an answer");
//! };
//! assert_eq!(after, &record.position);
//! assert_eq!(answer, &Ok(Box::new(Answer::Enrolled(HostId(1)))));
//! # Ok::<(), CoreFault>(())
//! ```
//!
//! [`State`] is durable and is the fold of the events alone. All other parts are soft state: they come back by
//! themselves after a restart. How the parts, views and handlers fit together says `docs/internals/state-machine.md`.

mod apply;
mod assimilation;
mod assimilation_queue;
mod blobs;
mod clock;
mod command;
mod core;
mod data;
mod dispatch;
mod effect;
mod fault;
pub mod figures;
mod holder;
mod hosts;
mod invariants;
mod jobs;
mod leaders;
mod leases;
mod ledger;
mod on_behalf;
mod plans;
mod query;
mod quotas;
mod reply;
pub mod request;
mod residency;
mod results;
mod snapshot;
mod submission;
mod tokens;
mod views;

pub use command::{Command, Envelope, MergeOffer, Query};
pub use core::Core;
pub use effect::{Answer, AssimilationUnit, Effect, Offered};
pub use fault::{CoreFault, SnapshotError};
pub use figures::{AssimilationCounts, Figures};
pub use holder::Holder;
pub use invariants::{Invariant, InvariantSet, UnknownInvariant, Violation};
pub use request::Request;
pub use snapshot::{RecoverError, snapshot_of};
pub use sojourn_scheduling::{
    config::{
        BeyondRetention, CoreConfig, DEFAULT_FORGET_HOSTS, DEFAULT_MOST_ROLLED_BACK, Retention,
    },
    waiters::ReplyTo,
};
pub use sojourn_state::{
    self as state, AddedTrial, AtEnd, BlobStatus, By, Change, Changes, CloneOf, EVENT_VERSION,
    Event, Fault, FoldError, FoldFault, Folded, JournalPosition, LeaseEnd, MergeFault, MergeMode,
    READ_VERSIONS, Record, RequestedEvaluation, State, Trust, UnitKey,
};
pub use submission::{PreparedSubmission, check_submission};
pub use tokens::{MAX_PAGE_LINKS, MAX_TOKENS};
