//! The queue of a server that is reached over HTTP.
//!
//! An offer is repeated until a server takes or refuses it, however long that takes, because its result exists already:
//! through restarts, and at each server of a list in turn. All other calls are made once at each server; the caller
//! comes again.

use crate::queue::{Fault, NewVersion, Offer, Queue, QueueError, Work};
use parking_lot::Mutex;
use serde::{Serialize, de::DeserializeOwned};
use sojourn_api::{
    Request,
    endpoints::{self, Endpoint},
};
use sojourn_http::{Backoff, CallError, HttpClient, RetryPolicy};
use sojourn_protocol::{
    assimilation::{
        AssimilationsView, LostRequest, OfferAnswer, RejectRequest, RenewRequest, TakeAnswer,
        TakeRequest,
    },
    digest::Digest,
    error::{ApiError, Retry, error_chain},
    ids::{ClaimId, LeaseId},
    ranges::{LeadAnswer, LeadRequest, RangeResultRequest},
    time::Millis,
    trace::TraceContext,
};
use std::{collections::BTreeMap, future::Future, time::Duration};
use tokio::{
    runtime::Handle,
    sync::watch,
    time::{Instant, sleep, timeout},
};

/// The server holds a request for work open for so long.
const POLL_WAIT: Millis = Millis::from_secs(20);
/// Time limit of a call, beyond what the server is asked to wait.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// A renewal takes no longer: the end of its unit's work waits for it.
const RENEWAL_TIMEOUT: Duration = Duration::from_secs(5);
/// Ceilings of the first and the longest pause before an offer is repeated.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const MAX_PAUSE: Duration = Duration::from_secs(10);
/// Once the process stops, an offer is repeated no longer than this: another process makes it again.
const LAST_OFFERS_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a server gave no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each variant's message says it")]
pub enum HttpQueueError {
    /// The server can't be reached, or gives no answer that can be used.
    #[error(transparent)]
    Call(CallError),
    /// The server refuses.
    #[error("`{server}` says: {error}")]
    Refused { server: String, error: ApiError },
    #[error("this process is to end")]
    Stopping,
}

impl From<CallError> for HttpQueueError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Refused { server, error, .. } => Self::Refused { server, error },
            error => Self::Call(error),
        }
    }
}

impl HttpQueueError {
    /// Has a server said it, so that one is there?
    #[must_use]
    pub const fn is_answer(&self) -> bool {
        matches!(self, Self::Refused { .. })
    }

    /// May the same call succeed later, or at another server?
    #[must_use]
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Call(error) => error.retry() == Retry::Later,
            Self::Refused { error, .. } => error.kind.retry() == Retry::Later,
            Self::Stopping => false,
        }
    }
}

/// The queue of a server, or of several of which one is active.
#[derive(Debug)]
pub struct HttpQueue {
    http: HttpClient,
    name: String,
    runtime: Handle,
    stopping: watch::Receiver<bool>,
    /// Of work that was just taken.
    traces: Mutex<BTreeMap<LeaseId, TraceContext>>,
}

impl HttpQueue {
    /// The queue behind a client that has an assimilator's token. `name` is shown to people; once `stopping` is true,
    /// nothing is waited for.
    #[must_use]
    pub const fn new(
        http: HttpClient,
        name: String,
        runtime: Handle,
        stopping: watch::Receiver<bool>,
    ) -> Self {
        let traces = Mutex::new(BTreeMap::new());
        Self { http, name, runtime, stopping, traces }
    }

    /// Is the token an assimilator's? A token that may only look can't renew a claim that doesn't exist.
    ///
    /// # Errors
    /// The error of the last server.
    pub async fn check(&self) -> Result<(), HttpQueueError> {
        let renew = RenewRequest { claim: ClaimId(0) };
        let request = endpoints::RenewAssimilation::request(LeaseId(0), &renew);
        self.call(request, CALL_TIMEOUT).await.map(drop)
    }

    /// How much there is to assimilate.
    ///
    /// # Errors
    /// The error of the last server.
    pub async fn view(&self) -> Result<AssimilationsView, HttpQueueError> {
        self.call(endpoints::Assimilations::request(), CALL_TIMEOUT).await
    }

    async fn call<E>(
        &self,
        request: Request<'_, E>,
        limit: Duration,
    ) -> Result<E::Answer, HttpQueueError>
    where
        E: Endpoint<Body: Serialize, Answer: DeserializeOwned>,
    {
        Ok(self.http.call(request.within(limit), RetryPolicy::Never).await?)
    }

    /// Repeats an offer until a server takes or refuses it.
    fn offer<E>(&self, lease: LeaseId, request: &Request<'_, E>) -> Result<Offer, QueueError>
    where
        E: Endpoint<Body: Serialize, Answer = OfferAnswer>,
    {
        let repeated = async {
            let mut backoff = Backoff::from(FIRST_PAUSE, MAX_PAUSE);
            let mut deadline = None;
            loop {
                let error = match self.call(request.clone(), CALL_TIMEOUT).await {
                    Ok(answer) => return Ok(answer.offer),
                    Err(error) => error,
                };
                if *self.stopping.borrow() {
                    deadline = deadline.or_else(|| Some(Instant::now() + LAST_OFFERS_TIMEOUT));
                }
                if !error.is_passing() || deadline.is_some_and(|at| at <= Instant::now()) {
                    return Err(error);
                }
                tracing::debug!(lease = lease.0, %error, "an offer is repeated");
                sleep(backoff.next(None)).await;
            }
        };
        self.runtime.block_on(repeated).map_err(|error| queue_error(&error))
    }

    /// The answer to a request, unless the process is told to stop first.
    async fn unless_stopping<T>(
        &self,
        request: impl Future<Output = Result<T, HttpQueueError>>,
    ) -> Result<T, HttpQueueError> {
        let mut stopping = self.stopping.clone();
        tokio::select! {
            answer = request => answer,
            _ = stopping.wait_for(|stopping| *stopping) => Err(HttpQueueError::Stopping),
        }
    }
}

fn queue_error(error: &HttpQueueError) -> QueueError {
    QueueError(error_chain(error))
}

impl Queue for HttpQueue {
    fn waits(&self) -> bool {
        true
    }

    fn take(&self, losses: bool) -> Result<Option<Work>, QueueError> {
        let request = TakeRequest { name: self.name.clone(), wait: POLL_WAIT, losses };
        let limit = Duration::from_millis(POLL_WAIT.0) + CALL_TIMEOUT;
        let take = self.call(endpoints::TakeAssimilation::request(&request), limit);
        let TakeAnswer { unit, range, trace } =
            match self.runtime.block_on(self.unless_stopping(take)) {
                Ok(answer) => answer,
                Err(HttpQueueError::Stopping) => return Ok(None),
                Err(error) => return Err(queue_error(&error)),
            };
        let work = match unit {
            Some(unit) => Some(Work::Unit(Box::new(unit))),
            None => range.map(|range| Work::Range(Box::new(range))),
        };
        if let (Some(work), Some(trace)) = (&work, trace) {
            self.traces.lock().insert(work.lease(), trace);
        }
        Ok(work)
    }

    fn trace(&self, lease: LeaseId) -> Option<TraceContext> {
        self.traces.lock().remove(&lease)
    }

    fn renew(&self, lease: LeaseId, claim: ClaimId) -> Result<Offer, QueueError> {
        let request = RenewRequest { claim };
        let renew = async {
            let request = endpoints::RenewAssimilation::request(lease, &request);
            let renewed = self.call(request, CALL_TIMEOUT);
            match timeout(RENEWAL_TIMEOUT, renewed).await {
                Ok(answer) => answer.map_err(|error| queue_error(&error)),
                Err(_) => Err(QueueError("it takes too long".to_owned())),
            }
        };
        self.runtime.block_on(renew).map(|OfferAnswer { offer }| offer)
    }

    fn assimilated(&self, lease: LeaseId, made: NewVersion) -> Result<Offer, QueueError> {
        self.offer(lease, &endpoints::OfferAssimilated::request(lease, &made))
    }

    fn lost(&self, lease: LeaseId, blob: Digest) -> Result<Offer, QueueError> {
        self.offer(lease, &endpoints::LostBlob::request(lease, &LostRequest { blob }))
    }

    fn rejected(&self, lease: LeaseId, fault: Fault, reason: &str) -> Result<Offer, QueueError> {
        let rejected = RejectRequest { fault, reason: reason.to_owned() };
        self.offer(lease, &endpoints::OfferRejected::request(lease, &rejected))
    }

    fn lead(&self, request: &LeadRequest) -> Result<LeadAnswer, QueueError> {
        let limit = Duration::from_millis(request.wait.0) + CALL_TIMEOUT;
        let lead = endpoints::LeadAssimilation::request(request.unit.lease, request);
        let lead = self.call(lead, limit);
        self.runtime.block_on(self.unless_stopping(lead)).map_err(|error| queue_error(&error))
    }

    fn range_made(&self, lease: LeaseId, made: &RangeResultRequest) -> Result<Offer, QueueError> {
        let made = self.call(endpoints::RangeMade::request(lease, made), CALL_TIMEOUT);
        let answer = self.runtime.block_on(made).map_err(|error| queue_error(&error));
        answer.map(|OfferAnswer { offer }| offer)
    }
}
