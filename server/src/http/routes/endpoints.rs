//! The handler of each endpoint. The table of endpoints (`sojourn-api`) says the rest: address, method, callers, bounds.

use super::resource;
use crate::http::{
    assimilations, blobs, changes, checkpoints, deltas, direct, error::HttpError, events, failures,
    health, hosts, jobs, json_answer::JsonAnswer, machines, metrics, openapi, page_links, programs,
    searches, tokens, traffic, trials, work,
};
use actix_web::{
    FromRequest, Handler, HttpResponse, Resource, Responder, Route,
    middleware::{Compress, Condition},
    web::{self, JsonConfig, ServiceConfig},
};
use sojourn_api::{Callers, Endpoint, Method, Operation, Raw, endpoints};
use std::collections::BTreeMap;

/// Addresses whose answers are compressed: the document as a page, and the search of which a job's charts are drawn.
const COMPRESSED: [&str; 2] =
    [endpoints::Docs::OPERATION.pattern, endpoints::Search::OPERATION.pattern];

/// An output of a handler that answers an endpoint.
trait Answers<E: Endpoint>: Responder + 'static {}

impl<E: Endpoint<Answer = T>, T> Answers<E> for JsonAnswer<T> where Self: Responder + 'static {}
impl<E: Endpoint<Answer = T>, T> Answers<E> for Result<JsonAnswer<T>, HttpError> where
    JsonAnswer<T>: Responder + 'static
{
}
impl<E: Endpoint<Answer = Raw>> Answers<E> for HttpResponse {}
impl<E: Endpoint<Answer = Raw>> Answers<E> for Result<HttpResponse, HttpError> {}

/// Handlers by the addresses of their endpoints, in the order in which the router compares a request with them, one by one.
#[derive(Default)]
struct Handlers(BTreeMap<Place, Vec<(Operation, Route)>>);

/// An address comes before those of whose form it is, and those that are compared most come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    /// Addresses without come first. They cost one comparison of words.
    has_parameters: bool,
    /// Addresses that hosts ask come first: most requests are theirs.
    is_for_others: bool,
    pattern: &'static str,
}

impl Place {
    fn of(operation: &Operation) -> Self {
        let is_for_hosts = matches!(operation.callers, Callers::Hosts | Callers::HostsAndUsers(_));
        Self {
            has_parameters: operation.pattern.contains('{'),
            is_for_others: !is_for_hosts,
            pattern: operation.pattern,
        }
    }
}

impl Handlers {
    /// The same with a handler of one more endpoint.
    fn on<E, F, Args>(mut self, _: E, handler: F) -> Self
    where
        E: Endpoint,
        F: Handler<Args>,
        F::Output: Answers<E>,
        Args: FromRequest + 'static,
    {
        let operation = E::OPERATION;
        let route = match operation.method {
            Method::GET => web::get(),
            Method::POST => web::post(),
            Method::PUT => web::put(),
        };
        self.0.entry(Place::of(&operation)).or_default().push((operation, route.to(handler)));
        self
    }

    /// By address. One address may have methods for several callers: it is where the first of them is.
    fn by_pattern(self) -> Vec<(&'static str, Vec<(Operation, Route)>)> {
        let mut addresses: Vec<(&'static str, Vec<(Operation, Route)>)> = Vec::new();
        for (Place { pattern, .. }, handlers) in self.0 {
            match addresses.iter_mut().find(|(of, _)| *of == pattern) {
                Some((_, known)) => known.extend(handlers),
                None => addresses.push((pattern, handlers)),
            }
        }
        addresses
    }
}

fn json(limit: usize) -> JsonConfig {
    JsonConfig::default()
        .limit(limit)
        .content_type_required(false)
        .error_handler(|error, _| HttpError::json(&error).into())
}

/// The routes of all endpoints.
pub(super) fn routes(service: &mut ServiceConfig) {
    for (pattern, handlers) in handlers().by_pattern() {
        let limit =
            handlers.iter().map(|(operation, _)| operation.max_body).max().unwrap_or_default();
        let is_open = handlers.iter().all(|(operation, _)| operation.callers == Callers::Anyone);
        let compress = || Condition::new(COMPRESSED.contains(&pattern), Compress::default());
        let handlers = handlers.into_iter().map(|(_, route)| route);
        if is_open {
            let open = web::resource(pattern).app_data(json(limit));
            service.service(handlers.fold(open, Resource::route).wrap(compress()));
        } else {
            let checked = resource(pattern).app_data(json(limit));
            service.service(handlers.fold(checked, Resource::route).wrap(compress()));
        }
    }
}

fn handlers() -> Handlers {
    Handlers::default()
        .on(endpoints::Metrics, metrics::metrics)
        .on(endpoints::Assimilations, assimilations::view)
        .on(endpoints::TakeAssimilation, assimilations::take)
        .on(endpoints::OfferAssimilated, assimilations::assimilated)
        .on(endpoints::LeadAssimilation, assimilations::lead)
        .on(endpoints::LostBlob, assimilations::lost)
        .on(endpoints::RangeMade, assimilations::range_made)
        .on(endpoints::OfferRejected, assimilations::rejected)
        .on(endpoints::RenewAssimilation, assimilations::renew)
        .on(endpoints::CollectBlobs, blobs::collect)
        .on(endpoints::MissingBlobs, blobs::missing)
        .on(endpoints::Blob, blobs::get)
        .on(endpoints::PutBlob, blobs::put)
        .on(endpoints::Changes, changes::changes)
        .on(endpoints::Costs, machines::costs)
        .on(endpoints::Demand, machines::demand)
        .on(endpoints::Docs, openapi::docs)
        .on(endpoints::Enrol, hosts::enrol)
        .on(endpoints::Failures, failures::all)
        .on(endpoints::Health, health::health)
        .on(endpoints::Heartbeat, work::heartbeat)
        .on(endpoints::Hosts, hosts::all)
        .on(endpoints::Host, hosts::one)
        .on(endpoints::BlockHost, hosts::block)
        .on(endpoints::ForgetHost, hosts::forget)
        .on(endpoints::RevokeHost, hosts::revoke)
        .on(endpoints::UnblockHost, hosts::unblock)
        .on(endpoints::Jobs, jobs::all)
        .on(endpoints::SubmitJob, jobs::submit)
        .on(endpoints::DeleteJobs, jobs::delete)
        .on(endpoints::Job, jobs::one)
        .on(endpoints::CancelJob, jobs::cancel)
        .on(endpoints::Events, events::events)
        .on(endpoints::ExtendJob, jobs::extend)
        .on(endpoints::Hops, trials::hops)
        .on(endpoints::NoteJob, jobs::note)
        .on(endpoints::PauseJob, jobs::pause)
        .on(endpoints::PlaceJob, jobs::place)
        .on(endpoints::ResumeJob, jobs::resume)
        .on(endpoints::RollbackJob, jobs::rollback)
        .on(endpoints::ChangeSearch, searches::change)
        .on(endpoints::Search, searches::one)
        .on(endpoints::ShareJob, page_links::create)
        .on(endpoints::Shares, page_links::all)
        .on(endpoints::RevokeShare, page_links::revoke)
        .on(endpoints::Trials, trials::trials)
        .on(endpoints::Evaluate, trials::evaluate)
        .on(endpoints::Evaluations, trials::evaluations)
        .on(endpoints::History, trials::history)
        .on(endpoints::Lead, machines::lead)
        .on(endpoints::CheckpointState, checkpoints::checkpoint_state)
        .on(endpoints::PutCheckpoint, checkpoints::put_checkpoint)
        .on(endpoints::DeltaState, deltas::state)
        .on(endpoints::PutDelta, deltas::put)
        .on(endpoints::DirectCheckpoint, direct::direct)
        .on(endpoints::ReportMachines, machines::report)
        .on(endpoints::DrainMachines, machines::drain)
        .on(endpoints::Openapi, openapi::document)
        .on(endpoints::Programs, programs::all)
        .on(endpoints::Program, programs::one)
        .on(endpoints::Release, work::release)
        .on(endpoints::Report, work::report)
        .on(endpoints::Speeds, machines::speeds)
        .on(endpoints::CreateToken, tokens::create)
        .on(endpoints::Tokens, tokens::all)
        .on(endpoints::RotateServerToken, tokens::rotate_own)
        .on(endpoints::SetQuotas, tokens::set_quotas)
        .on(endpoints::RevokeToken, tokens::revoke)
        .on(endpoints::RotateToken, tokens::rotate)
        .on(endpoints::Traffic, traffic::traffic)
        .on(endpoints::UploadState, blobs::upload_state)
        .on(endpoints::Work, work::work)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_endpoint_has_one_handler() {
        let handled: Vec<&str> =
            handlers().0.into_values().flatten().map(|(operation, _)| operation.name).collect();
        let all: BTreeSet<&str> = endpoints::all().map(|operation| operation.name).collect();
        assert_eq!(handled.len(), endpoints::all().count());
        assert_eq!(BTreeSet::from_iter(handled), all);
    }

    /// The router takes the first address that fits.
    #[test]
    fn no_address_is_of_the_form_of_an_earlier_one() {
        let fits = |pattern: &str, path: &str| {
            let (of, parts) = (pattern.split('/'), path.split('/'));
            of.clone().count() == parts.clone().count()
                && of.zip(parts).all(|(of, part)| of.starts_with('{') || of == part)
        };
        let addresses = handlers().by_pattern();
        for (n, (path, _)) in addresses.iter().enumerate() {
            let earlier = addresses.iter().take(n).map(|(pattern, _)| pattern);
            let taken: Vec<_> = earlier.filter(|pattern| fits(pattern, path)).collect();
            assert!(taken.is_empty(), "{path} is never asked, for {taken:?}");
        }
    }
}
