//! How the table of a sheet begins.

/// The first row of a sheet's table, which titles may be above.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begins {
    /// The names of the columns: more than half as many cells as the fullest of the first rows, and two at least.
    AtNames,
    /// A row of values, some of which may be missing: two cells at least.
    AtRows,
}
