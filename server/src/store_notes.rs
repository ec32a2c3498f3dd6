//! Notes of the journal's servers in the store of their blobs.

use crate::journal::NoteStore;
use sojourn_blobs::BlobStore;
use std::{error::Error, time::Duration};
use tokio::{runtime::Handle, time::timeout};

/// A call to the store may take so long.
const STORE_TIMEOUT: Duration = Duration::from_secs(5);

/// Notes in a store, for threads that block.
#[derive(Debug)]
pub(crate) struct StoreNotes {
    blobs: BlobStore,
    runtime: Handle,
}

impl StoreNotes {
    /// Must be called within a Tokio runtime, which has to outlive the notes.
    pub(crate) fn new(blobs: BlobStore) -> Self {
        Self { blobs, runtime: Handle::current() }
    }
}

impl NoteStore for StoreNotes {
    fn read(&self, name: &str) -> Result<Option<String>, Box<dyn Error + Send + Sync>> {
        let read = async { timeout(STORE_TIMEOUT, self.blobs.note(name)).await };
        Ok(self.runtime.block_on(read)??)
    }

    fn write(&self, name: &str, text: &str) -> Result<(), Box<dyn Error + Send + Sync>> {
        let write = async { timeout(STORE_TIMEOUT, self.blobs.set_note(name, text)).await };
        Ok(self.runtime.block_on(write)??)
    }

    fn place(&self, name: &str) -> String {
        format!("{name} (in the store of the blobs)")
    }
}
