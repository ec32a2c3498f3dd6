//! What assimilators ask and offer that are processes of their own.
//!
//! Each reaches the blobs itself. An offer is passed on to the core under the holds of its blobs, once they have been
//! seen in the store: what was published may have been deleted since, and the core must not take for stored what isn't.

use super::{
    Site,
    auth::{Assimilator, Overseer},
    error::HttpError,
    jobs::unexpected,
};
use actix_web::web;
use sojourn_core::{self as core, Answer, Command, MergeOffer, Offered, Query, ReplyTo};
use sojourn_protocol::{
    assimilation::{
        AssimilationsView, Fault, LostRequest, Made, Offer, OfferAnswer, RejectRequest,
        RenewRequest, TakeAnswer, TakeRequest,
    },
    error::ErrorKind,
    ids::LeaseId,
    ranges::{LeadAnswer, LeadRequest, MadeRequest},
};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// A request for a unit is held open for no longer.
const LONGEST_WAIT: Duration = Duration::from_secs(20);

type Answered = Result<web::Json<OfferAnswer>, HttpError>;

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
    site: web::Data<Site>,
    _: Assimilator,
    request: web::Json<TakeRequest>,
) -> Result<web::Json<TakeAnswer>, HttpError> {
    let TakeRequest { name, wait, losses } = request.into_inner();
    let until = Instant::now() + Duration::from_millis(wait.0).min(LONGEST_WAIT);
    let mut bell = site.assimilators.listen();
    loop {
        // What is begun comes first.
        if let Some(range) = site.assimilators.take_range() {
            site.assimilators.heard(&name, 0);
            return Ok(web::Json(TakeAnswer { unit: None, range: Some(range) }));
        }
        let command = |to| Command::TakeAssimilation { to, losses };
        let unit = match site.shell.call(command).await? {
            Answer::Assimilation(unit) => unit.map(|unit| *unit),
            other => return Err(unexpected(&other)),
        };
        site.assimilators.heard(&name, u64::from(unit.is_some()));
        // The bell is never taken down while there is a site.
        if unit.is_some() || !matches!(timeout_at(until, bell.changed()).await, Ok(Ok(()))) {
            return Ok(web::Json(TakeAnswer { unit, range: None }));
        }
    }
}

/// Shares out by ranges what is left of the merge of a unit, and gives what others have done of it. Held open up to
/// `wait` while there is nothing done, and nothing to do for whoever asks.
#[utoipa::path(
    post,
    path = "/v1/assimilations/{lease}/lead",
    operation_id = "leadAssimilation",
    params(
        ("lease" = LeaseId, Path, description = "The unit's lease."),
    ),
    request_body = LeadRequest,
    responses((status = 200, description = "Ranges that are done, and one to do.", body = LeadAnswer)),
    security(("assimilator" = []))
)]
pub(super) async fn lead(
    site: web::Data<Site>,
    _: Assimilator,
    path: web::Path<u64>,
    request: web::Json<LeadRequest>,
) -> Result<web::Json<LeadAnswer>, HttpError> {
    if request.unit.lease != LeaseId(path.into_inner()) {
        return Err(HttpError::new(ErrorKind::Invalid, "the unit is another lease's"));
    }
    Ok(web::Json(site.assimilators.lead(&request).await))
}

/// Gives what came of a range.
#[utoipa::path(
    post,
    path = "/v1/assimilations/{lease}/range",
    operation_id = "rangeMade",
    params(
        ("lease" = LeaseId, Path, description = "The unit's lease."),
    ),
    request_body = MadeRequest,
    responses((status = 200, description = "Whether anybody waits for it.", body = OfferAnswer)),
    security(("assimilator" = []))
)]
pub(super) async fn range_made(
    site: web::Data<Site>,
    _: Assimilator,
    path: web::Path<u64>,
    request: web::Json<MadeRequest>,
) -> Answered {
    let offer = site.assimilators.range_made(LeaseId(path.into_inner()), request.into_inner());
    Ok(web::Json(OfferAnswer { offer }))
}

/// Says that a unit is still worked at, so that it isn't given to another.
#[utoipa::path(
    post,
    path = "/v1/assimilations/{lease}/renew",
    operation_id = "renewAssimilation",
    params(
        ("lease" = LeaseId, Path, description = "The unit's lease."),
    ),
    request_body = RenewRequest,
    responses((status = 200, description = "Whether the term begins anew.", body = OfferAnswer)),
    security(("assimilator" = []))
)]
pub(super) async fn renew(
    site: web::Data<Site>,
    _: Assimilator,
    path: web::Path<u64>,
    request: web::Json<RenewRequest>,
) -> Answered {
    let (lease, taking) = (LeaseId(path.into_inner()), request.taking);
    offer(&site, |to| Command::RenewAssimilation { to, lease, taking }).await
}

/// Offers what was made of an upload, whose blobs have been put in the store.
#[utoipa::path(
    post,
    path = "/v1/assimilations/{lease}/assimilated",
    operation_id = "offerAssimilated",
    params(
        ("lease" = LeaseId, Path, description = "The unit's lease."),
    ),
    request_body = Made,
    responses((status = 200, description = "What became of the offer.", body = OfferAnswer)),
    security(("assimilator" = []))
)]
pub(super) async fn assimilated(
    site: web::Data<Site>,
    _: Assimilator,
    path: web::Path<u64>,
    request: web::Json<Made>,
) -> Answered {
    let (lease, made) = (LeaseId(path.into_inner()), request.into_inner());
    // A task of its own: the holds last until the core has heard the offer, though nobody waits for it any more.
    let offered = actix_web::rt::spawn(offer_held(site, lease, made)).await;
    offered.map_err(|error| HttpError::fault(&error))?
}

async fn offer_held(site: web::Data<Site>, lease: LeaseId, made: Made) -> Answered {
    let blobs = site.keeper.blobs();
    let mut holds = Vec::new();
    // In the order in which whoever merges in this process holds them.
    for blob in made.blobs() {
        holds.push(blobs.hold(blob.sha256).await);
    }
    for blob in made.blobs() {
        if blobs.stored_size(blob.sha256).await? != Some(blob.bytes) {
            return Ok(web::Json(OfferAnswer { offer: Offer::Unpublished }));
        }
    }
    let Made { version, checkpoint, merged } = made;
    let merged = merged.map(|merged| MergeOffer {
        state: merged.state,
        flush: merged.flush,
        in_flight: merged.in_flight,
    });
    let command = |to| Command::OfferAssimilated { to, lease, version, checkpoint, merged };
    let offered = offer(&site, command).await;
    drop(holds);
    offered
}

/// Refuses an upload.
#[utoipa::path(
    post,
    path = "/v1/assimilations/{lease}/rejected",
    operation_id = "offerRejected",
    params(
        ("lease" = LeaseId, Path, description = "The unit's lease."),
    ),
    request_body = RejectRequest,
    responses((status = 200, description = "What became of the refusal.", body = OfferAnswer)),
    security(("assimilator" = []))
)]
pub(super) async fn rejected(
    site: web::Data<Site>,
    _: Assimilator,
    path: web::Path<u64>,
    request: web::Json<RejectRequest>,
) -> Answered {
    let (lease, RejectRequest { fault, reason }) =
        (LeaseId(path.into_inner()), request.into_inner());
    let fault = match fault {
        Fault::Host => core::Fault::Host,
        Fault::Server => core::Fault::Server,
    };
    offer(&site, |to| Command::OfferRejected { to, lease, reason, fault }).await
}

/// Says that a blob that a unit needs isn't in the store, or isn't what it was. The server looks itself.
#[utoipa::path(
    post,
    path = "/v1/assimilations/{lease}/lost",
    operation_id = "lostBlob",
    params(
        ("lease" = LeaseId, Path, description = "The unit's lease."),
    ),
    request_body = LostRequest,
    responses((status = 200, description = "Whether it is lost.", body = OfferAnswer)),
    security(("assimilator" = []))
)]
pub(super) async fn lost(
    site: web::Data<Site>,
    _: Assimilator,
    _: web::Path<u64>,
    request: web::Json<LostRequest>,
) -> Answered {
    let found = site.keeper.missed(request.blob).await;
    let offer = match found.kind {
        ErrorKind::NotFound => Offer::Taken,
        ErrorKind::Unavailable => Offer::Stale,
        _ => return Err(found.into()),
    };
    Ok(web::Json(OfferAnswer { offer }))
}

/// How much there is to assimilate, and who does it.
#[utoipa::path(
    get,
    path = "/v1/assimilations",
    operation_id = "assimilations",
    responses((status = 200, description = "Backlog and assimilators.", body = AssimilationsView)),
    security(("assimilator" = []), ("admin" = []))
)]
pub(super) async fn view(
    site: web::Data<Site>,
    _: Overseer,
) -> Result<web::Json<AssimilationsView>, HttpError> {
    match site.shell.call(|to| Command::Query { to, query: Query::Assimilations }).await? {
        Answer::Assimilations(counts) => Ok(web::Json(AssimilationsView {
            waiting: counts.waiting,
            behind: counts.behind,
            taken: counts.taken,
            lag: counts.lag,
            ended: counts.ended,
            per_second: counts.per_second,
            threads: site.assimilators.threads(),
            assimilators: site.assimilators.view(),
            blobs: site.blobs_url.clone(),
        })),
        other => Err(unexpected(&other)),
    }
}

async fn offer(site: &Site, command: impl FnOnce(ReplyTo) -> Command) -> Answered {
    let offer = match site.shell.call(command).await? {
        Answer::Offered(Offered::Taken) => Offer::Taken,
        Answer::Offered(Offered::Stale) => Offer::Stale,
        other => return Err(unexpected(&other)),
    };
    Ok(web::Json(OfferAnswer { offer }))
}
