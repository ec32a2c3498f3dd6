//! The queue of results that wait to be assimilated, for threads of this process and for requests of other processes.
//!
//! Commands go to the core, which decides; ranges of large merges are shared out by [`crate::assimilators`].

use crate::{
    assimilators::{AssimilationThreads, Assimilators},
    result_traces::ResultTraces,
    shell::ShellHandle,
};
use sojourn_blobs::{BlobStore, Staging, Uploads};
use sojourn_core::{self as core, Command, MergeOffer, Offered, Request, request};
use sojourn_http::trace::UNITS;
use sojourn_protocol::{
    assimilation::{AssimilationUnit, Fault, Merged, NewVersion, Offer},
    digest::Digest,
    error::ApiError,
    ids::{ClaimId, LeaseId},
    ranges::{LeadAnswer, LeadRequest, RangeResultRequest, RangeWork},
    trace::TraceContext,
};
use std::{fmt, io, sync::Arc};

/// The server, as its own process' assimilators see it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct AssimilationHandle {
    pub(crate) shell: ShellHandle,
    pub(crate) assimilators: Arc<Assimilators>,
    pub(crate) blobs: BlobStore,
    pub(crate) uploads: Uploads,
    pub(crate) staging: Option<Staging>,
    pub(crate) traces: Arc<ResultTraces>,
}

/// How the threads of the server's process are started that assimilate.
pub struct LocalAssimilators {
    /// Starts them, within a Tokio runtime.
    pub start: Box<StartAssimilators>,
    /// Whether they can evaluate the loss of a result, for jobs that ask for that before it is merged.
    pub has_trainer: bool,
}

/// Starts threads that work for a server.
pub type StartAssimilators =
    dyn FnOnce(AssimilationHandle) -> io::Result<Arc<dyn AssimilationThreads>> + Send;

impl fmt::Debug for LocalAssimilators {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalAssimilators")
            .field("has_trainer", &self.has_trainer)
            .finish_non_exhaustive()
    }
}

impl AssimilationHandle {
    /// The store of all blobs.
    #[must_use]
    pub const fn blobs(&self) -> &BlobStore {
        &self.blobs
    }

    /// Uploads in the spool folder.
    #[must_use]
    pub const fn uploads(&self) -> &Uploads {
        &self.uploads
    }

    /// Uploads in the object store, where the blobs are in one.
    #[must_use]
    pub const fn staging(&self) -> Option<&Staging> {
        self.staging.as_ref()
    }

    /// The trace of a lease's result, if one is known.
    #[must_use]
    pub fn trace(&self, lease: LeaseId) -> Option<TraceContext> {
        self.traces.of(lease)
    }

    /// A range of a merge that somebody else leads, if there is one.
    #[must_use]
    pub fn take_range(&self) -> Option<RangeWork> {
        self.assimilators.take_range()
    }

    /// A result to assimilate, if one waits; with `losses` also one whose loss must be evaluated.
    ///
    /// # Errors
    /// The core's refusal, or [`sojourn_protocol::error::ErrorKind::Unavailable`]: with `active` where this server stands by for another.
    pub async fn take_unit(&self, losses: bool) -> Result<Option<Box<AssimilationUnit>>, ApiError> {
        self.shell.request(request::TakeAssimilation { losses }).await
    }

    /// A result to assimilate that needs no merge, and whose checkpoint has at most `max_bytes`, if one waits.
    ///
    /// # Errors
    /// As [`AssimilationHandle::take_unit`].
    pub async fn take_small_unit(
        &self,
        max_bytes: u64,
    ) -> Result<Option<Box<AssimilationUnit>>, ApiError> {
        self.shell.request(request::TakeSmallAssimilation { max_bytes }).await
    }

    /// A claimed unit is still worked at: its claim's term begins anew.
    ///
    /// # Errors
    /// The core's refusal, or [`sojourn_protocol::error::ErrorKind::Unavailable`].
    pub async fn renew(&self, lease: LeaseId, claim: ClaimId) -> Result<Offer, ApiError> {
        self.send(request::RenewAssimilation { lease, claim }).await
    }

    /// Offers what was made of a result. The caller holds the blobs that it names, and has put them in the store.
    ///
    /// # Errors
    /// The core's refusal, or [`sojourn_protocol::error::ErrorKind::Unavailable`].
    pub async fn assimilated(&self, lease: LeaseId, made: NewVersion) -> Result<Offer, ApiError> {
        let NewVersion { version, checkpoint, merged } = made;
        let merged =
            merged.map(|Merged { state, flush, in_flight }| MergeOffer { state, flush, in_flight });
        self.offer(lease, request::OfferAssimilated { lease, version, checkpoint, merged }).await
    }

    /// Refuses a result, for this reason.
    ///
    /// # Errors
    /// The core's refusal, or [`sojourn_protocol::error::ErrorKind::Unavailable`].
    pub async fn rejected(
        &self,
        lease: LeaseId,
        fault: Fault,
        reason: String,
    ) -> Result<Offer, ApiError> {
        let fault = match fault {
            Fault::Host => core::Fault::Host,
            Fault::Server => core::Fault::Server,
        };
        self.offer(lease, request::OfferRejected { lease, reason, fault }).await
    }

    /// Tells the core that the store has lost a blob.
    pub fn lost(&self, blob: Digest) {
        self.shell.tell(Command::Lost { blob });
    }

    /// Shares out what is left of a merge, and gives what others have done of it.
    pub async fn lead(&self, request: &LeadRequest) -> LeadAnswer {
        self.assimilators.lead(request).await
    }

    /// Takes what came of a range.
    #[must_use]
    pub fn range_made(&self, lease: LeaseId, made: RangeResultRequest) -> Offer {
        self.assimilators.range_made(lease, made)
    }

    /// Sends an offer, which ends the assimilation of a result.
    async fn offer(
        &self,
        lease: LeaseId,
        offer: impl Request<Answer = Offered>,
    ) -> Result<Offer, ApiError> {
        let answer = self.send(offer).await?;
        tracing::debug!(target: UNITS, lease = lease.0, offer = ?answer, "assimilation offered");
        self.traces.ended(lease);
        Ok(answer)
    }

    async fn send(&self, offer: impl Request<Answer = Offered>) -> Result<Offer, ApiError> {
        Ok(match self.shell.request(offer).await? {
            Offered::Taken => Offer::Taken,
            Offered::Stale => Offer::Stale,
        })
    }
}
