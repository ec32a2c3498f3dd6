//! The requests of one round: the server's health, jobs and hosts, then what is shown of one job.

use super::view::{Detail, Leader, Snapshot};
use crate::{api_client::ApiClient, cli::render::text};
use sojourn_daemon::terminal::call_error;
use sojourn_http::CallError;
use sojourn_protocol::{
    api::SearchTrial,
    ids::{JobId, TrialId},
    spec::Goal,
    tail_search::TailSearch,
    view::{EventView, JobView, TrialView},
};
use std::collections::BTreeMap;

/// Leading trials that are kept.
const LEADERS: usize = 100;
/// Events that are kept.
const EVENTS: usize = 50;
/// Events of one answer: more than [`EVENTS`], so that [`TailSearch`] ends.
const PAGE: usize = 200;

/// Asks, and remembers what needn't be asked again.
pub(super) struct Asker {
    client: ApiClient,
    known: Option<Known>,
}

/// What is known of a job from rounds before.
struct Known {
    job: JobId,
    goal: Goal,
    /// The journal position up to which its events are known.
    position: u64,
    /// The job as it was, and what is shown of it.
    last: Option<(JobView, Detail)>,
}

impl Asker {
    pub(super) fn new(client: ApiClient) -> Self {
        Self { client, known: None }
    }

    /// Asks for all that is shown where this job is selected; where it is none or gone, the first.
    ///
    /// # Errors
    /// Where the server doesn't answer. What it refuses of one job alone is said as that job's problem.
    pub(super) async fn round(&mut self, selected: Option<JobId>) -> Result<Snapshot, CallError> {
        let (health, jobs, hosts) =
            tokio::try_join!(self.client.health(), self.client.jobs(), self.client.hosts())?;
        let mut snapshot = Snapshot::new(health, jobs, hosts);
        let end = snapshot.health.journal_position;
        let job = snapshot.jobs.iter().find(|job| Some(job.job) == selected);
        if let Some(job) = job.or_else(|| snapshot.jobs.first()) {
            snapshot.detail = Some(match self.detail(job, end).await {
                Ok(detail) => detail,
                Err(error) if error.is_away() => return Err(error),
                // Such as a job that was deleted just now.
                Err(error) => Detail {
                    job: job.job,
                    leaders: Vec::new(),
                    events: Vec::new(),
                    problem: Some(call_error::message(&error)),
                },
            });
        }
        Ok(snapshot)
    }

    async fn detail(&mut self, job: &JobView, end: u64) -> Result<Detail, CallError> {
        let id = job.job;
        let mut known = match self.known.take().filter(|known| known.job == id) {
            Some(known) => known,
            None => {
                let goal = self.client.job(id).await?.spec.search.goal;
                Known { job: id, goal, position: end, last: None }
            }
        };
        let events = match &known.last {
            None => self.last_events(id, end).await?,
            Some((_, before)) => {
                let new = self.client.events_page(id, known.position, PAGE).await?;
                match new.len() {
                    PAGE.. => self.last_events(id, end).await?,
                    _ => new.into_iter().rev().chain(before.events.iter().cloned()).collect(),
                }
            }
        };
        let latest = events.first().map_or(0, |event| event.position);
        let is_new = latest > known.position;
        known.position = known.position.max(latest);
        let detail = match known.last.take() {
            // Nothing changes any more.
            Some((before, detail)) if job.state.has_ended() && before == *job && !is_new => detail,
            _ => {
                let (trials, search) =
                    tokio::try_join!(self.client.trials(id), self.client.search(id))?;
                let leaders = leaders(trials, search.trials, known.goal);
                let events = events.into_iter().take(EVENTS).collect();
                Detail { job: id, leaders, events, problem: None }
            }
        };
        known.last = Some((job.clone(), detail.clone()));
        self.known = Some(known);
        Ok(detail)
    }

    /// A job's last events, the latest first.
    async fn last_events(&self, job: JobId, end: u64) -> Result<Vec<EventView>, CallError> {
        let mut search = TailSearch::new(end, EVENTS, PAGE);
        let mut last = Vec::new();
        while let Some(after) = search.next() {
            let found = self.client.events_page(job, after, PAGE).await?;
            if search.take(after, found.len()) {
                last = found;
            }
        }
        last.reverse();
        Ok(last)
    }
}

/// The leading trials, with the values of the search's metric.
fn leaders(mut trials: Vec<TrialView>, values: Vec<SearchTrial>, goal: Goal) -> Vec<Leader> {
    let values = values.into_iter().map(|of| (of.trial, of.values));
    let mut values: BTreeMap<TrialId, Vec<Option<f64>>> = values.collect();
    trials.sort_by(|a, b| TrialView::leader_board(goal, a, b));
    let leader = |trial: &TrialView| Leader {
        trial: trial.trial,
        name: text::trial_name(trial),
        epochs: format!("{}/{}", trial.epoch, trial.epochs),
        best: trial.best.as_ref().map(|best| best.value),
        values: values.remove(&trial.trial).unwrap_or_default(),
        state: text::trial_state(trial),
    };
    trials.iter().take(LEADERS).map(leader).collect()
}
