//! A server that gives prepared answers and remembers the requests.

use sojourn_http::{HttpClient, HttpConfig, Servers};
use sojourn_protocol::{
    PROTOCOL_HEADER, PROTOCOL_VERSION,
    error::{ApiError, ErrorKind},
};
use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    thread,
};

/// A request: its first line, its further head in lower case, its body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) line: String,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

/// An answer: its status line, its headers, its body.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// An answer in our protocol.
    pub(crate) fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        let version = (PROTOCOL_HEADER.to_owned(), PROTOCOL_VERSION.to_string());
        Self { status, headers: vec![version], body: body.into() }
    }

    pub(crate) fn refusal(kind: ErrorKind) -> Self {
        let error = serde_json::to_vec(&ApiError::new(kind, "why"));
        Self::new(kind.status(), error.unwrap())
    }

    /// An answer of something that isn't our server.
    pub(crate) fn foreign(status: u16, body: &str) -> Self {
        Self { status, headers: Vec::new(), body: body.as_bytes().to_vec() }
    }

    /// None: the connection is cut once the request is read.
    pub(crate) fn cut() -> Self {
        Self { status: 0, headers: Vec::new(), body: Vec::new() }
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// Gives the answers in turn, each on a connection of its own; then takes no more connections.
pub(crate) fn serve(answers: Vec<Answer>) -> (String, mpsc::Receiver<Request>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (heard, requests) = mpsc::channel();
    thread::spawn(move || {
        for answer in answers {
            let (stream, _) = listener.accept().unwrap();
            // The other side may have heard enough.
            let _ = heard.send(read(&stream));
            let _ = write(stream, &answer);
        }
    });
    (address, requests)
}

fn read(stream: &TcpStream) -> Request {
    let mut reader = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let head = lines[1..].join("\n").to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    reader.read_exact(&mut body).unwrap();
    Request { line: lines[0].clone(), head, body }
}

fn write(mut stream: TcpStream, answer: &Answer) -> std::io::Result<()> {
    let Answer { status, headers, body } = answer;
    if *status == 0 {
        return Ok(());
    }
    write!(
        stream,
        "HTTP/1.1 {status} x\r\nconnection: close\r\ncontent-length: {}\r\n",
        body.len()
    )?;
    for (name, value) in headers {
        write!(stream, "{name}: {value}\r\n")?;
    }
    stream.write_all(b"\r\n")?;
    stream.write_all(body)
}

/// An address at which nothing listens.
pub(crate) fn away() -> String {
    format!("http://{}", TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap())
}

pub(crate) fn client(servers: &[&str]) -> HttpClient {
    let servers = Servers::parse(&servers.join(","), false).unwrap();
    HttpClient::new(servers, &HttpConfig::default()).unwrap()
}
