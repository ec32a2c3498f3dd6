//! Why there is no answer to use.

use reqwest::{StatusCode, Url};
use sojourn_client::tls::TlsFault;
use sojourn_protocol::{
    PROTOCOL_VERSION,
    digest::Digest,
    error::{ApiError, ErrorKind},
};
use std::{error::Error, io, path::PathBuf};

/// What went wrong between this program and a server.
#[derive(Debug)]
pub(crate) enum ApiFailure {
    /// No connection, or it broke.
    Unreachable { server: String, cause: String },
    /// Something answers, but not in a way that this machine can trust.
    Untrusted { server: String, fault: TlsFault },
    /// Something answers that is no Sojourn server, or an answer of it got damaged on the way.
    Garbage { server: String, status: StatusCode, detail: String },
    /// The server speaks another version.
    Protocol { version: String },
    /// The server said no.
    Refused { error: ApiError, server: String },
    /// A blob isn't what its name says.
    Damaged { blob: Digest },
    /// A local file can't be read or written.
    File { path: PathBuf, source: io::Error },
}

impl ApiFailure {
    pub(super) fn unreachable(server: &Url, error: reqwest::Error) -> Self {
        if let Some(fault) = TlsFault::of(&error) {
            return ApiFailure::Untrusted { server: shown(server), fault };
        }
        // The outer messages repeat the address; the innermost one says what happened.
        let mut cause: &dyn Error = &error;
        while let Some(inner) = cause.source() {
            cause = inner;
        }
        let cause =
            if error.is_timeout() { "no answer in time".to_owned() } else { cause.to_string() };
        ApiFailure::Unreachable { server: shown(server), cause }
    }

    pub(super) fn garbage(server: &Url, status: StatusCode, detail: String) -> Self {
        ApiFailure::Garbage { server: shown(server), status, detail }
    }

    pub(super) fn refused(server: &Url, error: ApiError) -> Self {
        ApiFailure::Refused { error, server: shown(server) }
    }

    /// The kind of a refusal.
    pub(crate) fn kind(&self) -> Option<ErrorKind> {
        match self {
            ApiFailure::Refused { error, .. } => Some(error.kind),
            _ => None,
        }
    }

    /// May the same request succeed in a moment?
    pub(crate) fn is_busy(&self) -> bool {
        match self {
            ApiFailure::Refused { error, .. } => error.kind == ErrorKind::Unavailable,
            // A proxy before a server that starts.
            ApiFailure::Garbage { status, .. } => {
                matches!(*status, StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE)
            }
            _ => false,
        }
    }

    /// Is the server away, rather than unwilling?
    pub(crate) fn is_away(&self) -> bool {
        self.is_busy() || matches!(self, ApiFailure::Unreachable { .. })
    }
}

/// The address as people write it.
fn shown(server: &Url) -> String {
    server.as_str().trim_end_matches('/').to_owned()
}

impl std::fmt::Display for ApiFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ApiFailure::Untrusted { server, fault } => {
                write!(f, "the server at {server} can't be trusted: {fault}")
            }
            ApiFailure::Unreachable { server, cause } => {
                write!(f, "no server at {server} ({cause}); start one with `sojourn serve`")
            }
            ApiFailure::Garbage { server, status, detail } => write!(
                f,
                "{server} doesn't answer like a sojourn server (status {}): {detail}",
                status.as_u16()
            ),
            ApiFailure::Protocol { version } => write!(
                f,
                "the server speaks protocol version {version}, this program {PROTOCOL_VERSION}; use the same version of sojourn on both sides"
            ),
            ApiFailure::Refused { error, server } => match error.kind {
                ErrorKind::Unauthorized => write!(
                    f,
                    "{server} doesn't accept the token ({error}); pass the one in the server's file `admin-token` as --token or SOJOURN_TOKEN"
                ),
                ErrorKind::Forbidden => {
                    write!(
                        f,
                        "{server} doesn't allow this with this token ({error}); it needs the admin token"
                    )
                }
                ErrorKind::StorageFull => write!(f, "the server's disk is full ({error})"),
                ErrorKind::Unavailable => write!(f, "{server} can't answer just now ({error})"),
                _ => write!(f, "{error}"),
            },
            ApiFailure::Damaged { blob } => {
                write!(f, "what the server sent for blob {blob} has another digest")
            }
            ApiFailure::File { path, source } => write!(f, "`{}`: {source}", path.display()),
        }
    }
}

impl Error for ApiFailure {}
