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

/// Makes this machine a host: each time another one, with a token of its own.
#[utoipa::path(
    post,
    path = "/v1/enrol",
    operation_id = "enrol",
    request_body = EnrolRequest,
    responses((status = 200, description = "The machine is a host.", body = EnrolAnswer)),
    security(("enrolment" = []))
)]
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

/// Every host, or those that work for a job now.
#[utoipa::path(
    get,
    path = "/v1/hosts",
    operation_id = "hosts",
    params(("job" = Option<JobId>, Query, description = "Only hosts that have live leases of this job; all if left out.")),
    responses((status = 200, description = "The hosts.", body = Vec<HostView>)),
    security(("admin" = []))
)]
pub(super) async fn all(app: App, _: User, which: web::Query<Which>) -> JsonResult<Vec<HostView>> {
    match which.job {
        None => app.answer(request::GetHosts {}).await,
        Some(job) => app.answer(request::GetHostsOf { job }).await,
    }
}

/// A host, with what lies in its cache.
#[utoipa::path(
    get,
    path = "/v1/hosts/{host}",
    operation_id = "host",
    params(("host" = HostId, Path, description = "The host.")),
    responses((status = 200, description = "The host.", body = HostDetail)),
    security(("admin" = []))
)]
pub(super) async fn one(app: App, _: User, host: web::Path<HostId>) -> JsonResult<HostDetail> {
    app.answer(request::GetHost { host: *host }).await
}

/// Has a host get no new work until it is unblocked. What it holds goes on.
#[utoipa::path(
    post,
    path = "/v1/hosts/{host}/block",
    operation_id = "blockHost",
    params(("host" = HostId, Path, description = "The host.")),
    responses((status = 200, description = "The host, blocked.", body = HostView)),
    security(("admin" = []))
)]
pub(super) async fn block(app: App, by: UserBy, host: web::Path<HostId>) -> JsonResult<HostView> {
    app.answer(request::BlockHost { host: *host, blocked: true, by: by.0 }).await
}

/// Has a host that was blocked work again.
#[utoipa::path(
    post,
    path = "/v1/hosts/{host}/unblock",
    operation_id = "unblockHost",
    params(("host" = HostId, Path, description = "The host.")),
    responses((status = 200, description = "The host, which gets work again.", body = HostView)),
    security(("admin" = []))
)]
pub(super) async fn unblock(app: App, by: UserBy, host: web::Path<HostId>) -> JsonResult<HostView> {
    app.answer(request::BlockHost { host: *host, blocked: false, by: by.0 }).await
}

/// Takes a host off the list: one that is away, and has no work.
#[utoipa::path(
    post,
    path = "/v1/hosts/{host}/forget",
    operation_id = "forgetHost",
    params(("host" = HostId, Path, description = "The host.")),
    responses((status = 200, description = "The host, as it was.", body = HostView)),
    security(("admin" = []))
)]
pub(super) async fn forget(app: App, _: User, host: web::Path<HostId>) -> JsonResult<HostView> {
    app.answer(request::ForgetHost { host: *host }).await
}

/// Ends a host's right to work; its leases go to others.
#[utoipa::path(
    post,
    path = "/v1/hosts/{host}/revoke",
    operation_id = "revokeHost",
    params(("host" = HostId, Path, description = "The host.")),
    responses((status = 200, description = "The host, revoked.", body = HostView)),
    security(("admin" = []))
)]
pub(super) async fn revoke(app: App, _: User, host: web::Path<HostId>) -> JsonResult<HostView> {
    app.answer(request::RevokeHost { host: *host }).await
}
