//! The table `metrics`: a row for each metric of each evaluated epoch.

use super::table::{Column, Table};
use crate::cli::model::export::answers::Answers;
use sojourn_protocol::{
    ids::TrialId,
    manifest::DataSplit,
    metrics::Metrics,
    report::Sums,
    time::UnixMillis,
    view::{CurvePoint, TrialView},
};
use std::collections::BTreeMap;

/// The rows that a metric is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Split {
    /// The training rows, while training.
    Train,
    Valid,
    Test,
}

impl Split {
    pub(in super::super) const fn name(self) -> &'static str {
        match self {
            Split::Train => "train",
            Split::Valid => "valid",
            Split::Test => "test",
        }
    }
}

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct MetricRow {
    pub(in super::super) trial: TrialId,
    /// Counted from 1.
    pub(in super::super) epoch: u32,
    pub(in super::super) split: Split,
    /// `loss`, `accuracy`, ...
    pub(in super::super) metric: String,
    /// The metric's value, a finite number.
    pub(in super::super) value: f64,
    /// When the epoch was evaluated.
    pub(in super::super) time: Option<UnixMillis>,
}

impl MetricRow {
    /// `valid/accuracy`: as job files name the metric.
    pub(in super::super) fn tag(&self) -> String {
        format!("{}/{}", self.split.name(), self.metric)
    }
}

pub(super) fn table(answers: &Answers) -> Table {
    let rows: Vec<MetricRow> =
        answers.trials.iter().flat_map(|trial| of_trial(answers, trial)).collect();
    let rows = || rows.iter();
    let columns = vec![
        Column::whole("trial", rows().map(|row| Some(row.trial.0))),
        Column::whole("epoch", rows().map(|row| Some(row.epoch))),
        Column::text("split", rows().map(|row| Some(row.split.name()))),
        Column::text("metric", rows().map(|row| Some(&row.metric))),
        Column::real("value", rows().map(|row| Some(row.value))),
        Column::time("time", rows().map(|row| row.time)),
    ];
    Table { name: "metrics", columns }
}

/// All values of a trial, in the order of epochs; those on the test data come last.
pub(in super::super) fn of_trial(answers: &Answers, trial: &TrialView) -> Vec<MetricRow> {
    let mut rows = Vec::new();
    for point in trial.curve.iter().map(|view| &view.point) {
        let time = answers.journal.evaluated(trial.trial, point.epoch);
        let row = |split, (metric, value)| {
            let (trial, epoch) = (trial.trial, point.epoch.next().0);
            MetricRow { trial, epoch, split, metric, value, time }
        };
        rows.extend(named(of_sums(answers, &point.train)).map(|of| row(Split::Train, of)));
        rows.extend(named(of_point(answers, point)).map(|of| row(Split::Valid, of)));
    }
    if let Some(test) = &trial.test
        && let Some(result) = test.result()
    {
        let split = match test.split {
            DataSplit::Valid => Split::Valid,
            DataSplit::Test => Split::Test,
        };
        rows.extend(named(result.metrics.clone()).map(|(metric, value)| {
            let (trial, epoch, time) = (trial.trial, test.epoch.next().0, Some(result.at));
            MetricRow { trial, epoch, split, metric, value, time }
        }));
    }
    rows
}

/// The metrics that follow from sums.
fn of_sums(answers: &Answers, sums: &Sums) -> Metrics {
    let (spec, labels) = (&answers.detail.spec, &answers.detail.data.labels);
    let k = spec.search.k(labels);
    Metrics::of(spec.training.loss, &spec.search, sums, None, k, &BTreeMap::new())
}

/// The metrics of a validation, with the ones that were counted by class or made of arrays.
fn of_point(answers: &Answers, point: &CurvePoint) -> Metrics {
    let mut metrics = of_sums(answers, &point.valid);
    metrics.f1 = point.f1;
    metrics.own.extend(point.own.clone());
    metrics
}

/// Metrics by name, as far as they are numbers: of no rows there is none.
fn named(metrics: Metrics) -> impl Iterator<Item = (String, f64)> {
    let Metrics { rows: _, loss, accuracy, top_k, f1, rmse, own } = metrics;
    let known = [
        ("loss", Some(loss)),
        ("accuracy", accuracy),
        ("top-k", top_k.map(|top_k| top_k.accuracy)),
        ("f1", f1),
        ("rmse", rmse),
    ];
    // A user's own metric goes before one of the same name.
    let known: Vec<(String, f64)> = known
        .into_iter()
        .filter(|(name, _)| !own.contains_key(*name))
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect();
    known.into_iter().chain(own).filter(|(_, value)| value.is_finite())
}
