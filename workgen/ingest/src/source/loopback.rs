//! A server on loopback for tests: says what it is told, records what it was asked, and can be cut.

use std::{
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

/// A request: its first line, and its headers in lower case.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) line: String,
    headers: Vec<(String, String)>,
}

impl Request {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Where the asked-for range starts.
    pub(super) fn start(&self) -> usize {
        let range = self.header("range").and_then(|range| range.strip_prefix("bytes="));
        range.and_then(|range| range.strip_suffix('-')).map_or(0, |start| start.parse().unwrap())
    }
}

/// An answer; `sent` bytes of the body, then the connection is closed.
pub(super) struct Answer {
    pub(super) head: String,
    pub(super) body: Vec<u8>,
    pub(super) sent: usize,
}

impl Answer {
    pub(super) fn whole(head: &str, body: &[u8]) -> Self {
        Self { head: head.to_owned(), body: body.to_vec(), sent: body.len() }
    }
}

/// The server; its thread ends with the process.
pub(super) struct Server {
    pub(super) address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    /// Answers each request by `answer`, which also hears how many there were before.
    pub(super) fn start(answer: impl Fn(usize, &Request) -> Answer + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&requests);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.unwrap();
                let Some(request) = read(&stream) else { continue };
                let before = heard.lock().unwrap().len();
                let answer = answer(before, &request);
                heard.lock().unwrap().push(request);
                write(stream, &answer);
            }
        });
        Self { address, requests }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    pub(super) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut lines = BufReader::new(stream).lines();
    let line = lines.next()?.ok()?;
    let mut headers = Vec::new();
    for line in lines {
        let line = line.ok()?;
        let Some((name, value)) = line.split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    Some(Request { line, headers })
}

/// Best effort: the other side may have heard enough.
fn write(mut stream: TcpStream, answer: &Answer) {
    let head = format!(
        "HTTP/1.1 {}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        answer.head,
        answer.body.len()
    );
    let _ = stream.write_all(head.as_bytes());
    let _ = stream.write_all(&answer.body[..answer.sent]);
}
