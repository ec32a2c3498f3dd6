//! The events of an agent: answers of the server, and what its executors and the machine's owner say.
//!
//! Each action that starts an executor ends with one final event, which names it. Other events may come in between.

use crate::time::Micros;
pub use sojourn_protocol::reason::ReleaseReason;
use sojourn_protocol::{
    api::{HeartbeatAnswer, ReleaseAnswer, ReportAnswer, WorkAnswer},
    digest::{BlobRef, Digest},
    error::{ApiError, ErrorKind, Retry},
    ids::LeaseId,
    report::{FailureKind, Outcome},
    trainer::{Progress, UsageSample},
};

/// Something that happened.
#[derive(Debug, Clone)]
pub enum Event {
    /// A request for work has ended.
    Work(AskId, CallResult<WorkAnswer>),
    /// A heartbeat has ended.
    Heartbeat(CallResult<HeartbeatAnswer>),
    /// The call that makes a report has ended.
    Report(LeaseId, Result<ReportAnswer, ReportError>),
    /// The call that gives leases back has ended.
    Released(Vec<LeaseId>, CallResult<ReleaseAnswer>),
    /// A blob is on the disk, and stays until [`crate::Action::Unpin`].
    BlobReady(Digest),
    /// A blob can't be had.
    BlobFailed(Digest, UnitError),
    /// A unit has come so far.
    Progress(LeaseId, Progress),
    /// A sample of what a running unit took, and the cores that the units of its device may take together.
    Usage(LeaseId, UsageSample, f64),
    /// A unit waits for a shard of its later hops.
    ShardNeeded(LeaseId, Digest),
    /// A part of a unit's result is on the disk.
    PartSaved(LeaseId),
    /// The slot of a unit is free for the next, while the unit's result is being stored.
    SlotFree(LeaseId, TrainerState),
    /// A unit has come to its end, and its result is on the disk.
    UnitEnded(LeaseId, ResultFacts),
    /// A unit came to nothing, for which the host is to blame. Where a part of it is on the disk, that is its result.
    UnitFailed(LeaseId, UnitError, Option<ResultFacts>),
    /// An upload has ended: the server has all of the checkpoint.
    Uploaded(LeaseId, Uploaded),
    /// An upload has ended, and the server lacks the checkpoint.
    UploadFailed(LeaseId, UploadError),
    /// The machine's owner wants something.
    Owner(OwnerEvent),
    /// The cloud says that the machine will be taken away; in how long, where it says that.
    Preempted(Option<Micros>),
    /// The program is to end. [`crate::Action::Exit`] follows, in [`crate::AgentConfig::shutdown_time`] at most, or
    /// in the time that a notice leaves where that is more.
    Shutdown,
    /// The disk for results is gone: nothing is worth waiting for.
    DiskGone,
    /// The time is at least that of [`crate::Agent::next_deadline`].
    Tick,
}

/// Names a request for work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AskId(pub u32);

/// A call's answer, or that there is none.
pub type CallResult<T> = Result<T, CallError>;

/// The server did not answer, or can't serve now. It is asked again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CallError {
    /// The pause that it asked for.
    pub retry_after: Option<Micros>,
}

/// Why a report was not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReportError {
    /// There is no answer.
    NoAnswer(CallError),
    /// The server lacks the checkpoint that goes with it.
    UploadMissing(String),
    /// The server won't take it, now or later.
    NotWanted(String),
}

impl ReportError {
    /// After the server refused a report with this error.
    #[must_use]
    pub fn from_refusal(error: &ApiError) -> Self {
        match error.kind {
            kind if kind.retry() == Retry::Later => Self::NoAnswer(CallError::default()),
            ErrorKind::Conflict => Self::UploadMissing(error.message.clone()),
            _ => Self::NotWanted(error.message.clone()),
        }
    }
}

/// How the server came to have the whole checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Uploaded {
    /// The checkpoint was sent now.
    Sent,
    /// The server had it already.
    Before,
}

/// Why a checkpoint isn't at the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UploadError {
    /// The server, or the way to it, doesn't take it now.
    Later(CallError),
    /// Something before the server refuses it. The next attempt hardly fares better until a person has changed
    /// something.
    RefusedOnTheWay(CallError),
    /// The file can't be read, which may pass.
    Unreadable(String),
    /// The file is damaged or gone.
    Lost(String),
    /// The server won't take it, now or later.
    NotWanted(String),
}

/// Why a unit can't be done here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnitError {
    /// This unit can't be done here, or not now.
    Unit(String),
    /// Nor can any other, for a while.
    Machine(String),
    /// The trainer was ended, because the program ends.
    Stopped,
}

/// How a slot's trainer is after a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrainerState {
    /// The trainer can do the next unit.
    Good,
    /// The trainer died of the unit, or stood still.
    Failed,
}

impl TrainerState {
    /// After a unit with this outcome.
    #[must_use]
    pub fn after(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Failed(failure)
                if matches!(failure.kind, FailureKind::Died | FailureKind::Stalled) =>
            {
                Self::Failed
            }
            Outcome::Failed(_) | Outcome::Trained(_) | Outcome::Evaluated(_) => Self::Good,
        }
    }
}

/// The facts of a result that its delivery depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ResultFacts {
    /// A checkpoint goes with it.
    pub has_checkpoint: bool,
    /// The result's checkpoint, where the unit came to its end and the trial can go on from it here.
    pub continues_from: Option<BlobRef>,
}

/// A result that lies on the disk as the agent starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredResult {
    /// The result's lease.
    pub lease: LeaseId,
    /// How often its lease asked for a heartbeat.
    pub heartbeat_interval: Micros,
    /// A checkpoint goes with it.
    pub has_checkpoint: bool,
}

/// A wish of the machine's owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnerEvent {
    /// Units may compute, or none may.
    Compute(bool),
    /// Units have stood still for so long that hops end early and the rest is given back; or no longer.
    Suspend(bool),
    /// The program is to end once what runs has ended.
    Drain,
    /// The resources that the host lends have changed; the server is to hear of it.
    InventoryChanged,
    /// The machine's disk has less room left than the owner keeps free; or no longer. The server is to hear of it.
    DiskLow(bool),
    /// The bytes that may come and go in this month, and those that have.
    Budget {
        /// Names the month.
        period: u32,
        /// None for no limit.
        limit: Option<u64>,
        /// Bytes that have come and gone.
        used: u64,
    },
}

/// The agent's view of blobs at the instant of an event.
pub trait TransferView {
    /// Is the blob on the disk?
    fn has(&self, blob: &Digest) -> bool;
    /// Bytes of the blob that are on the disk.
    fn fetched(&self, blob: &Digest) -> u64;
    /// Bytes of a lease's checkpoint that are on their way to the server, or there.
    fn sent(&self, lease: LeaseId) -> u64;
    /// Is there room for so many bytes, with nothing deleted for it?
    fn has_room(&self, bytes: u64) -> bool;
    /// Bytes that the machine's owner lends for blobs.
    fn capacity(&self) -> u64;
    /// Bytes that the blobs of all units together may take.
    fn capacity_for_units(&self) -> u64 {
        self.capacity()
    }
    /// Bytes of memory that one unit on this device may take; `None` where that isn't known.
    fn memory(&self, _device: &str) -> Option<u64> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_protocol::report::Failure;

    #[test]
    fn a_trainer_that_died_or_stood_still_has_failed_and_no_other_has() {
        for (kind, expected) in [
            (FailureKind::Died, TrainerState::Failed),
            (FailureKind::Stalled, TrainerState::Failed),
            (FailureKind::NonFinite, TrainerState::Good),
            (FailureKind::Trainer, TrainerState::Good),
            (FailureKind::OutOfMemory, TrainerState::Good),
            (FailureKind::Unsupported, TrainerState::Good),
            (FailureKind::WrongUnit, TrainerState::Good),
        ] {
            let failure = Failure { kind, message: String::new() };
            assert_eq!(TrainerState::after(&Outcome::Failed(failure)), expected, "{kind:?}");
        }
    }
}
