//! What ends a command early: a message, and the exit code that says whose fault it is.

use super::output;
use crate::api_client::ApiFailure;
use sojourn_ingest::{FetchError, IngestError};
use sojourn_protocol::error::ErrorKind;
use sojourn_slot::SlotError;
use std::{error::Error, io, process::ExitCode};

/// Why a command stops.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    /// Lines for stderr; none where all has been said.
    messages: Vec<String>,
}

/// The exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Exit {
    /// Whoever read our output has seen enough.
    Done,
    /// The work failed.
    Work,
    /// The call was wrong.
    Call,
    /// The server could not be reached.
    Server,
}

impl Exit {
    const fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Work => 1,
            Exit::Call => 2,
            Exit::Server => 3,
        }
    }
}

impl Failure {
    /// The work failed.
    pub(crate) fn work(message: impl Into<String>) -> Self {
        Self { exit: Exit::Work, messages: vec![message.into()] }
    }

    /// The call was wrong.
    pub(crate) fn call(message: impl Into<String>) -> Self {
        Self { exit: Exit::Call, messages: vec![message.into()] }
    }

    /// The call was wrong in several ways; none, where they have been told.
    pub(crate) fn calls(messages: Vec<String>) -> Self {
        Self { exit: Exit::Call, messages }
    }

    /// Writing to stdout failed: at the end of a pipe that is no fault.
    pub(crate) fn output(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self { exit: Exit::Done, messages: Vec::new() };
        }
        Self::work(format!("can't write the output: {error}"))
    }

    /// The messages.
    pub(crate) fn messages(&self) -> &[String] {
        &self.messages
    }

    /// The same failure, about which nothing more need be said.
    pub(crate) fn silent(self) -> Self {
        Self { messages: Vec::new(), ..self }
    }

    /// Prints the messages; the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        for message in &self.messages {
            output::error(message);
        }
        ExitCode::from(self.exit.code())
    }
}

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
        Self { exit, messages: vec![failure.to_string()] }
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
        Self { exit, messages: vec![with_sources(&error)] }
    }
}

/// An error and what caused it, in one line.
pub(crate) fn with_sources(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
