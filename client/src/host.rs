//! What all tasks of the daemon share, and how it takes the server's word: new leases, dropped leases,
//! reports that have ended.

use crate::{
    ahead::Ahead,
    api::Api,
    cache::Cache,
    config::Timing,
    contact::Contact,
    control::Units,
    devices::Devices,
    error::ClientError,
    failure::LastFailure,
    folder::Folder,
    limits::{Means, Owner, Volume},
    measured::Measurements,
    outbox::Outbox,
    rest::Rest,
    runner::UnitRunner,
    seats::{Seat, Seats},
    table::{Dropped, Table, Taken},
    transfer::{Fetcher, Lines},
    unit,
};
use sojourn_http::{Backoff, CallError, Recovery};
use sojourn_protocol::{
    api::{ReleaseRequest, ReportAnswer},
    ids::{HostId, LeaseId},
    inventory::Demand,
    reason::ReleaseReason,
    report::{Failure, FailureKind, Outcome, ReportEnd, ReportState},
    unit::Lease,
};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    sync::{mpsc, watch},
    task::{AbortHandle, JoinSet},
};

/// Units in a row that a slot may fail before it is taken out of use.
const MOST_FAILURES: u32 = 3;
/// For how long.
const OUT_OF_USE: Duration = Duration::from_secs(1800);

/// How the end of a failure that was reported begins.
const TRAINER_ERROR: &str = "trainer error: ";

/// How soon the daemon is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Leaving {
    /// Nobody said so.
    No,
    /// Hops are to end after the batch that they are at.
    Early,
    /// Whatever runs is ended.
    Now,
}

/// The daemon's parts.
#[derive(Debug)]
pub(crate) struct Host<R> {
    /// What the server calls this machine.
    pub(crate) id: HostId,
    /// The server's address, for people.
    pub(crate) server: String,
    pub(crate) timing: Timing,
    pub(crate) folder: Folder,
    pub(crate) api: Api,
    pub(crate) contact: Arc<Contact>,
    pub(crate) table: Table,
    /// What the leases in the table are, for the owner.
    pub(crate) units: Units,
    pub(crate) cache: Arc<Cache>,
    pub(crate) fetcher: Fetcher,
    /// Whether the line is free for more than units wait for.
    pub(crate) ahead: Ahead,
    /// How fast bytes may come and go.
    pub(crate) lines: Arc<Lines>,
    /// How many bytes have come and gone, and may yet.
    pub(crate) volume: Arc<Volume>,
    pub(crate) outbox: Outbox,
    /// What the slots compute on.
    pub(crate) devices: Devices<R>,
    /// What units took there.
    pub(crate) measurements: Measurements,
    pub(crate) rest: Rest,
    pub(crate) last_failure: LastFailure,
    /// What the machine's owner wants.
    pub(crate) owner: Owner,
    /// By what the trainers are kept to that.
    pub(crate) means: Means,
    /// Whether the daemon is about to end.
    pub(crate) leaving: watch::Sender<Leaving>,
    /// Hears what ends the daemon.
    pub(crate) fatal: mpsc::UnboundedSender<ClientError>,
    pub(crate) tasks: Mutex<JoinSet<()>>,
}

impl<R: UnitRunner> Host<R> {
    /// Takes new leases and starts work on them. False where none was new.
    pub(crate) fn take(self: &Arc<Self>, leases: Vec<Lease>) -> bool {
        let mut news = false;
        let mut again = Vec::new();
        for lease in leases {
            let id = lease.id;
            match self.table.take(id, &lease.device, lease.heartbeat_every) {
                Taken::New => {
                    news = true;
                    tracing::debug!(lease = %id, job = %lease.unit.job(), trial = %lease.unit.trial(), "lease taken");
                    let task = self.spawn(unit::work_off(Arc::clone(self), lease));
                    self.table.worked_by(id, task);
                }
                Taken::Held => {}
                Taken::Over => again.push(id),
            }
        }
        if !again.is_empty() {
            // The server still counts on them; without a word it would until they run out.
            let host = Arc::clone(self);
            self.spawn(async move {
                let request = ReleaseRequest { leases: again, reason: ReleaseReason::Closed };
                if let Err(failure) = host.api.release(&request).await {
                    host.note(&failure);
                }
            });
        }
        news
    }

    /// Does what an answer says. `asked`: the acknowledged reports that the request named. False where
    /// there was nothing to do.
    pub(crate) fn obey(
        &self,
        drop: &[LeaseId],
        reports: &[ReportAnswer],
        asked: &[LeaseId],
    ) -> bool {
        let mut news = false;
        for report in reports {
            news |= self.report_is(report);
        }
        for lease in drop {
            match self.table.dropped(*lease, asked.contains(lease)) {
                Dropped::Nothing => {}
                Dropped::Unit => {
                    news = true;
                    // The part of it that was kept, perhaps.
                    self.outbox.remove(*lease);
                    tracing::debug!(%lease, "dropped a unit, as the server says");
                }
                Dropped::Result => {
                    news = true;
                    self.outbox.remove(*lease);
                    tracing::debug!(%lease, "dropped a result, as the server says");
                }
            }
        }
        news
    }

    /// Has hops end early, as the server says. False where that was known.
    pub(crate) fn stop_early(&self, leases: &[LeaseId]) -> bool {
        let mut news = false;
        for lease in leases {
            if self.table.stop_early(*lease) {
                news = true;
                tracing::debug!(%lease, "the server wants the unit to end early");
            }
        }
        news
    }

    /// What became of a report. False where that was known.
    pub(crate) fn report_is(&self, answer: &ReportAnswer) -> bool {
        let ReportState::Ended(end) = &answer.state else { return false };
        let lease = answer.lease;
        if !self.table.ended(lease) {
            return false;
        }
        self.outbox.remove(lease);
        match end {
            ReportEnd::Assimilated { version } => {
                tracing::debug!(%lease, %version, "a result was used");
            }
            ReportEnd::Superseded => tracing::debug!(%lease, "a result came too late"),
            // Its own word, that the unit couldn't be done: it has said so.
            ReportEnd::Rejected { reason } if reason.starts_with(TRAINER_ERROR) => {
                tracing::debug!(%lease, reason, "a failure was counted");
            }
            ReportEnd::Rejected { reason } => {
                tracing::warn!(%lease, reason, "the server refused a result");
            }
        }
        true
    }

    /// Gives a lease back and forgets it, however long the server is away. False where it was over.
    pub(crate) async fn give_back(&self, lease: LeaseId, reason: impl Into<ReleaseReason>) -> bool {
        if !self.table.returning(lease) {
            return false;
        }
        let request = ReleaseRequest { leases: vec![lease], reason: reason.into() };
        let mut backoff = self.backoff();
        let live = loop {
            let failure = match self.api.release(&request).await {
                Ok(answer) => break answer.released.contains(&lease),
                Err(failure) => failure,
            };
            match failure.recovery() {
                Recovery::Retry => self.contact.pause(&mut backoff, failure.retry_after()).await,
                Recovery::End => {
                    self.note(&failure);
                    return false;
                }
                Recovery::Gone | Recovery::Amend(_) => break false,
            }
        };
        self.table.over(lease);
        live
    }

    /// Ends the daemon where a failure is of the kind that no patience mends.
    pub(crate) fn note(&self, failure: &CallError) {
        if let Some(error) = self.fatal_error(failure) {
            self.end(error);
        }
    }

    /// Ends the daemon.
    pub(crate) fn end(&self, error: ClientError) {
        // Nobody listens only while the daemon is ending anyway.
        let _ = self.fatal.send(error);
    }

    /// Says how soon the daemon is to end: never later than was said.
    pub(crate) fn leave(&self, leaving: Leaving) {
        self.leaving.send_if_modified(|now| {
            let sooner = *now < leaving;
            *now = leaving.max(*now);
            sooner
        });
    }

    /// Ends when the daemon is to end so soon.
    pub(crate) async fn leaving(&self, so: Leaving) {
        let mut leaving = self.leaving.subscribe();
        // The sender lives as long as `self`.
        let _ = leaving.wait_for(|leaving| *leaving >= so).await;
    }

    /// Ends when a hop is to end after the batch that it is at: the daemon ends, the owner needs the machine for
    /// long, or the server asks for what is trained.
    pub(crate) async fn ends_early(&self, lease: LeaseId) {
        tokio::select! {
            () = self.leaving(Leaving::Early) => {}
            () = self.owner.suspended() => {}
            () = self.table.stopped_early(lease) => {}
        }
    }

    /// Takes a slot out of use, for a while, whose trainer dies of unit after unit or stands still.
    pub(crate) fn judge(self: &Arc<Self>, device: &str, mut seat: Seat<'_, R>, outcome: &Outcome) {
        let badly = matches!(
            outcome,
            Outcome::Failed(Failure { kind: FailureKind::Died | FailureKind::Stalled, .. })
        );
        let failures = seat.ended(badly);
        if failures < MOST_FAILURES {
            return;
        }
        let Some(retired) = Seats::retire(seat) else { return };
        let minutes = OUT_OF_USE.as_secs() / 60;
        tracing::error!(
            device,
            failures,
            minutes,
            "a slot fails again and again; it is taken out of use"
        );
        let (host, device) = (Arc::clone(self), device.to_owned());
        self.spawn(async move {
            tokio::time::sleep(OUT_OF_USE).await;
            if let Some(device) = host.devices.get(&device) {
                device.seats.restore(retired);
                tracing::info!(device = device.name, "a slot is in use again");
                host.table.look_again();
            }
        });
    }

    /// What the slots could do with.
    pub(crate) fn demand(&self) -> Vec<Demand> {
        self.table.demand(&self.devices.slots())
    }

    pub(crate) fn backoff(&self) -> Backoff {
        Backoff::new(self.timing.longest_pause)
    }

    /// Starts a task that ends with the daemon.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task)
    }

    /// Stops every task, without waiting.
    pub(crate) fn abort_tasks(&self) {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).abort_all();
    }

    /// Stops every task and waits until each has let go of what it held.
    pub(crate) async fn stop_tasks(&self) {
        let mut tasks =
            std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        tasks.shutdown().await;
    }

    fn fatal_error(&self, failure: &CallError) -> Option<ClientError> {
        let reason = failure.to_string();
        match failure {
            CallError::Protocol { .. } => Some(ClientError::Protocol { reason }),
            // A server that was there is waited for, whatever its certificate has become.
            CallError::Untrusted { fault, .. }
                if fault.is_the_callers() && !self.contact.was_made() =>
            {
                Some(self.api.untrusted(fault))
            }
            CallError::Refused { error, .. } if failure.recovery() == Recovery::End => {
                Some(match error.kind {
                    sojourn_protocol::error::ErrorKind::UnsupportedProtocol => {
                        ClientError::Protocol { reason }
                    }
                    _ => ClientError::Revoked { reason, identity: self.folder.identity() },
                })
            }
            _ => None,
        }
    }
}
