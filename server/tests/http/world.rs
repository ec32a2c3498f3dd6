//! A server in process on a free port, and a client that speaks HTTP by hand, so that tests can
//! send what no library would.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use crate::serve::AssimilatorConfig;
use serde::{Serialize, de::DeserializeOwned};
use sojourn_codec::{Tensor, encode};
use sojourn_model::{Lineage, initial_checkpoint};
use sojourn_protocol::{
    api::{
        BYTES_HEADER, EnrolAnswer, SHA256_HEADER, SubmitAnswer, SubmitRequest, WorkAnswer,
        WorkRequest,
    },
    digest::{BlobRef, Digest},
    error::{ApiError, ErrorKind},
    ids::LeaseId,
    inventory::{CPU, Demand, Device, Inventory},
    jobfile,
    manifest::{DataManifest, Labels, Scaling, Shard, Targets},
    report::{Outcome, Report, ReportEnd, ReportState, Sums, Trained},
    time::Millis,
    tokens::ServerToken,
    unit::{Hop, Lease, Unit},
};
use sojourn_server::{ServeConfig, Server};
use std::{net::SocketAddr, path::Path};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
};

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json<T: DeserializeOwned>(&self) -> T {
        let text = String::from_utf8_lossy(&self.body);
        assert_eq!(self.status, 200, "{text}");
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn refused(&self, kind: ErrorKind) -> ApiError {
        let text = String::from_utf8_lossy(&self.body);
        assert_eq!(self.status, kind.status(), "{text}");
        let error: ApiError = serde_json::from_slice(&self.body).unwrap();
        assert_eq!(error.kind, kind, "{error}");
        error
    }

    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned())
    }
}

/// A request that is sent as it is written here.
pub(crate) async fn send(
    address: SocketAddr,
    method: &str,
    path: &str,
    token: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Answer {
    let stream = TcpStream::connect(address).await.unwrap();
    send_on(stream, method, path, token, headers, body).await
}

/// A connection from another address of this machine.
pub(crate) async fn connect_from(own: [u8; 4], address: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((own, 0).into()).unwrap();
    socket.connect(address).await.unwrap()
}

/// As [`send`], on a connection that there is.
pub(crate) async fn send_on(
    mut stream: TcpStream,
    method: &str,
    path: &str,
    token: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Answer {
    let mut head = format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n",
        body.len()
    );
    if !token.is_empty() {
        head += &format!("authorization: Bearer {token}\r\n");
    }
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += "\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    // A server that refuses early may close while the body is still sent.
    let _ = stream.write_all(body).await;
    let mut answer = Vec::new();
    let head_end = |answer: &[u8]| answer.windows(4).position(|four| four == b"\r\n\r\n");
    // A stream of events has no end: its head is the answer.
    let is_stream = |answer: &[u8]| {
        let head = head_end(answer).and_then(|end| answer.get(..end));
        head.is_some_and(|head| String::from_utf8_lossy(head).contains("text/event-stream"))
    };
    while !is_stream(&answer) && stream.read_buf(&mut answer).await.unwrap() > 0 {}
    let end = head_end(&answer).unwrap();
    let head = String::from_utf8(answer[..end].to_vec()).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, head, body: answer[end + 4..].to_vec() }
}

pub(crate) struct World {
    pub(crate) server: Server,
    pub(crate) admin: String,
}

impl World {
    pub(crate) async fn start(data: &Path) -> Self {
        Self::with(Self::config(data, AssimilatorConfig::default())).await
    }

    /// A server on a free port with threads that assimilate.
    pub(crate) fn config(data: &Path, assimilators: AssimilatorConfig) -> ServeConfig {
        let mut config = ServeConfig::new(data.to_owned(), "127.0.0.1:0".parse().unwrap());
        config.assimilators = assimilators.local();
        config
    }

    pub(crate) async fn with(config: ServeConfig) -> Self {
        let server = Server::start(config).await.unwrap();
        let admin = server.token(ServerToken::Admin).unwrap().unwrap();
        Self { server, admin }
    }

    /// Writes small files from the log to their paths, so that they can be damaged there.
    pub(crate) fn write_out(&self) {
        self.server.write_ahead_log().retire().unwrap();
    }

    pub(crate) fn assimilator_token(&self, data: &Path) -> String {
        std::fs::read_to_string(data.join("assimilator-token")).unwrap().trim().to_owned()
    }

    pub(crate) fn enrol_token(&self) -> String {
        self.server.token(ServerToken::Enrol).unwrap().unwrap()
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.ready().address
    }

    pub(crate) async fn get(&self, path: &str, token: &str) -> Answer {
        send(self.address(), "GET", path, token, &[], b"").await
    }

    pub(crate) async fn post(&self, path: &str, token: &str, body: &impl Serialize) -> Answer {
        let body = serde_json::to_vec(body).unwrap();
        send(self.address(), "POST", path, token, &[], &body).await
    }

    pub(crate) async fn put(
        &self,
        path: &str,
        token: &str,
        declared: BlobRef,
        more: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        let (sha256, bytes) = (declared.sha256.to_string(), declared.bytes.to_string());
        let mut headers = vec![(SHA256_HEADER, sha256.as_str()), (BYTES_HEADER, bytes.as_str())];
        headers.extend(more);
        send(self.address(), "PUT", path, token, &headers, body).await
    }

    pub(crate) async fn publish(&self, bytes: &[u8]) -> BlobRef {
        let blob = blob(bytes);
        let path = format!("/v1/blobs/{}", blob.sha256);
        let answer = self.put(&path, &self.admin, blob, &[], bytes).await;
        assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
        blob
    }

    pub(crate) async fn enrol(&self, name: &str) -> EnrolAnswer {
        let token = self.enrol_token();
        self.post("/v1/enrol", &token, &serde_json::json!({ "name": name })).await.json()
    }

    /// A job of one trial, one epoch and two shards.
    pub(crate) async fn submit(&self) -> SubmitAnswer {
        self.submit_with("order = \"hop\"").await.json()
    }

    /// With this in `[placement]`.
    pub(crate) async fn submit_with(&self, placement: &str) -> Answer {
        let request = self.submission(placement).await;
        self.post("/v1/jobs", &self.admin, &request).await
    }

    /// The job of a user, for whom the blobs are there.
    pub(crate) async fn submit_as(&self, token: &str) -> Answer {
        let request = SubmitRequest { again: true, ..self.submission("order = \"hop\"").await };
        self.post("/v1/jobs", token, &request).await
    }

    async fn submission(&self, placement: &str) -> SubmitRequest {
        let spec = jobfile::parse(&format!(
            r#"
            name = "small"
            seed = 7
            [data]
            train = "x.csv"
            label = "y"
            valid = 0.5
            shards = 2
            [[model]]
            arch = "mlp"
            hidden = [3]
            [training]
            epochs = 1
            batch_size = 4
            optimizer = {{ name = "sgd", lr = 0.1 }}
            [search]
            method = "grid"
            metric = "valid/accuracy"
            goal = "max"
            [placement]
            {placement}
            "#,
        ))
        .unwrap();
        let mut shards = Vec::new();
        for number in 0..3u8 {
            let x = [f32::from(number); 20];
            let tensors = [Tensor::f32("x", [10u64, 2], &x), Tensor::i64("y", [10u64], &[0; 10])];
            let bytes = encode(&tensors).unwrap();
            shards.push(Shard { blob: self.publish(&bytes).await, rows: 10 });
        }
        let valid = vec![shards.pop().unwrap()];
        let data = DataManifest {
            columns: Vec::new(),
            shape: vec![2],
            features: vec!["a".to_owned(), "b".to_owned()],
            labels: Labels::Classes(vec!["no".to_owned(), "yes".to_owned()]),
            categories: Vec::new(),
            fill: Vec::new(),
            scaling: Scaling::None,
            targets: Targets::Plain,
            train: shards,
            valid,
            test: vec![],
        };
        SubmitRequest { spec, data, again: false, nonce: None }
    }

    pub(crate) async fn work(&self, token: &str, request: &WorkRequest) -> WorkAnswer {
        self.post("/v1/work", token, request).await.json()
    }

    /// One lease of a training unit, which may have to be planned first.
    pub(crate) async fn lease(&self, token: &str) -> Lease {
        let mut answer = self.work(token, &WorkRequest { wait: Millis(30_000), ..ask(1) }).await;
        answer.leases.pop().unwrap()
    }

    pub(crate) async fn upload(&self, token: &str, lease: &Lease, bytes: &[u8]) -> Answer {
        let path = format!("/v1/leases/{}/checkpoint", lease.id);
        self.put(&path, token, blob(bytes), &[], bytes).await
    }

    pub(crate) async fn report(&self, token: &str, report: &Report) -> Answer {
        self.post("/v1/results", token, report).await
    }

    /// Asks, held open by the server, until a report has ended.
    pub(crate) async fn end(&self, token: &str, lease: LeaseId) -> ReportEnd {
        loop {
            let mut request = ask(0);
            request.reported.push(lease);
            request.wait = Millis::from_secs(20);
            for report in self.work(token, &request).await.reports {
                if let ReportState::Ended(end) = report.state {
                    return end;
                }
            }
        }
    }
}

pub(crate) fn ask(wanted: u32) -> WorkRequest {
    WorkRequest {
        demand: vec![Demand { device: CPU.into(), slots: 1, idle: wanted, wanted }],
        holding: vec![],
        reported: vec![],
        wait: Millis(0),
        inventory: Some(Inventory {
            devices: vec![Device::new(CPU, Digest::of(b"class"), 1e9)],
            client: "test".to_owned(),
            ..Inventory::default()
        }),
    }
}

pub(crate) fn blob(bytes: &[u8]) -> BlobRef {
    BlobRef { sha256: Digest::of(bytes), bytes: bytes.len() as u64 }
}

pub(crate) fn hop(lease: &Lease) -> &Hop {
    match &lease.unit {
        Unit::Train(hop) => hop,
        Unit::Evaluate(_) => panic!("an evaluation came"),
    }
}

/// The checkpoint that a trainer might have made of a lease's unit, and its report.
pub(crate) fn trained(lease: &Lease, seed: u64) -> (Vec<u8>, Report) {
    let hop = hop(lease);
    let last = hop.segments().last().unwrap();
    let lineage = Lineage { hop_seed: last.seed, trial: hop.trial, position: last.end };
    let bytes = initial_checkpoint(&hop.context, seed, lineage).unwrap();
    let report = report_of(lease, &bytes);
    (bytes, report)
}

/// A report that says that `bytes` are the unit's result.
pub(crate) fn report_of(lease: &Lease, bytes: &[u8]) -> Report {
    let hop = hop(lease);
    let end = hop.position_after(hop.to_train());
    let rows = hop.rows_to(end).unwrap();
    let sums = Sums { rows, loss: 5.0, correct: Some(5), ..Sums::default() };
    let outcome = Outcome::Trained(Trained {
        base: hop.base.version(),
        checkpoint: blob(bytes),
        end,
        sums,
        train_micros: 1000,
    });
    Report { lease: lease.id, outcome }
}
