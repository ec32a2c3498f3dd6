//! Why a call to the server failed, sorted by what a caller can do about it.

use crate::tls::TlsFault;
use sojourn_protocol::{
    PROTOCOL_VERSION,
    error::{ApiError, ErrorKind, Retry},
};
use std::{error::Error, time::Duration};

/// Why there is no answer to use.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApiFailure {
    /// No connection, or it broke, or took too long.
    #[error("no answer from the server")]
    Unreachable(#[source] reqwest::Error),
    /// Something answers, but not in a way that this machine can trust.
    #[error("the server can't be trusted: {0}")]
    Untrusted(TlsFault),
    /// An answer that the server can't have meant: something stands between.
    #[error("an answer that is not understood (status {status}): {detail}")]
    Garbage { status: u16, detail: String, retry_after: Option<Duration> },
    /// The server said no.
    #[error("{error}")]
    Refused { error: ApiError, retry_after: Option<Duration> },
    /// The server speaks another version.
    #[error("the server speaks version `{version}`, this client {PROTOCOL_VERSION}")]
    Protocol { version: String },
}

/// What a caller can do about a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// Try again, after a pause.
    Later,
    /// Nothing: this host is no longer one, or the two can't understand each other.
    End,
    /// The lease or blob isn't this host's (any more).
    Gone,
    /// Mend the request as the kind says, or give up on it.
    Mend(ErrorKind),
}

impl ApiFailure {
    /// A server that has said nothing for too long.
    pub(crate) fn silent(limit: Duration) -> Self {
        let detail = format!("nothing came for {} ms", limit.as_millis());
        Self::Garbage { status: 0, detail, retry_after: None }
    }

    /// A refusal that the server didn't stay with.
    pub(crate) fn doubtful(refusal: &Self) -> Self {
        let detail = format!("{refusal}; but asked again, the server took the token");
        Self::Garbage { status: 0, detail, retry_after: None }
    }

    /// Does the server not take the token?
    pub(crate) fn refuses_the_token(&self) -> bool {
        matches!(self, Self::Refused { error, .. } if error.kind == ErrorKind::Unauthorized)
    }

    /// A store that gave no answer. The server is another, whom this says nothing about.
    pub(crate) fn unreached(error: reqwest::Error) -> Self {
        Self::Unreachable(error)
    }

    /// A request that got no answer.
    pub(crate) fn unanswered(error: reqwest::Error) -> Self {
        TlsFault::of(&error).map_or_else(|| Self::Unreachable(error), Self::Untrusted)
    }

    /// What the server named as a pause.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Garbage { retry_after, .. } | Self::Refused { retry_after, .. } => *retry_after,
            Self::Unreachable(_) | Self::Untrusted(_) | Self::Protocol { .. } => None,
        }
    }

    /// Has something before the server refused the request for what it is? The next attempt will then
    /// hardly fare better, until a person has changed something.
    pub(crate) fn is_refusal_on_the_way(&self) -> bool {
        // But for "too slow" and "too many", which pass.
        matches!(self, Self::Garbage { status: 400..500, .. })
            && !matches!(self, Self::Garbage { status: 408 | 425 | 429, .. })
    }

    /// What a person can do about it, where that is known.
    pub(crate) fn advice(&self) -> Option<&'static str> {
        match self {
            Self::Garbage { status: 413, .. } => Some(
                "a proxy before the server takes no body of this size: raise its limit \
                 (nginx: `client_max_body_size`)",
            ),
            failure if failure.is_refusal_on_the_way() => {
                Some("a proxy before the server refuses the request: look at its configuration")
            }
            _ => None,
        }
    }

    /// What can be done.
    pub(crate) fn remedy(&self) -> Remedy {
        match self {
            Self::Unreachable(_) | Self::Untrusted(_) | Self::Garbage { .. } => Remedy::Later,
            Self::Protocol { .. } => Remedy::End,
            Self::Refused { error, .. } => match error.kind {
                ErrorKind::Unauthorized | ErrorKind::UnsupportedProtocol => Remedy::End,
                ErrorKind::Forbidden | ErrorKind::NotFound => Remedy::Gone,
                kind if kind.retry() == Retry::Later => Remedy::Later,
                kind => Remedy::Mend(kind),
            },
        }
    }

    /// The failure and all its causes, in one line.
    pub(crate) fn whole_story(&self) -> String {
        let mut story = self.to_string();
        let mut source = self.source();
        while let Some(cause) = source {
            let text = cause.to_string();
            // Layers of the HTTP client repeat their cause's text.
            if !story.ends_with(&text) {
                story = format!("{story}: {text}");
            }
            source = cause.source();
        }
        story
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_remedy_and_only_the_hosts_own_standing_ends_the_daemon() {
        for kind in ErrorKind::ALL {
            let failure =
                ApiFailure::Refused { error: ApiError::new(kind, "x"), retry_after: None };
            let expected = match kind {
                ErrorKind::Unauthorized | ErrorKind::UnsupportedProtocol => Remedy::End,
                ErrorKind::Forbidden | ErrorKind::NotFound => Remedy::Gone,
                ErrorKind::StorageFull | ErrorKind::Unavailable | ErrorKind::Internal => {
                    Remedy::Later
                }
                kind => Remedy::Mend(kind),
            };
            assert_eq!(failure.remedy(), expected);
        }
        // A proxy's bare 401 is no word of the server's.
        let bare = ApiFailure::Garbage { status: 401, detail: "<html>".into(), retry_after: None };
        assert_eq!(bare.remedy(), Remedy::Later);
    }

    #[test]
    fn what_a_proxy_refuses_is_said_with_what_to_do_about_it() {
        let bare =
            |status| ApiFailure::Garbage { status, detail: "<html>".into(), retry_after: None };
        let advice = bare(413).advice().unwrap();
        assert!(advice.contains("`client_max_body_size`"), "{advice}");
        assert!(bare(403).advice().unwrap().contains("its configuration"));
        for passing in [0, 200, 408, 429, 502] {
            assert_eq!(bare(passing).advice(), None, "{passing}");
        }
        let error = ApiError::new(ErrorKind::TooLarge, "x");
        assert_eq!(ApiFailure::Refused { error, retry_after: None }.advice(), None);
    }
}
