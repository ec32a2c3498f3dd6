//! Where assimilation work comes from, and where its results go.

use sojourn_protocol::{
    digest::Digest,
    ids::{ClaimId, LeaseId},
    ranges::{LeadAnswer, LeadRequest, RangeResultRequest, RangeWork},
    trace::TraceContext,
};

pub use sojourn_protocol::assimilation::{
    AssimilationUnit as Unit, Fault, Merged, NewVersion, Offer,
};

/// The queue can't be reached, or can't decide now. The work comes again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the assimilation queue doesn't answer: {0}")]
pub struct QueueError(pub String);

/// A piece of work.
#[derive(Debug, Clone, PartialEq)]
pub enum Work {
    /// Assimilate an upload.
    Unit(Box<Unit>),
    /// Do a range of a merge that another process leads.
    Range(Box<RangeWork>),
}

impl Work {
    /// The lease whose result it is about.
    #[must_use]
    pub fn lease(&self) -> LeaseId {
        match self {
            Self::Unit(unit) => unit.lease,
            Self::Range(work) => work.unit.lease,
        }
    }
}

/// The server's queue: in this process or over the network. All calls block.
pub trait Queue: Send + Sync + 'static {
    /// Does [`Queue::take`] wait a while where there is no work? Then it may be called again at once.
    fn waits(&self) -> bool {
        false
    }

    /// The next piece of work, if there is one. With `losses`, that may be a unit whose loss has to be checked. Work that
    /// is neither renewed nor ended within its term is handed out again.
    ///
    /// # Errors
    /// Where the queue doesn't answer.
    fn take(&self, losses: bool) -> Result<Option<Work>, QueueError>;

    /// As [`Queue::take`], for a result that needs no merge, and whose checkpoint has at most `max_bytes`. Queues that can't
    /// tell have none.
    ///
    /// # Errors
    /// Where the queue doesn't answer.
    fn take_small(&self, _max_bytes: u64) -> Result<Option<Box<Unit>>, QueueError> {
        Ok(None)
    }

    /// The trace of work that was just taken, by its lease. Asked once for each piece of work.
    fn trace(&self, _: LeaseId) -> Option<TraceContext> {
        None
    }

    /// Renews the claim of a unit for another term, unless the unit was handed out again already.
    ///
    /// # Errors
    /// Where the queue doesn't answer.
    fn renew(&self, lease: LeaseId, claim: ClaimId) -> Result<Offer, QueueError>;

    /// Offers the version that an upload makes.
    ///
    /// # Errors
    /// Where the queue doesn't answer.
    fn assimilated(&self, lease: LeaseId, made: NewVersion) -> Result<Offer, QueueError>;

    /// Reports that the store has lost a blob that work needs; [`Offer::Stale`] where the server finds it.
    ///
    /// # Errors
    /// Where the queue doesn't answer.
    fn lost(&self, lease: LeaseId, blob: Digest) -> Result<Offer, QueueError>;

    /// Rejects an upload, and says whose fault that is.
    ///
    /// # Errors
    /// Where the queue doesn't answer.
    fn rejected(&self, lease: LeaseId, fault: Fault, reason: &str) -> Result<Offer, QueueError>;

    /// Shares the remaining ranges of a merge, and returns what other processes have done of them. Where there are no
    /// others, the leader does each range itself.
    ///
    /// # Errors
    /// Where the queue doesn't answer.
    fn lead(&self, request: &LeadRequest) -> Result<LeadAnswer, QueueError> {
        let own = request.left.first().map(|left| left.range);
        Ok(LeadAnswer { done: Vec::new(), own })
    }

    /// Reports a finished range of another process's merge. [`Offer::Stale`] where nobody waits for it any more.
    ///
    /// # Errors
    /// Where the queue doesn't answer.
    fn range_made(&self, _: LeaseId, _: &RangeResultRequest) -> Result<Offer, QueueError> {
        Ok(Offer::Stale)
    }
}
