//! Views of searches.

use super::Views;
use crate::jobs::search_room;
use sojourn_protocol::{
    api::{SearchTrial, SearchTrialState, SearchView},
    error::ApiError,
    ids::JobId,
    quantity::SaturatingFrom as _,
};
use sojourn_state::{Job, Trial, TrialEnd};

impl Views<'_> {
    /// How far a job's search has got.
    pub(crate) fn search(&self, job: JobId) -> Result<SearchView, ApiError> {
        let job = self.state.find_job(job)?;
        let slots = self.hosts.fleet().slots();
        let is_open = job.is_running() && job.grace.is_none() && job.search.is_open();
        let progress = job.search_progress();
        Ok(SearchView {
            job: job.id,
            method: job.spec.search.method.name().to_owned(),
            running: job.is_running(),
            open: is_open,
            over: progress.over,
            suggested: progress.suggested,
            wanted: progress.wanted,
            room: if is_open { u32::saturating_from(search_room(job, slots)) } else { 0 },
            trials: job.trials.iter().map(|trial| search_trial(job, trial)).collect(),
        })
    }
}

fn search_trial(job: &Job, trial: &Trial) -> SearchTrial {
    let search = &job.spec.search;
    let value = |point: &sojourn_protocol::view::CurvePoint| {
        Some(search.value(&point.valid, point.f1, &point.own)).filter(|value| value.is_finite())
    };
    SearchTrial {
        trial: trial.id,
        model: trial.model,
        state: match &trial.end {
            None if trial.is_held() => SearchTrialState::Waiting,
            None => SearchTrialState::Running,
            Some(TrialEnd::Finished) => SearchTrialState::Finished,
            Some(TrialEnd::Failed(_)) => SearchTrialState::Failed,
            Some(TrialEnd::Cancelled) => SearchTrialState::Cancelled,
        },
        choices: trial.choices.clone(),
        epochs: trial.chain.epoch().0,
        values: trial.curve.iter().map(value).collect(),
        at: trial.curve.iter().map(|point| point.at).collect(),
        best: trial.best.map(|best| best.value),
    }
}
