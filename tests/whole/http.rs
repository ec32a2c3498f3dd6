//! Questions to a real server by one HTTP call from the test's own process. Starting the program for each question
//! takes far longer than the answer, and takes the cores from whatever is waited for.

use reqwest::header::HeaderValue;
use serde_json::Value;
use sojourn_protocol::{
    api::{BYTES_HEADER, SHA256_HEADER},
    digest::BlobRef,
};
use std::{
    fs,
    path::Path,
    thread,
    time::{Duration, Instant},
};

/// How long a test waits for anything before it fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);
/// The pause between two looks at another process, which gives no event to wait for.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// The longest that one call may take; a server that is stopped or cut off answers nothing.
const CALL_TIMEOUT: Duration = Duration::from_secs(5);

/// Looks again and again until there is an answer; none where none came in time.
pub(crate) fn poll<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let since = Instant::now();
    while since.elapsed() < PATIENCE {
        if let Some(answer) = look() {
            return Some(answer);
        }
        thread::park_timeout(POLL_INTERVAL);
    }
    None
}

/// An answer as it came, but for what says how it travelled.
pub(crate) struct PassedOn {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

/// Does a header belong to a connection, not to what travels there?
fn is_of_connection(name: &str) -> bool {
    ["host", "connection", "content-length", "transfer-encoding"].contains(&name)
}

/// Asks servers with a token of theirs.
pub(crate) struct HttpClient {
    runtime: tokio::runtime::Runtime,
    http: reqwest::Client,
    token: String,
}

impl HttpClient {
    /// A client that trusts the certificates of `ca`, where the servers speak TLS.
    pub(crate) fn new(token: &str, ca: Option<&Path>) -> Self {
        // A second call changes nothing.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut http = reqwest::Client::builder()
            .no_proxy()
            .timeout(CALL_TIMEOUT)
            // A test may call from several networks, and servers come and go.
            .pool_max_idle_per_host(0);
        if let Some(ca) = ca {
            let certificate = reqwest::Certificate::from_pem(&fs::read(ca).unwrap()).unwrap();
            http = http.tls_certs_only([certificate]);
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { runtime, http: http.build().unwrap(), token: token.to_owned() }
    }

    /// The answer of the active server of a list with commas between; none where no server serves now.
    pub(crate) fn get(&self, servers: &str, path: &str) -> Option<Value> {
        servers.split(',').find_map(|server| self.get_from(server, path))
    }

    fn get_from(&self, server: &str, path: &str) -> Option<Value> {
        let url = format!("{server}/v1/{path}");
        self.send(&url, self.http.get(&url))
    }

    /// The text at a URL; none where the server doesn't serve now.
    pub(crate) fn text(&self, url: &str) -> Option<String> {
        self.runtime.block_on(async {
            let request = self.http.get(url).bearer_auth(&self.token);
            request.send().await.ok()?.error_for_status().ok()?.text().await.ok()
        })
    }

    /// Sends a form or a file; the answer, which is a good one, as text.
    pub(crate) fn send_body(&self, method: &str, url: &str, body: impl AsRef<[u8]>) -> String {
        self.runtime.block_on(async {
            let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
            let request = self.http.request(method, url).bearer_auth(&self.token);
            let request = request.header("content-type", "application/x-www-form-urlencoded");
            let response = request.body(body.as_ref().to_vec()).send().await.unwrap();
            let status = response.status();
            let text = response.text().await.unwrap();
            assert!(status.is_success(), "{url} answered {status}: {text}");
            text
        })
    }

    /// Stores a blob.
    pub(crate) fn put_blob(&self, server: &str, blob: BlobRef, bytes: &[u8]) -> Option<Value> {
        let url = format!("{server}/v1/blobs/{}", blob.sha256);
        let request = self.http.put(&url).header(SHA256_HEADER, blob.sha256.to_string());
        let request = request.header(BYTES_HEADER, blob.bytes.to_string());
        self.send(&url, request.body(bytes.to_vec()))
    }

    /// A server's answer to a call with this body.
    pub(crate) fn post(&self, server: &str, path: &str, body: &Value) -> Option<Value> {
        let url = format!("{server}/v1/{path}");
        self.send(&url, self.http.post(&url).json(body))
    }

    /// Asks as somebody else has asked, with that one's headers; the answer as it came, none where the connection broke. There
    /// is as much time as a test has: whoever asks for work may be told to wait.
    pub(crate) fn pass_on(
        &self,
        (method, url): (&str, &str),
        headers: &[(String, String)],
        body: Vec<u8>,
    ) -> Option<PassedOn> {
        self.runtime.block_on(async {
            let mut request = self.http.request(method.parse().unwrap(), url).timeout(PATIENCE);
            for (name, value) in headers.iter().filter(|(name, _)| !is_of_connection(name)) {
                request = request.header(name, value);
            }
            let answer = request.body(body).send().await.ok()?;
            let status = answer.status().as_u16();
            let text = |value: &HeaderValue| value.to_str().unwrap().to_owned();
            let headers =
                answer.headers().iter().map(|(name, value)| (name.to_string(), text(value)));
            let headers = headers.filter(|(name, _)| !is_of_connection(name)).collect();
            Some(PassedOn { status, headers, body: answer.bytes().await.ok()?.to_vec() })
        })
    }

    fn send(&self, url: &str, request: reqwest::RequestBuilder) -> Option<Value> {
        self.runtime.block_on(async {
            let response = request.bearer_auth(&self.token).send().await.ok()?;
            let status = response.status();
            let body = response.bytes().await.ok()?;
            if status.is_server_error() {
                return None;
            }
            let text = String::from_utf8_lossy(&body);
            assert!(status.is_success(), "{url} answered {status}: {text}");
            Some(serde_json::from_slice(&body).unwrap())
        })
    }
}
