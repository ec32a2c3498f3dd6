//! An answer in JSON. Numbers of 64 bits are written as the caller reads them: users' programs get decimal text, and so do hosts
//! and assimilators that say that they understand it.

use super::{auth, error::HttpError, features::CallerFeatures};
use actix_web::{HttpRequest, HttpResponse, Responder, body::BoxBody, http::header::ContentType};
use serde::Serialize;
use sojourn_protocol::decimal;

/// A value on its way to a caller.
pub(super) struct JsonAnswer<T>(pub(super) T);

impl<T: Serialize> Responder for JsonAnswer<T> {
    type Body = BoxBody;

    fn respond_to(self, request: &HttpRequest) -> HttpResponse {
        let write = || serde_json::to_vec(&self.0);
        let decimal_seeds = CallerFeatures::of(request.headers()).decimal_seeds;
        let written = if decimal_seeds || auth::is_for_user(request) {
            decimal::as_text(write)
        } else {
            write()
        };
        match written {
            Ok(body) => HttpResponse::Ok().content_type(ContentType::json()).body(body),
            Err(error) => HttpResponse::from_error(HttpError::fault(&error)),
        }
    }
}
