//! Authenticates callers: machines that enrol, hosts, assimilators, users. Tokens come as `Authorization: Bearer`.
//!
//! Nothing of a request's body is read before somebody is known who sends it. What the caller may do is found out after that, by
//! what each handler asks for.

use super::{AppState, body, error::HttpError};
use actix_web::{
    Error, FromRequest, HttpRequest, ResponseError as _,
    body::{BoxBody, MessageBody},
    dev::{Payload, ServiceRequest, ServiceResponse},
    http::{ConnectionType, header},
    middleware::Next,
    web,
};
use futures::future::LocalBoxFuture;
use sojourn_core::{Holder, request};
use sojourn_protocol::{digest::Digest, error::ErrorKind, ids::HostId};
use std::future::{Ready, ready};

/// The hashes of the server's own tokens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tokens {
    enrol: Digest,
    admin: Digest,
    assimilator: Digest,
}

impl Tokens {
    pub(crate) fn of(enrol: &str, admin: &str, assimilator: &str) -> Self {
        let [enrol, admin, assimilator] =
            [enrol, admin, assimilator].map(|token| Digest::of(token.as_bytes()));
        Self { enrol, admin, assimilator }
    }
}

/// Addresses that anybody may ask.
const OPEN: [&str; 2] = ["/v1/health", "/v1/openapi.json"];

/// Middleware that refuses a request without a known token before its body is read, and has other bodies keep a pace.
pub(crate) async fn authenticate(
    mut request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    if !OPEN.contains(&request.path())
        && let Err(error) = known(request.request()).await
    {
        body::drop_some(&mut request).await;
        let mut answer = error.error_response();
        // The rest of the body isn't read.
        answer.head_mut().set_connection_type(ConnectionType::Close);
        return Ok(request.into_response(answer));
    }
    body::pace(&mut request);
    Ok(next.call(request).await?.map_into_boxed_body())
}

/// Is the request's token that of anybody?
async fn known(request: &HttpRequest) -> Result<(), HttpError> {
    let (token, app) = (bearer(request)?, app(request)?);
    let Tokens { enrol, admin, assimilator } = app.tokens;
    if [enrol, admin, assimilator].map(|own| same(token, own)).contains(&true) {
        return Ok(());
    }
    host_of(token, &app).await.map(drop)
}

/// The host with this token.
async fn host_of(token_sha256: Digest, app: &AppState) -> Result<HostId, HttpError> {
    if let Some(host) = app.token_cache.get(token_sha256) {
        return Ok(host);
    }
    let Some(Holder::Host(host)) = app.shell.request(request::GetHolder { token_sha256 }).await?
    else {
        return Err(unknown());
    };
    app.token_cache.insert(token_sha256, host);
    Ok(host)
}

/// Compares in constant time.
fn same(a: Digest, b: Digest) -> bool {
    let different = a.0.iter().zip(&b.0).fold(0, |all, (a, b)| all | (a ^ b));
    std::hint::black_box(different) == 0
}

/// The hash of the request's token. The token itself isn't kept.
fn bearer(request: &HttpRequest) -> Result<Digest, HttpError> {
    let value = request.headers().get(header::AUTHORIZATION);
    let token = value.and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    match token.map(str::trim).filter(|token| !token.is_empty()) {
        Some(token) => Ok(Digest::of(token.as_bytes())),
        None => Err(HttpError::new(ErrorKind::Unauthorized, "a token is needed")),
    }
}

fn unknown() -> HttpError {
    HttpError::new(ErrorKind::Unauthorized, "the token is unknown or was revoked")
}

fn app(request: &HttpRequest) -> Result<web::Data<AppState>, HttpError> {
    let app = request.app_data::<web::Data<AppState>>().cloned();
    app.ok_or_else(|| HttpError::new(ErrorKind::Unavailable, "the server is starting"))
}

/// Checks the request's token against one of the server's own.
fn check(request: &HttpRequest, own: fn(&Tokens) -> Digest) -> Result<(), HttpError> {
    let token = bearer(request)?;
    if same(token, own(&app(request)?.tokens)) { Ok(()) } else { Err(unknown()) }
}

/// A machine that may enrol as a host.
pub(super) struct Enroller;

impl FromRequest for Enroller {
    type Error = HttpError;
    type Future = Ready<Result<Self, HttpError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(check(request, |tokens| tokens.enrol).map(|()| Self))
    }
}

/// A user or operator.
pub(super) struct Admin;

impl FromRequest for Admin {
    type Error = HttpError;
    type Future = Ready<Result<Self, HttpError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(check(request, |tokens| tokens.admin).map(|()| Self))
    }
}

/// A process that assimilates.
pub(super) struct Assimilator;

impl FromRequest for Assimilator {
    type Error = HttpError;
    type Future = Ready<Result<Self, HttpError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(check(request, |tokens| tokens.assimilator).map(|()| Self))
    }
}

/// A user or an assimilator: both may see the assimilation backlog.
pub(super) struct Overseer;

impl FromRequest for Overseer {
    type Error = HttpError;
    type Future = Ready<Result<Self, HttpError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let admin = check(request, |tokens| tokens.admin);
        let either = admin.or_else(|_| check(request, |tokens| tokens.assimilator));
        ready(either.map(|()| Self))
    }
}

/// A host.
pub(super) struct Host(pub(super) HostId);

impl FromRequest for Host {
    type Error = HttpError;
    type Future = LocalBoxFuture<'static, Result<Self, HttpError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let (token, app) = (bearer(request), app(request));
        Box::pin(async move {
            let (token_sha256, app) = (token?, app?);
            host_of(token_sha256, &app).await.map(Self)
        })
    }
}

/// A user or a host: both may read blobs.
pub(super) enum Reader {
    Admin,
    Host(HostId),
}

impl FromRequest for Reader {
    type Error = HttpError;
    type Future = LocalBoxFuture<'static, Result<Self, HttpError>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let admin = check(request, |tokens| tokens.admin);
        let host = Host::from_request(request, payload);
        Box::pin(async move {
            match admin {
                Ok(()) => Ok(Self::Admin),
                Err(_) => host.await.map(|Host(host)| Self::Host(host)),
            }
        })
    }
}
