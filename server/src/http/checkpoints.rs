//! The checkpoints of leases, uploaded through the server.

use super::{
    App, AppState, JsonAnswer, JsonResult,
    auth::Host,
    complete_uploads,
    error::HttpError,
    uploads::{Offset, declared_bytes, declared_digest, receive},
};
use actix_web::{HttpRequest, web};
use sojourn_blobs::UploadName;
use sojourn_core::request;
use sojourn_http::trace::UNITS;
use sojourn_protocol::{
    api::UploadState,
    digest::BlobRef,
    error::{ApiError, ErrorKind},
    ids::{HostId, LeaseId},
};

pub(super) async fn put_checkpoint(
    app: App,
    Host(host): Host,
    lease: web::Path<LeaseId>,
    query: web::Query<Offset>,
    request: HttpRequest,
    body: web::Payload,
) -> JsonResult<UploadState> {
    let lease = *lease;
    let blob = BlobRef { sha256: declared_digest(&request)?, bytes: declared_bytes(&request)? };
    authorize(&app, host, lease, blob).await?;
    app.traffic.uploaded();
    let name = UploadName::Lease(lease);
    let state = receive(&app, name, blob, query.offset, &request, body).await?;
    if state.complete {
        complete_uploads::stage(&app, lease, blob).await?;
        tracing::debug!(target: UNITS, lease = lease.0, host = host.0, bytes = blob.bytes, "checkpoint received");
    }
    Ok(JsonAnswer(state))
}

/// Refuses an upload that the lease doesn't declare, and one for which there is no room beside those that no report has named.
pub(super) async fn authorize(
    app: &AppState,
    host: HostId,
    lease: LeaseId,
    blob: BlobRef,
) -> Result<(), HttpError> {
    let bytes = blob.bytes;
    app.shell.request(request::AuthorizeUpload { host, lease, bytes }).await?;
    Ok(app.quota.admit(host, lease, blob).map_err(ApiError::from)?)
}

pub(super) async fn checkpoint_state(
    app: App,
    Host(host): Host,
    lease: web::Path<LeaseId>,
) -> JsonResult<UploadState> {
    let lease = *lease;
    own_lease(&app, host, lease).await?;
    let uploads = app.uploads.clone();
    let state = web::block(move || uploads.state(UploadName::Lease(lease))).await?;
    let Some((blob, state)) = state else {
        // Nothing has come: whatever is wrong with the lease, the upload will say.
        return Ok(JsonAnswer(UploadState { offset: 0, complete: false }));
    };
    let bytes = blob.bytes;
    app.shell.request(request::AuthorizeUpload { host, lease, bytes }).await?;
    if state.complete {
        complete_uploads::stage(&app, lease, blob).await?;
    }
    Ok(JsonAnswer(state))
}

/// Refuses to say anything of a lease that isn't known, or is another host's: both in the same words. Of a provisional lease the
/// host needn't try to send anything yet.
pub(super) async fn own_lease(
    app: &AppState,
    host: HostId,
    lease: LeaseId,
) -> Result<(), HttpError> {
    check_owner(app, host, lease).await.map_err(|error| match error.kind {
        ErrorKind::NotFound | ErrorKind::Forbidden => {
            HttpError::new(ErrorKind::NotFound, format!("this host has no lease {lease}"))
        }
        _ => error.into(),
    })
}

/// Whether the lease is this host's, whatever may be sent for it.
///
/// # Errors
/// The refusal of a host that hasn't the lease.
pub(super) async fn check_owner(
    app: &AppState,
    host: HostId,
    lease: LeaseId,
) -> Result<(), ApiError> {
    use ErrorKind::{Forbidden, NotFound, Unauthorized, Unavailable};
    let may = app.shell.request(request::AuthorizeUpload { host, lease, bytes: 0 }).await;
    match may {
        Err(error) if matches!(error.kind, NotFound | Forbidden | Unauthorized | Unavailable) => {
            Err(error)
        }
        // It is the host's: the rest is said where there is something to send.
        Ok(()) | Err(_) => Ok(()),
    }
}
