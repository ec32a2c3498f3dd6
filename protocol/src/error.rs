//! Errors as they cross the wire: one table from kind to HTTP status and to whether a retry is safe.

use crate::{incarnation::Incarnation, metrics::is_default};
use serde::{Deserialize, Serialize};
use std::{error::Error, fmt};

/// The kind of error, which programs can match on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ErrorKind {
    /// The request can't be understood or asks for something impossible.
    Invalid,
    /// The other side speaks another protocol version.
    UnsupportedProtocol,
    /// No token, an unknown one, or a revoked one.
    Unauthorized,
    /// A known caller asks for something that isn't its own.
    Forbidden,
    /// Nothing has this name.
    NotFound,
    /// The request contradicts what is already there.
    Conflict,
    /// An upload doesn't go on where the server's part ends; the answer says where that is.
    WrongOffset,
    /// More bytes than were declared or are allowed.
    TooLarge,
    /// The bytes don't have the digest that was declared.
    DigestMismatch,
    /// A range outside the blob.
    RangeNotSatisfiable,
    /// The caller, or its address, asks for more than its share; the answer's `Retry-After` says when there is room.
    TooManyRequests,
    /// The server's disk is full.
    StorageFull,
    /// The server can't decide just now (journal or disk trouble, starting, stopping).
    Unavailable,
    /// A fault of the server; the cause is in its log.
    Internal,
}

impl ErrorKind {
    /// Every kind, for tests and documents.
    pub const ALL: [ErrorKind; 14] = [
        ErrorKind::Invalid,
        ErrorKind::UnsupportedProtocol,
        ErrorKind::Unauthorized,
        ErrorKind::Forbidden,
        ErrorKind::NotFound,
        ErrorKind::Conflict,
        ErrorKind::WrongOffset,
        ErrorKind::TooLarge,
        ErrorKind::DigestMismatch,
        ErrorKind::RangeNotSatisfiable,
        ErrorKind::TooManyRequests,
        ErrorKind::StorageFull,
        ErrorKind::Unavailable,
        ErrorKind::Internal,
    ];

    /// The HTTP status that carries this kind.
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            ErrorKind::Invalid | ErrorKind::UnsupportedProtocol => 400,
            ErrorKind::Unauthorized => 401,
            ErrorKind::Forbidden => 403,
            ErrorKind::NotFound => 404,
            ErrorKind::Conflict | ErrorKind::WrongOffset => 409,
            ErrorKind::TooLarge => 413,
            ErrorKind::RangeNotSatisfiable => 416,
            ErrorKind::DigestMismatch => 422,
            ErrorKind::TooManyRequests => 429,
            ErrorKind::Internal => 500,
            ErrorKind::Unavailable => 503,
            ErrorKind::StorageFull => 507,
        }
    }

    /// May the same request succeed later, unchanged?
    #[must_use]
    pub const fn retry(self) -> Retry {
        match self {
            ErrorKind::TooManyRequests
            | ErrorKind::StorageFull
            | ErrorKind::Unavailable
            | ErrorKind::Internal => Retry::Later,
            ErrorKind::WrongOffset | ErrorKind::DigestMismatch => Retry::Mended,
            _ => Retry::Never,
        }
    }
}

/// How a caller may retry after an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// The same request again, after a pause.
    Later,
    /// Again, once the cause is mended (another offset, the bytes sent anew).
    Mended,
    /// Not again.
    Never,
}

/// The body of every answer that isn't a success.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ApiError {
    /// The kind, for programs.
    pub kind: ErrorKind,
    /// The cause, for people; a lowercase fragment.
    pub message: String,
    /// With [`ErrorKind::WrongOffset`]: how many bytes the server holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// From a server that stands by: where the active one is; empty where that isn't known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<String>,
    /// With [`ErrorKind::Unauthorized`]: the server knows no such token. One that was revoked is known.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unknown_token: bool,
    /// With [`ErrorKind::Unavailable`]: another client with this host's identity was heard of since. A host that repeats its request
    /// with this in [`RIVAL_HEADER`](crate::incarnation::RIVAL_HEADER) shows that it is there too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub rival: Option<Box<Incarnation>>,
    /// With [`ErrorKind::Unauthorized`]: the host's identity is that of another machine, which works with it. This machine has to
    /// enrol anew.
    #[serde(default, skip_serializing_if = "is_default")]
    pub copied_identity: bool,
}

impl ApiError {
    /// An error of `kind` with a message for people.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            kind,
            message,
            offset: None,
            active: None,
            unknown_token: false,
            rival: None,
            copied_identity: false,
        }
    }

    /// The refusal of a token that the server doesn't know.
    #[must_use]
    pub fn unknown_token(message: impl Into<String>) -> Self {
        Self { unknown_token: true, ..Self::new(ErrorKind::Unauthorized, message) }
    }

    /// The refusal of a host while another client with its identity is the later one.
    #[must_use]
    pub fn with_rival(rival: Incarnation) -> Self {
        let message = "another client with this machine's identity was heard of since";
        Self { rival: Some(Box::new(rival)), ..Self::new(ErrorKind::Unavailable, message) }
    }

    /// The refusal of a host whose identity another machine works with.
    #[must_use]
    pub fn copied_identity() -> Self {
        let message = "another machine works with this machine's identity";
        Self { copied_identity: true, ..Self::new(ErrorKind::Unauthorized, message) }
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for ApiError {}

/// The text of an error followed by those of its sources, in one line.
///
/// A source whose text ends the line already is left out: layers of some libraries repeat what they wrap.
pub fn error_chain(error: &dyn Error) -> String {
    let mut line = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let text = cause.to_string();
        if !line.ends_with(&text) {
            line = format!("{line}: {text}");
        }
        source = cause.source();
    }
    line
}

/// The text of an error's last source, or its own. Libraries that repeat an address in each layer say what happened there.
pub fn root_cause(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Outer(&'static str, #[source] io::Error);

    #[test]
    fn an_error_chain_names_each_source_once() {
        let inner = || io::Error::other("the disk is full");
        assert_eq!(error_chain(&Outer("can't write", inner())), "can't write: the disk is full");
        assert_eq!(error_chain(&Outer("oh: the disk is full", inner())), "oh: the disk is full");
        assert_eq!(root_cause(&Outer("can't write", inner())), "the disk is full");
        assert_eq!(root_cause(&inner()), "the disk is full");
    }
}
