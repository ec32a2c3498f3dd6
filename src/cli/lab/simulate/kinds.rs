//! The table of drawn fleets, in place of one with a line for each of them.

use crate::cli::render::tables::{Column, Grid};
use sojourn_sim::fleet::KindSummary;

pub(super) fn text(kinds: &[KindSummary]) -> String {
    let mut grid = Grid::new(&[
        ("fleets", Column::Text),
        ("drawn", Column::Number),
        ("over the best other policy", Column::Number),
        ("worst", Column::Number),
        ("in", Column::Text),
        ("over the bound", Column::Number),
        ("worst", Column::Number),
        ("waiting", Column::Number),
    ]);
    for kind in kinds {
        grid.row(vec![
            kind.kind.to_string(),
            kind.fleets.to_string(),
            format!("{:.3}", kind.over_best_other.mean),
            format!("{:.3}", kind.over_best_other.max),
            kind.worst.clone(),
            format!("{:.3}", kind.over_bound.mean),
            format!("{:.3}", kind.over_bound.max),
            format!("{:.1} %", kind.waiting * 100.0),
        ]);
    }
    grid.text()
}
