//! `sojourn top`: jobs, hosts and what happens at a server, on the whole terminal.
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
use serde::Serialize;
use sojourn_daemon::terminal::call_error;
use sojourn_http::CallError;
use sojourn_protocol::{
    ids::JobId,
    view::{HostView, JobView},
};
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
use view::{Snapshot, View};

/// The pause between two rounds of requests.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print one JSON object with all jobs and hosts, and end.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

/// The answer of `--json`.
#[derive(Debug, Serialize)]
struct Report {
    jobs: Vec<JobView>,
    hosts: Vec<HostView>,
}

/// An event of the loop.
enum News {
    /// The terminal: a key, or another size. An error where it is gone.
    Terminal(io::Result<Event>),
    /// The server's answers.
    Answered(Result<Box<Snapshot>, CallError>),
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    let client = args.connection.client()?;
    if args.json {
        let (jobs, hosts) = tokio::try_join!(client.jobs(), client.hosts())?;
        return output::json(&Report { jobs, hosts });
    }
    let mut view = View::new(client.server());
    if screen::is_possible() {
        return on_screen(client, &mut view).await;
    }
    view.take_snapshot(Asker::new(client).round(None).await?);
    output::line(&draw::text(&view))
}

/// The whole terminal, until somebody has seen enough.
async fn on_screen(client: ApiClient, view: &mut View) -> Result<(), Failure> {
    // Before the first sign of it: a signal would leave the terminal as it is.
    let shutdown = signals::requested();
    let mut screen = Screen::open().map_err(|error| broken(&error))?;
    let (news, mut updates) = unbounded_channel();
    let (select, selected) = watch::channel(None);
    let of_keys = news.clone();
    thread::spawn(move || {
        screen::read_events(|event| of_keys.send(News::Terminal(event)).is_ok());
    });
    let asker = tokio::spawn(ask(Asker::new(client.clone()), selected, news));
    let ended = tokio::select! {
        ended = follow(&client, &mut screen, view, &mut updates, &select) => ended,
        () = shutdown => Ok(()),
    };
    asker.abort();
    drop(screen);
    ended
}

fn broken(error: &io::Error) -> Failure {
    Failure::work(format!(
        "the terminal can't be used: {error}; `sojourn top | cat` prints the same once"
    ))
}

/// Shows what comes, until somebody has seen enough.
///
/// # Errors
/// Where the terminal is gone, or the first answer is a refusal.
async fn follow(
    client: &ApiClient,
    screen: &mut Screen,
    view: &mut View,
    updates: &mut UnboundedReceiver<News>,
    select: &watch::Sender<Option<JobId>>,
) -> Result<(), Failure> {
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
            None => return Ok(()),
            Some(News::Terminal(Err(error))) => return Err(broken(&error)),
            Some(News::Terminal(Ok(Event::Key(key)))) => match view.key(key) {
                Next::Stay => {}
                Next::Leave => return Ok(()),
            },
            Some(News::Terminal(Ok(_))) => {}
            Some(News::Answered(Ok(snapshot))) => {
                answered = Instant::now();
                view.take_snapshot(*snapshot);
            }
            // A wrong token stays wrong: that is said as every command says it.
            Some(News::Answered(Err(error))) if view.snapshot.is_none() && !error.is_away() => {
                return Err(error.into());
            }
            Some(News::Answered(Err(error))) => view.problem = Some(call_error::message(&error)),
        }
        select.send_if_modified(|asked| {
            let differs = *asked != view.selected;
            *asked = view.selected;
            differs
        });
    }
}

/// Asks the server once a second, and whenever another job is selected, until nobody listens any more.
async fn ask(
    mut asker: Asker,
    mut selected: watch::Receiver<Option<JobId>>,
    news: UnboundedSender<News>,
) {
    loop {
        let job = *selected.borrow_and_update();
        if news.send(News::Answered(asker.round(job).await.map(Box::new))).is_err() {
            return;
        }
        tokio::select! {
            () = sleep(POLL_INTERVAL) => {}
            changed = selected.changed() => if changed.is_err() { return },
        }
    }
}
