//! A machine whose owner does what no client does: many identities, claims without bounds, progress that never ends, false
//! results, second uploads, floods, a numeric class of its own. Two honest machines of other owners finish their job beside it, every
//! trial equals its replay, and the server's memory stays within a bound.

use crate::{
    http::{PATIENCE, poll},
    site::Site,
};
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::Instant,
};

/// Machines that the hostile owner enrols.
const IDENTITIES: usize = 8;
/// Requests that the hostile owner sends at most.
const MAX_REQUESTS: usize = 20_000;
/// The most memory that the server may have had, in bytes.
const MAX_SERVER_MEMORY: u64 = 256 << 20;
/// The slowest that a machine may claim to be, in nanoseconds for a row.
const MAX_NANOS: u64 = 1_000_000_000_000_000;
/// Characters of a text that is far too long.
const LONG_TEXT_CHARS: usize = 500_000;

/// The answers to the hostile owner: how often each status came.
type Answers = BTreeMap<u16, usize>;

/// One of the hostile owner's machines.
pub(crate) struct Identity {
    token: String,
    /// Requests so far: what is done next follows from it.
    turn: usize,
    /// Leases that it was given, each with its unit.
    leases: Vec<Value>,
}

/// All machines of the hostile owner.
pub(crate) struct Hostile {
    runtime: tokio::runtime::Runtime,
    http: Client,
    url: String,
    /// The numeric class of the honest machines.
    class: String,
    answers: Answers,
    sent: usize,
    /// Results that weren't computed and that the server has acknowledged.
    pub(crate) false_results: usize,
}

impl Hostile {
    pub(crate) fn new(url: &str, class: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        // A second call changes nothing.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = Client::builder().no_proxy().timeout(PATIENCE).build().unwrap();
        let (url, class) = (url.to_owned(), class.to_owned());
        Self { runtime, http, url, class, answers: Answers::new(), sent: 0, false_results: 0 }
    }

    /// The status and the JSON of an answer; none where the connection broke.
    fn post(&mut self, path: &str, token: &str, body: &Value) -> Option<(StatusCode, Value)> {
        self.send(self.http.post(format!("{}/v1/{path}", self.url)).bearer_auth(token).json(body))
    }

    fn send(&mut self, request: reqwest::RequestBuilder) -> Option<(StatusCode, Value)> {
        self.sent += 1;
        let (status, bytes) = self.runtime.block_on(async {
            let answer = request.send().await.ok()?;
            let status = answer.status();
            Some((status, answer.bytes().await.ok()?))
        })?;
        *self.answers.entry(status.as_u16()).or_default() += 1;
        Some((status, serde_json::from_slice(&bytes).unwrap_or_default()))
    }

    pub(crate) fn enrol(&mut self, token: &str) -> Option<Identity> {
        let (status, answer) = self.post("enrol", token, &json!({ "name": "mallory" }))?;
        let token = answer["token"].as_str().filter(|_| status.is_success())?.to_owned();
        Some(Identity { token, turn: 0, leases: Vec::new() })
    }

    /// Claims of a machine: faster than any, with measurements that can't be.
    fn inventory(&self, nanos_per_row: u64) -> Value {
        let measured = json!([{
            "workload": {
                "model": { "arch": "mlp", "hidden": [32] }, "shape": [1, 8, 8], "outputs": 10, "batch_size": 32,
                "optimizer": "adam"
            },
            "nanos_per_row": nanos_per_row, "peak_memory": 0
        }]);
        json!({
            "cached": [], "client": "0.1.0",
            "devices": [{ "name": "cpu", "numeric_class": self.class, "flops": 1e18, "measured": measured }]
        })
    }

    /// Shows a machine that has a slot and wants nothing.
    pub(crate) fn show(&mut self, who: &Identity) {
        let work = json!({
            "demand": [{ "device": "cpu", "slots": 1, "idle": 0, "wanted": 0 }],
            "holding": [], "reported": [], "wait": 0, "inventory": self.inventory(MAX_NANOS)
        });
        let answer = self.post("work", &who.token, &work);
        assert!(answer.is_none_or(|(status, _)| status.is_success()));
    }

    /// Asks for work as a machine of the class, and reports lies about all that it is given. The reason that it is told where that
    /// is nothing.
    pub(crate) fn lie(&mut self, who: &Identity) -> Option<String> {
        let work = json!({
            "demand": [{ "device": "cpu", "slots": 4, "idle": 4, "wanted": 8 }],
            "holding": [], "reported": [], "wait": 0, "inventory": self.inventory(1)
        });
        let (_, answer) = self.post("work", &who.token, &work)?;
        for lease in answer["leases"].as_array().into_iter().flatten() {
            self.false_results += 1;
            let evaluation = &lease["unit"]["evaluate"];
            let outcome = match evaluation.is_object() {
                true => perfect(evaluation),
                false => self.noise(lease, &who.token, b'a'),
            };
            let report = json!({ "lease": lease["id"], "outcome": outcome });
            self.post("results", &who.token, &report);
        }
        Some(answer["waiting"].as_str()?.to_owned())
    }

    /// Does the next hostile thing with one of the machines.
    fn act(&mut self, who: &mut Identity) {
        let token = who.token.clone();
        who.turn += 1;
        let nanos = if who.turn.is_multiple_of(2) { 1 } else { MAX_NANOS };
        let held: Vec<Value> = who.leases.iter().map(|lease| trickle(lease, who.turn)).collect();
        let work = json!({
            "demand": [{ "device": "cpu", "slots": 4, "idle": 4, "wanted": 8 }],
            "holding": held, "reported": [], "wait": 0, "inventory": self.inventory(nanos)
        });
        let answer = self.post("work", &token, &work);
        let taken = answer.as_ref().is_none_or(|(status, _)| *status != StatusCode::BAD_REQUEST);
        assert!(taken, "the claims were refused: {answer:?}");
        for lease in answer.iter().flat_map(|(_, answer)| answer["leases"].as_array()).flatten() {
            if !who.leases.iter().any(|known| known["id"] == lease["id"]) {
                who.leases.push(lease.clone());
            }
        }
        let dropped = answer.map(|(_, answer)| answer["drop"].clone()).unwrap_or_default();
        let dropped = dropped.as_array().cloned().unwrap_or_default();
        who.leases.retain(|lease| !dropped.contains(&lease["id"]));
        match who.turn % 7 {
            0 => self.foreign_leases(&token),
            1 => self.past_the_bounds(&token),
            2 => drop(self.post("heartbeat", &token, &json!({ "holding": held, "reported": [] }))),
            3 => self.release(who),
            _ => self.report(who),
        }
    }

    /// Speaks of leases that aren't its own.
    fn foreign_leases(&mut self, token: &str) {
        let held: Vec<Value> =
            (1..40).map(|lease| json!({ "lease": lease, "state": "finished" })).collect();
        let reported: Vec<u64> = (1..200).collect();
        self.post("heartbeat", token, &json!({ "holding": held, "reported": reported }));
        self.post("release", token, &json!({ "leases": reported, "reason": "mine" }));
        let url = format!("{}/v1/leases/1/checkpoint", self.url);
        self.send(self.http.get(url).bearer_auth(token));
    }

    /// Sends texts and lists that are far too long.
    fn past_the_bounds(&mut self, token: &str) {
        let long = "x".repeat(LONG_TEXT_CHARS);
        let slots: Vec<Value> = (0..5_000)
            .map(|_| json!({ "device": long[..100], "slots": 1_000_000, "idle": 0, "wanted": 1 }))
            .collect();
        let inventory = json!({ "cached": [], "client": long, "devices": [] });
        for body in [
            json!({ "demand": slots, "holding": [], "reported": [], "wait": 0 }),
            json!({ "demand": [], "holding": [], "reported": [], "wait": u64::MAX, "inventory": inventory }),
        ] {
            let answer = self.post("work", token, &body);
            let status = answer.map(|(status, _)| status);
            assert!(status.is_none_or(|status| !status.is_success()), "taken in: {status:?}");
        }
        self.post("release", token, &json!({ "leases": [1], "reason": long }));
    }

    /// Gives a lease back, with a reason.
    fn release(&mut self, who: &mut Identity) {
        let Some(lease) = who.leases.pop() else { return };
        self.post("release", &who.token, &json!({ "leases": [lease["id"]], "reason": "boredom" }));
    }

    /// Reports what it hasn't done: an evaluation without a fault, a checkpoint of noise, an error of the trainer.
    fn report(&mut self, who: &mut Identity) {
        let Some(lease) = who.leases.pop() else { return };
        let (id, token) = (lease["id"].to_string(), who.token.clone());
        let evaluation = &lease["unit"]["evaluate"];
        let outcome = if evaluation.is_object() {
            perfect(evaluation)
        } else if who.turn.is_multiple_of(2) {
            let failure = json!({ "kind": "trainer", "message": "it can't be done" });
            json!({ "failed": failure })
        } else {
            self.noise(&lease, &token, b'a')
        };
        let report = json!({ "lease": lease["id"], "outcome": outcome });
        let answer = self.post("results", &token, &report);
        if answer.is_some_and(|(_, answer)| answer["state"] == "acknowledged") {
            let is_false = outcome["trained"].is_object() || outcome["evaluated"].is_object();
            self.false_results += usize::from(is_false);
        }
        // What was reported is to stay as it was.
        if outcome["trained"].is_object() {
            let other = self.noise(&lease, &token, b'b');
            self.post("results", &token, &json!({ "lease": lease["id"], "outcome": other }));
        }
        let url = format!("{}/v1/leases/{id}/checkpoint/delta", self.url);
        self.send(self.http.get(url).bearer_auth(&token));
    }

    /// Uploads bytes of the right number for a lease's checkpoint; the report that names them.
    fn noise(&mut self, lease: &Value, token: &str, byte: u8) -> Value {
        let bytes = usize::try_from(lease["upload_bytes"].as_u64().unwrap()).unwrap();
        let body = vec![byte; bytes];
        let sha256 = sojourn_protocol::digest::Digest::of(&body).to_string();
        let url = format!("{}/v1/leases/{}/checkpoint", self.url, lease["id"]);
        let request = self.http.put(url).bearer_auth(token).header("sojourn-sha256", &sha256);
        self.send(request.header("sojourn-bytes", bytes).body(body));
        let hop = &lease["unit"]["train"];
        let (start, rows) = (&hop["start"], hop["shard"]["rows"].as_u64().unwrap_or_default());
        let batches = rows.div_ceil(32);
        let end = json!({
            "epoch": start["epoch"], "shard": start["shard"], "batch": batches,
            "step": start["step"].as_u64().unwrap_or_default() + batches
        });
        let base = hop["base"]["checkpoint"]["version"].as_u64().unwrap_or_default();
        json!({ "trained": {
            "base": base, "checkpoint": { "sha256": sha256, "bytes": bytes }, "end": end,
            "sums": { "rows": rows, "loss": 0.0, "correct": rows }, "train_micros": 1
        } })
    }
}

/// A lease as a machine holds it that never comes to its end: one batch more each time.
fn trickle(lease: &Value, turn: usize) -> Value {
    json!({ "lease": lease["id"], "state": { "running": { "done": turn, "of": u32::MAX } } })
}

/// An evaluation in which every row was right.
fn perfect(evaluation: &Value) -> Value {
    let shards = evaluation["shards"].as_array().unwrap().iter();
    let sums =
        shards.map(|shard| json!({ "rows": shard["rows"], "loss": 0.0, "correct": shard["rows"] }));
    let sums: Vec<Value> = sums.collect();
    json!({ "evaluated": { "version": evaluation["version"], "shards": sums, "train_micros": 1 } })
}

/// An enrolment token for machines of an owner.
pub(crate) fn token_of(site: &Site, owner: &str, hosts: &str) -> String {
    let token = site.json(&["token", "new", "--owner", owner, "--hosts", hosts]);
    token["secret"].as_str().unwrap().to_owned()
}

/// The most memory that the server's process has had so far, in bytes.
fn peak_memory(site: &Site) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", site.server.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kib: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    kib << 10
}

#[test]
fn two_honest_owners_finish_their_job_beside_a_hostile_one() {
    let mut site = Site::start();
    let hostile_token = token_of(&site, "mallory", "8");
    let other_token = token_of(&site, "neighbour", "1");
    let mut clients = Vec::new();
    for owner in ["lab", "home"] {
        site.enrolment = token_of(&site, owner, "1");
        clients.push(site.client(owner));
    }
    let class = poll(|| {
        let hosts = site.get("hosts");
        let class = hosts[0]["devices"][0]["numeric_class"].as_str()?;
        Some(class.to_owned())
    });
    let class = class.unwrap();

    let done = Arc::new(AtomicBool::new(false));
    let (url, is_done) = (site.url.clone(), Arc::clone(&done));
    let (say_ready, ready) = mpsc::channel();
    let (say_lied, lied) = mpsc::channel();
    let hostile = thread::spawn(move || {
        let mut hostile = Hostile::new(&url, &class);
        let mut all: Vec<Identity> =
            (0..IDENTITIES).filter_map(|_| hostile.enrol(&hostile_token)).collect();
        assert_eq!(all.len(), IDENTITIES, "{:?}", hostile.answers);
        assert!(hostile.enrol(&hostile_token).is_none(), "one machine more than the token is for");
        // Another party offers the class while the honest machines take no work.
        let neighbour = hostile.enrol(&other_token).unwrap();
        hostile.show(&neighbour);
        all.iter_mut().for_each(|who| hostile.act(who));
        say_ready.send(()).unwrap();
        let begun = Instant::now();
        let mut has_lied = false;
        while !is_done.load(Ordering::SeqCst)
            && (!has_lied || hostile.sent < MAX_REQUESTS)
            && begun.elapsed() < PATIENCE
        {
            if !has_lied {
                hostile.show(&neighbour);
            }
            all.iter_mut().for_each(|who| hostile.act(who));
            if !has_lied && hostile.false_results > 0 {
                has_lied = true;
                say_lied.send(()).unwrap();
            }
        }
        hostile.answers
    });

    ready.recv().unwrap();
    // The honest machines are there and take no work, until a false result has been taken in.
    let ctl = |owner: &str, word: &str| {
        let data = site.path().join(owner);
        let output = site.run(&["client", "ctl", "--data", data.to_str().unwrap(), word]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    ["lab", "home"].iter().for_each(|owner| ctl(owner, "pause"));
    let placement = "reproducible = true\nverify = { quorum = 2, rate = 1.0 }";
    let job = site.submit_with(11, 8, "[1e-3, 3e-3]", placement);
    lied.recv().unwrap();
    ["lab", "home"].iter().for_each(|owner| ctl(owner, "resume"));
    let view = site.wait(&job, |view| view["state"] != "running");
    done.store(true, Ordering::SeqCst);
    let answers = hostile.join().unwrap();

    assert_eq!(
        (&view["state"], &view["trials_finished"]),
        (&"finished".into(), &4.into()),
        "{view}"
    );
    let best = view["best"]["value"].as_f64().unwrap();
    assert!(best < 0.9999, "a false evaluation counts: {view}");
    for trial in 0..4 {
        let replay = site.json(&["replay", &job, "--trial", &trial.to_string()]);
        assert_eq!(replay["verdict"], "identical", "{replay}");
    }
    // The server failed at nothing.
    let faults: Vec<_> = answers.iter().filter(|(status, _)| **status == 500).collect();
    assert!(faults.is_empty(), "{answers:?}:\n{}", site.log("server"));
    let hosts = site.get("hosts");
    let of = |owner: &str| {
        let hosts = hosts.as_array().unwrap().iter();
        hosts.filter(|host| host["owner"] == owner).cloned().collect::<Vec<Value>>()
    };
    assert_eq!(of("mallory").len(), IDENTITIES, "{hosts}");
    let peak = peak_memory(&site);
    assert!(peak < MAX_SERVER_MEMORY, "the server took {peak} bytes");
}

/// Nobody needs a token for it, so nobody must be able to fill the log with it.
#[test]
fn what_is_no_http_is_refused_without_a_line_in_the_log() {
    let site = Site::start();
    let address = site.url.strip_prefix("http://").unwrap();
    for bytes in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 no TLS here\r\n\r\n"[..],
        b"POST /v1/work HTTP/1.1\r\nhost: x\r\ncontent-length: -5\r\n\r\n",
        b"GET /v1/health HTTP/1.1\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n",
    ] {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(bytes).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    }
    let log = site.log("server");
    assert!(!log.contains("ERROR") && !log.contains("WARN"), "{log}");
}
