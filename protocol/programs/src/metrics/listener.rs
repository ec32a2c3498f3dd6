//! The port where a program's metrics are read.

use super::TextFormat;
use hyper::{
    Method, Request, Response, StatusCode,
    body::Incoming,
    header::{CONTENT_TYPE, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use std::{convert::Infallible, fmt, future::ready, net::SocketAddr, sync::Arc, time::Duration};
use tokio::{net::TcpListener, sync::Semaphore, time::timeout};
use tracing::debug;

/// Bytes that a request's head has at most.
const MAX_HEAD: usize = 4096;
/// How long a reader has for its request and our answer.
const READER_TIMEOUT: Duration = Duration::from_secs(5);
/// Readers at a time.
const MAX_READERS: usize = 8;

/// Binds the address. The future serves `scrape`, in Prometheus' own format, until it is dropped.
///
/// # Errors
/// Where the port can't be had.
pub async fn listen(
    address: SocketAddr,
    scrape: impl Fn() -> Result<String, fmt::Error> + Clone + Send + 'static,
) -> std::io::Result<(SocketAddr, impl Future<Output = ()> + Send)> {
    let listener = TcpListener::bind(address).await?;
    let bound = listener.local_addr()?;
    let readers = Arc::new(Semaphore::new(MAX_READERS));
    let serve = async move {
        loop {
            let Ok(permit) = readers.clone().acquire_owned().await else { return };
            let Ok((stream, _)) = listener.accept().await else {
                // Too many open files, for one: the next may come later.
                tokio::time::sleep(Duration::from_secs(1)).await;
                continue;
            };
            let scrape = scrape.clone();
            let service =
                service_fn(move |request| ready(Ok::<_, Infallible>(answer(&request, &scrape))));
            let mut http = http1::Builder::new();
            http.keep_alive(false).max_header_size(MAX_HEAD).header_read_timeout(None);
            let connection = http.serve_connection(TokioIo::new(stream), service);
            tokio::spawn(async move {
                if let Ok(Err(error)) = timeout(READER_TIMEOUT, connection).await {
                    debug!(%error, "a reader of metrics has gone");
                }
                drop(permit);
            });
        }
    };
    Ok((bound, serve))
}

/// Answers one request: `GET /metrics`.
fn answer(
    request: &Request<Incoming>,
    scrape: impl Fn() -> Result<String, fmt::Error>,
) -> Response<String> {
    let is_asked = request.method() == Method::GET && request.uri().path() == "/metrics";
    let (status, text) = match is_asked.then(scrape) {
        Some(Ok(text)) => (StatusCode::OK, text),
        Some(Err(_)) => {
            (StatusCode::INTERNAL_SERVER_ERROR, "a metric can't be written\n".to_owned())
        }
        None => (StatusCode::NOT_FOUND, "metrics are at /metrics\n".to_owned()),
    };
    let mut response = Response::new(text);
    *response.status_mut() = status;
    let media_type = HeaderValue::from_static(TextFormat::Prometheus.media_type());
    response.headers_mut().insert(CONTENT_TYPE, media_type);
    response
}
