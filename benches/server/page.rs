//! The web page of a job with many trials: its weight, the time until a browser paints it, how often a second it is answered, and the
//! memory of those who watch it. And the page of many hosts.

use super::{
    connection::Connection,
    figure,
    past::{self, Past, Shape},
    program::{Program, Syncs},
    size, waiting,
};
use serde_json::Value;
use sojourn_protocol::time::Millis;
use std::{
    collections::BTreeSet,
    fs,
    io::Read as _,
    net::TcpStream,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

/// `scripts/setup-tests` makes it, with Playwright.
const PYTHON: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/.cache/python/bin/python");
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/server/first_paint.py");
const CHROMIUM: &str = "/usr/bin/chromium";
/// The header by which a browser takes compressed answers.
const GZIP: &str = "accept-encoding: gzip\r\n";
const JOB: &str = "/jobs/1";
const BOARD: &str = "/jobs/1?part=board&sort=&down=false&filter=&from=0";
/// The address of the data that the charts are drawn from.
const SEARCH: &str = "/v1/jobs/1/search";
/// Bytes that a first load should take at most.
const WEIGHT: f64 = 300e3;
/// Milliseconds until something is painted, at most.
const PAINT: f64 = 1_000.0;

fn trials() -> u32 {
    size::of(1_000, 20)
}

fn hosts() -> u64 {
    size::of(1_000, 70)
}

/// Browsers that listen for changes.
fn viewers() -> u64 {
    size::of(500, 10)
}

/// How long a page is asked for again and again.
fn watched() -> Duration {
    Duration::from_millis(size::of(3_000, 50))
}

/// All of it, over one server. Half of the trials are trained.
pub(crate) fn page() {
    let folder = tempfile::tempdir().unwrap();
    let shape = Shape { trials: trials(), epochs: 10, shards: 1 };
    let mut past = Past::begin(folder.path(), &shape);
    past.enrol(past::HOSTS + 1..=hosts());
    past.train_trials(usize::try_from(trials() / 2).unwrap());
    past.end();
    // All come from one address, as they do behind a proxy.
    let more = ["--behind-proxy".to_owned()];
    let program = Program::serve_with(folder.path(), &Syncs::new(Duration::ZERO), &more);
    let token = fs::read_to_string(folder.path().join("admin-token")).unwrap();
    let token = token.trim();
    let mut user = Connection::open(program.address, token);
    memory_of_viewers(&program, token, &mut user);
    weight(&mut user);
    first_paint(&program, token);
    // The server has closed the other one while the browser loaded.
    let mut user = Connection::open(program.address, token);
    let health = per_second(&mut user, "/v1/health");
    for (path, what) in [(JOB, "the page of a job"), (BOARD, "its leader board")] {
        let name = format!("{what} of {} trials, one connection, beside /v1/health", trials());
        figure(&name, per_second(&mut user, path), "1/s", health);
    }
    page_of_hosts(&program, token);
}

fn weight(user: &mut Connection) {
    let page = user.call("GET", JOB, "", b"");
    let assets = assets(&String::from_utf8_lossy(page));
    assert!(assets.len() > 3, "{assets:?}");
    let mut all = 0;
    for path in assets.iter().map(String::as_str).chain([JOB, SEARCH]) {
        user.call("GET", path, GZIP, b"");
        all += user.buffer.len();
    }
    let name = format!(
        "first load of the page of a job of {} trials with its files, gzip; beside the target",
        trials()
    );
    figure(&name, kilobytes(all), "kB", WEIGHT / 1e3);
    let packed = user.buffer.len();
    user.call("GET", SEARCH, "", b"");
    let name = format!(
        "what the charts of {} trials are drawn from, gzip; beside the same unpacked",
        trials()
    );
    figure(&name, kilobytes(packed), "kB", kilobytes(user.buffer.len()));
}

/// The files that a page names, by addresses from the server's root. A page names them from its own address.
fn assets(page: &str) -> BTreeSet<String> {
    let named = page.split('"').filter_map(|word| Some(word.split_once("assets/")?.1));
    named.map(|file| format!("/assets/{file}")).collect()
}

#[expect(clippy::cast_precision_loss, reason = "bytes far below 2^53")]
fn kilobytes(bytes: usize) -> f64 {
    bytes as f64 / 1e3
}

/// Prints the page's first paint in Chromium, where that is installed.
fn first_paint(program: &Program, token: &str) {
    if !Path::new(PYTHON).exists() || !Path::new(CHROMIUM).exists() {
        eprintln!("no first paint: `make setup` and `scripts/setup-tests` install Chromium");
        return;
    }
    let url = format!("http://{}", program.address);
    let loads = size::of("7", "1");
    let output = Command::new(PYTHON).args([SCRIPT, &url, token, JOB, loads]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let measured: Value = serde_json::from_slice(&output.stdout).unwrap();
    let of = |name: &str| measured[name].as_f64().unwrap();
    let name = |what: &str| {
        format!("{what} of the page of a job of {} trials, Chromium; beside the target", trials())
    };
    figure(&name("first paint"), of("paint"), "ms", PAINT);
    figure(&name("first load, bytes over the wire,"), of("bytes") / 1e3, "kB", WEIGHT / 1e3);
}

/// How often a second it is answered, one request after the other.
fn per_second(user: &mut Connection, path: &str) -> f64 {
    let (begun, mut answers) = (Instant::now(), 0_u32);
    while begun.elapsed() < watched() {
        user.call("GET", path, GZIP, b"");
        answers += 1;
    }
    f64::from(answers) / begun.elapsed().as_secs_f64()
}

/// Waits for the beginning of an answer, which must be one of success.
fn begins(stream: &mut TcpStream) {
    let mut head = [0; 12];
    stream.read_exact(&mut head).unwrap();
    assert_eq!(head, *b"HTTP/1.1 200");
}

fn memory_of_viewers(program: &Program, token: &str, user: &mut Connection) {
    // What the first answers need, the next ones have.
    user.call("GET", JOB, GZIP, b"");
    let before = program.resident();
    let listening = (0..viewers()).map(|_| {
        let mut viewer = Connection::open(program.address, token);
        viewer.send("GET", "/v1/changes", "", b"");
        begins(&mut viewer.stream);
        viewer
    });
    let listening: Vec<Connection> = listening.collect();
    #[expect(clippy::cast_precision_loss, reason = "bytes far below 2^53")]
    let each = program.resident().saturating_sub(before) as f64 / viewers() as f64 / 1024.0;
    let name = format!(
        "memory of one of {} viewers that listen for changes, beside the server's own",
        viewers()
    );
    #[expect(clippy::cast_precision_loss, reason = "bytes far below 2^53")]
    figure(&name, each, "KiB", before as f64 / 1024.0);
    drop(listening);
}

/// Each host has asked for work, and has a lease as long as there are some.
fn page_of_hosts(program: &Program, token: &str) {
    let body = serde_json::to_vec(&waiting::ask(Millis(0))).unwrap();
    for host in 1..=hosts() {
        let mut host = Connection::open(program.address, &past::token(host));
        host.call("POST", "/v1/work", "", &body);
    }
    let user = &mut Connection::open(program.address, token);
    let asked = Instant::now();
    user.call("GET", "/hosts", GZIP, b"");
    let took = asked.elapsed().as_secs_f64() * 1e3;
    let received = user.buffer.len();
    let asked = Instant::now();
    user.call("GET", "/v1/health", "", b"");
    let health = asked.elapsed().as_secs_f64() * 1e3;
    let name = format!("first answer of the page of {} hosts, beside /v1/health", hosts());
    figure(&name, took, "ms", health);
    let name = format!("page of {} hosts, gzip; beside the target", hosts());
    figure(&name, kilobytes(received), "kB", WEIGHT / 1e3);
}
