//! An S3 stand-in in this process that checks signatures, and fails when it is told to.
//!
//! `s3s-fs` keeps even what it refuses for its checksum, which S3 doesn't: that is mended here.

use hyper::{Method, Request, Response, body::Incoming, server::conn::http1, service::Service};
use hyper_util::rt::TokioIo;
use s3s::{Body, HttpError, auth::SimpleAuth, service::S3Service, service::S3ServiceBuilder};
use sojourn_blobs::StoreSettings;
use std::{
    collections::VecDeque,
    future::Future,
    io,
    path::PathBuf,
    pin::Pin,
    sync::{Arc, Mutex},
    time::Duration,
};
use tempfile::TempDir;
use tokio::{net::TcpListener, task::JoinHandle};

pub(crate) const BUCKET: &str = "sojourn-tests";
/// How long tests wait for a store that fails.
const PATIENCE: Duration = Duration::from_secs(10);
const KEY: &str = "AKIAIOSFODNN7EXAMPLE";
const SECRET: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";

/// A fault: what is done to a request instead of what it asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// 503, as a store that has too much to do.
    SlowDown,
    /// 429, as others say that.
    Throttled,
    /// The connection ends without an answer.
    Cut,
}

/// Faults to come, and what was asked.
#[derive(Debug, Default)]
pub(crate) struct Script {
    pub(crate) faults: VecDeque<Fault>,
    /// Methods and paths.
    pub(crate) seen: Vec<String>,
}

/// The stand-in; it ends with this.
#[derive(Debug)]
pub(crate) struct StandIn {
    pub(crate) url: String,
    pub(crate) script: Arc<Mutex<Script>>,
    task: JoinHandle<()>,
    folder: TempDir,
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl StandIn {
    pub(crate) async fn start() -> Self {
        provide_tls();
        let folder = TempDir::new().unwrap();
        std::fs::create_dir(folder.path().join(BUCKET)).unwrap();
        let mut builder = S3ServiceBuilder::new(s3s_fs::FileSystem::new(folder.path()).unwrap());
        builder.set_auth(SimpleAuth::from_single(KEY, SECRET));
        let script: Arc<Mutex<Script>> = Arc::default();
        let root = folder.path().to_owned();
        let front = Front { s3: builder.build(), script: Arc::clone(&script), root };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let task = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let front = front.clone();
                // A cut connection is an error here too.
                tokio::spawn(async move {
                    http1::Builder::new().serve_connection(TokioIo::new(socket), front).await
                });
            }
        });
        Self { url, script, task, folder }
    }

    /// As the store's own users have them.
    pub(crate) fn settings(&self) -> StoreSettings {
        let settings = StoreSettings::default().with_patience(PATIENCE);
        let words = self.environment();
        words.iter().fold(settings, |settings, (word, value)| settings.with(word, value))
    }

    /// The same for processes.
    pub(crate) fn environment(&self) -> Vec<(&'static str, String)> {
        let [endpoint, http, region] = reach(&self.url);
        let (key, secret) = (KEY.to_owned(), SECRET.to_owned());
        vec![endpoint, http, region, ("AWS_ACCESS_KEY_ID", key), ("AWS_SECRET_ACCESS_KEY", secret)]
    }

    /// The next requests end so.
    pub(crate) fn fail(&self, faults: &[Fault]) {
        self.script.lock().unwrap().faults.extend(faults);
    }

    /// The requests since this was called last.
    pub(crate) fn seen(&self) -> Vec<String> {
        std::mem::take(&mut self.script.lock().unwrap().seen)
    }

    /// Where the objects lie.
    pub(crate) fn bucket(&self) -> PathBuf {
        self.folder.path().join(BUCKET)
    }
}

/// As a program's main does; whoever was first has done it.
pub(crate) fn provide_tls() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// The settings of any stand-in at a URL, but for the key.
pub(crate) fn settings(url: &str) -> StoreSettings {
    let settings = StoreSettings::default().with_patience(PATIENCE);
    reach(url).iter().fold(settings, |settings, (word, value)| settings.with(word, value))
}

fn reach(url: &str) -> [(&'static str, String); 3] {
    [
        ("AWS_ENDPOINT_URL", url.to_owned()),
        ("AWS_ALLOW_HTTP", "true".to_owned()),
        ("AWS_REGION", "us-east-1".to_owned()),
    ]
}

#[derive(Clone)]
struct Front {
    s3: S3Service,
    script: Arc<Mutex<Script>>,
    root: PathBuf,
}

type Answer = Result<Response<Body>, io::Error>;

impl Service<Request<Incoming>> for Front {
    type Response = Response<Body>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = Answer> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let fault = {
            let mut script = self.script.lock().unwrap();
            script.seen.push(format!("{method} {path}"));
            script.faults.pop_front()
        };
        let refusal = |status: u16, code: &str| {
            let text = format!("<Error><Code>{code}</Code><Message>Wait.</Message></Error>");
            Ok(Response::builder().status(status).body(Body::from(text)).unwrap())
        };
        match fault {
            Some(Fault::SlowDown) => Box::pin(std::future::ready(refusal(503, "SlowDown"))),
            Some(Fault::Throttled) => Box::pin(std::future::ready(refusal(429, "TooMany"))),
            Some(Fault::Cut) => {
                Box::pin(std::future::ready(Err(io::ErrorKind::ConnectionReset.into())))
            }
            None => {
                let object = self.root.join(path.trim_start_matches('/'));
                let new = method == Method::PUT && !object.exists();
                let answer = Service::call(&self.s3, request);
                Box::pin(async move {
                    let answer = answer
                        .await
                        .map_err(|error: HttpError| io::Error::other(format!("{error:?}")))?;
                    if new && answer.status().is_client_error() && object.is_file() {
                        std::fs::remove_file(object)?;
                    }
                    Ok(answer)
                })
            }
        }
    }
}
