//! A note beside the journal of how far it has come, so that a journal that has gone back is found out:
//! an emptied file, a write-ahead log that was deleted, an old copy put in its place.
//!
//! It is written after each append, and synced when the journal is opened, with each snapshot and now and
//! then. So after a kill it names the last append; after a power cut it may lag behind the journal; it is
//! never ahead of it.

use super::JournalError;
use sojourn_core::JournalPosition;
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Seek as _, Write as _},
    path::{Path, PathBuf},
};

/// Groups of events between two syncs of the note: one more fsync among as many is nothing.
const EVERY: u32 = 64;

/// The note of one journal.
#[derive(Debug)]
pub(in crate::journal) struct Reached {
    path: PathBuf,
    /// Open since the first note.
    file: Option<File>,
    /// Groups since the note was synced.
    groups: u32,
}

impl Reached {
    /// The note that lies beside the journal at `path`.
    pub(in crate::journal) fn beside(path: &Path) -> Self {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".reached");
        Self::at(path.with_file_name(name))
    }

    /// The note in a file.
    pub(in crate::journal) const fn at(path: PathBuf) -> Self {
        Self { path, file: None, groups: 0 }
    }

    /// How far the journal had come at the least; none where there was no journal.
    pub(in crate::journal) fn position(&self) -> Result<Option<JournalPosition>, JournalError> {
        let text = match fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(JournalError::Unreadable(Box::new(error))),
        };
        let number = text.trim().parse().map_err(|_| {
            let file = self.path.display();
            let what = format!(
                "`{file}` should hold a number; where the journal is whole, remove it to go on"
            );
            JournalError::Unreadable(what.into())
        })?;
        Ok(Some(JournalPosition(number)))
    }

    /// Refuses a journal that ends before the place that it had reached.
    pub(in crate::journal) fn check(&self, end: JournalPosition) -> Result<(), JournalError> {
        match self.position()? {
            Some(reached) if end < reached => {
                let position = JournalPosition(end.0 + 1);
                let reason = format!(
                    "it ends at {}, and had reached {}; put the newer files back, or go on all the same by removing `{}`",
                    end.0,
                    reached.0,
                    self.path.display()
                );
                Err(JournalError::Corrupt { position, reason })
            }
            _ => Ok(()),
        }
    }

    /// A group was appended, up to there.
    pub(in crate::journal) fn appended(
        &mut self,
        position: JournalPosition,
    ) -> Result<(), JournalError> {
        self.groups += 1;
        if self.groups < EVERY { self.write(position) } else { self.note(position) }
    }

    /// Notes, so that it lasts, that the journal, durable up to there, has come so far.
    pub(in crate::journal) fn note(
        &mut self,
        position: JournalPosition,
    ) -> Result<(), JournalError> {
        self.write(position)?;
        if let Some(file) = &self.file {
            file.sync_data().map_err(failed)?;
        }
        self.groups = 0;
        Ok(())
    }

    fn write(&mut self, position: JournalPosition) -> Result<(), JournalError> {
        // Always as long, so that nothing of an older number is left behind it.
        let text = format!("{:020}\n", position.0);
        let file = match &mut self.file {
            Some(file) => file,
            file => {
                let opened =
                    OpenOptions::new().write(true).create(true).truncate(false).open(&self.path);
                file.insert(opened.map_err(failed)?)
            }
        };
        file.rewind().and_then(|()| file.write_all(text.as_bytes())).map_err(failed)
    }
}

fn failed(error: io::Error) -> JournalError {
    JournalError::Storage(Box::new(error))
}
