//! The requests of the command line to a server.
//!
//! How a call is made, and when it is made again, is the business of `sojourn-http`; what to ask and how to show the
//! answer that of `cli`.

use serde::{Serialize, de::DeserializeOwned};
use sojourn_api::{Endpoint, Request};
use sojourn_http::{
    Authorities, CallError, HttpClient, HttpConfig, RetryPolicy, Servers, TransferError,
};
use sojourn_protocol::digest::BlobRef;
use std::{path::Path, time::Duration};

/// How long an answer may stand still.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

type CallResult<A> = Result<A, CallError>;

/// A server and the right to ask it.
#[derive(Debug, Clone)]
pub(crate) struct ApiClient {
    http: HttpClient,
}

impl ApiClient {
    /// A client for the servers. Certificates are checked against `authorities`, or the system's.
    pub(crate) fn new(
        servers: Servers,
        authorities: Option<&Authorities>,
        token: Option<String>,
    ) -> CallResult<Self> {
        let server = servers.current().to_string();
        let config =
            HttpConfig { read_timeout: Some(READ_TIMEOUT), authorities, ..HttpConfig::default() };
        let http = HttpClient::new(servers, &config);
        let http = http.map_err(|error| CallError::from_transport(&server, error))?;
        let http = http.with_required_protocol_header();
        Ok(Self {
            http: match token {
                Some(token) => http.with_token(token),
                None => http,
            },
        })
    }

    /// The address of the server that is asked now.
    pub(crate) fn server(&self) -> String {
        self.http.servers().current().as_str().trim_end_matches('/').to_owned()
    }

    /// Sends a request. The same request may come twice: the interface is idempotent but for what the document names. A token
    /// that is made once more is never used.
    pub(crate) async fn call<E>(&self, request: Request<'_, E>) -> CallResult<E::Answer>
    where
        E: Endpoint<Body: Serialize, Answer: DeserializeOwned>,
    {
        self.http.call(request, RetryPolicy::WhileBusy).await
    }

    /// As [`ApiClient::call`], also for as long as the server is away: hours of reading data may be behind it.
    pub(crate) async fn call_while_away<E>(&self, request: Request<'_, E>) -> CallResult<E::Answer>
    where
        E: Endpoint<Body: Serialize, Answer: DeserializeOwned>,
    {
        self.http.call(request, RetryPolicy::WhileAway).await
    }

    /// As [`HttpClient::upload`].
    pub(crate) async fn upload(
        &self,
        blob: BlobRef,
        path: &Path,
        sent: &mut dyn FnMut(u64),
    ) -> Result<(), TransferError> {
        self.http.upload(blob, path, sent).await
    }

    /// As [`HttpClient::download`].
    pub(crate) async fn download(
        &self,
        blob: BlobRef,
        received: &mut dyn FnMut(u64),
    ) -> Result<Vec<u8>, TransferError> {
        self.http.download(blob, received).await
    }
}
