//! Brings a job's runs in a tracking server up to date.

use super::{
    records::{MODEL_TAG, Named, RUN_TAG, Record},
    tracking::{Run, Tracking},
};
use crate::{
    api_client::ApiClient,
    cli::{
        model::export::{answers::Answers, checkpoint},
        render::progress::{Meter, Unit},
        terminal::{exit::Failure, output},
    },
};
use serde::Serialize;
use sojourn_protocol::{ids::TrialId, quantity::to_u64};
use std::collections::{BTreeMap, BTreeSet};

/// The artifact's name.
const MODEL_FILE: &str = "model.safetensors";

/// The result of a push.
#[derive(Debug, Serialize)]
pub(in crate::cli::model::export) struct Pushed {
    /// The id that the tracking server gave the experiment.
    pub(in crate::cli::model::export) experiment: String,
    /// Runs that are up to date.
    pub(in crate::cli::model::export) runs: u64,
    /// Runs that were made.
    pub(in crate::cli::model::export) new_runs: u64,
    /// Values of metrics that were added.
    pub(in crate::cli::model::export) new_values: u64,
    /// The trial whose model is an artifact of its run.
    pub(in crate::cli::model::export) model: Option<TrialId>,
}

/// Pushes all trials, and the best model.
pub(in crate::cli::model::export) async fn push(
    client: &ApiClient,
    url: &str,
    answers: &Answers,
) -> Result<Pushed, Failure> {
    let tracking = Tracking::new(url)?;
    let experiment = tracking.experiment(&answers.detail.summary.name).await?;
    let mut pushed = Pushed { experiment, runs: 0, new_runs: 0, new_values: 0, model: None };
    let best = answers.detail.summary.best.as_ref().map(|best| best.trial);
    let of = to_u64(answers.trials.len());
    let mut meter = Meter::new("pushing trials", Unit::Steps, of);
    for trial in &answers.trials {
        let record = Record::of(answers, trial);
        let run = push_run(&tracking, &record, &mut pushed).await?;
        if best == Some(trial.trial) && push_model(client, &tracking, answers, &run).await? {
            pushed.model = best;
        }
        meter.set(pushed.runs, of, "");
    }
    Ok(pushed)
}

async fn push_run(
    tracking: &Tracking,
    record: &Record,
    pushed: &mut Pushed,
) -> Result<Run, Failure> {
    let tag = Named::new(RUN_TAG, record.key.clone());
    let run = match tracking.find_run(&pushed.experiment, &tag).await? {
        Some(run) => run,
        None => {
            pushed.new_runs += 1;
            let start = record.started_at.0;
            tracking.create_run(&pushed.experiment, &record.name, start, &[tag]).await?
        }
    };
    let id = run.info.run_id.as_str();
    let mut known: BTreeMap<String, BTreeSet<i64>> = BTreeMap::new();
    for metric in &run.data.metrics {
        let steps = tracking.steps(id, &metric.key).await?;
        known.insert(metric.key.clone(), steps.into_iter().collect());
    }
    let (points, params) = (record.new_points(&known), record.new_params(&run.data.params));
    tracking.log(id, &points, &params, &record.tags).await?;
    tracking.set_status(id, record.status, record.ended_at.map(|at| at.0)).await?;
    pushed.runs += 1;
    pushed.new_values += to_u64(points.len());
    Ok(run)
}

/// Puts the best model beside its run, unless it is there. Returns whether it is.
async fn push_model(
    client: &ApiClient,
    tracking: &Tracking,
    answers: &Answers,
    run: &Run,
) -> Result<bool, Failure> {
    let Some(best) = &answers.detail.summary.best else { return Ok(false) };
    let tag = Named::new(MODEL_TAG, best.checkpoint.sha256.to_string());
    if run.data.tags.contains(&tag) {
        return Ok(true);
    }
    let file = checkpoint::best_file(client, &answers.detail, best).await?;
    if !tracking.put_artifact(&run.info, MODEL_FILE, file).await? {
        output::remark(
            "the tracking server doesn't pass artifacts on (`--serve-artifacts`): the model stays here",
        );
        return Ok(false);
    }
    tracking.log(&run.info.run_id, &[], &[], &[tag]).await?;
    Ok(true)
}
