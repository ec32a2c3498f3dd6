//! Every address and the handler that answers it. A request's rights are checked by the resource that the router chose for it.

mod endpoints;
mod pages;

use super::{auth, error::HttpError};
use actix_web::{
    Error, Resource,
    body::BoxBody,
    dev::{ServiceFactory, ServiceRequest, ServiceResponse},
    middleware::{Next, from_fn},
    web::{self, PathConfig, QueryConfig, ServiceConfig},
};
use sojourn_protocol::{error::ErrorKind, text::plain_line};

/// Characters of a wrong address that an answer repeats.
const MAX_PATH_CHARS: usize = 200;

/// An address that some callers may ask: those that the tables have for this pattern.
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
    web::resource(pattern).wrap(from_fn(move |request: ServiceRequest, next: Next<BoxBody>| {
        auth::authorize(pattern, request, next)
    }))
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
        .configure(endpoints::routes)
        .configure(pages::routes)
        .default_service(web::to(|| async {
            Err::<String, _>(HttpError::new(
                ErrorKind::NotFound,
                "there is nothing at this address",
            ))
        }));
}
