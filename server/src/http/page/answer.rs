//! HTML as an answer.

use super::super::error::HttpError;
use actix_web::{
    HttpRequest, HttpResponse, ResponseError,
    http::{
        StatusCode,
        header::{
            CONTENT_SECURITY_POLICY, ContentType, ETAG, IF_NONE_MATCH, LOCATION, RETRY_AFTER,
        },
    },
};
use sojourn_page::Markup;
use sojourn_protocol::{digest::Digest, error::ApiError};
use std::fmt;

/// A whole page.
pub(in crate::http) fn html(page: Markup) -> HttpResponse {
    with_status(StatusCode::OK, page)
}

pub(super) fn with_status(status: StatusCode, page: Markup) -> HttpResponse {
    HttpResponse::build(status)
        .content_type(ContentType::html())
        .insert_header((CONTENT_SECURITY_POLICY, sojourn_page::CONTENT_SECURITY_POLICY))
        .body(page.into_string())
}

/// Leads on to an address.
pub(super) fn go_to(address: &str) -> HttpResponse {
    HttpResponse::SeeOther().insert_header((LOCATION, address)).finish()
}

/// A part of a page, or nothing if the request has it already.
pub(super) fn part(request: &HttpRequest, part: Markup) -> HttpResponse {
    let text = part.into_string();
    let tag = format!("\"{}\"", Digest::of(text.as_bytes()));
    if request.headers().get(IF_NONE_MATCH).is_some_and(|had| had.as_bytes() == tag.as_bytes()) {
        return HttpResponse::NotModified().insert_header((ETAG, tag)).finish();
    }
    HttpResponse::Ok().content_type(ContentType::html()).insert_header((ETAG, tag)).body(text)
}

/// An error as a page.
pub(in crate::http) fn fault(error: &HttpError) -> HttpResponse {
    let mut answer = with_status(error.status_code(), sojourn_page::fault(&error.to_string()));
    if let Some(seconds) = error.retry_seconds() {
        answer.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    answer
}

/// Why a page can't be shown.
#[derive(Debug)]
pub(in crate::http) struct PageError(HttpError);

impl fmt::Display for PageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<HttpError> for PageError {
    fn from(error: HttpError) -> Self {
        Self(error)
    }
}

impl From<ApiError> for PageError {
    fn from(error: ApiError) -> Self {
        Self(error.into())
    }
}

impl ResponseError for PageError {
    fn status_code(&self) -> StatusCode {
        self.0.status_code()
    }

    fn error_response(&self) -> HttpResponse {
        fault(&self.0)
    }
}
