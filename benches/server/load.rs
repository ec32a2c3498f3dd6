//! The load of 64 hosts on a server, each over one connection and as fast as it answers.

use super::{
    connection::Connection,
    past::{self, HOSTS},
    program::{Program, Syncs},
    size,
};
use sojourn_model::{Lineage, initial_checkpoint};
use sojourn_protocol::{
    api::{BYTES_HEADER, HeartbeatRequest, ReportAnswer, SHA256_HEADER, WorkAnswer, WorkRequest},
    digest::{BlobRef, Digest},
    ids::LeaseId,
    inventory::{CPU, Demand, Device, Inventory},
    report::{Outcome, Report, ReportState},
    time::Millis,
    unit::{Lease, Unit},
};
use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

/// How long it goes on before it is watched.
fn before() -> Duration {
    Duration::from_millis(size::of(1_000, 50))
}

/// How long it is watched.
fn watched() -> Duration {
    Duration::from_millis(size::of(5_000, 300))
}

/// The kind of a cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Units {
    /// Two requests of a cycle's size, to the plain program.
    Nothing,
    /// Evaluations: a request for work, a result.
    Evaluations,
    /// Hops: a request for work, an upload, a result.
    Hops,
}

/// The measurements.
pub(crate) struct Load {
    /// A second.
    pub(crate) cycles: f64,
    pub(crate) per_sync: f64,
    /// The 99th percentile of all requests' times.
    pub(crate) slow_millis: f64,
}

/// Loads a program with cycles.
pub(crate) fn run(program: &Program, units: Units, syncs: &Syncs) -> Load {
    let stop = AtomicBool::new(false);
    let begin = Instant::now() + before();
    let (hosts, synced, took) = std::thread::scope(|scope| {
        let threads: Vec<_> = (1..=HOSTS)
            .map(|host| {
                let mut host = Host::connect(program, host, begin);
                let stop = &stop;
                scope.spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        if !host.cycle(units) {
                            stop.store(true, Ordering::Relaxed);
                        }
                    }
                    host
                })
            })
            .collect();
        std::thread::sleep(before());
        let (begun, synced_before) = (Instant::now(), syncs.count());
        while begun.elapsed() < watched() && !stop.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let (took, synced) = (begun.elapsed().as_secs_f64(), syncs.count() - synced_before);
        stop.store(true, Ordering::Relaxed);
        let hosts: Vec<Host> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        (hosts, synced, took)
    });
    assert!(took > size::of(1.0, 0.0), "the work ran out before anything was seen");
    let cycles: u64 = hosts.iter().map(|host| host.cycles).sum();
    let mut times: Vec<Duration> = hosts.into_iter().flat_map(|host| host.times).collect();
    times.sort_unstable();
    let slow = times[times.len() * 99 / 100];
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
    Load {
        cycles: cycles as f64 / took,
        per_sync: times.len() as f64 / synced as f64,
        slow_millis: slow.as_secs_f64() * 1e3,
    }
}

/// Milliseconds of the longest heartbeat while a server makes a snapshot, and of the middle one: one host
/// sends heartbeats without a pause, while work is asked for once, which is the event that was missing.
pub(crate) fn longest_heartbeat(program: &Program) -> (f64, f64) {
    let mut host = Host::connect(program, 1, Instant::now());
    let mut asker = Host::connect(program, 2, Instant::now());
    assert!(asker.ask().is_some(), "there is work");
    let body = HeartbeatRequest { holding: Vec::new(), reported: Vec::new() };
    let body = serde_json::to_vec(&body).unwrap();
    let begun = Instant::now();
    while begun.elapsed() < watched() {
        host.call("POST", "/v1/heartbeat", "", &body);
    }
    host.times.sort_unstable();
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    (millis(host.times[host.times.len() - 1]), millis(host.times[host.times.len() / 2]))
}

struct Host {
    connection: Connection,
    reported: Vec<LeaseId>,
    new: bool,
    begin: Instant,
    cycles: u64,
    times: Vec<Duration>,
}

impl Host {
    fn connect(program: &Program, host: u64, begin: Instant) -> Self {
        let connection = Connection::open(program.address, &past::token(host));
        let (reported, times) = (Vec::new(), Vec::new());
        Self { connection, reported, new: true, begin, cycles: 0, times }
    }

    fn call(&mut self, method: &str, path: &str, more: &str, body: &[u8]) -> &[u8] {
        let sent = Instant::now();
        let answer = self.connection.call(method, path, more, body);
        if sent >= self.begin {
            self.times.push(sent.elapsed());
        }
        answer
    }

    /// One cycle; whether there was work for it.
    fn cycle(&mut self, units: Units) -> bool {
        if units == Units::Nothing {
            self.call("POST", "/work", "", &[b'x'; 120]);
            self.call("POST", "/results", "", &[b'x'; 200]);
        } else {
            let Some(lease) = self.ask() else { return false };
            self.finish(&lease);
        }
        self.cycles += u64::from(Instant::now() >= self.begin);
        true
    }

    fn ask(&mut self) -> Option<Lease> {
        let inventory = self.new.then(|| Inventory {
            devices: vec![Device::new(CPU, Digest::of(b"class"), 1e9)],
            client: "bench".to_owned(),
            ..Inventory::default()
        });
        self.new = false;
        // Where hops wait for their assimilation the answer may hold nothing but what became of a report.
        for _ in 0..1000 {
            let request = WorkRequest {
                demand: vec![Demand { device: CPU.into(), slots: 1, idle: 1, wanted: 1 }],
                holding: Vec::new(),
                reported: self.reported.clone(),
                wait: Millis::from_secs(2),
                inventory: inventory.clone(),
            };
            let body = serde_json::to_vec(&request).unwrap();
            let answer: WorkAnswer =
                serde_json::from_slice(self.call("POST", "/v1/work", "", &body)).unwrap();
            let ended = answer.reports.iter().map(|report| report.lease);
            let ended: Vec<LeaseId> = ended.collect();
            self.reported.retain(|lease| !ended.contains(lease));
            if let Some(lease) = answer.leases.into_iter().next() {
                return Some(lease);
            }
            if ended.is_empty() {
                return None;
            }
        }
        None
    }

    fn finish(&mut self, lease: &Lease) {
        let (mut outcome, _) = past::outcome(lease);
        if let (Unit::Train(hop), Outcome::Trained(trained)) = (&lease.unit, &mut outcome) {
            // A lease of several hops ends with the last one's seed.
            let seed = hop.segments().last().unwrap().seed;
            let lineage = Lineage { hop_seed: seed, trial: hop.trial, position: trained.end };
            let bytes = initial_checkpoint(&hop.context, lease.id.0, lineage).unwrap();
            let length = u64::try_from(bytes.len()).unwrap();
            trained.checkpoint = BlobRef { sha256: Digest::of(&bytes), bytes: length };
            let path = format!("/v1/leases/{}/checkpoint?offset=0", lease.id);
            let sha256 = trained.checkpoint.sha256;
            let headers = format!("{SHA256_HEADER}: {sha256}\r\n{BYTES_HEADER}: {length}\r\n");
            self.call("PUT", &path, &headers, &bytes);
        }
        let report = Report { lease: lease.id, outcome };
        let body = serde_json::to_vec(&report).unwrap();
        let answer = self.call("POST", "/v1/results", "", &body);
        let answer: ReportAnswer = serde_json::from_slice(answer).unwrap();
        if answer.state == ReportState::Acknowledged {
            self.reported.push(lease.id);
        }
    }
}
