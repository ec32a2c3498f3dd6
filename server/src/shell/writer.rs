//! The journal's thread: appends what has gathered while the last append ran, then lets out what
//! waited for it.

use super::{Errand, ShellConfig, WantedUploads, driver::Input};
use crate::journal::{Journal, JournalError, Snapshot};
use sojourn_core::{Answer, Core, JournalPosition, Record};
use sojourn_protocol::{
    error::{ApiError, ErrorKind},
    ids::JobId,
};
use std::sync::mpsc::{Receiver, Sender};
use tokio::sync::{mpsc::UnboundedSender, oneshot};

/// Where an answer goes.
pub(super) type ReplySender = oneshot::Sender<Result<Answer, ApiError>>;
/// Where events go.
pub(super) type EventsSender = oneshot::Sender<Result<Vec<Record>, ApiError>>;
/// Where it goes which uploads are wanted.
pub(super) type UploadsSender = oneshot::Sender<WantedUploads>;

/// One thing for the writer, in the order of the core's effects.
pub(super) enum Item {
    Persist(Record),
    Reply { after: JournalPosition, reply: ReplySender, answer: Result<Answer, ApiError> },
    Errand(Errand),
    Events { job: JobId, after: JournalPosition, limit: usize, reply: EventsSender },
    Uploads { wanted: WantedUploads, reply: UploadsSender },
    Snapshot(Snapshot),
}

pub(super) struct Writer {
    pub(super) journal: Box<dyn Journal>,
    pub(super) config: ShellConfig,
    pub(super) errands: UnboundedSender<Errand>,
    /// Told once when the journal fails; the number says which writer it was.
    pub(super) driver: Sender<Input>,
    pub(super) number: u64,
}

impl Writer {
    /// Until the driver drops its end. After a failed append nothing more leaves: whoever waits
    /// finds its reply dropped.
    pub(super) fn run(mut self, items: &Receiver<Vec<Item>>) {
        while let Ok(mut group) = items.recv() {
            while let Ok(more) = items.try_recv() {
                group.extend(more);
            }
            if let Err(error) = self.write(group) {
                tracing::error!(error = &error as &dyn std::error::Error, "the journal failed");
                let _ = self.driver.send(Input::Broken { number: self.number });
                while items.recv().is_ok() {}
                return;
            }
        }
    }

    fn write(&mut self, group: Vec<Item>) -> Result<(), JournalError> {
        let durable = self.journal.tail();
        let mut records = Vec::new();
        let mut waiting = Vec::new();
        for item in group {
            match item {
                Item::Persist(record) => records.push(record),
                Item::Reply { after, reply, answer } if after <= durable => {
                    let _ = reply.send(answer);
                }
                other => waiting.push(other),
            }
        }
        if !records.is_empty() {
            self.journal.append(&records)?;
        }
        for item in waiting {
            self.release(item);
        }
        Ok(())
    }

    fn release(&mut self, item: Item) {
        match item {
            // Sorted out above.
            Item::Persist(_) => {}
            // Whoever asked may have gone.
            Item::Reply { reply, answer, .. } => drop(reply.send(answer)),
            Item::Errand(errand) => drop(self.errands.send(errand)),
            Item::Uploads { wanted, reply } => drop(reply.send(wanted)),
            Item::Events { job, after, limit, reply } => {
                let events = self.journal.events(job, after, limit).map_err(|error| {
                    tracing::error!(error = &error as &dyn std::error::Error, "can't read events");
                    ApiError::new(ErrorKind::Internal, "the journal can't be read")
                });
                drop(reply.send(events));
            }
            Item::Snapshot(snapshot) => {
                // Without it the journal stays long; nothing is lost.
                if let Err(error) = self.snapshot(&snapshot) {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(error, "a snapshot could not be kept");
                }
            }
        }
    }

    /// Keeps a snapshot, reads it back, and only then drops events that it covers.
    fn snapshot(&mut self, snapshot: &Snapshot) -> Result<(), JournalError> {
        self.journal.save_snapshot(snapshot)?;
        let stored = self.journal.load_snapshot()?;
        let whole = stored.as_ref() == Some(snapshot)
            && Core::from_snapshot(&snapshot.bytes, self.config.core)
                .is_ok_and(|core| core.position() == snapshot.position);
        if !whole {
            let reason = "the snapshot isn't what was written";
            return Err(JournalError::Storage(reason.into()));
        }
        let kept = self.journal.tail().0.saturating_sub(self.config.keep_events);
        let below = kept.min(snapshot.position.0) + 1;
        self.journal.trim(JournalPosition(below))?;
        tracing::info!(position = snapshot.position.0, "snapshot kept");
        Ok(())
    }
}
