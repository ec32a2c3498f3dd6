//! The store that a server's blobs lie in, by URLs that the server has signed. It hears nothing of this host:
//! no token, no header of ours. What it refuses, the server is asked for again.

use super::{ApiFailure, Authorities, one_line, read_bounded};
use crate::{error::ClientError, tls::http_client};
use reqwest::{
    Body, Client, Response, StatusCode, Url,
    header::{CONTENT_LENGTH, LOCATION, RANGE},
    redirect::{Attempt, Policy},
};
use std::{collections::BTreeMap, time::Duration};

/// Redirects within the server that are followed.
const MOST_REDIRECTS: usize = 10;

/// A place for one upload.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) url: String,
    pub(crate) headers: BTreeMap<String, String>,
}

impl std::fmt::Debug for Place {
    /// Without what gives it its right.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Place").finish_non_exhaustive()
    }
}

/// Requests to stores.
#[derive(Clone)]
pub(super) struct Store {
    http: Client,
}

impl Store {
    /// Stores are known by the system's authorities, whoever the server's is; where that one signs for the
    /// store too, by it.
    pub(super) fn new(
        server: &Url,
        authorities: Option<&Authorities>,
        connect: Duration,
    ) -> Result<Self, ClientError> {
        let client = |authorities| {
            http_client(server, authorities, |builder| {
                builder.tcp_nodelay(true).connect_timeout(connect).redirect(Policy::none())
            })
        };
        // A machine without root certificates of its own.
        let http = client(None).or_else(|_| client(authorities)).map_err(ClientError::Http)?;
        Ok(Self { http })
    }

    /// What lies where the server's answer leads, from byte `from` on.
    pub(super) async fn get(
        &self,
        redirect: &Response,
        from: u64,
        limit: Duration,
    ) -> Result<Response, ApiFailure> {
        let place = redirect.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        let place = place.and_then(|place| redirect.url().join(place).ok());
        let place = place.ok_or_else(|| failure("nowhere", "the redirect leads nowhere"))?;
        let mut request = self.http.get(place);
        if from > 0 {
            request = request.header(RANGE, format!("bytes={from}-"));
        }
        let answered = tokio::time::timeout(limit, request.send()).await;
        let response = answered.map_err(|_| ApiFailure::silent(limit))?.map_err(unanswered)?;
        given(response).await
    }

    /// Puts all bytes of an upload in its place.
    pub(super) async fn put(
        &self,
        place: &Place,
        bytes: u64,
        body: Body,
    ) -> Result<(), ApiFailure> {
        let request = self.http.put(&place.url).header(CONTENT_LENGTH, bytes).body(body);
        let headers = place.headers.iter();
        let request = headers.fold(request, |request, (name, value)| request.header(name, value));
        given(request.send().await.map_err(unanswered)?).await.map(drop)
    }
}

/// Redirects that lead away from the server, or are meant for the store, aren't followed with the token.
pub(super) fn stay(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let from = attempt.previous().last().map(Url::origin);
    let leads_away = from.is_none_or(|from| from != attempt.url().origin());
    if leads_away || attempt.status() == StatusCode::TEMPORARY_REDIRECT {
        attempt.stop()
    } else if attempt.previous().len() > MOST_REDIRECTS {
        attempt.error("too many redirects")
    } else {
        attempt.follow()
    }
}

async fn given(response: Response) -> Result<Response, ApiFailure> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let said = read_bounded(response).await?;
    let said = String::from_utf8_lossy(&said);
    // Its own word for it; the rest may say more than a log should.
    let code = said.split_once("<Code>").and_then(|(_, rest)| rest.split_once("</Code>"));
    let code = code.map_or("", |(code, _)| code);
    Err(failure(status.as_str(), &one_line(code.as_bytes())))
}

fn failure(status: &str, said: &str) -> ApiFailure {
    let detail = format!("the store answers {status} {said}");
    ApiFailure::Garbage { status: 0, detail, retry_after: None }
}

/// Who has such a URL may use it.
fn unanswered(error: reqwest::Error) -> ApiFailure {
    ApiFailure::unreached(error.without_url())
}
