//! The server's `/v1` as typed calls over HTTP. One attempt per call: whoever calls decides what to do
//! about a failure, and when to try again. Only where the host's token is refused is the server asked again
//! here, since that ends the daemon.

mod failure;
mod features;
mod store;

pub(crate) use failure::{ApiFailure, Remedy};
pub(crate) use store::Place;

use crate::{
    backoff::Backoff,
    config::Timing,
    error::ClientError,
    servers::Servers,
    tls::{Authorities, TlsFault, http_client},
};
use bytes::Bytes;
use features::Features;
use reqwest::{
    Body, Client, Method, RequestBuilder, Response, StatusCode,
    header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderName, RANGE, RETRY_AFTER},
    redirect::Policy,
};
use serde::{Serialize, de::DeserializeOwned};
use sojourn_protocol::{
    PROTOCOL_HEADER, PROTOCOL_VERSION,
    api::{
        BASE_HEADER, BYTES_HEADER, EnrolAnswer, EnrolRequest, HeartbeatAnswer, HeartbeatRequest,
        RESULT_BYTES_HEADER, RESULT_SHA256_HEADER, ReleaseAnswer, ReleaseRequest, ReportAnswer,
        SHA256_HEADER, UploadState, WorkAnswer, WorkRequest,
    },
    digest::{BlobRef, Digest},
    direct::{DIRECT_HEADER, DirectAnswer, DirectRequest},
    error::ApiError,
    ids::LeaseId,
    report::Report,
};
use std::{fmt, sync::Arc, time::Duration};
use store::Store;

/// Most bytes of an answer that isn't a blob.
const LARGEST_ANSWER: usize = 64 << 20;
/// How long an unused connection is kept; longer than a work request is held open.
const IDLE_CONNECTION: Duration = Duration::from_secs(90);
/// How often a refused token is shown again before the refusal is believed.
const CONFIRMATIONS: u32 = 3;

/// The server, as one host sees it.
#[derive(Clone)]
pub(crate) struct Api {
    http: Client,
    servers: Servers,
    token: Option<String>,
    timing: Timing,
    features: Arc<Features>,
    store: Store,
}

/// As what a result's checkpoint is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// As it is.
    Whole,
    /// As its difference from `base`, which makes it `result` again.
    Delta { base: Digest, result: BlobRef },
}

impl Form {
    /// Where it is sent to.
    fn path(self, lease: LeaseId) -> String {
        match self {
            Self::Whole => format!("v1/leases/{lease}/checkpoint"),
            Self::Delta { .. } => format!("v1/leases/{lease}/checkpoint/delta"),
        }
    }
}

/// A blob on its way.
#[derive(Debug)]
pub(crate) struct Download {
    /// The first byte that comes; 0 where the server took no notice of the range.
    pub(crate) from: u64,
    response: Response,
    stall: Duration,
}

impl fmt::Debug for Api {
    /// Everything but the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Api").field("servers", &self.servers).finish_non_exhaustive()
    }
}

impl Api {
    /// A client of the servers, without a token yet. Certificates are checked against
    /// `authorities`, or the system's.
    pub(crate) fn new(
        servers: Servers,
        authorities: Option<&Authorities>,
        timing: Timing,
    ) -> Result<Self, ClientError> {
        let http = http_client(servers.current(), authorities, |builder| {
            builder
                .tcp_nodelay(true)
                .connect_timeout(timing.connect)
                .pool_idle_timeout(IDLE_CONNECTION)
                .redirect(Policy::custom(store::stay))
                .user_agent(concat!("sojourn-client/", env!("CARGO_PKG_VERSION")))
        });
        let http = http.map_err(ClientError::Http)?;
        let store = Store::new(servers.current(), authorities, timing.connect)?;
        Ok(Self { http, servers, token: None, timing, features: Arc::default(), store })
    }

    /// The same with a host's own token.
    pub(crate) fn with_token(mut self, token: String) -> Self {
        self.token = Some(token);
        self
    }

    /// `POST /v1/enrol`
    pub(crate) async fn enrol(
        &self,
        token: &str,
        request: &EnrolRequest,
    ) -> Result<EnrolAnswer, ApiFailure> {
        let request = self.request(Method::POST, "v1/enrol").bearer_auth(token).json(request);
        self.answer(request, self.timing.answer).await
    }

    /// `POST /v1/work`; takes as long as the request lets the server wait.
    pub(crate) async fn work(&self, request: &WorkRequest) -> Result<WorkAnswer, ApiFailure> {
        let limit = self.timing.answer + Duration::from_millis(request.wait.0);
        match self.features.put(&request.holding) {
            Some(holding) => {
                let request = WorkRequest { holding, ..request.clone() };
                self.post("v1/work", &request, limit).await
            }
            None => self.post("v1/work", request, limit).await,
        }
    }

    /// `POST /v1/heartbeat`
    pub(crate) async fn heartbeat(
        &self,
        request: &HeartbeatRequest,
    ) -> Result<HeartbeatAnswer, ApiFailure> {
        let holding = self.features.put(&request.holding);
        let holding = holding.unwrap_or_else(|| request.holding.clone());
        let request = HeartbeatRequest { holding, reported: request.reported.clone() };
        self.post("v1/heartbeat", &request, self.timing.answer).await
    }

    /// `POST /v1/release`
    pub(crate) async fn release(
        &self,
        request: &ReleaseRequest,
    ) -> Result<ReleaseAnswer, ApiFailure> {
        self.post("v1/release", request, self.timing.answer).await
    }

    /// `POST /v1/results`
    pub(crate) async fn report(&self, report: &Report) -> Result<ReportAnswer, ApiFailure> {
        self.post("v1/results", report, self.timing.answer).await
    }

    /// Does the server take deltas?
    pub(crate) fn takes_deltas(&self) -> bool {
        self.features.delta_uploads()
    }

    /// `GET /v1/leases/{lease}/checkpoint`, or that of its delta.
    pub(crate) async fn upload_state(
        &self,
        lease: LeaseId,
        form: Form,
    ) -> Result<UploadState, ApiFailure> {
        self.answer(self.authorized(Method::GET, &form.path(lease)), self.timing.answer).await
    }

    /// `PUT /v1/leases/{lease}/checkpoint?offset=N`, or to its delta: `body` is `blob` from `offset` on. Without a limit
    /// of its own: whoever feeds the body sees whether it moves.
    pub(crate) async fn upload(
        &self,
        lease: LeaseId,
        blob: BlobRef,
        form: Form,
        offset: u64,
        body: Body,
    ) -> Result<UploadState, ApiFailure> {
        let path = format!("{}?offset={offset}", form.path(lease));
        let mut request = self
            .authorized(Method::PUT, &path)
            .header(SHA256_HEADER, blob.sha256.to_string())
            .header(BYTES_HEADER, blob.bytes)
            .header(CONTENT_LENGTH, blob.bytes.saturating_sub(offset))
            .header(CONTENT_TYPE, "application/octet-stream")
            .body(body);
        if let Form::Delta { base, result } = form {
            request = request
                .header(BASE_HEADER, base.to_string())
                .header(RESULT_SHA256_HEADER, result.sha256.to_string())
                .header(RESULT_BYTES_HEADER, result.bytes);
        }
        let response = self.answered(request).await?;
        self.believed(understood(response).await).await
    }

    /// Does the server let hosts put checkpoints in its store themselves?
    pub(crate) fn takes_direct(&self) -> bool {
        self.features.direct_uploads()
    }

    /// `POST /v1/leases/{lease}/checkpoint/direct`
    pub(crate) async fn direct(
        &self,
        lease: LeaseId,
        checkpoint: BlobRef,
    ) -> Result<DirectAnswer, ApiFailure> {
        let path = format!("v1/leases/{lease}/checkpoint/direct");
        self.post(&path, &DirectRequest { checkpoint }, self.timing.answer).await
    }

    /// Puts `body`, all of `blob`, where the server has said. Without a limit, as [`Api::upload`].
    pub(crate) async fn put(
        &self,
        place: &Place,
        blob: BlobRef,
        body: Body,
    ) -> Result<UploadState, ApiFailure> {
        self.store.put(place, blob.bytes, body).await?;
        Ok(UploadState { offset: blob.bytes, complete: true })
    }

    /// `GET /v1/blobs/{sha256}` from byte `from` on. `direct`: from where the server says, if it does.
    pub(crate) async fn blob(
        &self,
        digest: Digest,
        from: u64,
        direct: bool,
    ) -> Result<Download, ApiFailure> {
        let mut request = self.authorized(Method::GET, &format!("v1/blobs/{digest}"));
        if direct {
            request = request.header(DIRECT_HEADER, "follow");
        }
        if from > 0 {
            request = request.header(RANGE, format!("bytes={from}-"));
        }
        let answered = self.answered(request);
        let response = match tokio::time::timeout(self.timing.answer, answered).await {
            Ok(answered) => answered?,
            Err(_) => return Err(ApiFailure::silent(self.timing.answer)),
        };
        let response = if direct && response.status() == StatusCode::TEMPORARY_REDIRECT {
            self.store.get(&response, from, self.timing.answer).await?
        } else {
            self.believed(successful(response).await).await?
        };
        let partial = response.status() == StatusCode::PARTIAL_CONTENT;
        Ok(Download { from: if partial { from } else { 0 }, response, stall: self.timing.answer })
    }

    /// What ends the daemon where the server can't be trusted.
    pub(crate) fn untrusted(&self, fault: &TlsFault) -> ClientError {
        ClientError::Untrusted { url: self.servers.to_string(), fault: fault.clone() }
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, self.servers.path(path)).header(PROTOCOL_HEADER, PROTOCOL_VERSION)
    }

    fn authorized(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.request(method, path);
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    async fn post<A: Serialize + Sync, B: DeserializeOwned>(
        &self,
        path: &str,
        body: &A,
        limit: Duration,
    ) -> Result<B, ApiFailure> {
        self.answer(self.authorized(Method::POST, path).json(body), limit).await
    }

    async fn answer<B: DeserializeOwned>(
        &self,
        request: RequestBuilder,
        limit: Duration,
    ) -> Result<B, ApiFailure> {
        let response = self.answered(request.timeout(limit)).await?;
        self.believed(understood(response).await).await
    }

    /// Sends a request and waits for the head of its answer.
    async fn answered(&self, request: RequestBuilder) -> Result<Response, ApiFailure> {
        let response = self.servers.send(&self.http, request).await;
        let response = response.map_err(ApiFailure::unanswered)?;
        self.features.hear(response.headers());
        Ok(response)
    }

    /// The result; a refusal of the host's token only where the server stays with it. A request that was
    /// altered on its way is refused too.
    async fn believed<T>(&self, result: Result<T, ApiFailure>) -> Result<T, ApiFailure> {
        match result {
            Err(failure) if self.token.is_some() && failure.refuses_the_token() => {
                Err(self.confirmed(failure).await)
            }
            result => result,
        }
    }

    async fn confirmed(&self, refusal: ApiFailure) -> ApiFailure {
        let request = HeartbeatRequest { holding: Vec::new(), reported: Vec::new() };
        let mut backoff = Backoff::new(self.timing.longest_pause);
        for _ in 0..CONFIRMATIONS {
            tokio::time::sleep(backoff.next(None)).await;
            let again = self.authorized(Method::POST, "v1/heartbeat").json(&request);
            let again = again.timeout(self.timing.answer);
            let answer = match self.servers.send(&self.http, again).await {
                Ok(response) => understood::<HeartbeatAnswer>(response).await,
                Err(error) => Err(ApiFailure::unanswered(error)),
            };
            match answer {
                Ok(_) => return ApiFailure::doubtful(&refusal),
                Err(failure) if failure.refuses_the_token() => {}
                Err(failure) => return failure,
            }
        }
        refusal
    }
}

impl Download {
    /// The next bytes; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, ApiFailure> {
        match tokio::time::timeout(self.stall, self.response.chunk()).await {
            Ok(chunk) => chunk.map_err(ApiFailure::unanswered),
            Err(_) => Err(ApiFailure::silent(self.stall)),
        }
    }
}

/// The answer's body, if the answer is a success.
async fn understood<B: DeserializeOwned>(response: Response) -> Result<B, ApiFailure> {
    let response = successful(response).await?;
    let status = response.status().as_u16();
    let body = read_bounded(response).await?;
    serde_json::from_slice(&body).map_err(|error| ApiFailure::Garbage {
        status,
        detail: error.to_string(),
        retry_after: None,
    })
}

/// The answer, if it is a success by a server that speaks our protocol.
async fn successful(response: Response) -> Result<Response, ApiFailure> {
    let header = HeaderName::from_static(PROTOCOL_HEADER);
    if let Some(version) = response.headers().get(header).and_then(|value| value.to_str().ok())
        && version != PROTOCOL_VERSION.to_string()
    {
        return Err(ApiFailure::Protocol { version: version.chars().take(20).collect() });
    }
    if response.status().is_success() {
        return Ok(response);
    }
    let status = response.status().as_u16();
    let retry_after = response
        .headers()
        .get(RETRY_AFTER)
        .and_then(|value| value.to_str().ok()?.trim().parse().ok())
        .map(Duration::from_secs);
    let body = read_bounded(response).await?;
    Err(match serde_json::from_slice::<ApiError>(&body) {
        Ok(error) => ApiFailure::Refused { error, retry_after },
        // Not our server: a proxy that can't reach it, a portal that wants a password.
        Err(_) => ApiFailure::Garbage { status, detail: one_line(&body), retry_after },
    })
}

/// The beginning of a text for the log.
fn one_line(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let words: Vec<&str> = text.split_whitespace().take(50).collect();
    words.join(" ").chars().take(200).collect()
}

async fn read_bounded(mut response: Response) -> Result<Vec<u8>, ApiFailure> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(ApiFailure::unanswered)? {
        if body.len() + chunk.len() > LARGEST_ANSWER {
            return Err(ApiFailure::Garbage {
                status: response.status().as_u16(),
                detail: format!("more than {LARGEST_ANSWER} bytes"),
                retry_after: None,
            });
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}
