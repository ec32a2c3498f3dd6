//! Deletes uploads that nobody will report, from the spool folder and from the store: at the start, and on a schedule.
//!
//! | upload | is deleted |
//! |---|---|
//! | an acknowledged report names it | never; the core asks for it when the report has ended |
//! | its lease can still be reported | [`UNREPORTED_UPLOAD_TIMEOUT`] after it was written last, or the server started |
//! | no lease wants it | at once; in the store after [`UNWANTED_UPLOAD_TIMEOUT`] |
//! | a blob, by a user | [`BLOB_UPLOAD_TIMEOUT`] after it was written last, or the server started |
//!
//! The ages of files go by the machine's steady clock, and those of objects by the store's: nothing is deleted because somebody set
//! a clock.
//!
//! Only the active server does this: the core of another doesn't say which leases there are. Afterwards the uploads that no
//! report names are counted anew.

use crate::{
    shell::{LiveUploads, ShellHandle},
    upload_quota::UploadQuota,
};
use sojourn_blobs::{BlobError, Staged, Staging, UploadError, UploadName, Uploads};
use sojourn_protocol::{
    digest::BlobRef,
    error::{ApiError, ErrorKind},
    ids::LeaseId,
    time::UnixMillis,
};
use std::{
    error::Error,
    time::{Duration, Instant},
};

/// How often uploads are looked at.
pub(crate) const SWEEP_INTERVAL: Duration = Duration::from_secs(3600);
/// An upload of a blob that wasn't written for so long is deleted. A complete one is published at once.
const BLOB_UPLOAD_TIMEOUT: Duration = Duration::from_secs(24 * 3600);
/// An upload of a lease that wasn't reported, and wasn't written for so long, is deleted: its host sends it again.
const UNREPORTED_UPLOAD_TIMEOUT: Duration = Duration::from_secs(24 * 3600);
/// An object of a lease that is of no use is deleted when it is so old. A signed URL may bring it after the lease has ended.
const UNWANTED_UPLOAD_TIMEOUT: Duration = Duration::from_secs(3600);
/// The core is asked before so many objects are removed.
const MAX_REMOVED_AT_ONCE: usize = 32;

/// Deletes what nobody will report, and counts the rest.
pub(crate) async fn run_once(
    shell: ShellHandle,
    uploads: Uploads,
    staging: Option<Staging>,
    quota: UploadQuota,
) {
    // Asked before anything is listed: leases that are granted later are wanted.
    let wanted = match shell.live_uploads().await {
        Ok(wanted) => wanted,
        Err(error) if error.kind == ErrorKind::Unavailable => {
            return tracing::debug!(%error, "another server looks for old uploads");
        }
        Err(error) => return tracing::warn!(%error, "old uploads can't be looked for"),
    };
    let known = wanted.clone();
    let swept = tokio::task::spawn_blocking(move || sweep_spool(&uploads, &known, Instant::now()));
    let mut found = match swept.await {
        Ok(Ok(found)) => found,
        Ok(Err(error)) => return could_not(&error),
        Err(error) => return could_not(&error),
    };
    if let Some(staging) = staging {
        let swept = async {
            let now = staging.now().await?;
            sweep_store(&staging, &wanted, now, || {
                let shell = shell.clone();
                async move { shell.live_uploads().await }
            })
            .await
        };
        match shell.lease().run(swept).await {
            Ok(Ok(staged)) => found.extend(staged),
            Ok(Err(error)) => could_not(&error),
            Err(lost) => could_not(&lost),
        }
    }
    let found = found
        .into_iter()
        .filter_map(|(lease, blob)| Some((wanted.unreported_of(lease)?, lease, blob)));
    quota.recount(found, |lease| wanted.wants(lease) && !wanted.is_reported(lease));
}

fn could_not(error: &(dyn Error + 'static)) {
    tracing::warn!(error, "old uploads could not be deleted");
}

/// Deletes old uploads from the spool folder. Gives the results that remain.
fn sweep_spool(
    uploads: &Uploads,
    wanted: &LiveUploads,
    now: Instant,
) -> Result<Vec<(LeaseId, BlobRef)>, UploadError> {
    let swept = uploads.sweep(now, |name, _| match name {
        UploadName::Blob(_) => Some(BLOB_UPLOAD_TIMEOUT),
        UploadName::Lease(lease) | UploadName::Delta(lease) => {
            let age = if wanted.wants(lease) { UNREPORTED_UPLOAD_TIMEOUT } else { Duration::ZERO };
            (!wanted.is_reported(lease)).then_some(age)
        }
    })?;
    if swept > 0 {
        tracing::info!(swept, "old uploads were deleted");
    }
    let results = uploads.list().into_iter().filter_map(|(name, blob)| match name {
        UploadName::Lease(lease) => Some((lease, blob)),
        // Its checkpoint is counted from the request on; after a restart it is sent anew.
        UploadName::Delta(_) | UploadName::Blob(_) => None,
    });
    Ok(results.collect())
}

/// Whether an upload in the store is to be deleted.
fn is_old(staged: &Staged, wanted: &LiveUploads, now: UnixMillis) -> bool {
    let lease = staged.lease;
    let timeout = match wanted.wants(lease) {
        true => UNREPORTED_UPLOAD_TIMEOUT,
        false => UNWANTED_UPLOAD_TIMEOUT,
    };
    let age = Duration::from_millis((now - staged.at).0);
    age > timeout && !wanted.is_reported(lease)
}

/// Deletes old uploads from the store, if they still are when the core is asked again: the list takes time, and an upload may
/// be reported meanwhile. Gives the results that remain.
async fn sweep_store<F: Future<Output = Result<LiveUploads, ApiError>>>(
    staging: &Staging,
    wanted: &LiveUploads,
    now: UnixMillis,
    again: impl Fn() -> F,
) -> Result<Vec<(LeaseId, BlobRef)>, BlobError> {
    let (old, mut left): (Vec<_>, Vec<_>) =
        staging.list().await?.into_iter().partition(|staged| is_old(staged, wanted, now));
    let mut swept = 0_u64;
    for old in old.chunks(MAX_REMOVED_AT_ONCE) {
        let wanted = again().await;
        if let Err(error) = &wanted {
            tracing::debug!(%error, "old uploads stay in the store");
        }
        for staged in old {
            if wanted.as_ref().is_ok_and(|wanted| is_old(staged, wanted, now)) {
                staging.remove(staged).await?;
                swept = swept.saturating_add(1);
            } else {
                left.push(staged.clone());
            }
        }
    }
    if swept > 0 {
        tracing::info!(swept, "old uploads were deleted from the store");
    }
    let left = left.into_iter();
    Ok(left.filter_map(|staged| Some((staged.lease, staged.blob()?))).collect())
}

#[cfg(test)]
#[path = "upload_sweeps_tests.rs"]
mod tests;
