//! Why a host gives a lease back.

use sojourn_protocol::api::ReleaseRequest;
use std::fmt;

/// Why a host gives a lease back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReleaseReason {
    /// The client is stopping.
    Stopping,
    /// The machine's owner has paused it.
    Paused,
    /// The month's bytes are used up.
    MonthlyBudget,
    /// The host was done with the lease before it was granted again.
    Closed,
    /// Something failed.
    Fault(String),
}

impl fmt::Display for ReleaseReason {
    /// As the server is told.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stopping => ReleaseRequest::STOPPING,
            Self::Paused => ReleaseRequest::PAUSED,
            Self::MonthlyBudget => ReleaseRequest::USED_UP,
            Self::Closed => "the host has ended this lease",
            Self::Fault(reason) => reason,
        })
    }
}
