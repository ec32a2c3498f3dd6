//! The API over real sockets: what is right works, and what is wrong gets its refusal.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod access;
mod assimilations;
mod bodies;
mod bounds;
mod data_uploads;
mod deltas;
mod described;
mod descriptions;
mod direct;
mod document;
mod engines;
mod fields;
mod host_page;
mod job_checks;
mod job_owners;
mod metrics;
#[expect(dead_code, reason = "the stores' own suite uses all of it")]
#[path = "../../blobs/tests/contract/s3.rs"]
mod s3;
// The server with its own assimilators, joined as the command does it.
mod network;
mod packed;
mod page;
mod page_links;
mod seeds;
#[path = "../../../src/serve/mod.rs"]
mod serve;
mod storage;
mod tokens;
mod typed_events;
mod uploads;
mod world;

use serve::AssimilatorConfig;
use sojourn_blobs::FullDisk;
use sojourn_protocol::{
    PROTOCOL_HEADER, PROTOCOL_VERSION,
    api::{Health, MissingAnswer, SubmitAnswer, UploadState},
    error::ErrorKind,
    ids::{LeaseId, Version},
    report::{Outcome, ReportEnd, ReportState},
    time::Millis,
    view::{EventView, HostView, JobState, JobView, TrialHistory, TrialView},
};
use sojourn_server::{
    ServeConfig, ServeError, ServeReady, Server, Transport,
    journal::{Fault, Journal, JournalError, MemoryJournal},
};
use sojourn_slot::SlotConfig;
use std::sync::Arc;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use world::{World, ask, blob, hop, report_of, send, trained};

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// A wrong token is refused as that, whatever the body is, and before the body is read.
#[tokio::test]
async fn nothing_is_read_from_nobody() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    for _ in 0..50 {
        let answer = send(world.address(), "POST", "/v1/jobs", "nobody's", &[], b"{ no json").await;
        answer.refused(ErrorKind::Unauthorized);
    }
    for token in ["", "authorization: Bearer nobody's\r\n"] {
        for address in [format!("PUT /v1/blobs/{}", blob(b"large").sha256), "POST /v1/jobs".into()]
        {
            let mut stream = TcpStream::connect(world.address()).await.unwrap();
            let head = format!(
                "{address} HTTP/1.1\r\nhost: x\r\n{token}sojourn-bytes: 1000000000\r\n\
                 content-length: 1000000000\r\n\r\n",
            );
            stream.write_all(head.as_bytes()).await.unwrap();
            // A part of the body, and no more comes.
            stream.write_all(&[0; 1000]).await.unwrap();
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).await.unwrap();
            let answer = String::from_utf8(answer).unwrap();
            assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
            assert!(answer.contains("connection: close"), "{answer}");
        }
    }
}

/// Whether the lease is another host's, or nobody's.
#[tokio::test]
async fn a_host_learns_nothing_of_leases_that_are_not_its_own() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    world.submit().await;
    let (owner, other) = (world.enrol("one").await, world.enrol("two").await);
    let lease = world.lease(&owner.token).await.id;
    for what in ["checkpoint", "checkpoint/delta"] {
        let path = |lease: LeaseId| format!("/v1/leases/{lease}/{what}");
        let mine = world.get(&path(lease), &owner.token).await;
        assert_eq!(mine.json::<UploadState>().offset, 0);
        let refusals = [lease, LeaseId(77)].map(|lease| (lease, path(lease)));
        for (lease, path) in refusals {
            let error = world.get(&path, &other.token).await.refused(ErrorKind::NotFound);
            assert_eq!(error.message, format!("this host has no lease {lease}"));
        }
    }
}

#[tokio::test]
async fn a_method_that_an_address_does_not_take_is_answered_with_those_that_it_does() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    let answer = send(world.address(), "DELETE", "/v1/jobs", &world.admin, &[], b"").await;
    assert_eq!(answer.status, 405);
    let allowed = answer.header("allow").unwrap_or_default();
    assert!(allowed.contains("GET") && allowed.contains("POST"), "{allowed}");
}

#[tokio::test]
async fn a_result_becomes_a_version_and_is_visible() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    let job = world.submit().await.job;
    let host = world.enrol("one").await;
    let lease = world.lease(&host.token).await;

    // What the lease names can be read; ranges too.
    let shard = hop(&lease).shard.blob;
    let path = format!("/v1/blobs/{}", shard.sha256);
    let whole = world.get(&path, &host.token).await;
    assert_eq!(whole.status, 200);
    assert_eq!(blob(&whole.body), shard);
    let range = [("range", "bytes=8-15")];
    let part = send(world.address(), "GET", &path, &host.token, &range, b"").await;
    assert_eq!((part.status, &part.body[..]), (206, &whole.body[8..16]));
    let says = format!("bytes 8-15/{}", shard.bytes);
    assert_eq!(part.header("content-range"), Some(says));

    let (bytes, report) = trained(&lease, 1);
    // In two pieces, the second after a look.
    let path = format!("/v1/leases/{}/checkpoint", lease.id);
    let (first, second) = bytes.split_at(bytes.len() / 2);
    let state: UploadState = world.put(&path, &host.token, blob(&bytes), &[], first).await.json();
    assert_eq!(state, UploadState { offset: first.len() as u64, complete: false });
    assert_eq!(world.get(&path, &host.token).await.json::<UploadState>(), state);
    world.report(&host.token, &report).await.refused(ErrorKind::Conflict);
    let path = format!("{path}?offset={}", state.offset);
    let state: UploadState = world.put(&path, &host.token, blob(&bytes), &[], second).await.json();
    assert!(state.complete);

    let first = world.report(&host.token, &report).await;
    first.json::<sojourn_protocol::api::ReportAnswer>();
    let end = world.end(&host.token, lease.id).await;
    assert_eq!(end, ReportEnd::Assimilated { version: Version(1) });
    // The same report again: accepted, and told its end.
    let again: sojourn_protocol::api::ReportAnswer =
        world.report(&host.token, &report).await.json();
    assert_eq!(again.state, ReportState::Ended(end));

    let trials: Vec<TrialView> =
        world.get(&format!("/v1/jobs/{job}/trials"), &world.admin).await.json();
    assert_eq!((trials.len(), trials[0].version), (1, Version(1)));
    let history: TrialHistory =
        world.get(&format!("/v1/jobs/{job}/trials/0/history"), &world.admin).await.json();
    assert_eq!(history.hops[0].checkpoint, blob(&bytes));
    let path = format!("/v1/blobs/{}", blob(&bytes).sha256);
    assert_eq!(world.get(&path, &world.admin).await.body, bytes);
    let events: Vec<EventView> =
        world.get(&format!("/v1/jobs/{job}/events"), &world.admin).await.json();
    let kinds: Vec<&str> = events.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!(kinds[..2], ["job-submitted", "lease-granted"]);
    assert!(kinds.contains(&"report-acknowledged") && kinds.contains(&"assimilated"), "{kinds:?}");
    let page = format!("/v1/jobs/{job}/events?after={}&limit=1", events[0].position);
    assert_eq!(world.get(&page, &world.admin).await.json::<Vec<EventView>>(), [events[1].clone()]);
    let health: Health = world.get("/v1/health", "").await.json();
    assert_eq!((health.checkpoint_uploads, health.blob_downloads), (2, 2), "of hosts alone");
    world.server.stop().await;

    // All of it is there after a restart, and the tokens are the same.
    let world = World::start(folder.path()).await;
    let jobs: Vec<JobView> = world.get("/v1/jobs", &world.admin).await.json();
    assert_eq!((jobs.len(), jobs[0].hops), (1, 1));
    let next = world.lease(&host.token).await;
    assert_eq!(hop(&next).base.version(), Version(1));
    world.server.stop().await;
}

/// Nothing would ever be merged: better said at once.
#[tokio::test]
async fn a_canary_needs_a_trainer() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    let canary = "order = \"merge\"\nmerge = { canary = 2.0 }";
    let said = world.submit_with(canary).await.refused(ErrorKind::Invalid);
    assert!(said.message.contains("needs a trainer on the server's machine"), "{said:?}");
    world.server.stop().await;

    let trainer = Some(SlotConfig::new("never started".into()));
    let assimilators = AssimilatorConfig { trainer, ..AssimilatorConfig::default() };
    let world = World::with(World::config(folder.path(), assimilators)).await;
    world.submit_with(canary).await.json::<SubmitAnswer>();
    world.server.stop().await;
}

#[tokio::test]
async fn each_token_allows_only_its_own_routes() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    let host = world.enrol("one").await;
    let enrol = world.enrol_token();
    for token in ["", "wrong", &enrol, &host.token] {
        world.get("/v1/jobs", token).await.refused(ErrorKind::Unauthorized);
    }
    for token in ["", "wrong", &enrol, &world.admin] {
        world.post("/v1/work", token, &ask(0)).await.refused(ErrorKind::Unauthorized);
    }
    for token in ["", "wrong", &world.admin, &host.token] {
        let name = serde_json::json!({ "name": "two" });
        world.post("/v1/enrol", token, &name).await.refused(ErrorKind::Unauthorized);
    }
    let health: Health = world.get("/v1/health", "").await.json();
    assert_eq!(health.status, "ready");

    // A token that has opened doors opens none once its host is revoked.
    let upload = "/v1/leases/1/checkpoint";
    world.get(upload, &host.token).await.refused(ErrorKind::NotFound);
    let revoke = format!("/v1/hosts/{}/revoke", host.host);
    assert_eq!(world.post(&revoke, &world.admin, &()).await.status, 200);
    world.post("/v1/work", &host.token, &ask(0)).await.refused(ErrorKind::Unauthorized);
    world.get(upload, &host.token).await.refused(ErrorKind::Unauthorized);

    #[cfg(unix)]
    for file in ["admin-token", "enrol-token"] {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = folder.path().join(file).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    world.server.stop().await;
}

#[tokio::test]
async fn malformed_requests_are_refused_as_invalid() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    let admin = world.admin.clone();
    world.get("/v1/nothing", &admin).await.refused(ErrorKind::NotFound);
    world.get("/v1/jobs/7", &admin).await.refused(ErrorKind::NotFound);
    world.get("/v1/jobs/7/events", &admin).await.refused(ErrorKind::NotFound);
    world.get("/v1/jobs/seven", &admin).await.refused(ErrorKind::Invalid);
    world.get("/v1/blobs/abc", &admin).await.refused(ErrorKind::Invalid);
    let wrong = world.post("/v1/jobs/7/trials", &admin, &()).await;
    assert_eq!(wrong.status, 405);
    assert!(String::from_utf8_lossy(&wrong.body).contains("`POST`"));
    let unknown = serde_json::json!({ "blobs": [], "more": 1 });
    let refused = world.post("/v1/blobs/missing", &admin, &unknown).await;
    assert!(refused.refused(ErrorKind::Invalid).message.contains("`more`"));

    let newer = [(PROTOCOL_HEADER, "99")];
    let answer = send(world.address(), "GET", "/v1/health", "", &newer, b"").await;
    assert!(answer.refused(ErrorKind::UnsupportedProtocol).message.contains("`3`"));
    let ours = PROTOCOL_VERSION.to_string();
    assert_eq!(answer.header(PROTOCOL_HEADER), Some(ours.clone()));
    let same = [(PROTOCOL_HEADER, ours.as_str())];
    let answer = send(world.address(), "GET", "/v1/health", "", &same, b"").await;
    assert_eq!(answer.header(PROTOCOL_HEADER), Some(ours));

    // Bodies over their limits, and some that are under a job's.
    let body = vec![b' '; (1 << 20) + 1];
    let post = |path, body: Vec<u8>| {
        let (address, admin) = (world.address(), admin.clone());
        async move { send(address, "POST", path, &admin, &[], &body).await }
    };
    post("/v1/jobs/7/cancel", vec![]).await.refused(ErrorKind::NotFound);
    for path in ["/v1/blobs/missing", "/v1/jobs"] {
        post(path, body.clone()).await.refused(ErrorKind::Invalid);
    }
    let host = world.enrol("big").await;
    let as_host = |path, body: Vec<u8>| {
        let (address, token) = (world.address(), host.token.clone());
        async move { send(address, "POST", path, &token, &[], &body).await }
    };
    as_host("/v1/work", body.clone()).await.refused(ErrorKind::Invalid);
    as_host("/v1/heartbeat", body).await.refused(ErrorKind::TooLarge);
    post("/v1/jobs", vec![b' '; (16 << 20) + 1]).await.refused(ErrorKind::TooLarge);
    world.server.stop().await;
}

#[tokio::test]
async fn blobs_are_accepted_only_as_declared() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    let (admin, bytes) = (world.admin.clone(), b"some bytes of a shard".as_slice());
    let declared = blob(bytes);
    let path = format!("/v1/blobs/{}", declared.sha256);
    let missing = serde_json::json!({ "blobs": [declared] });
    let answer: MissingAnswer = world.post("/v1/blobs/missing", &admin, &missing).await.json();
    assert_eq!(answer.missing, [declared.sha256]);

    let put = |path: String, more: &'static [(&str, &str)], body: Vec<u8>| {
        let (world, admin) = (&world, &admin);
        async move { world.put(&path, admin, declared, more, &body).await }
    };
    let wrong = put(path.clone(), &[], b"some bytes of a shar!".to_vec()).await;
    wrong.refused(ErrorKind::DigestMismatch);
    let long = [bytes, b"!"].concat();
    put(path.clone(), &[], long).await.refused(ErrorKind::TooLarge);
    let zstd: &[_] = &[("content-encoding", "zstd")];
    let bomb = zstd::bulk::compress(&vec![0; 32 << 20], 3).unwrap();
    put(path.clone(), zstd, bomb).await.refused(ErrorKind::TooLarge);
    put(path.clone(), zstd, b"no zstd".to_vec()).await.refused(ErrorKind::Invalid);
    put(path.clone(), &[("content-encoding", "gzip")], vec![]).await.refused(ErrorKind::Invalid);
    world.get(&path, &admin).await.refused(ErrorKind::NotFound);

    let state: UploadState = put(path.clone(), &[], bytes[..5].to_vec()).await.json();
    assert_eq!(state.offset, 5);
    let wrong = put(path.clone(), &[], bytes.to_vec()).await.refused(ErrorKind::WrongOffset);
    assert_eq!(wrong.offset, Some(5));
    let looked: UploadState =
        world.get(&format!("/v1/uploads/{}", declared.sha256), &admin).await.json();
    assert_eq!(looked, state);
    let rest = zstd::bulk::compress(&bytes[5..], 3).unwrap();
    let state: UploadState = put(format!("{path}?offset=5"), zstd, rest).await.json();
    assert!(state.complete);
    let answer: MissingAnswer = world.post("/v1/blobs/missing", &admin, &missing).await.json();
    assert!(answer.missing.is_empty());

    // A host has no lease that names it; ranges outside it are told its size.
    let host = world.enrol("one").await;
    world.get(&path, &host.token).await.refused(ErrorKind::Forbidden);
    let outside = [("range", "bytes=21-")];
    let answer = send(world.address(), "GET", &path, &admin, &outside, b"").await;
    answer.refused(ErrorKind::RangeNotSatisfiable);
    assert_eq!(answer.header("content-range").as_deref(), Some("bytes */21"));

    // Altered on disk: never served.
    let name = declared.sha256.to_string();
    let stored = folder.path().join("blobs/sha256").join(&name[..2]).join(&name);
    world.write_out();
    let damaged = folder.path().join("damaged");
    std::fs::write(&damaged, b"some bytes of a sha!d").unwrap();
    std::fs::rename(&damaged, &stored).unwrap();
    let refused = world.get(&path, &admin).await.refused(ErrorKind::NotFound);
    assert!(refused.message.contains("damaged"), "{refused}");
    // And asked for again.
    let answer: MissingAnswer = world.post("/v1/blobs/missing", &admin, &missing).await.json();
    assert_eq!(answer.missing, [declared.sha256]);
    assert_eq!(world.publish(bytes).await, declared);
    assert_eq!(world.get(&path, &admin).await.body, bytes);
    world.server.stop().await;
}

#[tokio::test]
async fn reports_are_accepted_only_from_the_leases_host_and_with_its_upload() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    world.submit().await;
    let (host, other) = (world.enrol("one").await, world.enrol("two").await);
    let lease = world.lease(&host.token).await;
    let (bytes, report) = trained(&lease, 1);
    world.report(&other.token, &report).await.refused(ErrorKind::Forbidden);
    world.report(&host.token, &report).await.refused(ErrorKind::Conflict);
    world.upload(&other.token, &lease, &bytes).await.refused(ErrorKind::Forbidden);
    let mut unknown = report.clone();
    unknown.lease = LeaseId(999);
    world.report(&host.token, &unknown).await.refused(ErrorKind::NotFound);
    let short = world.upload(&host.token, &lease, &bytes[1..]).await;
    assert!(short.status >= 400, "a size that isn't the lease's was taken");

    // From another base than the lease's.
    assert_eq!(world.upload(&host.token, &lease, &bytes).await.status, 200);
    let mut wrong = report.clone();
    if let Outcome::Trained(trained) = &mut wrong.outcome {
        trained.base = Version(9);
    }
    let answer: sojourn_protocol::api::ReportAnswer =
        world.report(&host.token, &wrong).await.json();
    assert!(matches!(answer.state, ReportState::Ended(ReportEnd::Rejected { .. })), "{answer:?}");
    // Its first answer stays, whatever it says later.
    let again: sojourn_protocol::api::ReportAnswer =
        world.report(&host.token, &report).await.json();
    assert_eq!(again, answer);
    world.server.stop().await;
}

#[tokio::test]
async fn invalid_checkpoints_are_rejected_with_the_reason() {
    for case in ["no safetensors", "non-finite", "another trial"] {
        let folder = folder();
        let world = World::start(folder.path()).await;
        let job = world.submit().await.job;
        let host = world.enrol("one").await;
        let lease = world.lease(&host.token).await;
        let (mut bytes, _) = trained(&lease, 1);
        let reason = match case {
            "no safetensors" => {
                bytes.fill(b'x');
                "can't be read"
            }
            "non-finite" => {
                let header = u64::from_le_bytes(bytes[..8].try_into().unwrap());
                let start = 8 + usize::try_from(header).unwrap();
                bytes[start..start + 4].copy_from_slice(&f32::INFINITY.to_le_bytes());
                "non-finite"
            }
            _ => {
                let mut other = lease.clone();
                if let sojourn_protocol::unit::Unit::Train(hop) = &mut other.unit {
                    hop.trial = hop.trial.next();
                }
                bytes = trained(&other, 1).0;
                "trial"
            }
        };
        assert_eq!(world.upload(&host.token, &lease, &bytes).await.status, 200, "{case}");
        assert_eq!(world.report(&host.token, &report_of(&lease, &bytes)).await.status, 200);
        match world.end(&host.token, lease.id).await {
            ReportEnd::Rejected { reason: said } => assert!(said.contains(reason), "{said}"),
            other => panic!("{case}: {other:?}"),
        }
        let path = format!("/v1/jobs/{job}/trials");
        let trials: Vec<TrialView> = world.get(&path, &world.admin).await.json();
        assert_eq!(trials[0].version, Version(0), "{case}");
        world.server.stop().await;
    }
}

#[tokio::test]
async fn an_upload_to_a_full_disk_is_refused_and_resumed_later() {
    let folder = folder();
    let disk = Arc::new(FullDisk::with_left(4));
    let mut config = World::config(folder.path(), AssimilatorConfig::default());
    config.disk = disk.clone();
    let world = World::with(config).await;
    let declared = blob(b"0123456789");
    let path = format!("/v1/blobs/{}", declared.sha256);
    let answer = world.put(&path, &world.admin, declared, &[], b"0123456789").await;
    answer.refused(ErrorKind::StorageFull);
    disk.make_room(1 << 20);
    assert_eq!(world.publish(b"0123456789").await, declared);
    assert_eq!(world.get(&path, &world.admin).await.body, b"0123456789");
    world.server.stop().await;
}

#[tokio::test]
async fn a_waiting_request_for_work_is_answered_when_the_server_stops() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    let host = world.enrol("one").await;
    let mut request = ask(1);
    request.wait = Millis::from_secs(20);
    let address = world.address();
    let body = serde_json::to_vec(&request).unwrap();
    let ask = || {
        let (token, body) = (host.token.clone(), body.clone());
        tokio::spawn(async move { send(address, "POST", "/v1/work", &token, &[], &body).await })
    };
    // The later ask of the same host answers the earlier at once; so the later one is held.
    let (mut one, mut two) = (ask(), ask());
    let (answered, held) = tokio::select! {
        answer = &mut one => (answer.unwrap(), two),
        answer = &mut two => (answer.unwrap(), one),
    };
    assert_eq!(answered.status, 200);
    world.server.stop().await;
    held.await.unwrap().refused(ErrorKind::Unavailable);
}

#[tokio::test]
async fn two_servers_cannot_share_a_folder_or_a_port() {
    let (one, two) = (folder(), folder());
    let world = World::start(one.path()).await;
    let config = |data: &tempfile::TempDir, address| ServeConfig::new(data.path().into(), address);
    let refused = Server::start(config(&one, "127.0.0.1:0".parse().unwrap())).await.unwrap_err();
    assert!(refused.to_string().contains("another server uses the data folder"), "{refused}");
    let refused = Server::start(config(&two, world.address())).await.unwrap_err();
    assert!(matches!(refused, ServeError::AddressInUse(_)), "{refused}");
    let written = std::fs::read_to_string(one.path().join("address")).unwrap();
    assert_eq!(written.trim(), world.address().to_string());
    world.server.stop().await;
    assert!(!one.path().join("address").exists());
    World::start(one.path()).await.server.stop().await;
}

#[tokio::test]
async fn a_damaged_journal_is_refused_with_the_position() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    world.submit().await;
    world.server.stop().await;
    let journal = rusqlite::Connection::open(folder.path().join("journal.sqlite")).unwrap();
    journal.execute("UPDATE records SET mark = zeroblob(32) WHERE position = 2", []).unwrap();
    drop(journal);
    let config = ServeConfig::new(folder.path().into(), "127.0.0.1:0".parse().unwrap());
    let refused = Server::start(config).await.unwrap_err();
    let why = std::error::Error::source(&refused).unwrap().to_string();
    assert!(why.contains("damaged at position 2"), "{why}");
}

#[tokio::test]
async fn a_failing_journal_is_answered_as_unavailable_and_recovers() {
    let folder = folder();
    let journal = MemoryJournal::default();
    let mut config = World::config(folder.path(), AssimilatorConfig::default());
    let same = journal.clone();
    let open = move || -> Result<Box<dyn Journal>, JournalError> { Ok(Box::new(same.clone())) };
    config.journal = Some(Arc::new(open));
    let world = World::with(config).await;
    let kept = world.enrol("one").await;
    let token = world.enrol_token();
    let name = serde_json::json!({ "name": "two" });
    for fault in [Fault::Fails, Fault::Unknown, Fault::Torn] {
        journal.inject(fault);
        world.post("/v1/enrol", &token, &name).await.refused(ErrorKind::Unavailable);
        let health = world.get("/v1/health", "").await;
        assert!([200, 503].contains(&health.status));
        // What was promised holds, as soon as it can decide again.
        let answer = loop {
            let answer = world.post("/v1/work", &kept.token, &ask(0)).await;
            if answer.status != 503 {
                break answer;
            }
        };
        assert_eq!(answer.status, 200);
    }
    world.server.stop().await;
}

#[tokio::test]
async fn hosts_get_no_blob_that_their_leases_do_not_name() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    world.submit().await;
    let (host, idle) = (world.enrol("one").await, world.enrol("two").await);
    let lease = world.lease(&host.token).await;
    let path = format!("/v1/blobs/{}", hop(&lease).shard.blob.sha256);
    assert_eq!(world.get(&path, &host.token).await.status, 200);
    world.get(&path, &idle.token).await.refused(ErrorKind::Forbidden);
    let revoke = format!("/v1/hosts/{}/revoke", host.host);
    assert_eq!(world.post(&revoke, &world.admin, &()).await.status, 200);
    world.get(&path, &host.token).await.refused(ErrorKind::Unauthorized);
    world.server.stop().await;
}

#[tokio::test]
async fn a_lost_shard_is_reported_missing_and_can_be_uploaded_again() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    let job = world.submit().await.job;
    let host = world.enrol("one").await;
    let lease = world.lease(&host.token).await;
    let shard = hop(&lease).shard.blob;
    let path = format!("/v1/blobs/{}", shard.sha256);
    let bytes = world.get(&path, &host.token).await.body;
    let name = shard.sha256.to_string();
    let stored = folder.path().join("blobs/sha256").join(&name[..2]).join(&name);
    world.write_out();
    std::fs::remove_file(&stored).unwrap();
    let refused = world.get(&path, &host.token).await.refused(ErrorKind::NotFound);
    assert!(refused.message.contains(&name), "{refused}");
    let missing = serde_json::json!({ "blobs": [shard] });
    let answer: MissingAnswer =
        world.post("/v1/blobs/missing", &world.admin, &missing).await.json();
    assert_eq!(answer.missing, [shard.sha256]);
    world.publish(&bytes).await;
    assert_eq!(world.get(&path, &host.token).await.body, bytes);
    let jobs: Vec<JobView> = world.get("/v1/jobs", &world.admin).await.json();
    assert_eq!(jobs[0].job, job);
    world.server.stop().await;
}

#[tokio::test]
async fn an_upload_that_the_server_lost_is_not_its_hosts_fault() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    world.submit().await;
    let host = world.enrol("one").await;
    let lease = world.lease(&host.token).await;
    let (bytes, report) = trained(&lease, 1);
    assert_eq!(world.upload(&host.token, &lease, &bytes).await.status, 200);
    world.write_out();
    let spool = std::fs::read_dir(folder.path().join("uploads")).unwrap();
    for file in spool {
        std::fs::write(file.unwrap().path(), vec![b'x'; bytes.len()]).unwrap();
    }
    assert_eq!(world.report(&host.token, &report).await.status, 200);
    match world.end(&host.token, lease.id).await {
        ReportEnd::Rejected { reason } => {
            assert!(reason.contains("the server lost the upload"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
    let hosts: Vec<HostView> = world.get("/v1/hosts", &world.admin).await.json();
    assert_eq!((hosts[0].failures, hosts[0].last_error.as_deref()), (0, None));
    // The unit is given out again, and its result is taken.
    let again = world.lease(&host.token).await;
    let (bytes, report) = trained(&again, 1);
    assert_eq!(world.upload(&host.token, &again, &bytes).await.status, 200);
    assert_eq!(world.report(&host.token, &report).await.status, 200);
    let end = world.end(&host.token, again.id).await;
    assert_eq!(end, ReportEnd::Assimilated { version: Version(1) });
    world.server.stop().await;
}

#[tokio::test]
async fn unneeded_uploads_are_deleted_at_a_restart() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    world.submit().await;
    let host = world.enrol("one").await;
    let lease = world.lease(&host.token).await;
    let (bytes, _) = trained(&lease, 1);
    let path = format!("/v1/leases/{}/checkpoint", lease.id);
    let half = &bytes[..bytes.len() / 2];
    let sent = world.put(&path, &host.token, blob(&bytes), &[], half).await;
    assert_eq!(sent.status, 200);
    world.server.stop().await;
    // Of a lease that there never was, and a blob whose file's time is long ago: the clock may have been set since.
    let spool = folder.path().join("uploads");
    let mine: Vec<_> = std::fs::read_dir(&spool).unwrap().map(|e| e.unwrap().path()).collect();
    assert_eq!(mine.len(), 1);
    let other = spool.join(format!("lease-0.{}.5.part", blob(b"12345").sha256));
    std::fs::write(&other, b"123").unwrap();
    let sha256 = blob(b"old").sha256;
    let old = spool.join(format!("blob-{sha256}.{sha256}.3.done"));
    std::fs::write(&old, b"old").unwrap();
    let long_ago = std::time::SystemTime::UNIX_EPOCH;
    std::fs::File::options().write(true).open(&old).unwrap().set_modified(long_ago).unwrap();
    let world = World::start(folder.path()).await;
    assert!(!other.exists());
    assert!(mine[0].exists() && old.exists());
    let state: UploadState = world.get(&path, &host.token).await.json();
    assert_eq!(state.offset, half.len() as u64);
    world.server.stop().await;
}

#[test]
fn the_line_that_starts_a_client_has_a_usable_address() {
    let ready = ServeReady {
        address: "0.0.0.0:8181".parse().unwrap(),
        transport: Transport::Http,
        enrol_token_file: "data/enrol-token".into(),
        admin_token_file: "admin-token".into(),
        active: true,
        journal: None,
    };
    let line = "sojourn client --server http://127.0.0.1:8181 --token-file data/enrol-token";
    assert_eq!(ready.client_line(), line);
}

#[tokio::test]
async fn a_job_is_paused_resumed_and_extended() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    let job = world.submit().await.job;
    let host = world.enrol("one").await;
    let path = |what: &str| format!("/v1/jobs/{job}/{what}");
    let pause = serde_json::json!({ "now": false });
    world.post(&path("pause"), &host.token, &pause).await.refused(ErrorKind::Unauthorized);
    world
        .post(&path("pause"), &world.admin, &serde_json::json!({ "nwo": true }))
        .await
        .refused(ErrorKind::Invalid);
    let view: JobView = world.post(&path("pause"), &world.admin, &pause).await.json();
    assert_eq!(view.state, JobState::Paused);
    assert!(world.work(&host.token, &ask(1)).await.leases.is_empty());
    let view: JobView = world.post(&path("resume"), &world.admin, &()).await.json();
    assert_eq!(view.state, JobState::Running);
    world.lease(&host.token).await;
    let extend = |epochs| serde_json::json!({ "epochs": epochs });
    let view: JobView = world.post(&path("extend"), &world.admin, &extend(5)).await.json();
    assert_eq!(view.hops_expected, 10);
    world.post(&path("extend"), &world.admin, &extend(0)).await.refused(ErrorKind::Invalid);
    world
        .post(&path("extend"), &world.admin, &serde_json::json!({}))
        .await
        .refused(ErrorKind::Invalid);
    let unknown = world.post("/v1/jobs/9/resume", &world.admin, &()).await;
    assert_eq!(unknown.refused(ErrorKind::NotFound).message, "no job 9");
    world.server.stop().await;
}
