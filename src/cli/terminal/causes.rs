//! Whose fault the errors of the libraries are that the commands call.

use crate::{
    api_client::ApiFailure,
    cli::terminal::exit::{Exit, Failure, with_sources},
};
use sojourn_ingest::{FetchError, IngestError};
use sojourn_model::ModelError;
use sojourn_protocol::error::ErrorKind;
use sojourn_slot::SlotError;
use std::io;

impl From<ApiFailure> for Failure {
    fn from(failure: ApiFailure) -> Self {
        let exit = match &failure {
            ApiFailure::Unreachable { .. } | ApiFailure::Garbage { .. } => Exit::Server,
            ApiFailure::Untrusted { fault, .. } if fault.is_the_callers() => Exit::Call,
            ApiFailure::Untrusted { .. } => Exit::Server,
            ApiFailure::Protocol { .. } => Exit::Call,
            ApiFailure::Damaged { .. } | ApiFailure::File { .. } => Exit::Work,
            ApiFailure::Refused { error, .. } => match error.kind {
                ErrorKind::Unavailable => Exit::Server,
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
        Self::new(exit, failure.to_string())
    }
}

impl From<ModelError> for Failure {
    fn from(error: ModelError) -> Self {
        Self::work(with_sources(&error))
    }
}

impl From<SlotError> for Failure {
    fn from(error: SlotError) -> Self {
        Self::work(with_sources(&error))
    }
}

impl From<IngestError> for Failure {
    fn from(error: IngestError) -> Self {
        // A disk that takes no more is no fault of the call; a file that can't be read may be.
        let exit = match &error {
            IngestError::Io { source, .. } => match source.kind() {
                io::ErrorKind::StorageFull
                | io::ErrorKind::QuotaExceeded
                | io::ErrorKind::FileTooLarge => Exit::Work,
                _ => Exit::Call,
            },
            IngestError::Fetch { source: FetchError::Cut { .. } | FetchError::Mixed, .. } => {
                Exit::Work
            }
            _ => Exit::Call,
        };
        Self::new(exit, with_sources(&error))
    }
}
