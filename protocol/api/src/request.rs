//! A request that is to be made.

use crate::operation::{Endpoint, Method};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use std::{marker::PhantomData, time::Duration};

/// A request to an endpoint, which an HTTP client sends.
#[derive(Debug)]
pub struct Request<'a, E: Endpoint> {
    path: String,
    body: Option<&'a E::Body>,
    timeout: Option<Duration>,
    endpoint: PhantomData<fn() -> E>,
}

impl<E: Endpoint> Clone for Request<'_, E> {
    fn clone(&self) -> Self {
        Self { path: self.path.clone(), ..*self }
    }
}

impl<'a, E: Endpoint> Request<'a, E> {
    pub(crate) const fn new(path: String, body: Option<&'a E::Body>) -> Self {
        Self { path, body, timeout: None, endpoint: PhantomData }
    }

    /// Each attempt takes no longer than this.
    #[must_use]
    pub const fn within(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Adds a parameter of the query.
    pub(crate) fn with(mut self, name: &str, value: impl ToString) -> Self {
        let mark = if self.path.contains('?') { '&' } else { '?' };
        let value = value.to_string();
        let value = utf8_percent_encode(&value, NON_ALPHANUMERIC);
        self.path = format!("{}{mark}{name}={value}", self.path);
        self
    }

    /// The method.
    #[must_use]
    pub const fn method(&self) -> Method {
        E::OPERATION.method
    }

    /// The path below the server's address, with its query.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The body.
    #[must_use]
    pub const fn body(&self) -> Option<&'a E::Body> {
        self.body
    }

    /// How long an attempt may take; without one, as long as the connection's own limits allow.
    #[must_use]
    pub const fn timeout(&self) -> Option<Duration> {
        self.timeout
    }
}
