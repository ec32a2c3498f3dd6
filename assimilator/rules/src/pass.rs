//! One pass over a model's numbers, said by its scalars.

/// The change to each number `W` of the current model. `W_b` is the base's number, `W_c` the returned one's,
/// and `D = W_c - W_b`. The rule's own numbers for the same place are `sum`, `m` and `v`. The scalars are worked out in
/// `f64`; the pass computes in `f32`, each product and sum rounded once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pass {
    /// `W <- (1 - take) W + take (W_b + scale D)`. Bits stay as they are where a share is 0: with `take = 0`
    /// those of `W`, with `take = 1` and `scale = 1` those of `W_c`.
    Blend {
        /// The returned model's share, in `[0, 1]`.
        take: f64,
        /// Below 1 where `D` is clipped.
        scale: f64,
    },
    /// `W <- W + gain D`.
    Add {
        /// Of the change.
        gain: f64,
    },
    /// `W <- W + gain D - back (W - W_b)`.
    AddNew {
        /// Of the change.
        gain: f64,
        /// Of what others have changed since the base.
        back: f64,
    },
    /// With `d = gain D`: `v <- decay v + (1 - decay) d^2`, then `W <- W + d - min(lambda d^2 / sqrt(v), 1) (W - W_b)`; nothing is taken back
    /// where `d` is 0.
    Compensate {
        /// Of the change.
        gain: f64,
        /// How much of what others have changed since the base is taken back.
        lambda: f64,
        /// The share of `v` that stays.
        decay: f64,
    },
    /// `sum <- sum + weight D`; `W` stays bit for bit.
    Gather {
        /// Of the change, in the sum.
        weight: f64,
    },
    /// `sum <- sum + weight D`, `W <- W + gain D`.
    GatherAndAdd {
        /// Of the change, in the sum.
        weight: f64,
        /// Of the change, in the model.
        gain: f64,
    },
    /// `sum <- sum + weight D`, `W <- W + gain D`, then the step, then `sum <- 0`.
    GatherAndStep {
        /// Of the change, in the sum.
        weight: f64,
        /// Of the change, in the model.
        gain: f64,
        /// The step with the sum.
        step: Step,
    },
}

/// A step with a sum of changes: with `d = share sum`, `W <- W + rate d`. With momentum it is
/// `m <- decay m + d`, `W <- W + rate d + lead m`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// One over the changes in the sum.
    pub share: f64,
    /// Of their mean, in the model.
    pub rate: f64,
    /// None where the rule keeps no momentum.
    pub momentum: Option<Momentum>,
}

/// The part of a step that remembers the steps before.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Momentum {
    /// The share of it that stays.
    pub decay: f64,
    /// Of the new one, in the model.
    pub lead: f64,
}

impl Pass {
    /// The pass with `scale D` in place of `D`.
    #[must_use]
    pub fn scaled(self, by: f64) -> Self {
        match self {
            Self::Blend { take, scale } => Self::Blend { take, scale: scale * by },
            Self::Add { gain } => Self::Add { gain: gain * by },
            Self::AddNew { gain, back } => Self::AddNew { gain: gain * by, back },
            Self::Compensate { gain, lambda, decay } => {
                Self::Compensate { gain: gain * by, lambda, decay }
            }
            Self::Gather { weight } => Self::Gather { weight: weight * by },
            Self::GatherAndAdd { weight, gain } => {
                Self::GatherAndAdd { weight: weight * by, gain: gain * by }
            }
            Self::GatherAndStep { weight, gain, step } => {
                Self::GatherAndStep { weight: weight * by, gain: gain * by, step }
            }
        }
    }

    /// How many changes are gathered after the pass, of `gathered` before it.
    #[must_use]
    pub(crate) const fn gathered_after(&self, gathered: u32) -> u32 {
        match self {
            Self::Blend { .. }
            | Self::Add { .. }
            | Self::AddNew { .. }
            | Self::Compensate { .. } => gathered,
            Self::Gather { .. } | Self::GatherAndAdd { .. } => gathered.saturating_add(1),
            Self::GatherAndStep { .. } => 0,
        }
    }
}
