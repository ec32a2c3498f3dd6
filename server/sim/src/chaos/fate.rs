//! How a unit of a simulated host ends.

/// How a unit is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnitFate {
    /// With all that was asked for.
    Done,
    /// Early, with a part.
    Part,
    /// The trainer fails.
    Fails,
    /// The loss is no number.
    Diverges,
    /// With a report that says what can't be.
    Lies,
}
