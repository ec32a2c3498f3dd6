//! The state that every handler can reach.

use super::{
    auth::UserBy,
    changes::Changes,
    error::HttpError,
    failed_requests::FailedRequests,
    json_answer::JsonAnswer,
    page::{RecentEvents, Sessions},
    token_cache::TokenCache,
};
use crate::{
    assimilation::AssimilationHandle, blob_lifecycle::BlobLifecycle, data_uploads::DataUploads,
    failure_log::FailureLog, job_checks::JobChecks, metrics::RequestTimes, network::Network,
    prepare_job::PrepareJob, programs::Program, shell::ShellHandle, storage_watch::StorageWatch,
    tokens::ServerTokens, traffic::Traffic, upload_quota::UploadQuota,
};
use actix_web::web;
use sojourn_blobs::{Staging, Uploads};
use sojourn_core::{By, Request, request};
use sojourn_protocol::{
    api::SubmitAnswer, error::ErrorKind, manifest::DataManifest, spec::JobSpec,
};
use std::{sync::Arc, time::Duration};

/// The state as a handler's argument.
pub(super) type App = web::Data<AppState>;
/// The answer of a handler, in JSON.
pub(super) type JsonResult<T> = Result<JsonAnswer<T>, HttpError>;

/// The parts of the server, as handlers use them. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct AppState {
    pub(crate) shell: ShellHandle,
    pub(crate) blobs: BlobLifecycle,
    pub(crate) uploads: Uploads,
    /// Files that browsers send for new jobs, and what makes the jobs; `None` where none are taken.
    pub(crate) data_uploads: Option<(DataUploads, Arc<dyn PrepareJob>)>,
    /// How much may be uploaded that no report has named.
    pub(crate) quota: UploadQuota,
    /// Complete uploads in the object store; `None` where the blobs are in the data folder.
    pub(crate) staging: Option<Staging>,
    /// The room on the disk.
    pub(crate) storage: StorageWatch,
    /// A host that sends no heartbeat for so long loses its leases.
    pub(crate) lease_term: Duration,
    pub(crate) tokens: Arc<ServerTokens>,
    pub(crate) token_cache: Arc<TokenCache>,
    /// Requests of users' tokens that were refused.
    pub(crate) failed_requests: Arc<FailedRequests>,
    /// Browsers that have signed in.
    pub(crate) sessions: Arc<Sessions>,
    /// The counts of what went wrong on hosts.
    pub(crate) failures: Arc<FailureLog>,
    pub(crate) changes: Arc<Changes>,
    pub(crate) recent_events: Arc<RecentEvents>,
    pub(crate) traffic: Arc<Traffic>,
    pub(crate) request_times: RequestTimes,
    /// The bounds against whoever is on the network.
    pub(crate) network: Arc<Network>,
    /// Checks of jobs before they are submitted.
    pub(crate) job_checks: Arc<JobChecks>,
    pub(crate) assimilation: AssimilationHandle,
    /// The URL of the blobs, without secrets, for assimilators in processes of their own; `None` where only this process
    /// reaches the blobs.
    pub(crate) blobs_url: Option<String>,
    /// Where signed URLs lead: the store's scheme, host and port; none where blobs go through the server alone.
    pub(crate) stores: Arc<[String]>,
    /// Whether the assimilators can evaluate a result: they have a trainer.
    pub(crate) has_trainer: bool,
    /// Programs that machines can fetch.
    pub(crate) programs: Arc<[Program]>,
}

impl AppState {
    /// Checks a job whose blobs are stored, and submits it.
    pub(super) async fn submit(
        &self,
        by: UserBy,
        spec: Box<JobSpec>,
        data: Box<DataManifest>,
        again: bool,
        nonce: Option<String>,
    ) -> Result<SubmitAnswer, HttpError> {
        // A server that stands by checks nothing for the active one.
        self.shell.request(request::Missing { blobs: Vec::new() }).await?;
        let prepared = Box::new(self.job_checks.prepare(self.blobs.store(), spec, data).await?);
        Ok(self.shell.request(by.asks(request::SubmitPrepared { prepared, again, nonce })).await?)
    }

    /// Takes the check of a job from the share of a token.
    pub(super) fn admit_check(&self, by: By) -> Result<(), HttpError> {
        self.job_checks.admit(by).map_err(|wait| {
            let message = "this token has jobs checked faster than the server allows";
            HttpError::new(ErrorKind::TooManyRequests, message).retry_after(wait)
        })
    }

    /// The core's answer to a request, in JSON.
    pub(super) async fn answer<R: Request>(&self, request: R) -> JsonResult<R::Answer> {
        Ok(JsonAnswer(self.shell.request(request).await?))
    }
}
