//! Sessions of browsers. A session's cookie stands for the token that its user signed in with, and for nothing once that is revoked.
//!
//! A file of the data folder has them, so that whoever looks at a page need not sign in again when the server is started anew. It
//! holds hashes alone: neither cookies nor tokens can be made of it.

use crate::{data_folder::new_token, shell::wall_time};
use actix_web::{
    HttpRequest,
    cookie::{Cookie, SameSite, time::Duration as CookieAge},
    http::header,
};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use sojourn_files::{Access, Durability, if_exists};
use sojourn_protocol::{
    digest::Digest, ids::JobId, quantity::SaturatingFrom as _, time::UnixMillis,
};
use std::{collections::BTreeMap, fs, io, path::PathBuf, time::Duration};

const COOKIE: &str = "sojourn-session";
/// The cookie of whoever has a link to a job's page. It holds the link's secret, and is for that job's addresses alone.
const GUEST_COOKIE: &str = "sojourn-share";
/// Where the pages of jobs for guests are.
const GUEST_PATH: &str = "/share/";
/// For so long nobody has to sign in again.
const LIFETIME: Duration = Duration::from_secs(7 * 24 * 3600);
/// Sessions at most. Beyond them, the one that ends first gives way.
const MAX_SESSIONS: usize = 10_000;

/// A browser that has signed in.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Session {
    token_sha256: Digest,
    until: UnixMillis,
}

/// Sessions by the hash of what their cookie holds.
type Known = BTreeMap<Digest, Session>;

/// All sessions.
#[derive(Debug)]
pub(crate) struct Sessions {
    known: Mutex<Known>,
    file: PathBuf,
    /// Connections are encrypted, so that browsers never send a cookie over others.
    are_encrypted: bool,
}

impl Sessions {
    /// Those of a file, which need not be there yet, of a server whose own connections are encrypted or not. With a file that can't
    /// be read, everybody signs in again.
    pub(crate) fn open(file: PathBuf, are_encrypted: bool) -> Self {
        let known = if_exists(fs::read(&file)).and_then(|text| {
            let text = text.unwrap_or_else(|| b"[]".to_vec());
            serde_json::from_slice::<Vec<(Digest, Session)>>(&text).map_err(io::Error::other)
        });
        let known = known.unwrap_or_else(|error| {
            tracing::warn!(file = %file.display(), %error, "no session goes on");
            Vec::new()
        });
        Self { known: Mutex::new(known.into_iter().collect()), file, are_encrypted }
    }

    /// Begins a session of the user with this token. The answer is its cookie. A proxy that encrypts says so in the request.
    pub(super) fn begin(
        &self,
        token_sha256: Digest,
        request: &HttpRequest,
    ) -> Result<Cookie<'static>, getrandom::Error> {
        let secret = new_token()?;
        let now = wall_time();
        let mut sessions = self.known.lock();
        sessions.retain(|_, session| session.until > now);
        if sessions.len() >= MAX_SESSIONS
            && let Some(first) = sessions.iter().min_by_key(|(_, of)| of.until).map(|(id, _)| *id)
        {
            sessions.remove(&first);
        }
        let until = UnixMillis(now.0.saturating_add(u64::saturating_from(LIFETIME.as_millis())));
        sessions.insert(Digest::of(secret.as_bytes()), Session { token_sha256, until });
        self.save(&sessions);
        Ok(cookie(secret, self.is_secure(request), CookieAge::seconds_f64(LIFETIME.as_secs_f64())))
    }

    /// A cookie for the page of a job, which the link with this secret opens. It needs no session: a link is no more than a secret in
    /// a browser, and whoever has one can't fill the table of sessions.
    pub(super) fn guest(&self, secret: &str, job: JobId, request: &HttpRequest) -> Cookie<'static> {
        let is_secure = self.is_secure(request);
        let mut cookie =
            cookie(secret.to_owned(), is_secure, CookieAge::seconds_f64(LIFETIME.as_secs_f64()));
        cookie.set_name(GUEST_COOKIE);
        cookie.set_path(format!("{GUEST_PATH}{job}"));
        cookie
    }

    fn is_secure(&self, request: &HttpRequest) -> bool {
        self.are_encrypted || request.connection_info().scheme() == "https"
    }

    /// The hash of the token that a request's session was begun with, or of the link whose job the request asks for.
    pub(in crate::http) fn token_of(&self, request: &HttpRequest) -> Option<Digest> {
        if is_for_guests(request.path()) {
            let cookie = request.cookie(GUEST_COOKIE)?;
            return Some(Digest::of(cookie.value().as_bytes()));
        }
        let id = id_of(request)?;
        let sessions = self.known.lock();
        let session = sessions.get(&id).filter(|session| session.until > wall_time())?;
        Some(session.token_sha256)
    }

    /// Ends a request's session. The answer is a cookie in place of its own.
    pub(super) fn end(&self, request: &HttpRequest) -> Cookie<'static> {
        if let Some(id) = id_of(request) {
            let mut sessions = self.known.lock();
            if sessions.remove(&id).is_some() {
                self.save(&sessions);
            }
        }
        cookie(String::new(), false, CookieAge::ZERO)
    }

    /// Where they can't be written, they hold until the server ends.
    fn save(&self, sessions: &Known) {
        let all: Vec<(&Digest, &Session)> = sessions.iter().collect();
        let text = serde_json::to_vec(&all).map_err(io::Error::other);
        let written = text.and_then(|text| {
            sojourn_files::write(&self.file, &text, Access::Owner, Durability::Synced)
        });
        if let Err(error) = written {
            tracing::warn!(file = %self.file.display(), %error, "sessions can't be written");
        }
    }
}

/// Is this an address of a job's page for whoever has a link to it?
pub(super) fn is_for_guests(path: &str) -> bool {
    path.starts_with(GUEST_PATH)
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
    fn a_session_stands_for_its_token_until_it_ends_also_in_the_next_server() {
        let folder = tempfile::tempdir().unwrap();
        let open = |are_encrypted| Sessions::open(folder.path().join("sessions"), are_encrypted);
        let sessions = open(true);
        let token = Digest::of(b"token");
        let plain = TestRequest::post().to_http_request();
        let cookie = sessions.begin(token, &plain).unwrap();
        assert_eq!((cookie.http_only(), cookie.secure()), (Some(true), Some(true)));
        assert_eq!(cookie.same_site(), Some(SameSite::Strict));
        assert_eq!(sessions.token_of(&request(&cookie)), Some(token));
        let other = sessions.begin(token, &plain).unwrap();
        sessions.end(&request(&cookie));
        for sessions in [sessions, open(false)] {
            assert_eq!(sessions.token_of(&request(&cookie)), None);
            assert_eq!(sessions.token_of(&request(&other)), Some(token));
            assert_eq!(sessions.token_of(&plain), None);
        }
        assert_eq!(open(false).begin(token, &plain).unwrap().secure(), Some(false));
        let text = fs::read_to_string(folder.path().join("sessions")).unwrap();
        assert!(!text.contains(other.value()), "a cookie is in the file");
        fs::write(folder.path().join("sessions"), "damaged").unwrap();
        assert_eq!(open(false).token_of(&request(&other)), None);
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
