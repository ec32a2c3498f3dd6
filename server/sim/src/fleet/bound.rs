//! A lower bound of the makespan, and which of several it is.

use serde::Serialize;

/// A lower bound of the makespan.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Bound {
    /// The largest of all.
    pub(crate) micros: u64,
    /// All work over all capacity, in microseconds.
    pub(crate) capacity: f64,
    pub(crate) names: Names,
}

/// Which bound it is that holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Names {
    /// All work over all capacity.
    #[default]
    Capacity,
    /// The largest load of a host.
    LargestLoad,
    /// All work over all capacity, where lines bound what hosts can do.
    Lines,
    /// The longest trial.
    LongestTrial,
    /// Several of the longest trials on as many of the fastest slots.
    LongestTrials,
}

impl Names {
    /// For tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Names::Capacity => "capacity",
            Names::LargestLoad => "largest load",
            Names::Lines => "lines",
            Names::LongestTrial => "longest trial",
            Names::LongestTrials => "longest trials",
        }
    }
}
