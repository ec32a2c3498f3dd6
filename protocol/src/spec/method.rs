//! `search.method`: which combinations of a space are tried.

use super::{Choices, dimension::is_default};
use serde::{Deserialize, Serialize};

/// The most combinations that `tpe` suggests at once.
pub const MAX_BATCH: u32 = 4_096;

/// A search procedure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum SearchMethod {
    /// Every combination.
    Grid,
    /// This many random combinations, at least 1.
    Random {
        /// How many.
        trials: u32,
    },
    /// This many combinations by Sobol's sequence, at least 1: a quasi-random search, which covers the space evenly.
    Sobol {
        /// How many.
        trials: u32,
    },
    /// The tree-structured Parzen estimator: combinations are suggested by what came of those before.
    Tpe(Tpe),
    /// Population-based training: the worst of a population go on from the best, with other settings.
    Pbt(Pbt),
    /// A program of the user's own suggests combinations and is told what came of them.
    AskTell {
        /// The most that it may suggest.
        trials: u32,
    },
    /// The same, epoch by epoch: after each one the program says which trials go on and which new ones begin.
    Epochs {
        /// The most that it may suggest.
        trials: u32,
    },
}

/// The tree-structured Parzen estimator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Tpe {
    /// Combinations in all.
    pub trials: u32,
    /// So many of them are random, before anything is known.
    pub startup: u32,
    /// Combinations that are suggested at once, when those before have ended; without it one at a time, as machines have room.
    #[serde(default, skip_serializing_if = "is_default")]
    pub batch: Option<u32>,
}

impl Tpe {
    /// Random combinations before the first suggestion where a job doesn't say.
    pub const STARTUP: u32 = 10;
}

/// Population-based training (Jaderberg et al., "Population Based Training of Neural Networks", 2017).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Pbt {
    /// Trials that train at a time: the population.
    pub trials: u32,
    /// Epochs of a generation, after which trials are compared.
    pub interval: u32,
    /// The part of the population that is replaced, and by which it is: at most a half.
    pub quantile: f64,
    /// How likely a setting is drawn anew instead of changed by a fifth.
    pub resample: f64,
}

impl Default for Pbt {
    /// The figures of the paper's section 4.
    fn default() -> Self {
        Self { trials: 0, interval: 1, quantile: 0.2, resample: 0.25 }
    }
}

impl Pbt {
    /// How many of a population of this size are replaced after a generation: `quantile` of them, rounded down, but 1 where it
    /// is half a trial at least.
    #[must_use]
    pub fn replaced_of(&self, members: u32) -> u32 {
        // 0.29 of 100 is a little less than 29 in binary numbers.
        let exact = self.quantile * f64::from(members) + 1e-9;
        let whole = (0..=members / 2).rev().find(|count| f64::from(*count) <= exact).unwrap_or(0);
        if whole == 0 && exact >= 0.5 { 1 } else { whole }
    }

    /// Epochs at the first end of a generation after so many.
    #[must_use]
    pub const fn end_after(&self, epochs: u32) -> u32 {
        let interval = if self.interval == 0 { 1 } else { self.interval };
        (epochs / interval).saturating_add(1).saturating_mul(interval)
    }
}

/// The results of an earlier job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct PastJob {
    /// The earlier job's name or number, as the job file says it.
    pub job: String,
    /// The earlier job's trials that have a value; none before `submit` has asked for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trials: Vec<PastTrial>,
}

/// A trial of an earlier job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct PastTrial {
    /// The `[[model]]` table that it is of, counted from 0.
    pub model: u32,
    /// The values of the dimensions that vary.
    #[cfg_attr(feature = "openapi", schema(value_type = BTreeMap<String, serde_json::Value>))]
    #[serde(with = "crate::decimal::choices")]
    pub choices: Choices,
    /// Epochs that it has trained.
    pub epochs: u32,
    /// The trial's best value of the metric.
    pub value: f64,
}

impl SearchMethod {
    /// The method's word in a job file.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            SearchMethod::Grid => "grid",
            SearchMethod::Random { .. } => "random",
            SearchMethod::Sobol { .. } => "sobol",
            SearchMethod::Tpe(_) => "tpe",
            SearchMethod::Pbt(_) => "pbt",
            SearchMethod::AskTell { .. } => "ask-tell",
            SearchMethod::Epochs { .. } => "epochs",
        }
    }

    /// Combinations in all, the most where a program suggests them; none of a grid, which has all.
    #[must_use]
    pub const fn trials(&self) -> Option<u32> {
        match *self {
            SearchMethod::Grid => None,
            SearchMethod::Random { trials }
            | SearchMethod::Sobol { trials }
            | SearchMethod::Tpe(Tpe { trials, .. })
            | SearchMethod::Pbt(Pbt { trials, .. })
            | SearchMethod::AskTell { trials }
            | SearchMethod::Epochs { trials } => Some(trials),
        }
    }

    /// Are combinations suggested while others train?
    #[must_use]
    pub const fn suggests(&self) -> bool {
        matches!(self, Self::Tpe(_) | Self::AskTell { .. } | Self::Epochs { .. })
    }

    /// Does a program of the user's own suggest them?
    #[must_use]
    pub const fn is_outside(&self) -> bool {
        matches!(self, Self::AskTell { .. } | Self::Epochs { .. })
    }

    /// Can its combinations be trained once for each fold?
    ///
    /// # Errors
    /// Why not.
    pub fn check_folds(&self) -> Result<(), String> {
        let why = match self {
            Self::Pbt(_) => "whose trials take over weights that were trained on other folds",
            Self::AskTell { .. } | Self::Epochs { .. } => {
                "whose program is told of single trials, and not of means over folds"
            }
            Self::Grid | Self::Random { .. } | Self::Sobol { .. } | Self::Tpe(_) => return Ok(()),
        };
        Err(format!("can't go with `method = \"{}\"`, {why}", self.name()))
    }

    /// Does what it suggests depend on when results arrive, so that another fleet may train other trials?
    #[must_use]
    pub const fn depends_on_arrival(&self) -> bool {
        match self {
            Self::Tpe(tpe) => tpe.batch.is_none(),
            // What comes from outside depends on more than that.
            Self::AskTell { .. } | Self::Epochs { .. } => true,
            Self::Grid | Self::Random { .. } | Self::Sobol { .. } | Self::Pbt(_) => false,
        }
    }

    /// Can it search trials of so many epochs?
    ///
    /// # Errors
    /// What is wrong, by key.
    pub fn check(&self, epochs: u32) -> Result<(), String> {
        let least = |key: &str, number: u32, least: u32, most: u32| {
            let wanted = format!("`search.{key}` is {number}; {least} to {most} is wanted");
            if (least..=most).contains(&number) { Ok(()) } else { Err(wanted) }
        };
        match *self {
            Self::Tpe(Tpe { startup, batch, .. }) => {
                least("method.startup", startup, 1, MAX_BATCH)?;
                least("method.batch", batch.unwrap_or(1), 1, MAX_BATCH)
            }
            Self::Pbt(pbt) => {
                let Pbt { trials, interval, quantile, resample } = pbt;
                least("trials", trials, 2, MAX_BATCH)?;
                if interval == 0 || interval >= epochs {
                    return Err(format!(
                        "`search.method.interval` is {interval}, and trials have {epochs} epochs: nothing would be replaced"
                    ));
                }
                if !(quantile > 0.0 && quantile <= 0.5) {
                    return Err(format!(
                        "`search.method.quantile` is {quantile}; more than 0 and at most 0.5 is wanted"
                    ));
                }
                if pbt.replaced_of(trials) == 0 {
                    return Err(format!(
                        "`search.method.quantile` is {quantile}, and there are {trials} trials: nothing would be replaced"
                    ));
                }
                if !(0.0..=1.0).contains(&resample) {
                    return Err(format!(
                        "`search.method.resample` is {resample}; 0 to 1 is wanted"
                    ));
                }
                Ok(())
            }
            Self::Grid
            | Self::Random { .. }
            | Self::Sobol { .. }
            | Self::AskTell { .. }
            | Self::Epochs { .. } => Ok(()),
        }
    }
}
