//! The object store of a server's blobs, by URLs that the server has signed.
//!
//! The store learns nothing of the caller: it gets no token and none of our headers. Where it refuses, the server is
//! asked again.

use crate::{
    body::{one_line, read_bounded},
    error::{CallError, STORE},
    known_stores::KnownStores,
    reach::Reach,
    tls::Authorities,
    transport,
};
use reqwest::{
    Body, Client, Response, StatusCode, Url,
    header::{CONTENT_LENGTH, LOCATION, RANGE},
    redirect::{Attempt, Policy},
};
use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

/// Redirects within the server that are followed.
const MAX_REDIRECTS: usize = 10;

/// Where one upload goes, past the server.
#[derive(Clone)]
pub struct UploadTarget {
    /// The signed URL; whoever has it may use it.
    pub url: String,
    /// Headers that must be sent with it.
    pub headers: BTreeMap<String, String>,
}

impl fmt::Debug for UploadTarget {
    /// Without what gives it its right.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UploadTarget").finish_non_exhaustive()
    }
}

/// Requests to stores.
#[derive(Debug, Clone)]
pub struct StoreClient {
    http: Client,
    reach: Reach,
    known: Arc<KnownStores>,
}

impl StoreClient {
    /// Requests to stores to which this server may lead: on the internet, or in the network that the server is in.
    ///
    /// Stores are checked against the system's certificates, whoever signs the server's. Where there are none, the
    /// server's `authorities` are used for the store too.
    ///
    /// # Errors
    /// Where neither can be used.
    pub fn new(
        server: &Url,
        authorities: Option<&Authorities>,
        connect_timeout: Duration,
    ) -> Result<Self, reqwest::Error> {
        let reach = Reach::of(server);
        let client = |authorities| {
            transport::connect(server, authorities, |builder| {
                let builder = builder.tcp_nodelay(true).connect_timeout(connect_timeout);
                let builder = builder.redirect(Policy::none());
                // A proxy is looked up by the same resolver, and looks up the rest itself.
                match transport::has_proxy() {
                    true => builder,
                    false => builder.dns_resolver(Arc::new(reach.clone())),
                }
            })
        };
        let http = client(None).or_else(|_| client(authorities))?;
        Ok(Self { http, reach, known: Arc::default() })
    }

    /// The stores that it may ask; until some are set, all that the server may lead to.
    #[must_use]
    pub const fn known(&self) -> &Arc<KnownStores> {
        &self.known
    }

    async fn check(&self, target: &Url) -> Result<(), CallError> {
        self.known.check(target)?;
        self.reach.check(target).await
    }

    /// Requests where the server's redirect leads, from byte `from` on.
    pub(crate) async fn get(
        &self,
        redirect: &Response,
        from: u64,
        limit: Duration,
    ) -> Result<Response, CallError> {
        let target = redirect.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        let target = target.and_then(|target| redirect.url().join(target).ok());
        let target = target.ok_or_else(|| failure("nowhere", "the redirect leads nowhere"))?;
        self.check(&target).await?;
        let mut request = self.http.get(target);
        if from > 0 {
            request = request.header(RANGE, format!("bytes={from}-"));
        }
        let answered = tokio::time::timeout(limit, request.send()).await;
        let response = answered.map_err(|_| CallError::timed_out(STORE, limit))?;
        successful(response.map_err(unreachable)?).await
    }

    /// Puts all bytes of an upload in its place. Without a time limit: whoever feeds the body sees whether it moves.
    ///
    /// # Errors
    /// Where the store gives no answer, or refuses.
    pub async fn put(
        &self,
        target: &UploadTarget,
        bytes: u64,
        body: Body,
    ) -> Result<(), CallError> {
        let url: Url = target.url.parse().map_err(|_| failure("nowhere", "the URL is none"))?;
        self.check(&url).await?;
        let request = self.http.put(url).header(CONTENT_LENGTH, bytes).body(body);
        let headers = target.headers.iter();
        let request = headers.fold(request, |request, (name, value)| request.header(name, value));
        successful(request.send().await.map_err(unreachable)?).await.map(drop)
    }
}

/// Follows redirects within the server. Those that lead away from it, or are meant for the store, aren't followed:
/// the token would go with them.
pub(crate) fn within_server(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let from = attempt.previous().last().map(Url::origin);
    let leads_away = from.is_none_or(|from| from != attempt.url().origin());
    if leads_away || attempt.status() == StatusCode::TEMPORARY_REDIRECT {
        attempt.stop()
    } else if attempt.previous().len() > MAX_REDIRECTS {
        attempt.error("too many redirects")
    } else {
        attempt.follow()
    }
}

async fn successful(response: Response) -> Result<Response, CallError> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let body = read_bounded(STORE, response).await?;
    let text = String::from_utf8_lossy(&body);
    // Only its error code: the rest may say more than a log should.
    let code = text.split_once("<Code>").and_then(|(_, rest)| rest.split_once("</Code>"));
    let code = code.map_or("", |(code, _)| code);
    Err(failure(status.as_str(), &one_line(code.as_bytes())))
}

fn failure(status: &str, said: &str) -> CallError {
    let detail = format!("the store answers {status} {said}");
    CallError::InvalidResponse { server: STORE.to_owned(), status: 0, detail, retry_after: None }
}

/// A store that gave no answer. It isn't the server: the fault isn't looked at as one of the server's TLS. The URL is
/// left out, since whoever has it may use it.
fn unreachable(error: reqwest::Error) -> CallError {
    CallError::Unreachable { server: STORE.to_owned(), source: error.without_url() }
}
