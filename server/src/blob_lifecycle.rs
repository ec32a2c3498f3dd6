//! The life of a blob: it is published and deleted here, so that the core never counts a missing blob as stored.
//!
//! ```text
//!   publish: hold [ may it be put there? -> put -> Published ]
//!   delete:  hold [ lease [ is it still doomed? -> unlink ] -> Deleted ]
//!   missing: hold [ is it still missing or altered? -> Lost ]
//! ```
//!
//! Each is done under a hold of the blob ([`BlobStore::hold`]), and so are an assimilator's publish and offer. A deletion is done
//! under the journal's lease as well ([`crate::shell::JournalLease`]): the holds of another server aren't seen here. The core
//! decides what happens to a blob.

use crate::shell::ShellHandle;
use futures::{StreamExt as _, TryStreamExt as _, future::ready, stream};
use parking_lot::Mutex;
use sojourn_blobs::{BlobError, BlobStore, UploadError, UploadName, Uploads};
use sojourn_core::{BlobStatus, Command, request};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    error::{ApiError, ErrorKind},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    ops::Not as _,
    path::Path,
    sync::Arc,
    time::Duration,
};

/// The pause before a failed deletion is retried.
const DELETE_RETRY_INTERVAL: Duration = Duration::from_secs(30);

/// Blobs that are looked for in the store at a time.
const LOOKUPS: usize = 32;

/// Why a blob was not published.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PublishError {
    /// The core refused it.
    #[error(transparent)]
    Refused(#[from] ApiError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] BlobError),
    /// The upload isn't there, or the spool folder failed.
    #[error(transparent)]
    Upload(#[from] UploadError),
}

/// Why a doomed blob was not deleted.
#[derive(Debug, thiserror::Error)]
enum DeleteError {
    #[error(transparent)]
    Core(#[from] ApiError),
    #[error(transparent)]
    Store(#[from] BlobError),
}

/// The store together with the core; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct BlobLifecycle {
    shell: ShellHandle,
    store: BlobStore,
    /// Blobs with a pending deletion: one task is enough, however often a deletion is asked for.
    deleting: Arc<Mutex<BTreeSet<Digest>>>,
    /// Lost blobs of which there are other bytes: the objects that were read.
    altered: Arc<Mutex<BTreeMap<Digest, String>>>,
}

impl BlobLifecycle {
    pub(crate) fn new(shell: ShellHandle, store: BlobStore) -> Self {
        Self { shell, store, deleting: Arc::default(), altered: Arc::default() }
    }

    pub(crate) const fn store(&self) -> &BlobStore {
        &self.store
    }

    /// Publishes a file as a blob that the core knows. As of [`Self::publish_upload`], the future must not be dropped before it ends.
    pub(crate) async fn publish(&self, blob: BlobRef, file: &Path) -> Result<(), PublishError> {
        let _hold = self.store.hold(blob.sha256).await;
        self.publish_held(blob, file).await
    }

    async fn publish_held(&self, blob: BlobRef, file: &Path) -> Result<(), PublishError> {
        self.shell.request(request::AuthorizePublish { blob }).await?;
        self.store.publish(blob, file).await?;
        self.shell.request(request::Published { blob }).await?;
        Ok(())
    }

    /// Publishes a blob from its complete upload, and removes that. Several requests may have completed the same upload: the
    /// first one publishes it, and the others find it published. The future must not be dropped before it ends: the store would go on
    /// without the hold.
    pub(crate) async fn publish_upload(
        &self,
        uploads: &Uploads,
        blob: BlobRef,
    ) -> Result<(), PublishError> {
        let name = UploadName::Blob(blob.sha256);
        // Before the file is looked for: whoever had the hold may have removed it.
        let _hold = self.store.hold(blob.sha256).await;
        let own = uploads.clone();
        let file = match blocking(move || own.complete(name, blob)).await {
            Err(UploadError::NotComplete { .. }) if self.is_published(blob).await? => return Ok(()),
            file => file?,
        };
        let published = match self.publish_held(blob, &file).await {
            // A request that declares another size for the same digest has removed it.
            Err(PublishError::Store(BlobError::File { source, .. }))
                if source.kind() == io::ErrorKind::NotFound =>
            {
                return Err(UploadError::NotComplete { name, blob: blob.sha256 }.into());
            }
            published => published,
        };
        // A file that was damaged in the spool folder must be sent again.
        let damaged = matches!(&published, Err(PublishError::Store(BlobError::Unverified { .. })));
        if published.is_ok() || damaged {
            let own = uploads.clone();
            blocking(move || own.remove(name)).await?;
        }
        published
    }

    async fn is_published(&self, blob: BlobRef) -> Result<bool, ApiError> {
        let status = self.shell.request(request::GetBlobStatus { blob: blob.sha256 }).await?;
        Ok(status == Some(BlobStatus::Published))
    }

    /// Deletes a blob that the core has doomed. Retries until it is deleted, or the core wants it again.
    pub(crate) async fn delete(&self, blob: Digest) {
        if !self.deleting.lock().insert(blob) {
            return;
        }
        while !self.try_delete(blob).await {
            tokio::time::sleep(DELETE_RETRY_INTERVAL).await;
        }
    }

    /// Tries once. Gives whether nothing more is to do.
    async fn try_delete(&self, blob: Digest) -> bool {
        let _hold = self.store.hold(blob).await;
        // A later request to delete it waits for the hold and looks again.
        self.deleting.lock().remove(&blob);
        let deleted = self.shell.lease().run(self.delete_doomed(blob)).await;
        match deleted {
            Ok(Ok(Some(()))) => {
                self.shell.tell(Command::Deleted { blob });
                true
            }
            Ok(Ok(None)) => true,
            Err(error) => {
                tracing::warn!(%blob, %error, "a deletion waits for the lease");
                self.deleting.lock().insert(blob).not()
            }
            Ok(Err(DeleteError::Core(error))) => {
                tracing::warn!(%blob, %error, "a deletion waits for the core");
                self.deleting.lock().insert(blob).not()
            }
            Ok(Err(DeleteError::Store(error))) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(%blob, error, "a blob could not be deleted; trying again");
                // Another task that waits for the hold may do it.
                self.deleting.lock().insert(blob).not()
            }
        }
    }

    /// Deletes it where it is still doomed; `None` where it was published again, or is gone already.
    async fn delete_doomed(&self, blob: Digest) -> Result<Option<()>, DeleteError> {
        match self.shell.request(request::GetBlobStatus { blob }).await? {
            Some(BlobStatus::Doomed) => Ok(Some(self.store.delete(blob).await?)),
            _ => Ok(None),
        }
    }

    /// The names of the blobs that have to be sent, in their order. The core doesn't know these blobs, or takes them for stored
    /// while they aren't there in their length; it hears of the latter. No blob is read: an altered one is found by whoever
    /// reads it.
    pub(crate) async fn missing(&self, blobs: Vec<BlobRef>) -> Result<Vec<Digest>, ApiError> {
        let unknown = self.shell.request(request::Missing { blobs: blobs.clone() }).await?;
        let unknown: BTreeSet<Digest> = unknown.into_iter().collect();
        let missing = stream::iter(blobs).map(|blob| {
            let is_known = !unknown.contains(&blob.sha256);
            async move {
                let is_missing = !is_known || self.is_lost(blob).await?;
                Ok(is_missing.then_some(blob.sha256))
            }
        });
        missing.buffered(LOOKUPS).try_filter_map(|missing| ready(Ok(missing))).try_collect().await
    }

    /// Is a blob that the core takes for stored not in the store?
    async fn is_lost(&self, blob: BlobRef) -> Result<bool, ApiError> {
        match self.store.stored_size(blob.sha256).await {
            Ok(Some(bytes)) if bytes == blob.bytes => return Ok(false),
            Ok(_) | Err(BlobError::Altered { .. }) => {}
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::error!(blob = %blob.sha256, error, "can't look for a blob in the store");
                let message = "the server can't look in its store; its log says why";
                return Err(ApiError::new(ErrorKind::Unavailable, message));
            }
        }
        let found = self.report_missing(blob.sha256).await;
        match found.kind {
            ErrorKind::NotFound => Ok(true),
            // Somebody has just put it there.
            ErrorKind::Unavailable => Ok(false),
            _ => Err(found),
        }
    }

    /// Looks in the store for blobs that it had lost: a folder may be mounted again, or a copy put in its place. Those that are
    /// whole are the core's again.
    pub(crate) async fn find_lost(&self) {
        let lost = match self.shell.request(request::GetLostBlobs {}).await {
            Ok(lost) => lost,
            Err(error) => return tracing::debug!(%error, "lost blobs can't be looked for"),
        };
        let is_lost = |digest: &Digest| lost.iter().any(|blob| blob.sha256 == *digest);
        self.altered.lock().retain(|digest, _| is_lost(digest));
        for blob in lost {
            let stamp = self.store.stamp(blob.sha256).await.ok().flatten();
            if stamp.is_some() && self.altered.lock().get(&blob.sha256) == stamp.as_ref() {
                continue;
            }
            let _hold = self.store.hold(blob.sha256).await;
            match self.store.size_of_whole(blob.sha256).await {
                Ok(Some(bytes)) if bytes == blob.bytes => {
                    match self.shell.request(request::Published { blob }).await {
                        Ok(()) => tracing::info!(blob = %blob.sha256, "a lost blob is there again"),
                        Err(error) => {
                            let blob = blob.sha256;
                            tracing::warn!(%blob, %error, "a lost blob that is there again waits for the core");
                        }
                    }
                }
                Ok(_) | Err(BlobError::Missing(_)) => {}
                Err(BlobError::Altered { .. } | BlobError::Shortened(_)) => {
                    self.altered.lock().extend(stamp.map(|stamp| (blob.sha256, stamp)));
                }
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(blob = %blob.sha256, error, "a lost blob can't be looked for");
                }
            }
        }
    }

    /// Verifies that a blob is missing or altered, after a read has failed, and tells the core. Gives the answer for the
    /// reader.
    pub(crate) async fn report_missing(&self, blob: Digest) -> ApiError {
        let _hold = self.store.hold(blob).await;
        let found = self.store.size_of_whole(blob).await;
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
}

/// A call that blocks on the disk, on a thread for such calls.
async fn blocking<T: Send + 'static>(
    call: impl FnOnce() -> Result<T, UploadError> + Send + 'static,
) -> Result<T, UploadError> {
    let ended = tokio::task::spawn_blocking(call).await;
    ended.unwrap_or_else(|error| Err(UploadError::Interrupted(error.to_string())))
}

#[cfg(test)]
#[path = "blob_lifecycle_tests.rs"]
mod tests;
