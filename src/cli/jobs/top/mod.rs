//! `sojourn top`: jobs, hosts and what happens at a server, on the whole terminal. `sojourn status --watch` shows the same, of one job
//! if that is named.
//!
//! ```text
//!  keys ----.
//!            +--> this loop --> draw
//!  asker ---'         |
//!    ^---- job -------'
//! ```
//!
//! Keys come from a thread and the server's answers from a task of their own, so that neither waits for the other.

mod ask;
mod columns;
mod draw;
#[cfg(test)]
mod fixture;
mod keys;
mod panes;
mod report;
mod view;

use crate::{
    api_client::ApiClient,
    cli::terminal::{
        connection::Connection,
        exit::Failure,
        output,
        screen::{self, Screen},
        signals,
    },
};
use ask::Asker;
use keys::Next;
use ratatui::crossterm::event::Event;
pub(crate) use report::Args;
use sojourn_http::CallError;
use sojourn_programs::call_error;
use sojourn_protocol::{ids::JobId, view::JobView};
use std::{
    io, thread,
    time::{Duration, Instant},
};
use tokio::{
    sync::{
        mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
        watch,
    },
    time::{interval, sleep},
};
use view::{Scope, Snapshot, View};

/// The least pause between two rounds of requests.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// A pause is so many times as long as the round before it: who watches a large fleet takes a tenth of the server's time at most.
const REST: u32 = 9;

/// An event of the loop.
enum News {
    /// The terminal: a key, or another size. An error where it is gone.
    Terminal(io::Result<Event>),
    /// The server's answers; and when it is asked again.
    Answered(Result<Box<Snapshot>, CallError>, Duration),
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    server(&args.connection, args.json).await
}

/// Is there a terminal to show it on?
pub(crate) fn is_possible() -> bool {
    screen::is_possible()
}

/// Shows a server: on the whole terminal, until somebody has seen enough; where there is none, once as text; or once as JSON.
pub(crate) async fn server(connection: &Connection, json: bool) -> Result<(), Failure> {
    let client = connection.client()?;
    if json {
        return report::print(&client).await;
    }
    if screen::is_possible() {
        return on_screen(client, Scope::Server).await.map(drop);
    }
    let mut view = View::new(client.server(), Scope::Server);
    view.take_snapshot(Asker::new(client, Scope::Server).round(None).await?);
    output::line(&draw::text(&view))
}

/// Shows a job on the whole terminal until it has ended; none where somebody has seen enough before.
pub(crate) async fn job(client: ApiClient, job: JobId) -> Result<Option<JobView>, Failure> {
    on_screen(client, Scope::Job(job)).await
}

/// The whole terminal, until somebody has seen enough or the one job has ended; then that job.
async fn on_screen(client: ApiClient, scope: Scope) -> Result<Option<JobView>, Failure> {
    let mut view = View::new(client.server(), scope);
    // Before the first sign of it: a signal would leave the terminal as it is.
    let shutdown = signals::requested();
    let mut screen = Screen::open().map_err(|error| broken(&error))?;
    let (news, mut updates) = unbounded_channel();
    let (select, selected) = watch::channel(view.selected);
    let of_keys = news.clone();
    thread::spawn(move || {
        screen::read_events(|event| of_keys.send(News::Terminal(event)).is_ok());
    });
    let asker = tokio::spawn(ask(Asker::new(client.clone(), scope), selected, news));
    let ended = tokio::select! {
        ended = follow(&client, &mut screen, &mut view, &mut updates, &select) => ended,
        () = shutdown => Ok(None),
    };
    asker.abort();
    drop(screen);
    ended
}

fn broken(error: &io::Error) -> Failure {
    Failure::work(format!(
        "the terminal can't be used: {error}; with `| cat` behind it the command prints text"
    ))
}

/// Shows what comes, until somebody has seen enough or the one job has ended; then that job.
///
/// # Errors
/// Where the terminal is gone, or the first answer is a refusal; where the one job is gone.
async fn follow(
    client: &ApiClient,
    screen: &mut Screen,
    view: &mut View,
    updates: &mut UnboundedReceiver<News>,
    select: &watch::Sender<Option<JobId>>,
) -> Result<Option<JobView>, Failure> {
    let mut clock = interval(POLL_INTERVAL);
    let mut answered = Instant::now();
    loop {
        view.silence = answered.elapsed();
        // Of several servers another may have become the active one.
        view.server = client.server();
        screen.draw(|area, buffer| draw::draw(view, area, buffer)).map_err(|e| broken(&e))?;
        let news = tokio::select! {
            news = updates.recv() => news,
            _ = clock.tick() => continue,
        };
        match news {
            // The reader of keys has a sender for as long as there is something to hear.
            None => return Ok(None),
            Some(News::Terminal(Err(error))) => return Err(broken(&error)),
            Some(News::Terminal(Ok(Event::Key(key)))) => match view.key(key) {
                Next::Stay => {}
                Next::Leave => return Ok(None),
            },
            Some(News::Terminal(Ok(_))) => {}
            Some(News::Answered(Ok(snapshot), pause)) => {
                // Nothing is wrong where nobody asks.
                answered = Instant::now() + pause.saturating_sub(POLL_INTERVAL);
                view.take_snapshot(*snapshot);
                let ended = view.job().filter(|job| job.state.has_ended());
                if let (Scope::Job(_), Some(job)) = (view.scope, ended) {
                    return Ok(Some(job.clone()));
                }
            }
            // A wrong token stays wrong, and a deleted job stays deleted: that is said as every command says it.
            Some(News::Answered(Err(error), _))
                if !error.is_away() && (view.snapshot.is_none() || view.scope != Scope::Server) =>
            {
                return Err(error.into());
            }
            Some(News::Answered(Err(error), _)) => view.problem = Some(call_error::message(&error)),
        }
        select.send_if_modified(|asked| {
            let differs = *asked != view.selected;
            *asked = view.selected;
            differs
        });
    }
}

/// How long it rests after a round that took so long.
fn pause_after(round: Duration) -> Duration {
    round.saturating_mul(REST).max(POLL_INTERVAL)
}

/// Asks the server once a second, or more seldom where it needs long, and whenever another job is selected, until nobody listens any more.
async fn ask(
    mut asker: Asker,
    mut selected: watch::Receiver<Option<JobId>>,
    news: UnboundedSender<News>,
) {
    loop {
        let job = *selected.borrow_and_update();
        let begun = Instant::now();
        let answer = asker.round(job).await.map(Box::new);
        let pause = if answer.is_ok() { pause_after(begun.elapsed()) } else { POLL_INTERVAL };
        if news.send(News::Answered(answer, pause)).is_err() {
            return;
        }
        tokio::select! {
            () = sleep(pause) => {}
            changed = selected.changed() => if changed.is_err() { return },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_needs_long_is_asked_more_seldom() {
        assert_eq!(pause_after(Duration::from_millis(20)), POLL_INTERVAL);
        assert_eq!(pause_after(Duration::from_secs(2)), Duration::from_secs(18));
    }
}
