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

pub(super) async fn range_made(
    app: App,
    _: Assimilator,
    lease: web::Path<LeaseId>,
    Body(request): Body<RangeResultRequest>,
) -> JsonResult<OfferAnswer> {
    let offer = app.assimilation.range_made(*lease, request);
    Ok(JsonAnswer(OfferAnswer { offer }))
}

pub(super) async fn renew(
    app: App,
    _: Assimilator,
    lease: web::Path<LeaseId>,
    Body(request): Body<RenewRequest>,
) -> JsonResult<OfferAnswer> {
    answer(app.assimilation.renew(*lease, request.claim).await)
}

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

pub(super) async fn rejected(
    app: App,
    _: Assimilator,
    lease: web::Path<LeaseId>,
    Body(request): Body<RejectRequest>,
) -> JsonResult<OfferAnswer> {
    let RejectRequest { fault, reason } = request;
    answer(app.assimilation.rejected(*lease, fault, reason).await)
}

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
