//! Why a journal can't be opened, and whether that is worth waiting for.

use crate::cli::terminal::exit::Failure;
use sojourn_protocol::error::error_chain;
use sojourn_server::journal::JournalError;

/// Why a journal can't be used.
pub(super) enum OpenError {
    /// The journal's storage isn't there, perhaps not yet.
    Unreachable(JournalError),
    /// The journal that was asked for can't work.
    Other(String),
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Unreachable(error) => Self::call(error_chain(&error)),
            OpenError::Other(message) => Self::call(message),
        }
    }
}
