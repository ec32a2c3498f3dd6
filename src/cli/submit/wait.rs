//! Waits for a job to end, through server restarts.

use crate::{
    api_client::ApiClient,
    cli::{
        render::{scores, text},
        terminal::exit::Failure,
    },
};
use sojourn_api::endpoints;
use sojourn_http::CallError;
use sojourn_programs::call_error;
use sojourn_protocol::{
    ids::JobId,
    view::{JobState, JobView},
};
use std::time::{Duration, Instant};

/// The shortest and the longest pause between two requests. In between, the pause is a share of the time waited so far,
/// so that the end of a short job is seen soon.
const MIN_PAUSE: Duration = Duration::from_millis(50);
const MAX_PAUSE: Duration = Duration::from_millis(500);
const PAUSE_RATIO: u32 = 40;
/// How long the server may be unreachable before the wait fails.
const UNREACHABLE_TIMEOUT: Duration = Duration::from_secs(600);

/// News of a job that is waited for.
pub(crate) enum Watched<'a> {
    View(&'a JobView),
    /// The server has gone away just now.
    Away(String),
}

/// Asks for the job until it has ended, and shows each answer to `watch`.
pub(crate) async fn until_end(
    client: &ApiClient,
    job: JobId,
    mut watch: impl AsyncFnMut(Watched<'_>) -> Result<(), Failure>,
) -> Result<JobView, Failure> {
    poll(
        async || client.call(endpoints::Job::request(job)).await,
        async |polled| match polled {
            Polled::Answer(detail) => {
                watch(Watched::View(&detail.summary)).await?;
                Ok(detail.summary.state.has_ended().then_some(detail.summary))
            }
            Polled::Away(reason) => watch(Watched::Away(reason)).await.map(|()| None),
        },
    )
    .await
}

/// The result of one request.
pub(crate) enum Polled<A> {
    Answer(A),
    /// The server has gone away just now.
    Away(String),
}

/// Asks again and again until `look` has seen what it waits for.
pub(crate) async fn poll<A, T>(
    mut ask: impl AsyncFnMut() -> Result<A, CallError>,
    mut look: impl AsyncFnMut(Polled<A>) -> Result<Option<T>, Failure>,
) -> Result<T, Failure> {
    let begun = Instant::now();
    let mut away_since: Option<Instant> = None;
    loop {
        match ask().await {
            Ok(answer) => {
                away_since = None;
                if let Some(seen) = look(Polled::Answer(answer)).await? {
                    return Ok(seen);
                }
            }
            Err(failure) if failure.is_away() => match away_since {
                None => {
                    away_since = Some(Instant::now());
                    look(Polled::Away(call_error::message(&failure))).await?;
                }
                Some(since) if since.elapsed() > UNREACHABLE_TIMEOUT => return Err(failure.into()),
                Some(_) => {}
            },
            Err(failure) => return Err(failure.into()),
        }
        tokio::time::sleep((begun.elapsed() / PAUSE_RATIO).clamp(MIN_PAUSE, MAX_PAUSE)).await;
    }
}

/// A job that didn't finish makes the command fail.
pub(crate) fn verdict(view: &JobView) -> Result<(), Failure> {
    match view.state {
        JobState::Running | JobState::Paused | JobState::Finished => Ok(()),
        JobState::Failed => Err(Failure::work(format!(
            "job {} failed: see `sojourn trials {}`",
            view.job, view.job
        ))),
        JobState::Cancelled => Err(Failure::work(format!("job {} was cancelled", view.job))),
    }
}

/// The end of a job in a line.
pub(crate) fn outcome_text(view: &JobView) -> String {
    let took = view.ended_at.map(|end| text::duration((end - view.submitted_at).0));
    let took = took.map_or_else(String::new, |took| format!(" after {took}"));
    let test = view
        .test
        .as_ref()
        .map_or_else(String::new, |test| format!("\ntest data: {}", scores::test(test)));
    format!(
        "job {} {}{took}: {} of {} trials finished; best {}{test}",
        view.job,
        view.state.name(),
        view.trials_finished,
        view.trials,
        text::best(view),
    )
}
