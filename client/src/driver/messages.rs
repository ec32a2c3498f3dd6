//! Handles each message before the agent hears of it.

use super::Driver;
use crate::{
    executors::{calls::retry_of, deliver::UploadAttempt, fetch},
    message::{EndedUnit, Message},
    storage::{cache::Pin, outbox::Finished},
    trainers::runner::UnitRunner,
    transfer::FetchError,
};
use sojourn_client_core::{AskId, Event, ResultFacts};
use sojourn_http::{CallError, trace::UNITS};
use sojourn_protocol::{
    api::{HeartbeatAnswer, WorkAnswer},
    digest::{BlobRef, Digest},
    ids::LeaseId,
    inventory::Inventory,
    report::Outcome,
    trace::TraceContext,
};
use std::sync::Arc;
use tokio::sync::Mutex;

impl<R: UnitRunner> Driver<R> {
    pub(super) fn take(&mut self, message: Message) -> bool {
        match message {
            Message::Event(event) => self.take_event(event),
            Message::Work { ask, inventory, trace, result } => {
                self.work_answered(ask, inventory, trace, result)
            }
            Message::Heartbeat(result) => self.heartbeat_answered(result),
            Message::Fetched { blob, serial, result } => self.fetched(blob, serial, result),
            Message::UnitEnded(ended) => {
                let EndedUnit { finished, continues_from, base } = *ended;
                let lease = finished.report.lease;
                let has_checkpoint = finished.checkpoint.is_some();
                if self.running.remove(&lease).is_none() {
                    // It was stopped at its very end: the stop deletes the result.
                    return false;
                }
                self.hold_result(finished, base);
                let facts = ResultFacts { has_checkpoint, continues_from };
                self.tell(Event::UnitEnded(lease, facts))
            }
            Message::CapsLifted => {
                self.give_cpu_shares_again();
                false
            }
            Message::Status(to) => {
                // The caller may have stopped waiting.
                let _ = to.send(self.status());
                false
            }
        }
    }

    fn take_event(&mut self, event: Event) -> bool {
        match &event {
            Event::UnitFailed(lease, error, _) => {
                self.running.remove(lease);
                let (lease, span) = (*lease, self.traces.span(*lease));
                let reason = format!("{error:?}");
                tracing::debug!(target: UNITS, parent: &span, lease = lease.0, reason, "a unit failed");
            }
            Event::Report(lease, Ok(answer)) => {
                let span = self.traces.span(*lease);
                tracing::debug!(target: UNITS, parent: &span, lease = lease.0, "result acknowledged");
                self.log_report_ends(std::slice::from_ref(answer));
            }
            Event::ShardNeeded(lease, blob) => {
                let (lease, blob) = (*lease, *blob);
                let has_ended = self.tell(event);
                self.wait_for(lease, blob);
                return has_ended;
            }
            _ => {}
        }
        self.tell(event)
    }

    /// Pauses the watchdog of a unit that waits for a shard.
    fn wait_for(&self, lease: LeaseId, blob: Digest) {
        let waits = self.agent.lease(lease).is_some_and(|lease| lease.is_blocked());
        if let Some(unit) = self.running.get(&lease).filter(|_| waits) {
            unit.watchdog.waits(true);
            let (span, blob) = (self.traces.span(lease), blob.short());
            tracing::debug!(target: UNITS, parent: &span, lease = lease.0, blob, "the unit waits for a shard");
        }
    }

    pub(super) fn hold_result(&mut self, finished: Finished, base: Option<BlobRef>) {
        let lease = finished.report.lease;
        if matches!(finished.report.outcome, Outcome::Failed(_)) {
            self.failed.insert(lease);
        }
        let sent = self.view.add_upload(lease);
        let attempt = UploadAttempt::new(finished, base, sent);
        self.results.insert(lease, Arc::new(Mutex::new(attempt)));
    }

    fn work_answered(
        &mut self,
        ask: AskId,
        inventory: Option<Inventory>,
        trace: Option<TraceContext>,
        result: Result<WorkAnswer, CallError>,
    ) -> bool {
        let answer = match result {
            Ok(answer) => answer,
            Err(failure) => {
                self.context.note(&failure);
                if self.agent.is_current(ask) {
                    self.context.server.contact.lost(&failure);
                }
                return self.tell(Event::Work(ask, Err(retry_of(Some(&failure)))));
            }
        };
        self.context.server.contact.made();
        if inventory.is_some() {
            self.sent_inventory = inventory;
        }
        self.log_report_ends(&answer.reports);
        self.note_waiting(answer.waiting.as_deref());
        let budget = self.context.storage.usage.budget();
        let _ = self.tell(Event::Owner(budget));
        for lease in answer.leases.iter().filter(|lease| self.agent.lease(lease.id).is_none()) {
            self.units.insert(lease);
            self.traces.granted(lease, trace);
            let (span, id) = (self.traces.span(lease.id), lease.id);
            let (job, trial) = (lease.unit.job(), lease.unit.trial());
            tracing::debug!(target: UNITS, parent: &span, lease = id.0, job = job.0, trial = trial.0, "lease taken");
        }
        self.tell(Event::Work(ask, Ok(answer)))
    }

    fn heartbeat_answered(&mut self, result: Result<HeartbeatAnswer, CallError>) -> bool {
        let result = match result {
            Ok(answer) => {
                self.context.server.contact.made();
                self.log_report_ends(&answer.reports);
                Ok(answer)
            }
            Err(failure) => {
                self.context.note(&failure);
                self.context.server.contact.lost(&failure);
                Err(retry_of(Some(&failure)))
            }
        };
        self.tell(Event::Heartbeat(result))
    }

    fn fetched(&mut self, blob: Digest, serial: u64, result: Result<Pin, FetchError>) -> bool {
        if self.fetches.get(&blob).is_none_or(|fetching| fetching.serial != serial) {
            // The fetch was cancelled.
            return false;
        }
        self.fetches.remove(&blob);
        match result {
            Ok(pin) => {
                self.pins.insert(blob, pin);
                for unit in self.running.values() {
                    self.context.leave_room(unit.upload_bytes);
                }
                self.tell(Event::BlobReady(blob))
            }
            Err(error) => match fetch::unit_error(&self.context, error) {
                Some(error) => self.tell(Event::BlobFailed(blob, error)),
                None => false,
            },
        }
    }
}
