//! A note beside the journal of how far the journal has come. It shows that a journal has gone back: an emptied file, a
//! write-ahead log that was deleted, an old copy in its place.
//!
//! The note is written after each append. It is synced when the journal is opened, with each snapshot and every
//! [`SYNC_INTERVAL`] appends. After a kill it names the last append; after a power cut it may lag behind the journal. It
//! is never ahead of the journal.
//!
//! A note that has been deleted while it is open shows that the folder was.

use super::{JournalError, chain::next};
use sojourn_core::JournalPosition;
use sojourn_files::if_exists;
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Seek as _, Write as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

/// Appends between two syncs of the note: one more fsync among so many costs nothing.
const SYNC_INTERVAL: u32 = 64;

/// The reaction to a journal that has gone back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::journal) enum OnLoss {
    /// The journal is refused.
    Refuse,
    /// The loss is logged, because the durability that was chosen allows it. An empty journal is refused all the same.
    Report,
}

/// The note of one journal.
#[derive(Debug)]
pub(in crate::journal) struct HighWaterMark {
    path: PathBuf,
    on_loss: OnLoss,
    /// Open since the first note.
    file: Option<File>,
    /// Appends since the last sync.
    unsynced: u32,
}

impl HighWaterMark {
    /// The note that lies beside the journal at `path`.
    pub(in crate::journal) fn beside(path: &Path) -> Self {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".reached");
        Self::at(path.with_file_name(name), OnLoss::Refuse)
    }

    /// The note in a file.
    pub(in crate::journal) const fn at(path: PathBuf, on_loss: OnLoss) -> Self {
        Self { path, on_loss, file: None, unsynced: 0 }
    }

    /// The position that the journal had reached at least; `None` where there was no journal.
    fn position(&self) -> Result<Option<JournalPosition>, JournalError> {
        let text = if_exists(fs::read_to_string(&self.path));
        let text = text.map_err(|error| JournalError::Unreadable(Box::new(error)))?;
        let Some(text) = text else { return Ok(None) };
        let number = text.trim().parse().map_err(|_| {
            let file = self.path.display();
            let what = format!(
                "`{file}` should hold a number; where the journal is whole, remove it to go on"
            );
            JournalError::Unreadable(what.into())
        })?;
        Ok(Some(JournalPosition(number)))
    }

    /// Refuses that there is no journal where there was one.
    pub(in crate::journal) fn check_absent(&self) -> Result<(), JournalError> {
        let Some(reached) = self.position()? else { return Ok(()) };
        let reason = format!(
            "it is missing or empty, and had reached {}; put it back: an SQLite file together with its `-wal` file",
            reached.0
        );
        Err(JournalError::Corrupt { position: JournalPosition(1), reason })
    }

    /// Refuses a journal that ends before the position that it had reached.
    pub(in crate::journal) fn check(&self, tail: JournalPosition) -> Result<(), JournalError> {
        let Some(reached) = self.position()?.filter(|reached| tail < *reached) else {
            return Ok(());
        };
        if self.on_loss == OnLoss::Report && tail.0 > 0 {
            let (tail, reached) = (tail.0, reached.0);
            tracing::error!(
                tail,
                reached,
                "the journal has LOST acknowledged events; going on without them"
            );
            return Ok(());
        }
        let reason = format!(
            "it ends at {}, and had reached {}; put the newer files back, or go on all the same by removing `{}`",
            tail.0,
            reached.0,
            self.path.display()
        );
        Err(JournalError::Corrupt { position: next(tail), reason })
    }

    /// A group was appended, up to `position`.
    pub(in crate::journal) fn appended(
        &mut self,
        position: JournalPosition,
    ) -> Result<(), JournalError> {
        self.unsynced += 1;
        if self.unsynced < SYNC_INTERVAL { self.write(position) } else { self.note(position) }
    }

    /// Notes durably that the journal, which is durable up to `position`, has come so far.
    pub(in crate::journal) fn note(
        &mut self,
        position: JournalPosition,
    ) -> Result<(), JournalError> {
        self.write(position)?;
        if let Some(file) = &self.file {
            file.sync_data().map_err(failed)?;
        }
        self.unsynced = 0;
        Ok(())
    }

    fn write(&mut self, position: JournalPosition) -> Result<(), JournalError> {
        // Always the same length, so that nothing of an older number is left behind it.
        let text = format!("{:020}\n", position.0);
        let file = match &mut self.file {
            Some(file) => file,
            file => {
                let opened =
                    OpenOptions::new().write(true).create(true).truncate(false).open(&self.path);
                file.insert(opened.map_err(failed)?)
            }
        };
        file.rewind().and_then(|()| file.write_all(text.as_bytes())).map_err(failed)?;
        if file.metadata().map_err(failed)?.nlink() > 0 {
            return Ok(());
        }
        if self.path.parent().is_some_and(Path::exists) {
            // Somebody has removed the note alone: it begins anew.
            self.file = None;
            return Ok(());
        }
        // With the folder the journal and the blobs were deleted as well, and are written on unseen.
        Err(JournalError::Gone(self.path.clone()))
    }
}

fn failed(error: io::Error) -> JournalError {
    JournalError::Storage(Box::new(error))
}
