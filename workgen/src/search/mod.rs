//! Search procedures: a job's space to its trials.
//!
//! The same spec gives the same trials in the same order on any machine. Trials are numbered in the
//! order of the procedure: grids vary the last dimension fastest, model tables come one after another.

mod changed;
mod combinations;
mod corners;
mod draw;
mod every;
mod given;
mod grid;
mod normal;
mod odometer;
pub mod pbt;
mod random;
mod sample;
mod sobol;
pub mod stopping;
pub mod tpe;
mod tried;

pub use changed::changed;
use combinations::Combinations;
pub use every::falls_short;
pub use given::given;
pub use grid::models;
use sojourn_protocol::{
    ids::TrialId,
    quantity::SaturatingFrom as _,
    spec::{
        Choices, JobSpec, Pbt, SearchMethod, SearchSpec, SpaceFault, Tpe, TrialConfig, Unclosed,
    },
    trial_name::choices_text,
};
use std::ops::Range;
pub use tried::Tried;

/// The most trials that a job may have.
pub const MAX_TRIALS: usize = 65_536;
/// The most combinations that are tried for its trials, those that its constraints leave out among them.
pub const MAX_COMBINATIONS: usize = 4 * MAX_TRIALS;
/// How often a combination is drawn for a trial until it satisfies all constraints.
pub const MAX_DRAWS: u32 = 1_000;
/// Combinations that a job is checked by which has none before a program suggests them.
const PREVIEWED: u32 = 16;

/// A trial: its configuration, and what it took in the dimensions that vary.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// The `[[model]]` table that it is of, counted from 0.
    pub model: u32,
    /// The configuration.
    pub config: TrialConfig,
    /// The values of the dimensions that vary.
    pub choices: Choices,
    /// The seed of the trial's weights, row order and dropout, where that is a dimension; none: the job's seed.
    pub seed: Option<u64>,
    /// The number of the fold that it is trained without, where there are folds.
    pub fold: Option<u32>,
}

/// Why a space has no trials.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says it")]
pub enum SearchError {
    #[error("the search is empty: `{dimension}` has no value to choose")]
    Empty { dimension: String },
    #[error(
        "the range of `{dimension}` isn't one: its ends must be finite and in order, above 0 for a logarithm; a step must be above 0"
    )]
    BadRange { dimension: String },
    #[error(
        "the normal distribution of `{dimension}` isn't one: a finite mean, a deviation above 0, and ends around the mean are wanted"
    )]
    BadNormal { dimension: String },
    #[error("a grid takes every value, and `{dimension}` is normal")]
    NormalInGrid { dimension: String },
    #[error("a grid needs `points` for the range of `{dimension}`")]
    NoPoints { dimension: String },
    #[error("the search has more than {MAX_TRIALS} trials")]
    TooMany,
    #[error(
        "Sobol's sequence has {} dimensions here, and the search has more; `random` takes any number",
        sobol::MAX_DIMENSIONS
    )]
    TooManyDimensions,
    #[error(transparent)]
    Space(#[from] SpaceFault),
    #[error("{why}{}", with(.combination))]
    Formula { why: String, combination: String },
    #[error("constraint `{constraint}` {why}")]
    Constraint { constraint: String, why: String },
    #[error("no combination satisfies the constraints; `{constraint}` leaves out most of them")]
    NothingLeft { constraint: String },
    #[error(
        "none of {MAX_DRAWS} combinations drawn for trial {trial} satisfies the constraints; `{constraint}` leaves out most of them"
    )]
    TooRare { trial: u32, constraint: String },
    #[error("{} {}; {asked} were asked for", .differ, if *.differ == 1 { "combination is all there is" } else { "combinations differ" })]
    UsedUp { differ: usize, asked: u32 },
    #[error("none of {MAX_DRAWS} combinations drawn for trial {trial} differs from all before")]
    NoneNew { trial: u32 },
    #[error("none of {MAX_DRAWS} combinations drawn for trial {trial} can be trained")]
    NoneAccepted { trial: u32 },
    #[error("there is no value for `{dimension}`")]
    NotGiven { dimension: String },
    #[error("`{value}` is no value of `{dimension}` in this job's space")]
    Outside { dimension: String, value: String },
    #[error("`{name}` is no dimension of this job's search")]
    NoDimension { name: String },
    #[error("there is no setting `{name}`{}", .nearest.as_ref().map_or_else(String::new, |near| format!("; did you mean `{near}`?")))]
    NoSetting { name: String, nearest: Option<String> },
    #[error("`{name}` stands for several dimensions: `{dimension}` must be written out")]
    Ambiguous { name: String, dimension: String },
    #[error("the values break the constraint `{constraint}`")]
    Broken { constraint: String },
    #[error(
        "over {MAX_COMBINATIONS} combinations would have to be tried, of which `{constraint}` leaves out most"
    )]
    TooManyCombinations { constraint: String },
}

/// ` with batch_size=32 lr=0.1`; nothing for a space without dimensions.
fn with(combination: &str) -> String {
    if combination.is_empty() { String::new() } else { format!(" with {combination}") }
}

impl SearchError {
    /// Why there is no trial of a model table with what was chosen.
    fn unclosed(unclosed: Unclosed, model: usize, choices: &Choices) -> Self {
        match unclosed {
            Unclosed::Empty => Self::Empty { dimension: format!("model[{model}]") },
            Unclosed::Formula(why) => Self::Formula { why, combination: choices_text(choices) },
        }
    }
}

/// The trials of a job, and what its constraints took away from them.
#[derive(Debug, Clone, PartialEq)]
pub struct Searched {
    /// The trials, in order; at least one.
    pub trials: Vec<Trial>,
    /// How many combinations the constraints left out.
    pub left_out: usize,
    /// Number of combinations that differ, where the search asks for more of them.
    pub differ: Option<u32>,
}

/// All trials that a job begins with, in order; at least one, but where a program of the user's own suggests them.
///
/// # Errors
/// [`SearchError`] where the space is empty, a dimension can't be searched, or there are too many.
pub fn trials(spec: &JobSpec) -> Result<Vec<Trial>, SearchError> {
    search(spec).map(|searched| searched.trials)
}

/// All trials of a job, and how many combinations its constraints left out.
///
/// # Errors
/// As of [`trials`].
pub fn search(spec: &JobSpec) -> Result<Searched, SearchError> {
    corners::check(spec)?;
    let mut combinations = Combinations::new(spec)?;
    let trials = match spec.search.method {
        SearchMethod::Grid => grid::trials(spec, &mut combinations)?,
        SearchMethod::Random { trials } => {
            random::trials(spec, 0..checked(trials)?, &mut combinations)?
        }
        SearchMethod::Pbt(Pbt { trials, .. }) => {
            random::population(spec, checked(trials)?, &mut combinations)?
        }
        SearchMethod::Tpe(Tpe { trials, .. }) => {
            checked(trials)?;
            random::trials(spec, 0..spec.search.startup(), &mut combinations)?
        }
        SearchMethod::Sobol { trials } => {
            sobol::trials(spec, 0..checked(trials)?, &Tried::default(), &mut combinations)?
        }
        SearchMethod::AskTell { trials } | SearchMethod::Epochs { trials } => {
            checked(trials)?;
            return Ok(Searched { trials: Vec::new(), left_out: 0, differ: None });
        }
    };
    if trials.is_empty() && !spec.search.method.suggests() {
        return Err(combinations.nothing_left());
    }
    let left_out = combinations.left_out();
    Ok(Searched { trials: each_seed_and_fold(trials, spec)?, left_out, differ: None })
}

/// Epochs that a trial is allowed when it begins.
#[must_use]
pub fn first_epochs(search: &SearchSpec, trial: TrialId, epochs: u32) -> u32 {
    match search.method {
        SearchMethod::Epochs { .. } => epochs.min(1),
        SearchMethod::Pbt(Pbt { interval, .. }) => epochs.min(interval),
        _ => stopping::first_epochs(search.stopping.as_ref(), trial, epochs),
    }
}

/// The combinations of these numbers of a search by random or quasi-random numbers, which was to have fewer, with each of the
/// job's seeds and folds. Those before them may be of another space. Where combinations are to differ, none is of those that were `tried`, and there
/// are fewer where no others are left.
///
/// # Errors
/// As of [`trials`], or that none is left.
pub fn further(
    spec: &JobSpec,
    numbers: Range<u32>,
    tried: &Tried,
) -> Result<Vec<Trial>, SearchError> {
    checked(numbers.end)?;
    corners::check(spec)?;
    let trials = match spec.search.method {
        SearchMethod::Sobol { .. } => {
            sobol::trials(spec, numbers, tried, &mut Combinations::new(spec)?)?
        }
        _ => random::trials(spec, numbers, &mut Combinations::after(spec, tried.clone())?)?,
    };
    each_seed_and_fold(trials, spec)
}

/// Trials by which a job is checked before it is submitted: those that it begins with, or, where all are suggested, some of those that
/// may be.
///
/// # Errors
/// As of [`trials`].
pub fn preview(spec: &JobSpec) -> Result<Searched, SearchError> {
    let begins = search(spec)?;
    let differ = falls_short(spec)?;
    if !begins.trials.is_empty() {
        return Ok(Searched { differ, ..begins });
    }
    let trials = spec.search.method.trials().unwrap_or(PREVIEWED);
    let trials = further(spec, 0..trials.min(PREVIEWED), &Tried::default())?;
    Ok(Searched { trials, left_out: 0, differ })
}

/// Combinations in all that a search is to try: of a grid all, of others as many as the job says.
#[must_use]
pub fn wanted(spec: &JobSpec, trials: &[Trial]) -> u32 {
    let all = u32::saturating_from(trials.len() / spec.trials_per_configuration());
    spec.search.method.trials().unwrap_or(all)
}

/// This many trials, if a job may have so many.
fn checked(trials: u32) -> Result<u32, SearchError> {
    match usize::try_from(trials) {
        Ok(..=MAX_TRIALS) => Ok(trials),
        _ => Err(SearchError::TooMany),
    }
}

/// Each of these combinations with each of the job's seeds, and each of these with each fold, one after the other; as they are where
/// there are none.
///
/// # Errors
/// [`SearchError::TooMany`].
pub fn each_seed_and_fold(
    combinations: Vec<Trial>,
    spec: &JobSpec,
) -> Result<Vec<Trial>, SearchError> {
    let all = combinations.len().checked_mul(spec.trials_per_configuration());
    if all.is_none_or(|all| all > MAX_TRIALS) {
        return Err(SearchError::TooMany);
    }
    if spec.seeds.is_empty() && spec.search.folds.is_none() {
        return Ok(combinations);
    }
    let with_seed = |trial: Trial| {
        let without = spec.seeds.is_empty().then(|| trial.clone());
        let with = spec.seeds.iter().map(move |seed| {
            let mut trial = Trial { seed: Some(*seed), ..trial.clone() };
            trial.choices.insert("seed".into(), (*seed).into());
            trial
        });
        without.into_iter().chain(with)
    };
    let with_fold = |trial: Trial| {
        let without = spec.search.folds.is_none().then(|| trial.clone());
        let with = (0..spec.search.folds.unwrap_or(0)).map(move |fold| {
            let mut trial = Trial { fold: Some(fold), ..trial.clone() };
            trial.choices.insert("fold".into(), fold.into());
            trial
        });
        without.into_iter().chain(with)
    };
    Ok(combinations.into_iter().flat_map(with_seed).flat_map(with_fold).collect())
}
