//! The last events of the jobs that pages show. They are kept, so that a page which is open asks the journal for what is new alone:
//! the thread that reads is the one that writes.

use crate::shell::ShellHandle;
use parking_lot::Mutex;
use sojourn_core::{JournalPosition, Record};
use sojourn_protocol::{error::ApiError, ids::JobId, tail_search::TailSearch};
use std::{collections::VecDeque, sync::Arc};
use tokio::sync::Mutex as AsyncMutex;

/// Events of a job that are kept.
const KEPT: usize = 2_000;
/// Events that are asked for at once.
const LIMIT: usize = 5_000;
/// Jobs whose events are kept: those that were asked for last.
const MAX_JOBS: usize = 8;

/// The last events of one job.
#[derive(Debug, Clone, Default)]
pub(super) struct LastEvents {
    /// The earliest first.
    pub(super) records: VecDeque<Arc<Record>>,
    /// Are there earlier ones?
    pub(super) has_earlier: bool,
    /// The journal's position up to which they are known; `None` before they were asked for.
    known: Option<u64>,
}

/// A job's events, which one page at a time asks for.
type Shared = Arc<AsyncMutex<LastEvents>>;

/// The last events of some jobs.
#[derive(Debug, Default)]
pub(crate) struct RecentEvents(Mutex<VecDeque<(JobId, Shared)>>);

impl RecentEvents {
    /// The last events of a job, as the journal has them now.
    pub(super) async fn of(&self, shell: &ShellHandle, job: JobId) -> Result<LastEvents, ApiError> {
        let shared = self.shared(job);
        let mut last = shared.lock().await;
        last.update(shell, job).await?;
        Ok(last.clone())
    }

    fn shared(&self, job: JobId) -> Shared {
        let mut jobs = self.0.lock();
        let known = jobs.iter().position(|(id, _)| *id == job);
        let shared = known.and_then(|place| jobs.remove(place)).map(|(_, shared)| shared);
        let shared = shared.unwrap_or_default();
        jobs.push_back((job, Arc::clone(&shared)));
        while jobs.len() > MAX_JOBS {
            jobs.pop_front();
        }
        shared
    }
}

impl LastEvents {
    async fn update(&mut self, shell: &ShellHandle, job: JobId) -> Result<(), ApiError> {
        let end = shell.counts().durable();
        let Some(mut known) = self.known else { return self.find(shell, job, end).await };
        while known < end {
            let found = shell.events(job, JournalPosition(known), LIMIT).await?;
            let is_all = found.len() < LIMIT;
            // What comes while it is read may be among it.
            let last = found.last().map_or(known, |record| record.position.0);
            known = if is_all { end.max(last) } else { last };
            self.add(found, known);
        }
        Ok(())
    }

    /// Looks for them for the first time.
    async fn find(&mut self, shell: &ShellHandle, job: JobId, end: u64) -> Result<(), ApiError> {
        let mut search = TailSearch::new(end, KEPT, LIMIT);
        let mut last = Vec::new();
        while let Some(after) = search.next() {
            let found = shell.events(job, JournalPosition(after), LIMIT).await?;
            if search.take(after, found.len()) {
                last = found;
            }
        }
        self.has_earlier = !search.reached_the_first();
        let known = last.last().map_or(end, |record| record.position.0.max(end));
        self.add(last, known);
        Ok(())
    }

    fn add(&mut self, records: Vec<Record>, known: u64) {
        self.records.extend(records.into_iter().map(Arc::new));
        let more = self.records.len().saturating_sub(KEPT);
        self.has_earlier |= more > 0;
        self.records.drain(..more);
        self.known = Some(known);
    }
}
