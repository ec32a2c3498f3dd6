//! `search.stopping`: which trials end before their last epoch, and which wait until the search lets them go on.

use crate::{figures::counted, ids::TrialId};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The largest factor by which a rung thins out trials.
pub const MAX_REDUCTION: u32 = 1_000;

/// A rule of early stopping. All of them compare trials by the search's metric after epochs on the validation rows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Stopping {
    /// Asynchronous successive halving (Li et al., "A System for Massively Parallel Hyperparameter Tuning", 2020): a trial goes on
    /// to the next rung as soon as it is among the best of those that have reached its own.
    Asha(Halving),
    /// Successive halving (Jamieson and Talwalkar, 2016): the best of a rung go on once all of it are there.
    Sha(Halving),
    /// Hyperband (Li et al., JMLR 2018): brackets of successive halving that begin with different numbers of epochs.
    Hyperband {
        /// One of so many trials of a rung goes on.
        reduction: u32,
    },
    /// A trial ends whose best value so far is worse than the median of the others' values after as many epochs, as by Optuna's
    /// `MedianPruner`.
    Median {
        /// Epochs that each trial trains.
        min_epochs: u32,
        /// Other trials that have trained as long, before one ends.
        min_trials: u32,
    },
    /// A trial ends that hasn't got better for so long.
    Patience {
        /// Epochs in a row.
        epochs: u32,
        /// The difference that counts: a better value is better by more than this.
        #[serde(default, skip_serializing_if = "is_zero")]
        min_delta: f64,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &f64) -> bool {
    *number == 0.0
}

/// The rungs of successive halving.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Halving {
    /// One of so many trials of a rung goes on.
    pub reduction: u32,
    /// Epochs of the first rung. Each further one has `reduction` times as many; the last all.
    pub min_epochs: u32,
}

impl Default for Halving {
    fn default() -> Self {
        Self { reduction: 3, min_epochs: 1 }
    }
}

/// Trials that are thinned out together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bracket {
    /// How many begin.
    pub trials: u32,
    /// Epochs after which they are compared, rising; the last are all epochs.
    pub rungs: Vec<u32>,
}

impl Halving {
    /// The epochs of its rungs for trials of `epochs` epochs, rising.
    #[must_use]
    pub fn rungs(self, epochs: u32) -> Vec<u32> {
        let reduction = self.reduction.max(2);
        let next = |rung: &u32| rung.checked_mul(reduction);
        let first = Some(self.min_epochs.max(1));
        let below = std::iter::successors(first, next).take_while(|rung| *rung < epochs);
        below.chain([epochs]).collect()
    }
}

/// Hyperband's brackets for trials of `epochs` epochs, the one that thins out most first: Table 1 of its paper.
#[must_use]
pub fn hyperband(epochs: u32, reduction: u32) -> Vec<Bracket> {
    let reduction = reduction.max(2);
    // The powers of `reduction` up to `epochs`.
    let powers: Vec<u32> = std::iter::successors(Some(1u32), |power| power.checked_mul(reduction))
        .take_while(|power| *power <= epochs)
        .collect();
    let brackets = powers.len();
    let bracket = |(halvings, power): (usize, &u32)| {
        let width = u32::try_from(brackets / (halvings + 1)).unwrap_or(1);
        let rungs = powers.iter().take(halvings + 1).rev().map(|power| epochs / power);
        Bracket { trials: width.saturating_mul(*power), rungs: rungs.collect() }
    };
    powers.iter().enumerate().rev().map(bracket).collect()
}

/// The bracket of a trial in Hyperband, counted from 0, with what it is: brackets come again and again until all trials are in one.
#[must_use]
pub fn hyperband_bracket(trial: TrialId, epochs: u32, reduction: u32) -> Option<(u32, Bracket)> {
    let all = hyperband(epochs, reduction);
    let round = all.iter().fold(0, |sum: u32, bracket| sum.saturating_add(bracket.trials)).max(1);
    let brackets = u32::try_from(all.len()).ok()?;
    let before = (trial.0 / round).saturating_mul(brackets);
    // The trial's place in the round; in the bracket that it is in, less than the bracket's trials.
    let mut place = trial.0 % round;
    for (at, bracket) in (before..).zip(all) {
        match place.checked_sub(bracket.trials) {
            Some(behind) => place = behind,
            None => return Some((at, bracket)),
        }
    }
    None
}

/// The rung of successive halving that a trial is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Rung {
    /// Hyperband's bracket, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bracket: Option<u32>,
    /// The rung, counted from 1.
    pub rung: u32,
    /// How many rungs there are.
    pub of: u32,
    /// Epochs after which the rung's trials are compared; of the last all.
    pub epochs: u32,
}

impl fmt::Display for Rung {
    /// `2/4`, or in a bracket `2/4 of bracket 1`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.rung, self.of)?;
        self.bracket.map_or(Ok(()), |bracket| write!(f, " of bracket {bracket}"))
    }
}

impl Stopping {
    /// The rung of a trial that is `allowed` so many of a job's epochs; `None` under other rules, and of a trial that hasn't begun.
    #[must_use]
    pub fn rung(&self, trial: TrialId, allowed: u32, epochs: u32) -> Option<Rung> {
        let (bracket, rungs) = match *self {
            Stopping::Asha(halving) | Stopping::Sha(halving) => (None, halving.rungs(epochs)),
            Stopping::Hyperband { reduction } => {
                let (at, bracket) = hyperband_bracket(trial, epochs, reduction)?;
                (Some(at.saturating_add(1)), bracket.rungs)
            }
            Stopping::Median { .. } | Stopping::Patience { .. } => return None,
        };
        let of = u32::try_from(rungs.len()).ok()?;
        // Its user may have let it train beyond a rung, or beyond the last.
        let numbered = || (1..=of).zip(&rungs);
        let (rung, epochs) =
            numbered().find(|(_, epochs)| allowed <= **epochs).or_else(|| numbered().last())?;
        (allowed > 0).then_some(Rung { bracket, rung, of, epochs: *epochs })
    }

    /// The rule's word in a job file.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Stopping::Asha(_) => "asha",
            Stopping::Sha(_) => "sha",
            Stopping::Hyperband { .. } => "hyperband",
            Stopping::Median { .. } => "median",
            Stopping::Patience { .. } => "patience",
        }
    }

    /// How many trials it takes of itself: those of Hyperband's brackets.
    #[must_use]
    pub fn trials(&self, epochs: u32) -> Option<u32> {
        let Stopping::Hyperband { reduction } = *self else { return None };
        let brackets = hyperband(epochs, reduction);
        Some(brackets.iter().fold(0, |all: u32, bracket| all.saturating_add(bracket.trials)))
    }

    /// Does it depend on when results arrive, so that another fleet may stop other trials, or the same after other epochs? Where a
    /// trial trains on while an epoch is evaluated, it does.
    #[must_use]
    pub const fn depends_on_arrival(&self) -> bool {
        !matches!(self, Stopping::Sha(_) | Stopping::Hyperband { .. })
    }

    /// Can it stop trials of so many epochs?
    ///
    /// # Errors
    /// What is wrong, by key.
    pub fn check(&self, epochs: u32) -> Result<(), String> {
        let factor = |reduction: u32| {
            let wanted = format!(
                "`search.stopping.reduction` is {reduction}; 2 to {MAX_REDUCTION} is wanted"
            );
            if (2..=MAX_REDUCTION).contains(&reduction) { Ok(()) } else { Err(wanted) }
        };
        let at_least = |key: &str, number: u32, least: u32| {
            let wanted = format!("`search.stopping.{key}` is {number}; at least {least} is wanted");
            if number >= least { Ok(()) } else { Err(wanted) }
        };
        let shorter = |key: &str, number: u32| {
            at_least(key, number, 1)?;
            let text = format!(
                "`search.stopping.{key}` is {number}, and trials have {}: none would be stopped",
                counted(u64::from(epochs), "epoch")
            );
            if number < epochs { Ok(()) } else { Err(text) }
        };
        match *self {
            Stopping::Asha(Halving { reduction, min_epochs })
            | Stopping::Sha(Halving { reduction, min_epochs }) => {
                factor(reduction)?;
                shorter("min_epochs", min_epochs)
            }
            Stopping::Hyperband { reduction } => {
                factor(reduction)?;
                if reduction <= epochs {
                    return Ok(());
                }
                Err(format!(
                    "`search.stopping.reduction` is {reduction}, and trials have {}: there would be one bracket, which stops nothing",
                    counted(u64::from(epochs), "epoch")
                ))
            }
            Stopping::Median { min_epochs, min_trials } => {
                at_least("min_trials", min_trials, 1)?;
                shorter("min_epochs", min_epochs)
            }
            Stopping::Patience { epochs: patience, min_delta } => {
                shorter("epochs", patience)?;
                if min_delta.is_finite() && min_delta >= 0.0 {
                    return Ok(());
                }
                Err(format!("`search.stopping.min_delta` is {min_delta}; 0 or more is wanted"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rungs_are_those_of_the_papers() {
        // ASHA's Table 1: R = 9, eta = 3.
        assert_eq!(Halving::default().rungs(9), [1, 3, 9]);
        assert_eq!(Halving { reduction: 4, min_epochs: 2 }.rungs(81), [2, 8, 32, 81]);
        assert_eq!(Halving::default().rungs(1), [1]);
        let huge = Halving { reduction: u32::MAX, min_epochs: 0 };
        assert_eq!(huge.rungs(u32::MAX), [1, u32::MAX]);
    }

    #[test]
    fn brackets_are_those_of_hyperbands_table() {
        let table = |epochs, reduction| -> Vec<(u32, Vec<u32>)> {
            let brackets = hyperband(epochs, reduction);
            brackets.into_iter().map(|bracket| (bracket.trials, bracket.rungs)).collect()
        };
        let expected = [
            (81, vec![1, 3, 9, 27, 81]),
            (27, vec![3, 9, 27, 81]),
            (9, vec![9, 27, 81]),
            (6, vec![27, 81]),
            (5, vec![81]),
        ];
        assert_eq!(table(81, 3), expected);
        assert_eq!(table(9, 3), [(9, vec![1, 3, 9]), (3, vec![3, 9]), (3, vec![9])]);
        // Epochs that are no power: as many as divide by it.
        assert_eq!(table(10, 3), [(9, vec![1, 3, 10]), (3, vec![3, 10]), (3, vec![10])]);
        assert_eq!(table(1, 2), [(1, vec![1])]);
    }

    #[test]
    fn a_trial_is_on_the_rung_that_it_trains_up_to() {
        let said = |rule: Stopping, trial: u32, allowed: u32| {
            rule.rung(TrialId(trial), allowed, 9).map(|rung| (rung.to_string(), rung.epochs))
        };
        let asha = Stopping::Asha(Halving::default());
        assert_eq!(said(asha, 0, 0), None, "it hasn't begun");
        for (allowed, rung, epochs) in [(1, "1/3", 1), (2, "2/3", 3), (3, "2/3", 3), (9, "3/3", 9)]
        {
            assert_eq!(said(asha, 4, allowed), Some((rung.to_owned(), epochs)), "{allowed}");
        }
        assert_eq!(said(asha, 4, 20), Some(("3/3".to_owned(), 9)), "extended");
        let hyperband = Stopping::Hyperband { reduction: 3 };
        // Brackets of 9, 3 and 3 trials, again and again.
        for (trial, allowed, rung) in [
            (0, 1, "1/3 of bracket 1"),
            (8, 9, "3/3 of bracket 1"),
            (9, 3, "1/2 of bracket 2"),
            (14, 9, "1/1 of bracket 3"),
            (15, 3, "2/3 of bracket 4"),
        ] {
            assert_eq!(said(hyperband, trial, allowed).unwrap().0, rung, "{trial}");
        }
        assert_eq!(said(Stopping::Patience { epochs: 2, min_delta: 0.0 }, 0, 3), None);
    }

    #[test]
    fn rules_that_stop_nothing_are_refused_by_their_key() {
        let halving = |reduction, min_epochs| Stopping::Asha(Halving { reduction, min_epochs });
        for (rule, expected) in [
            (halving(1, 1), "`search.stopping.reduction` is 1; 2 to 1000 is wanted"),
            (halving(3, 9), "`search.stopping.min_epochs` is 9, and trials have 9 epochs"),
            (halving(3, 0), "`search.stopping.min_epochs` is 0; at least 1 is wanted"),
            (Stopping::Hyperband { reduction: 10 }, "there would be one bracket"),
            (
                Stopping::Median { min_epochs: 1, min_trials: 0 },
                "`search.stopping.min_trials` is 0",
            ),
            (Stopping::Patience { epochs: 9, min_delta: 0.0 }, "`search.stopping.epochs` is 9"),
            (Stopping::Patience { epochs: 2, min_delta: -0.1 }, "`search.stopping.min_delta`"),
            (Stopping::Patience { epochs: 2, min_delta: f64::NAN }, "`search.stopping.min_delta`"),
        ] {
            let fault = rule.check(9).unwrap_err();
            assert!(fault.starts_with(expected) || fault.contains(expected), "{fault}");
        }
        let fault = halving(3, 1).check(1).unwrap_err();
        assert_eq!(
            fault,
            "`search.stopping.min_epochs` is 1, and trials have 1 epoch: none would be stopped"
        );
        for rule in [
            halving(2, 8),
            Stopping::Hyperband { reduction: 9 },
            Stopping::Median { min_epochs: 1, min_trials: 1 },
            Stopping::Patience { epochs: 8, min_delta: 0.5 },
        ] {
            assert_eq!(rule.check(9), Ok(()));
        }
    }
}
