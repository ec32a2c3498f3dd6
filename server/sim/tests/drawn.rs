//! Drawn fleets: the server's default policy where nobody chose the case.

#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use sojourn_sim::fleet::{self, Ask, FleetKind, RunResult, Study};
use std::{fs, path::Path};

/// The scenario of the examples with 16 of its fleets and these keys, and every run of it with one seed.
fn run(settings: &[&str]) -> (Study, Vec<Vec<RunResult>>) {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/scheduling/11-drawn.toml");
    let text = fs::read_to_string(file).unwrap();
    let settings = settings.iter().chain(&["drawn.fleets=16"]).map(|key| (*key).to_owned());
    let study = fleet::read_with(&text, &settings.collect::<Vec<_>>()).unwrap();
    let mut files = |name: &str| Err(format!("no file {name}"));
    let mut runs = Vec::new();
    for (n, row) in study.rows.iter().enumerate() {
        for policy in study.policies(n) {
            let (scenario, seed) = (&row.scenario, row.scenario.seed);
            let run = fleet::run(scenario, policy, seed, Ask::Check(500), &mut files, &mut ());
            runs.push(vec![run.unwrap_or_else(|error| panic!("{}, {policy}: {error}", row.label))]);
        }
    }
    (study, runs)
}

#[test]
fn the_default_policy_is_ahead_of_the_best_of_the_others_in_drawn_fleets() {
    let (study, runs) = run(&[]);
    let cells = study.cells(runs);
    let kinds = fleet::by_kind(&study, &cells);
    let found: Vec<FleetKind> = kinds.iter().map(|kind| kind.kind).collect();
    assert_eq!(found, FleetKind::ALL, "each of them twice");
    assert!(kinds.iter().all(|kind| kind.fleets == 2), "{kinds:?}");
    let mean = kinds.iter().map(|kind| kind.over_best_other.mean).sum::<f64>() / 8.0;
    assert!(mean <= 1.0, "{mean}: {kinds:#?}");
    assert!(kinds.iter().all(|kind| kind.over_best_other.max <= 1.05), "{kinds:#?}");
}

#[test]
fn no_run_ends_before_its_lower_bound() {
    let (study, runs) = run(&["hosts.noise=0.0", "server.policy=rollout"]);
    for (row, run) in study.rows.iter().zip(runs.iter().flatten()) {
        let by = run.bound_by.name();
        assert!(run.ratio > 0.9999, "{}: {} s, {} s by {by}", row.label, run.makespan, run.bound);
    }
}
