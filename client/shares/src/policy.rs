//! The policies that divide a host's processor, with their parameters.

use sojourn_protocol::quantity::Micros;

/// A share of what a host's owner allows of its processor: above 0, at most 1.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Share(f64);

impl Share {
    /// Nothing is held back.
    pub const FULL: Self = Self(1.0);

    /// The nearest share that is allowed; `least` is above 0.
    pub(crate) const fn between(least: f64, share: f64) -> Self {
        // `clamp` panics where the least is above 1.
        Self(share.max(least).min(1.0))
    }

    /// As a number.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }
}

/// What divides a host's processor among the trials on it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum SharePolicy {
    /// All have the same.
    #[default]
    Equal,
    /// By growth efficiency: who still learns has more.
    FlowCon(FlowCon),
    /// One goes before the others.
    First(First),
}

/// FlowCon's parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FlowCon {
    /// The growth efficiency below which a trial counts as one that learns little.
    pub alpha: f64,
    /// What `alpha` is compared with.
    pub threshold: Threshold,
    /// Between two plans, and the length of a window.
    pub interval: Micros,
    /// The least share of each of n trials is 1 / (beta n).
    pub beta: f64,
    /// While nobody learns, the time between two plans doubles, up to this.
    pub longest_interval: Micros,
    /// Is a loss that rises growth too, as in the thesis?
    pub absolute: bool,
    /// What a share means.
    pub apply: Apply,
}

/// What the threshold of growth efficiency is compared with. Shares go by efficiency per second in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threshold {
    /// How much of its highest loss a trial sheds in a second that has the whole processor. Long trials have less of it than short ones.
    PerSecond,
    /// The same in the time that the whole trial takes with all the processor: 1 is the pace of a loss that falls evenly to zero.
    PerTrial,
}

/// What a share means for the processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct First {
    /// Which goes first.
    pub order: Order,
    /// Between two plans.
    pub interval: Micros,
    /// What each of the others has beside it, as a weight.
    pub least: f64,
}

/// Which trial goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
