//! Snapshots of the durable state, and recovery from one and the events after it.

use crate::{core::Core, fault::SnapshotError};
use serde::{Deserialize, Serialize};
use sojourn_protocol::time::UnixMillis;
use sojourn_scheduling::config::CoreConfig;
use sojourn_state::{EVENT_VERSION, FoldError, Folded, READ_VERSIONS, Record, State};

/// Why recovery can't go on.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// The snapshot's bytes are no snapshot.
    #[error("the snapshot can't be read")]
    Snapshot(#[source] serde_json::Error),
    /// The snapshot was made by another version.
    #[error("the snapshot has version {found}, this program reads versions {} to {}", READ_VERSIONS.start(), READ_VERSIONS.end())]
    Version {
        /// The snapshot's version.
        found: u32,
    },
    /// An event is missing or comes twice.
    #[error("event {found} follows event {last}")]
    Gap {
        /// The last event in the state.
        last: u64,
        /// The event that came.
        found: u64,
    },
    /// An event doesn't fit the state.
    #[error("the journal can't be replayed")]
    Fold(#[from] FoldError),
}

#[derive(Serialize)]
struct SnapshotRef<'a> {
    version: u32,
    state: &'a State,
}

#[derive(Deserialize)]
struct SnapshotVersion {
    version: u32,
}

#[derive(Deserialize)]
struct Snapshot {
    version: u32,
    state: State,
}

/// A state as [`Core::snapshot`] writes it.
///
/// # Errors
/// [`SnapshotError`] where it holds what JSON can't.
pub fn snapshot_of(state: &State) -> Result<Vec<u8>, SnapshotError> {
    serde_json::to_vec(&SnapshotRef { version: EVENT_VERSION, state }).map_err(SnapshotError)
}

impl Core {
    /// A core from a snapshot; events after it are to be folded in, then [`Command::Started`] sent.
    ///
    /// # Errors
    /// [`RecoverError`] where the bytes are no snapshot of a version that is read.
    pub fn from_snapshot(bytes: &[u8], config: CoreConfig) -> Result<Self, RecoverError> {
        let is_read = |found| match READ_VERSIONS.contains(&found) {
            true => Ok(()),
            false => Err(RecoverError::Version { found }),
        };
        let Snapshot { version, state } = serde_json::from_slice(bytes).or_else(|error| {
            // Of another version it may be anything else. It is parsed a second time only then: it may be large.
            let SnapshotVersion { version } =
                serde_json::from_slice(bytes).map_err(RecoverError::Snapshot)?;
            is_read(version)?;
            Err(RecoverError::Snapshot(error))
        })?;
        is_read(version)?;
        let mut core = Self::with_state(Folded::of_snapshot(state), config);
        core.clock.recover(core.state.at);
        Ok(core)
    }

    /// The durable state, as bytes for [`Core::from_snapshot`].
    ///
    /// # Errors
    /// [`SnapshotError`] where it can't be written.
    pub fn snapshot(&self) -> Result<Vec<u8>, SnapshotError> {
        snapshot_of(&self.state)
    }

    /// At recovery: this process has been the active server until this time, whatever it journalled.
    pub fn was_active_until(&mut self, at: UnixMillis) {
        if self.clock.is_recovering() {
            self.clock.recover(at);
        }
    }

    /// Takes a journalled event in, at recovery.
    ///
    /// # Errors
    /// [`RecoverError::Gap`] where it isn't the next one, [`RecoverError::Fold`] where it doesn't fit the state.
    pub fn fold(&mut self, record: &Record) -> Result<(), RecoverError> {
        let (last, found) = (self.state.position.0, record.position.0);
        if found != last + 1 {
            return Err(RecoverError::Gap { last, found });
        }
        self.state.fold(record)?;
        self.clock.recover(self.state.at);
        Ok(())
    }
}
