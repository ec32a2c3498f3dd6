//! A server that keeps the contract of `/v1` for one host, in memory, and fails as it is told.

use crate::http::{Answer, Connection, Request};
use sojourn_codec::delta::Named;
use sojourn_codec::packed::pack;
use sojourn_protocol::{
    api::*,
    digest::{BlobRef, Digest},
    direct::{DirectAnswer, DirectRequest},
    error::{ApiError, ErrorKind},
    ids::{HostId, LeaseId, Version},
    report::{Outcome, Report, ReportEnd, ReportState},
    time::{Millis, UnixMillis},
    unit::Lease,
};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};

pub const ENROLMENT: &str = "let-me-in";
pub const STORE: &str = "/store/";

/// A fault that one request meets.
#[derive(Debug, Clone)]
pub enum Fault {
    /// This answer instead, with nothing done.
    Answer(Answer),
    /// The body is cut after so many bytes; for an upload, the bytes before are taken.
    Cut(usize),
    /// The body stops after so many bytes, and the connection stays.
    Stall(usize),
    /// One byte of the body is changed.
    Alter,
    /// No answer ever.
    Hang,
    /// All is done, but the answer is lost.
    Lost,
}

impl Fault {
    pub fn refusal(kind: ErrorKind) -> Self {
        let body = serde_json::to_vec(&ApiError::new(kind, "as told")).unwrap();
        Self::Answer(Answer { status: kind.status(), body, ..Answer::default() })
    }
}

/// Everything that the server knows.
#[derive(Default)]
pub struct World {
    pub blobs: BTreeMap<Digest, Vec<u8>>,
    /// Leases to hand out.
    pub queue: VecDeque<Lease>,
    /// Leases handed out and not over.
    pub held: BTreeMap<LeaseId, Lease>,
    pub uploads: BTreeMap<LeaseId, Vec<u8>>,
    /// Deltas that have come in part.
    pub deltas: BTreeMap<LeaseId, Vec<u8>>,
    pub reports: BTreeMap<LeaseId, Report>,
    /// Acknowledged reports that have ended.
    pub ends: BTreeMap<LeaseId, ReportEnd>,
    /// Reports end the moment they are made.
    pub end_at_once: bool,
    pub released: Vec<(LeaseId, String)>,
    /// Units that are given back come again, as the next lease.
    pub again: bool,
    /// Leases to have dropped, whatever the host says.
    pub drops: BTreeSet<LeaseId>,
    pub requests: Vec<Request>,
    pub works: Vec<WorkRequest>,
    pub heartbeats: Vec<HeartbeatRequest>,
    pub enrolled: u64,
    /// Tokens that are no longer taken.
    pub revoked: BTreeSet<String>,
    /// Tokens of hosts that the server has forgotten.
    pub forgotten: BTreeSet<String>,
    pub send_inventory: bool,
    /// Units are settled by others: uploads conflict, reports are superseded.
    pub settled: bool,
    /// Connections are closed unheard.
    pub away: bool,
    /// Requests are heard and never answered.
    pub hangs: bool,
    /// Most leases in one answer.
    pub most: Option<usize>,
    /// Hops to end early, said with each heartbeat.
    pub stop: Vec<LeaseId>,
    /// The machine is given back after so long, as each answer says.
    pub leave_within: Option<Millis>,
    /// Shards to fetch ahead, and blobs to drop, said with the next answer.
    pub fetch: Vec<BlobRef>,
    pub evict: Vec<Digest>,
    /// Shards that were said so, and may be read.
    pub ahead: BTreeSet<Digest>,
    /// Blobs that are asked for and don't come, until they are taken from here.
    pub withheld: BTreeSet<Digest>,
    /// The server's blobs lie in a store: here, beside `/v1`.
    pub has_store: bool,
    /// Gives shards packed to whoever accepts that.
    pub packs: bool,
    /// The blobs that it has given so.
    pub packed: Vec<Digest>,
    /// The stores that it names to hosts that enrol.
    pub stores: Option<Vec<String>>,
    /// The features that the server says that it understands, beyond the first version.
    pub features: &'static str,
    faults: VecDeque<(String, Fault)>,
    asks: u64,
}

/// Idle slots of all devices.
pub fn idle(ask: &WorkRequest) -> u32 {
    ask.demand.iter().map(|demand| demand.idle).sum()
}

/// Leases wanted for all devices.
pub fn wanted(ask: &WorkRequest) -> u32 {
    ask.demand.iter().map(|demand| demand.wanted).sum()
}

impl World {
    /// The next request that starts so (`GET /v1/blobs`) fails so.
    pub fn fail(&mut self, start: &str, fault: Fault) {
        self.faults.push_back((start.to_owned(), fault));
    }

    pub fn put(&mut self, bytes: &[u8]) -> BlobRef {
        let blob = BlobRef { sha256: Digest::of(bytes), bytes: bytes.len() as u64 };
        self.blobs.insert(blob.sha256, bytes.to_owned());
        blob
    }

    pub fn count(&self, start: &str) -> usize {
        self.requests
            .iter()
            .filter(|r| format!("{} {}", r.method, r.path).starts_with(start))
            .count()
    }

    pub fn faults_left(&self) -> usize {
        self.faults.len()
    }
}

pub struct Server {
    pub url: String,
    world: Arc<Mutex<World>>,
    changes: watch::Sender<()>,
    accepting: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Server {
    pub async fn start() -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let world: Arc<Mutex<World>> = Arc::default();
        let changes = watch::Sender::new(());
        let (seen, told) = (Arc::clone(&world), changes.clone());
        let accepting = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (world, changes) = (Arc::clone(&seen), told.clone());
                tokio::spawn(async move {
                    let mut connection = Connection::new(stream);
                    // A broken connection ends here, as it does in a real server.
                    let _ = serve(&mut connection, &world, &changes).await;
                });
            }
        });
        Arc::new(Self { url, world, changes, accepting })
    }

    pub fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    /// Changes the world and lets held requests see it.
    pub fn change<T>(&self, change: impl FnOnce(&mut World) -> T) -> T {
        let result = change(&mut self.world());
        self.changes.send_replace(());
        result
    }

    /// Waits until the world is so.
    pub async fn until(&self, what: &str, so: impl Fn(&World) -> bool) {
        let mut changes = self.changes.subscribe();
        let wait = async {
            loop {
                changes.mark_unchanged();
                if so(&self.world()) {
                    return;
                }
                changes.changed().await.unwrap();
            }
        };
        // Only so that a failing test says what it waited for.
        if tokio::time::timeout(Duration::from_secs(120), wait).await.is_err() {
            panic!("never came: {what}");
        }
    }
}

async fn serve(
    connection: &mut Connection,
    world: &Arc<Mutex<World>>,
    changes: &watch::Sender<()>,
) -> std::io::Result<()> {
    while let Some(mut request) = connection.head().await? {
        let line = format!("{} {}", request.method, request.path);
        let fault = {
            let mut world = world.lock().unwrap();
            if world.away {
                return Ok(());
            }
            let at = world.faults.iter().position(|(start, _)| line.starts_with(start.as_str()));
            at.and_then(|at| world.faults.remove(at)).map(|(_, fault)| fault)
        };
        let taken = match fault {
            Some(Fault::Cut(bytes)) if request.length > 0 => bytes.min(request.length),
            _ => request.length,
        };
        request.body = connection.body(taken).await?;
        let hangs = {
            let mut world = world.lock().unwrap();
            world.requests.push(request.clone());
            world.hangs
        };
        let fault = if hangs { Some(Fault::Hang) } else { fault };
        let cut_upload = taken < request.length;
        let answer = match &fault {
            Some(Fault::Answer(answer)) => Ok(answer.clone()),
            Some(Fault::Hang) => {
                changes.send_replace(());
                connection.hung_up().await;
                return Ok(());
            }
            _ => respond(&request, world, changes).await,
        };
        changes.send_replace(());
        let mut answer = answer.unwrap_or_else(|error| Answer {
            status: error.kind.status(),
            body: serde_json::to_vec(&error).unwrap(),
            ..Answer::default()
        });
        answer.features = world.lock().unwrap().features;
        match fault {
            _ if cut_upload => return Ok(()),
            Some(Fault::Cut(bytes)) => answer.cut_after = Some(bytes),
            Some(Fault::Stall(bytes)) => answer.stall_after = Some(bytes),
            Some(Fault::Alter) => answer.body[0] ^= 1,
            Some(Fault::Lost) => return Ok(()),
            _ => {}
        }
        connection.answer(&answer).await?;
    }
    Ok(())
}

fn parse<'a, T: serde::Deserialize<'a>>(request: &'a Request) -> Result<T, ApiError> {
    serde_json::from_slice(&request.body)
        .map_err(|error| ApiError::new(ErrorKind::Invalid, error.to_string()))
}

/// The store, which knows no tokens.
fn stored(request: &Request, world: &mut World) -> Result<Answer, ApiError> {
    assert!(!request.headers.contains_key("authorization"), "the token is the server's alone");
    assert!(!request.headers.keys().any(|name| name.starts_with("sojourn-")));
    let name = request.path.strip_prefix(STORE).unwrap();
    if request.method == "GET" {
        let blob = &world.blobs[&name.parse::<Digest>().unwrap()];
        let from = usize::try_from(request.range.unwrap_or(0)).unwrap();
        let status = if request.range.is_some() { 206 } else { 200 };
        return Ok(Answer { status, body: blob[from..].to_owned(), ..Answer::default() });
    }
    assert_eq!(request.headers["x-checksum"], Digest::of(&request.body).to_string());
    world.uploads.insert(LeaseId(name.parse().unwrap()), request.body.clone());
    Ok(Answer { status: 200, ..Answer::default() })
}

async fn respond(
    request: &Request,
    shared: &Arc<Mutex<World>>,
    changes: &watch::Sender<()>,
) -> Result<Answer, ApiError> {
    if request.path.starts_with(STORE) {
        return stored(request, &mut shared.lock().unwrap());
    }
    let token = request.token.clone().unwrap_or_default();
    if request.path == "/v1/enrol" {
        let mut world = shared.lock().unwrap();
        if token != ENROLMENT {
            return Err(ApiError::new(ErrorKind::Unauthorized, "no such enrolment token"));
        }
        let _: EnrolRequest = parse(request)?;
        world.enrolled += 1;
        let host = HostId(world.enrolled);
        let (token, stores) = (format!("host-{host}"), world.stores.clone());
        return Ok(Answer::json(&EnrolAnswer { host, token, stores, verified: false }));
    }
    {
        let world = shared.lock().unwrap();
        if world.forgotten.contains(&token) {
            return Err(ApiError::unknown_token("the token is unknown or was revoked"));
        }
        if !token.starts_with("host-") || world.revoked.contains(&token) {
            return Err(ApiError::new(ErrorKind::Unauthorized, "the host's token was revoked"));
        }
    }
    let parts: Vec<&str> = request.path.split('/').skip(2).collect();
    match (request.method.as_str(), parts.as_slice()) {
        ("POST", ["work"]) => work(parse(request)?, shared, changes).await,
        ("POST", ["heartbeat"]) => {
            let beat: HeartbeatRequest = parse(request)?;
            let mut world = shared.lock().unwrap();
            let answer = HeartbeatAnswer {
                stop: world.stop.clone(),
                leave_within: world.leave_within,
                drop: drops(&world, &beat.holding),
                reports: reports(&world, &beat.reported),
            };
            world.heartbeats.push(beat);
            Ok(Answer::json(&answer))
        }
        ("POST", ["release"]) => {
            let release: ReleaseRequest = parse(request)?;
            let mut world = shared.lock().unwrap();
            let mut released = release.leases.clone();
            released.retain(|lease| match world.held.remove(lease) {
                Some(held) if world.again => {
                    world.queue.push_back(Lease { id: held.id.next(), ..held });
                    true
                }
                held => held.is_some(),
            });
            for lease in release.leases {
                world.released.push((lease, release.reason.to_string()));
            }
            Ok(Answer::json(&ReleaseAnswer { released }))
        }
        ("POST", ["results"]) => report(parse(request)?, &mut shared.lock().unwrap()),
        ("GET", ["blobs", digest]) => {
            let mut changed = changes.subscribe();
            // The request can be seen.
            changes.send_replace(());
            while shared.lock().unwrap().withheld.contains(&digest.parse().unwrap()) {
                changed.changed().await.unwrap();
            }
            let mut world = shared.lock().unwrap();
            let follows =
                request.headers.get("sojourn-direct").is_some_and(|says| says == "follow");
            if world.has_store && follows {
                let location = Some(format!("{STORE}{digest}"));
                return Ok(Answer { status: 307, location, ..Answer::default() });
            }
            blob(request, digest, &mut world)
        }
        (method, ["leases", lease, "checkpoint", "delta"]) => {
            let lease = LeaseId(lease.parse().unwrap());
            delta(request, method, lease, &mut shared.lock().unwrap())
        }
        (method, ["leases", lease, "checkpoint"]) => {
            let lease = LeaseId(lease.parse().unwrap());
            let mut world = shared.lock().unwrap();
            if !world.held.contains_key(&lease) && !world.reports.contains_key(&lease) {
                return Err(ApiError::new(ErrorKind::Forbidden, "not this host's lease"));
            }
            if method == "PUT" && world.settled {
                return Err(ApiError::new(ErrorKind::Conflict, "the unit is settled"));
            }
            let upload = world.uploads.entry(lease).or_default();
            if method == "PUT" {
                let offset: usize = request.query.strip_prefix("offset=").unwrap().parse().unwrap();
                if offset != upload.len() {
                    let mut error = ApiError::new(ErrorKind::WrongOffset, "not where it ends");
                    error.offset = Some(upload.len() as u64);
                    return Err(error);
                }
                upload.extend_from_slice(&request.body);
                let whole = upload.len() as u64 == request.total.unwrap();
                if whole && Some(Digest::of(upload).to_string()) != request.sha256 {
                    upload.clear();
                    return Err(ApiError::new(ErrorKind::DigestMismatch, "other bytes"));
                }
            }
            let state = state_of(&world, lease);
            Ok(Answer::json(&state))
        }
        ("POST", ["leases", lease, "checkpoint", "direct"]) => {
            let asked: DirectRequest = parse(request)?;
            Ok(Answer::json(&DirectAnswer::Put {
                url: format!("http://{}{STORE}{lease}", request.headers["host"]),
                headers: [("x-checksum".to_owned(), asked.checkpoint.sha256.to_string())].into(),
                expires_at: UnixMillis(0),
            }))
        }
        _ => Err(ApiError::new(ErrorKind::NotFound, "no such thing")),
    }
}

fn delta(
    request: &Request,
    method: &str,
    lease: LeaseId,
    world: &mut World,
) -> Result<Answer, ApiError> {
    let mut state = state_of(world, lease);
    if !state.complete {
        let come = world.deltas.entry(lease).or_default();
        if method == "PUT" {
            let offset: usize = request.query.strip_prefix("offset=").unwrap().parse().unwrap();
            if offset != come.len() {
                return Err(ApiError::new(ErrorKind::WrongOffset, "not where it ends"));
            }
            come.extend_from_slice(&request.body);
        }
        state.offset = come.len() as u64;
        if Some(state.offset) == request.total {
            assert_eq!(Some(Digest::of(come).to_string()), request.sha256);
            let base: Digest = request.headers["sojourn-base"].parse().unwrap();
            let named = Named { digest: base.0, bytes: &world.blobs[&base] };
            let checkpoint = sojourn_codec::delta::decode(named, come, u64::MAX).unwrap();
            let digest = Digest::of(&checkpoint).to_string();
            assert_eq!(digest, request.headers["sojourn-result-sha256"]);
            assert_eq!(checkpoint.len().to_string(), request.headers["sojourn-result-bytes"]);
            world.uploads.insert(lease, checkpoint);
            state.complete = true;
        }
    }
    Ok(Answer::json(&state))
}

fn state_of(world: &World, lease: LeaseId) -> UploadState {
    let offset = world.uploads.get(&lease).map_or(0, |bytes| bytes.len() as u64);
    let wanted = world.held.get(&lease).map(|lease| lease.upload_bytes);
    let reported = world.reports.contains_key(&lease);
    UploadState { offset, complete: reported || wanted == Some(offset) }
}

async fn work(
    ask: WorkRequest,
    shared: &Arc<Mutex<World>>,
    changes: &watch::Sender<()>,
) -> Result<Answer, ApiError> {
    let mut changed = changes.subscribe();
    let mine = {
        let mut world = shared.lock().unwrap();
        world.asks += 1;
        world.works.push(ask.clone());
        world.asks
    };
    changes.send_replace(());
    let end = tokio::time::Instant::now() + Duration::from_millis(ask.wait.0);
    loop {
        changed.mark_unchanged();
        {
            let mut world = shared.lock().unwrap();
            let replaced = world.asks > mine;
            let holding: BTreeSet<LeaseId> = ask.holding.iter().map(|held| held.lease).collect();
            // What the host should hold and lacks comes again.
            let mut leases: Vec<Lease> = Vec::new();
            if !replaced {
                leases.extend(
                    world.held.values().filter(|lease| !holding.contains(&lease.id)).cloned(),
                );
                let mut room: BTreeMap<String, u32> =
                    ask.demand.iter().map(|d| (d.device.clone(), d.wanted)).collect();
                while leases.len() < world.most.unwrap_or(usize::MAX)
                    && let Some(lease) = world.queue.front()
                    && let Some(left) = room.get_mut(&lease.device).filter(|left| **left > 0)
                    && let Some(lease) = world.queue.pop_front()
                {
                    *left -= 1;
                    world.held.insert(lease.id, lease.clone());
                    leases.push(lease);
                }
            }
            let ahead: Vec<Digest> = world.fetch.iter().map(|blob| blob.sha256).collect();
            world.ahead.extend(ahead);
            let told = !(world.fetch.is_empty() && world.evict.is_empty());
            let answer = WorkAnswer {
                stop: Vec::new(),
                fetch: std::mem::take(&mut world.fetch),
                evict: std::mem::take(&mut world.evict),
                waiting: None,
                leave_within: world.leave_within,
                leases,
                drop: drops(&world, &ask.holding),
                reports: reports(&world, &ask.reported)
                    .into_iter()
                    .filter(|answer| answer.state != ReportState::Acknowledged)
                    .collect(),
                ask_again: Millis(0),
                send_inventory: std::mem::take(&mut world.send_inventory),
            };
            let empty =
                answer.leases.is_empty() && answer.drop.is_empty() && answer.reports.is_empty();
            let over = tokio::time::Instant::now() >= end;
            if replaced || !empty || told || answer.send_inventory || over {
                return Ok(Answer::json(&answer));
            }
        }
        let _ = tokio::time::timeout_at(end, changed.changed()).await;
    }
}

fn drops(world: &World, holding: &[Held]) -> Vec<LeaseId> {
    let useless = |lease: &LeaseId| {
        let over = !world.held.contains_key(lease) && !world.reports.contains_key(lease);
        over || world.drops.contains(lease)
    };
    holding.iter().map(|held| held.lease).filter(useless).collect()
}

fn reports(world: &World, asked: &[LeaseId]) -> Vec<ReportAnswer> {
    let known = asked.iter().filter(|lease| world.reports.contains_key(lease));
    known.map(|lease| ReportAnswer { lease: *lease, state: report_state(world, *lease) }).collect()
}

fn report_state(world: &World, lease: LeaseId) -> ReportState {
    match world.ends.get(&lease) {
        Some(end) => ReportState::Ended(end.clone()),
        None => ReportState::Acknowledged,
    }
}

fn report(report: Report, world: &mut World) -> Result<Answer, ApiError> {
    let lease = report.lease;
    match world.reports.get(&lease) {
        Some(first) if *first != report => {
            return Err(ApiError::new(ErrorKind::Conflict, "another report was made"));
        }
        Some(_) => {}
        None => {
            if !world.held.contains_key(&lease) {
                return Err(ApiError::new(ErrorKind::Forbidden, "not this host's lease"));
            }
            if let Outcome::Trained(trained) = &report.outcome
                && !world.settled
            {
                let uploaded = world.uploads.get(&lease).map(|bytes| Digest::of(bytes));
                if uploaded != Some(trained.checkpoint.sha256) {
                    return Err(ApiError::new(ErrorKind::Conflict, "upload the checkpoint first"));
                }
                let bytes = world.uploads[&lease].clone();
                world.put(&bytes);
            }
            world.held.remove(&lease);
            world.reports.insert(lease, report);
            if world.settled {
                world.ends.insert(lease, ReportEnd::Superseded);
            } else if world.end_at_once {
                world.ends.insert(lease, ReportEnd::Assimilated { version: Version(1) });
            }
        }
    }
    Ok(Answer::json(&ReportAnswer { lease, state: report_state(world, lease) }))
}

fn blob(request: &Request, digest: &str, world: &mut World) -> Result<Answer, ApiError> {
    let digest: Digest = digest.parse().unwrap();
    let named = world
        .held
        .values()
        .any(|lease| lease.unit.blobs().iter().any(|blob| blob.sha256 == digest));
    if !named && !world.ahead.contains(&digest) {
        return Err(ApiError::new(ErrorKind::Forbidden, "no lease names this blob"));
    }
    let Some(bytes) = world.blobs.get(&digest) else {
        return Err(ApiError::new(ErrorKind::NotFound, "no such blob"));
    };
    let accepts = request.headers.get("accept-encoding").is_some_and(|says| says == "zstd");
    if accepts
        && world.packs
        && request.range.is_none()
        && let Some(body) = pack(bytes)
    {
        world.packed.push(digest);
        return Ok(Answer { status: 200, body, encoding: Some("zstd"), ..Answer::default() });
    }
    let from = usize::try_from(request.range.unwrap_or(0)).unwrap();
    let Some(rest) = bytes.get(from..).filter(|rest| from == 0 || !rest.is_empty()) else {
        return Err(ApiError::new(ErrorKind::RangeNotSatisfiable, "after the end"));
    };
    let status = if request.range.is_some() { 206 } else { 200 };
    Ok(Answer { status, body: rest.to_owned(), ..Answer::default() })
}
