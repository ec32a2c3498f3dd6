//! SpeCon's parameters.

use sojourn_protocol::quantity::Micros;

/// When a trial counts as converged, and when it moves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SpeCon {
    /// The growth below which a trial may have converged.
    pub alpha: f64,
    /// What `alpha` is compared with.
    pub growth: Growth,
    /// Between two looks at a trial.
    pub interval: Micros,
    /// A look counts only once so many batches have been reported since the last: a loss that is evaluated rarely is no flat one.
    pub least_batches: u32,
    /// So many looks of a trial that is converged confirm it before it asks to move; at 0 it asks at once.
    pub confirm: u32,
    /// Where trials that still learn are counted.
    pub scope: Scope,
    /// A move has to lower the score of the host that is left to less than the other's before by so much more than the trial's weight.
    pub margin: f64,
    /// Is a loss that rises growth too, as in the thesis?
    pub absolute: bool,
    /// Which reading of the algorithms.
    pub listing: Listing,
}

/// The unit of growth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Growth {
    /// How much of its highest loss a trial sheds from look to look. A long trial has less of it than a short one.
    PerLook,
    /// The same, for the part of the whole trial that was done between: 1 is the pace of a loss that falls evenly to zero.
    PerTrial,
}

/// Where trials that still learn are counted before a converged one asks to move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// On its host.
    Host,
    /// On all hosts.
    Cluster,
}

/// Which reading of the algorithms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listing {
    /// As the thesis' listings are printed. Literally read no trial ever gets into the last category, and no host ever gives one away.
    Printed,
    /// As the thesis' text and examples describe it: a trial moves to the host with the least score, whatever its own weight does to it, and
    /// one that stays where it is has used its move.
    Thesis,
    /// A trial moves only where that lowers the larger of the two scores, may ask again later where it doesn't, and of those to
    /// rebalance the one with most left to do goes first.
    Improved,
}

impl SpeCon {
    /// The thesis' parameters: 0.01 from look to look, looks every 30 seconds, as its text describes.
    #[must_use]
    pub const fn thesis() -> Self {
        Self {
            alpha: 0.01,
            growth: Growth::PerLook,
            interval: Micros::from_secs(30),
            least_batches: 20,
            confirm: 1,
            scope: Scope::Host,
            margin: 0.0,
            absolute: true,
            listing: Listing::Thesis,
        }
    }
}

impl Default for SpeCon {
    fn default() -> Self {
        Self {
            alpha: 0.3,
            growth: Growth::PerTrial,
            absolute: false,
            listing: Listing::Improved,
            ..Self::thesis()
        }
    }
}
