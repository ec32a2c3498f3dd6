//! The addresses of a deployment's servers. One of them is active; the others answer that they stand by, or not at
//! all. A request then goes to the next one, and later requests to the one that answered.

use reqwest::{Client, Request, RequestBuilder, Response, StatusCode, Url};
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

/// Why a list of servers can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{url}` is no server address: {reason}")]
pub struct ServersError {
    /// The text that was given.
    pub url: String,
    /// The reason.
    pub reason: String,
}

/// Addresses, at least one, each with a path that ends in `/`. Clones share which of them is asked.
#[derive(Clone)]
pub struct Servers {
    urls: Arc<[Url]>,
    current: Arc<AtomicUsize>,
}

impl fmt::Debug for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.urls.iter().map(Url::as_str)).finish()
    }
}

impl fmt::Display for Servers {
    /// The address that is asked.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.current().fmt(f)
    }
}

impl Servers {
    /// Reads `URL[,URL]...`; each is `https` where `tls` asks for it.
    ///
    /// # Errors
    /// An address that isn't `http` or `https`, isn't `https` where it must be, or has more than a path.
    pub fn parse(text: &str, tls: bool) -> Result<Self, ServersError> {
        let urls = text.split(',').map(|url| address(url.trim(), tls)).collect::<Result<_, _>>()?;
        Ok(Self { urls, current: Arc::default() })
    }

    /// All addresses.
    #[must_use]
    pub fn urls(&self) -> &[Url] {
        &self.urls
    }

    /// The address that is asked now.
    #[must_use]
    pub fn current(&self) -> &Url {
        let at = self.current.load(Ordering::Acquire) % self.urls.len();
        // There is at least one: an empty text is no address.
        self.urls.get(at).unwrap_or_else(|| unreachable!("a list of servers is never empty"))
    }

    /// The address of a path below the server that is asked.
    #[must_use]
    pub fn path(&self, path: &str) -> String {
        // Joined as text: every path is a constant with ids in it.
        format!("{}{path}", self.current())
    }

    /// Sends a request that was made for the server that is asked. Where that one is away or stands by, the request
    /// goes to the next at once, if it can be sent twice, until each has had it.
    ///
    /// # Errors
    /// The error of the last attempt.
    pub async fn send(&self, http: &Client, request: RequestBuilder) -> reqwest::Result<Response> {
        let mut request = request.build()?;
        for _ in 1..self.urls.len() {
            let Some(copy) = request.try_clone() else { break };
            let asked = self.index_of(copy.url());
            let answer = http.execute(copy).await;
            if !is_away(&answer) {
                return answer;
            }
            self.redirect_to_next(asked, &mut request);
        }
        let asked = self.index_of(request.url());
        let answer = http.execute(request).await;
        if is_away(&answer) {
            self.advance(asked);
        }
        answer
    }

    /// Which server an address belongs to.
    fn index_of(&self, url: &Url) -> usize {
        let below = |base: &Url| url.as_str().starts_with(base.as_str());
        self.urls.iter().position(below).unwrap_or_default()
    }

    /// From now on the server after `asked` is asked, unless another request has moved on already.
    fn advance(&self, asked: usize) {
        let next = (asked + 1) % self.urls.len();
        // An error says that another request has moved on.
        let _ = self.current.compare_exchange(asked, next, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Leaves the server `asked`, and addresses the request to the next one.
    fn redirect_to_next(&self, asked: usize, request: &mut Request) {
        self.advance(asked);
        let next = (asked + 1) % self.urls.len();
        let (Some(from), Some(to)) = (self.urls.get(asked), self.urls.get(next)) else { return };
        let rest = request.url().as_str().strip_prefix(from.as_str()).unwrap_or_default();
        if let Ok(url) = Url::parse(&format!("{to}{rest}")) {
            *request.url_mut() = url;
        }
    }
}

/// Is the server that was asked not there, or not the active one?
fn is_away(answer: &reqwest::Result<Response>) -> bool {
    match answer {
        Ok(answer) => matches!(
            answer.status(),
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT
        ),
        Err(error) => !error.is_builder(),
    }
}

fn address(text: &str, tls: bool) -> Result<Url, ServersError> {
    let refuse = |reason: &str| ServersError { url: text.to_owned(), reason: reason.to_owned() };
    let scheme = text.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    if !matches!(scheme.as_deref(), Some("http" | "https")) {
        return Err(refuse("it must start with `http://` or `https://`"));
    }
    let mut url = Url::parse(text).map_err(|error| refuse(&error.to_string()))?;
    if tls && url.scheme() == "http" {
        let reason = "it must start with `https://` where the certificate of an authority is named";
        return Err(refuse(reason));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(refuse("it must end with its path"));
    }
    if !url.path().ends_with('/') {
        url.set_path(&format!("{}/", url.path()));
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };

    /// Answers every request with a status; gives its address.
    async fn answers(status: u16) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut head = [0; 4096];
                let _ = stream.read(&mut head).await;
                let path = String::from_utf8_lossy(&head).split(' ').nth(1).unwrap().to_owned();
                let answer = format!(
                    "HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{path}",
                    path.len()
                );
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        address
    }

    async fn away() -> SocketAddr {
        TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
    }

    fn client() -> Client {
        let _ = rustls::crypto::ring::default_provider().install_default();
        Client::builder().no_proxy().tls_certs_only([]).build().unwrap()
    }

    #[tokio::test]
    async fn the_active_server_is_found_and_kept() {
        let (away, standby, active) = (away().await, answers(503).await, answers(200).await);
        let list = format!("http://{away}, http://{standby}/x/,http://{active}/y");
        let (servers, http) = (Servers::parse(&list, false).unwrap(), client());
        for _ in 0..2 {
            let answer =
                servers.send(&http, http.get(servers.path("v1/health?a=b"))).await.unwrap();
            assert_eq!(answer.status(), 200);
            assert_eq!(answer.text().await.unwrap(), "/y/v1/health?a=b");
            assert_eq!(servers.current().as_str(), format!("http://{active}/y/"));
        }
    }

    #[tokio::test]
    async fn a_request_that_can_not_be_sent_twice_has_the_next_server_asked_from_then_on() {
        let (standby, active) = (answers(503).await, answers(200).await);
        let servers = Servers::parse(&format!("http://{standby},http://{active}"), false).unwrap();
        let http = client();
        let stream = || {
            let bytes = futures::stream::iter([Ok::<_, std::io::Error>("once")]);
            http.put(servers.path("v1/x")).body(reqwest::Body::wrap_stream(bytes))
        };
        assert_eq!(servers.send(&http, stream()).await.unwrap().status(), 503);
        assert_eq!(servers.send(&http, stream()).await.unwrap().status(), 200);
    }

    #[tokio::test]
    async fn without_an_active_server_the_last_answer_counts_and_all_are_asked_again() {
        let (one, two) = (answers(503).await, answers(503).await);
        let servers = Servers::parse(&format!("http://{one},http://{two}"), false).unwrap();
        let http = client();
        for _ in 0..3 {
            let answer = servers.send(&http, http.get(servers.path("v1/jobs"))).await.unwrap();
            assert_eq!(answer.status(), 503);
        }
        // A refusal is an answer, and no reason to ask another.
        let refuses = answers(401).await;
        let servers = Servers::parse(&format!("http://{refuses},http://{one}"), false).unwrap();
        let answer = servers.send(&http, http.get(servers.path("v1/jobs"))).await.unwrap();
        assert_eq!(answer.status(), 401);
    }

    #[test]
    fn addresses_are_checked_one_by_one() {
        let servers = Servers::parse("https://a:7070/prefix", true).unwrap();
        assert_eq!(servers.path("v1/work"), "https://a:7070/prefix/v1/work");
        for (bad, tls) in [
            ("", false),
            ("http://a,", false),
            ("http://a,ftp://b", false),
            ("http://a?x", false),
            ("https://a,http://b", true),
        ] {
            assert!(Servers::parse(bad, tls).is_err(), "{bad}");
        }
    }
}
