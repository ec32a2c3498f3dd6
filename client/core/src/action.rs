//! The actions of an agent. Nothing here waits: an action starts something, whose end comes back as an event.

use crate::{
    cpu_shares::UnitCpuShare,
    event::{AskId, ReleaseReason},
    slots::SlotId,
};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::LeaseId,
    unit::Lease,
};

/// Something to do.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub enum Action {
    /// Ask for work, with [`crate::Agent::work_request`]. Ends with [`crate::Event::Work`].
    Ask(AskId),
    /// Send a heartbeat, with [`crate::Agent::heartbeat_request`]. Ends with [`crate::Event::Heartbeat`].
    Beat,
    /// Make the report of a result. Ends with [`crate::Event::Report`].
    Report(LeaseId),
    /// Give leases back, in one call. Ends with [`crate::Event::Released`].
    Release(Vec<LeaseId>, ReleaseReason),
    /// Have a blob on the disk: it is there already, or is fetched. Ends with [`crate::Event::BlobReady`] or
    /// [`crate::Event::BlobFailed`].
    Fetch(BlobRef, BlobClass, Priority),
    /// Nobody needs the blob any more that is being fetched. No event follows.
    CancelFetch(Digest),
    /// Nobody needs the blob any more that was fetched: it may be deleted.
    Unpin(Digest),
    /// Run a unit in a slot. Ends with [`crate::Event::UnitEnded`] or [`crate::Event::UnitFailed`].
    Start(Box<Lease>, SlotId),
    /// Tell a running unit that a shard of its later hops is on the disk.
    HandOver(LeaseId, Digest),
    /// Have a unit end after the batch that it is at.
    StopAfterBatch(LeaseId),
    /// Have a unit end at once, with the part of its result that is on the disk. The unit's final event follows.
    StopNow(LeaseId),
    /// Stop a unit of which nothing is wanted any more. No event follows.
    Kill(LeaseId),
    /// Send a result's checkpoint. Ends with [`crate::Event::Uploaded`] or [`crate::Event::UploadFailed`].
    Upload(LeaseId, UploadStart),
    /// Delete a result, or the part of one, and stop whatever delivers it. No event follows.
    DeleteResult(LeaseId),
    /// Delete a blob that nobody will need any more, unless a unit in work does.
    Evict(Digest),
    /// From now on running units have these CPU shares of their devices, and all others equal ones.
    SetCpuShares(Vec<(LeaseId, UnitCpuShare)>),
    /// End the program.
    Exit,
}

/// The use of a blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlobClass {
    /// A trial goes on from it, or it is evaluated.
    Checkpoint,
    /// Shards and what belongs to them.
    Data,
}

/// How urgently a blob is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// A unit can't begin without it.
    First,
    /// A unit needs it later.
    Later,
    /// No unit needs it yet.
    Prefetch,
}

/// Where an upload begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UploadStart {
    /// With the first byte: the result is new.
    FirstByte,
    /// With asking the server how much it has.
    Locate,
}
