//! Merge rules by their parameters: how a returned checkpoint changes its trial's where several of a trial's
//! shards train at once (docs/internals/merging.md). The formulas are computed elsewhere.
//!
//! A parameter that is `None` follows from `C`, the units in flight when a result arrives, which is at least 1.

use super::dimension::is_default;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The largest gain and the largest outer rate: with more, any run has long diverged.
pub const MAX_RATE: f64 = 1000.0;
/// The largest momentum: it remembers ten thousand steps. Nearer to 1 it would be 1 in `f32`, and forget nothing.
pub const MAX_MOMENTUM: f64 = 0.9999;
/// The largest `lambda` of `dc-asgd`.
const MAX_LAMBDA: f64 = 1000.0;
/// The most arrivals in a buffer, and between two steps of momentum.
pub const MAX_ARRIVALS: u32 = 1_000_000;

/// The most times that a result's loss may be the current version's: above that, nothing is kept out.
pub const MAX_LOSS_RATIO: f64 = 1000.0;

/// A merge rule and its parameters. With `W` the current model, `W_b` the one that the host began from, `W_c` the
/// one that it returned, `D = W_c - W_b`, `t` the versions made since `W_b`, and `s` a weight for that.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "rule", rename_all = "kebab-case", deny_unknown_fields)]
pub enum RuleSpec {
    /// `W <- W + (1 - alpha) s(t) (W_c - W)`: VC-ASGD (Atre et al., 2021), and with a weight for staleness
    /// `FedAsync` (Xie et al., 2019).
    VcAsgd {
        /// The share of the current model that stays.
        alpha: Alpha,
        /// `s`.
        staleness: Staleness,
    },
    /// `W <- W + gain s(t) D`.
    Delta {
        /// In `(0, MAX_RATE]`; `1 / C` where not given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        gain: Option<f64>,
        /// `s`.
        staleness: Staleness,
    },
    /// Every `arrivals` results an outer step along the mean of their `s(t) D` (`FedBuff`, Nguyen et al., 2022).
    Fedbuff {
        /// In a buffer, 1 to `MAX_ARRIVALS`; `min(C, 10)` where not given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arrivals: Option<u32>,
        /// The outer step.
        outer: Outer,
        /// `s`.
        staleness: Staleness,
    },
    /// `W <- W + s(t) / (1 + q) (D - p (W - W_b))`: of a change the part that others have made already counts once, with `p`
    /// and `q` its share of their change and of the host's (after Adasum, Maleki et al., 2021).
    Adasum {
        /// `s`.
        staleness: Staleness,
    },
    /// Each result `W <- W + rate D / period`; each `period`-th also a step of momentum along the mean of the
    /// `D` since the last one ("delayed Nesterov" with `c = 0`, Liu et al., 2024).
    DelayedNesterov {
        /// Results between two steps of momentum, 1 to `MAX_ARRIVALS`; `C` where not given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        period: Option<u32>,
        /// The outer rate, in `(0, MAX_RATE]`.
        rate: f64,
        /// In `[0, MAX_MOMENTUM]`.
        momentum: f64,
    },
    /// `W <- W + moving_rate (W_c - W)`: the centre's half of asynchronous EASGD (Zhang et al., 2015, algorithm 1). Hosts
    /// keep no models of their own between units, so their half is a rate of 1: each begins from the centre.
    Easgd {
        /// In `(0, 1]`; `0.9 / C` where not given (their `beta = 0.9`).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        moving_rate: Option<f64>,
    },
    /// `W <- W + rate D`: Downpour SGD (Dean et al., 2012, section 4.1), in which a host sends what its steps since the last
    /// fetch add up to.
    Downpour {
        /// In `(0, MAX_RATE]`.
        rate: f64,
    },
    /// `v <- decay v + (1 - decay) D^2`, then `W <- W + D - lambda D^2 / sqrt(v) (W - W_b)`, number by number: Delay Compensated
    /// ASGD with an adaptive `lambda` (Zheng et al., 2017, equations 10 and 14, with `D` in place of the gradient).
    DcAsgd {
        /// In `[0, 1000]`.
        lambda: f64,
        /// In `[0, MAX_MOMENTUM]`.
        decay: f64,
    },
}

/// The share of the current model that VC-ASGD keeps.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Alpha {
    /// Always this much, in `[0, 1]`.
    Constant(f64),
    /// `e / (e + 1)` in epoch `e`, counted from 1.
    Epochs,
}

/// The weight `s(t)` of a result whose base is `t` versions old; 1 for `t = 0`. The names are those of
/// `FedAsync` (Xie et al., 2019, section 5).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Staleness {
    /// Always 1.
    Constant,
    /// `(1 + t)^-a`.
    Polynomial {
        /// At least 0.
        a: f64,
    },
    /// 1 up to `t = b`, then `1 / (a (t - b) + 1)`.
    Hinge {
        /// Above 0.
        a: f64,
        /// The oldest that counts in full.
        b: u32,
    },
}

/// The outer step of a buffer, along the mean `d` of what it holds (Reddi et al., 2021; Douillard et al., 2023).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Outer {
    /// `W <- W + rate d`.
    Sgd {
        /// In `(0, MAX_RATE]`.
        rate: f64,
    },
    /// `m <- momentum m + d`, then `W <- W + rate (d + momentum m)`.
    Nesterov {
        /// In `(0, MAX_RATE]`.
        rate: f64,
        /// In `[0, MAX_MOMENTUM]`.
        momentum: f64,
    },
}

/// How the trial's optimiser state is merged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum OptimizerMerge {
    /// The trial's state is blended with the returned one.
    Average,
    /// All zeros: a host's own momentum and that of the models that are merged don't add up.
    #[default]
    Reset,
    /// The state of the result that came last.
    Last,
    /// The first moments (momentum) are the returned ones over `1 + t`, the second moments are blended. Results that
    /// are applied late act as momentum by themselves (Mitliagkas et al., 2016, "Asynchrony begets Momentum"), so the
    /// host's own has to shrink.
    Discount,
}

/// How a trial's results are merged.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct MergeSpec {
    /// The rule for parameters.
    pub rule: RuleSpec,
    /// How optimiser state is merged.
    #[serde(default, skip_serializing_if = "is_default")]
    pub optimizer: OptimizerMerge,
    /// A result whose loss on held-out rows is more than so many times the current version's is refused, in
    /// `[1, MAX_LOSS_RATIO]`; its loss isn't looked at where not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<f64>,
}

impl MergeSpec {
    /// How results of jobs are merged whose stored placement names nothing. Such jobs were submitted before submission
    /// wrote the default down.
    pub const UNNAMED: Self =
        Self { rule: RuleSpec::DELAYED_NESTEROV, optimizer: OptimizerMerge::Reset, canary: None };

    /// A rule, and the treatment of the optimiser's state that suits it.
    #[must_use]
    pub const fn of(rule: RuleSpec) -> Self {
        let optimizer = match rule {
            RuleSpec::Adasum { .. }
            | RuleSpec::Easgd { .. }
            | RuleSpec::Downpour { .. }
            | RuleSpec::DcAsgd { .. } => OptimizerMerge::Discount,
            RuleSpec::VcAsgd { .. }
            | RuleSpec::Delta { .. }
            | RuleSpec::Fedbuff { .. }
            | RuleSpec::DelayedNesterov { .. } => OptimizerMerge::Reset,
        };
        Self { rule, optimizer, canary: None }
    }
}

impl Default for MergeSpec {
    /// A compromise between the models of `examples/merging/README.md`, none of whose rules is the best everywhere.
    fn default() -> Self {
        Self::of(RuleSpec::ADASUM)
    }
}

/// Results that are merged are younger than this, in versions since their base: `max(16, 4C)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct StalenessBound(pub u64);

impl StalenessBound {
    /// The bound for this many units in flight.
    #[must_use]
    pub fn of(in_flight: u32) -> Self {
        Self((4 * u64::from(in_flight)).max(16))
    }

    /// Is a result of this staleness merged?
    #[must_use]
    pub fn allows(self, staleness: u64) -> bool {
        staleness < self.0
    }
}

/// A parameter out of its range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{key}` {reason}")]
pub struct RuleFault {
    /// The parameter, by its path below the rule: `alpha`, `staleness.a`.
    pub key: &'static str,
    /// The parameter's value, and the values that it may have.
    pub reason: String,
}

impl RuleSpec {
    /// VC-ASGD with the paper's constant.
    pub const VC_ASGD: Self =
        Self::VcAsgd { alpha: Alpha::Constant(0.95), staleness: Staleness::Constant };
    /// `delta` as measured in the pilot.
    pub const DELTA: Self = Self::Delta { gain: None, staleness: Staleness::ROOT };
    /// `fedbuff` with an outer step of rate 1.
    pub const FEDBUFF: Self =
        Self::Fedbuff { arrivals: None, outer: Outer::SGD, staleness: Staleness::ROOT };
    /// Delayed Nesterov as measured in the pilot.
    pub const DELAYED_NESTEROV: Self =
        Self::DelayedNesterov { period: None, rate: 0.7, momentum: 0.9 };

    /// `adasum` with the staleness that suited the residual network of `examples/merging` best, in the one run by which it
    /// was chosen; in five others it was close to the best rule.
    pub const ADASUM: Self = Self::Adasum { staleness: Staleness::Polynomial { a: 1.0 } };

    /// EASGD with a moving rate by the units in flight, as published.
    pub const EASGD: Self = Self::Easgd { moving_rate: None };
    /// Downpour SGD as published, without Adagrad: the hosts' own optimisers adapt the rates.
    pub const DOWNPOUR: Self = Self::Downpour { rate: 1.0 };
    /// Delay compensation as it was published for CIFAR-10 with the adaptive `lambda`.
    pub const DC_ASGD: Self = Self::DcAsgd { lambda: 2.0, decay: 0.95 };

    /// All rules, with their defaults.
    pub const ALL: [Self; 8] = [
        Self::ADASUM,
        Self::VC_ASGD,
        Self::DELTA,
        Self::FEDBUFF,
        Self::DELAYED_NESTEROV,
        Self::EASGD,
        Self::DOWNPOUR,
        Self::DC_ASGD,
    ];

    /// The rule's name in job files.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::VcAsgd { .. } => "vc-asgd",
            Self::Delta { .. } => "delta",
            Self::Fedbuff { .. } => "fedbuff",
            Self::DelayedNesterov { .. } => "delayed-nesterov",
            Self::Adasum { .. } => "adasum",
            Self::Easgd { .. } => "easgd",
            Self::Downpour { .. } => "downpour",
            Self::DcAsgd { .. } => "dc-asgd",
        }
    }

    /// Does it gather results before it uses all that they bring, so that there may be something to flush?
    #[must_use]
    pub const fn gathers(&self) -> bool {
        match self {
            Self::VcAsgd { .. }
            | Self::Delta { .. }
            | Self::Adasum { .. }
            | Self::Easgd { .. }
            | Self::Downpour { .. }
            | Self::DcAsgd { .. } => false,
            Self::Fedbuff { .. } | Self::DelayedNesterov { .. } => true,
        }
    }

    /// Is every parameter in its range?
    ///
    /// # Errors
    /// The first one that isn't.
    pub fn check(&self) -> Result<(), RuleFault> {
        match *self {
            Self::VcAsgd { alpha, staleness } => {
                if let Alpha::Constant(alpha) = alpha {
                    let holds = (0.0..=1.0).contains(&alpha);
                    want("alpha", alpha, holds, "the share that stays has to be from 0 to 1")?;
                }
                staleness.check()
            }
            Self::Delta { gain, staleness } => {
                gain.map_or(Ok(()), |gain| rate("gain", gain))?;
                staleness.check()
            }
            Self::Fedbuff { arrivals, outer, staleness } => {
                arrivals.map_or(Ok(()), |arrivals| count("arrivals", arrivals))?;
                outer.check()?;
                staleness.check()
            }
            Self::Adasum { staleness } => staleness.check(),
            Self::DelayedNesterov { period, rate: outer, momentum } => {
                period.map_or(Ok(()), |period| count("period", period))?;
                rate("rate", outer)?;
                ratio("momentum", momentum)
            }
            Self::Easgd { moving_rate: None } => Ok(()),
            Self::Easgd { moving_rate: Some(share) } => {
                let holds = share > 0.0 && share <= 1.0;
                want("moving_rate", share, holds, "it has to be above 0 and at most 1")
            }
            Self::Downpour { rate: outer } => rate("rate", outer),
            Self::DcAsgd { lambda, decay } => {
                let holds = (0.0..=MAX_LAMBDA).contains(&lambda);
                let must = format_args!("it has to be from 0 to {MAX_LAMBDA}");
                want("lambda", lambda, holds, must)?;
                ratio("decay", decay)
            }
        }
    }
}

impl Staleness {
    /// `(1 + t)^-1/2`, the default of the rules that add what a host has changed.
    pub const ROOT: Self = Self::Polynomial { a: 0.5 };
    /// The hinge that `FedAsync` was measured with (Xie et al., 2019, section 6).
    pub const HINGE: Self = Self::Hinge { a: 10.0, b: 4 };

    fn check(&self) -> Result<(), RuleFault> {
        match *self {
            Self::Constant => Ok(()),
            Self::Polynomial { a } => {
                let holds = a.is_finite() && a >= 0.0;
                want("staleness.a", a, holds, "the exponent has to be a number from 0 up")
            }
            Self::Hinge { a, .. } => {
                let holds = a.is_finite() && a > 0.0;
                want("staleness.a", a, holds, "the slope has to be a number above 0")
            }
        }
    }
}

impl Outer {
    /// The whole mean, as in `FedAvg`.
    pub const SGD: Self = Self::Sgd { rate: 1.0 };
    /// As `DiLoCo` found best (Douillard et al., 2023).
    pub const NESTEROV: Self = Self::Nesterov { rate: 0.7, momentum: 0.9 };

    fn check(&self) -> Result<(), RuleFault> {
        match *self {
            Self::Sgd { rate: outer } => rate("outer.rate", outer),
            Self::Nesterov { rate: outer, momentum } => {
                rate("outer.rate", outer)?;
                ratio("outer.momentum", momentum)
            }
        }
    }
}

fn rate(key: &'static str, value: f64) -> Result<(), RuleFault> {
    let holds = value > 0.0 && value <= MAX_RATE;
    want(key, value, holds, format_args!("it has to be above 0 and at most {MAX_RATE}"))
}

fn ratio(key: &'static str, value: f64) -> Result<(), RuleFault> {
    let holds = (0.0..=MAX_MOMENTUM).contains(&value);
    want(key, value, holds, format_args!("it has to be from 0 to {MAX_MOMENTUM}"))
}

fn count(key: &'static str, value: u32) -> Result<(), RuleFault> {
    let holds = (1..=MAX_ARRIVALS).contains(&value);
    want(key, value, holds, format_args!("it has to be from 1 to {MAX_ARRIVALS}"))
}

fn want(
    key: &'static str,
    value: impl fmt::Display,
    holds: bool,
    must: impl fmt::Display,
) -> Result<(), RuleFault> {
    if holds { Ok(()) } else { Err(RuleFault { key, reason: format!("is {value}; {must}") }) }
}

#[cfg(test)]
#[path = "merge_tests.rs"]
mod tests;
