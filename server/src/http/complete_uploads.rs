//! Complete uploads of leases, in the spool folder or in the object store.
//!
//! Where there is a store, every server and assimilator reads them there. An upload that came through this server is put
//! there before anybody hears that it is complete.

use super::{AppState, error::HttpError};
use actix_web::web;
use sojourn_blobs::{BlobError, UploadError, UploadName};
use sojourn_protocol::{digest::BlobRef, ids::LeaseId};
use std::io;

/// Copies a lease's complete upload from the spool folder to the store, if there is one.
pub(super) async fn stage(app: &AppState, lease: LeaseId, blob: BlobRef) -> Result<(), HttpError> {
    let Some(staging) = app.staging.clone() else { return Ok(()) };
    let uploads = app.uploads.clone();
    // A task of its own: a copy that was begun ends even if the client hangs up.
    let staged = actix_web::rt::spawn(async move {
        if staging.is_staged(lease, blob).await? {
            return Ok(());
        }
        let name = UploadName::Lease(lease);
        let file = web::block(move || uploads.complete(name, blob)).await??;
        match staging.stage(lease, blob, &file).await {
            // Nobody needs it any more, and it was removed meanwhile.
            Err(BlobError::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                Err(UploadError::NotComplete { name, blob: blob.sha256 }.into())
            }
            staged => Ok(staged?),
        }
    });
    staged.await.map_err(|error| HttpError::fault(&error))?
}

/// Whether assimilators can read this upload, which its host is about to report. From now on no other takes its place, until
/// [`take_back`]. Copies it to the store if it is only in the spool folder.
pub(super) async fn is_whole(
    app: &AppState,
    lease: LeaseId,
    blob: BlobRef,
) -> Result<bool, HttpError> {
    let uploads = app.uploads.clone();
    let spooled = web::block(move || uploads.report(UploadName::Lease(lease), blob)).await?;
    match (&app.staging, spooled) {
        (_, true) => match stage(app, lease, blob).await {
            Ok(()) => Ok(true),
            Err(error) => {
                take_back(app, lease, blob).await?;
                Err(error)
            }
        },
        (Some(staging), false) => Ok(staging.is_staged(lease, blob).await?),
        (None, false) => Ok(false),
    }
}

/// The report of this upload wasn't acknowledged: another may take its place.
pub(super) async fn take_back(
    app: &AppState,
    lease: LeaseId,
    blob: BlobRef,
) -> Result<(), HttpError> {
    let uploads = app.uploads.clone();
    let taken_back = web::block(move || uploads.take_back_report(UploadName::Lease(lease), blob));
    Ok(taken_back.await?)
}
