//! The table `trials`: a row for each trial.

use super::{
    hyper_parameters::{HyperParameters, hyper_parameters},
    table::{Column, Table},
};
use crate::cli::{model::export::answers::Answers, render::text};
use sojourn_protocol::{
    money::MicroUsd,
    view::{TrialState, TrialView},
};
use std::collections::BTreeSet;

/// Epochs are counted from 1, as everywhere that people read.
pub(super) fn table(answers: &Answers) -> Table {
    let trials = || answers.trials.iter();
    let record = |trial: &TrialView| answers.records.get(&trial.trial);
    let best = || trials().map(|trial| trial.best.as_ref());
    let mut columns = vec![
        Column::whole("trial", trials().map(|trial| Some(trial.trial.0))),
        Column::text("name", trials().map(|trial| Some(text::trial_name(trial)))),
        Column::text("state", trials().map(|trial| Some(trial.state.name()))),
        Column::text("arch", trials().map(|trial| Some(&trial.arch))),
    ];
    columns.extend(varied(answers));
    columns.extend([
        Column::whole("seed", trials().map(|trial| record(trial).map(|record| record.seed))),
        Column::whole("epochs_done", trials().map(|trial| Some(trial.epoch.0))),
        Column::whole("epochs", trials().map(|trial| Some(trial.epochs))),
        Column::whole("hops", trials().map(|trial| Some(trial.hops))),
        Column::text("metric", trials().map(|_| Some(&answers.detail.summary.metric))),
        Column::real("best_value", best().map(|best| best.map(|best| best.value))),
        Column::whole("best_epoch", best().map(|best| best.map(|best| best.epoch.next().0))),
        Column::text(
            "checkpoint_sha256",
            trials().map(|trial| trial.checkpoint.map(|blob| blob.sha256)),
        ),
        Column::whole(
            "checkpoint_bytes",
            trials().map(|trial| trial.checkpoint.map(|blob| blob.bytes)),
        ),
        Column::text("numeric_class", trials().map(|trial| trial.numeric_class)),
        Column::text("stopped", trials().map(|trial| trial.stopped.as_ref())),
        Column::text("error", trials().map(|trial| error(&trial.state))),
        Column::whole("origin_trial", trials().map(|trial| Some(trial.origin?.trial.0))),
        Column::whole("origin_epochs", trials().map(|trial| Some(trial.origin?.epochs))),
        Column::real(
            "cost_usd",
            trials().map(|trial| answers.costs.get(&trial.trial).copied().map(dollars)),
        ),
    ]);
    Table { name: "trials", columns }
}

/// A column for each hyper-parameter that some trial has.
fn varied(answers: &Answers) -> Vec<Column> {
    let all: Vec<Option<HyperParameters>> = answers
        .trials
        .iter()
        .map(|trial| Some(hyper_parameters(&answers.records.get(&trial.trial)?.config)))
        .collect();
    let names: BTreeSet<&String> = all.iter().flatten().flat_map(|of| of.keys()).collect();
    let column = |name: &&String| {
        let values: Vec<_> = all.iter().map(|of| of.as_ref()?.get(*name).cloned()).collect();
        Column::of_any(name, &values)
    };
    names.iter().map(column).collect()
}

const fn error(state: &TrialState) -> Option<&String> {
    match state {
        TrialState::Failed { error } => Some(error),
        TrialState::Running | TrialState::Finished | TrialState::Cancelled => None,
    }
}

#[expect(clippy::cast_precision_loss, reason = "amounts are far below 2^53 millionths")]
fn dollars(amount: MicroUsd) -> f64 {
    amount.0 as f64 / 1e6
}
