//! Sessions of browsers. A session's cookie stands for the token that its user signed in with, and for nothing once that is revoked.
//! They are in memory alone: whoever signed in does so again after a restart of the server.

use crate::data_folder::new_token;
use actix_web::{
    HttpRequest,
    cookie::{Cookie, SameSite, time::Duration as CookieAge},
    http::header,
};
use parking_lot::Mutex;
use sojourn_protocol::digest::Digest;
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

const COOKIE: &str = "sojourn-session";
/// For so long nobody has to sign in again.
const LIFETIME: Duration = Duration::from_secs(7 * 24 * 3600);
/// Sessions at most. Beyond them, the one that ends first gives way.
const MAX_SESSIONS: usize = 10_000;

/// A browser that has signed in.
#[derive(Debug, Clone, Copy)]
struct Session {
    token_sha256: Digest,
    until: Instant,
}

/// All sessions, by the hash of what their cookie holds.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    known: Mutex<BTreeMap<Digest, Session>>,
    /// Connections are encrypted, so that browsers never send a cookie over others.
    are_encrypted: bool,
}

impl Sessions {
    /// No sessions yet, of a server whose own connections are encrypted or not.
    pub(crate) fn new(are_encrypted: bool) -> Self {
        Self { known: Mutex::default(), are_encrypted }
    }

    /// Begins a session of the user with this token. The answer is its cookie. A proxy that encrypts says so in the request.
    pub(super) fn begin(
        &self,
        token_sha256: Digest,
        request: &HttpRequest,
    ) -> Result<Cookie<'static>, getrandom::Error> {
        let secret = new_token()?;
        let now = Instant::now();
        let mut sessions = self.known.lock();
        sessions.retain(|_, session| session.until > now);
        if sessions.len() >= MAX_SESSIONS
            && let Some(first) = sessions.iter().min_by_key(|(_, of)| of.until).map(|(id, _)| *id)
        {
            sessions.remove(&first);
        }
        let id = Digest::of(secret.as_bytes());
        sessions.insert(id, Session { token_sha256, until: now + LIFETIME });
        let is_secure = self.are_encrypted || request.connection_info().scheme() == "https";
        Ok(cookie(secret, is_secure, CookieAge::seconds_f64(LIFETIME.as_secs_f64())))
    }

    /// The hash of the token that a request's session was begun with.
    pub(in crate::http) fn token_of(&self, request: &HttpRequest) -> Option<Digest> {
        let id = id_of(request)?;
        let sessions = self.known.lock();
        let session = sessions.get(&id).filter(|session| session.until > Instant::now())?;
        Some(session.token_sha256)
    }

    /// Ends a request's session. The answer is a cookie in place of its own.
    pub(super) fn end(&self, request: &HttpRequest) -> Cookie<'static> {
        if let Some(id) = id_of(request) {
            self.known.lock().remove(&id);
        }
        cookie(String::new(), false, CookieAge::ZERO)
    }
}

fn cookie(value: String, is_secure: bool, age: CookieAge) -> Cookie<'static> {
    Cookie::build(COOKIE, value)
        .path("/")
        .http_only(true)
        .same_site(SameSite::Strict)
        .secure(is_secure)
        .max_age(age)
        .finish()
}

fn id_of(request: &HttpRequest) -> Option<Digest> {
    request.cookie(COOKIE).map(|cookie| Digest::of(cookie.value().as_bytes()))
}

/// Did a page of this server send the request? Browsers say so: by `Sec-Fetch-Site` where the connection is encrypted or local, and
/// by `Origin` in every request that changes something.
pub(in crate::http) fn is_of_own_page(request: &HttpRequest) -> bool {
    let text = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
    match (text("sec-fetch-site"), text(header::ORIGIN.as_str())) {
        (Some(site), _) => site == "same-origin",
        (None, Some(origin)) => {
            let host = origin.split_once("://").map(|(_, host)| host);
            host.is_some() && host == text(header::HOST.as_str())
        }
        (None, None) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::test::TestRequest;

    fn request(cookie: &Cookie<'static>) -> HttpRequest {
        TestRequest::get().cookie(cookie.clone()).to_http_request()
    }

    #[test]
    fn a_session_stands_for_its_token_until_it_ends() {
        let sessions = Sessions::new(true);
        let token = Digest::of(b"token");
        let plain = TestRequest::post().to_http_request();
        let cookie = sessions.begin(token, &plain).unwrap();
        assert_eq!((cookie.http_only(), cookie.secure()), (Some(true), Some(true)));
        assert_eq!(cookie.same_site(), Some(SameSite::Strict));
        assert_eq!(sessions.token_of(&request(&cookie)), Some(token));
        let other = sessions.begin(token, &plain).unwrap();
        sessions.end(&request(&cookie));
        assert_eq!(sessions.token_of(&request(&cookie)), None);
        assert_eq!(sessions.token_of(&request(&other)), Some(token));
        assert_eq!(sessions.token_of(&plain), None);
        assert_eq!(Sessions::new(false).begin(token, &plain).unwrap().secure(), Some(false));
    }

    #[test]
    fn only_pages_of_the_server_itself_may_change_anything() {
        let of = |headers: &[(&'static str, &str)]| {
            let request = TestRequest::post().insert_header(("host", "lab:8080"));
            let request =
                headers.iter().fold(request, |request, header| request.insert_header(*header));
            is_of_own_page(&request.to_http_request())
        };
        assert!(of(&[("sec-fetch-site", "same-origin")]));
        assert!(of(&[("origin", "http://lab:8080")]));
        assert!(!of(&[("sec-fetch-site", "same-site"), ("origin", "http://lab:8080")]));
        assert!(!of(&[("sec-fetch-site", "cross-site")]));
        assert!(!of(&[("origin", "http://evil")]) && !of(&[("origin", "null")]) && !of(&[]));
    }
}
