//! The queue of a server that is reached over HTTP.
//!
//! An offer is repeated until a server hears it, however long that takes, for what it offers has been made: through
//! restarts, and at each of the servers of a list in turn. All else is asked once of each; whoever asks comes again.

use crate::queue::{Fault, Made, Offer, Queue, QueueError, Work};
use reqwest::{Client, StatusCode, Url};
use serde::{Serialize, de::DeserializeOwned};
use sojourn_protocol::{
    PROTOCOL_HEADER, PROTOCOL_VERSION,
    assimilation::{
        AssimilationsView, LostRequest, OfferAnswer, RejectRequest, RenewRequest, TakeAnswer,
        TakeRequest,
    },
    digest::Digest,
    error::{ApiError, ErrorKind, Retry},
    ids::{ClaimId, LeaseId},
    ranges::{LeadAnswer, LeadRequest, MadeRequest},
    time::Millis,
};
use std::{
    future::Future,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};
use tokio::{
    runtime::Handle,
    sync::watch,
    time::{Instant, sleep, timeout},
};

/// A request for a unit is held open by the server for so long.
const WAIT: Millis = Millis::from_secs(20);
/// An answer that takes longer than it should by so much doesn't come.
const PATIENCE: Duration = Duration::from_secs(30);
/// First and longest pause before an offer is repeated.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// An offer isn't repeated for longer once the process is to end: another makes it again.
const LAST_OFFERS: Duration = Duration::from_secs(10);

/// Why a server gives no answer.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// It can't be reached.
    #[error("can't reach `{server}`")]
    Unreached {
        /// Which.
        server: String,
        /// Why.
        #[source]
        source: reqwest::Error,
    },
    /// It refuses.
    #[error("`{server}` says: {error}")]
    Refused {
        /// Which.
        server: String,
        /// Its words.
        error: ApiError,
    },
    /// Nobody wants the answer any more.
    #[error("this process is to end")]
    Ending,
    /// There is no server to ask.
    #[error("no server is named")]
    Nobody,
}

impl RemoteError {
    /// Might the same be answered later, or by another server?
    #[must_use]
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Unreached { .. } => true,
            Self::Refused { error, .. } => error.kind.retry() == Retry::Later,
            Self::Ending | Self::Nobody => false,
        }
    }
}

/// A server, or several of which one is active.
#[derive(Debug)]
pub struct Remote {
    http: Client,
    servers: Vec<Url>,
    token: String,
    name: String,
    runtime: Handle,
    /// Which one answered last.
    active: AtomicUsize,
    ending: watch::Receiver<bool>,
}

impl Remote {
    /// The servers at these addresses, asked with a token by an assimilator of this name, until `ending` says so.
    #[must_use]
    pub fn new(
        http: Client,
        servers: Vec<Url>,
        (token, name): (String, String),
        runtime: Handle,
        ending: watch::Receiver<bool>,
    ) -> Self {
        Self { http, servers, token, name, runtime, active: AtomicUsize::new(0), ending }
    }

    /// Is the token an assimilator's? Who may only look can't renew what isn't there. Asked once of each server.
    ///
    /// # Errors
    /// The last server's.
    pub async fn check(&self) -> Result<(), RemoteError> {
        let (path, request) = ("v1/assimilations/0/renew", RenewRequest { taking: ClaimId(0) });
        self.post::<OfferAnswer>(path, &request, PATIENCE).await.map(drop)
    }

    /// How much there is to assimilate. Asked once of each server.
    ///
    /// # Errors
    /// The last server's.
    pub async fn view(&self) -> Result<AssimilationsView, RemoteError> {
        self.of_each(async |server: &Url| {
            let request = self.http.get(address(server, "v1/assimilations"));
            self.answer(server, request.timeout(PATIENCE)).await
        })
        .await
    }

    async fn post<A: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
        patience: Duration,
    ) -> Result<A, RemoteError> {
        self.of_each(async |server: &Url| {
            let request = self.http.post(address(server, path)).json(body);
            self.answer(server, request.timeout(patience)).await
        })
        .await
    }

    /// Asks the one that answered last, then the others.
    async fn of_each<A>(
        &self,
        ask: impl AsyncFn(&Url) -> Result<A, RemoteError>,
    ) -> Result<A, RemoteError> {
        let first = self.active.load(Ordering::Relaxed);
        let mut refused = RemoteError::Nobody;
        for turn in 0..self.servers.len() {
            let at = first.wrapping_add(turn) % self.servers.len();
            let Some(server) = self.servers.get(at) else { break };
            match ask(server).await {
                Err(error) if error.is_passing() => refused = error,
                ended => {
                    self.active.store(at, Ordering::Relaxed);
                    return ended;
                }
            }
        }
        Err(refused)
    }

    async fn answer<A: DeserializeOwned>(
        &self,
        server: &Url,
        request: reqwest::RequestBuilder,
    ) -> Result<A, RemoteError> {
        let unreached = |source: reqwest::Error| RemoteError::Unreached {
            server: server.to_string(),
            source: source.without_url(),
        };
        let request =
            request.bearer_auth(&self.token).header(PROTOCOL_HEADER, PROTOCOL_VERSION.to_string());
        let answer = request.send().await.map_err(unreached)?;
        let status = answer.status();
        if status.is_success() {
            return answer.json().await.map_err(unreached);
        }
        let bytes = answer.bytes().await.map_err(unreached)?;
        let error = serde_json::from_slice(&bytes).unwrap_or_else(|_| of_status(status));
        Err(RemoteError::Refused { server: server.to_string(), error })
    }

    /// Repeats an offer until it is heard.
    fn offer(
        &self,
        lease: LeaseId,
        what: &str,
        body: &impl Serialize,
    ) -> Result<Offer, QueueError> {
        let path = format!("v1/assimilations/{lease}/{what}");
        let repeated = async {
            let mut pause = FIRST_PAUSE;
            let mut last = None;
            loop {
                let answer: Result<OfferAnswer, _> = self.post(&path, body, PATIENCE).await;
                let error = match answer {
                    Ok(answer) => return Ok(answer.offer),
                    Err(error) => error,
                };
                if *self.ending.borrow() {
                    last = last.or_else(|| Some(Instant::now() + LAST_OFFERS));
                }
                if !error.is_passing() || last.is_some_and(|last| last <= Instant::now()) {
                    return Err(error);
                }
                tracing::debug!(lease = lease.0, %error, "an offer is repeated");
                sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        };
        self.runtime.block_on(repeated).map_err(|error| words(&error))
    }

    /// What a request gives, unless the process is to end first.
    async fn unless_ending<T>(
        &self,
        request: impl Future<Output = Result<T, RemoteError>>,
    ) -> Result<T, RemoteError> {
        let mut ending = self.ending.clone();
        tokio::select! {
            answer = request => answer,
            _ = ending.wait_for(|ending| *ending) => Err(RemoteError::Ending),
        }
    }
}

fn address(server: &Url, path: &str) -> Url {
    let mut url = server.clone();
    url.set_path(&format!("{}/{path}", server.path().trim_end_matches('/')));
    url
}

/// An answer that isn't the API's, from whatever stands in between.
fn of_status(status: StatusCode) -> ApiError {
    let kind = match status.as_u16() {
        401 => ErrorKind::Unauthorized,
        404 => ErrorKind::NotFound,
        400..=499 => ErrorKind::Invalid,
        _ => ErrorKind::Unavailable,
    };
    ApiError::new(kind, format!("status {status}, in no words of a server of this kind"))
}

fn words(error: &RemoteError) -> QueueError {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    QueueError(text)
}

impl Queue for Remote {
    fn waits(&self) -> bool {
        true
    }

    fn take(&self, losses: bool) -> Result<Option<Work>, QueueError> {
        let request = TakeRequest { name: self.name.clone(), wait: WAIT, losses };
        let longest = Duration::from_millis(WAIT.0) + PATIENCE;
        let take = self.post("v1/assimilations", &request, longest);
        match self.runtime.block_on(self.unless_ending(take)) {
            Ok(TakeAnswer { unit: Some(unit), .. }) => Ok(Some(Work::Unit(Box::new(unit)))),
            Ok(TakeAnswer { range, .. }) => Ok(range.map(|range| Work::Range(Box::new(range)))),
            Err(RemoteError::Ending) => Ok(None),
            Err(error) => Err(words(&error)),
        }
    }

    fn renew(&self, lease: LeaseId, taking: ClaimId) -> Result<Offer, QueueError> {
        let (path, request) = (format!("v1/assimilations/{lease}/renew"), RenewRequest { taking });
        let renew = async {
            // It holds up the end of its unit's work.
            match timeout(PATIENCE / 6, self.post(&path, &request, PATIENCE)).await {
                Ok(answer) => answer.map_err(|error| words(&error)),
                Err(_) => Err(QueueError("it takes too long".to_owned())),
            }
        };
        self.runtime.block_on(renew).map(|OfferAnswer { offer }| offer)
    }

    fn assimilated(&self, lease: LeaseId, made: Made) -> Result<Offer, QueueError> {
        self.offer(lease, "assimilated", &made)
    }

    fn lost(&self, lease: LeaseId, blob: Digest) -> Result<Offer, QueueError> {
        self.offer(lease, "lost", &LostRequest { blob })
    }

    fn rejected(&self, lease: LeaseId, fault: Fault, reason: &str) -> Result<Offer, QueueError> {
        self.offer(lease, "rejected", &RejectRequest { fault, reason: reason.to_owned() })
    }

    fn lead(&self, request: &LeadRequest) -> Result<LeadAnswer, QueueError> {
        let path = format!("v1/assimilations/{}/lead", request.unit.lease);
        let longest = Duration::from_millis(request.wait.0) + PATIENCE;
        let lead = self.post(&path, request, longest);
        self.runtime.block_on(self.unless_ending(lead)).map_err(|error| words(&error))
    }

    fn range_made(&self, lease: LeaseId, made: &MadeRequest) -> Result<Offer, QueueError> {
        let path = format!("v1/assimilations/{lease}/range");
        let made = self.post(&path, made, PATIENCE);
        let answer = self.runtime.block_on(made).map_err(|error| words(&error));
        answer.map(|OfferAnswer { offer }| offer)
    }
}
