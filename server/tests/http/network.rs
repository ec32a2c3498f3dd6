//! Bounds against whoever is on the network: connections, rates, memory of bodies, and an end to reading.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::{
    folder,
    serve::AssimilatorConfig,
    world::{Answer, World, send},
};
use sojourn_protocol::{
    digest::Digest,
    error::ErrorKind,
    tokens::NewToken,
    view::{RefusalCounts, TrafficView},
};
use sojourn_server::{NetworkConfig, PerAddress, Rate};
use std::{net::SocketAddr, path::Path, time::Duration};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
    time::timeout,
};

/// So long that a test that waits for it has failed.
const LONG: Duration = Duration::from_secs(60);

async fn world(data: &Path, network: NetworkConfig) -> World {
    let mut config = World::config(data, AssimilatorConfig::default());
    config.network = network;
    World::with(config).await
}

pub(crate) async fn traffic(world: &World) -> TrafficView {
    world.get("/v1/traffic", &world.admin).await.json()
}

/// A connection from another address of this machine.
async fn connect_from(own: [u8; 4], server: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((own, 0).into()).unwrap();
    socket.connect(server).await.unwrap()
}

/// Everything that comes until the connection ends.
async fn rest(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    // A connection that is cut has an end too.
    let _ = timeout(LONG, stream.read_to_end(&mut answer)).await.unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

/// A request that leaves the connection open, and its answer's head.
async fn ask(stream: &mut TcpStream, path: &str) -> String {
    stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match timeout(LONG, stream.read_u8()).await.unwrap() {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8_lossy(&head).into_owned()
}

pub(crate) fn retry_after(answer: &Answer) -> u64 {
    answer.header("retry-after").unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_sender_that_is_refused_is_not_read_on() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    let mut stream = TcpStream::connect(world.address()).await.unwrap();
    let head = "PUT /v1/blobs/00 HTTP/1.1\r\nhost: x\r\nauthorization: Bearer nobody's\r\n\
                content-length: 1000000000000\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let (mut reader, mut writer) = stream.split();
    let sends = async {
        let piece = vec![0; 1 << 20];
        let mut sent = 0_u64;
        while writer.write_all(&piece).await.is_ok() {
            sent += 1 << 20;
        }
        sent
    };
    let reads = async {
        let mut answer = vec![0; 64];
        let read = reader.read(&mut answer).await.unwrap_or_default();
        String::from_utf8_lossy(&answer[..read]).into_owned()
    };
    let (sent, answer) = timeout(LONG, async { tokio::join!(sends, reads) }).await.unwrap();
    // The system's own buffers take some MB on the way; a second at the line's speed would be over a thousand.
    assert!(sent < 64 << 20, "{sent} bytes were taken from a sender without a token");
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
    world.server.stop().await;
}

/// An address that anybody may ask takes no body: it is neither read nor waited for.
#[tokio::test]
async fn a_body_for_an_open_address_is_not_read_on() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    for length in ["content-length: 1000000000000", "transfer-encoding: chunked"] {
        let mut stream = TcpStream::connect(world.address()).await.unwrap();
        let head = format!("GET /v1/health HTTP/1.1\r\nhost: x\r\n{length}\r\n\r\n10000\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let (mut reader, mut writer) = stream.split();
        let mut piece = vec![b'x'; 1 << 16];
        piece.extend_from_slice(b"\r\n10000\r\n");
        let sends = async {
            let mut sent = 0_u64;
            while writer.write_all(&piece).await.is_ok() {
                sent += 1 << 16;
            }
            sent
        };
        let reads = async {
            let mut answer = vec![0; 64];
            let read = reader.read(&mut answer).await.unwrap_or_default();
            String::from_utf8_lossy(&answer[..read]).into_owned()
        };
        let (sent, answer) = timeout(LONG, async { tokio::join!(sends, reads) }).await.unwrap();
        assert!(sent < 64 << 20, "{length}: {sent} bytes were taken");
        assert!(answer.starts_with("HTTP/1.1 200 "), "{length}: {answer}");
    }
    world.server.stop().await;
}

#[tokio::test]
async fn programs_are_fetched_by_an_address_at_a_rate_and_others_have_theirs() {
    let folder = folder();
    let enrolments_per_address = Rate { burst: 1, interval: Duration::from_secs(400) };
    let behind_proxy = true;
    let network =
        NetworkConfig { enrolments_per_address, behind_proxy, ..NetworkConfig::default() };
    let world = world(folder.path(), network).await;
    let ask = async |path: &str, from: &str| {
        send(world.address(), "GET", path, "", &[("x-forwarded-for", from)], b"").await
    };
    let unknown = format!("/v1/programs/{}", Digest::of(b"none"));
    for path in ["/v1/programs", &unknown, "/v1/programs", &unknown] {
        assert_ne!(ask(path, "192.0.2.7").await.status, 429, "{path}");
    }
    for path in ["/v1/programs", &unknown] {
        let refused = ask(path, "192.0.2.7").await;
        assert_eq!(refused.status, 429, "{path}");
        assert!((1..=100).contains(&retry_after(&refused)));
    }
    assert_eq!(ask("/v1/programs", "192.0.2.8").await.status, 200);
    world.server.stop().await;
}

#[tokio::test]
async fn one_address_has_its_share_of_connections_and_others_have_theirs() {
    let folder = folder();
    let max_connections_per_address = PerAddress::Most(4);
    let network = NetworkConfig { max_connections_per_address, ..NetworkConfig::default() };
    let world = world(folder.path(), network).await;
    let mut open = Vec::new();
    for _ in 0..4 {
        let mut stream = connect_from([127, 0, 0, 2], world.address()).await;
        // The answer says that the server has accepted it.
        assert!(ask(&mut stream, "/v1/health").await.starts_with("HTTP/1.1 200 "));
        open.push(stream);
    }
    let mut fifth = connect_from([127, 0, 0, 2], world.address()).await;
    let refused = ask(&mut fifth, "/v1/jobs").await;
    assert!(refused.starts_with("HTTP/1.1 429 "), "{refused}");
    assert!(refused.contains("retry-after: 5"), "{refused}");
    assert!(rest(&mut fifth).await.contains("too many connections from this address"));
    // Health is answered on such a connection too, and ends it.
    let mut sixth = connect_from([127, 0, 0, 2], world.address()).await;
    let health = ask(&mut sixth, "/v1/health").await;
    assert!(
        health.starts_with("HTTP/1.1 200 ") && health.contains("connection: close"),
        "{health}"
    );
    assert!(rest(&mut sixth).await.contains("ready"));

    // Others aren't touched, and say what was refused.
    let counts = traffic(&world).await;
    assert_eq!((counts.refused.connections_of_address, counts.refused.connections), (2, 0));
    assert_eq!(counts.open_connections, 5, "with the one that asks");
    drop(open);
    while traffic(&world).await.open_connections > 1 {
        tokio::task::yield_now().await;
    }
    let mut again = connect_from([127, 0, 0, 2], world.address()).await;
    assert!(ask(&mut again, "/v1/health").await.starts_with("HTTP/1.1 200 "));
    world.server.stop().await;
}

#[tokio::test]
async fn health_is_answered_though_all_connections_are_in_use() {
    let folder = folder();
    // 60 connections, 30 of one address, and 8 that are told so.
    let network = NetworkConfig { descriptors: Some(256), ..NetworkConfig::default() };
    let world = world(folder.path(), network).await;
    let mut open = Vec::new();
    for last in 0..60 {
        let mut stream = connect_from([127, 0, 1, last / 30], world.address()).await;
        assert!(ask(&mut stream, "/v1/health").await.starts_with("HTTP/1.1 200 "), "{last}");
        open.push(stream);
    }
    for _ in 0..5 {
        assert_eq!(world.get("/v1/health", "").await.status, 200);
    }
    let refused = world.get("/v1/jobs", &world.admin).await;
    assert_eq!(refused.refused(ErrorKind::TooManyRequests).kind.status(), 429);
    assert!(retry_after(&refused) > 0);
    world.server.stop().await;
}

#[tokio::test]
async fn behind_a_proxy_callers_are_told_apart_by_what_it_forwards() {
    let folder = folder();
    let network = NetworkConfig {
        behind_proxy: true,
        max_connections_per_address: PerAddress::Most(1),
        ..NetworkConfig::default()
    };
    let world = world(folder.path(), network).await;
    let mut open = Vec::new();
    for _ in 0..8 {
        let mut stream = TcpStream::connect(world.address()).await.unwrap();
        assert!(ask(&mut stream, "/v1/health").await.starts_with("HTTP/1.1 200 "));
        open.push(stream);
    }
    let guess = |from: &'static str| {
        let address = world.address();
        async move {
            let from = [("x-forwarded-for", from)];
            send(address, "GET", "/v1/jobs", "nobody's", &from, b"").await.status
        }
    };
    // What the caller itself writes into the header changes nothing.
    let mut refused = 0;
    for turn in 0..130 {
        let spoofed = if turn % 2 == 0 { "8.8.8.8, 203.0.113.1" } else { "203.0.113.1" };
        refused += u32::from(guess(spoofed).await == 429);
    }
    assert!(refused > 0, "an address that guesses is told to wait");
    assert_eq!(guess("203.0.113.2").await, 401, "and others aren't");
    world.server.stop().await;
}

#[tokio::test]
async fn an_address_that_guesses_tokens_is_told_to_wait_and_known_tokens_work_on() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    let host = world.enrol("one").await;
    let upload = "/v1/leases/1/checkpoint";
    world.get(upload, &host.token).await.refused(ErrorKind::NotFound);
    let mut statuses = Vec::new();
    let mut last = None;
    for _ in 0..150 {
        // Without a header and with an unknown token alike; the header of a proxy means nothing here.
        let token = if statuses.len() % 2 == 0 { "" } else { "nobody's" };
        let forwarded = format!("203.0.113.{}", statuses.len());
        let from = [("x-forwarded-for", forwarded.as_str())];
        let answer = send(world.address(), "GET", "/v1/jobs", token, &from, b"").await;
        statuses.push(answer.status);
        last = Some(answer);
    }
    assert_eq!(statuses[..120], [401; 120]);
    let waiting = statuses[120..].iter().filter(|status| **status == 429).count();
    assert!(waiting > 0, "{statuses:?}");
    assert_eq!(statuses[120..].iter().filter(|s| ![401, 429].contains(*s)).count(), 0);
    if last.as_ref().unwrap().status == 429 {
        assert!((1..=2).contains(&retry_after(last.as_ref().unwrap())));
    }
    // The same address, with tokens that the server knows.
    assert_eq!(world.get("/v1/jobs", &world.admin).await.status, 200);
    world.get(upload, &host.token).await.refused(ErrorKind::NotFound);
    let counts = traffic(&world).await;
    assert_eq!(counts.failed_authentications, 150, "{counts:?}");
    assert!(counts.refused.authentications >= waiting as u64);
    assert_eq!(counts.enrolments, 1);
    world.server.stop().await;
}

/// After a restart no token is cached. A caller behind the same address that guesses must not keep the others out.
#[tokio::test]
async fn tokens_that_are_not_cached_work_though_their_address_has_failed_too_often() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    let host = world.enrol("one").await;
    let grant = serde_json::json!({ "access": { "rights": "read" } });
    let request = serde_json::json!({ "label": "reads", "grant": grant });
    let user: NewToken = world.post("/v1/tokens", &world.admin, &request).await.json();
    world.server.stop().await;
    let world = World::start(folder.path()).await;
    let mut refused = 0;
    for _ in 0..150 {
        refused += u32::from(world.get("/v1/jobs", "nobody's").await.status == 429);
    }
    assert!(refused > 0);
    assert_eq!(world.get("/v1/jobs", &user.secret).await.status, 200);
    world.work(&host.token, &crate::ask(0)).await;
    world.server.stop().await;
}

#[tokio::test]
async fn machines_enrol_no_faster_than_their_address_may() {
    let folder = folder();
    let slowly = Rate { burst: 3, interval: Duration::from_secs(3_600) };
    let network = NetworkConfig { enrolments_per_address: slowly, ..NetworkConfig::default() };
    let world = world(folder.path(), network).await;
    let token = world.enrol_token();
    let name = serde_json::json!({ "name": "one" });
    for _ in 0..3 {
        assert_eq!(world.post("/v1/enrol", &token, &name).await.status, 200);
    }
    let refused = world.post("/v1/enrol", &token, &name).await;
    refused.refused(ErrorKind::TooManyRequests);
    assert!((3_500..=3_600).contains(&retry_after(&refused)));
    let counts = traffic(&world).await;
    assert_eq!((counts.enrolments, counts.refused.enrolments), (3, 1));
    assert_eq!(counts.refused, RefusalCounts { enrolments: 1, ..RefusalCounts::default() });
    world.server.stop().await;
}

#[tokio::test]
async fn machines_enrol_no_faster_than_their_token_may() {
    let folder = folder();
    let slowly = Rate { burst: 1, interval: Duration::from_secs(3_600) };
    let network = NetworkConfig { enrolments_per_token: slowly, ..NetworkConfig::default() };
    let world = world(folder.path(), network).await;
    let token = world.enrol_token();
    let name = serde_json::json!({ "name": "one" });
    assert_eq!(world.post("/v1/enrol", &token, &name).await.status, 200);
    world.post("/v1/enrol", &token, &name).await.refused(ErrorKind::TooManyRequests);
    world.server.stop().await;
}

#[tokio::test]
async fn no_answer_can_be_used_by_a_browser() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    let bytes = vec![b'<'; 100];
    let blob = world.publish(&bytes).await;
    let path = format!("/v1/blobs/{}", blob.sha256);
    let admin = world.admin.as_str();
    for (path, token, status, cache) in [
        ("/v1/health", "", 200, "no-store"),
        ("/v1/openapi.json", "", 200, "no-store"),
        ("/v1/jobs", admin, 200, "no-store"),
        ("/v1/jobs", "nobody's", 401, "no-store"),
        ("/nothing", admin, 404, "no-store"),
        ("/v1/jobs/1/cancel", admin, 405, "no-store"),
        (path.as_str(), admin, 200, "no-store"),
    ] {
        let answer = world.get(path, token).await;
        assert_eq!(answer.status, status, "{path}");
        assert_eq!(answer.header("x-content-type-options").as_deref(), Some("nosniff"), "{path}");
        assert_eq!(answer.header("cache-control").as_deref(), Some(cache), "{path}");
        assert_eq!(answer.header("referrer-policy").as_deref(), Some("no-referrer"), "{path}");
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.contains("default-src 'none'") && policy.contains("sandbox"), "{policy}");
        let content = answer.header("content-type").unwrap_or_default();
        assert!(!content.contains("html"), "{path}: {content}");
    }
    world.server.stop().await;
}
