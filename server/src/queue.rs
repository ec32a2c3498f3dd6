//! The assimilators' queue, in the server's own process.

use crate::{assimilators::Assimilators, shell::ShellHandle};
use sojourn_assimilator::{Fault, Made, Merged, Offer, Queue, QueueError, Work};
use sojourn_core::{self as core, Answer, Command, MergeOffer, Offered, ReplyTo};
use sojourn_protocol::{
    digest::Digest,
    ids::{ClaimId, LeaseId},
    ranges::{LeadAnswer, LeadRequest, MadeRequest},
};
use std::sync::Arc;
use tokio::runtime::Handle;

/// The core, as an assimilator's thread sees it.
#[derive(Debug, Clone)]
pub(crate) struct CoreQueue {
    pub(crate) shell: ShellHandle,
    pub(crate) assimilators: Arc<Assimilators>,
    pub(crate) runtime: Handle,
}

impl CoreQueue {
    fn call(&self, command: impl FnOnce(ReplyTo) -> Command) -> Result<Answer, QueueError> {
        self.shell.call_blocking(command).map_err(|error| QueueError(error.message))
    }

    fn offer(&self, command: impl FnOnce(ReplyTo) -> Command) -> Result<Offer, QueueError> {
        match self.call(command)? {
            Answer::Offered(Offered::Taken) => Ok(Offer::Taken),
            Answer::Offered(Offered::Stale) => Ok(Offer::Stale),
            other => Err(unexpected(&other)),
        }
    }
}

fn unexpected(answer: &Answer) -> QueueError {
    QueueError(format!("the core gave an answer of another kind: {answer:?}"))
}

impl Queue for CoreQueue {
    fn take(&self, losses: bool) -> Result<Option<Work>, QueueError> {
        if let Some(range) = self.assimilators.take_range() {
            return Ok(Some(Work::Range(Box::new(range))));
        }
        match self.shell.call_blocking(|to| Command::TakeAssimilation { to, losses }) {
            Ok(Answer::Assimilation(unit)) => Ok(unit.map(Work::Unit)),
            Ok(other) => Err(unexpected(&other)),
            // It stands by: once it is active, whoever waits for work is woken.
            Err(error) if error.active.is_some() => Ok(None),
            Err(error) => Err(QueueError(error.message)),
        }
    }

    fn renew(&self, lease: LeaseId, taking: ClaimId) -> Result<Offer, QueueError> {
        self.offer(|to| Command::RenewAssimilation { to, lease, taking })
    }

    fn assimilated(&self, lease: LeaseId, made: Made) -> Result<Offer, QueueError> {
        let Made { version, checkpoint, merged } = made;
        let merged =
            merged.map(|Merged { state, flush, in_flight }| MergeOffer { state, flush, in_flight });
        self.offer(|to| Command::OfferAssimilated { to, lease, version, checkpoint, merged })
    }

    fn lost(&self, _: LeaseId, blob: Digest) -> Result<Offer, QueueError> {
        self.shell.tell(Command::Lost { blob });
        Ok(Offer::Taken)
    }

    fn rejected(&self, lease: LeaseId, fault: Fault, reason: &str) -> Result<Offer, QueueError> {
        let reason = reason.to_owned();
        let fault = match fault {
            Fault::Host => core::Fault::Host,
            Fault::Server => core::Fault::Server,
        };
        self.offer(|to| Command::OfferRejected { to, lease, reason, fault })
    }

    fn lead(&self, request: &LeadRequest) -> Result<LeadAnswer, QueueError> {
        Ok(self.runtime.block_on(self.assimilators.lead(request)))
    }

    fn range_made(&self, lease: LeaseId, made: &MadeRequest) -> Result<Offer, QueueError> {
        Ok(self.assimilators.range_made(lease, made.clone()))
    }
}
