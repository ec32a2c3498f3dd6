//! How an evaluation's metrics and its confusion matrix are written.

use crate::cli::render::{
    tables::{Column, Grid},
    text,
};
use sojourn_protocol::{
    metrics::{ByClass, Metrics},
    view::{EvaluationResult, EvaluationState, EvaluationView},
};

/// Classes of a matrix that fits a screen.
const WIDEST: usize = 20;

/// Each metric's name and value, the most telling first.
fn values(metrics: &Metrics) -> Vec<(String, f64)> {
    let named = |name: &str, value: Option<f64>| value.map(|value| (name.to_owned(), value));
    let top_k = metrics.top_k.map(|top| (format!("top-{} accuracy", top.k), top.accuracy));
    let all = [
        named("accuracy", metrics.accuracy),
        top_k,
        named("macro F1", metrics.f1),
        named("RMSE", metrics.rmse),
        named("loss", Some(metrics.loss)),
    ];
    let own = metrics.own.iter().map(|(name, value)| (name.clone(), *value));
    all.into_iter().flatten().chain(own).collect()
}

/// `accuracy 0.9722, macro F1 0.9719, loss 0.1032`.
pub(crate) fn list(metrics: &Metrics) -> String {
    let pairs = values(metrics);
    let pairs = pairs.iter().map(|(name, value)| format!("{name} {}", text::metric(*value)));
    pairs.collect::<Vec<_>>().join(", ")
}

/// A line for each metric.
pub(crate) fn table(metrics: &Metrics) -> String {
    let rows = ("rows".to_owned(), text::count(metrics.rows));
    let values = values(metrics).into_iter().map(|(name, value)| (name, text::metric(value)));
    let lines: Vec<(String, String)> = std::iter::once(rows).chain(values).collect();
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines = lines.iter().map(|(name, value)| format!("{name:width$}  {value}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// An evaluation on the test data in a line.
pub(crate) fn test(view: &EvaluationView) -> String {
    let state = match &view.state {
        EvaluationState::Done(result) => list(&result.metrics),
        EvaluationState::Running => "under way".to_owned(),
        EvaluationState::Waiting { reason: None } => "waits for a machine".to_owned(),
        EvaluationState::Waiting { reason: Some(reason) } => format!("waits: {reason}"),
        EvaluationState::Failed { error } => format!("failed: {error}"),
    };
    format!("{state} (trial {}, epoch {}; not used by the search)", view.trial, view.epoch.0 + 1)
}

/// The confusion matrix with the names of its classes, where it was counted and fits a screen; else what
/// to do about it.
pub(crate) fn confusion(result: &EvaluationResult, classes: Option<&[String]>) -> Option<String> {
    let (by_class, classes) = (result.by_class.as_ref()?, classes?);
    let ByClass::Confusion(matrix) = by_class else {
        return Some(format!("\n`--json` has the rows of each of {} classes", classes.len()));
    };
    if classes.len() > WIDEST {
        return Some(format!("\n`--json` has the confusion matrix of {} classes", classes.len()));
    }
    let header: Vec<(&str, Column)> = std::iter::once(("LABEL", Column::Text))
        .chain(classes.iter().map(|name| (name.as_str(), Column::Number)))
        .collect();
    let mut grid = Grid::new(&header);
    for (name, line) in classes.iter().zip(&matrix.0) {
        let counts = line.iter().map(u64::to_string);
        grid.row(std::iter::once(name.clone()).chain(counts));
    }
    Some(format!("\nrows by label (down) and prediction (across)\n{}", grid.text()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_protocol::{
        metrics::{ClassTotals, Confusion, TopK},
        time::UnixMillis,
    };

    fn metrics() -> Metrics {
        Metrics {
            rows: 1360,
            loss: 0.125,
            accuracy: Some(0.75),
            top_k: Some(TopK { k: 5, accuracy: 1.0 }),
            f1: Some(0.5),
            rmse: None,
            own: [].into(),
        }
    }

    fn result(by_class: ByClass) -> EvaluationResult {
        EvaluationResult {
            at: UnixMillis(0),
            metrics: metrics(),
            by_class: Some(by_class),
            verified: None,
        }
    }

    #[test]
    fn metrics_are_a_list_and_a_table() {
        assert_eq!(
            list(&metrics()),
            "accuracy 0.7500, top-5 accuracy 1.0000, macro F1 0.5000, loss 0.1250"
        );
        assert_eq!(
            table(&metrics()),
            "rows            1,360\n\
             accuracy        0.7500\n\
             top-5 accuracy  1.0000\n\
             macro F1        0.5000\n\
             loss            0.1250"
        );
        let numbers =
            Metrics { accuracy: None, top_k: None, f1: None, rmse: Some(2.0), ..metrics() };
        assert_eq!(list(&numbers), "RMSE 2.0000, loss 0.1250");
    }

    #[test]
    fn a_matrix_has_the_names_of_its_classes() {
        let names = |count: usize| (0..count).map(|n| format!("c{n}")).collect::<Vec<_>>();
        let matrix = ByClass::Confusion(Confusion(vec![vec![10, 2], vec![0, 345]]));
        let text = confusion(&result(matrix), Some(&names(2))).unwrap();
        let lines: Vec<Vec<&str>> =
            text.lines().skip(2).map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(
            lines,
            [vec!["LABEL", "c0", "c1"], vec!["c0", "10", "2"], vec!["c1", "0", "345"]]
        );
        let wide = ByClass::Confusion(Confusion(vec![vec![0; 21]; 21]));
        assert!(confusion(&result(wide), Some(&names(21))).unwrap().contains("21 classes"));
        let totals = ByClass::Totals(ClassTotals::default());
        assert!(confusion(&result(totals), Some(&names(300))).unwrap().contains("300 classes"));
    }
}
