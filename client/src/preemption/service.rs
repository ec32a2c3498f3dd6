//! The metadata service, as HTTP.

use reqwest::{Client, Method, StatusCode, Url};
use sojourn_http::transport;
use std::time::Duration;

/// The longest wait for the service, which is on this machine, or next to it.
const PATIENCE: Duration = Duration::from_secs(2);
/// Most bytes of an answer that are read.
const MAX_ANSWER: usize = 1 << 20;

/// Where the metadata are asked for.
#[derive(Debug, Clone)]
pub(crate) struct Service {
    http: Client,
    base: Url,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServiceError {
    #[error("the metadata service doesn't answer")]
    Silent(#[from] reqwest::Error),
    #[error("the metadata service answers {0}")]
    Refused(StatusCode),
    #[error("the metadata service's answer can't be understood: {0}")]
    Garbage(String),
}

impl Service {
    pub(crate) fn new(base: Url) -> Result<Self, reqwest::Error> {
        let http = transport::connect(&base, None, |builder| {
            // Another machine's metadata would come through a proxy, or after a redirect.
            let builder = builder.no_proxy().redirect(reqwest::redirect::Policy::none());
            builder.connect_timeout(PATIENCE).timeout(PATIENCE)
        })?;
        Ok(Self { http, base })
    }

    /// An answer; `None` for a 404, which these services give for what there is not.
    pub(crate) async fn ask(
        &self,
        method: Method,
        path: &str,
        header: (&str, &str),
    ) -> Result<Option<String>, ServiceError> {
        let url = self.base.join(path).map_err(|error| ServiceError::Garbage(error.to_string()))?;
        let (name, value) = header;
        let mut answer = self.http.request(method, url).header(name, value).send().await?;
        match answer.status() {
            StatusCode::NOT_FOUND => return Ok(None),
            status if !status.is_success() => return Err(ServiceError::Refused(status)),
            _ => {}
        }
        let mut body = Vec::new();
        while let Some(bytes) = answer.chunk().await? {
            body.extend_from_slice(&bytes);
            if body.len() > MAX_ANSWER {
                return Err(ServiceError::Garbage("it has no end".to_owned()));
            }
        }
        let text = String::from_utf8(body);
        text.map(Some).map_err(|error| ServiceError::Garbage(error.to_string()))
    }

    pub(crate) async fn get(
        &self,
        path: &str,
        header: (&str, &str),
    ) -> Result<Option<String>, ServiceError> {
        self.ask(Method::GET, path, header).await
    }
}
