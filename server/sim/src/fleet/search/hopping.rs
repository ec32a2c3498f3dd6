//! The run of a search by the core that the server runs, looked at as it goes.

use super::{KnownLoss, SearchRun, slot_time::SlotTime};
use crate::fleet::{
    error::ScenarioError,
    files::Files,
    policy::Policy,
    run::{Interval, Watch},
    scenario::Scenario,
    study::{Ask, run},
};
use sojourn_core::State;
use sojourn_protocol::quantity::to_u64;

/// Looks at slots as time passes.
#[derive(Default)]
struct Looking(SlotTime);

impl Watch for Looking {
    fn passes(&mut self, interval: &Interval<'_>) {
        let (slots, busy) = interval.slots();
        self.0.add(interval.micros, slots, busy, runnable(interval.state));
    }
}

/// Trials that have begun, and have something to train or to evaluate.
fn runnable(state: &State) -> u64 {
    let jobs = state.jobs.values().filter(|job| job.is_running());
    let trials = jobs.flat_map(|job| &job.trials);
    let runs =
        trials.filter(|trial| trial.is_running() && !trial.is_held() && trial.chain.epochs() > 0);
    to_u64(runs.count())
}

/// Runs a scenario's search with one seed under one policy. `target`: the loss of a good trial.
///
/// # Errors
/// Why it can't be run, or doesn't end.
pub fn hopping(
    scenario: &Scenario,
    policy: Policy,
    seed: u64,
    target: f64,
    files: &mut Files<'_>,
) -> Result<SearchRun, ScenarioError> {
    let mut looking = Looking::default();
    let result = run(scenario, policy, seed, Ask::Result, files, &mut looking)?;
    let known = result.scores.iter().map(|score| KnownLoss { at: score.at, loss: score.value });
    let known: Vec<KnownLoss> = known.collect();
    Ok(SearchRun::of(&known, target, result.makespan, &looking.0))
}
