//! Signing in and out.

use super::{answer, answer::PageError, is_of_own_page, sessions, shared};
use crate::http::{App, access::Caller, auth, error::HttpError};
use actix_web::{
    HttpRequest, HttpResponse,
    http::{Method, StatusCode, header::AUTHORIZATION},
    web::{Form, Query},
};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use sojourn_protocol::{digest::Digest, error::ErrorKind};

/// Where the page for signing in is.
const ADDRESS: &str = "/sign-in";

/// `?to=ADDRESS`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(in crate::http) struct To {
    to: String,
}

/// The fields of the page's form.
#[derive(Deserialize)]
pub(in crate::http) struct Credentials {
    token: String,
    #[serde(default)]
    to: String,
}

/// An address of this server to go on to; the first page for any other.
fn own_address(to: &str) -> &str {
    let is_own = to.starts_with('/') && !to.starts_with("//") && !to.contains(['\\', '\n', '\r']);
    if is_own { to } else { "/" }
}

/// The page for signing in.
pub(in crate::http) async fn show(to: Query<To>) -> HttpResponse {
    answer::html(sojourn_page::sign_in(own_address(&to.to), None))
}

/// Begins a session with a user's token.
pub(in crate::http) async fn begin(
    app: App,
    request: HttpRequest,
    Form(said): Form<Credentials>,
) -> Result<HttpResponse, PageError> {
    if !is_of_own_page(&request) {
        let message = "a page of another server sent this";
        return Err(HttpError::new(ErrorKind::Forbidden, message).into());
    }
    let token_sha256 = Digest::of(said.token.trim().as_bytes());
    let error = match auth::holder(&app, token_sha256).await {
        Ok(Caller::User(..)) => {
            let cookie = app.sessions.begin(token_sha256, &request);
            let cookie = cookie.map_err(|error| HttpError::fault(&error))?;
            let mut answer = answer::go_to(own_address(&said.to));
            answer.add_cookie(&cookie).map_err(|error| HttpError::fault(&error))?;
            return Ok(answer);
        }
        Ok(_) => HttpError::unauthorized("this token is for machines: a user's is wanted"),
        Err(error) => auth::failed(&request, error),
    };
    let status = match error.kind() {
        ErrorKind::TooManyRequests => StatusCode::TOO_MANY_REQUESTS,
        _ => StatusCode::UNAUTHORIZED,
    };
    let page = sojourn_page::sign_in(own_address(&said.to), Some(&error.to_string()));
    Ok(answer::with_status(status, page))
}

/// Ends the session, where a page of this server asks for it.
pub(in crate::http) async fn end(
    app: App,
    request: HttpRequest,
) -> Result<HttpResponse, PageError> {
    if !is_of_own_page(&request) {
        let message = "a page of another server sent this";
        return Err(HttpError::new(ErrorKind::Forbidden, message).into());
    }
    let mut answer = answer::go_to(ADDRESS);
    let cookie = app.sessions.end(&request);
    answer.add_cookie(&cookie).map_err(|error| HttpError::fault(&error))?;
    Ok(answer)
}

/// Where a browser without a session is sent that asks for a page; `None` for all other requests. One with a token of its own is
/// a program's: a wrong one counts as a failed authentication.
pub(in crate::http) fn instead_of(request: &HttpRequest) -> Option<HttpResponse> {
    let has_token = request.headers().contains_key(AUTHORIZATION);
    if has_token || request.method() != Method::GET || !super::is_page(request.path()) {
        return None;
    }
    let is_shared = sessions::is_for_guests(request.path());
    let to = request.uri().path_and_query().map_or("/", |all| all.as_str());
    let site = request.headers().get("sec-fetch-site");
    // A browser keeps a strict cookie to itself where a page of another site leads here. One that comes from here has it.
    if site.is_some_and(|site| site == "cross-site" || site == "same-site") {
        return Some(answer::html(sojourn_page::again(own_address(to))));
    }
    if is_shared {
        return Some(shared::without_link());
    }
    let to = utf8_percent_encode(to, NON_ALPHANUMERIC);
    Some(answer::go_to(&format!("{ADDRESS}?to={to}")))
}

#[cfg(test)]
mod tests {
    use super::own_address;

    #[test]
    fn nobody_is_led_to_another_server() {
        for own in ["/", "/jobs/3?sort=lr", "/hosts"] {
            assert_eq!(own_address(own), own);
        }
        for other in ["//evil", "https://evil", "/\\evil", "evil", "", "/a\r\nb: c"] {
            assert_eq!(own_address(other), "/", "{other:?}");
        }
    }
}
