//! The calls of a host to its server's `/v1`. One attempt per call: the caller decides what to do about a failure,
//! and when to try again. Only a refusal of the host's token is confirmed here first, since that ends the daemon.

mod features;
mod incarnation;

use crate::{config::Timing, error::ClientError};
use features::{Features, OWN};
use incarnation::OwnIncarnation;
use parking_lot::Mutex;
use reqwest::{
    Body, Method, StatusCode,
    header::{CONTENT_LENGTH, CONTENT_TYPE},
};
use serde::{Serialize, de::DeserializeOwned};
use sojourn_api::{
    Request,
    endpoints::{self, Endpoint},
};
use sojourn_http::{
    Authorities, Backoff, CallError, Download, Encoding, HttpClient, HttpConfig, KnownStores,
    RetryPolicy, Route, Servers, StoreClient, TlsFault, UploadTarget,
};
use sojourn_protocol::{
    api::{
        BASE_HEADER, BYTES_HEADER, EnrolAnswer, EnrolRequest, HeartbeatAnswer, HeartbeatRequest,
        RESULT_BYTES_HEADER, RESULT_SHA256_HEADER, ReleaseAnswer, ReleaseRequest, ReportAnswer,
        SHA256_HEADER, UploadState, WorkAnswer, WorkRequest,
    },
    digest::{BlobRef, Digest},
    direct::{DirectAnswer, DirectRequest},
    ids::LeaseId,
    report::{FailureKind, Outcome, Report},
};
use std::{sync::Arc, time::Duration};

/// How often a refused token is shown again before the refusal is believed.
const TOKEN_CONFIRMATIONS: u32 = 3;
/// The name and version that the daemon's requests carry.
const USER_AGENT: &str = concat!("sojourn-client/", env!("CARGO_PKG_VERSION"));

/// The server, as one host sees it.
#[derive(Debug, Clone)]
pub(crate) struct Api {
    http: HttpClient,
    timing: Timing,
    /// None until the server has answered something.
    features: Arc<Mutex<Option<Features>>>,
    incarnation: Arc<OwnIncarnation>,
    store: StoreClient,
}

/// The form in which a result's checkpoint is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// As it is.
    Whole,
    /// As its difference from `base`, from which the server makes `result` again.
    Delta { base: Digest, result: BlobRef },
}

impl Form {
    /// The path that it is sent to.
    fn path(self, lease: LeaseId) -> String {
        match self {
            Self::Whole => endpoints::PutCheckpoint::path(lease),
            Self::Delta { .. } => endpoints::PutDelta::path(lease),
        }
    }
}

impl Api {
    /// A client of the servers, without a token yet. Certificates are checked against `authorities`, or the system's.
    pub(crate) fn new(
        servers: Servers,
        authorities: Option<&Authorities>,
        timing: Timing,
    ) -> Result<Self, ClientError> {
        let store = StoreClient::new(servers.current(), authorities, timing.connect);
        let store = store.map_err(ClientError::Http)?;
        let config = HttpConfig {
            user_agent: USER_AGENT,
            connect_timeout: timing.connect,
            authorities,
            features: OWN,
            ..HttpConfig::default()
        };
        let features = Arc::<Mutex<Option<Features>>>::default();
        let observed = Arc::clone(&features);
        let http = HttpClient::new(servers, &config).map_err(ClientError::Http)?;
        let http = http.with_observer(move |headers| {
            if let Some(features) = Features::of(headers) {
                *observed.lock() = Some(features);
            }
        });
        let incarnation = Arc::new(OwnIncarnation::new());
        let named = Arc::clone(&incarnation);
        let http = http.with_headers(move || named.headers());
        Ok(Self { http, timing, features, incarnation, store })
    }

    /// The same with a host's own token.
    pub(crate) fn with_token(mut self, token: String) -> Self {
        self.http = self.http.with_token(token);
        self
    }

    /// Makes this machine a host, with an enrolment token.
    pub(crate) async fn enrol(
        &self,
        token: &str,
        request: &EnrolRequest,
    ) -> Result<EnrolAnswer, CallError> {
        let http = self.http.clone().with_token(token.to_owned());
        let request = endpoints::Enrol::request(request).within(self.timing.answer);
        http.call(request, RetryPolicy::Never).await
    }

    /// Asks for work; takes as long as the request lets the server wait.
    pub(crate) async fn work(&self, request: &WorkRequest) -> Result<WorkAnswer, CallError> {
        let limit = self.timing.answer + Duration::from_millis(request.wait.0);
        let inventory = request.inventory.as_ref();
        if inventory.is_some() {
            self.learn_features().await;
        }
        let features = self.features();
        let holding = features.reduce(&request.holding);
        let inventory = inventory.map(|inventory| features.reduce_inventory(inventory));
        let request = WorkRequest { holding, inventory, ..request.clone() };
        self.call(endpoints::Work::request(&request).within(limit)).await
    }

    /// Has the server say what it understands, where it hasn't answered anything yet. A server that doesn't answer isn't
    /// taken to understand more than the first version: the next request finds it away too.
    async fn learn_features(&self) {
        if self.features.lock().is_none() {
            let health = endpoints::Health::request().within(self.timing.answer);
            if let Err(error) = self.http.call(health, RetryPolicy::Never).await {
                tracing::debug!(%error, "the server doesn't say what it understands");
            }
        }
    }

    /// Says that the host lives, with its leases.
    pub(crate) async fn heartbeat(
        &self,
        request: &HeartbeatRequest,
    ) -> Result<HeartbeatAnswer, CallError> {
        let holding = self.features().reduce(&request.holding);
        let request = HeartbeatRequest { holding, ..request.clone() };
        self.call(endpoints::Heartbeat::request(&request)).await
    }

    /// Gives leases back.
    pub(crate) async fn release(
        &self,
        request: &ReleaseRequest,
    ) -> Result<ReleaseAnswer, CallError> {
        self.call(endpoints::Release::request(request)).await
    }

    /// Reports the end of a lease.
    pub(crate) async fn report(&self, report: &Report) -> Result<ReportAnswer, CallError> {
        if let Outcome::Failed(failure) = &report.outcome
            && matches!(failure.kind, FailureKind::Unsupported | FailureKind::WrongUnit)
        {
            self.learn_features().await;
        }
        let report = self.features().reduce_report(report);
        self.call(endpoints::Report::request(&report)).await
    }

    /// Does the server take deltas?
    pub(crate) fn takes_deltas(&self) -> bool {
        self.features().delta_uploads
    }

    /// How far the upload of a checkpoint is, or that of its delta.
    pub(crate) async fn upload_state(
        &self,
        lease: LeaseId,
        form: Form,
    ) -> Result<UploadState, CallError> {
        match form {
            Form::Whole => self.call(endpoints::CheckpointState::request(lease)).await,
            Form::Delta { .. } => self.call(endpoints::DeltaState::request(lease)).await,
        }
    }

    /// Uploads a checkpoint, or its delta: `body` is `blob` from `offset` on. Without a time
    /// limit: whoever feeds the body sees whether it moves.
    pub(crate) async fn upload(
        &self,
        lease: LeaseId,
        blob: BlobRef,
        form: Form,
        offset: u64,
        body: Body,
    ) -> Result<UploadState, CallError> {
        let path = format!("{}?offset={offset}", form.path(lease));
        let mut request = self
            .http
            .request(Method::PUT, &path)
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
        let response = self.http.send(request).await?;
        let state = match self.http.accept(response).await {
            Ok(response) => self.http.read(response).await,
            Err(error) => Err(error),
        };
        self.believed(state).await
    }

    /// Does the server let hosts put checkpoints in its store themselves?
    pub(crate) fn takes_direct(&self) -> bool {
        self.features().direct_uploads
    }

    /// Asks for a way to put a checkpoint in the server's store.
    pub(crate) async fn direct(
        &self,
        lease: LeaseId,
        checkpoint: BlobRef,
    ) -> Result<DirectAnswer, CallError> {
        let request = DirectRequest { checkpoint };
        self.call(endpoints::DirectCheckpoint::request(lease, &request)).await
    }

    /// Puts `body`, all of `blob`, where the server has said. Without a time limit, as [`Api::upload`].
    pub(crate) async fn put(
        &self,
        target: &UploadTarget,
        blob: BlobRef,
        body: Body,
    ) -> Result<UploadState, CallError> {
        self.store.put(target, blob.bytes, body).await?;
        Ok(UploadState { offset: blob.bytes, complete: true })
    }

    /// A blob from byte `from` on. `direct`: from the store, where the server says so. `accepts`: how the
    /// bytes may travel.
    pub(crate) async fn blob(
        &self,
        digest: Digest,
        from: u64,
        direct: bool,
        accepts: Encoding,
    ) -> Result<Download, CallError> {
        let route = if direct { Route::Store(&self.store) } else { Route::Server };
        let opened = self.http.open_blob(digest, from, route, accepts, self.timing.answer).await;
        self.believed(opened).await
    }

    /// The stores that it may be sent to.
    pub(crate) const fn known_stores(&self) -> &Arc<KnownStores> {
        self.store.known()
    }

    fn features(&self) -> Features {
        self.features.lock().unwrap_or_default()
    }

    /// The failure of a request that didn't move for so long.
    pub(crate) fn timed_out(&self, limit: Duration) -> CallError {
        CallError::timed_out(self.http.servers().current().as_str(), limit)
    }

    /// The server's answer makes no sense.
    pub(crate) fn invalid(&self, detail: String) -> CallError {
        CallError::invalid(self.http.servers().current().as_str(), StatusCode::OK, detail)
    }

    /// The error that ends the daemon where the server can't be trusted.
    pub(crate) fn untrusted(&self, fault: &TlsFault) -> ClientError {
        ClientError::Untrusted { url: self.http.servers().to_string(), fault: fault.clone() }
    }

    /// Sends a request of this host, for as long as an answer may take where the request doesn't say another time.
    async fn call<E>(&self, request: Request<'_, E>) -> Result<E::Answer, CallError>
    where
        E: Endpoint<Body: Serialize + Sync, Answer: DeserializeOwned>,
    {
        let limit = request.timeout().unwrap_or(self.timing.answer);
        let request = request.within(limit);
        let mut result = self.http.call(request.clone(), RetryPolicy::Never).await;
        while let Err(failure) = &result
            && self.incarnation.hear(failure)
        {
            result = self.http.call(request.clone(), RetryPolicy::Never).await;
        }
        self.believed(result).await
    }

    /// The result; a refusal of the host's token only where the server stays with it. A request that was altered on
    /// its way is refused too.
    async fn believed<T>(&self, result: Result<T, CallError>) -> Result<T, CallError> {
        match result {
            Err(error) if self.http.has_token() && error.refuses_token() => {
                Err(self.confirmed(error).await)
            }
            result => result,
        }
    }

    async fn confirmed(&self, refusal: CallError) -> CallError {
        // The server takes it for a heartbeat as any other.
        let request = HeartbeatRequest::default();
        let mut backoff = Backoff::new(self.timing.longest_pause);
        for _ in 0..TOKEN_CONFIRMATIONS {
            tokio::time::sleep(backoff.next(None)).await;
            let again = endpoints::Heartbeat::request(&request).within(self.timing.answer);
            match self.http.call(again, RetryPolicy::Never).await {
                Ok(_) => return CallError::contradicted(&refusal),
                Err(error) if error.refuses_token() => {}
                Err(error) => return error,
            }
        }
        refusal
    }
}
