//! The handle of the shell for the rest of the server: commands in, answers out.

use super::{
    counts::ShellCounts, journal_lease::JournalLease, live_uploads::LiveUploads, message::Input,
};
use sojourn_core::{Answer, Command, JournalPosition, Record, ReplyTo, Request};
use sojourn_protocol::{
    error::{ApiError, ErrorKind},
    ids::JobId,
};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
    mpsc::Sender,
};
use tokio::sync::oneshot;

/// Gives commands to the core; cheap to clone.
#[derive(Debug, Clone)]
pub struct ShellHandle {
    inputs: Sender<Input>,
    next: Arc<AtomicU64>,
    lease: JournalLease,
    counts: ShellCounts,
}

/// The refusal of a caller that can't be answered now. A retry is safe.
pub(super) fn unavailable() -> ApiError {
    ApiError::new(ErrorKind::Unavailable, "the server can't decide just now; try again")
}

/// The same, while the journal finds no room on the disk.
pub(super) fn no_room() -> ApiError {
    let message = "the server's disk is full: it can't decide before there is room";
    ApiError::new(ErrorKind::Unavailable, message)
}

/// The refusal of a server that can't serve from the journal as it is, until somebody has looked at it. Another may.
pub(super) fn cannot_serve() -> ApiError {
    let message = "this server can't go on from the journal, and leaves it to other servers; its log says why";
    ApiError::new(ErrorKind::Unavailable, message)
}

/// The answer to every waiting caller when the core has failed.
pub(super) fn core_failed() -> ApiError {
    ApiError::new(ErrorKind::Internal, "the server failed; its log says why")
}

/// The same of a server that isn't the active one; `active` is where that one is, where it is known.
pub(super) fn standing_by(active: &str) -> ApiError {
    let at =
        if active.is_empty() { String::new() } else { format!(": the active one is {active}") };
    let mut error =
        ApiError::new(ErrorKind::Unavailable, format!("this server stands by for another{at}"));
    error.active = Some(active.to_owned());
    error
}

impl ShellHandle {
    pub(super) fn new(inputs: Sender<Input>, lease: JournalLease, counts: ShellCounts) -> Self {
        Self { inputs, next: Arc::new(AtomicU64::new(1)), lease, counts }
    }

    /// The shell's counts of itself.
    pub(crate) const fn counts(&self) -> &ShellCounts {
        &self.counts
    }

    /// The lease over the journal: what the journal's servers share is deleted under it alone.
    #[must_use]
    pub const fn lease(&self) -> &JournalLease {
        &self.lease
    }

    /// Gives a command and waits for its answer, which comes once it is durable. Where the caller
    /// stops waiting, the core is told that it hung up.
    ///
    /// # Errors
    /// The core's refusal, or [`ErrorKind::Unavailable`].
    pub async fn call(&self, command: impl FnOnce(ReplyTo) -> Command) -> Result<Answer, ApiError> {
        let (to, answer) = self.send(command);
        let mut waiting = Waiting { handle: self, to, answered: false };
        let answer = answer.await.unwrap_or_else(|_| Err(unavailable()));
        waiting.answered = true;
        answer
    }

    /// Gives a command whose answer has one type, and waits for it as [`ShellHandle::call`] does.
    ///
    /// # Errors
    /// The core's refusal, or [`ErrorKind::Unavailable`].
    pub async fn request<R: Request>(&self, request: R) -> Result<R::Answer, ApiError> {
        let answer = self.call(|to| request.command(to)).await?;
        R::value(answer).map_err(|answer| {
            // A fault of the program.
            tracing::error!(?answer, "the core gave the answer of another command");
            ApiError::new(ErrorKind::Internal, "the server failed; its log says why")
        })
    }

    /// Gives a command that has no answer.
    pub fn tell(&self, command: Command) {
        // A core that has stopped needs no more commands.
        let _ = self.inputs.send(Input::Command { command: Box::new(command), reply: None });
    }

    /// A job's events after a position, from the journal.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`].
    pub async fn events(
        &self,
        job: JobId,
        after: JournalPosition,
        limit: usize,
    ) -> Result<Vec<Record>, ApiError> {
        let (reply, answer) = oneshot::channel();
        let _ = self.inputs.send(Input::Events { job, after, limit, reply });
        answer.await.unwrap_or_else(|_| Err(unavailable()))
    }

    /// Which leases' uploads may still be needed.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`].
    pub async fn live_uploads(&self) -> Result<LiveUploads, ApiError> {
        let (reply, answer) = oneshot::channel();
        let _ = self.inputs.send(Input::Uploads { reply });
        answer.await.map_err(|_| unavailable())
    }

    pub(super) fn stop(&self) {
        let _ = self.inputs.send(Input::Stop);
    }

    fn send(
        &self,
        command: impl FnOnce(ReplyTo) -> Command,
    ) -> (ReplyTo, oneshot::Receiver<Result<Answer, ApiError>>) {
        let to = ReplyTo(self.next.fetch_add(1, Ordering::Relaxed));
        let (reply, answer) = oneshot::channel();
        // A core that has stopped drops the reply, which the caller sees.
        let _ = self
            .inputs
            .send(Input::Command { command: Box::new(command(to)), reply: Some((to, reply)) });
        (to, answer)
    }
}

struct Waiting<'a> {
    handle: &'a ShellHandle,
    to: ReplyTo,
    answered: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.answered {
            self.handle.tell(Command::Hangup { to: self.to });
        }
    }
}
