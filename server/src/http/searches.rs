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

pub(super) async fn one(app: App, _: User, job: web::Path<JobId>) -> JsonResult<SearchView> {
    app.answer(request::GetSearch { job: *job }).await
}

pub(super) async fn change(
    app: App,
    by: UserBy,
    job: web::Path<JobId>,
    Body(request): Body<SearchRequest>,
) -> JsonResult<SearchAnswer> {
    let change = request::ChangeSearch { job: *job, request: Box::new(request), by: by.0 };
    app.answer(by.asks(change)).await
}
