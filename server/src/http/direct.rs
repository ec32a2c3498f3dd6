//! URLs of the object store, with which hosts reach it themselves.

use super::{
    App, AppState, JsonAnswer, JsonResult, auth::Host, checkpoints::authorize, error::HttpError,
    request_body::Body,
};
use actix_web::web;
use sojourn_blobs::{SignedPut, Staging};
use sojourn_protocol::{
    digest::BlobRef,
    direct::{DirectAnswer, DirectRequest},
    ids::LeaseId,
    quantity::SaturatingFrom as _,
    time::UnixMillis,
};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A signed URL is valid for at most so long.
const MAX_URL_TERM: Duration = Duration::from_secs(15 * 60);

/// How long a URL for a host is valid: no longer than the host's leases live without a heartbeat.
pub(super) fn url_term(app: &AppState) -> Duration {
    app.lease_term.min(MAX_URL_TERM)
}

pub(super) async fn direct(
    app: App,
    Host(host): Host,
    lease: web::Path<LeaseId>,
    Body(request): Body<DirectRequest>,
) -> JsonResult<DirectAnswer> {
    let (lease, checkpoint) = (*lease, request.checkpoint);
    authorize(&app, host, lease, checkpoint).await?;
    let Some(staging) = app.staging.as_ref().filter(|staging| staging.takes_uploads()) else {
        return Ok(JsonAnswer(DirectAnswer::Through));
    };
    Ok(JsonAnswer(upload_route(staging, lease, checkpoint, url_term(&app)).await?))
}

async fn upload_route(
    staging: &Staging,
    lease: LeaseId,
    checkpoint: BlobRef,
    term: Duration,
) -> Result<DirectAnswer, HttpError> {
    if staging.is_staged(lease, checkpoint).await? {
        return Ok(DirectAnswer::There);
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let ends = u64::saturating_from(now.saturating_add(term).as_millis());
    Ok(match staging.upload_url(lease, checkpoint, term).await? {
        Some(SignedPut { url, headers }) => DirectAnswer::Put {
            url: url.into(),
            headers: headers.into_iter().collect(),
            expires_at: UnixMillis(ends),
        },
        None => DirectAnswer::Through,
    })
}
