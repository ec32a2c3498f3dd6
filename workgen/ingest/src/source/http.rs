//! `http` and `https`: one GET, resumed after a cut connection.
//!
//! A cut connection is resumed by a range request, with the validator of the first answer (RFC 9110,
//! section 13.1.5), so that two versions are never mixed. It begins again where the first answer had no
//! validator, and where the server knows no ranges.
//!
//! Redirects are followed here, hop by hop: each address is asked about as the first one was, and a name or password of the URL
//! goes to its own server only.

use super::spool::{CopyError, TemporaryCopy};
use crate::{error::FetchError, progress::Progress};
use reqwest::{
    Client, RequestBuilder, Response, StatusCode, Url,
    header::{CONTENT_RANGE, ETAG, HeaderValue, IF_RANGE, LAST_MODIFIED, LOCATION, RANGE},
    redirect::Policy,
};
use sojourn_http::{Backoff, byte_range::content_range, transport};
use sojourn_protocol::error::root_cause;
use std::time::Duration;

/// The longest pause between attempts.
const MAX_PAUSE: Duration = Duration::from_secs(30);
/// Attempts without a new byte before it ends.
const MAX_ATTEMPTS: u32 = 4;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Redirects that are followed, one after another.
const MAX_REDIRECTS: usize = 10;
/// How long an answer may stand still.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// The error of one attempt.
enum Attempt {
    /// Another attempt may succeed.
    Again(String),
    Never(CopyError),
}

impl From<CopyError> for Attempt {
    fn from(failed: CopyError) -> Self {
        Attempt::Never(failed)
    }
}

impl From<reqwest::Error> for Attempt {
    fn from(error: reqwest::Error) -> Self {
        // The outer messages repeat the URL, which is said anyway.
        let reason = root_cause(&error);
        match error.is_redirect() || error.is_builder() {
            true => Attempt::Never(FetchError::Request(reason).into()),
            false => Attempt::Again(reason),
        }
    }
}

/// Downloads `url`. After an attempt without a new byte there is a pause, `pause` long on average at first
/// and twice as long after each.
pub(super) async fn fetch(
    url: &Url,
    pause: Duration,
    copy: &mut TemporaryCopy,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<(), CopyError> {
    let mut download = Download { url, validator: None, total: None };
    let mut backoff = Backoff::from(pause.saturating_mul(2), MAX_PAUSE);
    let mut best = 0;
    loop {
        let reason = match download.attempt(copy, progress).await {
            Ok(()) => return Ok(()),
            Err(Attempt::Never(failed)) => return Err(failed),
            Err(Attempt::Again(reason)) => reason,
        };
        if copy.bytes() > best {
            best = copy.bytes();
            backoff.reset();
            continue;
        }
        let attempts = backoff.attempts() + 1;
        if attempts == MAX_ATTEMPTS {
            return Err(FetchError::Cut { attempts, bytes: copy.bytes(), reason }.into());
        }
        tokio::time::sleep(backoff.next(None)).await;
    }
}

/// A download over several answers.
struct Download<'a> {
    url: &'a Url,
    /// The validator of the version that the first bytes belong to.
    validator: Option<HeaderValue>,
    total: Option<u64>,
}

impl Download<'_> {
    async fn attempt(
        &mut self,
        copy: &mut TemporaryCopy,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<(), Attempt> {
        let mut answer = self.ask(copy).await?;
        self.take_up(&answer, copy)?;
        while let Some(bytes) = answer.chunk().await? {
            copy.push(&bytes, progress)?;
        }
        match self.total {
            Some(total) if copy.bytes() < total => {
                Err(Attempt::Again("the connection was closed early".to_owned()))
            }
            _ => Ok(()),
        }
    }

    /// The answer where the redirects end.
    async fn ask(&self, copy: &TemporaryCopy) -> Result<Response, Attempt> {
        let mut url = self.url.clone();
        for _ in 0..=MAX_REDIRECTS {
            let request = connect(&url)?.get(url.clone());
            let answer = self.resume(request, copy).send().await?;
            let Some(next) = redirect(&url, &answer)? else { return Ok(answer) };
            if !copy.bounds().admits_url(next.as_str()) {
                return Err(Attempt::Never(FetchError::Elsewhere(shown(&next)).into()));
            }
            url = next;
        }
        Err(Attempt::Never(FetchError::Request("too many redirects".to_owned()).into()))
    }

    /// Asks for the rest alone, where the copy has a part.
    fn resume(&self, request: RequestBuilder, copy: &TemporaryCopy) -> RequestBuilder {
        match self.validator.as_ref().filter(|_| copy.bytes() > 0) {
            Some(validator) => {
                let range = format!("bytes={}-", copy.bytes());
                request.header(RANGE, range).header(IF_RANGE, validator)
            }
            None => request,
        }
    }

    /// Checks the head of an answer: whether it continues where the copy ends, or begins again.
    fn take_up(&mut self, answer: &Response, copy: &mut TemporaryCopy) -> Result<(), Attempt> {
        match answer.status() {
            StatusCode::PARTIAL_CONTENT => {
                let range =
                    answer.headers().get(CONTENT_RANGE).and_then(|range| range.to_str().ok());
                let range = range.and_then(content_range);
                let goes_on = range.is_some_and(|(start, total)| {
                    start == copy.bytes()
                        && (total.is_none() || self.total.is_none() || total == self.total)
                });
                if !goes_on {
                    return Err(Attempt::Never(FetchError::Mixed.into()));
                }
            }
            status if status.is_success() => {
                copy.restart()?;
                self.total = answer.content_length();
                copy.expect(self.total);
                let headers = answer.headers();
                let strong = |tag: &&HeaderValue| !tag.as_bytes().starts_with(b"W/");
                let tag = headers.get(ETAG).filter(strong);
                self.validator = tag.or_else(|| headers.get(LAST_MODIFIED)).cloned();
            }
            // The file was replaced by a shorter one.
            StatusCode::RANGE_NOT_SATISFIABLE => {
                return Err(Attempt::Never(FetchError::Mixed.into()));
            }
            status if is_temporary(status) => {
                return Err(Attempt::Again(format!("status {status}")));
            }
            status => {
                let hint = match status {
                    StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                        "; what needs a login must be downloaded first"
                    }
                    _ => "",
                };
                let status = status.to_string();
                return Err(Attempt::Never(FetchError::Status { status, hint }.into()));
            }
        }
        Ok(())
    }
}

/// Connections to the server of a URL: none of its redirects is followed by itself.
fn connect(url: &Url) -> Result<Client, Attempt> {
    let connected = transport::connect(url, None, |builder| {
        let builder = builder.redirect(Policy::none()).referer(false);
        builder.connect_timeout(CONNECT_TIMEOUT).read_timeout(READ_TIMEOUT)
    });
    connected.map_err(|error| Attempt::Never(FetchError::Request(error.to_string()).into()))
}

/// Where the answer from a URL leads, if it is a redirect.
fn redirect(from: &Url, answer: &Response) -> Result<Option<Url>, Attempt> {
    let leads = matches!(answer.status().as_u16(), 301 | 302 | 303 | 307 | 308);
    let Some(to) = answer.headers().get(LOCATION).filter(|_| leads) else { return Ok(None) };
    let bad = || Attempt::Never(FetchError::Request("a redirect leads nowhere".to_owned()).into());
    let to = to.to_str().map_err(|_| bad())?;
    let mut next = from.join(to).map_err(|_| bad())?;
    if next.origin() != from.origin() && without_credentials(&mut next).is_err() {
        return Err(bad());
    }
    Ok(Some(next))
}

fn without_credentials(url: &mut Url) -> Result<(), ()> {
    url.set_username("")?;
    url.set_password(None)
}

/// A URL as messages have it: without a name, a password and a signature.
fn shown(url: &Url) -> String {
    let mut url = url.clone();
    let _ = without_credentials(&mut url);
    url.set_query(None);
    url.set_fragment(None);
    url.to_string()
}

/// Whether another attempt may succeed.
fn is_temporary(status: StatusCode) -> bool {
    status.is_server_error()
        || matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS)
}
