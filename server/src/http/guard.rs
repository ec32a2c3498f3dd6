//! The outermost step of every request: its place on the connection, and headers that keep browsers from doing anything with an
//! answer.

use super::{AppState, error::HttpError};
use crate::{
    network::{ActiveRequest, AddressKey, Admission, Connection},
    traffic::Refusal,
};
use actix_web::{
    Error, HttpMessage as _, HttpRequest, ResponseError as _,
    body::{BodySize, BoxBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    http::{
        ConnectionType,
        header::{
            CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderMap, HeaderName, HeaderValue,
            REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
        },
    },
    middleware::Next,
    web,
};
use bytes::Bytes;
use sojourn_protocol::error::ErrorKind;
use std::{
    net::{IpAddr, Ipv4Addr},
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
    time::Duration,
};

/// The address that is answered on a connection that is refused too.
const HEALTH: &str = "/v1/health";
/// After so long there may be room for another connection.
const CONNECTION_RETRY: Duration = Duration::from_secs(5);
/// A page, if any answer were shown as one, may load and run nothing, and be part of no other page.
const POLICY: &str = "default-src 'none'; frame-ancestors 'none'; sandbox";

/// For whom a request comes, as limits count it.
#[derive(Debug, Clone, Copy)]
struct Caller(AddressKey);

/// For whom a request comes.
pub(super) fn caller(request: &HttpRequest) -> AddressKey {
    let known = request.extensions().get::<Caller>().map(|Caller(address)| *address);
    known.unwrap_or_else(|| AddressKey::of(peer(request)))
}

fn peer(request: &HttpRequest) -> IpAddr {
    request.peer_addr().map_or(Ipv4Addr::UNSPECIFIED.into(), |peer| peer.ip())
}

/// Reads nothing more of a request's connection.
pub(super) fn stop_reading(request: &HttpRequest) {
    if let Some(connection) = request.conn_data::<Rc<Connection>>() {
        connection.stop_reading();
    }
}

/// Middleware that answers on connections that are refused, and gives each answer what all have.
pub(crate) async fn guard(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let connection = request.request().conn_data::<Rc<Connection>>().cloned();
    let active = connection.as_ref().map(Connection::begin);
    if let Some(app) = request.app_data::<web::Data<AppState>>() {
        app.traffic.requested();
        let caller = app.network.caller(peer(request.request()), request.headers());
        request.extensions_mut().insert(Caller(caller));
    }
    let admission = connection.as_ref().map(|connection| connection.permit().admission());
    let refused = match admission {
        Some(Admission::Refusal(reason)) => Some(reason),
        _ => None,
    };
    let mut answer = match refused {
        Some(reason) if request.path() != HEALTH => {
            stop_reading(request.request());
            request.into_response(too_many(reason).error_response())
        }
        _ => next.call(request).await?.map_into_boxed_body(),
    };
    if refused.is_some() {
        answer.response_mut().head_mut().set_connection_type(ConnectionType::Close);
    }
    keep_from_browsers(answer.headers_mut());
    Ok(answer.map_body(|_, body| BoxBody::new(AnswerBody { body, _active: active })))
}

fn too_many(reason: Refusal) -> HttpError {
    let message = match reason {
        Refusal::ConnectionsOfAddress => "too many connections from this address",
        _ => "the server has as many connections as it may",
    };
    HttpError::new(ErrorKind::TooManyRequests, message).retry_after(CONNECTION_RETRY)
}

/// Answers say what they are, are stored only where their handler allows it, and run nothing unless they are pages of the server.
fn keep_from_browsers(headers: &mut HeaderMap) {
    let mut set = |name: HeaderName, value| headers.insert(name, HeaderValue::from_static(value));
    set(X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(REFERRER_POLICY, "no-referrer");
    if !headers.contains_key(CONTENT_SECURITY_POLICY) {
        headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    }
    if !headers.contains_key(CACHE_CONTROL) {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
}

/// A body until the end of which its request is active.
struct AnswerBody {
    body: BoxBody,
    _active: Option<ActiveRequest>,
}

impl MessageBody for AnswerBody {
    type Error = <BoxBody as MessageBody>::Error;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Pin::new(&mut self.body).poll_next(context)
    }
}
