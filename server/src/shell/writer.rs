//! The journal's thread: appends all records that came while the last append ran, then sends the replies that
//! waited for them.

use super::{
    config::ShellConfig,
    counts::ShellCounts,
    error::ShellError,
    group_commit::GroupCommit,
    message::{Input, Item},
    side_effects::SideEffect,
    snapshot::{not_kept, read_snapshot},
};
use crate::journal::{Journal, JournalError, Snapshot};
use sojourn_core::JournalPosition;
use sojourn_protocol::error::{ApiError, ErrorKind};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, Sender},
    },
    time::Instant,
};
use tokio::sync::mpsc::UnboundedSender;

/// Records are dropped in batches of this size, so that an append never waits long.
const TRIM_BATCH: u64 = 2_000;

pub(super) struct Writer {
    pub(super) journal: Box<dyn Journal>,
    /// All events up to this position are durable.
    pub(super) durable: Arc<AtomicU64>,
    pub(super) config: ShellConfig,
    pub(super) side_effects: UnboundedSender<SideEffect>,
    /// Gets one message when the journal fails, with this writer's number.
    pub(super) driver: Sender<Input>,
    pub(super) number: u64,
    pub(super) counts: ShellCounts,
    /// The last snapshot that was read back and gave a state.
    pub(super) verified: JournalPosition,
    /// Records below are to be dropped.
    pub(super) trim_below: JournalPosition,
    pub(super) group_commit: GroupCommit,
}

/// How many callers are answered by these.
fn replies(items: &[Item]) -> usize {
    items.iter().filter(|item| matches!(item, Item::Reply { .. })).count()
}

impl Writer {
    /// Runs until the driver drops its sender. After a failed append nothing is sent any more: callers that wait find
    /// their reply dropped.
    pub(super) fn run(mut self, items: &Receiver<Vec<Item>>) {
        while let Ok(mut group) = items.recv() {
            group.extend(items.try_iter().flatten());
            self.gather(&mut group, items);
            if let Err(error) = self.write(group) {
                tracing::error!(error = &error as &dyn std::error::Error, "the journal failed");
                self.counts.journal_failed();
                let for_good = error.is_final();
                let _ = self.driver.send(Input::Broken { number: self.number, for_good });
                while items.recv().is_ok() {}
                return;
            }
        }
    }

    /// Waits a little for more records, where more callers are about to come.
    fn gather(&self, group: &mut Vec<Item>, items: &Receiver<Vec<Item>>) {
        if !group.iter().any(|item| matches!(item, Item::Persist(_))) {
            return;
        }
        let mut here = replies(group);
        let Some(wait) = self.group_commit.wait(here) else { return };
        let end = Instant::now() + wait.longest;
        while here < wait.callers {
            let left = end.saturating_duration_since(Instant::now());
            let Ok(more) = items.recv_timeout(left) else { return };
            here += replies(&more);
            group.extend(more);
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
            let begun = Instant::now();
            self.journal.append(&records)?;
            let took = begun.elapsed();
            self.group_commit.appended(replies(&waiting), took);
            self.durable.store(self.journal.tail().0, Ordering::Release);
            self.counts.appended(self.journal.tail(), took);
        }
        for item in waiting {
            self.release(item);
        }
        self.trim_a_batch();
        Ok(())
    }

    fn release(&mut self, item: Item) {
        match item {
            // Sorted out above.
            Item::Persist(_) => {}
            // The caller may have gone.
            Item::Reply { reply, answer, .. } => drop(reply.send(answer)),
            Item::SideEffect(side_effect) => drop(self.side_effects.send(side_effect)),
            Item::Uploads { wanted, reply } => drop(reply.send(wanted)),
            Item::Events { job, after, limit, reply } => {
                let events = self.journal.events(job, after, limit).map_err(|error| {
                    tracing::error!(error = &error as &dyn std::error::Error, "can't read events");
                    ApiError::new(ErrorKind::Internal, "the journal can't be read")
                });
                drop(reply.send(events));
            }
            Item::Snapshot(snapshot) => {
                if let Err(error) = self.snapshot(&snapshot) {
                    not_kept(&error);
                }
            }
        }
    }

    /// Keeps a snapshot, and has events dropped that the one before it covers: should this one be
    /// damaged later, that one and all after it are still there.
    fn snapshot(&mut self, snapshot: &Snapshot) -> Result<(), ShellError> {
        self.journal.save_snapshot(snapshot)?;
        if self.journal.load_snapshot()?.as_ref() != Some(snapshot) {
            let reason = "the snapshot isn't what was written";
            return Err(JournalError::Storage(reason.into()).into());
        }
        tracing::info!(position = snapshot.position.0, "snapshot kept");
        let verified = std::mem::replace(&mut self.verified, snapshot.position);
        let Some(before) = self.journal.load_snapshot_below(snapshot.position)? else {
            return Ok(());
        };
        if verified != before.position {
            read_snapshot(&before, self.config.core)?;
        }
        let kept = self.journal.tail().0.saturating_sub(self.config.keep_events);
        self.trim_below = JournalPosition(kept.min(before.position.0) + 1);
        Ok(())
    }

    /// Drops a batch of the oldest records that are to be dropped.
    fn trim_a_batch(&mut self) {
        let first = self.journal.anchor().0 + 1;
        if self.trim_below.0 <= first {
            return;
        }
        let below = JournalPosition(self.trim_below.0.min(first + TRIM_BATCH));
        if let Err(error) = self.journal.trim(below) {
            // The next snapshot asks for it again.
            self.trim_below = JournalPosition(0);
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "old events could not be dropped");
        }
    }
}
