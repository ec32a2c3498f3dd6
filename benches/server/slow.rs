//! Many connections that send a request's head a byte at a time, and never end it, beside an honest client. The server closes each
//! after a while, and it comes again.

use super::{
    connection::Connection,
    figure,
    past::{self, Past, Shape},
    program::{Program, Syncs},
    size,
};
use sojourn_protocol::api::HeartbeatRequest;
use std::{
    io::Write as _,
    net::{SocketAddr, TcpStream},
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

/// Slow connections that are open at a time.
fn connections() -> usize {
    size::of(2_000, 50)
}

/// How long the honest client is watched: twice the time that a head may take.
fn watched() -> Duration {
    Duration::from_millis(size::of(20_000, 200))
}

/// The pause of a slow connection between two of its bytes.
const PAUSE: Duration = Duration::from_millis(500);
/// The head that is never ended.
const HEAD: &[u8] = b"POST /v1/heartbeat HTTP/1.1\r\nhost: x\r\nx-padding: ";

/// The honest client's heartbeats without and beside slow connections, and the server's memory.
pub(crate) fn slow() {
    let folder = tempfile::tempdir().unwrap();
    let mut past = Past::begin(folder.path(), &Shape { trials: 1, epochs: 1, shards: 1 });
    past.enrol(past::HOSTS + 1..=past::HOSTS + 1);
    past.end();
    let program = Program::serve(folder.path(), &Syncs::new(Duration::ZERO));
    let alone = heartbeats(&program);
    let before = program.resident();
    let (stop, opened) = (AtomicBool::new(false), AtomicU64::new(0));
    let (beside, after) = thread::scope(|scope| {
        let mut slow: Vec<(TcpStream, usize)> =
            (0..connections()).map(|_| (open(program.address, &opened), 0)).collect();
        let (address, stop, opened) = (program.address, &stop, &opened);
        let sender = scope.spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                for (stream, sent) in &mut slow {
                    let byte = HEAD.get(*sent).unwrap_or(&b'x');
                    *sent += 1;
                    // The server has closed it: the next one comes in its place.
                    if stream.write_all(&[*byte]).is_err() {
                        (*stream, *sent) = (open(address, opened), 0);
                    }
                }
                thread::sleep(PAUSE);
            }
        });
        let measured = (heartbeats(&program), program.resident());
        stop.store(true, Ordering::Relaxed);
        sender.join().unwrap();
        measured
    });
    let slow = connections();
    let name = |what: &str| format!("{what} of an honest client beside {slow} slow connections");
    figure(&name("heartbeats"), beside.per_second, "1/s", alone.per_second);
    figure(&name("heartbeat, median"), beside.median, "ms", alone.median);
    figure(&name("heartbeat, 99th percentile"), beside.slowest, "ms", alone.slowest);
    #[expect(clippy::cast_precision_loss, reason = "bytes far below 2^53")]
    let each = after.saturating_sub(before) as f64 / slow as f64 / 1024.0;
    #[expect(clippy::cast_precision_loss, reason = "bytes far below 2^53")]
    figure(
        "memory of a slow connection, beside the server's own",
        each,
        "KiB",
        before as f64 / 1024.0,
    );
    #[expect(clippy::cast_precision_loss, reason = "a count far below 2^53")]
    figure(
        "slow connections opened, beside those open at a time",
        opened.into_inner() as f64,
        "1",
        slow as f64,
    );
}

fn open(address: SocketAddr, opened: &AtomicU64) -> TcpStream {
    opened.fetch_add(1, Ordering::Relaxed);
    TcpStream::connect(address).unwrap()
}

/// Heartbeats of one host, one after the other.
struct Heartbeats {
    per_second: f64,
    median: f64,
    slowest: f64,
}

fn heartbeats(program: &Program) -> Heartbeats {
    let mut host = Connection::open(program.address, &past::token(past::HOSTS + 1));
    let body = HeartbeatRequest { holding: Vec::new(), reported: Vec::new() };
    let body = serde_json::to_vec(&body).unwrap();
    let (begun, mut times) = (Instant::now(), Vec::new());
    while begun.elapsed() < watched() {
        let sent = Instant::now();
        host.call("POST", "/v1/heartbeat", "", &body);
        times.push(sent.elapsed());
    }
    let took = begun.elapsed().as_secs_f64();
    times.sort_unstable();
    let at = |ratio: usize| times[times.len() * ratio / 100].as_secs_f64() * 1e3;
    #[expect(clippy::cast_precision_loss, reason = "a count far below 2^53")]
    Heartbeats { per_second: times.len() as f64 / took, median: at(50), slowest: at(99) }
}
