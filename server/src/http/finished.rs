//! Uploads that are whole: in the spool folder, or in the store, where every server and assimilator reads
//! them. What came through this server is put there before anybody hears that it is whole.

use super::{Site, auth::Host, error::HttpError};
use actix_web::web;
use sojourn_blobs::{SignedPut, Staging, UploadName};
use sojourn_core::Command;
use sojourn_protocol::{
    digest::BlobRef,
    direct::{DirectAnswer, DirectRequest},
    ids::LeaseId,
    time::UnixMillis,
};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A URL for somebody else is good for no longer.
const LONGEST: Duration = Duration::from_secs(15 * 60);

/// How long a URL for a host is good: where the host isn't heard of, its leases end as soon.
pub(super) fn term(site: &Site) -> Duration {
    site.lease_term.min(LONGEST)
}

/// Where there is a store, puts a lease's upload there that is whole in the spool folder.
pub(super) async fn stage(
    site: &web::Data<Site>,
    lease: LeaseId,
    blob: BlobRef,
) -> Result<(), HttpError> {
    let Some(staging) = site.staging.clone() else { return Ok(()) };
    let uploads = site.uploads.clone();
    // A task of its own: what has begun goes on in the store, though nobody waits for it any more.
    let staged = actix_web::rt::spawn(async move {
        if staging.is_staged(lease, blob).await? {
            return Ok(());
        }
        let file = web::block(move || uploads.complete(UploadName::Lease(lease), blob)).await??;
        Ok(staging.stage(lease, blob, &file).await?)
    });
    staged.await.map_err(|error| HttpError::fault(&error))?
}

/// Is this upload here, whole, for whoever assimilates it?
pub(super) async fn is_whole(
    site: &web::Data<Site>,
    lease: LeaseId,
    blob: BlobRef,
) -> Result<bool, HttpError> {
    let uploads = site.uploads.clone();
    let spooled = web::block(move || uploads.complete(UploadName::Lease(lease), blob)).await?;
    match (&site.staging, spooled) {
        (_, Ok(_)) => stage(site, lease, blob).await.map(|()| true),
        (Some(staging), Err(_)) => Ok(staging.is_staged(lease, blob).await?),
        (None, Err(_)) => Ok(false),
    }
}

/// Asks for a way to put a lease's checkpoint in the store, past the server.
#[utoipa::path(
    post,
    path = "/v1/leases/{lease}/checkpoint/direct",
    operation_id = "directCheckpoint",
    params(
        ("lease" = LeaseId, Path, description = "The lease."),
    ),
    request_body = DirectRequest,
    responses((status = 200, description = "The way.", body = DirectAnswer)),
    security(("host" = []))
)]
pub(super) async fn direct(
    site: web::Data<Site>,
    Host(host): Host,
    path: web::Path<u64>,
    request: web::Json<DirectRequest>,
) -> Result<web::Json<DirectAnswer>, HttpError> {
    let lease = LeaseId(path.into_inner());
    let DirectRequest { checkpoint } = request.into_inner();
    let bytes = checkpoint.bytes;
    site.shell.call(|to| Command::AuthorizeUpload { to, host, lease, bytes }).await?;
    let Some(staging) = site.staging.as_ref().filter(|staging| staging.takes_uploads()) else {
        return Ok(web::Json(DirectAnswer::Through));
    };
    Ok(web::Json(way(staging, lease, checkpoint, term(&site)).await?))
}

async fn way(
    staging: &Staging,
    lease: LeaseId,
    checkpoint: BlobRef,
    term: Duration,
) -> Result<DirectAnswer, HttpError> {
    if staging.is_staged(lease, checkpoint).await? {
        return Ok(DirectAnswer::There);
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let ends = u64::try_from(now.saturating_add(term).as_millis()).unwrap_or(u64::MAX);
    Ok(match staging.upload_url(lease, checkpoint, term).await? {
        Some(SignedPut { url, headers }) => DirectAnswer::Put {
            url: url.into(),
            headers: headers.into_iter().collect(),
            expires_at: UnixMillis(ends),
        },
        None => DirectAnswer::Through,
    })
}
