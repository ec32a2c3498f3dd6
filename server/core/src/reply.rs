//! The return type of handlers: an answer, or a refusal.

use crate::fault::CoreFault;
use sojourn_protocol::error::{ApiError, ErrorKind};

/// Why a command isn't carried out.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The command can't be carried out: whoever sent it is told why.
    Declined(ApiError),
    /// The core can't go on.
    Fault(CoreFault),
}

/// The answer of a handler.
pub(crate) type Reply<T> = Result<T, Refusal>;

impl From<ApiError> for Refusal {
    fn from(error: ApiError) -> Self {
        Self::Declined(error)
    }
}

impl From<CoreFault> for Refusal {
    fn from(fault: CoreFault) -> Self {
        Self::Fault(fault)
    }
}

impl Refusal {
    /// A refusal of this kind.
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self::Declined(ApiError::new(kind, message))
    }
}

/// A refusal of a request that can't mean anything.
pub(crate) fn invalid<T>(message: impl Into<String>) -> Reply<T> {
    Err(Refusal::new(ErrorKind::Invalid, message))
}

/// A refusal of what can't be done as things are now.
pub(crate) fn conflict<T>(message: impl Into<String>) -> Reply<T> {
    Err(Refusal::new(ErrorKind::Conflict, message))
}
