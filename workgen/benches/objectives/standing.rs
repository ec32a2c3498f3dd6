//! Searches of the objectives, and how their best values stand to those that Optuna's were recorded to find.

use super::{functions::Values, spaces::Objective};
use serde_json::Value;
use sojourn_protocol::{jobfile, spec::JobSpec};
use sojourn_workgen::search::{
    Trial, Tried,
    tpe::{Observation, Outcome, suggest},
    trials,
};
use std::collections::BTreeMap;

/// The numbers of trials after which searches are compared.
pub(crate) const CHECKS: [usize; 2] = [30, 60];

/// Trials that are random, as by default and in Optuna.
const STARTUP: usize = 10;

/// The mean and the standard deviation of the best values of so many searches.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bests {
    pub(crate) mean: f64,
    pub(crate) deviation: f64,
    pub(crate) seeds: f64,
}

impl Bests {
    fn of(values: &[f64]) -> Self {
        let seeds = values.len() as f64;
        let mean = values.iter().sum::<f64>() / seeds;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Self { mean, deviation: (squares / (seeds - 1.0).max(1.0)).sqrt(), seeds }
    }

    /// By how many standard errors of the difference the mean is above another: above 0 it is worse.
    pub(crate) fn z(&self, other: &Self) -> f64 {
        let variance = |of: &Self| of.deviation.powi(2) / of.seeds;
        (self.mean - other.mean) / (variance(self) + variance(other)).sqrt()
    }
}

/// The results of Optuna, as `workgen/tests/tpe_optuna.py` recorded them.
pub(crate) struct Recorded(Value);

impl Recorded {
    pub(crate) fn read() -> Self {
        Self(serde_json::from_str(include_str!("../../tests/tpe_optuna.json")).unwrap())
    }

    /// The best values after each of [`CHECKS`].
    pub(crate) fn bests(&self, objective: &Objective) -> [Bests; 2] {
        let of = &self.0["objectives"][objective.name];
        let seeds = self.0["seeds"].as_f64().unwrap();
        [0, 1].map(|at| Bests {
            mean: of["means"][at].as_f64().unwrap(),
            deviation: of["deviations"][at].as_f64().unwrap(),
            seeds,
        })
    }

    /// Combinations of an objective, with their values by Optuna's side.
    pub(crate) fn points(&self, objective: &Objective) -> Vec<(Combination, f64)> {
        let points = self.0["objectives"][objective.name]["points"].as_array().unwrap();
        let point = |of: &Value| {
            let values: BTreeMap<String, Value> =
                serde_json::from_value(of["values"].clone()).unwrap();
            let table = serde_json::from_value(values["model"].clone()).unwrap();
            (Combination { table, values }, of["objective"].as_f64().unwrap())
        };
        points.iter().map(point).collect()
    }
}

/// A combination's values, by the last words of their names.
pub(crate) struct Combination {
    table: u32,
    values: BTreeMap<String, Value>,
}

impl Combination {
    fn of(trial: &Trial) -> Self {
        let last = |name: &String| name.rsplit('.').next().unwrap_or_default().to_owned();
        let values = trial.choices.iter().map(|(name, value)| (last(name), value.clone()));
        Self { table: trial.model, values: values.collect() }
    }

    fn get(&self, name: &str) -> &Value {
        self.values.get(name).unwrap_or(&Value::Null)
    }
}

impl Values for Combination {
    fn table(&self) -> u32 {
        self.table
    }

    fn number(&self, name: &str) -> f64 {
        self.get(name).as_f64().unwrap_or(f64::NAN)
    }

    fn word(&self, name: &str) -> &str {
        self.get(name).as_str().unwrap_or_default()
    }

    fn is(&self, name: &str) -> bool {
        self.get(name).as_bool().unwrap_or_default()
    }

    fn vector(&self) -> Vec<f64> {
        (0..).map_while(|n| self.get(&format!("x{n}")).as_f64()).collect()
    }
}

fn job(objective: &Objective) -> JobSpec {
    let optimizer = match objective.shared {
        "" => "name = \"sgd\", lr = 0.1".to_owned(),
        shared => format!("name = \"sgd\", {shared}"),
    };
    let tables = objective.tables.iter();
    let tables: String = tables
        .map(|keys| format!("[[model]]\narch = \"graph\"\nentry = \"model.py:Model\"\n{keys}\n"))
        .collect();
    let text = format!(
        "name = \"objective\"\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\nshape = [1, 8, 8]\n{tables}[training]\nepochs = 1\noptimizer = {{ {optimizer} }}\n[search]\ncombinations = \"all\"\nmethod = \"random\"\ntrials = {STARTUP}\nmetric = \"valid/loss\""
    );
    jobfile::parse(&text).unwrap()
}

/// The best values of so many searches, one for each seed, after each of [`CHECKS`].
pub(crate) fn searched(objective: &Objective, seeds: u64) -> [Bests; 2] {
    let mut spec = job(objective);
    let bests = (0..seeds).map(|seed| {
        spec.seed = seed;
        search(objective, &spec)
    });
    let bests: Vec<[f64; 2]> = bests.collect();
    [0, 1].map(|at| Bests::of(&bests.iter().map(|of| of[at]).collect::<Vec<_>>()))
}

fn search(objective: &Objective, spec: &JobSpec) -> [f64; 2] {
    let value = |trial: &Trial| (objective.function)(&Combination::of(trial));
    let mut all: Vec<(Trial, f64)> = trials(spec)
        .unwrap()
        .into_iter()
        .map(|trial| {
            let value = value(&trial);
            (trial, value)
        })
        .collect();
    for index in (0..CHECKS[1]).skip(all.len()) {
        let known: Vec<Observation<'_>> = all
            .iter()
            .map(|(Trial { model, choices, .. }, value)| Observation {
                model: *model,
                choices,
                outcome: Outcome::Ended { epochs: 1, value: *value },
            })
            .collect();
        let trial =
            suggest(spec, &known, u32::try_from(index).unwrap(), &Tried::default(), &mut |_| true)
                .unwrap();
        let value = value(&trial);
        all.push((trial, value));
    }
    CHECKS.map(|count| {
        all.iter().take(count).fold(f64::INFINITY, |best, (_, value)| best.min(*value))
    })
}
