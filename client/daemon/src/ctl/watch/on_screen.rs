//! The client on the whole terminal.
//!
//! ```text
//!  keys ----.
//!            +--> this loop --> draw
//!  asker ---'         |
//!    ^---- pause, ... '
//! ```
//!
//! Keys and the client's answers come from threads of their own, so that neither waits for the other.

use super::{
    POLL_INTERVAL, draw,
    view::{Next, View},
};
use ratatui::crossterm::event::Event;
use sojourn_client::control::{Answer, Ask, CallError, LogPart, Status, call};
use sojourn_programs::{
    exit::Failure,
    screen::{self, Screen},
    signals,
};
use std::{
    io,
    path::Path,
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    thread,
    time::Duration,
};
use tokio::{
    sync::{
        mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
        oneshot,
    },
    time::timeout,
};

/// Lines of the log that the largest terminal has room for.
const MAX_LOG_LINES: usize = 100;
/// How long the client may take for the last order.
const LAST_ORDER_TIMEOUT: Duration = Duration::from_secs(3);

/// An event of the loop.
enum News {
    /// The terminal: a key, or another size.
    Terminal(Event),
    /// The client's answer.
    Answered(Result<Answer, CallError>),
    /// The terminal is gone.
    Lost(io::Error),
}

/// Shows it until somebody has seen enough, or the client has ended: then true.
pub(super) async fn show(data: &Path, status: Status) -> Result<bool, Failure> {
    // Before the first sign of it: a signal would leave the terminal as it is.
    let shutdown = signals::requested();
    let mut screen = Screen::open().map_err(|error| broken(&error))?;
    let (news, mut updates) = unbounded_channel();
    let (orders, asks) = channel();
    let (of_keys, of_answers, data) = (news.clone(), news, data.to_owned());
    thread::spawn(move || {
        screen::read_events(|read| {
            of_keys.send(read.map_or_else(News::Lost, News::Terminal)).is_ok()
        });
    });
    let (done, asked) = oneshot::channel();
    // No task of the runtime: that would wait for it at the end.
    thread::spawn(move || {
        ask(&data, &asks, &of_answers);
        // Nobody waits where it took too long.
        let _ = done.send(());
    });
    let mut view = View::new(status);
    let ended = tokio::select! {
        ended = follow(&mut screen, &mut view, &mut updates, &orders) => ended,
        () = shutdown => Ok(false),
    };
    drop(screen);
    // The last order still reaches the client, if it listens.
    drop((orders, updates));
    let _ = timeout(LAST_ORDER_TIMEOUT, asked).await;
    ended.map_err(|error| broken(&error))
}

fn broken(error: &io::Error) -> Failure {
    Failure::work(format!(
        "the terminal can't be used: {error}; `sojourn client ctl status` prints the same once"
    ))
}

/// True where the client has ended, false where somebody has seen enough.
async fn follow(
    screen: &mut Screen,
    view: &mut View,
    updates: &mut UnboundedReceiver<News>,
    orders: &Sender<Ask>,
) -> io::Result<bool> {
    loop {
        screen.draw(|area, buffer| draw::draw(view, area, buffer))?;
        // Both threads have a sender for as long as there is something to hear.
        let Some(news) = updates.recv().await else { return Ok(false) };
        match news {
            News::Terminal(Event::Key(key)) => match view.key(key) {
                Next::Stay => {}
                Next::Leave => return Ok(false),
                // It is gone only with the client, which is heard of.
                Next::Ask(ask) => drop(orders.send(ask)),
            },
            News::Terminal(_) => {}
            News::Answered(Err(error)) if error.has_ended() => return Ok(true),
            News::Answered(answer) => view.take_answer(answer),
            News::Lost(error) => return Err(error),
        }
    }
}

/// Asks the client, once a second and whenever there is an order, until it has ended or there can be no more orders.
fn ask(data: &Path, orders: &Receiver<Ask>, news: &UnboundedSender<News>) {
    let mut next = Ask::Status;
    loop {
        for ask in [next, Ask::Log(LogPart::Last(MAX_LOG_LINES))] {
            let answer = call(data, &ask);
            let last = answer.as_ref().is_err_and(CallError::has_ended);
            // Where nobody listens any more, there may be orders yet.
            let _ = news.send(News::Answered(answer));
            if last {
                return;
            }
        }
        next = match orders.recv_timeout(POLL_INTERVAL) {
            Ok(ask) => ask,
            Err(RecvTimeoutError::Timeout) => Ask::Status,
            Err(RecvTimeoutError::Disconnected) => return,
        };
    }
}
