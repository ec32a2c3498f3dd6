//! Stand-ins for the metadata services of the clouds, as strict about headers as they are.

use crate::http::{Answer, Connection, Request};
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Aws,
    Gcp,
    Azure,
}

/// The metadata that the service tells now.
#[derive(Debug, Clone, Default)]
pub struct Said {
    /// The notice in the cloud's own form, where there is one.
    pub notice: Option<String>,
    /// AWS alone: that a notice is likely.
    pub rebalance: bool,
    /// GCP alone: what becomes of the machine for the sake of its host.
    pub maintenance: Option<&'static str>,
    /// Azure alone: events are not answered yet.
    pub slow: bool,
    /// Everything is answered with a 500.
    pub broken: bool,
}

pub struct Metadata {
    pub url: String,
    said: Arc<Mutex<Said>>,
    /// AWS alone: tokens so far; the last one is good.
    tokens: Arc<AtomicUsize>,
    /// Requests that were left without an answer.
    slow: watch::Sender<usize>,
    accepting: JoinHandle<()>,
}

impl Drop for Metadata {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Metadata {
    pub async fn start(kind: Kind) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let said = Arc::new(Mutex::new(Said::default()));
        let tokens = Arc::new(AtomicUsize::new(0));
        let (saying, counting) = (Arc::clone(&said), Arc::clone(&tokens));
        let slow = watch::Sender::new(0);
        let leaving = slow.clone();
        let accepting = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (said, tokens) = (Arc::clone(&saying), Arc::clone(&counting));
                let slow = leaving.clone();
                tokio::spawn(async move {
                    let mut connection = Connection::new(stream);
                    while let Ok(Some(request)) = connection.head().await {
                        let said = said.lock().unwrap().clone();
                        if said.slow && request.path == "/metadata/scheduledevents" {
                            slow.send_modify(|times| *times += 1);
                            return connection.hung_up().await;
                        }
                        let (status, text) = match kind {
                            _ if said.broken => (500, "out of order".to_owned()),
                            Kind::Aws => aws(&request, &said, &tokens),
                            Kind::Gcp => gcp(&request, &said),
                            Kind::Azure => azure(&request, &said),
                        };
                        let body = text.into_bytes();
                        if connection
                            .answer(&Answer { status, body, ..Answer::default() })
                            .await
                            .is_err()
                        {
                            return;
                        }
                    }
                });
            }
        });
        Self { url, said, tokens, slow, accepting }
    }

    /// Waits until a request was left without an answer.
    pub async fn until_slow(&self) {
        self.slow.subscribe().wait_for(|times| *times > 0).await.unwrap();
    }

    pub fn say(&self, said: Said) {
        *self.said.lock().unwrap() = said;
    }

    /// Tokens that were given out are good no longer.
    pub fn forget_tokens(&self) {
        self.tokens.fetch_add(1, Ordering::SeqCst);
    }
}

fn missing() -> (u16, String) {
    (404, "<html>not found</html>".to_owned())
}

fn aws(request: &Request, said: &Said, tokens: &AtomicUsize) -> (u16, String) {
    let header = |name: &str| request.headers.get(name).map(String::as_str);
    if (request.method.as_str(), request.path.as_str()) == ("PUT", "/latest/api/token") {
        return match header("x-aws-ec2-metadata-token-ttl-seconds") {
            Some(_) => (200, format!("token-{}", tokens.fetch_add(1, Ordering::SeqCst) + 1)),
            None => (400, String::new()),
        };
    }
    let good = format!("token-{}", tokens.load(Ordering::SeqCst));
    if header("x-aws-ec2-metadata-token") != Some(good.as_str()) {
        return (401, String::new());
    }
    match request.path.as_str() {
        "/latest/meta-data/spot/instance-action" => {
            said.notice.clone().map_or_else(missing, |notice| (200, notice))
        }
        "/latest/meta-data/events/recommendations/rebalance" if said.rebalance => {
            (200, r#"{"noticeTime": "2020-10-27T08:22:00Z"}"#.to_owned())
        }
        _ => missing(),
    }
}

fn gcp(request: &Request, said: &Said) -> (u16, String) {
    let flavor = request.headers.get("metadata-flavor").map(String::as_str);
    match request.path.as_str() {
        _ if flavor != Some("Google") => (403, String::new()),
        "/computeMetadata/v1/instance/preempted" => {
            (200, said.notice.clone().unwrap_or_else(|| "FALSE".to_owned()))
        }
        "/computeMetadata/v1/instance/maintenance-event" => {
            (200, said.maintenance.unwrap_or("NONE").to_owned())
        }
        _ => missing(),
    }
}

fn azure(request: &Request, said: &Said) -> (u16, String) {
    let metadata = request.headers.get("metadata").map(String::as_str);
    match request.path.as_str() {
        _ if metadata != Some("true") => (400, "{}".to_owned()),
        "/metadata/instance/compute/name" if request.query.contains("format=text") => {
            (200, "spot_3".to_owned())
        }
        "/metadata/scheduledevents" if request.query.contains("api-version=") => {
            let events = said.notice.clone().unwrap_or_default();
            (200, format!(r#"{{"DocumentIncarnation": 1, "Events": [{events}]}}"#))
        }
        _ => missing(),
    }
}
