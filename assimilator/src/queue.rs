//! Where assimilation work comes from and where its results go.

use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::{LeaseId, Version},
    position::Position,
    report::Trained,
    unit::{Flush, Hop, Merge},
};

/// One upload to assimilate.
#[derive(Debug, Clone, PartialEq)]
pub struct Unit {
    /// The lease whose result it is; the upload lies under it.
    pub lease: LeaseId,
    /// What was to be done.
    pub hop: Hop,
    /// What the host reported.
    pub trained: Trained,
    /// The position that the checkpoint must say.
    pub expected_end: Position,
    /// The version to make.
    pub version: Version,
    /// How it is merged into the one before, where it doesn't replace it.
    pub merge: Option<Merge>,
}

/// What was made of an upload; its blobs are in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Made {
    /// The number of the version.
    pub version: Version,
    /// Its checkpoint.
    pub checkpoint: BlobRef,
    /// How, where the upload was merged.
    pub merged: Option<Merged>,
}

/// How an upload was merged: as the unit said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Merged {
    /// The rule's state; its blob is in the store, too.
    pub state: BlobRef,
    /// Whether what the rule had gathered was used.
    pub flush: Flush,
    /// Units of the trial in flight at once.
    pub in_flight: u32,
}

/// What became of an offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offer {
    /// It ended the report.
    Taken,
    /// The report had ended otherwise; nothing changed.
    Stale,
}

/// Whose fault it is that an upload can't be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The host made or sent what is wrong.
    Host,
    /// The server lost what the host had sent rightly.
    Server,
}

/// The queue can't be reached or can't decide just now; the work comes again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the assimilation queue doesn't answer: {0}")]
pub struct QueueError(pub String);

/// The server, as an assimilator sees it: in this process or over the network. All calls block.
pub trait Queue: Send + Sync + 'static {
    /// The next upload to assimilate, if there is one. It is handed out again after a while to
    /// somebody else, should nothing be offered for it.
    ///
    /// # Errors
    /// Where the queue doesn't answer.
    fn take(&self) -> Result<Option<Unit>, QueueError>;

    /// The upload is right, and this is what was made of it.
    ///
    /// # Errors
    /// Where the queue doesn't answer.
    fn assimilated(&self, lease: LeaseId, made: Made) -> Result<Offer, QueueError>;

    /// The store has lost a blob that work needed.
    ///
    /// # Errors
    /// Where the queue doesn't answer.
    fn lost(&self, blob: Digest) -> Result<(), QueueError>;

    /// The upload is refused, and whose fault that is.
    ///
    /// # Errors
    /// Where the queue doesn't answer.
    fn rejected(&self, lease: LeaseId, fault: Fault, reason: &str) -> Result<Offer, QueueError>;
}
