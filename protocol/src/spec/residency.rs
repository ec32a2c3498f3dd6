//! `placement.residency`: on which host a trial stays, and when it moves to another one.

use crate::quantity::Micros;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// The times that may lie between two looks at trials.
pub const RESIDENCY_INTERVALS: RangeInclusive<Micros> =
    Micros::from_secs(1)..=Micros::from_secs(3600);
/// The largest [`SpeCon::alpha`].
pub const MAX_GROWTH: f64 = 1000.0;
/// The most of [`SpeCon::least_batches`] and [`SpeCon::confirm`].
pub const MAX_LOOKS: u32 = 1_000_000;
/// The largest [`SpeCon::margin`].
pub const MAX_MARGIN: f64 = 1000.0;

/// Whether a trial stays on one host, and what moves it to another one.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ResidencyPolicy {
    /// A trial stays nowhere: each hop goes where it fits best.
    #[default]
    None,
    /// A trial begins on the host that is loaded least, and stays there.
    LeastLoaded,
    /// A trial stays until its loss seems to have converged, and moves where it is in nobody's way.
    SpeCon(SpeCon),
    /// A trial moves where that shortens what the host with most remaining work has to do.
    ShortestRemaining(Rebalancing),
}

/// When a trial counts as converged, and when it moves.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct SpeCon {
    /// The growth below which a trial may have converged.
    pub alpha: f64,
    /// The measure that `alpha` is compared with.
    pub growth: Growth,
    /// Between two looks at a trial.
    pub interval: Micros,
    /// A look counts only once so many batches have been reported since the last: a loss that is evaluated rarely is no flat one.
    pub least_batches: u32,
    /// So many looks of a trial that is converged confirm it before it asks to move; at 0 it asks at once.
    pub confirm: u32,
    /// Where trials that still learn are counted.
    pub scope: Scope,
    /// A trial moves where the score of the other host with it, and this much more, is below the score of its own host.
    pub margin: f64,
    /// Is a loss that rises growth too, as in the thesis?
    pub absolute: bool,
    /// Which reading of the algorithms.
    pub listing: Listing,
}

/// The measure of a trial's growth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Growth {
    /// How much of its highest loss a trial sheds from look to look. A long trial has less of it than a short one.
    PerLook,
    /// The same, for the part of the whole trial that was done between: 1 is the pace of a loss that falls evenly to zero.
    PerTrial,
}

/// Where trials that still learn are counted before a converged one asks to move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// On its host.
    Host,
    /// On all hosts.
    Cluster,
}

/// Which reading of the algorithms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
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

/// Moves by work that is known to remain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Rebalancing {
    /// Between two looks at the hosts.
    pub interval: Micros,
}

impl Default for Rebalancing {
    fn default() -> Self {
        Self { interval: Micros::from_secs(30) }
    }
}

impl ResidencyPolicy {
    /// The policy's word in a job file.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::LeastLoaded => "least-loaded",
            Self::SpeCon(_) => "specon",
            Self::ShortestRemaining(_) => "srpt",
        }
    }

    /// Do trials stay on a host?
    #[must_use]
    pub fn keeps_trials(&self) -> bool {
        *self != Self::None
    }

    /// Does it look at the losses of trials?
    #[must_use]
    pub const fn looks(&self) -> bool {
        matches!(self, Self::SpeCon(_))
    }

    /// Between two looks; none where no trial ever moves.
    #[must_use]
    pub const fn interval(&self) -> Option<Micros> {
        match self {
            Self::None | Self::LeastLoaded => None,
            Self::SpeCon(specon) => Some(specon.interval),
            Self::ShortestRemaining(rebalancing) => Some(rebalancing.interval),
        }
    }

    /// Is every parameter possible?
    ///
    /// # Errors
    /// The key of the first that isn't, and what it has to be.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        if self.interval().is_some_and(|interval| !RESIDENCY_INTERVALS.contains(&interval)) {
            return Err(("interval", "has to be from 1s to 1h".into()));
        }
        let Self::SpeCon(specon) = self else { return Ok(()) };
        let number = |key, value: f64, most: f64| match (0.0..=most).contains(&value) {
            true => Ok(()),
            false => Err((key, format!("has to be from 0 to {most}"))),
        };
        number("alpha", specon.alpha, MAX_GROWTH)?;
        number("margin", specon.margin, MAX_MARGIN)?;
        for (key, value) in [("least_batches", specon.least_batches), ("confirm", specon.confirm)] {
            if value > MAX_LOOKS {
                return Err((key, format!("has to be from 0 to {MAX_LOOKS}")));
            }
        }
        Ok(())
    }
}
