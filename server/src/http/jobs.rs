//! Jobs: submitted, listed and controlled by users.

use super::{
    App, JsonResult,
    auth::{User, UserBy},
    error::HttpError,
    json_answer::JsonAnswer,
    request_body::Body,
};
use actix_web::web;
use serde::Deserialize;
use sojourn_core::{By, request};
use sojourn_protocol::{
    api::{
        DeleteRequest, DeletedJobs, ExtendRequest, NoteRequest, PauseRequest, PlacementRequest,
        RollbackRequest, RolledBack, SubmitAnswer, SubmitRequest,
    },
    error::ErrorKind,
    ids::JobId,
    view::{JobDetail, JobOwner, JobView},
};

const NO_TRAINER: &str = "`placement.merge.canary` needs a trainer on the server's machine: put `sojourn-trainer` beside \
                          the server's program and start it again, or leave `canary` out";

/// Starts a job whose blobs have been uploaded.
#[utoipa::path(
    post,
    path = "/v1/jobs",
    operation_id = "submitJob",
    request_body = SubmitRequest,
    responses((status = 200, description = "The job is taken.", body = SubmitAnswer)),
    security(("admin" = []))
)]
pub(super) async fn submit(
    app: App,
    by: UserBy,
    Body(request): Body<SubmitRequest>,
) -> JsonResult<SubmitAnswer> {
    let SubmitRequest { spec, data, again, nonce } = request;
    let canary = spec.placement.merge.is_some_and(|merge| merge.canary.is_some());
    if canary && !app.has_trainer {
        return Err(HttpError::new(ErrorKind::Invalid, NO_TRAINER));
    }
    let (spec, data) = (Box::new(spec), Box::new(data));
    Ok(JsonAnswer(app.submit(by, spec, data, again, nonce).await?))
}

/// Ends a job.
#[utoipa::path(
    post,
    path = "/v1/jobs/{job}/cancel",
    operation_id = "cancelJob",
    params(("job" = JobId, Path, description = "The job.")),
    responses((status = 200, description = "The job, cancelled.", body = JobView)),
    security(("admin" = []))
)]
pub(super) async fn cancel(app: App, by: UserBy, job: web::Path<JobId>) -> JsonResult<JobView> {
    app.answer(by.asks(request::Cancel { job: *job })).await
}

/// Lets a job stand still until it is resumed.
#[utoipa::path(
    post,
    path = "/v1/jobs/{job}/pause",
    operation_id = "pauseJob",
    params(("job" = JobId, Path, description = "The job.")),
    request_body = PauseRequest,
    responses((status = 200, description = "The job, paused.", body = JobView)),
    security(("admin" = []))
)]
pub(super) async fn pause(
    app: App,
    by: UserBy,
    job: web::Path<JobId>,
    Body(request): Body<PauseRequest>,
) -> JsonResult<JobView> {
    app.answer(by.asks(request::Pause { job: *job, now: request.now })).await
}

/// Lets a paused job go on.
#[utoipa::path(
    post,
    path = "/v1/jobs/{job}/resume",
    operation_id = "resumeJob",
    params(("job" = JobId, Path, description = "The job.")),
    responses((status = 200, description = "The job as it goes on.", body = JobView)),
    security(("admin" = []))
)]
pub(super) async fn resume(app: App, by: UserBy, job: web::Path<JobId>) -> JsonResult<JobView> {
    app.answer(by.asks(request::Resume { job: *job })).await
}

/// Has a job's trials train for longer, also after its end.
#[utoipa::path(
    post,
    path = "/v1/jobs/{job}/extend",
    operation_id = "extendJob",
    params(("job" = JobId, Path, description = "The job.")),
    request_body = ExtendRequest,
    responses((status = 200, description = "The job, extended.", body = JobView)),
    security(("admin" = []))
)]
pub(super) async fn extend(
    app: App,
    by: UserBy,
    job: web::Path<JobId>,
    Body(request): Body<ExtendRequest>,
) -> JsonResult<JobView> {
    let ExtendRequest { epochs, trial } = request;
    app.answer(by.asks(request::Extend { job: *job, epochs, trial })).await
}

/// Changes whose turn a job is, and on how many hosts it may be.
#[utoipa::path(
    post,
    path = "/v1/jobs/{job}/placement",
    operation_id = "placeJob",
    params(("job" = JobId, Path, description = "The job.")),
    request_body = PlacementRequest,
    responses((status = 200, description = "The job, placed so.", body = JobView)),
    security(("admin" = []))
)]
pub(super) async fn place(
    app: App,
    by: UserBy,
    job: web::Path<JobId>,
    Body(request): Body<PlacementRequest>,
) -> JsonResult<JobView> {
    app.answer(by.asks(request::Place { job: *job, placement: request })).await
}

/// Notes something about a job, in place of the note before.
#[utoipa::path(
    post,
    path = "/v1/jobs/{job}/note",
    operation_id = "noteJob",
    params(("job" = JobId, Path, description = "The job.")),
    request_body = NoteRequest,
    responses((status = 200, description = "The job with the note.", body = JobView)),
    security(("admin" = []))
)]
pub(super) async fn note(
    app: App,
    by: UserBy,
    job: web::Path<JobId>,
    Body(request): Body<NoteRequest>,
) -> JsonResult<JobView> {
    app.answer(by.asks(request::Note { job: *job, note: request.note })).await
}

/// Deletes jobs that have ended, with all that the store keeps because of them.
#[utoipa::path(
    post,
    path = "/v1/jobs/delete",
    operation_id = "deleteJobs",
    request_body = DeleteRequest,
    responses((status = 200, description = "The jobs that were deleted, and the bytes that the store gets back.", body = DeletedJobs)),
    security(("admin" = []))
)]
pub(super) async fn delete(
    app: App,
    by: UserBy,
    Body(request): Body<DeleteRequest>,
) -> JsonResult<DeletedJobs> {
    let DeleteRequest { jobs, preview } = request;
    app.answer(by.asks(request::Delete { jobs, preview })).await
}

/// Takes trials back to an earlier state, as if they had not been trained since.
#[utoipa::path(
    post,
    path = "/v1/jobs/{job}/rollback",
    operation_id = "rollbackJob",
    params(("job" = JobId, Path, description = "The job.")),
    request_body = RollbackRequest,
    responses((status = 200, description = "The trials that were taken back, and to where.", body = Vec<RolledBack>)),
    security(("admin" = []))
)]
pub(super) async fn rollback(
    app: App,
    by: UserBy,
    job: web::Path<JobId>,
    Body(request): Body<RollbackRequest>,
) -> JsonResult<Vec<RolledBack>> {
    app.answer(by.asks(request::Rollback { job: *job, request })).await
}

/// `?owner=NAME`, `?mine=true`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Whose {
    owner: Option<String>,
    mine: bool,
}

impl Whose {
    /// Is a job one of those that are asked for?
    fn has(&self, job: &JobView, by: By) -> bool {
        let is_named =
            |owner: &JobOwner| self.owner.as_ref().is_none_or(|name| owner.is_called(name));
        let is_own = |owner: &JobOwner| !self.mine || owner.token == by.token();
        match &job.owner {
            Some(owner) => is_named(owner) && is_own(owner),
            None => self.owner.is_none() && !self.mine,
        }
    }
}

/// Every job, or those of one owner.
#[utoipa::path(
    get,
    path = "/v1/jobs",
    operation_id = "jobs",
    params(
        (
            "owner" = Option<String>,
            Query,
            description = "Only jobs of this owner: the name or the number of the token that they were submitted with; `admin` for the server's own.",
        ),
        ("mine" = Option<bool>, Query, description = "Only jobs that were submitted with the caller's token."),
    ),
    responses((status = 200, description = "These jobs.", body = Vec<JobView>)),
    security(("admin" = []))
)]
pub(super) async fn all(
    app: App,
    by: UserBy,
    whose: web::Query<Whose>,
) -> JsonResult<Vec<JobView>> {
    let mut jobs = app.shell.request(request::GetJobs {}).await?;
    jobs.retain(|job| whose.has(job, by.0));
    Ok(JsonAnswer(jobs))
}

/// A job with all that was submitted.
#[utoipa::path(
    get,
    path = "/v1/jobs/{job}",
    operation_id = "job",
    params(("job" = JobId, Path, description = "The job.")),
    responses((status = 200, description = "The job.", body = JobDetail)),
    security(("admin" = []))
)]
pub(super) async fn one(app: App, _: User, job: web::Path<JobId>) -> JsonResult<JobDetail> {
    app.answer(request::GetJob { job: *job }).await
}
