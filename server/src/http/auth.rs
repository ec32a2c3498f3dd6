//! Authenticates callers: machines that enrol, hosts, assimilators, users. Tokens come as `Authorization: Bearer`.
//!
//! Nothing of a request's body is read before somebody is known who sends it. The resource that the router chose then checks that this
//! caller may call it (`access.rs`): the address as it was sent decides nothing. Handlers take callers who were let in alone.

use super::{
    AppState,
    access::{self, Admitted, Caller, is_for_signing_in, is_open},
    body,
    error::HttpError,
    failed_requests,
    guard::{caller, stop_reading},
    page,
};
use crate::network::{BodyMemory, Sender};
use actix_web::{
    Error, FromRequest, HttpMessage as _, HttpRequest, HttpResponse, ResponseError as _,
    body::{BoxBody, MessageBody},
    dev::{Payload, ServiceRequest, ServiceResponse},
    http::{ConnectionType, Method, header},
    middleware::Next,
    web,
};
use sojourn_core::{
    By, Holder,
    request::{self, OnBehalf},
};
use sojourn_page::Viewer;
use sojourn_protocol::{
    digest::Digest,
    error::ErrorKind,
    ids::{HostId, JobId, TokenId},
    tokens::{Rights, ServerToken},
};
use std::{
    future::{Ready, ready},
    time::Duration,
};

/// Middleware that refuses a request without a known token before its body is read, and has other bodies keep a pace.
pub(crate) async fn authenticate(
    mut request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    if is_for_signing_in(request.path()) {
        body::pace(&mut request, None);
        return Ok(next.call(request).await?.map_into_boxed_body());
    }
    if is_open(request.path()) {
        let has_body = body::drop_some(&mut request).await;
        let mut answer = next.call(request).await?.map_into_boxed_body();
        if has_body {
            end_reading(&mut answer);
        }
        return Ok(answer);
    }
    let caller = match known(request.request()).await {
        Ok(caller) => caller,
        Err(error) => {
            let elsewhere = match error.kind() {
                ErrorKind::Unauthorized => page::sign_in::instead_of(request.request()),
                _ => None,
            };
            if let Some(elsewhere) = elsewhere {
                return Ok(refuse(request, elsewhere).await);
            }
            let error = failed(request.request(), error);
            return Ok(refuse(request, error.error_response()).await);
        }
    };
    request.extensions_mut().insert(caller);
    // Uploads go to the disk as they come. All other bodies are read whole before they are understood.
    let memory = match request.method() {
        &Method::POST => memory(request.request(), caller),
        _ => None,
    };
    body::pace(&mut request, memory);
    Ok(next.call(request).await?.map_into_boxed_body())
}

/// Middleware of the resource with this pattern, which lets in the callers that the table of rights has for it.
pub(super) async fn authorize(
    pattern: &'static str,
    request: ServiceRequest,
    next: Next<BoxBody>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let caller = request.extensions().get::<Caller>().copied();
    let app = app(request.request())?;
    if let Err(error) = failed_requests::check(&app, caller) {
        let answer = match page::is_page(pattern) {
            true => page::fault(&error),
            false => error.error_response(),
        };
        return Ok(refuse(request, answer).await);
    }
    let method = request.method().clone();
    match access::admit(&method, pattern, caller) {
        Ok(admitted) => {
            request.extensions_mut().insert(admitted);
            let answer = next.call(request).await?;
            failed_requests::note(&app, caller, (&method, pattern), answer.status()).await;
            Ok(answer)
        }
        Err(refusal) => {
            let answer = refusal.answer(pattern);
            // Before the refusal: once nothing more is read, the connection waits for nothing but the answer.
            failed_requests::note(&app, caller, (&method, pattern), answer.status()).await;
            Ok(refuse(request, answer).await)
        }
    }
}

/// Answers without reading a request's body.
async fn refuse(mut request: ServiceRequest, answer: HttpResponse) -> ServiceResponse<BoxBody> {
    body::drop_some(&mut request).await;
    let mut answer = request.into_response(answer);
    end_reading(&mut answer);
    answer
}

/// The rest of a request's body isn't read, and the connection ends with this answer.
pub(super) fn end_reading(answer: &mut ServiceResponse<BoxBody>) {
    stop_reading(answer.request());
    answer.response_mut().head_mut().set_connection_type(ConnectionType::Close);
}

/// The memory of a request's body, counted among the memory for bodies.
fn memory(request: &HttpRequest, caller: Caller) -> Option<BodyMemory> {
    let app = app(request).ok()?;
    let token = credentials(request, &app).ok()?;
    let is_user = matches!(caller, Caller::User(..));
    Some(app.network.body_memory(Sender { token, is_user }))
}

/// Counts a refused token. Whoever has sent too many is told to wait.
pub(super) fn failed(request: &HttpRequest, error: HttpError) -> HttpError {
    let Ok(app) = app(request) else { return error };
    if error.kind() != ErrorKind::Unauthorized {
        return error;
    }
    match app.network.authentication_failed(caller(request)) {
        Ok(()) => error,
        Err(wait) => too_often(wait),
    }
}

fn too_often(wait: Duration) -> HttpError {
    let message = "too many requests from this address had no known token";
    HttpError::new(ErrorKind::TooManyRequests, message).retry_after(wait)
}

/// The sender of a request, if its token is that of anybody.
async fn known(request: &HttpRequest) -> Result<Caller, HttpError> {
    let app = app(request)?;
    holder(&app, credentials(request, &app)?).await
}

/// The hash of the token that a request comes with: its own, or that of its session. With a session, only pages of the server itself
/// may change anything, and only from the address where it began.
fn credentials(request: &HttpRequest, app: &AppState) -> Result<Digest, HttpError> {
    let own = bearer(request);
    let of_session = if own.is_err() { app.sessions.token_of(request) } else { None };
    let Some(token_sha256) = of_session else { return own };
    if request.method() != Method::GET && !page::is_of_own_page(request) {
        let message = "a page of another server sent this, and may change nothing here";
        return Err(HttpError::new(ErrorKind::Forbidden, message));
    }
    if request.method() != Method::GET && !app.sessions.is_from_its_browser(request) {
        let message = "the session began at another network address, and changes nothing from here: sign out, and in again";
        return Err(HttpError::new(ErrorKind::Forbidden, message));
    }
    Ok(token_sha256)
}

/// The holder of the token with this hash.
pub(super) async fn holder(app: &AppState, token_sha256: Digest) -> Result<Caller, HttpError> {
    // A server that stands by doesn't hear which tokens the active one replaces: its core refuses, and says where that one is.
    if app.shell.lease().is_held()
        && let Some(which) = app.tokens.which(token_sha256)
    {
        return Ok(with_server_token(which));
    }
    if let Some(host) = app.token_cache.get(token_sha256) {
        return Ok(Caller::Host(host));
    }
    let search = app.network.token_search().await;
    let found = app.shell.request(request::GetHolder { token_sha256 }).await?;
    drop(search);
    match found {
        Some(Holder::Host(host)) => {
            app.token_cache.insert(token_sha256, host);
            Ok(Caller::Host(host))
        }
        Some(Holder::Enroller(token)) => Ok(Caller::Enroller(Some(token))),
        Some(Holder::User(token, rights)) => Ok(Caller::User(Some(token), rights)),
        Some(Holder::Guest(_, job)) => Ok(Caller::Guest(job)),
        Some(Holder::Revoked) => Err(HttpError::unauthorized("this host's token was revoked")),
        Some(Holder::Expired(token)) => {
            Err(HttpError::unauthorized(format!("token {token} has expired")))
        }
        // A server that became the active one meanwhile has read the tokens anew.
        None => match app.tokens.which(token_sha256) {
            Some(which) => Ok(with_server_token(which)),
            None => Err(HttpError::unknown_token()),
        },
    }
}

/// The sender of a request with one of the server's own tokens.
const fn with_server_token(which: ServerToken) -> Caller {
    match which {
        ServerToken::Enrol => Caller::Enroller(None),
        ServerToken::Admin => Caller::User(None, Rights::Administer),
        ServerToken::Assimilator => Caller::Assimilator,
    }
}

/// The hash of the request's token. The token itself isn't kept.
pub(super) fn bearer(request: &HttpRequest) -> Result<Digest, HttpError> {
    let value = request.headers().get(header::AUTHORIZATION);
    match value.and_then(|value| bearer_token(value.to_str().ok()?)) {
        Some(token) => Ok(Digest::of(token.as_bytes())),
        None => Err(HttpError::unauthorized("no token was sent")),
    }
}

/// The token of an `Authorization` header. The name of a scheme is case-insensitive (RFC 9110, section 11.1).
fn bearer_token(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

fn app(request: &HttpRequest) -> Result<web::Data<AppState>, HttpError> {
    let app = request.app_data::<web::Data<AppState>>().cloned();
    app.ok_or_else(|| HttpError::new(ErrorKind::Unavailable, "the server is starting"))
}

/// The caller, if the resource has let it in.
fn admitted(request: &HttpRequest) -> Option<Caller> {
    request.extensions().get::<Admitted>().map(|admitted| admitted.caller())
}

/// Is the answer for a user, or for anybody?
pub(super) fn is_for_user(request: &HttpRequest) -> bool {
    !matches!(admitted(request), Some(Caller::Host(_) | Caller::Assimilator))
}

/// A caller whom the resource let in, and whom the handler isn't for.
fn not_admitted() -> HttpError {
    HttpError::unauthorized("this caller isn't served here")
}

/// Takes the caller, whom the resource has let in, in a handler's arguments.
macro_rules! caller {
    ($name:ty, $pattern:pat => $value:expr) => {
        impl FromRequest for $name {
            type Error = HttpError;
            type Future = Ready<Result<Self, HttpError>>;

            fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
                ready(match admitted(request) {
                    Some($pattern) => Ok($value),
                    _ => Err(not_admitted()),
                })
            }
        }
    };
}

/// A machine that may enrol as a host, with an issued token or the server's own.
pub(super) struct Enroller(pub(super) Option<TokenId>);

caller!(Enroller, Caller::Enroller(with) => Self(with));

/// A user or operator, whose rights suffice for the address.
pub(super) struct User;

caller!(User, Caller::User(..) => Self);

/// The same, as pages see the user.
pub(super) struct UserViewer(pub(super) Viewer);

caller!(UserViewer, Caller::User(token, rights) => Self(Viewer::with_token(rights, token)));

/// The same, by name: with the server's own token, or with one that was issued.
pub(super) struct UserBy(pub(super) By);

caller!(UserBy, Caller::User(token, _) => Self(token.map_or(By::Server, By::Token)));

impl UserBy {
    /// A request that the core carries out where the user's token may ask for it.
    pub(super) const fn asks<R>(&self, request: R) -> OnBehalf<R> {
        OnBehalf { by: self.0, request }
    }
}

/// A guest with a link to the page of a job.
pub(super) struct Guest(pub(super) JobId);

caller!(Guest, Caller::Guest(job) => Self(job));

/// A process that assimilates.
pub(super) struct Assimilator;

caller!(Assimilator, Caller::Assimilator => Self);

/// A user or an assimilator: both may see the assimilation backlog.
pub(super) struct Overseer;

caller!(Overseer, Caller::User(..) | Caller::Assimilator => Self);

/// A host.
pub(super) struct Host(pub(super) HostId);

caller!(Host, Caller::Host(host) => Self(host));

/// A user or a host: both may read blobs.
pub(super) enum Reader {
    User,
    Host(HostId),
}

impl FromRequest for Reader {
    type Error = HttpError;
    type Future = Ready<Result<Self, HttpError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(match admitted(request) {
            Some(Caller::User(..)) => Ok(Self::User),
            Some(Caller::Host(host)) => Ok(Self::Host(host)),
            _ => Err(not_admitted()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::bearer_token;

    #[test]
    fn a_scheme_may_be_in_any_case_and_a_token_may_not_be_empty() {
        for value in ["Bearer t", "bearer t", "BEARER  t "] {
            assert_eq!(bearer_token(value), Some("t"), "{value}");
        }
        for value in ["Bearer", "Bearer ", "Basic t", "Bearert", "", "t"] {
            assert_eq!(bearer_token(value), None, "{value}");
        }
    }
}
