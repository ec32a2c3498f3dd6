//! Drawn fleets by their kind: the server's default policy beside the best of the others.

use super::{
    drawn::FleetKind,
    job::count,
    policy::Policy,
    quantity::float,
    read::Study,
    result::{RunResult, Spread},
    study::Cell,
};
use serde::Serialize;
use std::collections::BTreeMap;

/// All drawn fleets of one kind. Figures of a fleet are means over its seeds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KindSummary {
    /// The kind.
    pub kind: FleetKind,
    /// How many fleets.
    pub fleets: u64,
    /// The makespan under the default policy over that under the best other one of the same fleet.
    pub over_best_other: Spread,
    /// The fleet in which that is largest.
    pub worst: String,
    /// The makespan under the default policy over the lower bound.
    pub over_bound: Spread,
    /// The share of slot time that waits for bytes under the default policy.
    pub waiting: f64,
}

/// One fleet under the default policy.
struct FleetFigures<'a> {
    row: &'a str,
    over_best_other: f64,
    over_bound: f64,
    waiting: f64,
}

/// The drawn fleets of a study by kind; empty where none is drawn, or where the default has nothing to be held against.
#[must_use]
pub fn by_kind(study: &Study, cells: &[Cell]) -> Vec<KindSummary> {
    let mut kinds: BTreeMap<FleetKind, Vec<FleetFigures<'_>>> = BTreeMap::new();
    let default = Policy::default();
    let mut of_rows: BTreeMap<&str, Vec<&Cell>> = BTreeMap::new();
    for cell in cells {
        of_rows.entry(&cell.row).or_default().push(cell);
    }
    for row in &study.rows {
        let Some(kind) = row.kind else { continue };
        let Some(of_row) = of_rows.get(row.label.as_str()) else { continue };
        let (defaults, others): (Vec<&Cell>, Vec<&Cell>) =
            of_row.iter().partition(|cell| cell.policy == default.name());
        let Some(own) = defaults.first() else { continue };
        let others = others.into_iter();
        let Some(best) = others.map(|cell| cell.makespan.mean).reduce(f64::min) else { continue };
        let mean = |of: fn(&RunResult) -> f64| Spread::of(own.runs.iter().map(of)).mean;
        kinds.entry(kind).or_default().push(FleetFigures {
            row: &row.label,
            over_best_other: own.makespan.mean / best,
            over_bound: mean(|run| run.ratio),
            waiting: mean(|run| run.waiting),
        });
    }
    let summaries = kinds.into_iter().map(|(kind, fleets)| {
        let worst = fleets.iter().max_by(|a, b| a.over_best_other.total_cmp(&b.over_best_other));
        let waiting: f64 = fleets.iter().map(|fleet| fleet.waiting).sum();
        KindSummary {
            kind,
            fleets: count(fleets.len()),
            over_best_other: Spread::of(fleets.iter().map(|fleet| fleet.over_best_other)),
            worst: worst.map(|fleet| fleet.row.to_owned()).unwrap_or_default(),
            over_bound: Spread::of(fleets.iter().map(|fleet| fleet.over_bound)),
            waiting: waiting / float(count(fleets.len()).max(1)),
        }
    });
    summaries.collect()
}
