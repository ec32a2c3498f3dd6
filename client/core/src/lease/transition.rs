//! The table of transitions: which event takes a lease from which state to which, and what has to be done then.
//!
//! A pair of state and event that isn't in the table changes nothing: the event is late, or was sent twice.

use super::{
    Acknowledged, Blocked, Fetching, InSlot, LeaseState, Queued, Ready, Releasing, Reporting,
    Running, Stored, Uploading,
};
use crate::{
    delivery::Delivery,
    event::{ReleaseReason, ResultFacts, UnitError},
    slots::SlotId,
};
use sojourn_protocol::{digest::Digest, trainer::Progress, unit::Lease};

/// Something that happened to a lease.
#[derive(Debug, Clone)]
pub enum LeaseEvent {
    /// The unit needs more than the owner lends or the device has: bytes of the monthly budget, disk space or memory.
    TooLarge(ReleaseReason),
    /// The unit's bytes are reserved, and its first blobs are asked for.
    FetchStarted,
    /// All blobs that the unit begins with are here. The number is the lease's turn in the queue for a slot.
    FirstBlobsReady(u64),
    /// A blob that it needs can't be had.
    FetchFailed(UnitError),
    /// The lease gets a slot. The unit's progress is 0 of so many batches.
    SlotAssigned(SlotId, Progress),
    /// The unit has come so far.
    Progress(Progress),
    /// The unit waits for a shard that is on its way.
    ShardMissing(Digest),
    /// The shard that the unit waits for is here.
    ShardReady(Digest),
    /// A part of the result is on disk.
    PartSaved,
    /// The unit is to end after the batch that it is at.
    StopAsked,
    /// The unit has ended, and its result is on disk.
    UnitEnded(ResultFacts),
    /// The host failed the unit, of which a part is on disk.
    HostFaultWithPart(ResultFacts),
    /// The host failed the unit, and nothing is left of it.
    HostFault(UnitError),
    /// The upload of the checkpoint begins.
    UploadStarted,
    /// The server has all of the checkpoint, or there is none.
    NothingToUpload,
    /// The server has all of the checkpoint now.
    Uploaded,
    /// The upload failed. The value holds the next delivery step and when it is due.
    UploadFailed(Delivery),
    /// The report was not answered; what comes next, and when, is said here.
    NoAnswer(Delivery),
    /// The server lacks the checkpoint of the report; what comes next is said here.
    UploadMissing(Delivery),
    /// The server won't take the result, now or later.
    NotWanted(ReleaseReason),
    /// The result can't be read from the disk any more.
    FileLost(ReleaseReason),
    /// The server has the report.
    Acknowledged,
    /// The server is done with the report.
    ReportEnded,
    /// The server wants the lease to be dropped.
    Dropped,
    /// The server drops the lease in answer to a request that named its report as acknowledged.
    DroppedAsReported,
    /// The host gives the lease back with others.
    Withdrawn,
    /// The server knows that the lease was given back.
    Released,
}

/// An action that a transition requires.
#[derive(Debug, Clone)]
pub enum LeaseAction {
    /// Fetch the blobs that it begins with.
    Fetch,
    /// Fetch the shards of its later hops.
    FetchRest,
    /// Begin the unit in this slot.
    Start(Box<Lease>, SlotId),
    /// Give it the shard that it waits for.
    HandOver(Digest),
    /// Have it end after its batch.
    StopAfterBatch,
    /// Begin to deliver its result.
    Deliver,
    /// Send its checkpoint.
    Upload,
    /// Send its report.
    Report,
    /// Try again when that is due.
    Retry,
    /// Kill its unit, if the unit is in a slot.
    Abort,
    /// Delete its result, or the part of it, from the disk.
    DeleteResult,
    /// Tell the server that it is given back.
    Release,
    /// Tell the server that it is given back, in one call with the other leases given back now.
    ReleaseWithOthers,
    /// Take no new work for a while.
    Cooldown,
}

/// Where a lease comes to.
#[derive(Debug, Clone)]
pub enum Next {
    /// Another state, or the same.
    State(LeaseState),
    /// The lease is no longer held.
    Closed,
    /// The event isn't for this state, which stays.
    Ignored(LeaseState),
}

/// A transition: where to, and what has to be done, in this order.
#[derive(Debug, Clone)]
pub struct Step {
    /// The state after it.
    pub next: Next,
    /// The actions to carry out.
    pub actions: [Option<LeaseAction>; 2],
}

fn to(state: LeaseState, actions: [Option<LeaseAction>; 2]) -> Step {
    Step { next: Next::State(state), actions }
}

fn closed(actions: [Option<LeaseAction>; 2]) -> Step {
    Step { next: Next::Closed, actions }
}

fn releasing(reason: ReleaseReason, actions: [Option<LeaseAction>; 2]) -> Step {
    let state = Releasing { reason, is_unit_fault: false, retry_at: None, attempts: 0 };
    Step { next: Next::State(LeaseState::Releasing(state)), actions }
}

fn failed(error: UnitError) -> Step {
    let (reason, is_unit_fault) = match error {
        UnitError::Unit(reason) => (ReleaseReason::Fault(reason), true),
        UnitError::Machine(reason) => (ReleaseReason::Fault(reason), false),
        UnitError::Stopped => (ReleaseReason::Stopping, false),
    };
    let state = Releasing { reason, is_unit_fault, retry_at: None, attempts: 0 };
    to(LeaseState::Releasing(state), two(LeaseAction::Cooldown, LeaseAction::Release))
}

fn one(action: LeaseAction) -> [Option<LeaseAction>; 2] {
    [Some(action), None]
}

fn two(first: LeaseAction, second: LeaseAction) -> [Option<LeaseAction>; 2] {
    [Some(first), Some(second)]
}

const NOTHING: [Option<LeaseAction>; 2] = [None, None];

impl LeaseState {
    /// Takes an event. Each arm is a row of the table.
    #[must_use]
    pub fn step(self, event: LeaseEvent) -> Step {
        match self {
            Self::Queued(queued) => queued.step(event),
            Self::Fetching(fetching) => fetching.step(event),
            Self::Ready(ready) => ready.step(event),
            Self::Running(Running { unit }) => unit.step(None, event),
            Self::Blocked(Blocked { unit, shard }) => unit.step(Some(shard), event),
            Self::Stored(stored) => stored.step(event),
            Self::Uploading(uploading) => uploading.step(event),
            Self::Reporting(reporting) => reporting.step(event),
            Self::Acknowledged(acknowledged) => acknowledged.step(&event),
            Self::Releasing(releasing) => releasing.step(&event),
        }
    }
}

fn ignored(state: LeaseState) -> Step {
    Step { next: Next::Ignored(state), actions: NOTHING }
}

impl Queued {
    fn step(self, event: LeaseEvent) -> Step {
        match event {
            LeaseEvent::TooLarge(reason) => {
                releasing(reason, two(LeaseAction::Cooldown, LeaseAction::Release))
            }
            LeaseEvent::FetchStarted => {
                let state = LeaseState::Fetching(Fetching { lease: self.lease });
                to(state, one(LeaseAction::Fetch))
            }
            LeaseEvent::Dropped => closed(one(LeaseAction::Abort)),
            LeaseEvent::Withdrawn => {
                closed(two(LeaseAction::Abort, LeaseAction::ReleaseWithOthers))
            }
            _ => ignored(LeaseState::Queued(self)),
        }
    }
}

impl Fetching {
    fn step(self, event: LeaseEvent) -> Step {
        match event {
            LeaseEvent::FirstBlobsReady(turn) => {
                let state = LeaseState::Ready(Ready { lease: self.lease, turn });
                to(state, one(LeaseAction::FetchRest))
            }
            LeaseEvent::FetchFailed(error) => failed(error),
            LeaseEvent::Dropped => closed(one(LeaseAction::Abort)),
            LeaseEvent::Withdrawn => {
                closed(two(LeaseAction::Abort, LeaseAction::ReleaseWithOthers))
            }
            _ => ignored(LeaseState::Fetching(self)),
        }
    }
}

impl Ready {
    fn step(self, event: LeaseEvent) -> Step {
        match event {
            LeaseEvent::SlotAssigned(slot, progress) => {
                let unit =
                    InSlot { slot: Some(slot), progress, is_stopping: false, has_part: false };
                to(LeaseState::Running(Running { unit }), one(LeaseAction::Start(self.lease, slot)))
            }
            // Of a later shard: without it the unit isn't begun.
            LeaseEvent::FetchFailed(error) => failed(error),
            LeaseEvent::Dropped => closed(one(LeaseAction::Abort)),
            LeaseEvent::Withdrawn => {
                closed(two(LeaseAction::Abort, LeaseAction::ReleaseWithOthers))
            }
            _ => ignored(LeaseState::Ready(self)),
        }
    }
}

impl InSlot {
    /// In the state `Running`, or in `Blocked` where it waits for a shard.
    fn step(mut self, shard: Option<Digest>, event: LeaseEvent) -> Step {
        match (event, shard) {
            (LeaseEvent::Progress(progress), None) => {
                self.progress = progress;
                to(self.state(None), NOTHING)
            }
            (LeaseEvent::ShardMissing(shard), None) => to(self.state(Some(shard)), NOTHING),
            (LeaseEvent::ShardReady(here), Some(shard)) if here == shard => {
                to(self.state(None), one(LeaseAction::HandOver(shard)))
            }
            (LeaseEvent::PartSaved, shard) => {
                self.has_part = true;
                to(self.state(shard), NOTHING)
            }
            (LeaseEvent::StopAsked, shard) if !self.is_stopping => {
                self.is_stopping = true;
                to(self.state(shard), one(LeaseAction::StopAfterBatch))
            }
            (LeaseEvent::UnitEnded(result) | LeaseEvent::HostFaultWithPart(result), _) => {
                let stored = Stored { result, delivery: Delivery::default() };
                to(LeaseState::Stored(stored), one(LeaseAction::Deliver))
            }
            (LeaseEvent::HostFault(error), _) => failed(error),
            (LeaseEvent::Dropped, _) => closed(two(LeaseAction::Abort, LeaseAction::DeleteResult)),
            (LeaseEvent::Withdrawn, _) => {
                closed(two(LeaseAction::Abort, LeaseAction::ReleaseWithOthers))
            }
            (_, shard) => ignored(self.state(shard)),
        }
    }

    const fn state(self, shard: Option<Digest>) -> LeaseState {
        match shard {
            None => LeaseState::Running(Running { unit: self }),
            Some(shard) => LeaseState::Blocked(Blocked { unit: self, shard }),
        }
    }
}

impl Stored {
    fn step(self, event: LeaseEvent) -> Step {
        let Self { result, delivery } = self;
        match event {
            LeaseEvent::UploadStarted => {
                to(LeaseState::Uploading(Uploading { result, delivery }), one(LeaseAction::Upload))
            }
            LeaseEvent::NothingToUpload => {
                to(LeaseState::Reporting(Reporting { result, delivery }), one(LeaseAction::Report))
            }
            LeaseEvent::NotWanted(reason) | LeaseEvent::FileLost(reason) => {
                releasing(reason, two(LeaseAction::DeleteResult, LeaseAction::Release))
            }
            LeaseEvent::ReportEnded | LeaseEvent::Dropped => closed(one(LeaseAction::DeleteResult)),
            _ => ignored(LeaseState::Stored(Self { result, delivery })),
        }
    }
}

impl Uploading {
    fn step(self, event: LeaseEvent) -> Step {
        let Self { result, delivery } = self;
        match event {
            LeaseEvent::Uploaded => {
                to(LeaseState::Reporting(Reporting { result, delivery }), one(LeaseAction::Report))
            }
            LeaseEvent::UploadFailed(delivery) => {
                to(LeaseState::Stored(Stored { result, delivery }), one(LeaseAction::Retry))
            }
            LeaseEvent::NotWanted(reason) | LeaseEvent::FileLost(reason) => {
                releasing(reason, two(LeaseAction::DeleteResult, LeaseAction::Release))
            }
            LeaseEvent::ReportEnded | LeaseEvent::Dropped => closed(one(LeaseAction::DeleteResult)),
            _ => ignored(LeaseState::Uploading(Self { result, delivery })),
        }
    }
}

impl Reporting {
    fn step(self, event: LeaseEvent) -> Step {
        let Self { result, delivery } = self;
        match event {
            LeaseEvent::NoAnswer(delivery) | LeaseEvent::UploadMissing(delivery) => {
                to(LeaseState::Stored(Stored { result, delivery }), one(LeaseAction::Retry))
            }
            LeaseEvent::NotWanted(reason) => {
                releasing(reason, two(LeaseAction::DeleteResult, LeaseAction::Release))
            }
            LeaseEvent::Acknowledged => {
                to(LeaseState::Acknowledged(Acknowledged { result }), NOTHING)
            }
            LeaseEvent::ReportEnded => closed(one(LeaseAction::DeleteResult)),
            // The answer to the report decides: the server may have dropped the lease before it had the report.
            LeaseEvent::Dropped => to(LeaseState::Reporting(Self { result, delivery }), NOTHING),
            _ => ignored(LeaseState::Reporting(Self { result, delivery })),
        }
    }
}

impl Acknowledged {
    fn step(self, event: &LeaseEvent) -> Step {
        match event {
            LeaseEvent::ReportEnded | LeaseEvent::DroppedAsReported => {
                closed(one(LeaseAction::DeleteResult))
            }
            // The server said so before it had the report.
            LeaseEvent::Dropped => to(LeaseState::Acknowledged(self), NOTHING),
            _ => ignored(LeaseState::Acknowledged(self)),
        }
    }
}

impl Releasing {
    fn step(self, event: &LeaseEvent) -> Step {
        match event {
            LeaseEvent::Dropped | LeaseEvent::Released => closed(NOTHING),
            LeaseEvent::Withdrawn => closed(one(LeaseAction::ReleaseWithOthers)),
            _ => ignored(LeaseState::Releasing(self)),
        }
    }
}
