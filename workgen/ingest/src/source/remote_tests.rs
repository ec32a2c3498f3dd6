//! Downloads, from servers on loopback that behave and that don't.

use super::{
    Finder, http,
    loopback::{Answer, Request, Server},
    remote::asked_by_time,
    s3,
    spool::{CopyError, TemporaryCopy},
};
use crate::{
    bounds::{Bounds, Refusal, SharedBounds, Step, unbounded},
    error::{FetchError, IngestError},
    progress::Progress,
};
use reqwest::Url;
use std::{
    error::Error,
    future::pending,
    io::Read,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

fn body() -> Vec<u8> {
    (0..300_000u32).map(|index| u8::try_from(index * 7 % 251).unwrap()).collect()
}

/// The answer of a server that knows ranges.
fn part(request: &Request, of: &[u8]) -> Answer {
    let (start, all) = (request.start(), of.len());
    let head = match start {
        0 => "200 OK\r\netag: \"a\"".to_owned(),
        start => {
            format!(
                "206 Partial Content\r\netag: \"a\"\r\ncontent-range: bytes {start}-{}/{all}",
                all - 1
            )
        }
    };
    Answer::whole(&head, &of[start..])
}

fn cut(answer: Answer, sent: usize) -> Answer {
    Answer { sent, ..answer }
}

fn find(url: &str) -> Result<Vec<u8>, IngestError> {
    find_within(url, &unbounded())
}

fn find_within(url: &str, bounds: &SharedBounds) -> Result<Vec<u8>, IngestError> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let spool = tempfile::tempdir().unwrap();
    let mut progress = |_: Progress<'_>| {};
    let mut finder = Finder::new(Path::new(""), spool.path(), bounds, &mut progress);
    let files = finder.find("data.train", url)?;
    // Asked for a second time, it is there.
    finder.find("data.test", url)?;
    let mut bytes = Vec::new();
    files[0].read()?.read_to_end(&mut bytes).unwrap();
    assert_eq!(std::fs::read_dir(spool.path()).unwrap().count(), 0, "the copy has no name");
    Ok(bytes)
}

fn told(error: &dyn Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", told(source)),
        None => error.to_string(),
    }
}

#[test]
fn a_url_is_copied_once() {
    let server = Server::start(|_, request| part(request, &body()));
    assert_eq!(find(&server.url("t.csv?signature=secret")).unwrap(), body());
    let lines: Vec<String> = server.requests().into_iter().map(|request| request.line).collect();
    assert_eq!(lines, ["GET /t.csv?signature=secret HTTP/1.1"]);
}

#[test]
fn a_redirect_is_followed() {
    let server = Server::start(|before, request| match before {
        0 => Answer::whole("302 Found\r\nlocation: /there", b""),
        _ => part(request, &body()),
    });
    assert_eq!(find(&server.url("here")).unwrap(), body());
    assert_eq!(server.requests()[1].line, "GET /there HTTP/1.1");
}

/// Lets everything be fetched but what has this word in its URL, and so many bytes be written.
#[derive(Debug)]
struct Allowed(&'static str, u64);

impl Bounds for Allowed {
    fn admit(&self, step: Step) -> Result<(), Refusal> {
        match step {
            Step::Written(bytes) if bytes > self.1 => Err(Refusal("too much".to_owned())),
            _ => Ok(()),
        }
    }

    fn admits_url(&self, url: &str) -> bool {
        !url.contains(self.0)
    }
}

/// Lets reading go on for so many questions, and counts them.
#[derive(Debug, Default)]
struct Patient {
    asked: AtomicU32,
    until: u32,
}

impl Bounds for Patient {
    fn admit(&self, step: Step) -> Result<(), Refusal> {
        assert_eq!(step, Step::Read(0));
        match self.asked.fetch_add(1, Ordering::Relaxed) {
            asked if asked < self.until => Ok(()),
            _ => Err(Refusal("it was ended".to_owned())),
        }
    }

    fn admits_url(&self, _: &str) -> bool {
        true
    }
}

#[test]
fn a_server_that_sends_nothing_is_left_when_reading_is_ended() {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().unwrap();
    let patient = Arc::new(Patient { until: 3, ..Patient::default() });
    let bounds: SharedBounds = Arc::<Patient>::clone(&patient);
    let ended = runtime.block_on(asked_by_time(&bounds, pending::<Result<(), CopyError>>()));
    assert!(matches!(ended, Err(CopyError::Refused(_))), "{ended:?}");
    assert_eq!(patient.asked.load(Ordering::Relaxed), 4);
    let done = runtime.block_on(asked_by_time(&bounds, async { Ok(7) }));
    assert!(matches!(done, Ok(7)), "{done:?}");
    assert_eq!(patient.asked.load(Ordering::Relaxed), 4, "nothing was waited for");
}

#[test]
fn every_hop_of_a_redirect_is_asked_about_before_it_is_sent() {
    let inner = Server::start(|_, request| part(request, &body()));
    let secret = inner.url("secret?signature=s");
    let server = Server::start(move |before, _| match before {
        0 => Answer::whole("302 Found\r\nlocation: /second", b""),
        _ => Answer::whole(&format!("307 Temporary\r\nlocation: {secret}"), b""),
    });
    let refused: SharedBounds = Arc::new(Allowed("secret", u64::MAX));
    let error = find_within(&server.url("first"), &refused).unwrap_err();
    let (url, to) = (server.url("first"), inner.url("secret"));
    let said = format!("can't fetch `{url}`: it leads to `{to}`, which may not be fetched");
    assert_eq!(told(&error), said);
    assert_eq!((server.requests().len(), inner.requests().len()), (2, 0));
    let first = find_within(&inner.url("secret"), &refused).unwrap_err();
    assert!(told(&first).contains("may not be fetched"), "{first:?}");
    assert_eq!(inner.requests().len(), 0);
    let bounded: SharedBounds = Arc::new(Allowed("nothing", 10));
    let error = find_within(&inner.url("t.csv"), &bounded).unwrap_err();
    assert!(matches!(error, IngestError::Refused(_)), "{error:?}");
}

#[test]
fn a_redirect_to_another_server_takes_no_password_along() {
    let other = Server::start(|_, request| part(request, &body()));
    let there = other.url("t.csv").replace("http://", "http://you:too@");
    let server = Server::start(move |before, _| match before {
        0 => Answer::whole("301 Moved\r\nlocation: /t.csv", b""),
        _ => Answer::whole(&format!("302 Found\r\nlocation: {there}"), b""),
    });
    let url = server.url("here").replace("http://", "http://me:secret@");
    assert_eq!(find(&url).unwrap(), body());
    let sent = |server: &Server| -> Vec<bool> {
        let requests = server.requests();
        requests.iter().map(|request| request.header("authorization").is_some()).collect()
    };
    assert_eq!((sent(&server), sent(&other)), (vec![true, true], vec![false]));
    assert_eq!(other.requests()[0].header("referer"), None);
}

#[test]
fn missing_and_forbidden_files_fail_without_a_retry() {
    let server = Server::start(|_, _| Answer::whole("404 Not Found", b"nothing"));
    let url = server.url("t.csv");
    let error = find(&format!("{url}?signature=secret")).unwrap_err();
    assert_eq!(told(&error), format!("can't fetch `{url}`: the server answers 404 Not Found"));
    assert_eq!(server.requests().len(), 1);
    let server = Server::start(|_, _| Answer::whole("403 Forbidden", b""));
    let error = told(&find(&server.url("t.csv")).unwrap_err());
    assert!(
        error.ends_with("403 Forbidden; what needs a login must be downloaded first"),
        "{error}"
    );
    let error = told(&find("http://[nowhere/t.csv").unwrap_err());
    assert!(
        error.starts_with("can't fetch `data.train = http://[nowhere/t.csv`: it is no URL: "),
        "{error}"
    );
}

#[test]
fn a_cut_connection_goes_on_where_it_was_cut() {
    let server = Server::start(|before, request| {
        let answer = part(request, &body());
        if before < 2 { cut(answer, 100_000) } else { answer }
    });
    assert_eq!(find(&server.url("t.csv")).unwrap(), body());
    let requests = server.requests();
    let asked: Vec<(usize, Option<&str>)> =
        requests.iter().map(|request| (request.start(), request.header("if-range"))).collect();
    assert_eq!(asked, [(0, None), (100_000, Some("\"a\"")), (200_000, Some("\"a\""))]);
}

#[test]
fn a_server_without_ranges_begins_again() {
    let server = Server::start(|before, _| {
        let answer = Answer::whole("200 OK", &body());
        if before == 0 { cut(answer, 100_000) } else { answer }
    });
    assert_eq!(find(&server.url("t.csv")).unwrap(), body());
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn versions_are_never_mixed() {
    // A part of a file of another size.
    let server = Server::start(|before, request| match before {
        0 => cut(part(request, &body()), 100_000),
        _ => part(request, &body()[..200_000]),
    });
    let error = find(&server.url("t.csv")).unwrap_err();
    assert!(matches!(error, IngestError::Fetch { source: FetchError::Mixed, .. }), "{error:?}");
}

#[test]
fn without_a_validator_it_begins_again() {
    // The file is another one by the time of the second request, and nothing would say so: its size
    // is the same, and there is no tag or date, or one that says only "about the same".
    for tag in ["", "\r\netag: W/\"a\""] {
        let server = Server::start(move |before, request| {
            let (start, all) = (request.start(), 300_000);
            let version = if before == 0 { vec![1; all] } else { vec![2; all] };
            let answer = match start {
                0 => Answer::whole(&format!("200 OK{tag}"), &version),
                start => {
                    let last = all - 1;
                    let head = format!(
                        "206 Partial Content{tag}\r\ncontent-range: bytes {start}-{last}/{all}"
                    );
                    Answer::whole(&head, &version[start..])
                }
            };
            if before == 0 { cut(answer, 100_000) } else { answer }
        });
        let found = find(&server.url("t.csv")).unwrap();
        assert!(found == vec![2; 300_000], "another version's bytes, or too few of its own");
        assert_eq!(server.requests().len(), 2);
        assert!(server.requests().iter().all(|request| request.header("range").is_none()));
    }
}

#[test]
fn a_date_is_a_validator() {
    const DATE: &str = "Tue, 15 Nov 1994 08:12:31 GMT";
    let server = Server::start(|before, request| {
        let (start, body) = (request.start(), body());
        let (all, last) = (body.len(), body.len() - 1);
        match before {
            0 => cut(Answer::whole(&format!("200 OK\r\nlast-modified: {DATE}"), &body), 100_000),
            _ => Answer::whole(
                &format!("206 Partial Content\r\ncontent-range: bytes {start}-{last}/{all}"),
                &body[start..],
            ),
        }
    });
    assert_eq!(find(&server.url("t.csv")).unwrap(), body());
    let last = &server.requests()[1];
    assert_eq!((last.start(), last.header("if-range")), (100_000, Some(DATE)));
}

#[test]
fn a_ring_of_redirects_is_no_fault_of_an_object_store() {
    let server = Server::start(|_, _| Answer::whole("302 Found\r\nlocation: /t.csv", b""));
    let error = find(&server.url("t.csv")).unwrap_err();
    assert!(
        matches!(error, IngestError::Fetch { source: FetchError::Request(_), .. }),
        "{error:?}"
    );
    assert_eq!(told(&error), format!("can't fetch `{}`: too many redirects", server.url("t.csv")));
    let error = told(&find("ftp://127.0.0.1/t.csv").unwrap_err());
    assert_eq!(error, "can't fetch `ftp://127.0.0.1/t.csv`: URL scheme is not allowed");
}

/// The attempts of a download without pauses, and how it ended.
fn attempts(server: &Server) -> (usize, FetchError) {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let spool = tempfile::tempdir().unwrap();
    let mut copy = TemporaryCopy::new(spool.path(), "t", &unbounded(), &mut |_| {}).unwrap();
    let url = Url::parse(&server.url("t.csv")).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let ended = runtime.block_on(http::fetch(&url, Duration::ZERO, &mut copy, &mut |_| {}));
    match ended {
        Err(CopyError::Fetch(error)) => (server.requests().len(), error),
        other => panic!("{other:?}"),
    }
}

#[test]
fn attempts_without_a_new_byte_are_counted() {
    let server = Server::start(|_, request| match request.start() {
        0 => cut(part(request, &body()), 1_000),
        _ => cut(part(request, &body()), 0),
    });
    let (requests, error) = attempts(&server);
    assert!(matches!(error, FetchError::Cut { attempts: 4, bytes: 1_000, .. }), "{error:?}");
    assert_eq!(requests, 5);
    let server = Server::start(|_, _| Answer::whole("503 Service Unavailable", b""));
    let (requests, error) = attempts(&server);
    assert_eq!(requests, 4);
    let said = error.to_string();
    assert_eq!(said, "4 attempts failed after 0 bytes: status 503 Service Unavailable");
    // Without ranges, and always cut at one place: no new byte either.
    let server = Server::start(|_, _| cut(Answer::whole("200 OK", &body()), 1_000));
    assert_eq!(attempts(&server).0, 5);
}

/// Fetches `s3://bucket/{key}` with these variables beside the endpoint.
fn from_s3(server: &Server, key: &str, variables: &[(&str, &str)]) -> Result<u64, FetchError> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let spool = tempfile::tempdir().unwrap();
    let mut copy = TemporaryCopy::new(spool.path(), "t", &unbounded(), &mut |_| {}).unwrap();
    let url = Url::parse(&format!("s3://bucket/{key}")).unwrap();
    let endpoint = format!("http://{}", server.address);
    let all = variables.iter().copied().chain([("AWS_ENDPOINT_URL", endpoint.as_str())]);
    let all: Vec<(String, String)> =
        all.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    match runtime.block_on(s3::fetch(&url, all.into_iter(), &mut copy, &mut |_| {})) {
        Ok(()) => Ok(copy.bytes()),
        Err(CopyError::Fetch(error)) => Err(error),
        Err(other) => panic!("{other:?}"),
    }
}

const KEYS: &[(&str, &str)] = &[("AWS_ACCESS_KEY_ID", "me"), ("AWS_SECRET_ACCESS_KEY", "secret")];

fn object() -> Answer {
    Answer::whole("200 OK\r\netag: \"a\"\r\nlast-modified: Tue, 15 Nov 1994 08:12:31 GMT", &body())
}

#[test]
fn an_object_is_fetched_with_a_signature() {
    let server = Server::start(|_, _| object());
    assert_eq!(from_s3(&server, "folder/t%20u.csv", KEYS).unwrap(), 300_000);
    let request = &server.requests()[0];
    assert_eq!(request.line, "GET /bucket/folder/t%20u.csv HTTP/1.1");
    let signature = request.header("authorization").unwrap();
    assert!(signature.starts_with("AWS4-HMAC-SHA256 Credential=me/"), "{signature}");
    let public = from_s3(&server, "t.csv", &[("AWS_SKIP_SIGNATURE", "true")]);
    assert_eq!(public.unwrap(), 300_000);
    assert_eq!(server.requests()[1].header("authorization"), None);
}

#[test]
fn refusals_of_an_object_store_are_reported() {
    let said = |head: &'static str, key: &str, variables: &[(&str, &str)]| {
        let server = Server::start(move |_, _| Answer::whole(head, b""));
        from_s3(&server, key, variables).unwrap_err().to_string()
    };
    assert_eq!(said("404 Not Found", "t.csv", KEYS), "there is no such object, or no such bucket");
    assert_eq!(said("403 Forbidden", "t.csv", KEYS), "these credentials may not read it");
    assert_eq!(
        said("200 OK", "folder/", KEYS),
        "it is no URL: it names no object: s3://BUCKET/KEY is wanted"
    );
    // Nothing in the environment, and no machine of AWS's to ask.
    let nobody = Server::start(|_, _| Answer::whole("404 Not Found", b""));
    let metadata = format!("http://{}", nobody.address);
    let said = said("403 Forbidden", "t.csv", &[("AWS_METADATA_ENDPOINT", &metadata)]);
    assert!(said.starts_with("no credentials: set `AWS_ACCESS_KEY_ID` and"), "{said}");
}
