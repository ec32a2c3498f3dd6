//! `http` and `https`: one GET, resumed after a cut connection.
//!
//! A cut connection is resumed by a range request, with the validator of the first answer (RFC 9110,
//! section 13.1.5), so that two versions are never mixed. It begins again where the first answer had no
//! validator, and where the server knows no ranges.

use super::spool::{CopyError, TemporaryCopy};
use crate::{error::FetchError, progress::Progress};
use reqwest::{
    Client, Response, StatusCode, Url,
    header::{CONTENT_RANGE, ETAG, HeaderValue, IF_RANGE, LAST_MODIFIED, RANGE},
};
use sojourn_http::{Backoff, byte_range::content_range, transport};
use sojourn_protocol::error::root_cause;
use std::time::Duration;

/// The longest pause between attempts.
const MAX_PAUSE: Duration = Duration::from_secs(30);
/// Attempts without a new byte before it ends.
const MAX_ATTEMPTS: u32 = 4;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
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
    let client = transport::connect(url, None, |builder| {
        builder.connect_timeout(CONNECT_TIMEOUT).read_timeout(READ_TIMEOUT)
    })
    .map_err(|error| FetchError::Request(error.to_string()))?;
    let mut download = Download { client, url, validator: None, total: None };
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
    client: Client,
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
        let mut request = self.client.get(self.url.clone());
        if let Some(validator) = self.validator.as_ref().filter(|_| copy.bytes() > 0) {
            let range = format!("bytes={}-", copy.bytes());
            request = request.header(RANGE, range).header(IF_RANGE, validator);
        }
        let mut answer = request.send().await?;
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

/// Whether another attempt may succeed.
fn is_temporary(status: StatusCode) -> bool {
    status.is_server_error()
        || matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS)
}
