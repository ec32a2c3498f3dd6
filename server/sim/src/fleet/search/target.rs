//! The loss of a good trial: of one of the best of its space.

use crate::fleet::{
    error::ScenarioError, files::Files, job_file::spec_of, scenario::Scenario, surrogate::Surrogate,
};
use sojourn_protocol::{
    ids::TrialId,
    quantity::{SaturatingFrom as _, to_usize},
    spec::SearchMethod,
};

/// Configurations that are drawn of a space.
const DRAWN: u32 = 2_000;
/// Of so many the best is a good one.
const ONE_OF: u32 = 20;
/// Where they are drawn from: no seed of a scenario.
const SEED: u64 = 0x7461_7267_6574;

/// The loss that the best 5 % of a scenario's space reach: of 2,000 random configurations, each with its lowest loss over all
/// epochs, the 100th.
///
/// # Errors
/// What is wrong with the scenario: it needs one job with a surrogate.
pub fn target(scenario: &Scenario, files: &mut Files<'_>) -> Result<f64, ScenarioError> {
    of(scenario, files).map_err(ScenarioError::Wrong)
}

fn of(scenario: &Scenario, files: &mut Files<'_>) -> Result<f64, String> {
    let entry = scenario.all_jobs().next();
    let paths =
        entry.and_then(|entry| Some((entry, entry.file.as_ref()?, entry.surrogate.as_ref()?)));
    let (entry, job, curves) = paths.ok_or("a job with a `file` and a `surrogate` is needed")?;
    let mut spec = spec_of(job, &files(job)?, &entry.set)?;
    let surrogate = Surrogate::read(curves, &files(curves)?)?;
    spec.search.method = SearchMethod::Random { trials: DRAWN };
    spec.seed = SEED;
    let trials = sojourn_workgen::trials(&spec).map_err(|error| format!("`{job}`: {error}"))?;
    let lowest = trials.iter().enumerate().map(|(n, trial)| {
        let curve = surrogate.curve(&trial.config, SEED, TrialId(u32::saturating_from(n)))?;
        let epochs = to_usize(spec.training.epochs);
        Ok(curve.into_iter().take(epochs).fold(f64::INFINITY, f64::min))
    });
    let mut lowest = lowest.collect::<Result<Vec<f64>, String>>()?;
    lowest.sort_by(f64::total_cmp);
    let place = to_usize((DRAWN / ONE_OF).saturating_sub(1));
    lowest.get(place).copied().ok_or_else(|| format!("`{job}` has too few configurations"))
}
