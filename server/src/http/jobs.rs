//! Jobs: submitted, listed and controlled by users.

use super::{AppState, auth::Admin, error::HttpError};
use actix_web::web;
use sojourn_core::request;
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
    Ok(web::Json(app.shell.request(request::Submit { spec, data, again, nonce }).await?))
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
    Ok(web::Json(app.shell.request(request::Cancel { job }).await?))
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
    Ok(web::Json(app.shell.request(request::Pause { job, now }).await?))
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
    Ok(web::Json(app.shell.request(request::Resume { job }).await?))
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
    Ok(web::Json(app.shell.request(request::Extend { job, epochs, trial }).await?))
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
    Ok(web::Json(app.shell.request(request::Place { job, placement }).await?))
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
    Ok(web::Json(app.shell.request(request::Rollback { job, request }).await?))
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
    Ok(web::Json(app.shell.request(request::GetJobs {}).await?))
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
    Ok(web::Json(app.shell.request(request::GetJob { job: JobId(path.into_inner()) }).await?))
}
