//! Why a unit comes to nothing, and whose fault that is: what is done about it is the caller's.

use crate::{runner::RunnerError, transfer::FetchError};
use sojourn_http::CallError;
use sojourn_protocol::error::error_chain;

/// Why a unit didn't get to a result.
pub(crate) enum Trouble {
    /// The daemon has to end.
    End(CallError),
    /// It has to, because its trainers calculate otherwise than they did.
    Unlike(RunnerError),
    /// The lease is over already.
    Over,
    /// The daemon ends, and the trainer doesn't.
    Leaving,
    /// This unit can't be done here, or not now.
    Unit(String),
    /// Nor can any other, for a while.
    Machine(String),
}

impl Trouble {
    /// That of a blob that can't be had.
    pub(crate) fn of_fetch(error: FetchError) -> Self {
        match error {
            FetchError::End(failure) => Self::End(failure),
            error @ FetchError::Refused { .. } => Self::Unit(error_chain(&error)),
            // A path that alters bytes will alter the next unit's too.
            error @ (FetchError::Altered { .. } | FetchError::Disk { .. }) => {
                Self::Machine(error_chain(&error))
            }
        }
    }

    /// In words.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::End(failure) => failure.to_string(),
            Self::Unlike(error) => error.to_string(),
            Self::Over => "the lease is over".to_owned(),
            Self::Leaving => "the client is stopping, and the trainer isn't".to_owned(),
            Self::Unit(reason) | Self::Machine(reason) => reason.clone(),
        }
    }
}
