//! Sends one result to the server: its checkpoint, then its report. One attempt per call; the agent decides when to try
//! again.

use super::calls::retry_of;
use crate::{
    api::Form,
    context::Context,
    storage::outbox::{Finished, is_damage},
    transfer::{Delta, Outgoing, UploadError as Broken, delta, upload as send_file},
};
use sojourn_client_core::{Event, ReportError, UploadError, UploadStart, Uploaded};
use sojourn_http::{CallError, Recovery, UploadTarget, trace::UNITS};
use sojourn_protocol::{
    digest::BlobRef,
    direct::DirectAnswer,
    error::{ErrorKind, error_chain},
    ids::LeaseId,
};
use std::{
    io,
    path::Path,
    sync::{Arc, atomic::AtomicU64},
};
use tokio::sync::Mutex;

/// How often a store may fail before the checkpoint goes through the server.
const MAX_STORE_FAILURES: u32 = 2;

/// A result, and how it is sent.
#[derive(Debug)]
pub(crate) struct UploadAttempt {
    finished: Finished,
    /// The base for a delta, until one was tried.
    base: Option<BlobRef>,
    delta: Option<Delta>,
    /// Uploads to the object store that may still be tried.
    direct: u32,
    /// Bytes sent.
    sent: Arc<AtomicU64>,
    failures: u32,
    refusals: u32,
}

/// The next thing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Send the checkpoint from here on.
    Upload { offset: u64 },
    /// Ask how much of the checkpoint the server has.
    Locate,
}

/// The result of a step.
enum StepResult {
    Next(Step),
    /// The server refuses the delta, for this reason: the whole checkpoint has to be sent.
    SendWhole(String),
    /// The server has the whole checkpoint.
    Complete(Uploaded),
    Failed(UploadError),
    /// The daemon has to end.
    End(CallError),
}

impl UploadAttempt {
    /// A result that was trained from `base`, where that is a blob that is here.
    pub(crate) fn new(finished: Finished, base: Option<BlobRef>, sent: Arc<AtomicU64>) -> Self {
        let direct = MAX_STORE_FAILURES;
        Self { finished, base, delta: None, direct, sent, failures: 0, refusals: 0 }
    }

    fn lease(&self) -> LeaseId {
        self.finished.report.lease
    }

    fn whole(&self) -> Option<(BlobRef, &Path)> {
        self.finished.checkpoint.as_ref().map(|(blob, path)| (*blob, path.as_path()))
    }

    /// Makes a delta if that saves time; once.
    async fn pack<R>(&mut self, context: &Context<R>) {
        let Some(base) = self.base.take() else { return };
        let server = &context.server;
        let Some((whole, path)) = self.whole() else { return };
        // With an object store, the server would have to fetch the base and put the decoded checkpoint there.
        if server.api.takes_deltas() && !server.api.takes_direct() {
            self.delta = delta(&server.fetcher, &server.bandwidth, base, whole, path).await;
        }
        if let Some(delta) = &self.delta {
            let (lease, bytes, whole) = (self.lease(), delta.blob.bytes, whole.bytes);
            tracing::debug!(target: UNITS, lease = lease.0, bytes, whole, "sending a delta");
        }
    }

    fn form(&self, whole: BlobRef) -> Form {
        match &self.delta {
            Some(delta) => Form::Delta { base: delta.base, result: whole },
            None => Form::Whole,
        }
    }

    /// Logs a failed attempt: the first one, and, where a person has to act, each time that the pauses have doubled.
    fn log_failure<R>(&mut self, context: &Context<R>, failure: &CallError) {
        let refused = failure.is_refused_by_proxy();
        let count = if refused { &mut self.refusals } else { &mut self.failures };
        let attempts = *count;
        *count = attempts.saturating_add(1);
        let is_logged = attempts == 0 || (refused && attempts.is_power_of_two());
        if is_logged && !context.server.contact.is_away() {
            let (lease, cause, advice) = (self.lease(), error_chain(failure), failure.advice());
            tracing::warn!(%lease, cause, advice, "a result isn't delivered yet; trying again");
        }
    }

    async fn step<R>(&mut self, context: &Context<R>, step: Step) -> StepResult {
        let Some((whole, path)) = self.finished.checkpoint.clone() else {
            return StepResult::Complete(Uploaded::Before);
        };
        match step {
            Step::Locate => self.locate(context, whole).await,
            Step::Upload { offset } => {
                self.pack(context).await;
                self.send(context, (whole, &path), offset).await
            }
        }
    }

    async fn locate<R>(&mut self, context: &Context<R>, whole: BlobRef) -> StepResult {
        let state = context.server.api.upload_state(self.lease(), self.form(whole)).await;
        let failure = match state {
            Ok(state) if state.complete => return StepResult::Complete(Uploaded::Before),
            Ok(state) => return StepResult::Next(Step::Upload { offset: state.offset }),
            Err(failure) => failure,
        };
        match failure.recovery() {
            Recovery::Retry => self.later(context, failure),
            Recovery::End => StepResult::End(failure),
            // Perhaps nothing was uploaded yet. If the lease is gone, the upload is refused.
            Recovery::Gone | Recovery::Amend(_) => StepResult::Next(Step::Upload { offset: 0 }),
        }
    }

    fn later<R>(&mut self, context: &Context<R>, failure: CallError) -> StepResult {
        self.log_failure(context, &failure);
        let retry = retry_of(Some(&failure));
        StepResult::Failed(match failure.is_refused_by_proxy() {
            true => UploadError::RefusedOnTheWay(retry),
            false => UploadError::Later(retry),
        })
    }

    async fn send<R>(
        &mut self,
        context: &Context<R>,
        (whole, path): (BlobRef, &Path),
        offset: u64,
    ) -> StepResult {
        let target = match self.target(context, whole, offset).await {
            Ok(target) => target,
            Err(result) => return result,
        };
        if target.is_some() {
            // An upload that succeeds needs no further attempts.
            self.direct = self.direct.saturating_sub(1);
        }
        let (blob, file) = match &self.delta {
            Some(delta) => (delta.blob, delta.path.as_path()),
            None => (whole, path),
        };
        let (lease, form, sent) = (self.lease(), self.form(whole), Arc::clone(&self.sent));
        let outgoing = Outgoing { lease, blob, form, path: file, offset, target, sent };
        let server = &context.server;
        let sent =
            send_file(&server.api, &server.bandwidth, &outgoing, context.timing.answer).await;
        let failure = match sent {
            Ok(state) if state.complete => return StepResult::Complete(Uploaded::Sent),
            Ok(state) if state.offset > offset && state.offset < blob.bytes => {
                return StepResult::Next(Step::Upload { offset: state.offset });
            }
            Ok(state) => {
                let has = state.offset;
                let text = format!("sent all from byte {offset} on, the server has {has}");
                server.api.invalid(text)
            }
            Err(Broken::Server(failure)) => failure,
            Err(Broken::Disk(error)) if self.delta.is_some() => {
                return StepResult::SendWhole(error.to_string());
            }
            Err(Broken::Disk(error)) => return unreadable(&error),
        };
        match failure.recovery() {
            Recovery::Retry | Recovery::Amend(ErrorKind::WrongOffset) => {
                self.later(context, failure)
            }
            Recovery::End => StepResult::End(failure),
            // The whole checkpoint may be accepted; if not, its refusal says more.
            _ if self.delta.is_some() => StepResult::SendWhole(failure.to_string()),
            // The bytes were altered on the way or on this disk: the file is verified.
            Recovery::Amend(ErrorKind::DigestMismatch) => {
                match context.storage.outbox.verify(&self.finished).await {
                    Ok(()) => self.later(context, failure),
                    Err(error) => unreadable(&error),
                }
            }
            // The server doesn't need these bytes any more; the report's answer says why.
            Recovery::Amend(ErrorKind::Conflict) => StepResult::Complete(Uploaded::Sent),
            Recovery::Gone | Recovery::Amend(_) => {
                StepResult::Failed(UploadError::NotWanted(failure.to_string()))
            }
        }
    }

    /// Where in the object store a checkpoint goes; `None` for the server.
    async fn target<R>(
        &mut self,
        context: &Context<R>,
        whole: BlobRef,
        offset: u64,
    ) -> Result<Option<UploadTarget>, StepResult> {
        let goes_direct = offset == 0 && self.delta.is_none() && self.direct > 0;
        if !goes_direct || !context.server.api.takes_direct() {
            return Ok(None);
        }
        match context.server.api.direct(self.lease(), whole).await {
            Ok(DirectAnswer::Put { url, headers, .. }) => Ok(Some(UploadTarget { url, headers })),
            Ok(DirectAnswer::There) => Err(StepResult::Complete(Uploaded::Sent)),
            Ok(DirectAnswer::Through) => Ok(None),
            Err(failure) => match failure.recovery() {
                Recovery::Retry => Err(self.later(context, failure)),
                Recovery::End => Err(StepResult::End(failure)),
                // An upload through the server shows what is wrong.
                Recovery::Gone | Recovery::Amend(_) => Ok(None),
            },
        }
    }
}

fn unreadable(error: &io::Error) -> StepResult {
    let reason = format!("the finished checkpoint is lost: {error}");
    StepResult::Failed(match is_damage(error) {
        true => UploadError::Lost(reason),
        false => UploadError::Unreadable(reason),
    })
}

/// Sends a result's checkpoint.
pub(crate) async fn upload<R>(
    context: Arc<Context<R>>,
    attempt: Arc<Mutex<UploadAttempt>>,
    start: UploadStart,
) {
    let mut attempt = attempt.lock().await;
    let lease = attempt.lease();
    let mut step = match start {
        UploadStart::FirstByte => Step::Upload { offset: 0 },
        UploadStart::Locate => Step::Locate,
    };
    let event = loop {
        match attempt.step(&context, step).await {
            StepResult::Next(next) => step = next,
            StepResult::SendWhole(reason) => {
                tracing::debug!(target: UNITS, lease = lease.0, reason, "a delta isn't taken; sending the checkpoint whole");
                attempt.delta = None;
                step = Step::Locate;
            }
            StepResult::Complete(uploaded) => {
                tracing::debug!(target: UNITS, lease = lease.0, "checkpoint uploaded");
                break Event::Uploaded(lease, uploaded);
            }
            StepResult::End(failure) => return context.note(&failure),
            StepResult::Failed(error) => break Event::UploadFailed(lease, error),
        }
    };
    drop(attempt);
    context.tell(event);
}

/// Sends a result's report.
pub(crate) async fn report<R>(context: Arc<Context<R>>, attempt: Arc<Mutex<UploadAttempt>>) {
    let mut attempt = attempt.lock().await;
    let lease = attempt.lease();
    let result = match context.server.api.report(&attempt.finished.report).await {
        Ok(answer) => Ok(answer),
        Err(failure) => Err(match failure.recovery() {
            Recovery::Retry => {
                attempt.log_failure(&context, &failure);
                ReportError::NoAnswer(retry_of(Some(&failure)))
            }
            Recovery::End => return context.note(&failure),
            Recovery::Amend(ErrorKind::Conflict) => ReportError::UploadMissing(failure.to_string()),
            Recovery::Gone | Recovery::Amend(_) => ReportError::NotWanted(failure.to_string()),
        }),
    };
    drop(attempt);
    context.tell(Event::Report(lease, result));
}
