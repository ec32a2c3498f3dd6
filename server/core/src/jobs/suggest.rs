//! Searches that try further combinations while others train.

use super::JobHandler;
use crate::{fault::CoreFault, submission::check_trial};
use sojourn_protocol::{
    ids::JobId,
    quantity::{SaturatingFrom as _, to_usize},
    spec::{Choices, SearchMethod, Stopping, Tpe, is_replicate},
};
use sojourn_state::{AddedTrial, Event, Job, Stopped, Trial, TrialEnd};
use sojourn_workgen::search::{
    SearchError, Tried, each_seed_and_fold, further,
    tpe::{self, Observation, Outcome},
};
use std::collections::BTreeMap;

/// Combinations that one step suggests of a job: the server answers in between.
const MAX_A_STEP: u32 = 32;
/// The same of combinations for which nothing is computed.
const MAX_DRAWN_A_STEP: u32 = 256;

/// The suggestions of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Suggested {
    Nothing,
    Some,
    /// There is room for more.
    AndMore,
}

impl Suggested {
    pub(super) fn any(self) -> bool {
        self != Self::Nothing
    }

    pub(super) fn has_more(self) -> bool {
        self == Self::AndMore
    }
}

impl JobHandler<'_> {
    /// Adds the trials that a job's procedure suggests now, with so many slots.
    pub(super) fn suggest(&mut self, job: JobId, slots: u64) -> Result<Suggested, CoreFault> {
        let mut done = 0;
        loop {
            let Some(known) = self.state().jobs.get(&job) else { return Ok(Suggested::Nothing) };
            let (wanted, limit) = wanted(known, || self.room_for_suggestions(known, slots));
            if wanted == 0 {
                break;
            }
            if done >= limit {
                return Ok(Suggested::AndMore);
            }
            match next(known, wanted.min(limit)) {
                Ok((trials, suggested, why)) => {
                    done += suggested;
                    let (nonce, by, first) = (None, None, known.trials.len());
                    self.record(Event::TrialsAdded { job, trials, suggested, why, nonce, by })?;
                    self.look_at_added(job, first);
                }
                Err(why) => {
                    self.record(Event::SearchEnded { job, why, by: None })?;
                    break;
                }
            }
            self.results.ledger.planner.outdate_plan(job);
        }
        Ok(if done == 0 { Suggested::Nothing } else { Suggested::Some })
    }
}

/// How many combinations are to be suggested now, and at most in one step, where there is room for so many trials.
fn wanted(job: &Job, room: impl FnOnce() -> usize) -> (u32, u32) {
    // Once its time is up nothing more is trained.
    if !job.is_open() || job.grace.is_some() || !job.search.is_open() {
        return (0, 0);
    }
    let left = job.search.wanted - job.search.suggested;
    let startup = job.spec.search.startup();
    match job.spec.search.method {
        SearchMethod::AskTell { .. } | SearchMethod::Epochs { .. } => (0, 0),
        SearchMethod::Grid
        | SearchMethod::Random { .. }
        | SearchMethod::Sobol { .. }
        | SearchMethod::Pbt(_) => (left, MAX_DRAWN_A_STEP),
        SearchMethod::Tpe(_) if job.search.suggested < startup => {
            (left.min(startup - job.search.suggested), MAX_DRAWN_A_STEP)
        }
        SearchMethod::Tpe(Tpe { batch: Some(batch), .. }) => {
            let is_over = !job.trials.iter().any(|trial| trial.is_running() && !waits(trial));
            (if is_over { left.min(batch) } else { 0 }, batch)
        }
        SearchMethod::Tpe(_) => {
            if job.trials.iter().any(|trial| trial.is_running() && !has_begun(trial)) {
                return (0, 0);
            }
            let room = room().div_ceil(job.spec.trials_per_configuration());
            (left.min(u32::saturating_from(room)), MAX_A_STEP)
        }
    }
}

/// Why a job's procedure has no further combination, where it hasn't.
pub(super) fn nothing_more(job: &Job) -> Option<String> {
    if job.spec.search.method.is_outside() {
        return None;
    }
    next(job, 1).err()
}

/// The next combinations, at most so many: their trials, how many combinations they are, and why they come.
fn next(job: &Job, wanted: u32) -> Result<(Vec<AddedTrial>, u32, String), String> {
    let (from, spec) = (job.search.suggested, &job.spec);
    let checked = |trials: Vec<sojourn_workgen::Trial>| {
        for trial in &trials {
            check_trial(spec, &job.data, trial)?;
        }
        Ok::<_, String>(trials.into_iter().map(AddedTrial::new).collect::<Vec<_>>())
    };
    let said = |error: SearchError| match error {
        SearchError::UsedUp { differ, .. } => {
            SearchError::UsedUp { differ, asked: job.search.wanted }.to_string()
        }
        error => error.to_string(),
    };
    match spec.search.method {
        SearchMethod::Tpe(Tpe { startup: least, batch, .. }) if from >= spec.search.startup() => {
            let failed = job.trials.iter().filter(|trial| has_failed(trial)).count();
            let least = to_usize(least).saturating_mul(spec.trials_per_configuration());
            if failed >= least && job.trials.iter().all(|trial| trial.best.is_none()) {
                return Err(format!("the first {failed} trials have all failed"));
            }
            let count = if batch.is_some() { wanted } else { 1 };
            let known = Known::of(job);
            let is_known = |one: &&Observation<'_>| matches!(one.outcome, Outcome::Ended { .. });
            let results = known.observations().iter().filter(is_known).count();
            let s = if results == 1 { "" } else { "s" };
            let why = format!("suggested by the results of {results} trial{s}");
            let mut suggested: Vec<sojourn_workgen::Trial> = Vec::new();
            let mut tried = tried(job);
            let is_distinct = spec.search.combinations.is_distinct();
            let mut accept = |trial: &_| check_trial(spec, &job.data, trial).is_ok();
            for number in from..from + count {
                let before = suggested.iter().map(|trial| Observation {
                    model: trial.model,
                    choices: &trial.choices,
                    outcome: Outcome::Running,
                });
                let all: Vec<Observation<'_>> =
                    known.observations().into_iter().chain(before).collect();
                match tpe::suggest(spec, &all, number, &tried, &mut accept) {
                    Ok(trial) => {
                        if is_distinct {
                            tried.add(&trial);
                        }
                        suggested.push(trial);
                    }
                    Err(SearchError::UsedUp { .. }) if !suggested.is_empty() => break,
                    Err(error) => return Err(said(error)),
                }
            }
            let count = u32::saturating_from(suggested.len());
            Ok((checked(each_seed_and_fold(suggested, spec).map_err(said)?)?, count, why))
        }
        _ => {
            let trials = further(spec, from..from + wanted, &tried(job)).map_err(said)?;
            let suggested = u32::saturating_from(trials.len() / spec.trials_per_configuration());
            Ok((checked(trials)?, suggested, "there are to be more trials".to_owned()))
        }
    }
}

/// The combinations that a job's trials have from their beginning, where further ones are to differ from them. A clone's other settings
/// were never trained with from the beginning.
pub(super) fn tried(job: &Job) -> Tried {
    let of_job =
        if job.spec.search.combinations.is_distinct() { job.trials.as_slice() } else { &[] };
    let begun = of_job.iter().filter(|trial| trial.origin.is_none());
    Tried::of(begun.map(|trial| (trial.model, &trial.context.config)))
}

/// Has it been let train at all?
fn has_begun(trial: &Trial) -> bool {
    trial.chain.epochs() > 0
}

/// Does it wait for a decision after what it has trained?
fn waits(trial: &Trial) -> bool {
    has_begun(trial) && trial.is_held()
}

fn has_failed(trial: &Trial) -> bool {
    matches!(trial.end, Some(TrialEnd::Failed(_)))
}

/// The known outcome of each combination of a job.
struct Known {
    all: Vec<(u32, Choices, Outcome)>,
}

impl Known {
    fn of(job: &Job) -> Self {
        let past = job.spec.search.history.iter().flat_map(|past| &past.trials);
        let epochs = job.spec.training.epochs;
        let past = past.map(|trial| {
            // Trials of a longer job aren't better for that.
            let outcome = Outcome::Ended { epochs: trial.epochs.min(epochs), value: trial.value };
            (trial.model, trial.choices.clone(), outcome)
        });
        Self { all: past.chain(Self::own(job)).collect() }
    }

    /// The combinations of the job itself.
    fn own(job: &Job) -> Vec<(u32, Choices, Outcome)> {
        if job.spec.trials_per_configuration() == 1 && job.spec.seeds.is_empty() {
            let all = job.trials.iter();
            let all = all.map(|trial| (trial.model, trial.choices.clone(), outcome(job, trial)));
            return all.collect();
        }
        // Trials that differ in their seeds and folds alone are one combination.
        let mut combinations: BTreeMap<String, (u32, Choices, Vec<Outcome>)> = BTreeMap::new();
        for trial in job.trials.iter().filter(|trial| trial.refit.is_none()) {
            let mut choices = trial.choices.clone();
            choices.retain(|name, _| !is_replicate(name));
            let key = format!("{} {}", trial.model, serde_json::json!(choices));
            let entry = combinations.entry(key);
            let (.., outcomes) = entry.or_insert_with(|| (trial.model, choices, Vec::new()));
            outcomes.push(outcome(job, trial));
        }
        let all = combinations.into_values();
        all.map(|(model, choices, of)| (model, choices, mean(&of))).collect()
    }

    fn observations(&self) -> Vec<Observation<'_>> {
        let all = self.all.iter();
        all.map(|(model, choices, outcome)| Observation {
            model: *model,
            choices,
            outcome: *outcome,
        })
        .collect()
    }
}

/// The outcome of a trial so far.
fn outcome(job: &Job, trial: &Trial) -> Outcome {
    let search = &job.spec.search;
    if has_failed(trial) {
        return Outcome::Failed;
    }
    // Rungs are compared while their trials may still go on.
    let is_known = !trial.is_running() || search.stopping.is_some();
    match trial.best.filter(|_| is_known) {
        Some(best) => {
            let epochs = match (&trial.stopped, search.stopping) {
                // It was as good as is wanted before others were, or had converged: neither is worse for being short.
                (Some(Stopped::Target { .. }), _) | (_, Some(Stopping::Patience { .. })) => {
                    job.spec.training.epochs
                }
                _ => u32::saturating_from(trial.curve.len()),
            };
            Outcome::Ended { epochs, value: best.value }
        }
        None if trial.is_running() => Outcome::Running,
        None => Outcome::Failed,
    }
}

/// The outcome of a combination with several seeds or folds: the mean, once all of them have ended.
fn mean(outcomes: &[Outcome]) -> Outcome {
    let (mut sum, mut least, mut count) = (0.0, u32::MAX, 0.0);
    for outcome in outcomes {
        match *outcome {
            Outcome::Running => return Outcome::Running,
            Outcome::Failed => return Outcome::Failed,
            Outcome::Ended { epochs, value } => {
                (sum, least, count) = (sum + value, least.min(epochs), count + 1.0);
            }
        }
    }
    Outcome::Ended { epochs: least, value: sum / count }
}
