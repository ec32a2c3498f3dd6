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

pub(super) async fn cancel(app: App, by: UserBy, job: web::Path<JobId>) -> JsonResult<JobView> {
    app.answer(by.asks(request::Cancel { job: *job })).await
}

pub(super) async fn pause(
    app: App,
    by: UserBy,
    job: web::Path<JobId>,
    Body(request): Body<PauseRequest>,
) -> JsonResult<JobView> {
    app.answer(by.asks(request::Pause { job: *job, now: request.now })).await
}

pub(super) async fn resume(app: App, by: UserBy, job: web::Path<JobId>) -> JsonResult<JobView> {
    app.answer(by.asks(request::Resume { job: *job })).await
}

pub(super) async fn extend(
    app: App,
    by: UserBy,
    job: web::Path<JobId>,
    Body(request): Body<ExtendRequest>,
) -> JsonResult<JobView> {
    let ExtendRequest { epochs, trial, reopen } = request;
    app.answer(by.asks(request::Extend { job: *job, epochs, trial, reopen })).await
}

pub(super) async fn place(
    app: App,
    by: UserBy,
    job: web::Path<JobId>,
    Body(request): Body<PlacementRequest>,
) -> JsonResult<JobView> {
    app.answer(by.asks(request::Place { job: *job, placement: request })).await
}

pub(super) async fn note(
    app: App,
    by: UserBy,
    job: web::Path<JobId>,
    Body(request): Body<NoteRequest>,
) -> JsonResult<JobView> {
    app.answer(by.asks(request::Note { job: *job, note: request.note })).await
}

pub(super) async fn delete(
    app: App,
    by: UserBy,
    Body(request): Body<DeleteRequest>,
) -> JsonResult<DeletedJobs> {
    let DeleteRequest { jobs, preview } = request;
    app.answer(by.asks(request::Delete { jobs, preview })).await
}

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

pub(super) async fn all(
    app: App,
    by: UserBy,
    whose: web::Query<Whose>,
) -> JsonResult<Vec<JobView>> {
    let mut jobs = app.shell.request(request::GetJobs {}).await?;
    jobs.retain(|job| whose.has(job, by.0));
    Ok(JsonAnswer(jobs))
}

pub(super) async fn one(app: App, _: User, job: web::Path<JobId>) -> JsonResult<JobDetail> {
    app.answer(request::GetJob { job: *job }).await
}
