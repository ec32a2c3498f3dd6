//! Where assimilation work comes from and where its results go.

use sojourn_protocol::{
    digest::Digest,
    ids::{ClaimId, LeaseId},
    ranges::{LeadAnswer, LeadRequest, MadeRequest, RangeWork},
};

pub use sojourn_protocol::assimilation::{AssimilationUnit as Unit, Fault, Made, Merged, Offer};

/// The queue can't be reached or can't decide just now; the work comes again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the assimilation queue doesn't answer: {0}")]
pub struct QueueError(pub String);

/// What there is to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Work {
    /// An upload to assimilate.
    Unit(Box<Unit>),
    /// A range of a merge that another leads.
    Range(Box<RangeWork>),
}

/// The server, as an assimilator sees it: in this process or over the network. All calls block.
pub trait Queue: Send + Sync + 'static {
    /// Whether [`Queue::take`] waits a while where there is nothing: who gets nothing may ask again at once.
    fn waits(&self) -> bool {
        false
    }

    /// The next thing to do, if there is one; `losses`: those too whose losses are looked at. It is handed out
    /// again to somebody else where it isn't renewed for its term and nothing is offered for it.
    ///
    /// # Errors
    /// Where the queue doesn't answer.
    fn take(&self, losses: bool) -> Result<Option<Work>, QueueError>;

    /// The unit is still worked at: it isn't handed out again for another term, unless it has been already.
    ///
    /// # Errors
    /// Where the queue doesn't answer.
    fn renew(&self, lease: LeaseId, taking: ClaimId) -> Result<Offer, QueueError>;

    /// The upload is right, and this is what was made of it.
    ///
    /// # Errors
    /// Where the queue doesn't answer.
    fn assimilated(&self, lease: LeaseId, made: Made) -> Result<Offer, QueueError>;

    /// The store has lost a blob that work needed, it seems; [`Offer::Stale`] where it is there.
    ///
    /// # Errors
    /// Where the queue doesn't answer.
    fn lost(&self, lease: LeaseId, blob: Digest) -> Result<Offer, QueueError>;

    /// The upload is refused, and whose fault that is.
    ///
    /// # Errors
    /// Where the queue doesn't answer.
    fn rejected(&self, lease: LeaseId, fault: Fault, reason: &str) -> Result<Offer, QueueError>;

    /// Shares out what is left of a merge, and gives what others have done of it. Where there are no others, the leader
    /// is to do all itself.
    ///
    /// # Errors
    /// Where the queue doesn't answer.
    fn lead(&self, request: &LeadRequest) -> Result<LeadAnswer, QueueError> {
        let own = request.left.first().map(|left| left.range);
        Ok(LeadAnswer { made: Vec::new(), own })
    }

    /// A range of a merge that another leads is done. [`Offer::Stale`] where nobody waits for it any more.
    ///
    /// # Errors
    /// Where the queue doesn't answer.
    fn range_made(&self, _: LeaseId, _: &MadeRequest) -> Result<Offer, QueueError> {
        Ok(Offer::Stale)
    }
}
