//! The event files of all jobs of a server, which it keeps up to date itself: `sojourn serve --tensorboard DIR`.
//!
//! ```text
//! DIR/job-3-digits/...   what `sojourn export 3 --tensorboard DIR/job-3-digits --follow` writes
//! ```
//!
//! A job is asked for when its view has changed. Files of an earlier server are gone on with: see `tensorboard::folder`.

use super::{
    answers::{Answers, Fresh, TrialRecord},
    journal::UnreadableEvent,
    tensorboard::TensorBoard,
};
use crate::cli::terminal::exit::Failure;
use sojourn_core::{JournalPosition, request};
use sojourn_protocol::{
    error::{ApiError, error_chain},
    ids::{JobId, TrialId},
    quantity::SaturatingFrom as _,
    view::JobView,
};
use sojourn_server::{event_view, shell::ShellHandle};
use std::{collections::BTreeMap, path::PathBuf, time::Duration};

/// The time between two looks.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);
/// Trials and events that the core gives at a time, so that others get their turn.
const TRIALS_A_STEP: u32 = 256;
const EVENTS_A_STEP: usize = 1_000;

/// Why the files of a job aren't up to date.
#[derive(Debug, thiserror::Error)]
enum LiveError {
    #[error(transparent)]
    Core(#[from] ApiError),
    #[error(transparent)]
    Event(#[from] UnreadableEvent),
    #[error("an event can't be shown")]
    View(#[from] serde_json::Error),
    #[error("{0}")]
    Files(String),
    #[error("the thread that writes has ended")]
    Thread(#[from] tokio::task::JoinError),
}

impl From<Failure> for LiveError {
    fn from(failure: Failure) -> Self {
        Self::Files(failure.messages().join("; "))
    }
}

/// A job, as it was when its files were last written.
struct Written {
    view: JobView,
    /// The answers and files of a job that goes on; none of a job that has ended.
    running: Option<Box<(Answers, TensorBoard)>>,
}

/// The event files of all jobs.
pub(crate) struct LiveBoards {
    folder: PathBuf,
    jobs: BTreeMap<JobId, Written>,
    /// The last error that was logged of each job that can't be written.
    said: BTreeMap<JobId, String>,
}

impl LiveBoards {
    /// In this folder, which is made where it is missing.
    pub(crate) const fn new(folder: PathBuf) -> Self {
        Self { folder, jobs: BTreeMap::new(), said: BTreeMap::new() }
    }

    /// Keeps them up to date for as long as it is polled. Of a server that stands by nothing is written.
    pub(crate) async fn keep(mut self, shell: ShellHandle) {
        loop {
            if let Err(error) = self.update(&shell).await {
                tracing::debug!(%error, "event files wait for the core");
            }
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    }

    /// Writes what is new of all jobs. What goes wrong with one is logged, and tried again.
    async fn update(&mut self, shell: &ShellHandle) -> Result<(), ApiError> {
        let views = shell.request(request::GetJobs {}).await?;
        // The files of jobs that were deleted stay.
        self.jobs.retain(|job, _| views.iter().any(|view| view.job == *job));
        for view in views {
            let job = view.job;
            if self.jobs.get(&job).is_some_and(|written| written.view == view) {
                continue;
            }
            match self.write(shell, view).await {
                Ok(()) => drop(self.said.remove(&job)),
                Err(error) => {
                    let error = error_chain(&error);
                    if self.said.get(&job) != Some(&error) {
                        tracing::warn!(%job, %error, "event files aren't up to date");
                    }
                    self.said.insert(job, error);
                }
            }
        }
        Ok(())
    }

    async fn write(&mut self, shell: &ShellHandle, view: JobView) -> Result<(), LiveError> {
        let job = view.job;
        let running = self.jobs.remove(&job).and_then(|written| written.running);
        let (answers, board) = match running.map(|running| *running) {
            Some((mut answers, board)) => {
                let fresh = fresh(shell, job, Some(&answers)).await?;
                answers.take(fresh)?;
                (answers, Some(board))
            }
            None => {
                let costs = shell.request(request::GetCosts {}).await?;
                (Answers::of(job, fresh(shell, job, None).await?, &[], &costs)?, None)
            }
        };
        let folder = self.folder.join(TensorBoard::folder_of(&view));
        let running = tokio::task::spawn_blocking(move || -> Result<_, Failure> {
            let mut board = match board {
                Some(board) => board,
                None => TensorBoard::open(&folder, &answers)?,
            };
            board.update(&answers)?;
            // Later changes, such as the test of its best trial, are written by a new reading.
            let goes_on = !answers.detail.summary.state.has_ended();
            Ok(goes_on.then(|| Box::new((answers, board))))
        });
        let running = running.await??;
        self.jobs.insert(job, Written { view, running });
        Ok(())
    }
}

/// The core's answers about a job, without trials and events that are known.
async fn fresh(
    shell: &ShellHandle,
    job: JobId,
    known: Option<&Answers>,
) -> Result<Fresh, LiveError> {
    let detail = shell.request(request::GetJob { job }).await?;
    let mut trials = Vec::new();
    loop {
        let from = TrialId(u32::saturating_from(trials.len()));
        let some = shell.request(request::GetTrials { job, from, limit: TRIALS_A_STEP }).await?;
        let is_last = u32::saturating_from(some.len()) < TRIALS_A_STEP;
        trials.extend(some);
        if is_last {
            break;
        }
    }
    let mut records = BTreeMap::new();
    for trial in trials.iter().map(|view| view.trial) {
        if known.is_none_or(|known| !known.records.contains_key(&trial)) {
            let history = shell.request(request::GetHistory { job, trial }).await?;
            records.insert(trial, TrialRecord::of(&history));
        }
    }
    let cpu_shares = detail.spec.placement.cpu_shares;
    let mut events = Vec::new();
    let mut after = JournalPosition(known.map_or(0, |known| known.journal.last()));
    loop {
        let some = shell.events(job, after, EVENTS_A_STEP).await?;
        let Some(last) = some.last() else { break };
        after = last.position;
        for record in &some {
            events.push(event_view(record, cpu_shares)?);
        }
    }
    Ok(Fresh { detail, trials, records, events })
}
