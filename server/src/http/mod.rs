//! The API of [`sojourn_protocol::api`] over HTTP: who is it, may they, then a command to the core
//! or bytes to and from disk. It decides nothing itself.

mod assimilations;
mod auth;
mod blobs;
mod bytes;
mod deltas;
mod error;
mod finished;
mod hosts;
mod jobs;
mod known;
pub(crate) mod openapi;
mod protocol;
mod traffic;

pub(crate) use auth::Tokens;
pub(crate) use known::KnownHosts;
pub(crate) use traffic::Traffic;

use crate::{assimilators::Assimilators, keeper::Keeper, shell::ShellHandle};
use actix_web::web::{self, JsonConfig, PathConfig, QueryConfig, ServiceConfig};
use error::HttpError;
use sojourn_blobs::{Staging, Uploads};
use sojourn_protocol::error::ErrorKind;
use std::{sync::Arc, time::Duration};

/// Bodies that grow with a job's shards or a host's cache: a job's manifest, the blobs that a submission
/// asks after, what a host has in its cache.
const JOB_LIMIT: usize = 16 << 20;
/// All other JSON bodies.
const JSON_LIMIT: usize = 1 << 20;

/// What every handler can reach.
#[derive(Debug, Clone)]
pub(crate) struct Site {
    pub(crate) shell: ShellHandle,
    pub(crate) keeper: Keeper,
    pub(crate) uploads: Uploads,
    /// Where whole uploads are for all who assimilate; `None` where the spool folder is all.
    pub(crate) staging: Option<Staging>,
    /// A host that isn't heard of for so long loses its leases.
    pub(crate) lease_term: Duration,
    pub(crate) tokens: Tokens,
    pub(crate) known: Arc<KnownHosts>,
    pub(crate) traffic: Arc<Traffic>,
    pub(crate) assimilators: Arc<Assimilators>,
    /// Where the blobs are that assimilators of their own processes reach, without what is secret of it; `None` where
    /// only this process does.
    pub(crate) blobs_url: Option<String>,
    /// There is a trainer for whoever assimilates: on this machine, or, where others do that, theirs.
    pub(crate) has_trainer: bool,
}

pub(crate) use protocol::check as protocol;

fn json(limit: usize) -> JsonConfig {
    JsonConfig::default()
        .limit(limit)
        .content_type_required(false)
        .error_handler(|error, _| HttpError::json(&error).into())
}

/// All routes.
pub(crate) fn routes(service: &mut ServiceConfig) {
    let path = PathConfig::default()
        .error_handler(|error, _| HttpError::new(ErrorKind::Invalid, error.to_string()).into());
    let query = QueryConfig::default()
        .error_handler(|error, _| HttpError::new(ErrorKind::Invalid, error.to_string()).into());
    let resource = web::resource::<&str>;
    service
        .app_data(json(JSON_LIMIT))
        .app_data(path)
        .app_data(query)
        .service(resource("/v1/openapi.json").route(web::get().to(openapi::document_route)))
        .service(resource("/v1/health").route(web::get().to(jobs::health)))
        .service(resource("/v1/enrol").route(web::post().to(hosts::enrol)))
        .service(resource("/v1/work").app_data(json(JOB_LIMIT)).route(web::post().to(hosts::work)))
        .service(resource("/v1/heartbeat").route(web::post().to(hosts::heartbeat)))
        .service(resource("/v1/release").route(web::post().to(hosts::release)))
        .service(resource("/v1/results").route(web::post().to(hosts::report)))
        .service(
            resource("/v1/leases/{lease}/checkpoint")
                .route(web::put().to(hosts::put_checkpoint))
                .route(web::get().to(hosts::checkpoint_state)),
        )
        .service(
            resource("/v1/leases/{lease}/checkpoint/delta")
                .route(web::put().to(deltas::put))
                .route(web::get().to(deltas::state)),
        )
        .service(
            resource("/v1/leases/{lease}/checkpoint/direct")
                .route(web::post().to(finished::direct)),
        )
        .service(
            resource("/v1/blobs/missing")
                .app_data(json(JOB_LIMIT))
                .route(web::post().to(blobs::missing)),
        )
        .service(resource("/v1/blobs/collect").route(web::post().to(blobs::collect)))
        .service(
            resource("/v1/blobs/{sha256}")
                .route(web::get().to(blobs::get))
                .route(web::put().to(blobs::put)),
        )
        .service(resource("/v1/uploads/{sha256}").route(web::get().to(blobs::upload_state)))
        .service(
            resource("/v1/jobs")
                .app_data(json(JOB_LIMIT))
                .route(web::post().to(jobs::submit))
                .route(web::get().to(jobs::all)),
        )
        .service(resource("/v1/jobs/{job}").route(web::get().to(jobs::one)))
        .service(resource("/v1/jobs/{job}/cancel").route(web::post().to(jobs::cancel)))
        .service(resource("/v1/jobs/{job}/pause").route(web::post().to(jobs::pause)))
        .service(resource("/v1/jobs/{job}/resume").route(web::post().to(jobs::resume)))
        .service(resource("/v1/jobs/{job}/extend").route(web::post().to(jobs::extend)))
        .service(resource("/v1/jobs/{job}/placement").route(web::post().to(jobs::place)))
        .service(resource("/v1/jobs/{job}/rollback").route(web::post().to(jobs::rollback)))
        .service(resource("/v1/jobs/{job}/trials").route(web::get().to(jobs::trials)))
        .service(resource("/v1/jobs/{job}/events").route(web::get().to(jobs::events)))
        .service(
            resource("/v1/jobs/{job}/trials/{trial}/history").route(web::get().to(jobs::history)),
        )
        .service(
            resource("/v1/jobs/{job}/trials/{trial}/evaluate")
                .route(web::post().to(jobs::evaluate)),
        )
        .service(
            resource("/v1/jobs/{job}/trials/{trial}/evaluations")
                .route(web::get().to(jobs::evaluations)),
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
            resource("/v1/assimilations/{lease}/lead")
                .app_data(json(JOB_LIMIT))
                .route(web::post().to(assimilations::lead)),
        )
        .service(
            resource("/v1/assimilations/{lease}/range")
                .app_data(json(JOB_LIMIT))
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
        .service(resource("/v1/hosts").route(web::get().to(hosts::all)))
        .service(resource("/v1/hosts/{host}/revoke").route(web::post().to(hosts::revoke)))
        .default_service(web::to(|| async {
            Err::<String, _>(HttpError::new(
                ErrorKind::NotFound,
                "there is nothing at this address",
            ))
        }));
}
