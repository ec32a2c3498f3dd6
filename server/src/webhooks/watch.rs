//! Looks at jobs, hosts and costs when the journal has grown, and now and then: that nothing moves is no event.

use super::{
    book::BookFile,
    notice::{Kind, Known, Notification, Seen, Thresholds},
    settings::WebhookSettings,
};
use crate::shell::ShellHandle;
use sojourn_core::request;
use sojourn_protocol::{error::ApiError, ids::JobId, spec::Goal};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
use tokio::{
    task::spawn_blocking,
    time::{Instant, sleep},
};

/// Between two looks at the journal's position.
const INTERVAL: Duration = Duration::from_secs(1);
/// Between two looks while the journal doesn't grow.
const QUIET_INTERVAL: Duration = Duration::from_secs(5);
/// The time between two writes of the state that was seen, where it makes no notification.
const SAVE_INTERVAL: Duration = Duration::from_secs(10);
/// Lease terms after which hosts have had the time to come back.
const SETTLED_TERMS: u32 = 2;

/// The task that looks.
pub(super) struct Watch {
    book: Arc<BookFile>,
    shell: ShellHandle,
    thresholds: Thresholds,
    /// The webhooks by name, with what each is told of.
    webhooks: Vec<(String, BTreeSet<Kind>)>,
    settle_time: Duration,
    /// Since when this server has answered: one that stands by doesn't.
    active_since: Option<Instant>,
    known: Option<Known>,
    position: u64,
    saved_at: Option<Instant>,
}

impl Watch {
    pub(super) fn new(
        settings: &WebhookSettings,
        book: Arc<BookFile>,
        shell: ShellHandle,
        lease_term: Duration,
    ) -> Self {
        let webhooks = settings.webhooks.iter();
        Self {
            webhooks: webhooks.map(|of| (of.name.clone(), of.kinds.clone())).collect(),
            thresholds: settings.thresholds,
            settle_time: lease_term.saturating_mul(SETTLED_TERMS),
            known: book.known(),
            book,
            shell,
            active_since: None,
            position: 0,
            saved_at: None,
        }
    }

    pub(super) async fn run(mut self) {
        let mut looked_at: Option<Instant> = None;
        loop {
            let position = self.shell.counts().durable();
            let is_quiet = position == self.position;
            if !is_quiet || looked_at.is_none_or(|at| at.elapsed() >= QUIET_INTERVAL) {
                looked_at = Some(Instant::now());
                match self.look(position).await {
                    Ok(()) => self.position = position,
                    Err(error) => {
                        // It stands by, or is about to end.
                        tracing::debug!(%error, "nothing can be seen for webhooks");
                        self.active_since = None;
                    }
                }
            }
            sleep(INTERVAL).await;
        }
    }

    async fn look(&mut self, position: u64) -> Result<(), ApiError> {
        let jobs = self.shell.request(request::GetJobs {}).await?;
        let hosts = self.shell.request(request::GetHosts {}).await?;
        let costs = self.shell.request(request::GetCosts {}).await?;
        let since = *self.active_since.get_or_insert_with(Instant::now);
        let is_settled = since.elapsed() >= self.settle_time;
        let unknown = self.known.as_ref().map(|known| known.unknown_goals(&jobs));
        let goals = self.goals(unknown.unwrap_or_default()).await?;
        let seen = Seen { jobs: &jobs, hosts: &hosts, costs: &costs, goals: &goals, is_settled };
        let (known, found) = match self.known.take() {
            None => (Known::first(seen), Vec::new()),
            Some(mut known) => {
                let found = known.look(seen, self.thresholds);
                (known, found)
            }
        };
        self.known = Some(known.clone());
        if !found.is_empty() || self.saved_at.is_none_or(|at| at.elapsed() >= SAVE_INTERVAL) {
            self.saved_at = Some(Instant::now());
            let (book, found) = (Arc::clone(&self.book), self.addressed(found));
            let taken = spawn_blocking(move || book.take(known, position, costs.at, &found)).await;
            if let Err(error) = taken {
                tracing::error!(%error, "notifications are lost");
            }
        }
        Ok(())
    }

    async fn goals(&self, jobs: Vec<JobId>) -> Result<BTreeMap<JobId, Goal>, ApiError> {
        let mut goals = BTreeMap::new();
        for job in jobs {
            let detail = self.shell.request(request::GetJob { job }).await?;
            goals.insert(job, detail.spec.search.goal);
        }
        Ok(goals)
    }

    /// Each notification with the webhooks that are told of it.
    fn addressed(&self, found: Vec<Notification>) -> Vec<(Notification, Vec<String>)> {
        let names = |kind: Kind| {
            let told = self.webhooks.iter().filter(|(_, kinds)| kinds.contains(&kind));
            told.map(|(name, _)| name.clone()).collect::<Vec<_>>()
        };
        let found = found.into_iter().map(|notification| {
            let names = names(notification.kind);
            (notification, names)
        });
        found.filter(|(_, names)| !names.is_empty()).collect()
    }
}
