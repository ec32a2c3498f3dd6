//! The HTTP interface as one table: each endpoint says its method, address, callers, body, answer and errors once.
//!
//! From it come the server's routes with their rights and bounds, the OpenAPI document, and the typed requests of the command line,
//! the client, the autoscaler and assimilators:
//!
//! ```
//! use sojourn_api::endpoints::{Endpoint as _, PauseJob};
//! use sojourn_protocol::{api::PauseRequest, ids::JobId};
//!
//! let body = PauseRequest { now: true };
//! let request = PauseJob::request(JobId(7), &body);
//! assert_eq!(request.path(), "v1/jobs/7/pause");
//! assert_eq!(PauseJob::OPERATION.pattern, "/v1/jobs/{job}/pause");
//! ```
//!
//! An endpoint is added in one place: the file of [`endpoints`] that has its kind. A test of the server fails until a handler answers it.

#[macro_use]
mod table;
#[cfg(feature = "openapi")]
pub mod document;
pub mod endpoints;
mod operation;
mod request;
#[cfg(feature = "openapi")]
mod schemas;

pub use operation::{Callers, Endpoint, Method, Operation, Raw};
pub use request::Request;
#[cfg(feature = "openapi")]
pub use schemas::Schemas;
