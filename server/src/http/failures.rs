//! Failures on hosts: counted as they are reported, and shown to users.

use super::{App, AppState, JsonAnswer, JsonResult, auth::User, error::HttpError};
use crate::{failure_log::NewFailure, shell::wall_time};
use actix_web::web;
use sojourn_core::request;
use sojourn_protocol::{
    ids::{HostId, JobId, LeaseId},
    report::Failure,
    view::FailureView,
};
use std::collections::BTreeSet;

pub(super) async fn all(app: App, _: User) -> JsonResult<Vec<FailureView>> {
    Ok(JsonAnswer(known(&app).await?))
}

/// The errors of jobs that are there.
pub(super) async fn known(app: &AppState) -> Result<Vec<FailureView>, HttpError> {
    let jobs = app.shell.request(request::GetJobs {}).await?;
    let jobs: BTreeSet<JobId> = jobs.iter().map(|job| job.job).collect();
    let failures = app.failures.clone();
    Ok(web::block(move || failures.all(|job| jobs.contains(&job))).await?)
}

/// Counts a failure whose report was acknowledged.
pub(super) async fn count(
    app: &AppState,
    host: HostId,
    lease: LeaseId,
    failure: Failure,
) -> Result<(), HttpError> {
    // A lease that isn't known any more was reported long ago.
    let Some(unit) = app.shell.request(request::GetLeasedUnit { lease }).await? else {
        return Ok(());
    };
    let (job, trial) = (unit.job(), unit.trial());
    let at = wall_time();
    let failures = app.failures.clone();
    let counted = web::block(move || {
        let failure = &failure;
        failures.count(&NewFailure { host, job, trial, lease, failure, at });
    });
    Ok(counted.await?)
}
