//! Failed calls in the command line's words: what happened, and what to do about it.

use crate::exit::{Exit, Failure};
use sojourn_http::{CallError, TransferError};
use sojourn_protocol::{
    PROTOCOL_VERSION,
    error::{ErrorKind, root_cause},
};

/// The message for people about a failed call.
#[must_use]
pub fn message(error: &CallError) -> String {
    match error {
        CallError::Untrusted { .. } => error.to_string(),
        CallError::Unreachable { server, source } => {
            let cause = innermost(source);
            format!("no server at {server} ({cause}); start one with `sojourn serve`")
        }
        CallError::InvalidResponse { server, status, detail, .. } => {
            format!("{server} doesn't answer like a sojourn server (status {status}): {detail}")
        }
        CallError::Protocol { version } => other_version(version),
        CallError::Refused { error, server, .. } => match error.kind {
            ErrorKind::UnsupportedProtocol => other_version(&error.message),
            ErrorKind::Unauthorized => format!(
                "{server} refuses ({error}); give a token that it takes by --token-file or SOJOURN_TOKEN; the \
                 server's own is in its file `admin-token`"
            ),
            ErrorKind::Forbidden => {
                format!("{server} doesn't allow this with this token ({error})")
            }
            ErrorKind::StorageFull => format!("the server's disk is full ({error})"),
            ErrorKind::Unavailable => format!("{server} can't answer just now ({error})"),
            _ => error.to_string(),
        },
    }
}

fn other_version(version: &str) -> String {
    format!(
        "the server speaks protocol version {version}, this program {PROTOCOL_VERSION}; use the \
         same version of sojourn on both sides"
    )
}

/// The outer messages repeat the address; the innermost one says what happened.
fn innermost(error: &reqwest::Error) -> String {
    if error.is_timeout() { "no answer in time".to_owned() } else { root_cause(error) }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        let exit = match &error {
            CallError::Unreachable { .. } | CallError::InvalidResponse { .. } => Exit::Server,
            CallError::Untrusted { fault, .. } if fault.is_the_callers() => Exit::Call,
            CallError::Untrusted { .. } => Exit::Server,
            CallError::Protocol { .. } => Exit::Call,
            CallError::Refused { error, .. } => match error.kind {
                ErrorKind::Unavailable | ErrorKind::TooManyRequests => Exit::Server,
                ErrorKind::Internal | ErrorKind::StorageFull | ErrorKind::DigestMismatch => {
                    Exit::Work
                }
                ErrorKind::Invalid
                | ErrorKind::UnsupportedProtocol
                | ErrorKind::Unauthorized
                | ErrorKind::Forbidden
                | ErrorKind::NotFound
                | ErrorKind::Conflict
                | ErrorKind::WrongOffset
                | ErrorKind::TooLarge
                | ErrorKind::RangeNotSatisfiable => Exit::Call,
            },
        };
        Self::new(exit, message(&error))
    }
}

impl From<TransferError> for Failure {
    fn from(error: TransferError) -> Self {
        match error {
            TransferError::Call(error) => error.into(),
            TransferError::Damaged { .. } => Self::work(error.to_string()),
            TransferError::File { path, source } => {
                Self::work(format!("`{}`: {source}", path.display()))
            }
        }
    }
}
