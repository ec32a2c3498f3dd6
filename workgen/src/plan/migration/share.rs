//! Hops of a trial in a row that are for one machine.

/// Hops are counted over all that the trial has left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) trial: usize,
    pub(super) machine: usize,
    /// The first of them, and the one behind the last.
    pub(super) first: u64,
    pub(super) end: u64,
    /// The machine goes on with the share of which this is the largest.
    pub(super) urgency: u64,
}
