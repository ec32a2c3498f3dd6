//! How an evaluation's metrics and its confusion matrix are written.

use crate::cli::render::{
    tables::{Column, Grid},
    text,
};
use sojourn_protocol::{
    metrics::{ByClass, Metrics},
    spec::{MetricRule, OwnMetric},
    view::{EvaluationResult, EvaluationState, EvaluationView},
};
use std::collections::BTreeMap;

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
    let lines = matrix.0.iter().map(|line| line.iter().map(u64::to_string).collect());
    Some(format!("\nrows by label (down) and prediction (across)\n{}", grid(classes, lines)))
}

/// The matrices that `[metrics]` shows of a user's own model, each under its name. `classes` are those of the labels, whose
/// names a matrix has if there are as many.
pub(crate) fn matrices(
    result: &EvaluationResult,
    metrics: &BTreeMap<String, OwnMetric>,
    classes: Option<&[String]>,
) -> Vec<String> {
    let shown = metrics.iter().filter(|(_, metric)| metric.rule == MetricRule::Confusion);
    let matrix = |(name, metric): (&String, &OwnMetric)| {
        let lines = result.arrays.get(&metric.of)?.lines()?;
        if lines.len() > WIDEST {
            let classes = lines.len();
            return Some(format!("\n`--json` has the matrix `{name}` of {classes} classes"));
        }
        let names: Vec<String> = match classes {
            Some(classes) if classes.len() == lines.len() => classes.to_vec(),
            _ => (0..lines.len()).map(|class| class.to_string()).collect(),
        };
        let lines = lines.iter().map(|line| line.iter().map(f64::to_string).collect());
        Some(format!(
            "\n{name}: rows by label (down) and prediction (across)\n{}",
            grid(&names, lines)
        ))
    };
    shown.filter_map(matrix).collect()
}

/// A matrix with the names of its classes.
fn grid(classes: &[String], lines: impl Iterator<Item = Vec<String>>) -> String {
    let header: Vec<(&str, Column)> = std::iter::once(("LABEL", Column::Name))
        .chain(classes.iter().map(|name| (name.as_str(), Column::Number)))
        .collect();
    let mut grid = Grid::new(&header);
    for (name, line) in classes.iter().zip(lines) {
        grid.row(std::iter::once(name.clone()).chain(line));
    }
    grid.text()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_protocol::{
        metrics::{ClassTotals, Confusion, TopK},
        sum_array::SumArray,
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
            arrays: [].into(),
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
        assert_eq!(matrices(&result(totals()), &[].into(), None), [""; 0]);
        let wide = ByClass::Confusion(Confusion(vec![vec![0; 21]; 21]));
        assert!(confusion(&result(wide), Some(&names(21))).unwrap().contains("21 classes"));
        assert!(confusion(&result(totals()), Some(&names(300))).unwrap().contains("300 classes"));
    }

    fn totals() -> ByClass {
        ByClass::Totals(ClassTotals::default())
    }

    #[test]
    fn own_matrices_are_shown_where_a_metric_says_so() {
        let array = |side: u64, number: f64| SumArray {
            shape: vec![side, side],
            numbers: vec![number; usize::try_from(side * side).unwrap()],
        };
        let arrays = [("a", array(2, 3.0)), ("b", array(2, 0.5)), ("c", array(21, 1.0))];
        let arrays = arrays.map(|(name, array)| (name.to_owned(), array)).into();
        let result = EvaluationResult { by_class: None, arrays, ..result(totals()) };
        let shown = |of: &str, rule| OwnMetric { of: of.into(), rule };
        let metrics = [
            ("f1".to_owned(), shown("b", MetricRule::MacroF1)),
            ("pairs".to_owned(), shown("a", MetricRule::Confusion)),
            ("wide".to_owned(), shown("c", MetricRule::Confusion)),
        ];
        let names = ["cat".to_owned(), "dog".to_owned()];
        let texts = matrices(&result, &metrics.clone().into(), Some(&names));
        let [pairs, wide] = texts.as_slice() else { panic!("{texts:?}") };
        let lines: Vec<Vec<&str>> =
            pairs.lines().skip(2).map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines, [["LABEL", "cat", "dog"], ["cat", "3", "3"], ["dog", "3", "3"]]);
        assert!(pairs.starts_with("\npairs: rows by label"), "{pairs}");
        assert!(wide.contains("the matrix `wide` of 21 classes"), "{wide}");
        let numbered = matrices(&result, &metrics.into(), None);
        assert!(numbered[0].lines().nth(2).unwrap().contains("0  1"), "{numbered:?}");
    }
}
