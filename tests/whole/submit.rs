//! `sojourn submit` against a server that is made of a few lines: what is sent, again, and in pieces.

use crate::support::{Answer, FakeServer, Folder, Request, sojourn};
use serde_json::{Value, json};
use sojourn_protocol::{
    api::{MissingRequest, SubmitRequest},
    digest::Digest,
    view::HostView,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

const JOB: &str = r#"name = "small"
[data]
train = "t.csv"
label = "y"
scale = "standard"
shards = 2
[[model]]
arch = "mlp"
hidden = [4]
[training]
epochs = 2
"#;

/// The blobs of a server, whole or in part.
#[derive(Default)]
struct Store {
    blobs: BTreeMap<Digest, Vec<u8>>,
    /// Bytes of the job that was submitted.
    submitted: Option<SubmitRequest>,
    /// Blobs that are in the store; of the others there are only bytes.
    published: BTreeSet<Digest>,
    /// So many pieces are still refused.
    broken: u32,
    /// So often a blob still can't be put into the store though all its bytes are there.
    unpublishable: u32,
    /// So many answers to a submission still get lost.
    lost: u32,
    /// The calls of all submissions that came.
    nonces: Vec<Option<String>>,
    /// The hosts that it tells of.
    hosts: Vec<HostView>,
    /// The job that it has already, as it was submitted.
    earlier: Option<SubmitRequest>,
}

impl Store {
    fn complete(&self, digest: Digest) -> bool {
        self.blobs.get(&digest).is_some_and(|bytes| Digest::of(bytes) == digest)
    }

    fn answer(&mut self, request: &Request) -> Answer {
        let (method, path) = request.line.split_once(' ').unwrap();
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let digest = || path.rsplit('/').next().unwrap().parse::<Digest>().unwrap();
        match (method, path) {
            ("GET", "/v1/health") => {
                Answer::json(200, r#"{"status":"ready","version":"0","journal_position":0}"#)
            }
            ("GET", "/v1/hosts") => Answer::json(200, json!(self.hosts).to_string()),
            ("GET", "/v1/jobs") => {
                let jobs: Vec<Value> = self.earlier.iter().map(summary).collect();
                Answer::json(200, json!(jobs).to_string())
            }
            ("GET", "/v1/jobs/1") => {
                let job = self.earlier.as_ref().unwrap();
                let detail = json!({ "summary": summary(job), "spec": job.spec, "data": job.data });
                Answer::json(200, detail.to_string())
            }
            ("POST", "/v1/blobs/missing") => {
                let asked: MissingRequest = serde_json::from_slice(&request.body).unwrap();
                let asked = asked.blobs.iter().map(|blob| blob.sha256);
                let missing: Vec<Digest> =
                    asked.filter(|name| !self.published.contains(name)).collect();
                Answer::json(200, json!({ "missing": missing }).to_string())
            }
            ("POST", "/v1/jobs") => {
                let submitted: SubmitRequest = serde_json::from_slice(&request.body).unwrap();
                self.nonces.push(submitted.nonce.clone());
                self.submitted = Some(submitted);
                if self.lost > 0 {
                    self.lost -= 1;
                    return Answer::lost();
                }
                Answer::json(200, r#"{"job":1,"trials":1,"submitted":"new"}"#)
            }
            ("GET", path) if path.starts_with("/v1/uploads/") => match self.blobs.get(&digest()) {
                Some(_) => self.state(digest()),
                None => Answer::json(404, r#"{"kind":"not-found","message":"no upload"}"#),
            },
            ("PUT", path) if path.starts_with("/v1/blobs/") => {
                let offset: usize = query.strip_prefix("offset=").unwrap().parse().unwrap();
                self.put(digest(), offset, request)
            }
            _ => panic!("an unexpected request: {}", request.line),
        }
    }

    fn put(&mut self, digest: Digest, offset: usize, request: &Request) -> Answer {
        if self.broken > 0 {
            self.broken -= 1;
            return Answer::json(503, r#"{"kind":"unavailable","message":"not now"}"#);
        }
        let bytes = match request.header("content-encoding") {
            Some("zstd") => zstd::decode_all(request.body.as_slice()).unwrap(),
            None => request.body.clone(),
            other => panic!("an unexpected encoding: {other:?}"),
        };
        let held = self.blobs.entry(digest).or_default();
        if held.len() != offset {
            let body =
                json!({ "kind": "wrong-offset", "message": "elsewhere", "offset": held.len() });
            return Answer::json(409, body.to_string());
        }
        held.extend(bytes);
        let declared: usize = request.header("sojourn-bytes").unwrap().parse().unwrap();
        assert!(held.len() <= declared);
        if self.complete(digest) {
            if self.unpublishable > 0 {
                self.unpublishable -= 1;
                return Answer::json(503, r#"{"kind":"unavailable","message":"not now"}"#);
            }
            self.published.insert(digest);
        }
        self.state(digest)
    }

    fn state(&self, digest: Digest) -> Answer {
        let state =
            json!({ "offset": self.blobs[&digest].len(), "complete": self.complete(digest) });
        Answer::json(200, state.to_string())
    }
}

fn summary(job: &SubmitRequest) -> Value {
    json!({
        "job": 1, "name": job.spec.name, "state": "running", "submitted_at": 0, "ended_at": null,
        "metric": "valid/accuracy", "trials": 1, "trials_finished": 0, "trials_failed": 0, "hops": 0,
        "hops_expected": 4, "evaluations": 0, "evaluations_expected": 2, "leases_live": 0,
        "leases_expired": 0, "leases_returned": 0, "superseded": 0, "rejected": 0, "train_micros": 0,
        "best": null, "waiting": null,
    })
}

fn host(host: u64, flops: f64) -> HostView {
    let device = json!({
        "name": "cpu", "slots": 2, "numeric_class": Digest([0; 32]), "flops": flops,
    });
    let host = json!({
        "host": host, "name": "h", "state": "live", "seen_at": 0, "slots": 2, "devices": [device],
        "cached": 0, "leases": [], "used": 0, "expired": 0, "failures": 0, "last_error": null,
        "train_micros": 0,
    });
    serde_json::from_value(host).unwrap()
}

/// Rows of the training shards that were submitted last.
fn rows(store: &Arc<Mutex<Store>>) -> Vec<u32> {
    let store = store.lock().unwrap();
    store.submitted.as_ref().unwrap().data.train.iter().map(|shard| shard.rows).collect()
}

fn csv(columns: u32, rows: u32) -> String {
    let header: String = (0..columns).map(|column| format!("c{column},")).collect();
    let row = |row: u32| -> String {
        (0..columns).map(|column| format!("{},", (row * 31 + column * 7) % 1000)).collect()
    };
    let rows: String = (0..rows).map(|index| format!("{}{}\n", row(index), index % 2)).collect();
    format!("{header}y\n{rows}")
}

fn server(store: &Arc<Mutex<Store>>) -> FakeServer {
    let store = Arc::clone(store);
    FakeServer::start(move |request| store.lock().unwrap().answer(request))
}

/// Submits; the program's JSON. The cache is a folder of the test's own and empty at the end.
fn submit(server: &FakeServer, folder: &Folder) -> Value {
    let cache = Folder::with(&[]);
    let output = sojourn(&["submit", "job.toml", "--json", "--server", &server.url])
        .current_dir(folder.path())
        .env("XDG_CACHE_HOME", cache.path())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let left = std::fs::read_dir(cache.path().join("sojourn/submit")).unwrap().count();
    assert_eq!(left, 0, "no shards are left in the cache");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn blobs_are_sent_before_the_job_and_only_those_that_are_missing() {
    let folder = Folder::with(&[("job.toml", JOB), ("t.csv", &csv(3, 40))]);
    let store = Arc::new(Mutex::new(Store::default()));
    let server = server(&store);
    let report = submit(&server, &folder);
    assert_eq!((&report["job"], &report["submitted"]), (&1.into(), &"new".into()));
    assert_eq!((&report["blobs"], &report["blobs_sent"]), (&4.into(), &4.into()));
    assert_eq!(server.lines().last().unwrap(), "POST /v1/jobs");
    {
        let mut store = store.lock().unwrap();
        let submitted = store.submitted.take().unwrap();
        assert_eq!(submitted.spec.name, "small");
        assert!(submitted.data.blobs().all(|blob| store.complete(blob.sha256)));
        assert_eq!(submitted.data.blobs().count(), store.blobs.len());
        // As if a submission had been cut off before its last blob.
        let (last, _) = store.blobs.pop_last().unwrap();
        store.published.remove(&last);
    }
    let report = submit(&server, &folder);
    assert_eq!((&report["blobs"], &report["blobs_sent"]), (&4.into(), &1.into()));
}

#[test]
fn another_seed_of_the_same_data_sends_nothing() {
    let job = |seed: &str, data: &str| {
        format!("seed = {seed}\n{}", JOB.replace("[data]\n", &format!("[data]\n{data}\n")))
    };
    let folder = Folder::with(&[("job.toml", &job("1", "")), ("t.csv", &csv(3, 40))]);
    let store = Arc::new(Mutex::new(Store::default()));
    let server = server(&store);
    assert_eq!(submit(&server, &folder)["blobs_sent"], 4);
    let again = |job: &str| {
        std::fs::write(folder.path().join("job.toml"), job).unwrap();
        let sent = submit(&server, &folder)["blobs_sent"].as_u64().unwrap();
        let spec = store.lock().unwrap().submitted.take().unwrap().spec;
        (sent, spec.seed, spec.data.seed)
    };
    // The first is the same job; the job says how its rows are dealt, where that isn't by its own seed.
    assert_eq!(again(&job("1", "")), (0, 1, Some(0)));
    assert_eq!(again(&job("2", "")), (0, 2, Some(0)));
    assert_eq!(again(&job("{ choice = [3, 4] }", "")), (0, 3, Some(0)));
    assert_eq!(again(JOB), (0, 0, None));
    // All that lies in a shard goes by the seed that is said here, the scaling of the rows to train on too.
    assert_eq!(again(&job("2", "seed = 5")), (4, 2, Some(5)));
    assert_eq!(again(&job("5", "seed = 5")), (0, 5, None));
    // Rows of a file of their own leave the training shards as they are.
    let own = |valid: &str| job("2", &format!("valid = \"{valid}\""));
    std::fs::write(folder.path().join("v.csv"), csv(3, 9)).unwrap();
    std::fs::write(folder.path().join("w.csv"), csv(3, 8)).unwrap();
    assert_eq!(again(&own("v.csv")).0, 4);
    assert_eq!(again(&own("w.csv")).0, 1);
}

#[test]
fn an_upload_continues_where_it_was_cut_off() {
    // One shard of over one piece.
    let job = JOB.replace("shards = 2", "shards = 1").replace("label", "valid = 0.01\nlabel");
    let folder = Folder::with(&[("job.toml", &job), ("t.csv", &csv(300, 4000))]);
    let store = Arc::new(Mutex::new(Store::default()));
    let whole = server(&store);
    submit(&whole, &folder);
    let puts: Vec<String> =
        whole.lines().into_iter().filter(|line| line.starts_with("PUT")).collect();
    assert!(puts.iter().any(|line| line.ends_with("?offset=4194304")), "{puts:?}");

    let large = {
        let mut store = store.lock().unwrap();
        let (name, bytes) = store.blobs.iter_mut().max_by_key(|(_, bytes)| bytes.len()).unwrap();
        bytes.truncate(1_000_000);
        let name = *name;
        store.published.remove(&name);
        store.broken = 1;
        name
    };
    let again = server(&store);
    let report = submit(&again, &folder);
    assert_eq!(report["blobs_sent"], 1);
    assert!(store.lock().unwrap().complete(large));
    let offsets: Vec<String> = (again.lines().into_iter())
        .filter(|line| line.starts_with("PUT"))
        .map(|line| line.split_once("offset=").unwrap().1.to_owned())
        .collect();
    assert_eq!(offsets, ["1000000", "1000000"], "refused once, then the rest in one piece");
}

#[test]
fn complete_bytes_are_no_blob_before_they_are_verified() {
    let folder = Folder::with(&[("job.toml", JOB), ("t.csv", &csv(3, 40))]);
    // As when the server is killed, or its disk is full, between the last byte and the store.
    let store = Arc::new(Mutex::new(Store { unpublishable: 2, ..Store::default() }));
    let server = server(&store);
    let report = submit(&server, &folder);
    assert_eq!(report["blobs_sent"], 4);
    let store = store.lock().unwrap();
    assert_eq!(store.unpublishable, 0);
    assert!(store.blobs.keys().eq(&store.published), "{:?}", server.lines());
}

#[test]
fn a_submission_with_a_lost_answer_is_repeated_as_the_same_call() {
    let folder = Folder::with(&[("job.toml", JOB), ("t.csv", &csv(3, 40))]);
    let store = Arc::new(Mutex::new(Store { lost: 2, ..Store::default() }));
    let server = server(&store);
    assert_eq!(submit(&server, &folder)["job"], 1);
    assert_eq!(submit(&server, &folder)["job"], 1);
    let nonces = &store.lock().unwrap().nonces;
    assert_eq!(nonces.len(), 4, "lost twice, answered, and another call");
    let first = nonces[0].as_ref().unwrap();
    assert!(first.len() == 32 && first.bytes().all(|byte| byte.is_ascii_hexdigit()), "{first}");
    assert!(nonces[..3].iter().all(|nonce| nonce.as_ref() == Some(first)), "{nonces:?}");
    assert_ne!(nonces[3].as_ref(), Some(first));
}

#[test]
fn bad_data_is_code_2_and_nothing_is_sent_or_left() {
    let folder = Folder::with(&[("job.toml", JOB), ("t.csv", "c,y\n1,0\n2,1\n3,x y\n4\n")]);
    let store = Arc::new(Mutex::new(Store::default()));
    let server = server(&store);
    let cache = Folder::with(&[]);
    let output = sojourn(&["submit", "job.toml", "--server", &server.url])
        .current_dir(folder.path())
        .env("XDG_CACHE_HOME", cache.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(told, "error: t.csv:5: 1 values, the header has 2 columns\n");
    assert!(store.lock().unwrap().blobs.is_empty());
    assert!(store.lock().unwrap().submitted.is_none());
    assert_eq!(std::fs::read_dir(cache.path().join("sojourn/submit")).unwrap().count(), 0);
}

/// A file that may not grow stands in for a disk that is full: writing fails half-way either way.
#[test]
fn a_full_disk_leaves_no_partial_files() {
    let folder = Folder::with(&[("job.toml", JOB), ("t.csv", &csv(100, 2000))]);
    let store = Arc::new(Mutex::new(Store::default()));
    let server = server(&store);
    let cache = Folder::with(&[]);
    let script = "trap '' XFSZ; ulimit -f 64; exec \"$0\" submit job.toml --server \"$1\"";
    let output = std::process::Command::new("bash")
        .args(["-c", script, env!("CARGO_BIN_EXE_sojourn"), &server.url])
        .current_dir(folder.path())
        .env("XDG_CACHE_HOME", cache.path())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.starts_with("error: can't write `"), "{told}");
    assert!(told.contains("File too large"), "{told}");
    assert_eq!(output.status.code(), Some(1));
    assert!(store.lock().unwrap().blobs.is_empty(), "nothing was sent");
    assert_eq!(std::fs::read_dir(cache.path().join("sojourn/submit")).unwrap().count(), 0);
}

#[test]
fn the_next_submission_removes_what_a_killed_one_left() {
    let folder = Folder::with(&[("job.toml", JOB), ("t.csv", &csv(3, 40))]);
    let cache = Folder::with(&[]);
    let submissions = cache.path().join("sojourn/submit");
    let left = submissions.join("s-left");
    std::fs::create_dir_all(&left).unwrap();
    std::fs::write(left.join("lock"), "").unwrap();
    std::fs::write(left.join("half"), "shard").unwrap();
    let held = submissions.join("s-held");
    std::fs::create_dir_all(&held).unwrap();
    let lock = std::fs::File::create(held.join("lock")).unwrap();
    lock.lock().unwrap();
    let store = Arc::new(Mutex::new(Store::default()));
    let server = server(&store);
    sojourn(&["submit", "job.toml", "--server", &server.url])
        .current_dir(folder.path())
        .env("XDG_CACHE_HOME", cache.path())
        .assert()
        .success();
    assert!(!left.exists(), "nobody holds it");
    assert!(held.exists(), "somebody still works there");
}

#[test]
fn the_number_of_shards_follows_data_and_hosts_and_is_part_of_the_job() {
    let job = JOB.replace("shards = 2\n", "");
    let folder = Folder::with(&[("job.toml", &job), ("t.csv", &csv(3, 4000))]);
    let store = Arc::new(Mutex::new(Store::default()));
    let server = server(&store);
    let report = submit(&server, &folder);
    assert_eq!(report["shards"], 4);
    let why = report["shards_because"].as_str().unwrap();
    assert!(why.starts_with("4 shards: by rows and models alone; a hop takes about "), "{why}");
    assert_eq!(report["visits"], "fixed");
    assert_eq!(report["visits_because"], "fixed: no host is known that waits for it");
    assert_eq!(rows(&store), [800; 4]);
    assert_eq!(store.lock().unwrap().submitted.as_ref().unwrap().spec.data.shards, Some(4));

    // Slow ones, for which hops are long.
    store.lock().unwrap().hosts = (1..=3).map(|n| host(n, 1e4)).collect();
    let output = sojourn(&["submit", "job.toml", "--server", &server.url])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.starts_with("4 shards: 3 hosts with 6 slots; a hop takes about 9 s, "), "{said}");
    let few = "visits free: 1 trial would leave most of 6 slots idle, so results are merged\n\
               another run may end with other models: ";
    assert!(said.contains(few), "{said}");
    let spec = store.lock().unwrap().submitted.as_ref().unwrap().spec.clone();
    assert_eq!(spec.placement.visits, Some(sojourn_protocol::spec::Visits::Free));
}

#[test]
fn a_job_submitted_again_has_the_same_shards_though_hosts_joined() {
    let job = JOB.replace("shards = 2\n", "") + "[placement]\nreplicas = 1\n";
    let folder = Folder::with(&[("job.toml", &job), ("t.csv", &csv(3, 4000))]);
    let store = Arc::new(Mutex::new(Store::default()));
    store.lock().unwrap().hosts = vec![host(1, 1e4), host(2, 3e4)];
    let server = server(&store);
    submit(&server, &folder);
    let first = rows(&store);
    assert_eq!(first, [600, 599, 600, 599, 201, 200, 201, 200], "in proportion to the speeds");
    {
        let mut store = store.lock().unwrap();
        store.earlier = store.submitted.take();
        store.hosts = (1..=5).map(|n| host(n, 1e4)).collect();
    }
    let report = submit(&server, &folder);
    assert_eq!(report["shards_because"], "8 shards, as job 1 has");
    assert_eq!((rows(&store), &report["blobs_sent"]), (first, &0.into()));
    let store = store.lock().unwrap();
    let both = [&store.earlier, &store.submitted].map(|of| of.as_ref().unwrap());
    assert_eq!((&both[0].spec, &both[0].data), (&both[1].spec, &both[1].data), "the same job");
}

/// An IDX file of bytes.
fn idx(shape: &[u32], bytes: &[u8]) -> Vec<u8> {
    let mut file = vec![0, 0, 8, u8::try_from(shape.len()).unwrap()];
    file.extend(shape.iter().flat_map(|side| side.to_be_bytes()));
    file.extend(bytes);
    file
}

#[test]
fn bytes_are_sent_as_bytes_and_train_to_the_models_of_the_same_numbers_as_text() {
    const IMAGES: u32 = 90;
    let pixels: Vec<u8> = (0..IMAGES * 64).map(|at| u8::try_from(at * 89 % 253).unwrap()).collect();
    let labels: Vec<u8> = (0..IMAGES).map(|row| u8::try_from(row % 3).unwrap()).collect();
    let header: String = (0..64).map(|column| format!("c{column},")).collect();
    let rows = pixels.chunks(64).zip(&labels).map(|(row, label)| {
        let numbers: String = row.iter().map(|pixel| format!("{pixel},")).collect();
        format!("{numbers}{label}\n")
    });
    let csv = format!("{header}y\n{}", rows.collect::<String>());
    let job = |data: &str| {
        JOB.replace("label = \"y\"\n", "shape = [1, 8, 8]\n")
            .replace("train = \"t.csv\"\n", data)
            .replace("arch = \"mlp\"\nhidden = [4]", "arch = \"cnn\"\nchannels = [2]")
    };
    let text = job("train = \"t.csv\"\nlabel = \"y\"\n");
    let images = job("train = \"t-images-idx3-ubyte\"\n");
    let folder = Folder::with(&[("text.toml", &text), ("job.toml", &images), ("t.csv", &csv)]);
    let write = |name: &str, file| std::fs::write(folder.path().join(name), file).unwrap();
    write("t-images-idx3-ubyte", idx(&[IMAGES, 8, 8], &pixels));
    write("t-labels-idx1-ubyte", idx(&[IMAGES], &labels));

    let store = Arc::new(Mutex::new(Store::default()));
    let report = submit(&server(&store), &folder);
    let sent = report["bytes_sent"].as_u64().unwrap();
    // Labels have 8 bytes each, and the scaling 8 for each pixel.
    let expected = u64::from(IMAGES) * (64 + 8) + 64 * 8;
    assert!((expected..expected + 1000).contains(&sent), "{sent} bytes, {expected} expected");

    let replay = |name: &str| -> Value {
        let output = sojourn(&["replay", name, "--trial", "0", "--json"])
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let (of_text, of_images) = (replay("text.toml"), replay("job.toml"));
    assert_eq!(of_text["epochs"].as_array().unwrap().len(), 2);
    assert_eq!(of_text["epochs"], of_images["epochs"], "the same models, byte for byte");
}
