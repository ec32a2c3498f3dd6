//! Typed calls of a server's API: authentication, headers, failover, bounded bodies.

use crate::{
    body::{one_line, read_bounded},
    error::{CallError, shown},
    retry::RetryPolicy,
    servers::Servers,
    store::within_server,
    tls::Authorities,
    trace, transport,
};
use reqwest::{
    Client, Method, RequestBuilder, Response,
    header::{HeaderMap, HeaderName, RETRY_AFTER},
    redirect::Policy,
};
use serde::{Serialize, de::DeserializeOwned};
use sojourn_api::{Endpoint, Request};
use sojourn_protocol::{
    PROTOCOL_HEADER, PROTOCOL_VERSION,
    api::{FEATURES_HEADER, UNKNOWN_FIELDS_HEADER},
    error::ApiError,
    trace::TRACE_HEADER,
};
use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// How long an unused connection is kept; longer than a work request is held open.
const IDLE_CONNECTION_TIMEOUT: Duration = Duration::from_secs(90);
/// Most characters of a protocol version that an error shows.
const MAX_VERSION_CHARACTERS: usize = 20;

/// Most bytes of a list of unknown fields that is taken in, and most such lists.
const MAX_UNKNOWN_FIELDS: usize = 2048;
const MAX_UNKNOWN_LISTS: usize = 32;

/// A request of the API, with the type of its answer.
pub trait Call {
    /// The body of a successful answer.
    type Answer: DeserializeOwned;

    /// The request's method.
    fn method(&self) -> Method;

    /// The request's path below the server's address, with its query.
    fn path(&self) -> &str;

    /// Adds its body and further headers.
    fn complete(&self, request: RequestBuilder) -> RequestBuilder {
        request
    }

    /// How long an attempt may take; without one, as long as the connection's own limits allow.
    fn timeout(&self) -> Option<Duration> {
        None
    }
}

impl<E: Endpoint> Call for Request<'_, E>
where
    E::Body: Serialize,
    E::Answer: DeserializeOwned,
{
    type Answer = E::Answer;

    fn method(&self) -> Method {
        match E::OPERATION.method {
            sojourn_api::Method::GET => Method::GET,
            sojourn_api::Method::POST => Method::POST,
            sojourn_api::Method::PUT => Method::PUT,
        }
    }

    fn path(&self) -> &str {
        self.path()
    }

    fn complete(&self, request: RequestBuilder) -> RequestBuilder {
        match self.body() {
            Some(body) => request.json(body),
            // As a body that says nothing, so that each post has one.
            None if E::OPERATION.method == sojourn_api::Method::POST => request.json(&()),
            None => request,
        }
    }

    fn timeout(&self) -> Option<Duration> {
        self.timeout()
    }
}

/// How a client connects.
#[derive(Debug, Clone, Copy)]
pub struct HttpConfig<'a> {
    /// The `User-Agent`.
    pub user_agent: &'a str,
    /// How long a connection may take to be made.
    pub connect_timeout: Duration,
    /// How long an answer may stand still.
    pub read_timeout: Option<Duration>,
    /// The authorities whose certificates are trusted; the system's if left out.
    pub authorities: Option<&'a Authorities>,
    /// The features that the program understands beyond the first version of the API; each request names them
    /// ([`FEATURES_HEADER`]).
    pub features: &'a [&'a str],
}

impl Default for HttpConfig<'_> {
    fn default() -> Self {
        Self {
            user_agent: concat!("sojourn/", env!("CARGO_PKG_VERSION")),
            connect_timeout: Duration::from_secs(5),
            read_timeout: None,
            authorities: None,
            features: &[],
        }
    }
}

/// Headers that a program adds to each of its requests, as they are at the time.
type MoreHeaders = Arc<dyn Fn() -> Vec<(&'static str, String)> + Send + Sync>;
/// Looks at the headers of each answer.
type Observer = Arc<dyn Fn(&HeaderMap) + Send + Sync>;

/// A deployment's servers, and the right to ask them. Cheap to clone; clones share their connections.
#[derive(Clone)]
pub struct HttpClient {
    http: Client,
    servers: Servers,
    token: Option<String>,
    /// As the header has them; empty for none.
    features: Arc<str>,
    header: ProtocolHeader,
    headers: Option<MoreHeaders>,
    observer: Option<Observer>,
    unknown_fields: Arc<UnknownFields>,
}

/// Lists of fields that a server, of an earlier version, said that it doesn't know. Each is logged once.
#[derive(Default)]
struct UnknownFields(Mutex<BTreeSet<String>>);

impl UnknownFields {
    fn warn_once(&self, headers: &HeaderMap) {
        let fields = headers.get(UNKNOWN_FIELDS_HEADER).and_then(|value| value.to_str().ok());
        let Some(fields) = fields.filter(|fields| fields.len() <= MAX_UNKNOWN_FIELDS) else {
            return;
        };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < MAX_UNKNOWN_LISTS && known.insert(fields.to_owned()) {
            tracing::warn!(
                fields,
                "the server, of an earlier version, leaves out fields of a request"
            );
        }
    }
}

/// Whether an answer has to say which protocol it speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProtocolHeader {
    Required,
    Optional,
}

impl fmt::Debug for HttpClient {
    /// Everything but the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient").field("servers", &self.servers).finish_non_exhaustive()
    }
}

/// The seconds that an answer asks to wait.
pub(crate) fn retry_after(response: &Response) -> Option<Duration> {
    let value = response.headers().get(RETRY_AFTER)?;
    value.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}

impl HttpClient {
    /// A client of the servers, without a token. Nothing is sent yet.
    ///
    /// # Errors
    /// Where the system's certificates are needed and can't be had.
    pub fn new(servers: Servers, config: &HttpConfig<'_>) -> Result<Self, reqwest::Error> {
        let http = transport::connect(servers.current(), config.authorities, |builder| {
            let builder = builder
                .tcp_nodelay(true)
                .connect_timeout(config.connect_timeout)
                .pool_idle_timeout(IDLE_CONNECTION_TIMEOUT)
                .redirect(Policy::custom(within_server))
                .user_agent(config.user_agent);
            match config.read_timeout {
                Some(timeout) => builder.read_timeout(timeout),
                None => builder,
            }
        })?;
        let header = ProtocolHeader::Optional;
        let features = config.features.join(", ").into();
        Ok(Self {
            http,
            servers,
            token: None,
            features,
            header,
            headers: None,
            observer: None,
            unknown_fields: Arc::default(),
        })
    }

    /// The same with a token, which each request carries.
    #[must_use]
    pub fn with_token(mut self, token: String) -> Self {
        self.token = Some(token);
        self
    }

    /// The same, for a program that must not take another web server for one of ours: a success without the protocol
    /// header is an [`CallError::InvalidResponse`].
    #[must_use]
    pub const fn with_required_protocol_header(mut self) -> Self {
        self.header = ProtocolHeader::Required;
        self
    }

    /// The same, with more headers in each request.
    #[must_use]
    pub fn with_headers(
        mut self,
        headers: impl Fn() -> Vec<(&'static str, String)> + Send + Sync + 'static,
    ) -> Self {
        self.headers = Some(Arc::new(headers));
        self
    }

    /// The same, with each answer's headers shown to `observer`.
    #[must_use]
    pub fn with_observer(mut self, observer: impl Fn(&HeaderMap) + Send + Sync + 'static) -> Self {
        self.observer = Some(Arc::new(observer));
        self
    }

    /// The servers.
    #[must_use]
    pub const fn servers(&self) -> &Servers {
        &self.servers
    }

    /// Does it send a token?
    #[must_use]
    pub const fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// Makes a call, again where `policy` says so: each attempt at each of the servers, until one answers.
    ///
    /// # Errors
    /// The error of the last attempt.
    pub async fn call<C: Call>(
        &self,
        call: C,
        policy: RetryPolicy,
    ) -> Result<C::Answer, CallError> {
        self.read(self.send_call(&call, policy).await?).await
    }

    /// As [`HttpClient::call`], without reading the body of a success.
    pub(crate) async fn send_call<C: Call>(
        &self,
        call: &C,
        policy: RetryPolicy,
    ) -> Result<Response, CallError> {
        let mut attempts = policy.attempts();
        loop {
            let request = call.complete(self.request(call.method(), call.path()));
            let request = match call.timeout() {
                Some(timeout) => request.timeout(timeout),
                None => request,
            };
            let sent = self.send(request).await;
            let accepted = match sent {
                Ok(response) => self.accept(response).await,
                Err(error) => Err(error),
            };
            let error = match accepted {
                Ok(response) => return Ok(response),
                Err(error) => error,
            };
            match attempts.pause_after(&error) {
                Some(pause) => tokio::time::sleep(pause).await,
                None => return Err(error),
            }
        }
    }

    /// A request with our headers, to the server that is asked now.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, self.servers.path(path));
        let mut request = request.header(PROTOCOL_HEADER, PROTOCOL_VERSION);
        if !self.features.is_empty() {
            request = request.header(FEATURES_HEADER, &*self.features);
        }
        if let Some(context) = trace::current() {
            request = request.header(TRACE_HEADER, context.to_string());
        }
        for (name, value) in self.headers.iter().flat_map(|headers| headers()) {
            request = request.header(name, value);
        }
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// Sends a request, and waits for the head of its answer. Where a server is away, it goes to the next.
    ///
    /// # Errors
    /// Where none answers, or can be trusted.
    pub async fn send(&self, request: RequestBuilder) -> Result<Response, CallError> {
        let response = self.servers.send(&self.http, request).await;
        let response = response.map_err(|error| self.failed(error))?;
        if let Some(observer) = &self.observer {
            observer(response.headers());
        }
        self.unknown_fields.warn_once(response.headers());
        Ok(response)
    }

    /// The answer, if it is a success by a server that speaks our protocol.
    ///
    /// # Errors
    /// Where it is none.
    pub async fn accept(&self, response: Response) -> Result<Response, CallError> {
        let header = HeaderName::from_static(PROTOCOL_HEADER);
        let version = response.headers().get(header);
        let version = version.map(|value| value.to_str().unwrap_or("?"));
        if let Some(version) = version
            && version != PROTOCOL_VERSION.to_string()
        {
            let version = version.chars().take(MAX_VERSION_CHARACTERS).collect();
            return Err(CallError::Protocol { version });
        }
        let (server, status) = (self.server(), response.status());
        if status.is_success() {
            if version.is_none() && self.header == ProtocolHeader::Required {
                let detail = "it doesn't say that it is a sojourn server".to_owned();
                return Err(CallError::invalid(&server, status, detail));
            }
            return Ok(response);
        }
        let retry_after = retry_after(&response);
        let body = read_bounded(&server, response).await?;
        Err(match serde_json::from_slice::<ApiError>(&body) {
            Ok(error) => CallError::Refused { server, error, retry_after },
            // Not our server: a proxy that can't reach it, a portal that wants a password.
            Err(_) => {
                let (status, detail) = (status.as_u16(), one_line(&body));
                CallError::InvalidResponse { server, status, detail, retry_after }
            }
        })
    }

    /// The body of an answer that was accepted.
    ///
    /// # Errors
    /// Where it breaks off, is too large, or isn't an `A`.
    pub async fn read<A: DeserializeOwned>(&self, response: Response) -> Result<A, CallError> {
        let (server, status) = (self.server(), response.status());
        let body = read_bounded(&server, response).await?;
        serde_json::from_slice(&body)
            .map_err(|error| CallError::invalid(&server, status, error.to_string()))
    }

    /// The address of the server that is asked now, as errors name it.
    pub(crate) fn server(&self) -> String {
        shown(self.servers.current())
    }

    pub(crate) fn failed(&self, error: reqwest::Error) -> CallError {
        CallError::from_transport(&self.server(), error)
    }
}
