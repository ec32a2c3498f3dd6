//! A struct for each state of a lease, with what is known in that state and in no other.

use crate::{
    delivery::Delivery,
    event::{ReleaseReason, ResultFacts},
    slots::SlotId,
    time::Micros,
};
use sojourn_protocol::{digest::Digest, trainer::Progress, unit::Lease};

/// How far a lease is. A closed one has no state: it is no longer held.
#[derive(Debug, Clone)]
pub enum LeaseState {
    /// Granted; its bytes aren't reserved yet.
    Queued(Queued),
    /// The blobs that it begins with are on their way.
    Fetching(Fetching),
    /// The lease waits for a slot.
    Ready(Ready),
    /// The lease's unit is in a slot.
    Running(Running),
    /// The lease's unit is in a slot, where it waits for a shard.
    Blocked(Blocked),
    /// The lease's result is on disk, and nothing is sent of it at the moment.
    Stored(Stored),
    /// The checkpoint of its result is being sent.
    Uploading(Uploading),
    /// The lease's report is being made.
    Reporting(Reporting),
    /// The server has its report, whose end isn't known.
    Acknowledged(Acknowledged),
    /// The lease is being given back. The server is still told that it is held, so that it isn't granted again.
    Releasing(Releasing),
}

impl LeaseState {
    /// The state's name in the table of transitions.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Queued(_) => "Queued",
            Self::Fetching(_) => "Fetching",
            Self::Ready(_) => "Ready",
            Self::Running(_) => "Running",
            Self::Blocked(_) => "Blocked",
            Self::Stored(_) => "Stored",
            Self::Uploading(_) => "Uploading",
            Self::Reporting(_) => "Reporting",
            Self::Acknowledged(_) => "Acknowledged",
            Self::Releasing(_) => "Releasing",
        }
    }
}

/// See [`LeaseState::Queued`].
#[derive(Debug, Clone)]
pub struct Queued {
    /// The lease as the server sent it. The executor that runs the unit gets it.
    pub lease: Box<Lease>,
}

/// See [`LeaseState::Fetching`].
#[derive(Debug, Clone)]
pub struct Fetching {
    /// As in [`Queued`].
    pub lease: Box<Lease>,
}

/// See [`LeaseState::Ready`].
#[derive(Debug, Clone)]
pub struct Ready {
    /// As in [`Queued`].
    pub lease: Box<Lease>,
    /// Slots go to the lease that became ready first.
    pub turn: u64,
}

/// A unit in a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InSlot {
    /// Where; none once the slot is free for the next unit, while the result is being stored.
    pub slot: Option<SlotId>,
    /// Batches done.
    pub progress: Progress,
    /// The unit was asked to end after its batch.
    pub is_stopping: bool,
    /// A part of its result is on disk.
    pub has_part: bool,
}

/// See [`LeaseState::Running`].
#[derive(Debug, Clone)]
pub struct Running {
    /// The unit.
    pub unit: InSlot,
}

/// See [`LeaseState::Blocked`].
#[derive(Debug, Clone)]
pub struct Blocked {
    /// The unit.
    pub unit: InSlot,
    /// The shard that it waits for.
    pub shard: Digest,
}

/// See [`LeaseState::Stored`].
#[derive(Debug, Clone)]
pub struct Stored {
    /// The facts of the result.
    pub result: ResultFacts,
    /// How its delivery goes.
    pub delivery: Delivery,
}

/// See [`LeaseState::Uploading`].
#[derive(Debug, Clone)]
pub struct Uploading {
    /// The facts of the result.
    pub result: ResultFacts,
    /// How its delivery goes.
    pub delivery: Delivery,
}

/// See [`LeaseState::Reporting`].
#[derive(Debug, Clone)]
pub struct Reporting {
    /// The facts of the result.
    pub result: ResultFacts,
    /// How its delivery goes.
    pub delivery: Delivery,
}

/// See [`LeaseState::Acknowledged`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Acknowledged {
    /// The facts of the result.
    pub result: ResultFacts,
}

/// See [`LeaseState::Releasing`].
#[derive(Debug, Clone)]
pub struct Releasing {
    /// Why, for the server.
    pub reason: ReleaseReason,
    /// This unit failed, which says nothing of others. Where the server had dropped the lease anyway, it may have
    /// failed for that.
    pub is_unit_fault: bool,
    /// When to tell the server again; none while it is being told.
    pub retry_at: Option<Micros>,
    /// Calls that it did not answer.
    pub attempts: u32,
}
