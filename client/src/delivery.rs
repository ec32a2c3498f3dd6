//! Brings one finished result to the server: upload, report, until it is acknowledged or nobody wants it.
//! The slot that made it is long at its next unit.

use crate::{
    api::Form,
    host::Host,
    outbox::{Finished, is_damage},
    runner::UnitRunner,
    transfer::{Delta, Outgoing, UploadError, delta, upload},
};
use sojourn_http::{Backoff, CallError, Recovery, UploadTarget};
use sojourn_protocol::{
    api::ReportAnswer,
    digest::BlobRef,
    direct::DirectAnswer,
    error::{ErrorKind, error_chain},
    ids::LeaseId,
    report::ReportState,
};
use std::{convert::Infallible, io, path::Path, sync::Arc};
use tokio::sync::mpsc;

/// How often a report may be refused for want of its checkpoint.
const MOST_CONFLICTS: u32 = 5;

/// How often a store may fail before the checkpoint goes through the server.
const MOST_STORE_FAILURES: u32 = 2;

/// How much longer than others the pauses grow while something before the server refuses what is sent:
/// each attempt sends all of it again, and only a person can change it.
const PATIENCE: u32 = 20;

/// How often a result's file may be unreadable for no reason that says that it is lost. A program that
/// is ending meets such errors; its results must survive it.
const MOST_UNREAD: u32 = 5;

/// Where a delivery begins.
#[derive(Debug)]
pub(crate) enum First {
    /// With the upload: the result is new. It was trained from `base`, where that is a blob.
    Upload { base: Option<BlobRef> },
    /// With the report: the server may have it all from an earlier run, and only that wasn't heard.
    /// Others wait with theirs until `ahead` is dropped: it is once the result is there, or in trouble.
    Report { ahead: mpsc::Sender<Infallible> },
}

/// The next thing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Send the checkpoint from here on.
    Upload {
        offset: u64,
    },
    /// Ask how much of the checkpoint the server has.
    Locate,
    Report,
}

/// How a step went.
enum Reached {
    Next(Step),
    /// Pause, then this.
    Again(Step, CallError),
    /// The delta isn't taken, for this reason: the checkpoint has to go whole.
    Whole(String),
    /// The file could not be read, which may pass.
    Unread(io::Error),
    /// The server has it all and has said so.
    Acknowledged(ReportAnswer),
    /// The daemon has to end.
    End(CallError),
    /// The server won't take it, now or later.
    Unwanted(String),
}

/// A result's checkpoint, as it is sent.
struct Parcel<'a> {
    lease: LeaseId,
    whole: BlobRef,
    path: &'a Path,
    /// What a delta could be made from, until that was tried.
    base: Option<BlobRef>,
    delta: Option<Delta>,
    /// How often it may yet fail to get past the server.
    direct: u32,
}

impl Parcel<'_> {
    /// Makes a delta where that pays; once.
    async fn pack<R: UnitRunner>(&mut self, host: &Host<R>) {
        let Some(base) = self.base.take() else { return };
        // The server would have to fetch the base for it, and send on what it makes of both.
        if host.api.takes_deltas() && !host.api.takes_direct() {
            self.delta = delta(&host.fetcher, &host.lines, base, self.whole, self.path).await;
        }
        if let Some(delta) = &self.delta {
            let (lease, bytes, whole) = (self.lease, delta.blob.bytes, self.whole.bytes);
            tracing::debug!(%lease, bytes, whole, "sending a delta");
        }
    }

    fn form(&self) -> Form {
        match &self.delta {
            Some(delta) => Form::Delta { base: delta.base, result: self.whole },
            None => Form::Whole,
        }
    }

    /// What of it is sent from `offset` on.
    fn outgoing(&self, offset: u64, place: Option<UploadTarget>) -> Outgoing<'_> {
        let (blob, path) = match &self.delta {
            Some(delta) => (delta.blob, delta.path.as_path()),
            None => (self.whole, self.path),
        };
        let sent = Arc::default();
        Outgoing { lease: self.lease, blob, form: self.form(), path, offset, place, sent }
    }
}

/// Delivers a result and keeps table and outbox in step.
pub(crate) async fn deliver<R: UnitRunner>(host: &Host<R>, finished: Finished, first: First) {
    let lease = finished.report.lease;
    let mut backoff = host.backoff();
    let mut patience = Backoff::new(host.timing.longest_pause.saturating_mul(PATIENCE));
    let (mut conflicts, mut unread) = (0, 0);
    let (mut step, base, mut ahead) = match first {
        First::Upload { base } => (Step::Upload { offset: 0 }, base, None),
        First::Report { ahead } => (Step::Report, None, Some(ahead)),
    };
    let mut parcel = finished.checkpoint.as_ref().map(|(whole, path)| Parcel {
        lease,
        whole: *whole,
        path,
        base,
        delta: None,
        direct: MOST_STORE_FAILURES,
    });
    loop {
        let reached = match (step, &mut parcel) {
            (Step::Report, _) | (_, None) => report(host, &finished, &mut conflicts).await,
            (Step::Locate, Some(parcel)) => locate(host, parcel, conflicts).await,
            (Step::Upload { offset }, Some(parcel)) => {
                parcel.pack(host).await;
                send(host, &finished, parcel, offset).await
            }
        };
        match reached {
            Reached::Next(next) => step = next,
            Reached::Whole(reason) => {
                tracing::debug!(%lease, reason, "a delta isn't taken; sending the checkpoint whole");
                parcel.iter_mut().for_each(|parcel| parcel.delta = None);
                step = Step::Locate;
            }
            Reached::Again(next, failure) => {
                drop(ahead.take());
                let refused = failure.is_refused_by_proxy();
                let pauses = if refused { &mut patience } else { &mut backoff };
                // Again each time that the pauses have doubled, where somebody has to do something.
                let attempts = pauses.attempts();
                let tell = attempts == 0 || (refused && attempts.is_power_of_two());
                if tell && !host.contact.is_away() {
                    let (cause, advice) = (error_chain(&failure), failure.advice());
                    tracing::warn!(%lease, cause, advice, "a result isn't delivered yet; trying again");
                }
                host.contact.pause(pauses, failure.retry_after()).await;
                step = next;
            }
            Reached::Unread(error) if unread < MOST_UNREAD && !is_damage(&error) => {
                drop(ahead.take());
                unread += 1;
                host.contact.pause(&mut backoff, None).await;
                step = Step::Locate;
            }
            Reached::Unread(error) => {
                tracing::error!(%lease, %error, "a result is lost; giving its unit back");
                host.outbox.remove(lease);
                let reason = format!("the finished checkpoint is lost: {error}");
                host.give_back(lease, reason).await;
                return;
            }
            Reached::Acknowledged(answer) => {
                tracing::debug!(%lease, "result acknowledged");
                if answer.state == ReportState::Acknowledged {
                    host.table.reported(lease);
                } else {
                    host.report_is(&answer);
                }
                return;
            }
            Reached::End(failure) => return host.note(&failure),
            Reached::Unwanted(reason) => {
                tracing::info!(%lease, reason, "a result is not wanted any more; it is dropped");
                host.outbox.remove(lease);
                host.give_back(lease, reason).await;
                return;
            }
        }
    }
}

async fn send<R: UnitRunner>(
    host: &Host<R>,
    finished: &Finished,
    parcel: &mut Parcel<'_>,
    offset: u64,
) -> Reached {
    let place = match place(host, parcel, offset).await {
        Ok(place) => place,
        Err(reached) => return reached,
    };
    if place.is_some() {
        // Until it has got there.
        parcel.direct = parcel.direct.saturating_sub(1);
    }
    let outgoing = parcel.outgoing(offset, place);
    let bytes = outgoing.blob.bytes;
    host.table.sending(outgoing.lease, Arc::clone(&outgoing.sent));
    let sent = upload(&host.api, &host.lines, &outgoing, host.timing.answer).await;
    let failure = match sent {
        Ok(state) if state.complete => return Reached::Next(Step::Report),
        Ok(state) if state.offset > offset && state.offset < bytes => {
            return Reached::Next(Step::Upload { offset: state.offset });
        }
        Ok(state) => {
            let has = state.offset;
            host.api.invalid(format!("sent all from byte {offset} on, the server has {has}"))
        }
        Err(UploadError::Server(failure)) => failure,
        Err(UploadError::Disk(error)) if parcel.delta.is_some() => {
            return Reached::Whole(error.to_string());
        }
        Err(UploadError::Disk(error)) => return Reached::Unread(error),
    };
    match failure.recovery() {
        Recovery::Retry => Reached::Again(Step::Locate, failure),
        Recovery::End => Reached::End(failure),
        Recovery::Amend(ErrorKind::WrongOffset) => Reached::Again(Step::Locate, failure),
        // Whatever it is, the whole may be taken; or its refusal says more.
        _ if parcel.delta.is_some() => Reached::Whole(failure.to_string()),
        Recovery::Gone => Reached::Unwanted(failure.to_string()),
        // The bytes may have suffered on the way, or here: the latter is found out at once.
        Recovery::Amend(ErrorKind::DigestMismatch) => match host.outbox.verify(finished).await {
            Ok(()) => Reached::Again(Step::Locate, failure),
            Err(error) => Reached::Unread(error),
        },
        // Nobody waits for these bytes any more; the report will hear why.
        Recovery::Amend(ErrorKind::Conflict) => Reached::Next(Step::Report),
        Recovery::Amend(_) => Reached::Unwanted(failure.to_string()),
    }
}

/// Where past the server a checkpoint goes; `None` is the server itself.
async fn place<R: UnitRunner>(
    host: &Host<R>,
    parcel: &Parcel<'_>,
    offset: u64,
) -> Result<Option<UploadTarget>, Reached> {
    let whole = offset == 0 && parcel.delta.is_none() && parcel.direct > 0;
    if !whole || !host.api.takes_direct() {
        return Ok(None);
    }
    match host.api.direct(parcel.lease, parcel.whole).await {
        Ok(DirectAnswer::Put { url, headers, .. }) => Ok(Some(UploadTarget { url, headers })),
        Ok(DirectAnswer::There) => Err(Reached::Next(Step::Report)),
        Ok(DirectAnswer::Through) => Ok(None),
        Err(failure) => match failure.recovery() {
            Recovery::Retry => Err(Reached::Again(Step::Locate, failure)),
            Recovery::End => Err(Reached::End(failure)),
            // An upload through the server says what is to be done.
            Recovery::Gone | Recovery::Amend(_) => Ok(None),
        },
    }
}

async fn locate<R: UnitRunner>(host: &Host<R>, parcel: &Parcel<'_>, conflicts: u32) -> Reached {
    let failure = match host.api.upload_state(parcel.lease, parcel.form()).await {
        // It has the checkpoint and yet refuses the report that goes with it.
        Ok(state) if state.complete && conflicts > 1 => {
            return Reached::Unwanted("the server has another report for this lease".to_owned());
        }
        Ok(state) if state.complete => return Reached::Next(Step::Report),
        Ok(state) => return Reached::Next(Step::Upload { offset: state.offset }),
        Err(failure) => failure,
    };
    match failure.recovery() {
        Recovery::Retry => Reached::Again(Step::Locate, failure),
        Recovery::End => Reached::End(failure),
        // Nothing there yet, perhaps. If the lease is gone, the upload will say so.
        Recovery::Gone | Recovery::Amend(_) => Reached::Next(Step::Upload { offset: 0 }),
    }
}

async fn report<R: UnitRunner>(
    host: &Host<R>,
    finished: &Finished,
    conflicts: &mut u32,
) -> Reached {
    let lease = finished.report.lease;
    host.table.reporting(lease);
    let failure = match host.api.report(&finished.report).await {
        Ok(answer) => return Reached::Acknowledged(answer),
        Err(failure) => failure,
    };
    host.table.not_reported(lease);
    match failure.recovery() {
        Recovery::Retry => Reached::Again(Step::Report, failure),
        Recovery::End => Reached::End(failure),
        Recovery::Amend(ErrorKind::Conflict)
            if finished.checkpoint.is_some() && *conflicts < MOST_CONFLICTS =>
        {
            *conflicts += 1;
            Reached::Next(Step::Locate)
        }
        Recovery::Gone | Recovery::Amend(_) => Reached::Unwanted(failure.to_string()),
    }
}
