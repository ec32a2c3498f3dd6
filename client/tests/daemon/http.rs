//! Just enough HTTP/1.1 by hand that every fault can be made at a chosen byte.

use sojourn_protocol::PROTOCOL_VERSION;
use std::{collections::BTreeMap, io};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
};

/// A request, as it came.
#[derive(Debug, Clone, Default)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub query: String,
    pub headers: BTreeMap<String, String>,
    pub range: Option<u64>,
    pub token: Option<String>,
    pub sha256: Option<String>,
    pub total: Option<u64>,
    pub length: usize,
    pub body: Vec<u8>,
}

/// An answer, and what happens to it on its way.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    pub status: u16,
    pub body: Vec<u8>,
    pub retry_after: Option<u64>,
    /// Where a redirect leads.
    pub location: Option<String>,
    /// How the body is encoded, where it isn't as it is.
    pub encoding: Option<&'static str>,
    /// The features that the server says that it understands.
    pub features: &'static str,
    /// Send only so many bytes of the body, then close.
    pub cut_after: Option<usize>,
    /// Send only so many bytes of the body, and no more though the connection stays.
    pub stall_after: Option<usize>,
}

impl Answer {
    pub fn json(value: &impl serde::Serialize) -> Self {
        Self { status: 200, body: serde_json::to_vec(value).unwrap(), ..Self::default() }
    }
}

pub struct Connection(BufReader<TcpStream>);

impl Connection {
    pub fn new(stream: TcpStream) -> Self {
        stream.set_nodelay(true).unwrap();
        Self(BufReader::new(stream))
    }

    /// The next request's head; `None` where the client has closed.
    pub async fn head(&mut self) -> io::Result<Option<Request>> {
        let mut request = Request::default();
        let mut line = String::new();
        if self.0.read_line(&mut line).await? == 0 {
            return Ok(None);
        }
        let mut words = line.split_whitespace();
        request.method = words.next().unwrap().to_owned();
        let target = words.next().unwrap();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        (request.path, request.query) = (path.to_owned(), query.to_owned());
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).await? == 0 {
                return Ok(None);
            }
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            let name = name.to_ascii_lowercase();
            request.headers.insert(name.clone(), value.to_owned());
            match name.as_str() {
                "content-length" => request.length = value.parse().unwrap(),
                "range" => {
                    let from = value.strip_prefix("bytes=").unwrap().strip_suffix('-').unwrap();
                    request.range = Some(from.parse().unwrap());
                }
                "authorization" => {
                    request.token = value.strip_prefix("Bearer ").map(ToOwned::to_owned);
                }
                "sojourn-sha256" => request.sha256 = Some(value.to_owned()),
                "sojourn-bytes" => request.total = Some(value.parse().unwrap()),
                "sojourn-protocol" => assert_eq!(value, PROTOCOL_VERSION.to_string()),
                "transfer-encoding" => panic!("a body without a declared length"),
                _ => {}
            }
        }
        Ok(Some(request))
    }

    /// `length` bytes of the request's body.
    pub async fn body(&mut self, length: usize) -> io::Result<Vec<u8>> {
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).await?;
        Ok(body)
    }

    pub async fn answer(&mut self, answer: &Answer) -> io::Result<()> {
        let mut head = format!(
            "HTTP/1.1 {} x\r\nsojourn-protocol: {PROTOCOL_VERSION}\r\ncontent-length: {}\r\n",
            answer.status,
            answer.body.len()
        );
        if let Some(seconds) = answer.retry_after {
            head.push_str(&format!("retry-after: {seconds}\r\n"));
        }
        if let Some(place) = &answer.location {
            head.push_str(&format!("location: {place}\r\n"));
        }
        if let Some(encoding) = answer.encoding {
            head.push_str(&format!("content-encoding: {encoding}\r\n"));
        }
        if !answer.features.is_empty() {
            head.push_str(&format!("sojourn-features: {}\r\n", answer.features));
        }
        head.push_str("\r\n");
        let all = answer.body.len();
        let sent = answer.cut_after.or(answer.stall_after).map_or(all, |sent| sent.min(all));
        let stream = self.0.get_mut();
        stream.write_all(&[head.as_bytes(), &answer.body[..sent]].concat()).await?;
        stream.flush().await?;
        if answer.stall_after.is_some() {
            self.hung_up().await;
        }
        match answer.cut_after.or(answer.stall_after) {
            Some(_) => Err(io::ErrorKind::ConnectionAborted.into()),
            None => Ok(()),
        }
    }

    /// Waits until the client hangs up.
    pub async fn hung_up(&mut self) {
        let mut byte = [0];
        let _ = self.0.read(&mut byte).await;
    }
}
