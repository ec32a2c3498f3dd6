//! The server's queue, as an assimilator's thread of the same process sees it.

use sojourn_assimilator::{Fault, NewVersion, Offer, Queue, QueueError, Unit, Work};
use sojourn_protocol::{
    digest::Digest,
    error::ApiError,
    ids::{ClaimId, LeaseId},
    ranges::{LeadAnswer, LeadRequest, RangeResultRequest},
    trace::TraceContext,
};
use sojourn_server::AssimilationHandle;
use tokio::runtime::Handle;

/// The server of this process.
#[derive(Debug)]
pub(crate) struct CoreQueue {
    pub(crate) server: AssimilationHandle,
    pub(crate) runtime: Handle,
}

impl CoreQueue {
    fn wait<T>(&self, answer: impl Future<Output = Result<T, ApiError>>) -> Result<T, QueueError> {
        self.runtime.block_on(answer).map_err(|error| QueueError(error.message))
    }
}

/// A server that stands by has no units. Once it is active, whoever waits for work is woken.
fn unless_standby(
    taken: Result<Option<Box<Unit>>, ApiError>,
) -> Result<Option<Box<Unit>>, QueueError> {
    match taken {
        Err(error) if error.active.is_some() => Ok(None),
        taken => taken.map_err(|error| QueueError(error.message)),
    }
}

impl Queue for CoreQueue {
    fn take(&self, losses: bool) -> Result<Option<Work>, QueueError> {
        // A merge that was begun comes first.
        if let Some(range) = self.server.take_range() {
            return Ok(Some(Work::Range(Box::new(range))));
        }
        let taken = self.runtime.block_on(self.server.take_unit(losses));
        Ok(unless_standby(taken)?.map(Work::Unit))
    }

    fn take_small(&self, max_bytes: u64) -> Result<Option<Box<Unit>>, QueueError> {
        unless_standby(self.runtime.block_on(self.server.take_small_unit(max_bytes)))
    }

    fn trace(&self, lease: LeaseId) -> Option<TraceContext> {
        self.server.trace(lease)
    }

    fn renew(&self, lease: LeaseId, claim: ClaimId) -> Result<Offer, QueueError> {
        self.wait(self.server.renew(lease, claim))
    }

    fn assimilated(&self, lease: LeaseId, made: NewVersion) -> Result<Offer, QueueError> {
        self.wait(self.server.assimilated(lease, made))
    }

    fn lost(&self, _: LeaseId, blob: Digest) -> Result<Offer, QueueError> {
        self.server.lost(blob);
        Ok(Offer::Taken)
    }

    fn rejected(&self, lease: LeaseId, fault: Fault, reason: &str) -> Result<Offer, QueueError> {
        self.wait(self.server.rejected(lease, fault, reason.to_owned()))
    }

    fn lead(&self, request: &LeadRequest) -> Result<LeadAnswer, QueueError> {
        Ok(self.runtime.block_on(self.server.lead(request)))
    }

    fn range_made(&self, lease: LeaseId, made: &RangeResultRequest) -> Result<Offer, QueueError> {
        Ok(self.server.range_made(lease, made.clone()))
    }
}
