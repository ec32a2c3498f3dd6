//! What lies in the store and nobody knows of: looked for, and thrown away once it is old.
//!
//! ```text
//!   mark:   what the store has, older than the grace period, and the core doesn't know
//!   sweep:  hold [ does the core still not know it, and is it still old? -> delete ]
//! ```
//!
//! Pieces that belong to no blob are what is left of versions that were never made; old ones go.
//!
//! Others put blobs in the store before the core hears of them, with no hold that is seen here: the grace
//! period is for those. Should one be put there at the very moment at which it is deleted, whoever offers it
//! is told that it isn't there, and puts it there again. Times are the store's own.

use crate::{keeper::Keeper, shell::ShellHandle};
use sojourn_blobs::{BlobError, Staging};
use sojourn_core::{Answer, Command, Query};
use sojourn_protocol::{
    api::{CollectAnswer, CollectRequest, Found},
    digest::{BlobRef, Digest},
    error::ApiError,
    time::UnixMillis,
};

/// Why a collection broke off; what it had thrown away is gone.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CollectError {
    #[error(transparent)]
    Core(#[from] ApiError),
    #[error(transparent)]
    Store(#[from] BlobError),
}

/// Looks through the store, and throws away what nobody knows of, unless it is to say only what that is.
pub(crate) async fn collect(
    shell: &ShellHandle,
    keeper: &Keeper,
    staging: &Staging,
    request: &CollectRequest,
) -> Result<CollectAnswer, CollectError> {
    let blobs = keeper.blobs();
    let before = UnixMillis(blobs.now().await?.0.saturating_sub(request.grace.0));
    let (mut kept, mut unknown, mut uploads) =
        (Found::default(), Found::default(), Found::default());
    for (blob, at) in blobs.list_aged().await? {
        if at >= before || is_known(shell, blob.sha256).await? {
            add(&mut kept, blob.bytes);
        } else if request.dry_run || sweep(shell, keeper, blob, before).await? {
            add(&mut unknown, blob.bytes);
        } else {
            add(&mut kept, blob.bytes);
        }
    }
    // Asked before the list: what is granted from then on is wanted.
    let wanted = shell.wanted_uploads().await?;
    for staged in staging.list().await? {
        if staged.at < before && !wanted.wants(staged.lease) {
            if !request.dry_run {
                staging.remove(&staged).await?;
            }
            add(&mut uploads, staged.bytes);
        }
    }
    for bytes in blobs.sweep_pieces(before, request.dry_run, |lease| wanted.wants(lease)).await? {
        add(&mut unknown, bytes);
    }
    if !request.dry_run {
        blobs.sweep_trials(before).await?;
    }
    let answer = CollectAnswer { dry_run: request.dry_run, unknown, uploads, kept };
    tracing::info!(?answer, "the store was looked through");
    Ok(answer)
}

fn add(found: &mut Found, bytes: u64) {
    found.objects = found.objects.saturating_add(1);
    found.bytes = found.bytes.saturating_add(bytes);
}

/// Deletes a blob if all is still as it was found. False where it isn't.
async fn sweep(
    shell: &ShellHandle,
    keeper: &Keeper,
    blob: BlobRef,
    before: UnixMillis,
) -> Result<bool, CollectError> {
    let blobs = keeper.blobs();
    let _hold = blobs.hold(blob.sha256).await;
    let is_old = blobs.stored_at(blob.sha256).await?.is_some_and(|at| at < before);
    if !is_old || is_known(shell, blob.sha256).await? {
        return Ok(false);
    }
    blobs.delete(blob.sha256).await?;
    Ok(true)
}

async fn is_known(shell: &ShellHandle, blob: Digest) -> Result<bool, ApiError> {
    let query = Query::BlobStatus { blob };
    let answer = shell.call(|to| Command::Query { to, query }).await?;
    Ok(!matches!(answer, Answer::BlobStatus(None)))
}

#[cfg(test)]
#[path = "collect_tests.rs"]
mod tests;
