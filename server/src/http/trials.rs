//! A job's trials: their state, their history, and evaluations outside the search.

use super::{
    App, AppState, JsonAnswer, JsonResult,
    auth::{User, UserBy},
    error::HttpError,
    request_body::Body,
};
use actix_web::web;
use serde::Deserialize;
use sojourn_core::request;
use sojourn_protocol::{
    api::EvaluateRequest,
    ids::{JobId, TrialId},
    quantity::{SaturatingFrom as _, to_usize},
    view::{EvaluationView, HopMatrixView, TrialHistory, TrialView},
};

/// Trials that the core is asked for at once: others are answered between two steps.
const MAX_TRIALS_A_STEP: u32 = 4_096;

/// `?leading=N`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Which {
    leading: Option<u32>,
}

/// A job's trials. Those of a large job are read in steps, between which the job goes on.
#[utoipa::path(
    get,
    path = "/v1/jobs/{job}/trials",
    tag = "jobs",
    operation_id = "trials",
    params(
        ("job" = JobId, Path, description = "The job."),
        (
            "leading" = Option<u32>,
            Query,
            description = "Only so many, the best first; 4,096 at most. If left out, all in the order of their numbers.",
        ),
    ),
    responses((status = 200, description = "Its trials.", body = Vec<TrialView>)),
    security(("admin" = []))
)]
pub(super) async fn trials(
    app: App,
    _: User,
    job: web::Path<JobId>,
    which: web::Query<Which>,
) -> JsonResult<Vec<TrialView>> {
    match which.leading {
        None => Ok(JsonAnswer(all(&app, *job).await?)),
        Some(leading) => {
            let limit = leading.min(MAX_TRIALS_A_STEP);
            app.answer(request::GetLeadingTrials { job: *job, limit }).await
        }
    }
}

/// All trials of a job.
pub(super) async fn all(app: &AppState, job: JobId) -> Result<Vec<TrialView>, HttpError> {
    let mut trials = Vec::new();
    loop {
        let from = TrialId(u32::saturating_from(trials.len()));
        let step = request::GetTrials { job, from, limit: MAX_TRIALS_A_STEP };
        let some = app.shell.request(step).await?;
        let is_last = some.len() < to_usize(MAX_TRIALS_A_STEP);
        trials.extend(some);
        if is_last {
            return Ok(trials);
        }
    }
}

/// How far the hops of a job's running trials are in their current epochs.
#[utoipa::path(
    get,
    path = "/v1/jobs/{job}/hops",
    tag = "jobs",
    operation_id = "hops",
    params(("job" = JobId, Path, description = "The job.")),
    responses((status = 200, description = "Running trials by shards.", body = HopMatrixView)),
    security(("admin" = []))
)]
pub(super) async fn hops(app: App, _: User, job: web::Path<JobId>) -> JsonResult<HopMatrixView> {
    app.answer(request::GetHops { job: *job }).await
}

/// All that is needed to train a trial again.
#[utoipa::path(
    get,
    path = "/v1/jobs/{job}/trials/{trial}/history",
    tag = "jobs",
    operation_id = "history",
    params(
        ("job" = JobId, Path, description = "The job."),
        ("trial" = TrialId, Path, description = "The trial."),
    ),
    responses((status = 200, description = "The trial's history.", body = TrialHistory)),
    security(("admin" = []))
)]
pub(super) async fn history(
    app: App,
    _: User,
    path: web::Path<(JobId, TrialId)>,
) -> JsonResult<TrialHistory> {
    let (job, trial) = path.into_inner();
    app.answer(request::GetHistory { job, trial }).await
}

/// Evaluates a trial's best checkpoint outside the search; what is open or done already is given again.
#[utoipa::path(
    post,
    path = "/v1/jobs/{job}/trials/{trial}/evaluate",
    tag = "jobs",
    operation_id = "evaluate",
    params(
        ("job" = JobId, Path, description = "The job."),
        ("trial" = TrialId, Path, description = "The trial."),
    ),
    request_body = EvaluateRequest,
    responses((status = 200, description = "How far it is.", body = EvaluationView)),
    security(("admin" = []))
)]
pub(super) async fn evaluate(
    app: App,
    by: UserBy,
    path: web::Path<(JobId, TrialId)>,
    Body(request): Body<EvaluateRequest>,
) -> JsonResult<EvaluationView> {
    let (job, trial) = path.into_inner();
    app.answer(by.asks(request::Evaluate { job, trial, split: request.split })).await
}

/// Evaluations of a trial outside the search.
#[utoipa::path(
    get,
    path = "/v1/jobs/{job}/trials/{trial}/evaluations",
    tag = "jobs",
    operation_id = "evaluations",
    params(
        ("job" = JobId, Path, description = "The job."),
        ("trial" = TrialId, Path, description = "The trial."),
    ),
    responses((status = 200, description = "All of them.", body = Vec<EvaluationView>)),
    security(("admin" = []))
)]
pub(super) async fn evaluations(
    app: App,
    _: User,
    path: web::Path<(JobId, TrialId)>,
) -> JsonResult<Vec<EvaluationView>> {
    let (job, trial) = path.into_inner();
    app.answer(request::GetEvaluations { job, trial }).await
}
