//! Hosts: enrolled by themselves, listed, blocked and revoked by operators.

use super::{
    App, JsonAnswer, JsonResult,
    auth::{Enroller, User, UserBy, bearer},
    error::HttpError,
    guard::caller,
    request_body::Body,
};
use crate::data_folder::new_token;
use actix_web::{HttpRequest, web};
use sojourn_core::request;
use sojourn_protocol::{
    api::{EnrolAnswer, EnrolRequest},
    digest::Digest,
    error::ErrorKind,
    ids::{HostId, JobId},
    view::{HostDetail, HostView},
};

pub(super) async fn enrol(
    app: App,
    Enroller(with): Enroller,
    from: HttpRequest,
    Body(request): Body<EnrolRequest>,
) -> JsonResult<EnrolAnswer> {
    app.network.enrol(caller(&from), bearer(&from)?).map_err(|wait| {
        let message = "machines enrol faster than the server allows";
        HttpError::new(ErrorKind::TooManyRequests, message).retry_after(wait)
    })?;
    let token = new_token().map_err(|error| HttpError::fault(&error))?;
    let token_sha256 = Digest::of(token.as_bytes());
    let name = request.name;
    let (host, verified) = match with {
        None => (app.shell.request(request::Enrol { name, token_sha256 }).await?, false),
        Some(with) => {
            let enrol = request::EnrolWithToken { name, token_sha256, with };
            let host = app.shell.request(enrol).await?;
            (host, app.shell.request(request::GetHost { host }).await?.host.stranger)
        }
    };
    app.traffic.enrolled();
    Ok(JsonAnswer(EnrolAnswer { host, token, stores: Some(app.stores.to_vec()), verified }))
}

/// `?job=N`.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Which {
    job: Option<JobId>,
}

pub(super) async fn all(app: App, _: User, which: web::Query<Which>) -> JsonResult<Vec<HostView>> {
    match which.job {
        None => app.answer(request::GetHosts {}).await,
        Some(job) => app.answer(request::GetHostsOf { job }).await,
    }
}

pub(super) async fn one(app: App, _: User, host: web::Path<HostId>) -> JsonResult<HostDetail> {
    app.answer(request::GetHost { host: *host }).await
}

pub(super) async fn block(app: App, by: UserBy, host: web::Path<HostId>) -> JsonResult<HostView> {
    app.answer(request::BlockHost { host: *host, blocked: true, by: by.0 }).await
}

pub(super) async fn unblock(app: App, by: UserBy, host: web::Path<HostId>) -> JsonResult<HostView> {
    app.answer(request::BlockHost { host: *host, blocked: false, by: by.0 }).await
}

pub(super) async fn forget(app: App, _: User, host: web::Path<HostId>) -> JsonResult<HostView> {
    app.answer(request::ForgetHost { host: *host }).await
}

pub(super) async fn revoke(app: App, _: User, host: web::Path<HostId>) -> JsonResult<HostView> {
    app.answer(request::RevokeHost { host: *host }).await
}
