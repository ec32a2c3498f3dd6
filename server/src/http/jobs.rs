//! Jobs: submitted, listed and controlled by users.

use super::{AppState, auth::Admin, error::HttpError};
use crate::assimilation;
use actix_web::web;
use sojourn_core::{Answer, Command, Query};
use sojourn_protocol::{
    api::{
        ExtendRequest, PauseRequest, PlacementRequest, RollbackRequest, RolledBack, SubmitAnswer,
        SubmitRequest,
    },
    error::ErrorKind,
    ids::JobId,
    view::{JobDetail, JobView},
};

const NO_TRAINER: &str = "`placement.merge.canary` needs a trainer on the server's machine: put `sojourn-trainer` beside \
                          the server's program and start it again, or leave `canary` out";

/// The core answered another question than was asked: a fault of the program.
pub(super) fn unexpected(answer: &Answer) -> HttpError {
    assimilation::unexpected(answer).into()
}

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
    app: web::Data<AppState>,
    _: Admin,
    request: web::Json<SubmitRequest>,
) -> Result<web::Json<SubmitAnswer>, HttpError> {
    let SubmitRequest { spec, data, again, nonce } = request.into_inner();
    let canary = spec.placement.merge.is_some_and(|merge| merge.canary.is_some());
    if canary && !app.has_trainer {
        return Err(HttpError::new(ErrorKind::Invalid, NO_TRAINER));
    }
    let (spec, data) = (Box::new(spec), Box::new(data));
    match app.shell.call(|to| Command::Submit { to, spec, data, again, nonce }).await? {
        Answer::Submitted(answer) => Ok(web::Json(answer)),
        other => Err(unexpected(&other)),
    }
}

/// Ends a job.
#[utoipa::path(
    post,
    path = "/v1/jobs/{job}/cancel",
    operation_id = "cancelJob",
    params(
        ("job" = JobId, Path, description = "The job."),
    ),
    responses((status = 200, description = "The job, cancelled.", body = JobView)),
    security(("admin" = []))
)]
pub(super) async fn cancel(
    app: web::Data<AppState>,
    _: Admin,
    path: web::Path<u64>,
) -> Result<web::Json<JobView>, HttpError> {
    let job = JobId(path.into_inner());
    match app.shell.call(|to| Command::Cancel { to, job }).await? {
        Answer::JobSummary(job) => Ok(web::Json(*job)),
        other => Err(unexpected(&other)),
    }
}

/// Lets a job stand still until it is resumed.
#[utoipa::path(
    post,
    path = "/v1/jobs/{job}/pause",
    operation_id = "pauseJob",
    params(
        ("job" = JobId, Path, description = "The job."),
    ),
    request_body = PauseRequest,
    responses((status = 200, description = "The job, paused.", body = JobView)),
    security(("admin" = []))
)]
pub(super) async fn pause(
    app: web::Data<AppState>,
    _: Admin,
    path: web::Path<u64>,
    request: web::Json<PauseRequest>,
) -> Result<web::Json<JobView>, HttpError> {
    let (job, PauseRequest { now }) = (JobId(path.into_inner()), request.into_inner());
    match app.shell.call(|to| Command::Pause { to, job, now }).await? {
        Answer::JobSummary(job) => Ok(web::Json(*job)),
        other => Err(unexpected(&other)),
    }
}

/// Lets a paused job go on.
#[utoipa::path(
    post,
    path = "/v1/jobs/{job}/resume",
    operation_id = "resumeJob",
    params(
        ("job" = JobId, Path, description = "The job."),
    ),
    responses((status = 200, description = "The job as it goes on.", body = JobView)),
    security(("admin" = []))
)]
pub(super) async fn resume(
    app: web::Data<AppState>,
    _: Admin,
    path: web::Path<u64>,
) -> Result<web::Json<JobView>, HttpError> {
    let job = JobId(path.into_inner());
    match app.shell.call(|to| Command::Resume { to, job }).await? {
        Answer::JobSummary(job) => Ok(web::Json(*job)),
        other => Err(unexpected(&other)),
    }
}

/// Has a job's trials train for longer, also after its end.
#[utoipa::path(
    post,
    path = "/v1/jobs/{job}/extend",
    operation_id = "extendJob",
    params(
        ("job" = JobId, Path, description = "The job."),
    ),
    request_body = ExtendRequest,
    responses((status = 200, description = "The job, extended.", body = JobView)),
    security(("admin" = []))
)]
pub(super) async fn extend(
    app: web::Data<AppState>,
    _: Admin,
    path: web::Path<u64>,
    request: web::Json<ExtendRequest>,
) -> Result<web::Json<JobView>, HttpError> {
    let (job, ExtendRequest { epochs, trial }) = (JobId(path.into_inner()), request.into_inner());
    match app.shell.call(|to| Command::Extend { to, job, epochs, trial }).await? {
        Answer::JobSummary(job) => Ok(web::Json(*job)),
        other => Err(unexpected(&other)),
    }
}

/// Changes whose turn a job is, and on how many hosts it may be.
#[utoipa::path(
    post,
    path = "/v1/jobs/{job}/placement",
    operation_id = "placeJob",
    params(
        ("job" = JobId, Path, description = "The job."),
    ),
    request_body = PlacementRequest,
    responses((status = 200, description = "The job, placed so.", body = JobView)),
    security(("admin" = []))
)]
pub(super) async fn place(
    app: web::Data<AppState>,
    _: Admin,
    path: web::Path<u64>,
    request: web::Json<PlacementRequest>,
) -> Result<web::Json<JobView>, HttpError> {
    let (job, placement) = (JobId(path.into_inner()), request.into_inner());
    match app.shell.call(|to| Command::Place { to, job, placement }).await? {
        Answer::JobSummary(job) => Ok(web::Json(*job)),
        other => Err(unexpected(&other)),
    }
}

/// Takes trials back to an earlier state, as if they had not been trained since.
#[utoipa::path(
    post,
    path = "/v1/jobs/{job}/rollback",
    operation_id = "rollbackJob",
    params(
        ("job" = JobId, Path, description = "The job."),
    ),
    request_body = RollbackRequest,
    responses((status = 200, description = "The trials that were taken back, and to where.", body = Vec<RolledBack>)),
    security(("admin" = []))
)]
pub(super) async fn rollback(
    app: web::Data<AppState>,
    _: Admin,
    path: web::Path<u64>,
    request: web::Json<RollbackRequest>,
) -> Result<web::Json<Vec<RolledBack>>, HttpError> {
    let (job, request) = (JobId(path.into_inner()), request.into_inner());
    match app.shell.call(|to| Command::Rollback { to, job, request }).await? {
        Answer::RolledBack(trials) => Ok(web::Json(trials)),
        other => Err(unexpected(&other)),
    }
}

pub(super) async fn query(app: &AppState, query: Query) -> Result<Answer, HttpError> {
    Ok(app.shell.call(|to| Command::Query { to, query }).await?)
}

/// Every job.
#[utoipa::path(
    get,
    path = "/v1/jobs",
    operation_id = "jobs",
    responses((status = 200, description = "All jobs.", body = Vec<JobView>)),
    security(("admin" = []))
)]
pub(super) async fn all(
    app: web::Data<AppState>,
    _: Admin,
) -> Result<web::Json<Vec<JobView>>, HttpError> {
    match query(&app, Query::Jobs).await? {
        Answer::Jobs(jobs) => Ok(web::Json(jobs)),
        other => Err(unexpected(&other)),
    }
}

/// A job with all that was submitted.
#[utoipa::path(
    get,
    path = "/v1/jobs/{job}",
    operation_id = "job",
    params(
        ("job" = JobId, Path, description = "The job."),
    ),
    responses((status = 200, description = "The job.", body = JobDetail)),
    security(("admin" = []))
)]
pub(super) async fn one(
    app: web::Data<AppState>,
    _: Admin,
    path: web::Path<u64>,
) -> Result<web::Json<JobDetail>, HttpError> {
    match query(&app, Query::Job { job: JobId(path.into_inner()) }).await? {
        Answer::Job(job) => Ok(web::Json(*job)),
        other => Err(unexpected(&other)),
    }
}
