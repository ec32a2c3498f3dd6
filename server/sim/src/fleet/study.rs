//! All runs of a scenario file: rows x policies x seeds.

use super::{
    bound::Names,
    check,
    error::ScenarioError,
    files::Files,
    gantt::Chart,
    machines::Machines,
    make_plan,
    policy::Policy,
    quantity::float,
    read::{Normalise, Study},
    result::{RunResult, Spread},
    run::{Run, Watch},
    scenario::Scenario,
    training::Trains,
};
use serde::Serialize;

/// One row under one policy, over all seeds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cell {
    /// The row.
    pub row: String,
    /// The policy.
    pub policy: String,
    /// In seconds.
    pub makespan: Spread,
    /// Makespan over the lower bound.
    pub ratio: Spread,
    /// Makespan over what the file asks to compare with, seed by seed.
    pub normalised: Spread,
    /// Every seed.
    pub runs: Vec<RunResult>,
}

/// A request to one run beside its result.
pub enum Ask<'a> {
    /// Nothing more.
    Result,
    /// A chart of it.
    Chart(&'a mut Option<Chart>),
    /// To check all the core's invariants after so many commands, again and again.
    Check(u64),
}

/// Runs a scenario with one seed under one policy.
///
/// # Errors
/// Why it can't be run, or doesn't end.
pub fn run(
    scenario: &Scenario,
    policy: Policy,
    seed: u64,
    ask: Ask<'_>,
    files: &mut Files<'_>,
    watch: &mut dyn Watch,
) -> Result<RunResult, ScenarioError> {
    run_training(scenario, policy, seed, ask, files, None, watch)
}

/// As [`run`], with somebody who really trains the jobs that ask for it.
///
/// # Errors
/// Why it can't be run, or doesn't end.
pub fn run_training<'a>(
    scenario: &Scenario,
    policy: Policy,
    seed: u64,
    ask: Ask<'_>,
    files: &mut Files<'_>,
    mut trains: Option<&'a mut (dyn Trains + 'a)>,
    watch: &mut dyn Watch,
) -> Result<RunResult, ScenarioError> {
    if trains.is_none() && scenario.all_jobs().any(|job| job.train) {
        return Err(ScenarioError::Wrong("`job.train`: there is nobody here who trains".into()));
    }
    if !policy.is_built() {
        return Err(ScenarioError::Wrong(Policy::MISSING.into()));
    }
    let plan = make_plan::make(scenario, seed, files, trains.as_deref_mut())
        .map_err(ScenarioError::Wrong)?;
    plan.remarks.iter().for_each(|remark| watch.remark(remark));
    let mut run = Run::new(&plan, policy, watch);
    run.trains = trains.map(|trains| trains as &mut dyn Trains);
    match ask {
        Ask::Result => {}
        Ask::Chart(_) => run.bars = Some(Vec::new()),
        Ask::Check(every) => run.check_every = Some(every),
    }
    let (result, bars) = run.run().map_err(|error| {
        ScenarioError::Endless(format!("seed {seed}, policy {}: {error}", policy))
    })?;
    if let (Ask::Chart(chart), Some(bars)) = (ask, bars) {
        let title = format!("{}, seed {seed}", policy);
        *chart = Some(Chart::new(&plan, title, bars));
    }
    Ok(result)
}

/// As [`run`], with somebody who buys machines and gives them back. The scenario's hosts are the kinds that there are; all
/// of the core's invariants are checked after so many commands, again and again, where a number is given.
///
/// # Errors
/// Why it can't be run, or doesn't end.
pub fn run_buying<'a>(
    scenario: &Scenario,
    policy: Policy,
    seed: u64,
    check_every: Option<u64>,
    machines: &'a mut (dyn Machines + 'a),
    watch: &mut dyn Watch,
) -> Result<RunResult, ScenarioError> {
    check::scenario(scenario)
        .map_err(|fault| ScenarioError::Wrong(format!("`{}`: {}", fault.path, fault.said)))?;
    let mut no_files = |name: &str| Err(format!("`{name}` can't be read here"));
    let plan =
        make_plan::make(scenario, seed, &mut no_files, None).map_err(ScenarioError::Wrong)?;
    let mut run = Run::new(&plan, policy, watch);
    run.check_every = check_every;
    run.machines = Some(machines as &mut dyn Machines);
    let ended = run.run();
    let (result, _) =
        ended.map_err(|error| ScenarioError::Endless(format!("seed {seed}: {error}")))?;
    Ok(result)
}

/// The lower bound of a scenario's makespan with one seed, in seconds, and which bound it is.
///
/// # Errors
/// Why it can't be run.
pub fn lower_bound(
    scenario: &Scenario,
    seed: u64,
    files: &mut Files<'_>,
) -> Result<(f64, Names), ScenarioError> {
    let plan = make_plan::make(scenario, seed, files, None).map_err(ScenarioError::Wrong)?;
    Ok((float(plan.bound.micros) / 1e6, plan.bound.names))
}

/// Puts the runs of a row and a policy together. `compared`: the makespan to compare with, by seed.
#[must_use]
pub fn cell(row: &str, policy: Policy, runs: Vec<RunResult>, compared: &[f64]) -> Cell {
    let normalised = runs.iter().zip(compared).map(|(run, compared)| run.makespan / compared);
    Cell {
        row: row.to_owned(),
        policy: policy.to_string(),
        makespan: Spread::of(runs.iter().map(|run| run.makespan)),
        ratio: Spread::of(runs.iter().map(|run| run.ratio)),
        normalised: Spread::of(normalised),
        runs,
    }
}

impl Study {
    /// The policies of a row; with that which makespans are compared with, where it isn't among them.
    #[must_use]
    pub fn policies(&self, row: usize) -> Vec<Policy> {
        let mut policies =
            self.rows.get(row).map(|row| row.scenario.server.policy.0.clone()).unwrap_or_default();
        if let Normalise::Policy(policy) = self.normalise
            && !policies.contains(&policy)
        {
            policies.insert(0, policy);
        }
        policies
    }

    /// Makes the cells of all runs, which come row by row and policy by policy, all seeds of one together.
    #[must_use]
    pub fn cells(&self, runs: Vec<Vec<RunResult>>) -> Vec<Cell> {
        let names = (0..self.rows.len())
            .flat_map(|row| self.policies(row).into_iter().map(move |policy| (row, policy)));
        let names: Vec<(usize, Policy)> = names.collect();
        let makespans = |runs: &Vec<RunResult>| runs.iter().map(|run| run.makespan).collect();
        let compared: Vec<Vec<f64>> = names
            .iter()
            .zip(&runs)
            .map(|((row, policy), own)| {
                let find = |wanted: (usize, Policy)| {
                    names.iter().zip(&runs).find(|(name, _)| **name == wanted).map(|(_, runs)| runs)
                };
                match self.normalise {
                    Normalise::Bound => own.iter().map(|run| run.bound).collect(),
                    Normalise::Policy(policy) => {
                        find((*row, policy)).map_or_else(Vec::new, makespans)
                    }
                    Normalise::First => find((0, *policy)).map_or_else(Vec::new, makespans),
                }
            })
            .collect();
        let cells = names.iter().zip(runs).zip(compared);
        let cells = cells.map(|(((row, policy), runs), compared)| {
            let label = self.rows.get(*row).map_or("", |row| row.label.as_str());
            cell(label, *policy, runs, &compared)
        });
        cells.collect()
    }
}
