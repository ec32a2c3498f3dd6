//! A machine that says something else than its client has done. The client is a real one, and trains as it should; between it and the
//! server stands whoever writes its uploads and its reports anew.

use crate::{
    http::{HttpClient, PassedOn},
    support::{Answer, FakeServer, Request},
};
use serde_json::Value;
use sojourn_codec::{Dtype, Tensor, TensorView, decode, encode};
use sojourn_protocol::{
    api::{DELTA_UPLOADS, FEATURES_HEADER, PRODUCED_CHECKPOINTS, SHA256_HEADER},
    digest::Digest,
};
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

/// A way to lie. Each false checkpoint has the names, the shapes and the lineage that are wanted, and values that are finite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lie {
    /// In evaluations, after so many honest ones: every row was right.
    Evaluations { honest: usize },
    /// In hops: each weight is half of what was trained.
    Hops,
    /// In both.
    All,
    /// In hops: what was trained is the checkpoint that the lease began from.
    Copies,
}

/// Where the client of such a machine asks.
pub(super) struct Between {
    pub(super) url: String,
    liar: Arc<Liar>,
}

impl Between {
    /// Stands between clients and the server at `url`.
    pub(super) fn start(url: &str, lie: Lie) -> Self {
        let liar = Arc::new(Liar {
            http: HttpClient::new("", None),
            url: url.to_owned(),
            lie,
            is_lying: AtomicBool::new(true),
            lies: AtomicUsize::new(0),
            evaluations: AtomicUsize::new(0),
            bases: Mutex::default(),
            uploaded: Mutex::default(),
        });
        let told = Arc::clone(&liar);
        let server = FakeServer::start(move |request| told.answer(request));
        Self { url: server.url, liar }
    }

    /// False reports so far.
    pub(super) fn lies(&self) -> usize {
        self.liar.lies.load(Ordering::SeqCst)
    }

    /// From now on it lies, or it doesn't.
    pub(super) fn set_lying(&self, is_lying: bool) {
        self.liar.is_lying.store(is_lying, Ordering::SeqCst);
    }
}

struct Liar {
    http: HttpClient,
    /// The real server's.
    url: String,
    lie: Lie,
    is_lying: AtomicBool,
    lies: AtomicUsize,
    evaluations: AtomicUsize,
    /// The checkpoints from which leases begin, where these are stored.
    bases: Mutex<BTreeMap<u64, String>>,
    /// The false checkpoints that were uploaded for leases.
    uploaded: Mutex<BTreeMap<u64, Digest>>,
}

impl Liar {
    fn answer(&self, request: &Request) -> Answer {
        let (method, path) = request.line.split_once(' ').unwrap();
        let (mut headers, mut body) = (request.headers.clone(), request.body.clone());
        if path == "/v1/results" {
            if let Some(report) = self.report(&body) {
                body = report;
            }
        } else if method == "PUT"
            && let Some(lease) = lease_of_upload(path)
        {
            let checkpoint = self.checkpoint(lease, request);
            let mut uploaded = self.uploaded.lock().unwrap();
            if let Some(checkpoint) = checkpoint {
                let digest = Digest::of(&checkpoint);
                let declared = headers.iter_mut().find(|(name, _)| name == SHA256_HEADER);
                declared.unwrap().1 = digest.to_string();
                uploaded.insert(lease, digest);
                body = checkpoint;
            } else {
                uploaded.remove(&lease);
            }
        }
        let answer = self.http.pass_on((method, &format!("{}{path}", self.url)), &headers, body);
        let Some(PassedOn { status, headers, body }) = answer else { return Answer::lost() };
        if path == "/v1/work" {
            self.note_bases(&body);
        }
        let line = |(name, value): (String, String)| match name == FEATURES_HEADER {
            true => format!("{name}: {}\r\n", as_before(&value)),
            false => format!("{name}: {value}\r\n"),
        };
        Answer { status, headers: headers.into_iter().map(line).collect(), body }
    }

    /// The report in place of the right one, if it is a lie.
    fn report(&self, body: &[u8]) -> Option<Vec<u8>> {
        let mut report: Value = serde_json::from_slice(body).ok()?;
        let lease = report["lease"].as_u64()?;
        if let Some(trained) = report.pointer_mut("/outcome/trained/checkpoint") {
            let uploaded = self.uploaded.lock().unwrap();
            trained["sha256"] = uploaded.get(&lease)?.to_string().into();
        } else {
            let shards = report.pointer_mut("/outcome/evaluated/shards")?.as_array_mut()?;
            if !self.lies_in_evaluation() {
                return None;
            }
            for sums in shards {
                sums["loss"] = 0.0.into();
                sums["correct"] = sums["rows"].clone();
            }
        }
        self.lies.fetch_add(1, Ordering::SeqCst);
        Some(report.to_string().into_bytes())
    }

    fn lies_in_evaluation(&self) -> bool {
        self.is_lying.load(Ordering::SeqCst)
            && match self.lie {
                Lie::All => true,
                Lie::Evaluations { honest } => {
                    self.evaluations.fetch_add(1, Ordering::SeqCst) >= honest
                }
                Lie::Hops | Lie::Copies => false,
            }
    }

    /// The upload for a lease in place of its checkpoint, if it is a lie.
    fn checkpoint(&self, lease: u64, request: &Request) -> Option<Vec<u8>> {
        if !self.is_lying.load(Ordering::SeqCst) {
            return None;
        }
        match self.lie {
            Lie::Evaluations { .. } => None,
            Lie::Hops | Lie::All => Some(halved(&request.body)),
            Lie::Copies => Some(copied(&self.base(lease, request)?, &request.body)),
        }
    }

    /// The checkpoint from which a lease begins, asked for as its host may; none of version 0, which isn't stored.
    fn base(&self, lease: u64, request: &Request) -> Option<Vec<u8>> {
        let sha256 = self.bases.lock().unwrap().get(&lease)?.clone();
        let url = format!("{}/v1/blobs/{sha256}", self.url);
        let answer = self.http.pass_on(("GET", &url), &request.headers, Vec::new())?;
        (answer.status == 200).then_some(answer.body)
    }

    fn note_bases(&self, answer: &[u8]) {
        let answer: Value = serde_json::from_slice(answer).unwrap_or_default();
        for lease in answer["leases"].as_array().into_iter().flatten() {
            let base = lease.pointer("/unit/train/base/checkpoint/blob/sha256");
            if let Some(base) = base.and_then(Value::as_str) {
                let lease = lease["id"].as_u64().unwrap();
                self.bases.lock().unwrap().insert(lease, base.to_owned());
            }
        }
    }
}

/// The lease whose checkpoint is uploaded to this path from its first byte on.
fn lease_of_upload(path: &str) -> Option<u64> {
    path.strip_prefix("/v1/leases/")?.strip_suffix("/checkpoint?offset=0")?.parse().ok()
}

/// The features of a server of before. Then each checkpoint is uploaded whole, and nothing begins from it before that.
fn as_before(features: &str) -> String {
    let is_kept = |name: &&str| ![DELTA_UPLOADS, PRODUCED_CHECKPOINTS].contains(name);
    features.split(',').map(str::trim).filter(is_kept).collect::<Vec<_>>().join(",")
}

/// A checkpoint whose weights are half of those of another one.
fn halved(checkpoint: &[u8]) -> Vec<u8> {
    let half = |tensor: &TensorView<'_>| {
        let own = tensor.to_tensor();
        if tensor.dtype != Dtype::F32 || tensor.name.starts_with("optimizer.") {
            return own;
        }
        let values: Vec<f32> = tensor.f32s().unwrap().map(|value| value / 2.0).collect();
        Tensor::f32(own.name, own.shape, &values)
    };
    encode(&decode(checkpoint).unwrap().iter().map(half).collect::<Vec<_>>()).unwrap()
}

/// The checkpoint `base`, with the lineage that `checkpoint` has.
fn copied(base: &[u8], checkpoint: &[u8]) -> Vec<u8> {
    let own = decode(checkpoint).unwrap();
    let own = own.iter().find(|tensor| tensor.name == "lineage").unwrap();
    let is_own = |tensor: &TensorView<'_>| tensor.name == own.name;
    let base = decode(base).unwrap();
    let tensors = base.iter().map(|of| if is_own(of) { own.to_tensor() } else { of.to_tensor() });
    encode(&tensors.collect::<Vec<_>>()).unwrap()
}
