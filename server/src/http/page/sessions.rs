//! Sessions of browsers. A session's cookie stands for the token that its user signed in with, and for nothing once that is revoked.
//!
//! Browsers send a cookie to every port of a host, so that another program there may see it. So the cookie is named by the port, a session
//! is bound to the address that its browser signed in from, by which alone it changes anything, and one token has a bounded number of them.
//!
//! A file of the data folder has them, so that whoever looks at a page need not sign in again when the server is started anew. It
//! holds hashes alone: neither cookies nor tokens can be made of it.

use crate::{data_folder::new_token, http::guard::caller, shell::wall_time};
use actix_web::{
    HttpRequest,
    cookie::{Cookie, SameSite, time::Duration as CookieAge},
    http::{header, uri::Authority},
};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use sojourn_files::{Access, Durability, if_exists};
use sojourn_protocol::{
    digest::Digest, ids::JobId, quantity::SaturatingFrom as _, time::UnixMillis,
};
use std::{
    collections::BTreeMap,
    fs, io,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::runtime::Handle;

/// The names of cookies begin so, and end with the port that the browser asks.
const COOKIE: &str = "sojourn-session";
/// The cookie of whoever has a link to a job's page. It holds the link's secret, and is for that job's addresses alone.
const GUEST_COOKIE: &str = "sojourn-share";
/// Where the pages of jobs for guests are.
const GUEST_PATH: &str = "/share/";
/// For so long nobody has to sign in again.
const LIFETIME: Duration = Duration::from_secs(7 * 24 * 3600);
/// Sessions at most. Beyond them, the one that ends first gives way.
const MAX_SESSIONS: usize = 10_000;
/// Sessions of one token: browsers of a class that shares one. Beyond them, the one of that token that ends first gives way.
const MAX_SESSIONS_OF_TOKEN: usize = 100;

/// A browser that has signed in.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Session {
    token_sha256: Digest,
    until: UnixMillis,
    /// The hash of the address that its browser signed in from. Sessions of before had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<Digest>,
}

/// Sessions by the hash of what their cookie holds.
type Known = BTreeMap<Digest, Session>;

/// All sessions.
#[derive(Debug)]
pub(crate) struct Sessions {
    kept: Arc<Kept>,
    /// Connections are encrypted, so that browsers never send a cookie over others.
    are_encrypted: bool,
}

/// Sessions, and the file that has them.
#[derive(Debug)]
struct Kept {
    known: Mutex<Known>,
    file: PathBuf,
    /// Somebody is about to write all that has changed.
    is_due: AtomicBool,
    writing: Mutex<u64>,
}

impl Sessions {
    /// Reads a file, which need not be there yet, for a server whose own connections are encrypted or not. With a file that
    /// can't be read, everybody signs in again.
    pub(crate) fn open(file: PathBuf, are_encrypted: bool) -> Self {
        let known = if_exists(fs::read(&file)).and_then(|text| {
            let text = text.unwrap_or_else(|| b"[]".to_vec());
            serde_json::from_slice::<Vec<(Digest, Session)>>(&text).map_err(io::Error::other)
        });
        let known = known.unwrap_or_else(|error| {
            tracing::warn!(file = %file.display(), %error, "no session goes on");
            Vec::new()
        });
        let known = Mutex::new(known.into_iter().collect());
        let kept = Kept { known, file, is_due: AtomicBool::new(false), writing: Mutex::new(0) };
        Self { kept: Arc::new(kept), are_encrypted }
    }

    /// Begins a session of the user with this token. The answer is its cookie. A proxy that encrypts says so in the request.
    pub(super) fn begin(
        &self,
        token_sha256: Digest,
        request: &HttpRequest,
    ) -> Result<Cookie<'static>, getrandom::Error> {
        let secret = new_token()?;
        let now = wall_time();
        let mut sessions = self.kept.known.lock();
        sessions.retain(|_, session| session.until > now);
        make_room(&mut sessions, MAX_SESSIONS_OF_TOKEN, |of| of.token_sha256 == token_sha256);
        make_room(&mut sessions, MAX_SESSIONS, |_| true);
        let until = UnixMillis(now.0.saturating_add(u64::saturating_from(LIFETIME.as_millis())));
        let session = Session { token_sha256, until, from: Some(address_of(request)) };
        sessions.insert(Digest::of(secret.as_bytes()), session);
        drop(sessions);
        self.save();
        let (name, age) = (named(COOKIE, request), CookieAge::seconds_f64(LIFETIME.as_secs_f64()));
        Ok(cookie(name, secret, self.is_secure(request), age))
    }

    /// A cookie for the page of a job, which the link with this secret opens. It needs no session: a link is no more than a secret in
    /// a browser, and whoever has one can't fill the table of sessions.
    pub(super) fn guest(&self, secret: &str, job: JobId, request: &HttpRequest) -> Cookie<'static> {
        let is_secure = self.is_secure(request);
        let (name, age) =
            (named(GUEST_COOKIE, request), CookieAge::seconds_f64(LIFETIME.as_secs_f64()));
        let mut cookie = cookie(name, secret.to_owned(), is_secure, age);
        cookie.set_path(format!("{GUEST_PATH}{job}"));
        cookie
    }

    fn is_secure(&self, request: &HttpRequest) -> bool {
        self.are_encrypted || request.connection_info().scheme() == "https"
    }

    /// The hash of the token that a request's session was begun with, or of the link whose job the request asks for.
    pub(in crate::http) fn token_of(&self, request: &HttpRequest) -> Option<Digest> {
        if is_for_guests(request.path()) {
            let cookie = request.cookie(&named(GUEST_COOKIE, request))?;
            return Some(Digest::of(cookie.value().as_bytes()));
        }
        let id = id_of(request)?;
        let sessions = self.kept.known.lock();
        let session = sessions.get(&id).filter(|session| session.until > wall_time())?;
        Some(session.token_sha256)
    }

    /// Does the request come from where its session began? Another program that has seen the cookie is elsewhere.
    pub(in crate::http) fn is_from_its_browser(&self, request: &HttpRequest) -> bool {
        let Some(id) = id_of(request) else { return true };
        let sessions = self.kept.known.lock();
        let from = sessions.get(&id).and_then(|session| session.from);
        from.is_none_or(|from| from == address_of(request))
    }

    /// Ends a request's session. The answer is a cookie in place of its own.
    pub(super) fn end(&self, request: &HttpRequest) -> Cookie<'static> {
        if let Some(id) = id_of(request) {
            let removed = self.kept.known.lock().remove(&id);
            if removed.is_some() {
                self.save();
            }
        }
        cookie(named(COOKIE, request), String::new(), self.is_secure(request), CookieAge::ZERO)
    }

    /// Has them written soon. Sessions that begin while others are written share the next write: one sync for many.
    fn save(&self) {
        match Handle::try_current() {
            Ok(runtime) => {
                if !self.kept.is_due.swap(true, Ordering::AcqRel) {
                    let kept = Arc::clone(&self.kept);
                    drop(runtime.spawn_blocking(move || kept.write()));
                }
            }
            Err(_) => self.kept.write(),
        }
    }
}

impl Kept {
    /// Writes all of them. Where they can't be written, they hold until the server ends. Blocks.
    fn write(&self) {
        let mut writes = self.writing.lock();
        // What changes from here on is for the next write.
        self.is_due.store(false, Ordering::Release);
        let text = {
            let sessions = self.known.lock();
            let all: Vec<(&Digest, &Session)> = sessions.iter().collect();
            serde_json::to_vec(&all).map_err(io::Error::other)
        };
        let written = text.and_then(|text| {
            sojourn_files::write(&self.file, &text, Access::Owner, Durability::Synced)
        });
        *writes = writes.saturating_add(1);
        tracing::debug!(writes = *writes, "sessions were written");
        if let Err(error) = written {
            tracing::warn!(file = %self.file.display(), %error, "sessions can't be written");
        }
    }
}

/// Ends the sessions that end first, until there are fewer than `most` of these.
fn make_room(sessions: &mut Known, most: usize, is_of: impl Fn(&Session) -> bool) {
    let mut counted: Vec<(UnixMillis, Digest)> = sessions
        .iter()
        .filter(|(_, session)| is_of(session))
        .map(|(id, session)| (session.until, *id))
        .collect();
    counted.sort_unstable();
    let more = counted.len().saturating_add(1).saturating_sub(most);
    for (_, id) in counted.into_iter().take(more) {
        sessions.remove(&id);
    }
}

/// The name of a cookie for the port that the browser asks: other servers of the host have cookies of their own.
fn named(name: &str, request: &HttpRequest) -> String {
    let connection = request.connection_info();
    let port = connection.host().parse::<Authority>().ok().and_then(|host| host.port_u16());
    let usual = if connection.scheme() == "https" { 443 } else { 80 };
    format!("{name}-{}", port.unwrap_or(usual))
}

/// The hash of the address that a request comes from.
fn address_of(request: &HttpRequest) -> Digest {
    Digest::of(caller(request).to_string().as_bytes())
}

/// Is this an address of a job's page for whoever has a link to it?
pub(super) fn is_for_guests(path: &str) -> bool {
    path.starts_with(GUEST_PATH)
}

fn cookie(name: String, value: String, is_secure: bool, age: CookieAge) -> Cookie<'static> {
    Cookie::build(name, value)
        .path("/")
        .http_only(true)
        .same_site(SameSite::Strict)
        .secure(is_secure)
        .max_age(age)
        .finish()
}

fn id_of(request: &HttpRequest) -> Option<Digest> {
    request.cookie(&named(COOKIE, request)).map(|cookie| Digest::of(cookie.value().as_bytes()))
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
    fn a_cookie_is_of_its_port_and_a_session_changes_things_from_its_address_alone() {
        let folder = tempfile::tempdir().unwrap();
        let sessions = Sessions::open(folder.path().join("sessions"), false);
        let token = Digest::of(b"token");
        let ask = |host: &str, from: &str| {
            let request = TestRequest::post().insert_header(("host", host));
            request.peer_addr(format!("{from}:1").parse().unwrap())
        };
        let begun = sessions.begin(token, &ask("lab:8080", "10.0.0.7").to_http_request()).unwrap();
        assert_eq!(begun.name(), "sojourn-session-8080");
        let with = |host: &str, from: &str| ask(host, from).cookie(begun.clone()).to_http_request();
        assert_eq!(sessions.token_of(&with("lab:8080", "10.0.0.7")), Some(token));
        assert_eq!(sessions.token_of(&with("lab:6006", "10.0.0.7")), None);
        assert_eq!(sessions.token_of(&with("lab", "10.0.0.7")), None);
        assert!(sessions.is_from_its_browser(&with("lab:8080", "10.0.0.7")));
        // A program beside the server has seen it.
        assert!(!sessions.is_from_its_browser(&with("lab:8080", "127.0.0.1")));
        let plain = sessions.begin(token, &ask("lab", "10.0.0.7").to_http_request()).unwrap();
        assert_eq!(plain.name(), "sojourn-session-80");
    }

    #[test]
    fn a_token_has_a_bounded_number_of_sessions_and_takes_none_of_others() {
        let folder = tempfile::tempdir().unwrap();
        let sessions = Sessions::open(folder.path().join("sessions"), false);
        let plain = TestRequest::post().to_http_request();
        let other = sessions.begin(Digest::of(b"other"), &plain).unwrap();
        let token = Digest::of(b"token");
        let begun: Vec<_> = (0..MAX_SESSIONS_OF_TOKEN + 20)
            .map(|_| sessions.begin(token, &plain).unwrap())
            .collect();
        let open = begun.iter().filter(|cookie| sessions.token_of(&request(cookie)).is_some());
        assert_eq!(open.count(), MAX_SESSIONS_OF_TOKEN);
        assert_eq!(sessions.token_of(&request(begun.last().unwrap())), Some(token));
        assert!(sessions.token_of(&request(&other)).is_some());
    }

    #[tokio::test]
    async fn sessions_that_begin_while_others_are_written_share_one_write() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("sessions");
        let sessions = Sessions::open(file.clone(), false);
        let writing = sessions.kept.writing.lock();
        for _ in 0..50 {
            sessions.begin(Digest::of(b"token"), &TestRequest::post().to_http_request()).unwrap();
        }
        drop(writing);
        while *sessions.kept.writing.lock() == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(*sessions.kept.writing.lock(), 1);
        let next = Sessions::open(file, false);
        assert_eq!(next.kept.known.lock().len(), 50);
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
