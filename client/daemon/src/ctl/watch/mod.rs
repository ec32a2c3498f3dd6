//! `sojourn client ctl status --watch`: how the client is, once a second; on the whole terminal, or a line each.

#[cfg(feature = "screen")]
mod draw;
#[cfg(feature = "screen")]
mod on_screen;
#[cfg(feature = "screen")]
mod view;

use crate::ctl::{asked, show, unanswered};
use sojourn_client::control::{Answer, Ask, Status, call};
use sojourn_programs::{exit::Failure, output};
use std::{path::Path, time::Duration};

/// The pause between two requests to the client.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Shows it until somebody has seen enough, or the client has ended.
pub(super) async fn run(data: &Path, json: bool) -> Result<(), Failure> {
    let status = status(asked(data, &Ask::Status)?)?;
    #[cfg(feature = "screen")]
    if !json && sojourn_programs::screen::is_possible() {
        if on_screen::show(data, status).await? {
            output::remark(ENDED);
        }
        return Ok(());
    }
    lines(data, status, json).await
}

const ENDED: &str = "the client has ended";

/// A line a second.
async fn lines(data: &Path, mut status: Status, json: bool) -> Result<(), Failure> {
    loop {
        if json {
            output::json_line(&status)?;
        } else {
            output::line(&show::in_a_line(&status))?;
        }
        tokio::time::sleep(POLL_INTERVAL).await;
        status = match call(data, &Ask::Status) {
            Ok(answer) => self::status(answer)?,
            Err(error) if error.has_ended() => {
                output::remark(ENDED);
                return Ok(());
            }
            Err(error) => return Err(unanswered(&error)),
        };
    }
}

fn status(answer: Answer) -> Result<Status, Failure> {
    match answer {
        Answer::Status(status) => Ok(*status),
        answer => Err(Failure::work(show::answer(&answer))),
    }
}
