//! The exit code for each error of the libraries that the commands call.

use crate::cli::terminal::exit::{Exit, Failure};
use sojourn_ingest::{FetchError, IngestError};
use sojourn_model::ModelError;
use sojourn_protocol::error::error_chain;
use sojourn_slot::SlotError;
use std::io;

/// A model that can't be built or read: the work failed.
pub(crate) fn model_failure(error: ModelError) -> Failure {
    Failure::work(error_chain(&error))
}

/// A trainer that can't be found or started, or that ended: the work failed.
pub(crate) fn slot_failure(error: SlotError) -> Failure {
    Failure::work(error_chain(&error))
}

/// Data that can't be read. A full disk or a broken download fails the work; anything else is the call's fault.
pub(crate) fn ingest_failure(error: IngestError) -> Failure {
    if let Some(problems) = error.several() {
        return Failure::calls(problems);
    }
    let exit = match &error {
        IngestError::Io { source, .. } => match source.kind() {
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => Exit::Work,
            _ => Exit::Call,
        },
        IngestError::Fetch { source: FetchError::Cut { .. } | FetchError::Mixed, .. } => Exit::Work,
        _ => Exit::Call,
    };
    Failure::new(exit, error_chain(&error))
}
