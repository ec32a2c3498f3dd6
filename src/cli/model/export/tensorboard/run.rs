//! The events of a trial's run, and of the experiment. The events of a trial that goes on begin as those of before, so that a
//! file is only appended to, but where the trial was taken back or extended.

use super::{
    event::Events,
    hparams::{self, Status},
};
use crate::cli::{
    model::export::{
        answers::Answers,
        tables::{
            hyper_parameters::{HyperParameters, hyper_parameters},
            metrics::{MetricRow, Split, of_trial},
        },
    },
    render::text,
};
use sojourn_protocol::view::{TrialState, TrialView};
use std::collections::BTreeSet;

/// Characters of a trial's name in the name of its folder.
const MAX_NAME_CHARS: usize = 80;

/// The folder of a trial's run: `trial-3-mlp-hidden_64`.
pub(super) fn folder_name(trial: &TrialView) -> String {
    format!("trial-{}-{}", trial.trial, safe_name(&text::trial_name(trial)))
}

/// A name without characters that a file system or a shell may not take: they become `_`.
pub(super) fn safe_name(of: &str) -> String {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '=' | '+');
    let mut name = String::new();
    for c in of.chars().map(|c| if is_safe(c) { c } else { '_' }) {
        if c != '_' || !name.ends_with('_') {
            name.push(c);
        }
    }
    let name: String = name.chars().take(MAX_NAME_CHARS).collect();
    name.trim_matches(|c| matches!(c, '_' | '.')).to_owned()
}

/// The experiment; `None` before the first evaluation, which says what metrics there are.
pub(super) fn experiment(answers: &Answers) -> Option<Vec<u8>> {
    let summary = &answers.detail.summary;
    let rows = answers.trials.iter().flat_map(|trial| of_trial(answers, trial));
    // Those on the test data are few, and come when the search has ended.
    let rows = rows.filter(|row| row.split != Split::Test);
    let tags: BTreeSet<String> = rows.map(|row| row.tag()).collect();
    if tags.is_empty() {
        return None;
    }
    // The tab sorts by the first.
    let is_compared = |tag: &&String| **tag == summary.metric;
    let (first, others): (Vec<&String>, Vec<&String>) = tags.iter().partition(is_compared);
    let tags: Vec<String> = first.into_iter().chain(others).cloned().collect();
    let all: Vec<HyperParameters> =
        answers.trials.iter().filter_map(|trial| of(answers, trial)).collect();
    let at = summary.submitted_at;
    let mut events = Events::begin(at);
    hparams::experiment(&mut events, at, &summary.name, &hparams::kinds(&all), &tags);
    Some(events.into_bytes())
}

/// A trial; `None` before its first lease.
pub(super) fn trial(answers: &Answers, trial: &TrialView) -> Option<Vec<u8>> {
    let begun = answers.journal.begun(trial.trial)?;
    let mut events = Events::begin(begun);
    let of = of(answers, trial)?;
    hparams::session_start(&mut events, begun, &format!("trial {}", trial.trial), &of);
    let rows = of_trial(answers, trial);
    let (tests, epochs): (Vec<MetricRow>, Vec<MetricRow>) =
        rows.into_iter().partition(|row| row.split == Split::Test);
    let mut last = begun;
    for row in epochs {
        last = last.max(row.time.unwrap_or(last));
        events.scalar(row.time.unwrap_or(last), row.epoch, &row.tag(), row.value);
    }
    let status = match trial.state {
        TrialState::Running => None,
        TrialState::Finished => Some(Status::Success),
        TrialState::Failed { .. } => Some(Status::Failure),
        TrialState::Cancelled => Some(Status::Unknown),
    };
    if let Some(status) = status {
        hparams::session_end(&mut events, last, status);
    }
    // A job tests its best trial once that has ended.
    for row in tests {
        events.scalar(row.time.unwrap_or(last), row.epoch, &row.tag(), row.value);
    }
    Some(events.into_bytes())
}

/// The values that the tab shows of a trial: its hyper-parameters, its architecture and its seed.
fn of(answers: &Answers, trial: &TrialView) -> Option<HyperParameters> {
    let record = answers.records.get(&trial.trial)?;
    let mut of = hyper_parameters(&record.config);
    of.insert("arch".to_owned(), trial.arch.as_str().into());
    of.insert("seed".to_owned(), record.seed.into());
    Some(of)
}
