//! A typed client of the HTTP interface under `/v1`, for the command line's own use.
//!
//! It knows addresses, headers, retries and how answers are checked; what to ask and how to show it is
//! the business of `cli`. Requests that a busy server refuses for now (503) are sent again, a few times.

mod failure;
mod transfer;
#[cfg(test)]
mod transfer_tests;

pub(crate) use failure::ApiFailure;

use reqwest::{Client, Method, RequestBuilder, Response, Url, header};
use serde::{Serialize, de::DeserializeOwned};
use sojourn_client::{
    Servers,
    tls::{Authorities, http_client},
};
use sojourn_protocol::{
    PROTOCOL_HEADER, PROTOCOL_VERSION,
    api::{
        CollectAnswer, CollectRequest, EvaluateRequest, ExtendRequest, Health, MissingAnswer,
        MissingRequest, PauseRequest, PlacementRequest, RollbackRequest, RolledBack, SubmitAnswer,
        SubmitRequest,
    },
    assimilation::AssimilationsView,
    error::{ApiError, ErrorKind},
    ids::{HostId, JobId, TrialId},
    view::{EvaluationView, EventView, HostView, JobDetail, JobView, TrialHistory, TrialView},
};
use std::time::Duration;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long an answer may stand still.
const READ_TIMEOUT: Duration = Duration::from_secs(60);
/// Pauses before a refused request is sent again.
const PAUSES: [Duration; 5] = [
    Duration::from_millis(200),
    Duration::from_millis(400),
    Duration::from_millis(800),
    Duration::from_millis(1600),
    Duration::from_millis(3200),
];
/// The most of an unexpected answer that a message shows.
const SHOWN: usize = 200;

/// A server and the right to ask it.
#[derive(Debug, Clone)]
pub(crate) struct ApiClient {
    http: Client,
    servers: Servers,
    token: Option<String>,
}

impl ApiClient {
    /// A client for the servers. Certificates are checked against `authorities`, or the system's.
    pub(crate) fn new(
        servers: Servers,
        authorities: Option<&Authorities>,
        token: Option<String>,
    ) -> Result<Self, ApiFailure> {
        let server = servers.current().clone();
        let http = http_client(&server, authorities, |builder| {
            builder
                .connect_timeout(CONNECT_TIMEOUT)
                .read_timeout(READ_TIMEOUT)
                .user_agent(concat!("sojourn/", env!("CARGO_PKG_VERSION")))
        });
        let http = http.map_err(|error| ApiFailure::unreachable(&server, error))?;
        Ok(Self { http, servers, token })
    }

    /// The address of the server that is asked.
    pub(crate) fn server(&self) -> &Url {
        self.servers.current()
    }

    /// Is the server there?
    pub(crate) async fn health(&self) -> Result<Health, ApiFailure> {
        self.get("health").await
    }

    pub(crate) async fn jobs(&self) -> Result<Vec<JobView>, ApiFailure> {
        self.get("jobs").await
    }

    pub(crate) async fn job(&self, job: JobId) -> Result<JobDetail, ApiFailure> {
        self.get(&format!("jobs/{job}")).await
    }

    pub(crate) async fn trials(&self, job: JobId) -> Result<Vec<TrialView>, ApiFailure> {
        self.get(&format!("jobs/{job}/trials")).await
    }

    pub(crate) async fn history(
        &self,
        job: JobId,
        trial: TrialId,
    ) -> Result<TrialHistory, ApiFailure> {
        self.get(&format!("jobs/{job}/trials/{trial}/history")).await
    }

    /// Asks for an evaluation, or how far it is.
    pub(crate) async fn evaluate(
        &self,
        job: JobId,
        trial: TrialId,
        request: &EvaluateRequest,
    ) -> Result<EvaluationView, ApiFailure> {
        self.post(&format!("jobs/{job}/trials/{trial}/evaluate"), request).await
    }

    pub(crate) async fn evaluations(
        &self,
        job: JobId,
        trial: TrialId,
    ) -> Result<Vec<EvaluationView>, ApiFailure> {
        self.get(&format!("jobs/{job}/trials/{trial}/evaluations")).await
    }

    /// The events of a job that come after a journal position; not all at once where they are many.
    pub(crate) async fn events(
        &self,
        job: JobId,
        after: u64,
    ) -> Result<Vec<EventView>, ApiFailure> {
        self.get(&format!("jobs/{job}/events?after={after}")).await
    }

    pub(crate) async fn hosts(&self) -> Result<Vec<HostView>, ApiFailure> {
        self.get("hosts").await
    }

    pub(crate) async fn collect(
        &self,
        request: &CollectRequest,
    ) -> Result<CollectAnswer, ApiFailure> {
        self.post("blobs/collect", request).await
    }

    pub(crate) async fn assimilations(&self) -> Result<AssimilationsView, ApiFailure> {
        self.get("assimilations").await
    }

    pub(crate) async fn revoke(&self, host: HostId) -> Result<HostView, ApiFailure> {
        self.post(&format!("hosts/{host}/revoke"), &()).await
    }

    pub(crate) async fn cancel(&self, job: JobId) -> Result<JobView, ApiFailure> {
        self.post(&format!("jobs/{job}/cancel"), &()).await
    }

    pub(crate) async fn pause(
        &self,
        job: JobId,
        request: &PauseRequest,
    ) -> Result<JobView, ApiFailure> {
        self.post(&format!("jobs/{job}/pause"), request).await
    }

    pub(crate) async fn resume(&self, job: JobId) -> Result<JobView, ApiFailure> {
        self.post(&format!("jobs/{job}/resume"), &()).await
    }

    pub(crate) async fn extend(
        &self,
        job: JobId,
        request: &ExtendRequest,
    ) -> Result<JobView, ApiFailure> {
        self.post(&format!("jobs/{job}/extend"), request).await
    }

    pub(crate) async fn place(
        &self,
        job: JobId,
        request: &PlacementRequest,
    ) -> Result<JobView, ApiFailure> {
        self.post(&format!("jobs/{job}/placement"), request).await
    }

    pub(crate) async fn rollback(
        &self,
        job: JobId,
        request: &RollbackRequest,
    ) -> Result<Vec<RolledBack>, ApiFailure> {
        self.post(&format!("jobs/{job}/rollback"), request).await
    }

    pub(crate) async fn missing(
        &self,
        request: &MissingRequest,
    ) -> Result<MissingAnswer, ApiFailure> {
        self.post("blobs/missing", request).await
    }

    /// Submits a job. Where the answer is lost the same call is made again, and its nonce sees to it that
    /// no second job comes of that.
    pub(crate) async fn submit(&self, request: &SubmitRequest) -> Result<SubmitAnswer, ApiFailure> {
        let mut pauses = PAUSES.into_iter();
        loop {
            match (self.post("jobs", request).await, pauses.next()) {
                (Err(failure), Some(pause)) if failure.is_away() && !failure.is_busy() => {
                    // A busy server was asked again already.
                    tokio::time::sleep(pause).await;
                }
                (answer, _) => return answer,
            }
        }
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ApiFailure> {
        self.answer(self.send(Method::GET, path, |request| request).await?).await
    }

    async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &(impl Serialize + Sync),
    ) -> Result<T, ApiFailure> {
        self.answer(self.send(Method::POST, path, |request| request.json(body)).await?).await
    }

    /// Sends a request until it is answered by something else than "not now". Whatever is posted may
    /// come twice: the interface is idempotent.
    async fn send(
        &self,
        method: Method,
        path: &str,
        complete: impl Fn(RequestBuilder) -> RequestBuilder,
    ) -> Result<Response, ApiFailure> {
        let path = format!("v1/{path}");
        let mut pauses = PAUSES.into_iter();
        loop {
            let mut request = self
                .http
                .request(method.clone(), self.servers.path(&path))
                .header(PROTOCOL_HEADER, PROTOCOL_VERSION);
            if let Some(token) = &self.token {
                request = request.bearer_auth(token);
            }
            let response = self
                .servers
                .send(&self.http, complete(request))
                .await
                .map_err(|error| ApiFailure::unreachable(self.server(), error))?;
            let failure = match self.accept(response).await {
                Ok(response) => return Ok(response),
                Err(failure) => failure,
            };
            match pauses.next() {
                Some(pause) if failure.is_busy() => tokio::time::sleep(pause).await,
                _ => return Err(failure),
            }
        }
    }

    /// Passes a success of the right protocol on; makes a failure of anything else.
    async fn accept(&self, response: Response) -> Result<Response, ApiFailure> {
        let status = response.status();
        let version = response
            .headers()
            .get(PROTOCOL_HEADER)
            .map(|value| value.to_str().map_or_else(|_| "?".to_owned(), ToOwned::to_owned));
        if status.is_success() {
            return match version {
                Some(version) if version == PROTOCOL_VERSION.to_string() => Ok(response),
                Some(version) => Err(ApiFailure::Protocol { version }),
                None => Err(ApiFailure::garbage(
                    self.server(),
                    status,
                    "it doesn't say that it is a sojourn server".to_owned(),
                )),
            };
        }
        let body = response.bytes().await.unwrap_or_default();
        match serde_json::from_slice::<ApiError>(&body) {
            Ok(error) if error.kind == ErrorKind::UnsupportedProtocol => {
                Err(ApiFailure::Protocol { version: version.unwrap_or(error.message) })
            }
            Ok(error) => Err(ApiFailure::refused(self.server(), error)),
            Err(_) => {
                let text = String::from_utf8_lossy(&body);
                let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
                let short = text.chars().take(SHOWN).collect();
                Err(ApiFailure::garbage(self.server(), status, short))
            }
        }
    }

    async fn answer<T: DeserializeOwned>(&self, response: Response) -> Result<T, ApiFailure> {
        let status = response.status();
        let body = response
            .bytes()
            .await
            .map_err(|error| ApiFailure::unreachable(self.server(), error))?;
        serde_json::from_slice(&body)
            .map_err(|error| ApiFailure::garbage(self.server(), status, error.to_string()))
    }
}

/// The content type of bytes.
const BYTES: (header::HeaderName, &str) = (header::CONTENT_TYPE, "application/octet-stream");
