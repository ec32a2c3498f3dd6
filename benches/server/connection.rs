//! One keep-alive connection that speaks as little HTTP as a client must, so that the load costs little.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
};

pub(crate) struct Connection {
    pub(crate) stream: TcpStream,
    token: String,
    /// The last answer, its head included.
    pub(crate) buffer: Vec<u8>,
}

impl Connection {
    pub(crate) fn open(address: SocketAddr, token: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, token: token.to_owned(), buffer: Vec::new() }
    }

    /// Sends a request and gives the answer's body, which must be one of success.
    pub(crate) fn call(&mut self, method: &str, path: &str, more: &str, body: &[u8]) -> &[u8] {
        self.send(method, path, more, body);
        self.buffer.clear();
        let mut chunk = [0; 16 << 10];
        loop {
            let count = self.stream.read(&mut chunk).unwrap();
            assert!(count > 0, "the server hung up");
            self.buffer.extend_from_slice(&chunk[..count]);
            if let Some(body) = body_of(&self.buffer) {
                let text = String::from_utf8_lossy(&self.buffer);
                assert!(text.starts_with("HTTP/1.1 200"), "{path}: {text}");
                return &self.buffer[body..];
            }
        }
    }

    /// Sends a request.
    pub(crate) fn send(&mut self, method: &str, path: &str, more: &str, body: &[u8]) {
        let (token, length) = (&self.token, body.len());
        let mut request = format!(
            "{method} {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\
             content-length: {length}\r\n{more}\r\n"
        )
        .into_bytes();
        request.extend_from_slice(body);
        self.stream.write_all(&request).unwrap();
    }
}

/// Where the body begins, once the answer is whole.
fn body_of(answer: &[u8]) -> Option<usize> {
    let head = answer.windows(4).position(|four| four == b"\r\n\r\n")?;
    let text = std::str::from_utf8(&answer[..head]).unwrap();
    if text.to_ascii_lowercase().contains("transfer-encoding: chunked") {
        return answer.ends_with(b"\r\n0\r\n\r\n").then_some(head + 4);
    }
    let mut lines = text.lines().filter_map(|line| line.split_once(": "));
    let length = lines.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length: usize = length.map_or(0, |(_, value)| value.trim().parse().unwrap());
    (answer.len() >= head + 4 + length).then_some(head + 4)
}
