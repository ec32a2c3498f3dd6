//! Messages between the shell's threads: inputs of the driver, and items for the writer.

use super::{live_uploads::LiveUploads, side_effects::SideEffect};
use crate::journal::Snapshot;
use sojourn_core::{Answer, Command, JournalPosition, Record, ReplyTo};
use sojourn_protocol::{error::ApiError, ids::JobId};
use tokio::sync::oneshot;

/// An input of the driver.
#[derive(Debug)]
pub(super) enum Input {
    Command {
        command: Box<Command>,
        reply: Option<(ReplyTo, ReplySender)>,
    },
    Events {
        job: JobId,
        after: JournalPosition,
        limit: usize,
        reply: EventsSender,
    },
    Uploads {
        reply: UploadsSender,
    },
    /// The journal of the writer of this number has failed. `for_good`: the process is to end.
    Broken {
        number: u64,
        for_good: bool,
    },
    Stop,
}

/// Whether the driver goes on.
#[derive(PartialEq, Eq)]
pub(super) enum Next {
    Run,
    Stop,
}

/// Where an answer goes.
pub(super) type ReplySender = oneshot::Sender<Result<Answer, ApiError>>;
/// Where events go.
pub(super) type EventsSender = oneshot::Sender<Result<Vec<Record>, ApiError>>;
/// Where the live uploads go.
pub(super) type UploadsSender = oneshot::Sender<LiveUploads>;

/// An input of the writer; they come in the order of the core's effects.
pub(super) enum Item {
    Persist(Record),
    Reply { after: JournalPosition, reply: ReplySender, answer: Result<Answer, ApiError> },
    SideEffect(SideEffect),
    Events { job: JobId, after: JournalPosition, limit: usize, reply: EventsSender },
    Uploads { wanted: LiveUploads, reply: UploadsSender },
    Snapshot(Snapshot),
}

/// Refuses an input.
pub(super) fn refuse(input: Input, refusal: &ApiError) {
    match input {
        Input::Command { reply, .. } => {
            drop(reply.map(|(_, reply)| reply.send(Err(refusal.clone()))));
        }
        Input::Events { reply, .. } => drop(reply.send(Err(refusal.clone()))),
        // The caller finds its reply dropped.
        Input::Uploads { .. } | Input::Broken { .. } | Input::Stop => {}
    }
}
