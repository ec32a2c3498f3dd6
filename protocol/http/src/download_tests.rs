//! Downloads from a server whose answers break off at a chosen byte.

use crate::{Backoff, CallError, HttpClient, HttpConfig, Servers, TransferError};
use reqwest::Url;
use sojourn_protocol::{
    PROTOCOL_HEADER, PROTOCOL_VERSION,
    digest::{BlobRef, Digest},
    error::{ApiError, ErrorKind},
};
use std::{
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

/// A server with one blob.
struct Server {
    url: Url,
    /// Where each request's range began; `None` where it had none.
    asked: Arc<Mutex<Vec<Option<usize>>>>,
}

/// How one request is answered.
#[derive(Clone, Copy)]
enum Answer {
    /// The bytes that are asked for, without so many at their end.
    Short(usize),
    /// From the start, whatever is asked for, and no more than so many bytes.
    Start(usize),
    /// "No such blob."
    Gone,
}

impl Server {
    /// Gives the answers in turn, the last of them again and again.
    fn start(blob: Vec<u8>, answers: Vec<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
        let asked: Arc<Mutex<Vec<Option<usize>>>> = Arc::default();
        let heard = Arc::clone(&asked);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.unwrap();
                let range = range(&stream);
                let turn = heard.lock().unwrap().len();
                heard.lock().unwrap().push(range);
                answer(stream, &blob, range, answers[turn.min(answers.len() - 1)]);
            }
        });
        Self { url, asked }
    }

    fn asked(&self) -> Vec<Option<usize>> {
        self.asked.lock().unwrap().clone()
    }

    /// The result of a download, without pauses, and the last progress in bytes.
    fn download(&self, blob: BlobRef) -> (Result<Vec<u8>, TransferError>, u64) {
        let servers = Servers::parse(self.url.as_str(), false).unwrap();
        let client = HttpClient::new(servers, &HttpConfig::default()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut told = 0;
        let tell = &mut |received| told = received;
        let no_pauses = Backoff::from(Duration::ZERO, Duration::ZERO);
        let ended = runtime.block_on(client.download_with(blob, no_pauses, tell));
        (ended, told)
    }
}

/// Reads a request's head.
fn range(stream: &TcpStream) -> Option<usize> {
    let lines = BufReader::new(stream).lines().map(Result::unwrap);
    let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    let range = head.iter().find_map(|line| line.strip_prefix("range: bytes="))?;
    Some(range.strip_suffix('-').unwrap().parse().unwrap())
}

fn answer(mut stream: TcpStream, blob: &[u8], range: Option<usize>, answer: Answer) {
    let gone = ApiError::new(ErrorKind::NotFound, "no such blob");
    let gone = serde_json::to_vec(&gone).unwrap();
    let (status, body, sent) = match (answer, range) {
        (Answer::Short(by), Some(from)) => {
            ("206 Partial Content", &blob[from..], blob.len() - from - by)
        }
        (Answer::Short(by), None) => ("200 OK", blob, blob.len() - by),
        (Answer::Start(sent), _) => ("200 OK", blob, sent),
        (Answer::Gone, _) => ("404 Not Found", gone.as_slice(), gone.len()),
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\n{PROTOCOL_HEADER}: {PROTOCOL_VERSION}\r\ncontent-length: {length}\r\n\
         connection: close\r\n\r\n"
    );
    // The other side may have heard enough.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body[..sent]));
}

fn content() -> (Vec<u8>, BlobRef) {
    let bytes: Vec<u8> = (0..100_000u32).flat_map(u32::to_le_bytes).collect();
    let blob = BlobRef { sha256: Digest::of(&bytes), bytes: 400_000 };
    (bytes, blob)
}

#[test]
fn a_download_resumes_where_it_broke_off() {
    let (bytes, blob) = content();
    let answers = vec![Answer::Short(4000), Answer::Short(1), Answer::Short(0)];
    let server = Server::start(bytes.clone(), answers);
    let (ended, told) = server.download(blob);
    assert!(ended.unwrap() == bytes, "other bytes");
    assert_eq!(told, 400_000);
    assert_eq!(server.asked(), [None, Some(396_000), Some(399_999)]);
}

#[test]
fn without_ranges_a_download_begins_again() {
    let (bytes, blob) = content();
    let server = Server::start(bytes.clone(), vec![Answer::Start(300_000), Answer::Start(400_000)]);
    assert!(server.download(blob).0.unwrap() == bytes, "other bytes");
    assert_eq!(server.asked(), [None, Some(300_000)]);
}

#[test]
fn attempts_without_progress_are_limited() {
    let (bytes, blob) = content();
    // The first gets further than any after it, however much these seem to win on each other.
    let cuts = [300_000, 100_000, 200_000, 100_000, 200_000, 100_000, 200_000];
    let server = Server::start(bytes.clone(), cuts.map(Answer::Start).to_vec());
    let (ended, _) = server.download(blob);
    assert!(matches!(ended, Err(TransferError::Call(CallError::Unreachable { .. }))), "{ended:?}");
    assert_eq!(server.asked().len(), 7);

    let server = Server::start(bytes, vec![Answer::Short(9), Answer::Gone]);
    let (ended, _) = server.download(blob);
    assert_eq!(ended.unwrap_err().call().and_then(CallError::kind), Some(ErrorKind::NotFound));
    assert_eq!(server.asked().len(), 2, "a refusal is no accident");
}

#[test]
fn the_whole_download_is_verified() {
    let (mut bytes, blob) = content();
    bytes[399_999] ^= 1;
    let server = Server::start(bytes.clone(), vec![Answer::Short(9), Answer::Short(0)]);
    let (ended, _) = server.download(blob);
    assert!(matches!(ended, Err(TransferError::Damaged { .. })), "{ended:?}");
    bytes.push(0);
    let server = Server::start(bytes, vec![Answer::Short(0)]);
    assert!(matches!(server.download(blob).0, Err(TransferError::Damaged { .. })), "too long");
    assert_eq!(server.asked(), [None]);
}
