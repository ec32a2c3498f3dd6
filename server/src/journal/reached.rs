//! A note beside the journal of how far it has come, so that a journal that has gone back is found out:
//! an emptied file, a write-ahead log that was deleted, an old copy put in its place.
//!
//! It is written when the journal is opened, with each snapshot, and now and then as it grows: so it may
//! lag behind the journal, and is never ahead of it.

use super::JournalError;
use sojourn_core::JournalPosition;
use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
};

/// Groups of events between two notes: one more fsync among as many is nothing.
const EVERY: u32 = 64;

/// The note of one journal.
#[derive(Debug)]
pub(super) struct Reached {
    path: PathBuf,
    /// Groups since the last note.
    groups: u32,
}

impl Reached {
    /// The note that lies beside the journal at `path`.
    pub(super) fn beside(path: &Path) -> Self {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".reached");
        Self { path: path.with_file_name(name), groups: 0 }
    }

    /// How far the journal had come at the least; none where there was no journal.
    pub(super) fn position(&self) -> Result<Option<JournalPosition>, JournalError> {
        let text = match fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(JournalError::Unreadable(Box::new(error))),
        };
        let number = text.trim().parse().map_err(|_| {
            let what = format!("`{}` should hold a number", self.path.display());
            JournalError::Unreadable(what.into())
        })?;
        Ok(Some(JournalPosition(number)))
    }

    /// Refuses a journal that ends before the place that it had reached.
    pub(super) fn check(&self, end: JournalPosition) -> Result<(), JournalError> {
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

    /// A group was appended, up to there: notes it where the last note lies far enough back.
    pub(super) fn note_now_and_then(
        &mut self,
        position: JournalPosition,
    ) -> Result<(), JournalError> {
        self.groups += 1;
        if self.groups < EVERY {
            return Ok(());
        }
        self.note(position)
    }

    /// Notes that the journal, durable up to there, has come so far.
    pub(super) fn note(&mut self, position: JournalPosition) -> Result<(), JournalError> {
        let failed = |error: std::io::Error| JournalError::Storage(Box::new(error));
        let new = self.path.with_extension("reached-new");
        let mut file = File::create(&new).map_err(failed)?;
        writeln!(file, "{}", position.0).and_then(|()| file.sync_all()).map_err(failed)?;
        fs::rename(&new, &self.path).map_err(failed)?;
        self.groups = 0;
        Ok(())
    }
}
