//! Checkpoints that are uploaded as their difference from the lease's base. A delta is received as any upload, and decoded.
//! The checkpoint is then a complete upload as any other.
//!
//! ```text
//!   delta --> spool, as an upload of its own --whole, with base--> checkpoint --> spool, as the lease's
//! ```
//!
//! A delta that can't be used is refused, and the host sends the whole checkpoint.

use super::{
    App, AppState, JsonAnswer, JsonResult,
    auth::Host,
    checkpoints::{authorize, own_lease},
    complete_uploads,
    error::HttpError,
    uploads::{Offset, declared_bytes, declared_digest, drain, number, receive, sha256},
};
use crate::storage_watch::Coming;
use actix_web::{HttpRequest, web};
use sojourn_blobs::{BlobError, UploadError, UploadName};
use sojourn_codec::delta::{self, DeltaError, Head, Named};
use sojourn_core::request;
use sojourn_http::trace::UNITS;
use sojourn_protocol::{
    api::{
        BASE_HEADER, MAX_DELTA_CHECKPOINT, RESULT_BYTES_HEADER, RESULT_SHA256_HEADER, UploadState,
    },
    digest::{BlobRef, Digest},
    error::ErrorKind,
    ids::{HostId, LeaseId},
    quantity::{SaturatingFrom as _, to_usize},
};
use tokio::sync::Semaphore;

/// KiB of checkpoints that are decoded at once. Their bases take as much memory again, and so do deltas and buffers.
static DECODING: Semaphore = Semaphore::const_new(MAX_DECODING_KIB);
const MAX_DECODING_KIB: usize = 256 << 10;

/// The declarations in the headers of a delta's request.
#[derive(Debug, Clone, Copy)]
struct Declared {
    delta: BlobRef,
    base: Digest,
    result: BlobRef,
}

impl Declared {
    fn read(request: &HttpRequest) -> Result<Self, HttpError> {
        Ok(Self {
            delta: BlobRef { sha256: declared_digest(request)?, bytes: declared_bytes(request)? },
            base: sha256(request, BASE_HEADER)?,
            result: BlobRef {
                sha256: sha256(request, RESULT_SHA256_HEADER)?,
                bytes: number(request, RESULT_BYTES_HEADER)?,
            },
        })
    }
}

pub(super) async fn put(
    app: App,
    Host(host): Host,
    lease: web::Path<LeaseId>,
    query: web::Query<Offset>,
    request: HttpRequest,
    mut body: web::Payload,
) -> JsonResult<UploadState> {
    let lease = *lease;
    let declared = match allowed(&app, host, lease, &request).await {
        Ok(declared) => declared,
        Err(error) => {
            drain(&mut body).await;
            return Err(error);
        }
    };
    app.traffic.uploaded();
    let name = UploadName::Delta(lease);
    let state = receive(&app, name, declared.delta, query.offset, &request, body).await?;
    if state.complete {
        // A task of its own: a complete delta is decoded even if the client hangs up.
        let decoded = actix_web::rt::spawn(complete(app.clone(), lease, declared)).await;
        decoded.map_err(|error| HttpError::fault(&error))??;
        complete_uploads::stage(&app, lease, declared.result).await?;
        let bytes = declared.delta.bytes;
        tracing::debug!(target: UNITS, lease = lease.0, host = host.0, bytes, "delta received");
    }
    Ok(JsonAnswer(state))
}

/// The request's declarations, if it can be accepted.
async fn allowed(
    app: &AppState,
    host: HostId,
    lease: LeaseId,
    request: &HttpRequest,
) -> Result<Declared, HttpError> {
    let declared = Declared::read(request)?;
    let Declared { delta, base, result } = declared;
    let bytes = result.bytes;
    authorize(app, host, lease, result).await?;
    if delta.bytes >= bytes || bytes > MAX_DELTA_CHECKPOINT {
        let message = format!("a delta of {} bytes isn't taken for {bytes}", delta.bytes);
        return Err(HttpError::new(ErrorKind::TooLarge, message));
    }
    app.shell.request(request::AuthorizeRead { host, blob: base }).await?;
    let spooled = bytes.saturating_add(delta.bytes);
    app.storage.admit(UploadName::Delta(lease), Coming { spooled, stored: 0 })?;
    match app.blobs.store().size(base).await {
        Ok(Some(size)) if size == bytes => Ok(declared),
        Ok(Some(_)) => Err(HttpError::new(ErrorKind::Conflict, "the base has another size")),
        Ok(None) => Err(gone(base)),
        Err(error) => Err(unread(app, base, error).await),
    }
}

fn gone(base: Digest) -> HttpError {
    let message = format!("the base {} is gone: send the checkpoint whole", base.short());
    HttpError::new(ErrorKind::Conflict, message)
}

async fn unread(app: &AppState, base: Digest, error: BlobError) -> HttpError {
    match error {
        BlobError::Missing(_) | BlobError::Altered { .. } | BlobError::Shortened(_) => {
            app.blobs.report_missing(base).await;
            gone(base)
        }
        error => error.into(),
    }
}

/// Decodes a complete delta to the lease's checkpoint. A delta that can't be used is deleted.
async fn complete(app: App, lease: LeaseId, declared: Declared) -> Result<(), HttpError> {
    let Declared { delta, base, result } = declared;
    let kib = to_usize(result.bytes >> 10).clamp(1, MAX_DECODING_KIB);
    // The semaphore is never closed.
    let _room = DECODING.acquire_many(u32::saturating_from(kib)).await;
    let bytes = match app.blobs.store().bytes(base).await {
        Ok(bytes) => bytes,
        Err(error) => return Err(unread(&app, base, error).await),
    };
    let uploads = app.uploads.clone();
    let made = web::block(move || -> Result<Result<(), DeltaError>, UploadError> {
        if uploads.is_complete(UploadName::Lease(lease), result) {
            // Another request has decoded it.
            return Ok(Ok(()));
        }
        let encoded = uploads.read(UploadName::Delta(lease), delta)?;
        let base = Named { digest: base.0, bytes: &bytes };
        let checkpoint = decode(base, encoded.bytes(), result);
        let checkpoint = match checkpoint {
            Ok(checkpoint) => checkpoint,
            Err(error) => {
                uploads.remove(UploadName::Delta(lease))?;
                return Ok(Err(error));
            }
        };
        uploads.put(UploadName::Lease(lease), result, &checkpoint)?;
        uploads.remove(UploadName::Delta(lease))?;
        Ok(Ok(()))
    });
    made.await??.map_err(|error| {
        let message = format!("the delta can't be used ({error}): send the checkpoint whole");
        HttpError::new(ErrorKind::DigestMismatch, message)
    })
}

/// The checkpoint, which is `result`.
fn decode(base: Named<'_>, encoded: &[u8], result: BlobRef) -> Result<Vec<u8>, DeltaError> {
    if Head::read(encoded)?.result != result.sha256.0 {
        return Err(DeltaError::OtherResult);
    }
    delta::decode(base, encoded, result.bytes)
}

pub(super) async fn state(
    app: App,
    Host(host): Host,
    lease: web::Path<LeaseId>,
) -> JsonResult<UploadState> {
    let lease = *lease;
    own_lease(&app, host, lease).await?;
    let uploads = app.uploads.clone();
    let found = web::block(move || {
        let state = |name| uploads.state(name);
        (state(UploadName::Lease(lease)), state(UploadName::Delta(lease)))
    });
    let nothing = UploadState { offset: 0, complete: false };
    let (whole, state) = match found.await? {
        (Some((blob, state)), _) if state.complete => (Some(blob), state),
        // It may have been received whole and not decoded yet: the next request does that.
        (_, Some((_, state))) => (None, UploadState { complete: false, ..state }),
        (_, None) => (None, nothing),
    };
    let Some(whole) = whole else { return Ok(JsonAnswer(state)) };
    let bytes = whole.bytes;
    app.shell.request(request::AuthorizeUpload { host, lease, bytes }).await?;
    complete_uploads::stage(&app, lease, whole).await?;
    Ok(JsonAnswer(state))
}
