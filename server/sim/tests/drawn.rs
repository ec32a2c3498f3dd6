//! Drawn fleets: the server's default policy where nobody chose the case.

#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use sojourn_sim::fleet::{self, Ask, FleetKind, RunResult, Study};
use std::{fs, path::Path};

/// The scenario of the examples with so many of its fleets, and every run of it with one seed.
fn run(fleets: u32) -> (Study, Vec<Vec<RunResult>>) {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/scheduling/11-drawn.toml");
    let text = fs::read_to_string(file).unwrap();
    let study = fleet::read_with(&text, &[format!("drawn.fleets={fleets}")]).unwrap();
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
    let (study, runs) = run(16);
    let cells = study.cells(runs);
    let kinds = fleet::by_kind(&study, &cells);
    let found: Vec<FleetKind> = kinds.iter().map(|kind| kind.kind).collect();
    assert_eq!(found, FleetKind::ALL, "each of them twice");
    assert!(kinds.iter().all(|kind| kind.fleets == 2), "{kinds:?}");
    let mean = kinds.iter().map(|kind| kind.over_best_other.mean).sum::<f64>() / 8.0;
    assert!(mean <= 1.0, "{mean}: {kinds:#?}");
    assert!(kinds.iter().all(|kind| kind.over_best_other.max <= 1.05), "{kinds:#?}");
    // No run ends before its lower bound, but for units that take a little less than they should.
    assert!(cells.iter().all(|cell| cell.ratio.min > 0.9), "{kinds:#?}");
}
