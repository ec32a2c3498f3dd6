//! The journal's thread: appends what has gathered while the last append ran, then lets out what
//! waited for it.

use super::{
    Errand, ShellConfig, WantedUploads, driver::Input, error::ShellError, recover::read_snapshot,
};
use crate::journal::{Journal, JournalError, Snapshot};
use sojourn_core::{Answer, JournalPosition, Record};
use sojourn_protocol::{
    error::{ApiError, ErrorKind},
    ids::JobId,
};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
    mpsc::{Receiver, Sender},
};
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
    /// Says up to where all is durable.
    pub(super) durable: Arc<AtomicU64>,
    pub(super) config: ShellConfig,
    pub(super) errands: UnboundedSender<Errand>,
    /// Told once when the journal fails; the number says which writer it was.
    pub(super) driver: Sender<Input>,
    pub(super) number: u64,
    /// The last snapshot that this writer has read back.
    pub(super) verified: Option<JournalPosition>,
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
            self.durable.store(self.journal.tail().0, Ordering::Release);
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

    /// Keeps a snapshot that can be read, and drops events that the one before it covers: should this
    /// one be damaged later, that one and all after it are still there.
    fn snapshot(&mut self, snapshot: &Snapshot) -> Result<(), ShellError> {
        // First of all: an unreadable one must not take the place of one that is.
        read_snapshot(snapshot, self.config.core)?;
        self.journal.save_snapshot(snapshot)?;
        if self.journal.load_snapshot()?.as_ref() != Some(snapshot) {
            let reason = "the snapshot isn't what was written";
            return Err(JournalError::Storage(reason.into()).into());
        }
        tracing::info!(position = snapshot.position.0, "snapshot kept");
        let verified = self.verified.replace(snapshot.position);
        let Some(before) = self.journal.load_snapshot_below(snapshot.position)? else {
            return Ok(());
        };
        if verified != Some(before.position) {
            read_snapshot(&before, self.config.core)?;
        }
        let kept = self.journal.tail().0.saturating_sub(self.config.keep_events);
        let below = kept.min(before.position.0) + 1;
        self.journal.trim(JournalPosition(below))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::MemoryJournal;
    use sojourn_core::Core;

    #[test]
    fn a_snapshot_that_cannot_be_read_is_not_kept() {
        let config = ShellConfig::default();
        let (errands, _) = tokio::sync::mpsc::unbounded_channel();
        let (driver, _) = std::sync::mpsc::channel();
        let journal = Box::new(MemoryJournal::default());
        let durable = Arc::default();
        let mut writer =
            Writer { journal, durable, config, errands, driver, number: 1, verified: None };
        let good =
            Snapshot { position: JournalPosition(0), bytes: Core::new(config.core).snapshot() };
        writer.snapshot(&good).unwrap();
        for bad in [
            Snapshot { position: JournalPosition(0), bytes: b"{}".to_vec() },
            Snapshot { position: JournalPosition(0), bytes: Vec::new() },
            Snapshot { position: JournalPosition(1), ..good.clone() },
        ] {
            writer.snapshot(&bad).unwrap_err();
            assert_eq!(writer.journal.load_snapshot().unwrap().as_ref(), Some(&good));
        }
    }
}
