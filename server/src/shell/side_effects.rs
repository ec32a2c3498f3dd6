//! Side effects: work outside of the journal that the core asks for.

use sojourn_protocol::{digest::Digest, ids::LeaseId};

/// One side effect. It is carried out once all events before it are durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SideEffect {
    /// There are uploads to assimilate.
    Assimilate,
    /// Delete this blob, then tell [`sojourn_core::Command::Deleted`].
    Delete(Digest),
    /// Drop what was uploaded under this lease.
    DropUpload(LeaseId),
}
