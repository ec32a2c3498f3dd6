//! Blobs go into the store and out of it here, so that the core never takes for stored what isn't.
//!
//! ```text
//!   publish: hold [ may it be put there? -> put -> Published ]
//!   delete:  hold [ is it still doomed?  -> unlink -> Deleted ]
//!   missed:  hold [ is it still missing or altered? -> Lost ]
//! ```
//!
//! Each is done under a hold of the blob ([`BlobStore::hold`]), as an assimilator's publish and offer
//! are. What becomes of a blob, the core decides.

use crate::shell::ShellHandle;
use sojourn_blobs::{BlobError, BlobStore};
use sojourn_core::{Answer, BlobStatus, Command, Query};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    error::{ApiError, ErrorKind},
};
use std::{
    collections::BTreeSet,
    ops::Not as _,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// Pause before a deletion that failed is tried again.
const DELETE_AGAIN: Duration = Duration::from_secs(30);

/// Why a blob was not published.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PublishError {
    /// The core refused it.
    #[error(transparent)]
    Refused(#[from] ApiError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] BlobError),
}

/// The store together with the core; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Keeper {
    shell: ShellHandle,
    blobs: BlobStore,
    /// Blobs that somebody is going to look at and delete: one is enough, however often it is asked for.
    deleting: Arc<Mutex<BTreeSet<Digest>>>,
}

impl Keeper {
    pub(crate) fn new(shell: ShellHandle, blobs: BlobStore) -> Self {
        Self { shell, blobs, deleting: Arc::default() }
    }

    pub(crate) const fn blobs(&self) -> &BlobStore {
        &self.blobs
    }

    /// Puts a verified file into the store as a blob that the core knows. Not to be dropped half-way:
    /// the store may go on with what it was given, no longer held.
    pub(crate) async fn publish(&self, blob: BlobRef, file: &Path) -> Result<(), PublishError> {
        let _hold = self.blobs.hold(blob.sha256).await;
        self.shell.call(|to| Command::AuthorizePublish { to, blob }).await?;
        self.blobs.publish(blob, file).await?;
        self.shell.call(|to| Command::Published { to, blob }).await?;
        Ok(())
    }

    /// Deletes a blob that the core has doomed; tries until that is done, or not wanted any more.
    pub(crate) async fn delete(&self, blob: Digest) {
        if !self.deleting().insert(blob) {
            return;
        }
        while !self.try_delete(blob).await {
            tokio::time::sleep(DELETE_AGAIN).await;
        }
    }

    /// Whether there is nothing more to do here.
    async fn try_delete(&self, blob: Digest) -> bool {
        let _hold = self.blobs.hold(blob).await;
        // Whoever is asked to delete it from now on waits for the hold and looks again.
        self.deleting().remove(&blob);
        let query = Query::BlobStatus { blob };
        let deleted = match self.shell.call(|to| Command::Query { to, query }).await {
            Ok(Answer::BlobStatus(Some(BlobStatus::Doomed))) => self.blobs.delete(blob).await,
            // It was published again, or is gone already.
            Ok(_) => return true,
            Err(error) => {
                tracing::warn!(%blob, %error, "a deletion waits for the core");
                return self.deleting().insert(blob).not();
            }
        };
        match deleted {
            Ok(()) => {
                self.shell.tell(Command::Deleted { blob });
                true
            }
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(%blob, error, "a blob could not be deleted; trying again");
                // Somebody else who waits for the hold does that.
                self.deleting().insert(blob).not()
            }
        }
    }

    /// A blob was to be read and wasn't there, or was altered: where that is so, the core is told.
    /// Gives what whoever wanted to read it should hear.
    pub(crate) async fn missed(&self, blob: Digest) -> ApiError {
        let _hold = self.blobs.hold(blob).await;
        let found = self.blobs.size_of_whole(blob).await;
        let what = match found {
            Ok(Some(_)) => {
                let message = format!("blob `{blob}` was just put in the store; try again");
                return ApiError::new(ErrorKind::Unavailable, message);
            }
            Ok(None) | Err(BlobError::Missing(_)) => "isn't in the store",
            Err(BlobError::Altered { .. } | BlobError::Shortened(_)) => {
                "was damaged on the server's disk and must be sent again"
            }
            Err(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, "can't read a blob");
                let message = "the server can't read the blob; its log says why";
                return ApiError::new(ErrorKind::Internal, message);
            }
        };
        self.shell.tell(Command::Lost { blob });
        ApiError::new(ErrorKind::NotFound, format!("blob `{blob}` {what}"))
    }

    fn deleting(&self) -> MutexGuard<'_, BTreeSet<Digest>> {
        self.deleting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[path = "keeper_tests.rs"]
mod tests;
