//! Posts to an address that an operator has named, such as a webhook. It is none of our servers: no token goes there, no redirect is
//! followed, and nothing of an answer's body is read.

use crate::{client::retry_after, transport};
use bytes::Bytes;
use reqwest::{Client, Response, Url, header::HeaderMap, redirect::Policy};
use std::time::Duration;

/// An address that can't be posted to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each variant's message says it")]
pub enum ReceiverError {
    #[error("it is no address: one such as `https://example.org/hook` is wanted")]
    NoAddress,
    /// The address has a user or a password, which would be in logs of proxies.
    #[error("it has a user or a password, which belong in no address")]
    HasPassword,
    #[error("no HTTP client can be made")]
    Client(#[source] reqwest::Error),
}

/// The status of an answer, and the time for which its receiver asks to be left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answered {
    /// The answer's HTTP status.
    pub status: u16,
    /// How long the receiver asks to be left alone.
    pub retry_after: Option<Duration>,
}

/// An address, and the connections to it.
#[derive(Debug, Clone)]
pub struct Receiver {
    http: Client,
    url: Url,
}

impl Receiver {
    /// Nothing is sent yet. `timeout`: for a whole request.
    ///
    /// # Errors
    /// [`ReceiverError`].
    pub fn new(url: &str, timeout: Duration) -> Result<Self, ReceiverError> {
        let url: Url = url.parse().map_err(|_| ReceiverError::NoAddress)?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return Err(ReceiverError::NoAddress);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(ReceiverError::HasPassword);
        }
        let http = transport::connect(&url, None, |builder| {
            builder.redirect(Policy::none()).connect_timeout(timeout).timeout(timeout)
        });
        Ok(Self { http: http.map_err(ReceiverError::Client)?, url })
    }

    /// Posts JSON, once.
    ///
    /// # Errors
    /// Where no answer comes. The message has no part of the address, which may hold a secret.
    pub async fn post(
        &self,
        headers: &[(&'static str, String)],
        body: String,
    ) -> Result<Answered, reqwest::Error> {
        let request = self.http.post(self.url.clone()).header("content-type", "application/json");
        let request =
            headers.iter().fold(request, |request, (name, value)| request.header(*name, value));
        let response = request.body(body).send().await.map_err(reqwest::Error::without_url)?;
        Ok(answered(&response))
    }

    /// Posts a body, whose type the headers say, once.
    ///
    /// # Errors
    /// As [`Receiver::post`].
    pub async fn send(&self, headers: HeaderMap, body: Bytes) -> Result<Answered, reqwest::Error> {
        let request = self.http.post(self.url.clone()).headers(headers).body(body);
        let response = request.send().await.map_err(reqwest::Error::without_url)?;
        Ok(answered(&response))
    }
}

fn answered(response: &Response) -> Answered {
    Answered { status: response.status().as_u16(), retry_after: retry_after(response) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_of_the_web_and_has_no_password() {
        let of = |url: &str| {
            Receiver::new(url, Duration::from_secs(1)).map(drop).map_err(|error| error.to_string())
        };
        assert_eq!(of("http://127.0.0.1:9/hook?a=b"), Ok(()));
        for wrong in ["", "hook", "file:///etc/passwd", "ftp://a/b", "unix:/run/socket"] {
            assert!(of(wrong).unwrap_err().contains("no address"), "{wrong}");
        }
        for wrong in ["http://user:word@127.0.0.1/", "http://user@127.0.0.1/"] {
            assert!(of(wrong).unwrap_err().contains("password"), "{wrong}");
        }
    }
}
