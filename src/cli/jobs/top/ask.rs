//! The requests of one round: the server's health, jobs (or the one job) and hosts, then what is shown of one job.

use super::view::{Detail, Leader, Scope, Snapshot};
use crate::{
    api_client::ApiClient,
    cli::{jobs::status, render::text},
};
use sojourn_api::endpoints;
use sojourn_http::CallError;
use sojourn_programs::call_error;
use sojourn_protocol::{
    ids::JobId,
    quantity::to_usize,
    spec::SearchSpec,
    tail_search::TailSearch,
    view::{CurveView, EventView, JobView, TrialView},
};

/// Leading trials that are asked for.
const LEADERS: u32 = 100;
/// Events that are kept.
const EVENTS: usize = 50;
/// Events of one answer: more than [`EVENTS`], so that [`TailSearch`] ends.
const PAGE: u64 = 200;

/// Asks, and remembers what needn't be asked again.
pub(super) struct Asker {
    client: ApiClient,
    scope: Scope,
    known: Option<Known>,
}

/// The knowledge of a job from rounds before.
struct Known {
    job: JobId,
    search: SearchSpec,
    /// The journal position up to which its events are known.
    position: u64,
    /// The job as it was, and what is shown of it.
    last: Option<(JobView, Detail)>,
}

impl Asker {
    pub(super) fn new(client: ApiClient, scope: Scope) -> Self {
        Self { client, scope, known: None }
    }

    /// Asks for all that is shown where this job is selected; where it is none or gone, the first.
    ///
    /// # Errors
    /// Where the server doesn't answer. What it refuses of one job alone is said as that job's problem.
    pub(super) async fn round(&mut self, selected: Option<JobId>) -> Result<Snapshot, CallError> {
        let mut snapshot = match self.scope {
            Scope::Server => self.server().await?,
            Scope::Job(job) => self.one_job(job).await?,
        };
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

    async fn server(&self) -> Result<Snapshot, CallError> {
        let (health, jobs, hosts) = tokio::try_join!(
            self.client.call(endpoints::Health::request()),
            self.client.call(endpoints::Jobs::request()),
            self.client.call(endpoints::Hosts::request())
        )?;
        Ok(Snapshot::new(health, jobs, hosts))
    }

    async fn one_job(&self, id: JobId) -> Result<Snapshot, CallError> {
        let (health, job, mut hosts) = tokio::try_join!(
            self.client.call(endpoints::Health::request()),
            self.client.call(endpoints::Job::request(id)),
            self.client.call(endpoints::Hosts::request().job(id))
        )?;
        hosts.retain(|host| host.leases.iter().any(|lease| lease.job == id));
        let facts = status::facts_beside_a_line(&job.summary, &job.spec);
        Ok(Snapshot { facts, ..Snapshot::new(health, vec![job.summary], hosts) })
    }

    async fn detail(&mut self, job: &JobView, end: u64) -> Result<Detail, CallError> {
        let id = job.job;
        let mut known = match self.known.take().filter(|known| known.job == id) {
            Some(known) => known,
            None => {
                let search = self.client.call(endpoints::Job::request(id)).await?.spec.search;
                Known { job: id, search, position: end, last: None }
            }
        };
        let events = match &known.last {
            None => self.last_events(id, end).await?,
            Some((_, before)) => {
                let new = self
                    .client
                    .call(endpoints::Events::request(id).after(known.position).limit(PAGE))
                    .await?;
                if new.len() >= to_usize(PAGE) {
                    self.last_events(id, end).await?
                } else {
                    new.into_iter().rev().chain(before.events.iter().cloned()).collect()
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
                let trials =
                    self.client.call(endpoints::Trials::request(id).leading(LEADERS)).await?;
                let leaders = leaders(trials, &known.search);
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
        let mut search = TailSearch::new(end, EVENTS, to_usize(PAGE));
        let mut last = Vec::new();
        while let Some(after) = search.next() {
            let found =
                self.client.call(endpoints::Events::request(job).after(after).limit(PAGE)).await?;
            if search.take(after, found.len()) {
                last = found;
            }
        }
        last.reverse();
        Ok(last)
    }
}

/// The leading trials, with the values of the search's metric.
fn leaders(mut trials: Vec<TrialView>, search: &SearchSpec) -> Vec<Leader> {
    // A server of before gives all of them, in another order.
    trials.sort_by(|a, b| TrialView::leader_board(search.goal, a, b));
    let value = |CurveView { point, .. }: &CurveView| {
        let value = search.value(&point.valid, point.f1, &point.own);
        Some(value).filter(|value| value.is_finite())
    };
    let leader = |trial: &TrialView| Leader {
        trial: trial.trial,
        name: text::trial_name(trial),
        epochs: format!("{}/{}", trial.epoch, trial.epochs),
        best: trial.best.as_ref().map(|best| best.value),
        values: trial.curve.iter().map(value).collect(),
        state: text::trial_state(trial),
    };
    trials.iter().take(to_usize(LEADERS)).map(leader).collect()
}
