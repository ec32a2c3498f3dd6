//! Requests of assimilators that are processes of their own.
//!
//! Each reaches the blobs itself. The server passes an offer to the core while it holds the offer's blobs, and after it has
//! found them in the store: a blob may have been deleted since it was published, and the core must not count a missing
//! blob as stored.

use super::{
    App, JsonAnswer, JsonResult,
    auth::{Assimilator, Overseer},
    error::HttpError,
    request_body::Body,
};
use actix_web::web;
use sojourn_core::request;
use sojourn_protocol::{
    assimilation::{
        AssimilationsView, LostRequest, NewVersion, Offer, OfferAnswer, RejectRequest,
        RenewRequest, TakeAnswer, TakeRequest,
    },
    error::{ApiError, ErrorKind},
    ids::LeaseId,
    ranges::{LeadAnswer, LeadRequest, RangeResultRequest},
};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use tracing::Instrument as _;

/// How long a request for a unit is held open at most.
const MAX_WAIT: Duration = Duration::from_secs(20);

/// Takes a unit to assimilate, or a range of a merge that another leads. Held open up to `wait` where there is nothing.
#[utoipa::path(
    post,
    path = "/v1/assimilations",
    operation_id = "takeAssimilation",
    request_body = TakeRequest,
    responses((status = 200, description = "A unit, or none.", body = TakeAnswer)),
    security(("assimilator" = []))
)]
pub(super) async fn take(
    app: App,
    _: Assimilator,
    Body(request): Body<TakeRequest>,
) -> JsonResult<TakeAnswer> {
    let TakeRequest { name, wait, losses } = request;
    let until = Instant::now() + Duration::from_millis(wait.0).min(MAX_WAIT);
    let mut work = app.assimilation.assimilators.subscribe();
    loop {
        // A merge that was begun comes first.
        if let Some(range) = app.assimilation.take_range() {
            app.assimilation.assimilators.heard(&name, 0);
            let trace = app.assimilation.trace(range.unit.lease);
            return Ok(JsonAnswer(TakeAnswer { unit: None, range: Some(range), trace }));
        }
        let unit = app.assimilation.take_unit(losses).await?.map(|unit| *unit);
        app.assimilation.assimilators.heard(&name, u64::from(unit.is_some()));
        // The sender lives as long as the server.
        if unit.is_some() || !matches!(timeout_at(until, work.changed()).await, Ok(Ok(()))) {
            let trace = unit.as_ref().and_then(|unit| app.assimilation.trace(unit.lease));
            return Ok(JsonAnswer(TakeAnswer { unit, range: None, trace }));
        }
    }
}

/// Shares out by ranges what is left of the merge of a unit, and gives what others have done of it. Held open up to
/// `wait` while there is nothing done, and nothing to do for whoever asks.
#[utoipa::path(
    post,
    path = "/v1/assimilations/{lease}/lead",
    operation_id = "leadAssimilation",
    params(("lease" = LeaseId, Path, description = "The unit's lease.")),
    request_body = LeadRequest,
    responses((status = 200, description = "Ranges that are done, and one to do.", body = LeadAnswer)),
    security(("assimilator" = []))
)]
pub(super) async fn lead(
    app: App,
    _: Assimilator,
    lease: web::Path<LeaseId>,
    Body(request): Body<LeadRequest>,
) -> JsonResult<LeadAnswer> {
    if request.unit.lease != *lease {
        return Err(HttpError::new(ErrorKind::Invalid, "the unit is another lease's"));
    }
    Ok(JsonAnswer(app.assimilation.lead(&request).await))
}

/// Gives what came of a range.
#[utoipa::path(
    post,
    path = "/v1/assimilations/{lease}/range",
    operation_id = "rangeMade",
    params(("lease" = LeaseId, Path, description = "The unit's lease.")),
    request_body = RangeResultRequest,
    responses((status = 200, description = "Whether anybody waits for it.", body = OfferAnswer)),
    security(("assimilator" = []))
)]
pub(super) async fn range_made(
    app: App,
    _: Assimilator,
    lease: web::Path<LeaseId>,
    Body(request): Body<RangeResultRequest>,
) -> JsonResult<OfferAnswer> {
    let offer = app.assimilation.range_made(*lease, request);
    Ok(JsonAnswer(OfferAnswer { offer }))
}

/// Says that a unit is still worked at, so that it isn't given to another.
#[utoipa::path(
    post,
    path = "/v1/assimilations/{lease}/renew",
    operation_id = "renewAssimilation",
    params(("lease" = LeaseId, Path, description = "The unit's lease.")),
    request_body = RenewRequest,
    responses((status = 200, description = "Whether the term begins anew.", body = OfferAnswer)),
    security(("assimilator" = []))
)]
pub(super) async fn renew(
    app: App,
    _: Assimilator,
    lease: web::Path<LeaseId>,
    Body(request): Body<RenewRequest>,
) -> JsonResult<OfferAnswer> {
    answer(app.assimilation.renew(*lease, request.claim).await)
}

/// Offers what was made of an upload, whose blobs have been put in the store.
#[utoipa::path(
    post,
    path = "/v1/assimilations/{lease}/assimilated",
    operation_id = "offerAssimilated",
    params(("lease" = LeaseId, Path, description = "The unit's lease.")),
    request_body = NewVersion,
    responses((status = 200, description = "What became of the offer.", body = OfferAnswer)),
    security(("assimilator" = []))
)]
pub(super) async fn assimilated(
    app: App,
    _: Assimilator,
    lease: web::Path<LeaseId>,
    Body(request): Body<NewVersion>,
) -> JsonResult<OfferAnswer> {
    // A task of its own: the holds last until the core has heard the offer, even if the client hangs up.
    let offered = offer_held(app, *lease, request).in_current_span();
    let offered = actix_web::rt::spawn(offered).await;
    offered.map_err(|error| HttpError::fault(&error))?
}

async fn offer_held(app: App, lease: LeaseId, made: NewVersion) -> JsonResult<OfferAnswer> {
    let blobs = app.blobs.store();
    let mut holds = Vec::new();
    // In the same order as assimilators of this process hold them.
    for blob in made.blobs() {
        holds.push(blobs.hold(blob.sha256).await);
    }
    for blob in made.blobs() {
        if blobs.stored_size(blob.sha256).await? != Some(blob.bytes) {
            return Ok(JsonAnswer(OfferAnswer { offer: Offer::Unpublished }));
        }
    }
    let offered = answer(app.assimilation.assimilated(lease, made).await);
    drop(holds);
    offered
}

/// Refuses an upload.
#[utoipa::path(
    post,
    path = "/v1/assimilations/{lease}/rejected",
    operation_id = "offerRejected",
    params(("lease" = LeaseId, Path, description = "The unit's lease.")),
    request_body = RejectRequest,
    responses((status = 200, description = "What became of the refusal.", body = OfferAnswer)),
    security(("assimilator" = []))
)]
pub(super) async fn rejected(
    app: App,
    _: Assimilator,
    lease: web::Path<LeaseId>,
    Body(request): Body<RejectRequest>,
) -> JsonResult<OfferAnswer> {
    let RejectRequest { fault, reason } = request;
    answer(app.assimilation.rejected(*lease, fault, reason).await)
}

/// Says that a blob that a unit needs isn't in the store, or isn't what it was. The server looks itself.
#[utoipa::path(
    post,
    path = "/v1/assimilations/{lease}/lost",
    operation_id = "lostBlob",
    params(("lease" = LeaseId, Path, description = "The unit's lease.")),
    request_body = LostRequest,
    responses((status = 200, description = "Whether it is lost.", body = OfferAnswer)),
    security(("assimilator" = []))
)]
pub(super) async fn lost(
    app: App,
    _: Assimilator,
    _: web::Path<u64>,
    Body(request): Body<LostRequest>,
) -> JsonResult<OfferAnswer> {
    let found = app.blobs.report_missing(request.blob).await;
    let offer = match found.kind {
        ErrorKind::NotFound => Offer::Taken,
        ErrorKind::Unavailable => Offer::Stale,
        _ => return Err(found.into()),
    };
    Ok(JsonAnswer(OfferAnswer { offer }))
}

/// How much there is to assimilate, and who does it.
#[utoipa::path(
    get,
    path = "/v1/assimilations",
    operation_id = "assimilations",
    responses((status = 200, description = "Backlog and assimilators.", body = AssimilationsView)),
    security(("assimilator" = []), ("admin" = []))
)]
pub(super) async fn view(app: App, _: Overseer) -> JsonResult<AssimilationsView> {
    let counts = app.shell.request(request::GetAssimilations {}).await?;
    Ok(JsonAnswer(AssimilationsView {
        waiting: counts.waiting,
        behind: counts.behind,
        taken: counts.taken,
        lag: counts.lag,
        ended: counts.ended,
        per_second: counts.per_second,
        threads: app.assimilation.assimilators.threads(),
        assimilators: app.assimilation.assimilators.view(),
        blobs: app.blobs_url.clone(),
    }))
}

fn answer(offer: Result<Offer, ApiError>) -> JsonResult<OfferAnswer> {
    Ok(JsonAnswer(OfferAnswer { offer: offer? }))
}
