//! The curves of one trial: each metric and each sum that its epochs have, of training and of validation.

use serde::Serialize;
use sojourn_protocol::{
    report::Sums,
    view::{CurvePoint, TrialView},
};
use std::collections::BTreeSet;

/// All curves of a trial, as the page's script draws them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrialCurves {
    /// The epochs that were evaluated, counted from 1.
    epochs: Vec<u32>,
    /// A chart for each metric.
    panels: Vec<Panel>,
}

/// A chart of one metric.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Panel {
    name: String,
    series: Vec<Series>,
}

/// A line: a value for each epoch, none where there is no finite one.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Series {
    name: &'static str,
    values: Vec<Option<f64>>,
}

impl TrialCurves {
    /// The curves of a trial.
    #[must_use]
    pub fn of(trial: &TrialView) -> Self {
        let points: Vec<&CurvePoint> = trial.curve.iter().map(|of| &of.point).collect();
        let both = |name: &str, of: &dyn Fn(&Sums) -> Option<f64>| {
            let train = line("train", &points, |point| of(&point.train));
            panel(name, vec![train, line("validation", &points, |point| of(&point.valid))])
        };
        let mut panels = vec![
            both("loss", &|sums| Some(sums.mean_loss())),
            both("accuracy", &|sums| sums.accuracy()),
            both("top-k accuracy", &|sums| sums.top_k_accuracy()),
            panel("F1", vec![line("validation", &points, |point| point.f1)]),
        ];
        let own: BTreeSet<&String> = points.iter().flat_map(|point| point.own.keys()).collect();
        panels.extend(own.into_iter().map(|name| {
            panel(name, vec![line("validation", &points, |point| point.own.get(name).copied())])
        }));
        let sums = |point: &'_ CurvePoint| -> Vec<String> {
            point.train.named.keys().chain(point.valid.named.keys()).cloned().collect()
        };
        let named: BTreeSet<String> = points.iter().flat_map(|point| sums(point)).collect();
        // A graph's accuracy is that of above.
        let named = named.iter().filter(|name| *name != "accuracy");
        panels.extend(named.map(|name| both(name, &|sums| sums.mean_of(name))));
        panels.retain(|panel| !panel.series.is_empty());
        Self { epochs: points.iter().map(|point| point.epoch.0 + 1).collect(), panels }
    }
}

fn line(
    name: &'static str,
    points: &[&CurvePoint],
    of: impl Fn(&CurvePoint) -> Option<f64>,
) -> Series {
    let values = points.iter().map(|point| of(point).filter(|value| value.is_finite())).collect();
    Series { name, values }
}

/// A chart of the lines that have a value.
fn panel(name: &str, mut series: Vec<Series>) -> Panel {
    series.retain(|line| line.values.iter().any(Option::is_some));
    Panel { name: name.to_owned(), series }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::leaders::tests::trial;
    use serde_json::json;
    use sojourn_protocol::view::CurveView;

    #[test]
    fn each_metric_has_a_chart_of_training_and_validation() {
        let point: CurvePoint = serde_json::from_value(json!({
            "epoch": 0,
            "train": { "rows": 4, "loss": 2.0, "correct": 1 },
            "valid": { "rows": 2, "loss": 3.0, "correct": 2, "named": { "mae": 5.0 } },
            "own": { "kappa": 0.25 },
        }))
        .unwrap();
        let of = TrialView { curve: vec![CurveView::from(point)], ..trial(1, 0.1) };
        let curves = serde_json::to_value(TrialCurves::of(&of)).unwrap();
        assert_eq!(curves["epochs"], json!([1]));
        let panels = curves["panels"].as_array().unwrap();
        let names: Vec<&str> = panels.iter().map(|panel| panel["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["loss", "accuracy", "kappa", "mae"]);
        let of_loss = json!([{ "name": "train", "values": [0.5] }, { "name": "validation", "values": [1.5] }]);
        assert_eq!(panels[0]["series"], of_loss);
        assert_eq!(panels[3]["series"], json!([{ "name": "validation", "values": [2.5] }]));
    }

    #[test]
    fn a_value_that_is_no_number_is_a_gap() {
        let point: CurvePoint = serde_json::from_value(json!({
            "epoch": 0, "train": { "rows": 0, "loss": 0.0 }, "valid": { "rows": 1, "loss": 1.0 },
        }))
        .unwrap();
        let of = TrialView { curve: vec![CurveView::from(point)], ..trial(1, 0.1) };
        let curves = TrialCurves::of(&of);
        assert_eq!(curves.panels.len(), 1);
        assert_eq!(curves.panels[0].series.len(), 1, "training had no rows");
    }
}
