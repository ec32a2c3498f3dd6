//! The API of [`sojourn_protocol::api`] over HTTP: a request is authenticated, then becomes a command to the core, or bytes
//! to and from the disk. It decides nothing itself.

mod access;
mod app_state;
mod assimilations;
mod auth;
mod blobs;
mod body;
mod changes;
mod checkpoints;
mod complete_uploads;
mod deltas;
mod direct;
mod error;
mod events;
mod failures;
mod features;
mod guard;
mod health;
mod hosts;
mod jobs;
mod machines;
mod metrics;
pub(crate) mod openapi;
mod page;
mod programs;
mod protocol;
mod request_body;
mod routes;
mod schema;
mod searches;
mod shares;
mod token_cache;
mod tokens;
mod traffic;
mod trials;
mod uploads;
mod work;

pub(crate) use app_state::AppState;
use app_state::{App, JsonResult};
pub(crate) use auth::authenticate;
pub(crate) use guard::guard;
pub(crate) use metrics::time_requests;
pub(crate) use page::{Sessions, now};
pub(crate) use protocol::check as protocol;
pub(crate) use routes::routes;
