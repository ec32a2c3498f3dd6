//! Why a call failed, and what a caller can do about it.

use crate::tls::TlsFault;
use reqwest::{StatusCode, Url};
use sojourn_protocol::{
    PROTOCOL_VERSION,
    digest::Digest,
    error::{ApiError, ErrorKind, Retry},
    incarnation::Incarnation,
};
use std::{io, path::PathBuf, time::Duration};

/// The store's name in errors: its signed address is a secret.
pub(crate) const STORE: &str = "the store";

/// Why a call gave no answer that can be used.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says it")]
pub enum CallError {
    #[error("no answer from the server at {server}")]
    Unreachable { server: String, source: reqwest::Error },
    #[error("the server at {server} can't be trusted: {fault}")]
    Untrusted { server: String, fault: TlsFault },
    #[error("an invalid response from {server} (status {status}): {detail}")]
    InvalidResponse {
        server: String,
        /// The answer's HTTP status; 0 where there was none.
        status: u16,
        detail: String,
        retry_after: Option<Duration>,
    },
    /// The server refuses.
    #[error("{error}")]
    Refused { server: String, error: ApiError, retry_after: Option<Duration> },
    #[error(
        "the server speaks protocol version `{version}`, this program version {PROTOCOL_VERSION}"
    )]
    Protocol { version: String },
}

/// How a caller recovers from a failed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    /// Try again, after a pause.
    Retry,
    /// Nothing: the token isn't valid any more, or the two can't understand each other.
    End,
    /// Forget it: the lease or blob isn't the caller's (any more).
    Gone,
    /// Change the request as the kind says, or give up on it.
    Amend(ErrorKind),
}

impl CallError {
    /// A request that got no answer.
    #[must_use]
    pub fn from_transport(server: &str, source: reqwest::Error) -> Self {
        let server = server.to_owned();
        match TlsFault::of(&source) {
            Some(fault) => Self::Untrusted { server, fault },
            None => Self::Unreachable { server, source },
        }
    }

    /// A server that has sent nothing for too long.
    #[must_use]
    pub fn timed_out(server: &str, limit: Duration) -> Self {
        let detail = format!("nothing came for {} ms", limit.as_millis());
        Self::InvalidResponse { server: server.to_owned(), status: 0, detail, retry_after: None }
    }

    /// An answer that can't be used, for this reason.
    #[must_use]
    pub fn invalid(server: &str, status: StatusCode, detail: String) -> Self {
        let (server, status) = (server.to_owned(), status.as_u16());
        Self::InvalidResponse { server, status, detail, retry_after: None }
    }

    /// A refusal that the server itself has contradicted.
    #[must_use]
    pub fn contradicted(refusal: &Self) -> Self {
        let server = refusal.server().to_owned();
        let detail = format!("{refusal}; but asked again, the server took the token");
        Self::InvalidResponse { server, status: 0, detail, retry_after: None }
    }

    /// Did the store, where the server had pointed, give no usable answer?
    #[must_use]
    pub fn is_of_store(&self) -> bool {
        self.server() == STORE
    }

    fn server(&self) -> &str {
        match self {
            Self::Unreachable { server, .. }
            | Self::Untrusted { server, .. }
            | Self::InvalidResponse { server, .. }
            | Self::Refused { server, .. } => server,
            Self::Protocol { .. } => "",
        }
    }

    /// The kind of a refusal.
    #[must_use]
    pub const fn kind(&self) -> Option<ErrorKind> {
        match self {
            Self::Refused { error, .. } => Some(error.kind),
            _ => None,
        }
    }

    /// Does the server refuse the token?
    #[must_use]
    pub fn refuses_token(&self) -> bool {
        self.kind() == Some(ErrorKind::Unauthorized)
    }

    /// The other client of which the server has heard since, with the same identity.
    #[must_use]
    pub fn rival(&self) -> Option<Incarnation> {
        match self {
            Self::Refused { error, .. } => error.rival.as_deref().copied(),
            _ => None,
        }
    }

    /// The pause that the server asks for (RFC 9110, section 10.2.3; only seconds are understood, no dates).
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::InvalidResponse { retry_after, .. } | Self::Refused { retry_after, .. } => {
                *retry_after
            }
            Self::Unreachable { .. } | Self::Untrusted { .. } | Self::Protocol { .. } => None,
        }
    }

    /// How a caller recovers.
    #[must_use]
    pub fn recovery(&self) -> Recovery {
        match self {
            Self::Unreachable { .. } | Self::Untrusted { .. } | Self::InvalidResponse { .. } => {
                Recovery::Retry
            }
            Self::Protocol { .. } => Recovery::End,
            Self::Refused { error, .. } => match error.kind {
                ErrorKind::Unauthorized | ErrorKind::UnsupportedProtocol => Recovery::End,
                ErrorKind::Forbidden | ErrorKind::NotFound => Recovery::Gone,
                kind if kind.retry() == Retry::Later => Recovery::Retry,
                kind => Recovery::Amend(kind),
            },
        }
    }

    /// May the same request succeed later, or at another server, while nobody changes anything?
    #[must_use]
    pub fn retry(&self) -> Retry {
        match self.recovery() {
            Recovery::Retry if self.is_refused_by_proxy() => Retry::Never,
            Recovery::Retry => Retry::Later,
            Recovery::Amend(kind) => kind.retry(),
            Recovery::End | Recovery::Gone => Retry::Never,
        }
    }

    /// May the same request succeed in a moment? The server is there and refuses for now: it starts, stands by, or has had
    /// too much from this address.
    #[must_use]
    pub const fn is_busy(&self) -> bool {
        match self {
            Self::Refused { error, .. } => {
                matches!(error.kind, ErrorKind::Unavailable | ErrorKind::TooManyRequests)
            }
            // A proxy before a server that starts.
            Self::InvalidResponse { status, .. } => matches!(*status, 502 | 503),
            _ => false,
        }
    }

    /// Is the server away, rather than unwilling?
    #[must_use]
    pub const fn is_away(&self) -> bool {
        self.is_busy() || matches!(self, Self::Unreachable { .. })
    }

    /// Has a proxy before the server refused the request for what it is? The next attempt will then hardly succeed,
    /// until a person has changed something.
    #[must_use]
    pub const fn is_refused_by_proxy(&self) -> bool {
        // "Too slow", "too early" and "too many" pass.
        matches!(self, Self::InvalidResponse { status: 400..500, .. })
            && !matches!(self, Self::InvalidResponse { status: 408 | 425 | 429, .. })
    }

    /// Advice for people, if there is any.
    #[must_use]
    pub const fn advice(&self) -> Option<&'static str> {
        match self {
            Self::InvalidResponse { status: 413, .. } => Some(
                "a proxy before the server takes no body of this size: raise its limit \
                 (nginx: `client_max_body_size`)",
            ),
            failure if failure.is_refused_by_proxy() => {
                Some("a proxy before the server refuses the request: look at its configuration")
            }
            _ => None,
        }
    }
}

/// The address of a server as people write it.
#[must_use]
pub fn shown(server: &Url) -> String {
    server.as_str().trim_end_matches('/').to_owned()
}

/// Why a blob didn't get across.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says it")]
pub enum TransferError {
    /// A call failed.
    #[error(transparent)]
    Call(#[from] CallError),
    #[error("what the server sent for blob {blob} has another digest")]
    Damaged { blob: Digest },
    #[error("can't read `{}`", path.display())]
    File { path: PathBuf, source: io::Error },
}

impl TransferError {
    /// The call that failed, if it was one.
    #[must_use]
    pub const fn call(&self) -> Option<&CallError> {
        match self {
            Self::Call(error) => Some(error),
            Self::Damaged { .. } | Self::File { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bare(status: u16) -> CallError {
        let (server, detail) = ("http://a".to_owned(), "<html>".to_owned());
        CallError::InvalidResponse { server, status, detail, retry_after: None }
    }

    fn refused(kind: ErrorKind) -> CallError {
        let error = ApiError::new(kind, "x");
        CallError::Refused { server: "http://a".to_owned(), error, retry_after: None }
    }

    #[test]
    fn each_refusal_has_a_recovery_and_only_a_bad_token_or_version_ends_the_caller() {
        for kind in ErrorKind::ALL {
            let expected = match kind {
                ErrorKind::Unauthorized | ErrorKind::UnsupportedProtocol => Recovery::End,
                ErrorKind::Forbidden | ErrorKind::NotFound => Recovery::Gone,
                ErrorKind::TooManyRequests
                | ErrorKind::StorageFull
                | ErrorKind::Unavailable
                | ErrorKind::Internal => Recovery::Retry,
                kind => Recovery::Amend(kind),
            };
            assert_eq!(refused(kind).recovery(), expected);
            assert_eq!(refused(kind).retry(), kind.retry());
        }
        // A bare 401 comes from a proxy, not from the server.
        assert_eq!(bare(401).recovery(), Recovery::Retry);
        assert_eq!(bare(401).retry(), Retry::Never);
    }

    #[test]
    fn a_refusal_by_a_proxy_carries_advice() {
        let advice = bare(413).advice().unwrap();
        assert!(advice.contains("`client_max_body_size`"), "{advice}");
        assert!(bare(403).advice().unwrap().contains("its configuration"));
        for passing in [0, 200, 408, 429, 502] {
            assert_eq!(bare(passing).advice(), None, "{passing}");
            assert_eq!(bare(passing).retry(), Retry::Later, "{passing}");
        }
        assert_eq!(refused(ErrorKind::TooLarge).advice(), None);
    }
}
