//! The note in a backup's folder: that it is a backup, and how far its journal has come.
//!
//! A server that has run in the folder has moved the journal on, so that the note no longer fits it.

use super::BackupError;
use serde::{Deserialize, Serialize};
use sojourn_core::JournalPosition;
use sojourn_files::{Access, Durability, if_exists};
use std::{fs, io, path::Path};

/// The note's file.
pub(super) const FILE: &str = "backup.json";
/// The version of the note.
const VERSION: u32 = 1;

/// The note.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Marker {
    version: u32,
    /// The id of the store of blobs, which no other server has.
    pub(super) store: Option<String>,
    /// The positions that the journal may have: two while a newer one takes its place, none before the first.
    pub(super) positions: Vec<JournalPosition>,
}

impl Marker {
    pub(super) const fn new(store: Option<String>, positions: Vec<JournalPosition>) -> Self {
        Self { version: VERSION, store, positions }
    }

    /// The note in a folder; `None` where it has none.
    pub(super) fn read(folder: &Path) -> Result<Option<Self>, BackupError> {
        let path = folder.join(FILE);
        let error = |source| BackupError::File { path: path.clone(), source };
        let Some(text) = if_exists(fs::read(&path)).map_err(error)? else { return Ok(None) };
        let marker: Self = serde_json::from_slice(&text)
            .map_err(|source| error(io::Error::new(io::ErrorKind::InvalidData, source)))?;
        if marker.version > VERSION {
            let newer = format!("a newer program has written it, of version {}", marker.version);
            return Err(error(io::Error::new(io::ErrorKind::InvalidData, newer)));
        }
        Ok(Some(marker))
    }

    /// Replaces the note. It is durable when this returns.
    pub(super) fn write(&self, folder: &Path) -> Result<(), BackupError> {
        let path = folder.join(FILE);
        let written = serde_json::to_vec(self)
            .map_err(io::Error::from)
            .and_then(|text| sojourn_files::write(&path, &text, Access::Mask, Durability::Synced));
        written.map_err(|source| BackupError::File { path, source })
    }
}
