//! Orphans: blobs in the store that the core doesn't know. They are deleted once they are old.
//!
//! ```text
//!   mark:   what the store has, older than the grace period, and the core doesn't know
//!   sweep:  hold [ does the core still not know it, and is it still old? -> delete ]
//! ```
//!
//! A compressed copy of a blob is an orphan as its blob is. It can be made anew, so it needs no hold.
//!
//! Pieces that belong to no blob are left of versions that were never completed; old ones are deleted too.
//!
//! Assimilators put blobs in the store before the core hears of them, and their holds aren't seen here. The grace period
//! protects these blobs. If one is put at the moment at which it is deleted, the offer is answered that it is missing, and
//! the assimilator puts it again. Times are the store's own.

use crate::{
    blob_lifecycle::BlobLifecycle,
    shell::{LeaseLost, ShellHandle},
};
use sojourn_blobs::{BlobError, PackedCopy, Staging};
use sojourn_core::request;
use sojourn_protocol::{
    api::{CollectAnswer, CollectRequest, Found},
    digest::{BlobRef, Digest},
    error::ApiError,
    time::UnixMillis,
};

/// Why a collection stopped. Orphans that it had deleted are gone.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CollectError {
    #[error(transparent)]
    Core(#[from] ApiError),
    #[error(transparent)]
    Store(#[from] BlobError),
    #[error(transparent)]
    Lease(#[from] LeaseLost),
}

/// Lists the store, and deletes its orphans. A dry run only says what they are. It ends where another server may be active.
pub(crate) async fn collect(
    shell: &ShellHandle,
    lifecycle: &BlobLifecycle,
    staging: &Staging,
    request: &CollectRequest,
) -> Result<CollectAnswer, CollectError> {
    shell.lease().run(search(shell, lifecycle, staging, request)).await?
}

async fn search(
    shell: &ShellHandle,
    lifecycle: &BlobLifecycle,
    staging: &Staging,
    request: &CollectRequest,
) -> Result<CollectAnswer, CollectError> {
    let store = lifecycle.store();
    let before = UnixMillis(store.now().await?.0.saturating_sub(request.grace.0));
    let (mut kept, mut unknown, mut uploads) =
        (Found::default(), Found::default(), Found::default());
    for (blob, at) in store.list_aged().await? {
        if at >= before || is_known(shell, blob.sha256).await? {
            add(&mut kept, blob.bytes);
        } else if request.dry_run || sweep(shell, lifecycle, blob, before).await? {
            add(&mut unknown, blob.bytes);
        } else {
            add(&mut kept, blob.bytes);
        }
    }
    for PackedCopy { blob, bytes, at } in store.list_packed().await? {
        // Where its blob was an orphan that this search has deleted, the copy is gone with it.
        if at >= before || is_known(shell, blob).await? {
            add(&mut kept, bytes);
        } else {
            if !request.dry_run {
                store.delete_packed(blob).await?;
            }
            add(&mut unknown, bytes);
        }
    }
    // Asked before the list: uploads of leases that are granted later are kept.
    let wanted = shell.live_uploads().await?;
    for staged in staging.list().await? {
        if staged.at < before && !wanted.wants(staged.lease) {
            if !request.dry_run {
                staging.remove(&staged).await?;
            }
            add(&mut uploads, staged.bytes);
        }
    }
    for bytes in store.sweep_pieces(before, request.dry_run, |lease| wanted.wants(lease)).await? {
        add(&mut unknown, bytes);
    }
    if !request.dry_run {
        store.sweep_probes(before).await?;
    }
    let answer = CollectAnswer { dry_run: request.dry_run, unknown, uploads, kept };
    tracing::info!(?answer, "the store was searched for orphans");
    Ok(answer)
}

fn add(found: &mut Found, bytes: u64) {
    found.objects = found.objects.saturating_add(1);
    found.bytes = found.bytes.saturating_add(bytes);
}

/// Deletes a blob if it is still unknown and old. Gives whether it did.
async fn sweep(
    shell: &ShellHandle,
    lifecycle: &BlobLifecycle,
    blob: BlobRef,
    before: UnixMillis,
) -> Result<bool, CollectError> {
    let store = lifecycle.store();
    let _hold = store.hold(blob.sha256).await;
    let is_old = store.stored_at(blob.sha256).await?.is_some_and(|at| at < before);
    if !is_old || is_known(shell, blob.sha256).await? {
        return Ok(false);
    }
    store.delete(blob.sha256).await?;
    Ok(true)
}

async fn is_known(shell: &ShellHandle, blob: Digest) -> Result<bool, ApiError> {
    Ok(shell.request(request::GetBlobStatus { blob }).await?.is_some())
}

#[cfg(test)]
#[path = "orphans_tests.rs"]
mod tests;
