//! One file of the log, and the group commit of its records: one sync covers all records that were appended before it.

use crate::disk::Disk;
use parking_lot::{Condvar, Mutex};
use std::{fs::File, io, path::PathBuf};

/// A segment: a file of the log that has records, or gets more.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) number: u64,
    pub(super) path: PathBuf,
    /// For syncs, beside the handle that appends.
    file: File,
    progress: Mutex<Progress>,
    changed: Condvar,
}

/// The place of a record in its segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ticket(u64);

#[derive(Debug, Default)]
struct Progress {
    /// Records that are in the file.
    appended: u64,
    /// Records that survive a power cut.
    synced: u64,
    is_syncing: bool,
    /// Why a sync failed. After that the system may report success without having written, so the segment is given up.
    failure: Option<(io::ErrorKind, String)>,
    /// Puts that haven't returned.
    pending: usize,
}

impl Segment {
    pub(super) fn new(number: u64, path: PathBuf, file: File) -> Self {
        let (progress, changed) = (Mutex::default(), Condvar::new());
        Self { number, path, file, progress, changed }
    }

    /// Counts the record of a put that was just appended.
    pub(super) fn appended(&self) -> Ticket {
        let mut progress = self.progress.lock();
        progress.appended += 1;
        progress.pending += 1;
        Ticket(progress.appended)
    }

    /// Counts a put as ended: its file is in memory, or it was refused.
    pub(super) fn ended(&self) {
        self.progress.lock().pending -= 1;
    }

    /// Whether all puts have ended.
    pub(super) fn is_quiet(&self) -> bool {
        self.progress.lock().pending == 0
    }

    /// Returns when a record survives a power cut. The first caller syncs; others that come meanwhile wait, and one of
    /// them syncs for all of these.
    pub(super) fn commit(&self, ticket: Ticket, disk: &dyn Disk) -> io::Result<()> {
        let mut progress = self.progress.lock();
        while progress.synced < ticket.0 {
            if let Some((kind, message)) = &progress.failure {
                return Err(io::Error::new(*kind, message.clone()));
            }
            if progress.is_syncing {
                self.changed.wait(&mut progress);
                continue;
            }
            let covered = progress.appended;
            progress.is_syncing = true;
            drop(progress);
            let synced = disk.sync(&self.file);
            progress = self.progress.lock();
            progress.is_syncing = false;
            match synced {
                Ok(()) => progress.synced = covered,
                Err(error) => progress.failure = Some((error.kind(), error.to_string())),
            }
            self.changed.notify_all();
        }
        Ok(())
    }
}
