//! A job's search: how far it is, and what its user or a program changes of it.

use super::{
    App, JsonResult,
    auth::{User, UserBy},
    request_body::Body,
};
use actix_web::web;
use sojourn_core::request;
use sojourn_protocol::{
    api::{SearchAnswer, SearchRequest, SearchView},
    ids::JobId,
};

/// How far a search has got, with the metric of each trial after each of its epochs.
#[utoipa::path(
    get,
    path = "/v1/jobs/{job}/search",
    tag = "jobs",
    operation_id = "search",
    params(("job" = JobId, Path, description = "The job.")),
    responses((status = 200, description = "The search.", body = SearchView)),
    security(("admin" = []))
)]
pub(super) async fn one(app: App, _: User, job: web::Path<JobId>) -> JsonResult<SearchView> {
    app.answer(request::GetSearch { job: *job }).await
}

/// Adds trials, stops some or lets them go on, changes the space or the number of combinations, or ends the search. All of it
/// happens, or nothing.
#[utoipa::path(
    post,
    path = "/v1/jobs/{job}/search",
    tag = "jobs",
    operation_id = "changeSearch",
    params(("job" = JobId, Path, description = "The job.")),
    request_body = SearchRequest,
    responses((status = 200, description = "It is changed.", body = SearchAnswer)),
    security(("admin" = []))
)]
pub(super) async fn change(
    app: App,
    by: UserBy,
    job: web::Path<JobId>,
    Body(request): Body<SearchRequest>,
) -> JsonResult<SearchAnswer> {
    let change = request::ChangeSearch { job: *job, request: Box::new(request), by: by.0 };
    app.answer(by.asks(change)).await
}
