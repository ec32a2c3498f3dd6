//! Hops of a trial in a row that are for one place.

/// Hops are counted over all that the trial has left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) trial: usize,
    pub(super) place: usize,
    /// The first of them, and the one behind the last.
    pub(super) first: u64,
    pub(super) end: u64,
    /// The place goes on with the share of which this is the largest.
    pub(super) urgency: u64,
}
