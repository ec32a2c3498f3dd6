//! CPU shares, `placement.host_shares` in a job file: how the trials of a job that run on one host divide its processor.

use crate::quantity::Micros;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// The times that may lie between two plans.
pub const CPU_SHARE_INTERVALS: RangeInclusive<Micros> =
    Micros::from_secs(1)..=Micros::from_secs(3600);
/// The longest [`FlowCon::longest_interval`].
pub const MAX_CPU_SHARE_INTERVAL: Micros = Micros::from_secs(24 * 3600);
/// The largest [`FlowCon::alpha`].
pub const MAX_ALPHA: f64 = 1000.0;
/// The values that [`FlowCon::beta`] may have.
pub const BETAS: RangeInclusive<f64> = 1.0..=1000.0;
/// The values that [`First::least`] may have.
pub const LEAST_WEIGHTS: RangeInclusive<f64> = 0.001..=1.0;

/// The policy that divides a host's processor among the trials of a job that run on it.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = SharePolicy))]
#[serde(rename_all = "lowercase")]
pub enum CpuSharePolicy {
    /// All have the same.
    #[default]
    Equal,
    /// By growth efficiency: who still learns has more.
    FlowCon(FlowCon),
    /// One goes before the others.
    First(First),
}

/// FlowCon's parameters.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct FlowCon {
    /// The growth efficiency below which a trial counts as one that learns little.
    pub alpha: f64,
    /// The measure that `alpha` is compared with.
    pub threshold: Threshold,
    /// Between two plans, and the length of a window.
    pub interval: Micros,
    /// The least share of each of n trials is 1 / (beta n).
    pub beta: f64,
    /// While nobody learns, the time between two plans doubles, up to this.
    pub longest_interval: Micros,
    /// Is a loss that rises growth too, as in the thesis?
    pub absolute: bool,
    /// The meaning of a share for the processor.
    pub apply: Apply,
}

/// The measure that the threshold of growth efficiency is compared with. Shares go by efficiency per second in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Threshold {
    /// How much of its highest loss a trial sheds in a second that has the whole processor. Long trials have less of it than short ones.
    PerSecond,
    /// The same in the time that the whole trial takes with all the processor: 1 is the pace of a loss that falls evenly to zero.
    PerTrial,
}

/// The meaning of a share for the processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Apply {
    /// A weight: what one leaves another takes.
    Weight,
    /// A cap: nobody has more than their share, also where the processor is idle.
    Cap,
}

impl FlowCon {
    /// The thesis' parameters: an efficiency of 0.05 a second, 30 seconds, a least share of 1 / 2n, caps. What the thesis doesn't say is
    /// taken from its authors' program and figures.
    #[must_use]
    pub const fn thesis() -> Self {
        Self {
            alpha: 0.05,
            threshold: Threshold::PerSecond,
            interval: Micros::from_secs(30),
            beta: 2.0,
            longest_interval: Micros::from_secs(480),
            absolute: true,
            apply: Apply::Cap,
        }
    }
}

impl Default for FlowCon {
    /// A threshold for each trial's own length, weights, and a loss that rises isn't growth.
    fn default() -> Self {
        Self {
            alpha: 1.0,
            threshold: Threshold::PerTrial,
            absolute: false,
            apply: Apply::Weight,
            ..Self::thesis()
        }
    }
}

/// One trial has all that the others don't need to stay alive.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct First {
    /// Which goes first.
    pub order: Order,
    /// Between two plans.
    pub interval: Micros,
    /// The weight of each other trial, beside 1 of the first. A trial whose remaining time isn't known has 1 too.
    pub least: f64,
}

/// Which trial goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// The one with the shortest remaining processing time.
    ShortestRemaining,
    /// The one that has had the least of the processor so far (least attained service).
    LeastAttained,
}

impl First {
    /// With plans every 30 seconds, and a hundredth for the others.
    #[must_use]
    pub const fn new(order: Order) -> Self {
        Self { order, interval: Micros::from_secs(30), least: 0.01 }
    }
}

impl CpuSharePolicy {
    /// The policy's word in a job file.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::FlowCon(_) => "flowcon",
            Self::First(First { order: Order::ShortestRemaining, .. }) => "srpt",
            Self::First(First { order: Order::LeastAttained, .. }) => "las",
        }
    }

    /// Between two plans where nothing says otherwise; none where CPU shares never change.
    #[must_use]
    pub const fn interval(&self) -> Micros {
        match self {
            Self::Equal => Micros::ZERO,
            Self::FlowCon(FlowCon { interval, .. }) | Self::First(First { interval, .. }) => {
                *interval
            }
        }
    }

    /// The meaning of a share for the processor.
    #[must_use]
    pub const fn apply(&self) -> Apply {
        match self {
            Self::FlowCon(flowcon) => flowcon.apply,
            Self::Equal | Self::First(_) => Apply::Weight,
        }
    }

    /// How many times longer than with equal CPU shares one of `n` trials may take, at most: of shares as weights between the least of
    /// the policy and 1, and of shares as caps.
    #[must_use]
    pub fn longest_slowdown(&self, n: u32) -> f64 {
        match self {
            Self::Equal => 1.0,
            Self::FlowCon(flowcon) => flowcon.beta * f64::from(n.max(1)),
            Self::First(first) => 1.0 + 1.0 / first.least,
        }
    }

    /// Is every parameter possible?
    ///
    /// # Errors
    /// The key of the first that isn't, and what it has to be.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        let interval = self.interval();
        if *self != Self::Equal && !CPU_SHARE_INTERVALS.contains(&interval) {
            return Err(("interval", "has to be from 1s to 1h".into()));
        }
        match self {
            Self::Equal => Ok(()),
            Self::First(first) if !LEAST_WEIGHTS.contains(&first.least) => {
                Err(("least", range(&LEAST_WEIGHTS)))
            }
            Self::First(_) => Ok(()),
            Self::FlowCon(flowcon) if !(0.0..=MAX_ALPHA).contains(&flowcon.alpha) => {
                Err(("alpha", range(&(0.0..=MAX_ALPHA))))
            }
            Self::FlowCon(flowcon) if !BETAS.contains(&flowcon.beta) => {
                Err(("beta", range(&BETAS)))
            }
            Self::FlowCon(flowcon)
                if !(interval..=MAX_CPU_SHARE_INTERVAL).contains(&flowcon.longest_interval) =>
            {
                Err(("longest_interval", "has to be from `interval` to 1d".into()))
            }
            Self::FlowCon(_) => Ok(()),
        }
    }
}

fn range(wanted: &RangeInclusive<f64>) -> String {
    format!("has to be from {} to {}", wanted.start(), wanted.end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_bounds_how_much_longer_a_unit_takes() {
        let (las, flowcon) = (First::new(Order::LeastAttained), FlowCon::default());
        for (policy, times) in [
            (CpuSharePolicy::Equal, 1.0),
            (CpuSharePolicy::First(las), 101.0),
            (CpuSharePolicy::FlowCon(flowcon), 8.0),
        ] {
            assert!((policy.longest_slowdown(4) - times).abs() < 1e-9, "{policy:?}");
        }
    }
}
