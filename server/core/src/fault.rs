//! Faults: errors after which a core can't go on.

use sojourn_state::FoldError;

/// A fault in a running core: what it decided doesn't fit its own state. The step's effects are dropped, and the
/// core answers nothing more: the state is to be read anew from the journal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CoreFault {
    /// An event that it decided can't be folded in.
    #[error(transparent)]
    Fold(#[from] FoldError),
}

/// A state can't be written as a snapshot.
#[derive(Debug, thiserror::Error)]
#[error("the state can't be written as a snapshot")]
pub struct SnapshotError(#[source] pub(crate) serde_json::Error);
