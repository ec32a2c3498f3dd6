//! A job's trials and their learning curves as CSV, for plotting programs: means, and epochs from 1.

use crate::cli::{
    render::{csv_cell::cell, text},
    terminal::{exit::Failure, output},
};
use csv::Writer;
use sojourn_protocol::{
    report::Sums,
    view::{CurvePoint, TrialView},
};
use std::collections::BTreeSet;

/// A line for each trial, with a column for each setting that the search varies.
pub(super) fn trials(metric: &str, trials: &[TrialView]) -> Result<(), Failure> {
    let keys: BTreeSet<&str> =
        trials.iter().flat_map(|trial| trial.choices.keys().map(String::as_str)).collect();
    let fixed = ["trial", "name", "state", "arch", "epochs_done", "epochs", "hops", "best_epoch"];
    let mut table = Writer::from_writer(Vec::new());
    write(&mut table, fixed.into_iter().chain([metric]).chain(keys.iter().copied()))?;
    for trial in trials {
        let best = trial.best.as_ref();
        let fixed = [
            trial.trial.to_string(),
            trial.name.clone(),
            trial.state.name().to_owned(),
            trial.arch.clone(),
            trial.epoch.to_string(),
            trial.epochs.to_string(),
            trial.hops.to_string(),
            or_empty(best.map(|best| best.epoch.0 + 1)),
            or_empty(best.map(|best| best.value)),
        ];
        let chosen =
            keys.iter().map(|key| trial.choices.get(*key).map(text::value).unwrap_or_default());
        write(&mut table, fixed.into_iter().chain(chosen))?;
    }
    print(table)
}

/// A line for each evaluated epoch of each trial.
pub(super) fn curves(trials: &[TrialView]) -> Result<(), Failure> {
    let mut table = Writer::from_writer(Vec::new());
    let points = || trials.iter().flat_map(|trial| trial.curve.iter().map(|view| &view.point));
    let own: BTreeSet<&String> = points()
        .flat_map(|point| point.valid.named.keys().chain(point.own.keys()))
        // They have columns already.
        .filter(|name| !matches!(name.as_str(), "accuracy" | "f1"))
        .collect();
    let fixed = [
        "trial",
        "name",
        "epoch",
        "train_rows",
        "train_loss",
        "train_accuracy",
        "valid_rows",
        "valid_loss",
        "valid_accuracy",
        "valid_f1",
    ];
    let named = own.iter().map(|name| format!("valid_{name}"));
    write(&mut table, fixed.map(str::to_owned).into_iter().chain(named))?;
    for trial in trials {
        for point in trial.curve.iter().map(|view| &view.point) {
            let loss = |sums: &Sums| or_empty(Some(sums.mean_loss()).filter(|l| l.is_finite()));
            let accuracy = |sums: &Sums| or_empty(sums.accuracy().filter(|a| a.is_finite()));
            let fixed = [
                trial.trial.to_string(),
                trial.name.clone(),
                (point.epoch.0 + 1).to_string(),
                point.train.rows.to_string(),
                loss(&point.train),
                accuracy(&point.train),
                point.valid.rows.to_string(),
                loss(&point.valid),
                accuracy(&point.valid),
                or_empty(point.f1.or_else(|| own_value(point, "f1"))),
            ];
            let named = own.iter().map(|name| or_empty(own_value(point, name)));
            write(&mut table, fixed.into_iter().chain(named))?;
        }
    }
    print(table)
}

/// A metric of a user's own model after an epoch: one that is made of an array, or the mean of a sum.
fn own_value(point: &CurvePoint, name: &str) -> Option<f64> {
    point.own.get(name).copied().or_else(|| point.valid.mean_of(name))
}

fn or_empty(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

fn write<T: AsRef<str>>(
    table: &mut Writer<Vec<u8>>,
    fields: impl IntoIterator<Item = T>,
) -> Result<(), Failure> {
    let cells = fields.into_iter().map(|field| cell(field.as_ref()).into_owned());
    table.write_record(cells).map_err(|error| Failure::work(error.to_string()))
}

fn print(table: Writer<Vec<u8>>) -> Result<(), Failure> {
    let bytes = table.into_inner().map_err(|error| Failure::work(error.to_string()))?;
    output::line(String::from_utf8_lossy(&bytes).trim_end_matches('\n'))
}
