//! The Tree-structured Parzen Estimator: the next combination from what came of those before.
//!
//! ```text
//!   observations --split--> good, others --Parzen estimators--> l, g --24 candidates from l--> the one with the highest l / g
//! ```
//!
//! J. Bergstra et al., "Algorithms for Hyper-Parameter Optimization", NeurIPS 2011, with the joint density of all dimensions as in
//! BOHB (S. Falkner et al., "BOHB: Robust and Efficient Hyperparameter Optimization at Scale", ICML 2018) and in Optuna's
//! multivariate sampler. What is taken from where:
//!
//! | part | rule | source |
//! |---|---|---|
//! | good ones | the best tenth of those that have ended, rounded up, at most 25 | Optuna |
//! | a density | one kernel for each observation and one for the prior, all of the same weight; a kernel is a product over the dimensions | BOHB, Optuna |
//! | numbers | Gaussians on the dimension's own scale (its logarithm, its normal distribution's shares), cut off at its ends; values with steps have what falls into their cell | Bergstra, Optuna |
//! | bandwidths | for each kernel and dimension the distance to the farther neighbour, with the "magic clip" as its lower bound | Hyperopt, Optuna |
//! | the lower bound | of `n` good ones 1 of `2 n + 2` parts of the line, 1/27 at least; of others 1 of `n + 2` as in Optuna, 1/50 at least | |
//! | categories | smoothed weights, also for the choice of a model table, with twice the smoothing | Optuna |
//! | several model tables | the best candidate of each, compared over the dimensions that all tables have | |
//! | the prior | how `random` draws | Bergstra |
//! | running trials | count among the others (a constant liar), so that suggestions made at once differ | Optuna |
//! | failed ones | count as the worst | |
//! | every 25th combination | from the prior, so that each value comes in the end | BOHB (there one in three) |
//! | a combination again | only where all candidates were tried before | |
//!
//! **Dimensions that an observation lacks**, such as those of another model table, count by the prior in its kernel: they say
//! nothing for or against a value. So what all tables share is learnt from all of them.
//!
//! **The lower bound** of bandwidths decides most, as S. Watanabe found too ("Tree-Structured Parzen Estimator: Understanding Its
//! Algorithm Components and Their Roles for Better Empirical Performance", 2023). Narrow kernels of the good ones look closely where it is good.
//! Wide ones of the others leave no gaps between trials that were worse, where the ratio would be high by chance.
//!
//! **Trials that were stopped early** rank behind all that trained longer, whatever their values, as pruned trials do in Optuna.
//! Values after different epochs say little of each other, and who trained longer was better: under ASHA and its relatives a
//! trial goes on because it was among the best where both were compared.
//!
//! All random numbers follow from the job's seed, the number of the combination and the name of the dimension. The same
//! observations in the same order give the same combination on any machine.
//!
//! | file | holds |
//! |---|---|
//! | `split.rs` | which observations are good |
//! | `space.rs` | the dimensions of each table, and where observations lie in them |
//! | `axis.rs` | a dimension's scale |
//! | `kernel.rs` | kernels of one dimension |
//! | `density.rs` | mixtures of them over all dimensions |
//! | `candidate.rs` | candidates and their ranks |

mod axis;
mod candidate;
mod density;
mod kernel;
mod space;
mod split;

use super::{Combinations, SearchError, Trial, Tried, sample};
use candidate::{Candidate, Densities, Streams};
use sojourn_protocol::spec::{Choices, JobSpec};
use space::{Places, Space};

/// Candidates of which the best is suggested, as many as in Optuna.
pub const CANDIDATES: usize = 24;

/// Every so many combinations one is drawn from the prior.
const PRIOR_EVERY: u32 = 25;

/// A combination that was tried, and what came of it.
#[derive(Debug, Clone, Copy)]
pub struct Observation<'a> {
    /// The combination's `[[model]]` table, counted from 0.
    pub model: u32,
    /// The combination's values in the dimensions that vary. Numbers beyond a dimension's ends are taken for its ends; what
    /// else isn't of the space, and a `seed`, is passed over.
    pub choices: &'a Choices,
    /// The outcome of the combination.
    pub outcome: Outcome,
}

/// The outcome of a combination.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Outcome {
    /// Nothing yet: it waits or trains.
    Running,
    /// The combination has no value.
    Failed,
    /// The combination was trained and evaluated.
    Ended {
        /// Epochs that it trained. Where to train longer doesn't mean to be better, as under `patience`, the same for all.
        epochs: u32,
        /// The metric that the search compares by. One that isn't finite counts as a failure.
        value: f64,
    },
}

/// The combination number `index` of a search, counted from 0, as far as can be told from those before.
///
/// `observations` are in the order of their numbers: of equally good ones the first counts as better. Those of a model table that
/// there isn't are passed over. With none the combination is drawn from the prior; below about 10 that have ended, `random` is
/// as good.
///
/// Where combinations are to differ, it is none of those that were `tried`.
///
/// `accept` is asked last, of a combination that satisfies all constraints. One that breaks a constraint or isn't accepted is
/// replaced by another candidate.
///
/// # Errors
/// A space that is empty, a range that isn't one, no combination among [`MAX_DRAWS`](super::MAX_DRAWS) that satisfies the
/// constraints and is accepted, or none that is left.
pub fn suggest(
    spec: &JobSpec,
    observations: &[Observation<'_>],
    index: u32,
    tried: &Tried,
    accept: &mut dyn FnMut(&Trial) -> bool,
) -> Result<Trial, SearchError> {
    let space = Space::new(spec);
    let is_of_space = |o: &&Observation<'_>| o.model < space.tables();
    let observations: Vec<&Observation<'_>> = observations.iter().filter(is_of_space).collect();
    let good = split::good(&observations, spec.search.goal);
    let mut densities = Densities::new(&space, Places::new(&space, &observations), &good);
    let mut candidates = Vec::with_capacity(CANDIDATES);
    let mut drawn = 0;
    let is_from_prior = (index % PRIOR_EVERY) + 1 == PRIOR_EVERY;
    let mut best = |_| {
        while candidates.len() < CANDIDATES {
            let streams = Streams { seed: spec.seed, index, drawn };
            candidates.push(match is_from_prior {
                true => densities.draw_from_prior(streams),
                false => densities.draw(streams),
            });
            drawn += 1;
        }
        let best = match is_from_prior {
            true => candidates.iter().position(|candidate| !candidate.is_known),
            false => densities.best(&candidates),
        };
        let best = best.unwrap_or(0);
        let mut best: Candidate = candidates.swap_remove(best);
        match sample::trial(spec, &mut best) {
            // Another candidate takes its place.
            Err(SearchError::Formula { .. }) => Ok(None),
            trial => trial.map(Some),
        }
    };
    Combinations::after(spec, tried.clone())?.first_accepted(index, &mut best, accept)
}

#[cfg(test)]
mod tests;
