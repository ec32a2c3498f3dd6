//! The content of an MLflow run for a trial. Pure.

use crate::cli::{
    model::export::{
        answers::Answers,
        tables::{hyper_parameters::hyper_parameters, metrics::of_trial},
    },
    render::text,
};
use serde::{Deserialize, Serialize};
use sojourn_protocol::{
    quantity::SaturatingFrom as _,
    time::UnixMillis,
    view::{TrialState, TrialView},
};
use std::collections::{BTreeMap, BTreeSet};

/// The tag by which a run is found again.
pub(super) const RUN_TAG: &str = "sojourn.run";
/// The tag with the checkpoint whose model is the run's artifact.
pub(super) const MODEL_TAG: &str = "sojourn.model";
/// The longest value of a parameter.
const MAX_PARAM_CHARS: usize = 6_000;

/// A name with its value: a parameter or a tag.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Named {
    pub(super) key: String,
    pub(super) value: String,
}

impl Named {
    pub(super) fn new(key: &str, value: impl Into<String>) -> Self {
        Self { key: key.to_owned(), value: value.into() }
    }
}

/// A value of a metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Point {
    pub(super) key: String,
    pub(super) value: f64,
    pub(super) timestamp: i64,
    /// The epoch, counted from 1.
    pub(super) step: i64,
}

/// The run of a trial.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Record {
    /// The value of [`RUN_TAG`].
    pub(super) key: String,
    pub(super) name: String,
    pub(super) started_at: UnixMillis,
    pub(super) ended_at: Option<UnixMillis>,
    pub(super) status: &'static str,
    pub(super) params: Vec<Named>,
    pub(super) tags: Vec<Named>,
    pub(super) points: Vec<Point>,
}

impl Record {
    pub(super) fn of(answers: &Answers, trial: &TrialView) -> Self {
        let job = &answers.detail.summary;
        let points: Vec<Point> = of_trial(answers, trial)
            .into_iter()
            .map(|row| Point {
                key: row.tag(),
                value: row.value,
                timestamp: whole(row.time.unwrap_or(job.submitted_at).0),
                step: i64::from(row.epoch),
            })
            .collect();
        let last = points.iter().map(|point| point.timestamp).max();
        let last = last.and_then(|last| u64::try_from(last).ok()).map(UnixMillis);
        let has_ended = trial.state != TrialState::Running;
        let is_best = job.best.as_ref().is_some_and(|best| best.trial == trial.trial);
        Self {
            // Another server has jobs of the same numbers.
            key: format!("{}-{}-{}", job.submitted_at.0, job.job, trial.trial),
            name: format!("trial {}: {}", trial.trial, text::trial_name(trial)),
            started_at: answers.journal.begun(trial.trial).unwrap_or(job.submitted_at),
            ended_at: last.or(job.ended_at).filter(|_| has_ended),
            status: match trial.state {
                TrialState::Running => "RUNNING",
                TrialState::Finished => "FINISHED",
                TrialState::Failed { .. } => "FAILED",
                TrialState::Cancelled => "KILLED",
            },
            params: params(answers, trial),
            tags: tags(answers, trial, is_best),
            points,
        }
    }

    /// The parameters that a run with these lacks. Ones that it has can't be changed.
    pub(super) fn new_params(&self, known: &[Named]) -> Vec<Named> {
        let known: BTreeSet<&str> = known.iter().map(|param| param.key.as_str()).collect();
        self.params.iter().filter(|param| !known.contains(param.key.as_str())).cloned().collect()
    }

    /// The points that aren't there, where these are.
    pub(super) fn new_points(&self, known: &BTreeMap<String, BTreeSet<i64>>) -> Vec<Point> {
        let is_known =
            |point: &Point| known.get(&point.key).is_some_and(|steps| steps.contains(&point.step));
        self.points.iter().filter(|point| !is_known(point)).cloned().collect()
    }
}

fn params(answers: &Answers, trial: &TrialView) -> Vec<Named> {
    let Some(record) = answers.records.get(&trial.trial) else { return Vec::new() };
    let all = hyper_parameters(&record.config);
    let own = [
        ("model.arch".to_owned(), trial.arch.clone()),
        ("seed".to_owned(), record.seed.to_string()),
    ];
    let named = |(key, value): (String, String)| Named {
        key,
        value: value.chars().take(MAX_PARAM_CHARS).collect(),
    };
    let all = all.into_iter().map(|(key, value)| (key, text::value(&value)));
    all.chain(own).map(named).collect()
}

fn tags(answers: &Answers, trial: &TrialView, is_best: bool) -> Vec<Named> {
    let job = &answers.detail.summary;
    let mut tags = vec![
        Named::new("sojourn.job", job.job.to_string()),
        Named::new("sojourn.trial", trial.trial.to_string()),
        Named::new("sojourn.metric", job.metric.clone()),
        Named::new("sojourn.best", is_best.to_string()),
    ];
    let checkpoint = trial.checkpoint.map(|blob| blob.sha256.to_string());
    tags.extend(checkpoint.map(|digest| Named::new("sojourn.checkpoint", digest)));
    let why = match &trial.state {
        TrialState::Failed { error } => Some(error),
        _ => trial.stopped.as_ref(),
    };
    tags.extend(why.map(|why| Named::new("sojourn.why", text::first_line(why))));
    tags
}

fn whole(number: u64) -> i64 {
    i64::saturating_from(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::model::export::samples::{Sample, answers};

    fn records(epochs: &[u32]) -> Vec<Record> {
        let sample = |epochs: &u32| Sample { name: "mlp".to_owned(), epochs: *epochs };
        let answers = answers(&epochs.iter().map(sample).collect::<Vec<_>>());
        answers.trials.iter().map(|trial| Record::of(&answers, trial)).collect()
    }

    #[test]
    fn a_run_has_the_parameters_and_all_points_of_its_trial() {
        let records = records(&[9, 2]);
        assert_eq!([records[0].status, records[1].status], ["FINISHED", "RUNNING"]);
        assert!(records[0].ended_at.is_some() && records[1].ended_at.is_none());
        assert_ne!(records[0].key, records[1].key);
        let param = |key: &str| records[1].params.iter().find(|param| param.key == key).unwrap();
        assert_eq!(param("training.optimizer.lr").value, "0.003");
        assert_eq!(
            (param("model.arch").value.as_str(), param("seed").value.as_str()),
            ("mlp", "3")
        );
        let steps: Vec<i64> = records[1]
            .points
            .iter()
            .filter(|point| point.key == "valid/accuracy")
            .map(|point| point.step)
            .collect();
        assert_eq!(steps, [1, 2]);
    }

    #[test]
    fn a_push_that_comes_again_adds_what_is_new() {
        let [before, after] = [&[2][..], &[3]].map(|epochs| records(epochs).remove(0));
        let mut known: BTreeMap<String, BTreeSet<i64>> = BTreeMap::new();
        for point in &before.points {
            known.entry(point.key.clone()).or_default().insert(point.step);
        }
        assert_eq!(before.new_points(&known), []);
        let new = after.new_points(&known);
        assert!(!new.is_empty() && new.iter().all(|point| point.step == 3), "{new:?}");
        assert_eq!(after.new_params(&before.params), []);
        assert_eq!(after.new_params(&before.params[1..]), before.params[..1]);
    }
}
