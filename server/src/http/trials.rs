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

pub(super) async fn hops(app: App, _: User, job: web::Path<JobId>) -> JsonResult<HopMatrixView> {
    app.answer(request::GetHops { job: *job }).await
}

pub(super) async fn history(
    app: App,
    _: User,
    path: web::Path<(JobId, TrialId)>,
) -> JsonResult<TrialHistory> {
    let (job, trial) = path.into_inner();
    app.answer(request::GetHistory { job, trial }).await
}

pub(super) async fn evaluate(
    app: App,
    by: UserBy,
    path: web::Path<(JobId, TrialId)>,
    Body(request): Body<EvaluateRequest>,
) -> JsonResult<EvaluationView> {
    let (job, trial) = path.into_inner();
    app.answer(by.asks(request::Evaluate { job, trial, split: request.split })).await
}

pub(super) async fn evaluations(
    app: App,
    _: User,
    path: web::Path<(JobId, TrialId)>,
) -> JsonResult<Vec<EvaluationView>> {
    let (job, trial) = path.into_inner();
    app.answer(request::GetEvaluations { job, trial }).await
}
