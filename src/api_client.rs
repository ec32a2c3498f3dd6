//! The calls of the command line to a server's `/v1`, by name.
//!
//! How a call is made, and when it is made again, is the business of `sojourn-http`; what to ask and how to show the
//! answer that of `cli`.

use serde::{Serialize, de::DeserializeOwned};
use sojourn_http::{
    Authorities, CallError, Get, HttpClient, HttpConfig, Post, RetryPolicy, Servers, TransferError,
};
use sojourn_protocol::{
    api::{
        CollectAnswer, CollectRequest, DeleteRequest, DeletedJobs, EvaluateRequest, ExtendRequest,
        Health, MissingAnswer, MissingRequest, NoteRequest, PauseRequest, PlacementRequest,
        RollbackRequest, RolledBack, SearchAnswer, SearchRequest, SearchView, SubmitAnswer,
        SubmitRequest,
    },
    assimilation::AssimilationsView,
    demand::SpeedsView,
    digest::BlobRef,
    ids::{HostId, JobId, TokenId, TrialId},
    machines::CostsView,
    quotas::TokenQuotas,
    tokens::{
        NewToken, RevokedToken, RotatedToken, ServerToken, ShareRequest, TokenRequest, TokenView,
    },
    view::{
        EvaluationView, EventView, HostView, JobDetail, JobView, TrafficView, TrialHistory,
        TrialView,
    },
};
use std::{path::Path, time::Duration};

/// How long an answer may stand still.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

type CallResult<A> = Result<A, CallError>;

/// A server and the right to ask it.
#[derive(Debug, Clone)]
pub(crate) struct ApiClient {
    http: HttpClient,
}

impl ApiClient {
    /// A client for the servers. Certificates are checked against `authorities`, or the system's.
    pub(crate) fn new(
        servers: Servers,
        authorities: Option<&Authorities>,
        token: Option<String>,
    ) -> CallResult<Self> {
        let server = servers.current().to_string();
        let config =
            HttpConfig { read_timeout: Some(READ_TIMEOUT), authorities, ..HttpConfig::default() };
        let http = HttpClient::new(servers, &config);
        let http = http.map_err(|error| CallError::from_transport(&server, error))?;
        let http = http.with_required_protocol_header();
        Ok(Self {
            http: match token {
                Some(token) => http.with_token(token),
                None => http,
            },
        })
    }

    /// The address of the server that is asked now.
    pub(crate) fn server(&self) -> String {
        self.http.servers().current().as_str().trim_end_matches('/').to_owned()
    }

    /// Is the server there?
    pub(crate) async fn health(&self) -> CallResult<Health> {
        self.get("v1/health").await
    }

    pub(crate) async fn jobs(&self) -> CallResult<Vec<JobView>> {
        self.get("v1/jobs").await
    }

    /// Jobs that were submitted with the token of this client. A server of before gives all, without owners.
    pub(crate) async fn own_jobs(&self) -> CallResult<Vec<JobView>> {
        self.get("v1/jobs?mine=true").await
    }

    pub(crate) async fn job(&self, job: JobId) -> CallResult<JobDetail> {
        self.get(format!("v1/jobs/{job}")).await
    }

    pub(crate) async fn trials(&self, job: JobId) -> CallResult<Vec<TrialView>> {
        self.get(format!("v1/jobs/{job}/trials")).await
    }

    /// The leading trials, the best first. A server of before knows no limit, and gives all in the order of their numbers.
    pub(crate) async fn leading_trials(
        &self,
        job: JobId,
        limit: usize,
    ) -> CallResult<Vec<TrialView>> {
        self.get(format!("v1/jobs/{job}/trials?leading={limit}")).await
    }

    pub(crate) async fn history(&self, job: JobId, trial: TrialId) -> CallResult<TrialHistory> {
        self.get(format!("v1/jobs/{job}/trials/{trial}/history")).await
    }

    /// Asks for an evaluation, or how far it is.
    pub(crate) async fn evaluate(
        &self,
        job: JobId,
        trial: TrialId,
        request: &EvaluateRequest,
    ) -> CallResult<EvaluationView> {
        self.post(format!("v1/jobs/{job}/trials/{trial}/evaluate"), request).await
    }

    pub(crate) async fn evaluations(
        &self,
        job: JobId,
        trial: TrialId,
    ) -> CallResult<Vec<EvaluationView>> {
        self.get(format!("v1/jobs/{job}/trials/{trial}/evaluations")).await
    }

    /// The events of a job that come after a journal position; not all at once where they are many.
    pub(crate) async fn events(&self, job: JobId, after: u64) -> CallResult<Vec<EventView>> {
        self.get(format!("v1/jobs/{job}/events?after={after}")).await
    }

    /// The same, `limit` events at most.
    pub(crate) async fn events_page(
        &self,
        job: JobId,
        after: u64,
        limit: usize,
    ) -> CallResult<Vec<EventView>> {
        self.get(format!("v1/jobs/{job}/events?after={after}&limit={limit}")).await
    }

    pub(crate) async fn hosts(&self) -> CallResult<Vec<HostView>> {
        self.get("v1/hosts").await
    }

    /// The hosts that have live leases of a job. A server of before gives all.
    pub(crate) async fn hosts_of(&self, job: JobId) -> CallResult<Vec<HostView>> {
        self.get(format!("v1/hosts?job={job}")).await
    }

    pub(crate) async fn collect(&self, request: &CollectRequest) -> CallResult<CollectAnswer> {
        self.post("v1/blobs/collect", request).await
    }

    pub(crate) async fn traffic(&self) -> CallResult<TrafficView> {
        self.get("v1/traffic").await
    }

    pub(crate) async fn costs(&self) -> CallResult<CostsView> {
        self.get("v1/costs").await
    }

    pub(crate) async fn speeds(&self) -> CallResult<SpeedsView> {
        self.get("v1/speeds").await
    }

    pub(crate) async fn assimilations(&self) -> CallResult<AssimilationsView> {
        self.get("v1/assimilations").await
    }

    pub(crate) async fn revoke(&self, host: HostId) -> CallResult<HostView> {
        self.post(format!("v1/hosts/{host}/revoke"), &()).await
    }

    pub(crate) async fn forget(&self, host: HostId) -> CallResult<HostView> {
        self.post(format!("v1/hosts/{host}/forget"), &()).await
    }

    pub(crate) async fn block(&self, host: HostId) -> CallResult<HostView> {
        self.post(format!("v1/hosts/{host}/block"), &()).await
    }

    pub(crate) async fn unblock(&self, host: HostId) -> CallResult<HostView> {
        self.post(format!("v1/hosts/{host}/unblock"), &()).await
    }

    pub(crate) async fn tokens(&self) -> CallResult<Vec<TokenView>> {
        self.get("v1/tokens").await
    }

    /// Made once more where the answer is lost: then one of the two is never used.
    pub(crate) async fn create_token(&self, request: &TokenRequest) -> CallResult<NewToken> {
        self.post("v1/tokens", request).await
    }

    /// Made once more where the answer is lost: then one of the two is never used.
    pub(crate) async fn share(&self, job: JobId, request: &ShareRequest) -> CallResult<NewToken> {
        self.post(format!("v1/jobs/{job}/shares"), request).await
    }

    /// Sets bounds of a user's token.
    pub(crate) async fn set_quotas(
        &self,
        token: TokenId,
        quotas: &TokenQuotas,
    ) -> CallResult<TokenView> {
        self.post(format!("v1/tokens/{token}/quotas"), quotas).await
    }

    pub(crate) async fn rotate_token(&self, token: TokenId) -> CallResult<NewToken> {
        self.post(format!("v1/tokens/{token}/rotate"), &()).await
    }

    pub(crate) async fn revoke_token(&self, token: TokenId) -> CallResult<RevokedToken> {
        self.post(format!("v1/tokens/{token}/revoke"), &()).await
    }

    pub(crate) async fn rotate_server_token(&self, which: ServerToken) -> CallResult<RotatedToken> {
        self.post(format!("v1/tokens/server/{}/rotate", which.name()), &()).await
    }

    pub(crate) async fn cancel(&self, job: JobId) -> CallResult<JobView> {
        self.post(format!("v1/jobs/{job}/cancel"), &()).await
    }

    pub(crate) async fn pause(&self, job: JobId, request: &PauseRequest) -> CallResult<JobView> {
        self.post(format!("v1/jobs/{job}/pause"), request).await
    }

    pub(crate) async fn resume(&self, job: JobId) -> CallResult<JobView> {
        self.post(format!("v1/jobs/{job}/resume"), &()).await
    }

    pub(crate) async fn extend(&self, job: JobId, request: &ExtendRequest) -> CallResult<JobView> {
        self.post(format!("v1/jobs/{job}/extend"), request).await
    }

    pub(crate) async fn search(&self, job: JobId) -> CallResult<SearchView> {
        self.get(format!("v1/jobs/{job}/search")).await
    }

    pub(crate) async fn change_search(
        &self,
        job: JobId,
        request: &SearchRequest,
    ) -> CallResult<SearchAnswer> {
        self.post(format!("v1/jobs/{job}/search"), request).await
    }

    pub(crate) async fn place(
        &self,
        job: JobId,
        request: &PlacementRequest,
    ) -> CallResult<JobView> {
        self.post(format!("v1/jobs/{job}/placement"), request).await
    }

    pub(crate) async fn note(&self, job: JobId, request: &NoteRequest) -> CallResult<JobView> {
        self.post(format!("v1/jobs/{job}/note"), request).await
    }

    pub(crate) async fn delete(&self, request: &DeleteRequest) -> CallResult<DeletedJobs> {
        self.post("v1/jobs/delete", request).await
    }

    pub(crate) async fn rollback(
        &self,
        job: JobId,
        request: &RollbackRequest,
    ) -> CallResult<Vec<RolledBack>> {
        self.post(format!("v1/jobs/{job}/rollback"), request).await
    }

    pub(crate) async fn missing(&self, request: &MissingRequest) -> CallResult<MissingAnswer> {
        // Hours of reading data may be behind it.
        self.http.call(Post::new("v1/blobs/missing", request), RetryPolicy::WhileAway).await
    }

    /// Submits a job. Where the answer is lost the same call is made again; the request's nonce sees to it that no
    /// second job comes of that.
    pub(crate) async fn submit(&self, request: &SubmitRequest) -> CallResult<SubmitAnswer> {
        self.http.call(Post::new("v1/jobs", request), RetryPolicy::WhileAway).await
    }

    /// As [`HttpClient::upload`].
    pub(crate) async fn upload(
        &self,
        blob: BlobRef,
        path: &Path,
        sent: &mut dyn FnMut(u64),
    ) -> Result<(), TransferError> {
        self.http.upload(blob, path, sent).await
    }

    /// As [`HttpClient::download`].
    pub(crate) async fn download(
        &self,
        blob: BlobRef,
        received: &mut dyn FnMut(u64),
    ) -> Result<Vec<u8>, TransferError> {
        self.http.download(blob, received).await
    }

    async fn get<A: DeserializeOwned>(&self, path: impl Into<String>) -> CallResult<A> {
        self.http.call(Get::new(path), RetryPolicy::WhileBusy).await
    }

    /// Posts a request. The same request may come twice: the interface is idempotent.
    async fn post<A: DeserializeOwned>(
        &self,
        path: impl Into<String>,
        body: &impl Serialize,
    ) -> CallResult<A> {
        self.http.call(Post::new(path, body), RetryPolicy::WhileBusy).await
    }
}
