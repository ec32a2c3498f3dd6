//! Every address of the API and the handler that answers it. A request's rights are checked by the resource that the router chose
//! for it.

use super::{
    assimilations, auth, blobs, body_limits::body_limit, changes, checkpoints, deltas, direct,
    error::HttpError, events, failures, health, hosts, jobs, machines, metrics, openapi, page,
    programs, searches, shares, tokens, traffic, trials, work,
};
use actix_web::{
    Error, Resource,
    body::BoxBody,
    dev::{ServiceFactory, ServiceRequest, ServiceResponse},
    middleware::{Compress, Next, from_fn},
    web::{self, FormConfig, JsonConfig, PathConfig, QueryConfig, ServiceConfig},
};
use sojourn_protocol::{error::ErrorKind, text::plain_line};

/// Characters of a wrong address that an answer repeats.
const MAX_PATH_CHARS: usize = 200;

fn json(limit: usize) -> JsonConfig {
    JsonConfig::default()
        .limit(limit)
        .content_type_required(false)
        .error_handler(|error, _| HttpError::json(&error).into())
}

/// An address that some callers may ask: those that the table of rights has for this pattern.
fn resource(
    pattern: &'static str,
) -> Resource<
    impl ServiceFactory<
        ServiceRequest,
        Config = (),
        Response = ServiceResponse<BoxBody>,
        Error = Error,
        InitError = (),
    >,
> {
    let resource = web::resource(pattern).app_data(json(body_limit(pattern)));
    resource.wrap(from_fn(move |request: ServiceRequest, next: Next<BoxBody>| {
        auth::authorize(pattern, request, next)
    }))
}

/// An address that anybody may ask.
fn open_resource(pattern: &'static str) -> Resource {
    web::resource(pattern)
}

/// All routes.
pub(crate) fn routes(service: &mut ServiceConfig) {
    let path = PathConfig::default().error_handler(|_, request| {
        let (pattern, path) = (request.match_pattern(), plain_line(request.path(), MAX_PATH_CHARS));
        let pattern = pattern.unwrap_or_default();
        let message = format!("`{path}` isn't of the form `{pattern}`: ids are whole numbers");
        HttpError::new(ErrorKind::Invalid, message).into()
    });
    let query = QueryConfig::default()
        .error_handler(|error, _| HttpError::new(ErrorKind::Invalid, error.to_string()).into());
    service
        .app_data(path)
        .app_data(query)
        .service(open_resource("/v1/openapi.json").route(web::get().to(openapi::document_route)))
        .service(
            open_resource("/v1/docs").route(web::get().to(openapi::docs)).wrap(Compress::default()),
        )
        .service(open_resource("/v1/health").route(web::get().to(health::health)))
        .service(resource("/v1/enrol").route(web::post().to(hosts::enrol)))
        .service(resource("/v1/work").route(web::post().to(work::work)))
        .service(resource("/v1/heartbeat").route(web::post().to(work::heartbeat)))
        .service(resource("/v1/release").route(web::post().to(work::release)))
        .service(resource("/v1/results").route(web::post().to(work::report)))
        .service(
            resource("/v1/leases/{lease}/checkpoint")
                .route(web::put().to(checkpoints::put_checkpoint))
                .route(web::get().to(checkpoints::checkpoint_state)),
        )
        .service(
            resource("/v1/leases/{lease}/checkpoint/delta")
                .route(web::put().to(deltas::put))
                .route(web::get().to(deltas::state)),
        )
        .service(
            resource("/v1/leases/{lease}/checkpoint/direct").route(web::post().to(direct::direct)),
        )
        .service(resource("/v1/blobs/missing").route(web::post().to(blobs::missing)))
        .service(resource("/v1/blobs/collect").route(web::post().to(blobs::collect)))
        .service(
            resource("/v1/blobs/{sha256}")
                .route(web::get().to(blobs::get))
                .route(web::put().to(blobs::put)),
        )
        .service(resource("/v1/uploads/{sha256}").route(web::get().to(blobs::upload_state)))
        .service(
            resource("/v1/jobs")
                .route(web::post().to(jobs::submit))
                .route(web::get().to(jobs::all)),
        )
        // Before the addresses of single jobs, of which it has the form.
        .service(resource("/v1/jobs/delete").route(web::post().to(jobs::delete)))
        .service(resource("/v1/jobs/{job}").route(web::get().to(jobs::one)))
        .service(resource("/v1/jobs/{job}/cancel").route(web::post().to(jobs::cancel)))
        .service(resource("/v1/jobs/{job}/pause").route(web::post().to(jobs::pause)))
        .service(resource("/v1/jobs/{job}/resume").route(web::post().to(jobs::resume)))
        .service(resource("/v1/jobs/{job}/extend").route(web::post().to(jobs::extend)))
        .service(
            resource("/v1/jobs/{job}/search")
                .route(web::get().to(searches::one))
                .route(web::post().to(searches::change))
                // The charts of a job's page are drawn from it.
                .wrap(Compress::default()),
        )
        .service(resource("/v1/jobs/{job}/placement").route(web::post().to(jobs::place)))
        .service(resource("/v1/jobs/{job}/note").route(web::post().to(jobs::note)))
        .service(resource("/v1/jobs/{job}/rollback").route(web::post().to(jobs::rollback)))
        .service(
            resource("/v1/jobs/{job}/shares")
                .route(web::get().to(shares::all))
                .route(web::post().to(shares::create)),
        )
        .service(
            resource("/v1/jobs/{job}/shares/{token}/revoke").route(web::post().to(shares::revoke)),
        )
        .service(resource("/v1/jobs/{job}/trials").route(web::get().to(trials::trials)))
        .service(resource("/v1/jobs/{job}/hops").route(web::get().to(trials::hops)))
        .service(resource("/v1/jobs/{job}/events").route(web::get().to(events::events)))
        .service(
            resource("/v1/jobs/{job}/trials/{trial}/history").route(web::get().to(trials::history)),
        )
        .service(
            resource("/v1/jobs/{job}/trials/{trial}/evaluate")
                .route(web::post().to(trials::evaluate)),
        )
        .service(
            resource("/v1/jobs/{job}/trials/{trial}/evaluations")
                .route(web::get().to(trials::evaluations)),
        )
        .service(
            resource("/v1/assimilations")
                .route(web::get().to(assimilations::view))
                .route(web::post().to(assimilations::take)),
        )
        .service(
            resource("/v1/assimilations/{lease}/renew").route(web::post().to(assimilations::renew)),
        )
        .service(
            resource("/v1/assimilations/{lease}/lead").route(web::post().to(assimilations::lead)),
        )
        .service(
            resource("/v1/assimilations/{lease}/range")
                .route(web::post().to(assimilations::range_made)),
        )
        .service(
            resource("/v1/assimilations/{lease}/assimilated")
                .route(web::post().to(assimilations::assimilated)),
        )
        .service(
            resource("/v1/assimilations/{lease}/rejected")
                .route(web::post().to(assimilations::rejected)),
        )
        .service(
            resource("/v1/assimilations/{lease}/lost").route(web::post().to(assimilations::lost)),
        )
        .service(resource("/").route(web::get().to(page::pages::jobs)).wrap(Compress::default()))
        .service(
            resource("/compare")
                .route(web::get().to(page::pages::compare))
                .wrap(Compress::default()),
        )
        .service(
            resource("/hosts").route(web::get().to(page::pages::hosts)).wrap(Compress::default()),
        )
        .service(
            resource("/hosts/{host}")
                .route(web::get().to(page::host::host))
                .route(web::post().to(page::host::act))
                .wrap(Compress::default()),
        )
        .service(
            resource("/failures")
                .route(web::get().to(page::host::failures))
                .wrap(Compress::default()),
        )
        // Before the addresses of single jobs, of which it has the form.
        .service(
            resource("/jobs/new")
                .app_data(FormConfig::default().limit(page::new_job::MAX_FORM))
                .route(web::get().to(page::new_job::show))
                .route(web::post().to(page::new_job::submit)),
        )
        .service(resource("/jobs/new/data").route(web::post().to(page::new_data::begin)))
        .service(
            resource("/jobs/new/data/{upload}")
                .app_data(FormConfig::default().limit(page::new_job::MAX_FORM))
                .route(web::put().to(page::new_data::file))
                .route(web::post().to(page::new_data::submit))
                .route(web::get().to(page::new_data::show))
                .route(web::delete().to(page::new_data::abort)),
        )
        .service(
            resource("/jobs/{job}")
                .route(web::get().to(page::pages::job))
                .route(web::post().to(page::actions::act))
                .wrap(Compress::default()),
        )
        .service(
            open_resource("/share")
                .route(web::get().to(page::shared::show))
                .route(web::post().to(page::shared::open)),
        )
        .service(
            resource("/share/{job}")
                .route(web::get().to(page::shared::job))
                .wrap(Compress::default()),
        )
        .service(
            resource("/share/{job}/search")
                .route(web::get().to(page::shared::search))
                .wrap(Compress::default()),
        )
        .service(resource("/share/{job}/changes").route(web::get().to(page::shared::changes)))
        .service(
            open_resource("/sign-in")
                .route(web::get().to(page::sign_in::show))
                .route(web::post().to(page::sign_in::begin)),
        )
        .service(open_resource("/sign-out").route(web::post().to(page::sign_in::end)))
        .service(
            open_resource("/assets/{name}")
                .route(web::get().to(page::pages::asset))
                .wrap(Compress::default()),
        )
        .service(resource("/v1/changes").route(web::get().to(changes::changes)))
        .service(resource("/metrics").route(web::get().to(metrics::metrics)))
        .service(resource("/v1/traffic").route(web::get().to(traffic::traffic)))
        .service(resource("/v1/demand").route(web::get().to(machines::demand)))
        .service(resource("/v1/costs").route(web::get().to(machines::costs)))
        .service(resource("/v1/speeds").route(web::get().to(machines::speeds)))
        .service(resource("/v1/machines").route(web::post().to(machines::report)))
        .service(resource("/v1/machines/drain").route(web::post().to(machines::drain)))
        .service(resource("/v1/leader").route(web::post().to(machines::lead)))
        .service(open_resource("/v1/programs").route(web::get().to(programs::all)))
        .service(open_resource("/v1/programs/{sha256}").route(web::get().to(programs::one)))
        .service(resource("/v1/hosts").route(web::get().to(hosts::all)))
        .service(resource("/v1/failures").route(web::get().to(failures::all)))
        .service(resource("/v1/hosts/{host}").route(web::get().to(hosts::one)))
        .service(resource("/v1/hosts/{host}/block").route(web::post().to(hosts::block)))
        .service(resource("/v1/hosts/{host}/unblock").route(web::post().to(hosts::unblock)))
        .service(resource("/v1/hosts/{host}/forget").route(web::post().to(hosts::forget)))
        .service(resource("/v1/hosts/{host}/revoke").route(web::post().to(hosts::revoke)))
        .service(
            resource("/v1/tokens")
                .route(web::post().to(tokens::create))
                .route(web::get().to(tokens::all)),
        )
        .service(resource("/v1/tokens/{token}/revoke").route(web::post().to(tokens::revoke)))
        .service(resource("/v1/tokens/{token}/quotas").route(web::post().to(tokens::set_quotas)))
        .service(resource("/v1/tokens/{token}/rotate").route(web::post().to(tokens::rotate)))
        .service(
            resource("/v1/tokens/server/{which}/rotate").route(web::post().to(tokens::rotate_own)),
        )
        .default_service(web::to(|| async {
            Err::<String, _>(HttpError::new(
                ErrorKind::NotFound,
                "there is nothing at this address",
            ))
        }));
}
