//! Many hosts that wait for work, each with a request that the server holds open.

use super::{
    connection::Connection,
    figure,
    past::{self, Past, Shape},
    program::{Program, Syncs},
    size,
};
use sojourn_protocol::{
    api::{HeartbeatRequest, WorkRequest},
    digest::Digest,
    inventory::{CPU, Demand, Device, Inventory},
    time::Millis,
};
use std::time::{Duration, Instant};

/// As many as two processes have files for where there may be 20,000.
fn hosts() -> u64 {
    size::of(8_000, 100)
}

/// How long they are watched: less than the server holds a request.
fn watched() -> Duration {
    Duration::from_millis(size::of(5_000, 100))
}

/// The memory that each of them takes, and how long a heartbeat takes beside them.
pub(crate) fn waiting() {
    let folder = tempfile::tempdir().unwrap();
    let mut past = Past::begin(folder.path(), &Shape { trials: 1, epochs: 1, shards: 1 });
    let hosts = hosts();
    past.enrol(past::HOSTS + 1..=hosts + 1);
    past.end();
    // All come from one address, as they do behind a proxy.
    let more = ["--behind-proxy".to_owned()];
    let program = Program::serve_with(folder.path(), &Syncs::new(Duration::ZERO), &more);
    let alone = heartbeat(&program);
    let before = program.resident();
    let body = serde_json::to_vec(&ask(Millis::from_secs(60))).unwrap();
    let asks = (1..=hosts).map(|host| {
        let mut asks = Connection::open(program.address, &past::token(host));
        asks.send("POST", "/v1/work", "", &body);
        asks
    });
    let asks: Vec<Connection> = asks.collect();
    let beside = heartbeat(&program);
    let name = format!("heartbeat beside {hosts} hosts that wait, median, beside one without them");
    figure(&name, beside, "ms", alone);
    #[expect(clippy::cast_precision_loss, reason = "bytes far below 2^53")]
    let each = (program.resident() - before) as f64 / hosts as f64 / 1024.0;
    let name = "memory of a host that waits, over HTTP, beside the server's own";
    #[expect(clippy::cast_precision_loss, reason = "bytes far below 2^53")]
    figure(name, each, "KiB", before as f64 / 1024.0);
    drop(asks);
}

/// The request of a host with one slot, which waits so long for work.
pub(crate) fn ask(wait: Millis) -> WorkRequest {
    let inventory = Inventory {
        devices: vec![Device::new(CPU, Digest::of(b"class"), 1e9)],
        client: "bench".to_owned(),
        ..Inventory::default()
    };
    WorkRequest {
        demand: vec![Demand { device: CPU.into(), slots: 1, idle: 1, wanted: 1 }],
        holding: Vec::new(),
        reported: Vec::new(),
        wait,
        inventory: Some(inventory),
    }
}

/// Milliseconds of the middle heartbeat of one host that does nothing else for a while.
fn heartbeat(program: &Program) -> f64 {
    let mut host = Connection::open(program.address, &past::token(hosts() + 1));
    let body = HeartbeatRequest { holding: Vec::new(), reported: Vec::new() };
    let body = serde_json::to_vec(&body).unwrap();
    let (begun, mut times) = (Instant::now(), Vec::new());
    while begun.elapsed() < watched() {
        let sent = Instant::now();
        host.call("POST", "/v1/heartbeat", "", &body);
        times.push(sent.elapsed());
    }
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e3
}
