//! Properties that hold after any sequence of events: a world of one server and one disk plays executors that do as they like.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "this whole crate is a test: what isn't there fails it"
)]

use proptest::prelude::*;
use sojourn_client_core::{
    Action, Agent, AgentConfig, AskId, CallError, DeviceSlots, Event, Micros, OwnerEvent,
    ReportError, ResultFacts, StoredResult, TrainerState, TransferView, UnitError, UploadError,
    UploadStart, Uploaded, lease::LeaseState,
};
use sojourn_protocol::{
    api::{HeartbeatAnswer, HeldState, ReleaseAnswer, ReportAnswer, WorkAnswer},
    digest::{BlobRef, Digest},
    ids::{Epoch, JobId, LeaseId, ShardId, TrialId, Version},
    manifest::{Scaling, Shard, Targets},
    position::Position,
    report::{ReportEnd, ReportState},
    spec::{Architecture, Loss, Optimizer, OptimizerName, TrainingConfig, TrialConfig},
    time::{Millis, UnixMillis},
    trainer::Progress,
    unit::{Base, Hop, Lease, NextHop, TrialContext, Unit},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

const SHARDS: u8 = 6;

fn blob(number: u8) -> BlobRef {
    BlobRef { sha256: Digest::of(&[number]), bytes: 100 }
}

fn context() -> Arc<TrialContext> {
    let optimizer = Optimizer::new(OptimizerName::Sgd, 0.1);
    let training = TrainingConfig::new(1, 4, Loss::Mse, optimizer);
    Arc::new(TrialContext {
        config: TrialConfig { model: Architecture::mlp([]), training },
        columns: Vec::new(),
        shape: vec![1],
        outputs: 1,
        scaling: Scaling::None,
        targets: Targets::Plain,
        total_steps: 9,
        pinned_threads: None,
    })
}

/// A hop over a shard, and over others after it.
fn lease(id: u64, shards: &[u8]) -> Lease {
    let shard = |number: &u8| Shard { blob: blob(*number), rows: 8 };
    let leg = |n: &u8| NextHop { shard_id: ShardId(u32::from(*n)), shard: shard(n), seed: 1 };
    let unit = Unit::Train(Hop {
        job: JobId(1),
        trial: TrialId(0),
        base: Base::Initial { seed: 1 },
        start: Position { epoch: Epoch(0), shard: ShardId(0), batch: 0, step: 0 },
        shard: shard(&shards[0]),
        seed: 1,
        context: context(),
        then: shards[1..].iter().map(leg).collect(),
        until: None,
    });
    Lease {
        id: LeaseId(id),
        unit,
        device: "cpu".into(),
        renew_by: UnixMillis(0),
        heartbeat_every: Millis(1000),
        upload_bytes: 50,
        instructions: None,
        cpu_shares: None,
    }
}

/// The host's disk and transfers, as far as a [`TransferView`] shows them.
#[derive(Debug, Default)]
struct Disk {
    blobs: BTreeSet<Digest>,
    /// Bytes of blobs that are on their way.
    coming: BTreeMap<Digest, u64>,
}

impl TransferView for Disk {
    fn has(&self, blob: &Digest) -> bool {
        self.blobs.contains(blob)
    }
    fn fetched(&self, blob: &Digest) -> u64 {
        let coming = self.coming.get(blob).copied().unwrap_or(0);
        if self.has(blob) { 100 } else { coming }
    }
    fn sent(&self, _: LeaseId) -> u64 {
        7
    }
    fn capacity(&self) -> u64 {
        u64::MAX
    }
    fn has_room(&self, _: u64) -> bool {
        true
    }
}

/// How a lease that was granted has ended, as far as this world knows.
#[derive(Debug, Default, Clone, Copy)]
struct Ends {
    reports: u32,
    releases: u32,
    drops: u32,
}

/// Everything around an agent.
struct World {
    agent: Agent,
    config: Arc<AgentConfig>,
    disk: Disk,
    now: Micros,
    granted: u64,
    asks: BTreeSet<AskId>,
    beats: u32,
    fetches: BTreeSet<Digest>,
    pins: BTreeSet<Digest>,
    running: BTreeMap<LeaseId, (u32, BTreeSet<Digest>)>,
    uploads: BTreeSet<LeaseId>,
    upload_starts: Vec<UploadStart>,
    reports: BTreeSet<LeaseId>,
    releases: Vec<Vec<LeaseId>>,
    /// Results on the disk.
    stored: BTreeSet<LeaseId>,
    acknowledged: BTreeSet<LeaseId>,
    ends: BTreeMap<LeaseId, Ends>,
    exited: bool,
}

/// The next event: numbers choose among what is possible.
#[derive(Debug, Clone)]
enum Choice {
    Answer { grants: u8, shards: [u8; 3], drop: u8, stop: bool, end: bool },
    AskFails,
    Beat { drop: u8, end: bool, fails: bool },
    Blob { which: u8, fails: bool },
    Needs { which: u8 },
    Part { which: u8 },
    SlotFree { which: u8, failed: bool },
    Unit { which: u8, how: u8 },
    Upload { which: u8, how: u8 },
    Report { which: u8, how: u8 },
    Release { fails: bool },
    Compute(bool),
    Suspend(bool),
    Budget(Option<u16>),
    Later(u32),
    Restart,
    Drain,
    Shutdown,
}

fn choice() -> impl Strategy<Value = Choice> {
    let which = 0..8u8;
    prop_oneof![
        8 => (0..4u8, [0..SHARDS, 0..SHARDS, 0..SHARDS], any::<u8>(), any::<bool>(), any::<bool>())
            .prop_map(|(grants, shards, drop, stop, end)| Choice::Answer { grants, shards, drop, stop, end }),
        1 => Just(Choice::AskFails),
        3 => (any::<u8>(), any::<bool>(), any::<bool>())
            .prop_map(|(drop, end, fails)| Choice::Beat { drop, end, fails }),
        10 => (which.clone(), 0..10u8).prop_map(|(which, fails)| Choice::Blob { which, fails: fails == 0 }),
        2 => which.clone().prop_map(|which| Choice::Needs { which }),
        2 => which.clone().prop_map(|which| Choice::Part { which }),
        2 => (which.clone(), any::<bool>()).prop_map(|(which, failed)| Choice::SlotFree { which, failed }),
        6 => (which.clone(), 0..8u8).prop_map(|(which, how)| Choice::Unit { which, how }),
        6 => (which.clone(), 0..10u8).prop_map(|(which, how)| Choice::Upload { which, how }),
        6 => (which.clone(), 0..8u8).prop_map(|(which, how)| Choice::Report { which, how }),
        4 => any::<bool>().prop_map(|fails| Choice::Release { fails }),
        1 => any::<bool>().prop_map(Choice::Compute),
        1 => any::<bool>().prop_map(Choice::Suspend),
        1 => any::<Option<u16>>().prop_map(Choice::Budget),
        6 => (1..60_000_000u32).prop_map(Choice::Later),
        1 => Just(Choice::Restart),
    ]
}

fn pick<T: Copy + Ord>(among: &BTreeSet<T>, which: u8) -> Option<T> {
    let count = among.len().max(1);
    among.iter().nth(usize::from(which) % count).copied()
}

impl World {
    fn new() -> Self {
        let device = DeviceSlots { name: "cpu".into(), slots: 2 };
        let config = Arc::new(AgentConfig::new(vec![device]));
        let mut world = Self {
            agent: Agent::new(Arc::clone(&config), 7, Vec::new()),
            config,
            disk: Disk::default(),
            now: Micros::from_secs(1),
            granted: 0,
            asks: BTreeSet::new(),
            beats: 0,
            fetches: BTreeSet::new(),
            pins: BTreeSet::new(),
            running: BTreeMap::new(),
            uploads: BTreeSet::new(),
            upload_starts: Vec::new(),
            reports: BTreeSet::new(),
            releases: Vec::new(),
            stored: BTreeSet::new(),
            acknowledged: BTreeSet::new(),
            ends: BTreeMap::new(),
            exited: false,
        };
        let actions = world.agent.start(world.now, &world.disk);
        world.carry_out(actions);
        world
    }

    fn tell(&mut self, event: Event) {
        if self.exited {
            return;
        }
        let actions = self.agent.handle(self.now, event, &self.disk);
        self.carry_out(actions);
        self.check();
    }

    fn carry_out(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Ask(ask) => {
                    self.agent.work_request(ask, None, &self.disk);
                    assert!(self.asks.insert(ask));
                }
                Action::Beat => {
                    self.agent.heartbeat_request(&self.disk);
                    self.beats += 1;
                    assert_eq!(self.beats, 1, "one heartbeat at a time");
                }
                Action::Fetch(blob, ..) => {
                    assert!(self.fetches.insert(blob.sha256), "fetched twice at once");
                    assert!(!self.pins.contains(&blob.sha256), "it is here");
                }
                Action::CancelFetch(blob) => assert!(self.fetches.remove(&blob)),
                Action::Unpin(blob) => assert!(self.pins.remove(&blob)),
                Action::Start(lease, slot) => {
                    let id = lease.id;
                    assert!(self.is_held(id), "no action for a closed lease");
                    let used = self.running.values().any(|(used, _)| *used == slot.number);
                    assert!(!used, "no slot is assigned twice");
                    let Unit::Train(hop) = &lease.unit else { panic!("a hop") };
                    assert!(self.pins.contains(&hop.shard.blob.sha256), "its shard is pinned");
                    self.running.insert(id, (slot.number, BTreeSet::new()));
                }
                Action::HandOver(lease, blob) => {
                    assert!(self.pins.contains(&blob));
                    let (_, had) = self.running.get_mut(&lease).expect("it runs");
                    assert!(had.insert(blob), "handed over twice");
                }
                Action::StopAfterBatch(lease) | Action::StopNow(lease) => {
                    assert!(self.running.contains_key(&lease));
                }
                Action::Kill(lease) => {
                    assert!(self.running.remove(&lease).is_some());
                }
                Action::Upload(lease, start) => {
                    assert!(self.stored.contains(&lease) && self.uploads.insert(lease));
                    self.upload_starts.push(start);
                }
                Action::Report(lease) => {
                    assert!(self.stored.contains(&lease) && self.reports.insert(lease));
                }
                Action::DeleteResult(lease) => {
                    self.stored.remove(&lease);
                    self.uploads.remove(&lease);
                    self.reports.remove(&lease);
                }
                Action::Release(leases, _) => {
                    assert!(!leases.is_empty());
                    for lease in &leases {
                        assert!(
                            !self.running.contains_key(lease),
                            "what is given back doesn't run"
                        );
                        self.ends.entry(*lease).or_default().releases += 1;
                    }
                    self.releases.push(leases);
                }
                Action::Evict(_) | Action::SetCpuShares(_) => {}
                Action::Exit => self.exited = true,
            }
        }
    }

    fn is_held(&self, lease: LeaseId) -> bool {
        self.agent.lease(lease).is_some()
    }

    fn check(&self) {
        let held: Vec<LeaseId> = self.agent.leases().iter().map(|lease| lease.id()).collect();
        let unique: BTreeSet<LeaseId> = held.iter().copied().collect();
        assert_eq!(held.len(), unique.len(), "every lease is in exactly one state");
        for lease in self.agent.leases() {
            let id = lease.id();
            assert_eq!(self.running.contains_key(&id), lease.is_in_slot(), "{lease:?}");
            let state = lease.state();
            let uploads = matches!(state, LeaseState::Uploading(_));
            let reports = matches!(state, LeaseState::Reporting(_));
            assert_eq!(self.uploads.contains(&id), uploads, "{lease:?}");
            assert_eq!(self.reports.contains(&id), reports, "{lease:?}");
            let acknowledged = matches!(state, LeaseState::Acknowledged(_));
            if lease.is_undelivered() || acknowledged {
                assert!(self.stored.contains(&id), "the result is on the disk: {lease:?}");
            }
        }
        for lease in self.running.keys().chain(&self.uploads).chain(&self.reports) {
            assert!(self.is_held(*lease), "no action for a closed lease: {lease:?}");
        }
        if let Some(next) = self.agent.next_deadline() {
            assert!(next > self.now, "a deadline lies in the future");
        }
        // A lease that isn't held any more has ended in exactly one way. A release may be told twice.
        for id in (1..=self.granted).map(LeaseId).filter(|id| !self.is_held(*id)) {
            let Ends { reports, releases, drops } = self.ends.get(&id).copied().unwrap_or_default();
            let ways = u32::from(reports > 0) + u32::from(releases > 0 || drops > 0);
            assert!(ways >= 1, "{id:?} has no end");
            assert!(reports <= 1 && drops <= 1, "{id:?}");
        }
    }

    fn held(&self) -> BTreeSet<LeaseId> {
        self.agent.leases().iter().map(|lease| lease.id()).collect()
    }

    /// Leases that the server drops: any, or none.
    fn drops(&mut self, which: u8) -> Vec<LeaseId> {
        if !which.is_multiple_of(5) {
            return Vec::new();
        }
        pick(&self.held(), which / 5).into_iter().collect()
    }

    fn note_drops(&mut self, drops: &[LeaseId]) {
        for lease in drops {
            if !self.is_held(*lease) && !self.exited {
                self.ends.entry(*lease).or_default().drops += 1;
                self.running.remove(lease);
            }
        }
    }

    fn ended_reports(&mut self, end: bool) -> Vec<ReportAnswer> {
        let Some(lease) = pick(&self.acknowledged, 0).filter(|_| end) else { return Vec::new() };
        self.acknowledged.remove(&lease);
        let state = ReportState::Ended(ReportEnd::Assimilated { version: Version(1) });
        vec![ReportAnswer { lease, state }]
    }

    fn choose(&mut self, choice: Choice) {
        match choice {
            Choice::Answer { grants, shards, drop, stop, end } => {
                let Some(ask) = pick(&self.asks, drop) else { return };
                self.asks.remove(&ask);
                let mut leases = Vec::new();
                for _ in 0..grants {
                    self.granted += 1;
                    leases.push(lease(self.granted, &shards));
                }
                let drops = self.drops(drop);
                let stops = if stop { self.held().into_iter().collect() } else { Vec::new() };
                let answer = WorkAnswer {
                    leases,
                    drop: drops.clone(),
                    reports: self.ended_reports(end),
                    ask_again: Millis(0),
                    send_inventory: false,
                    stop: stops,
                    fetch: shards.map(blob).to_vec(),
                    evict: Vec::new(),
                    waiting: None,
                    leave_within: None,
                };
                self.tell_with_drops(Event::Work(ask, Ok(answer)), &drops);
            }
            Choice::AskFails => {
                let Some(ask) = pick(&self.asks, 0) else { return };
                self.asks.remove(&ask);
                self.tell(Event::Work(ask, Err(CallError::default())));
            }
            Choice::Beat { drop, end, fails } => {
                if self.beats == 0 {
                    return;
                }
                self.beats = 0;
                if fails {
                    return self.tell(Event::Heartbeat(Err(CallError::default())));
                }
                let drops = self.drops(drop);
                let reports = self.ended_reports(end);
                let answer = HeartbeatAnswer {
                    drop: drops.clone(),
                    reports,
                    stop: Vec::new(),
                    leave_within: None,
                };
                self.tell_with_drops(Event::Heartbeat(Ok(answer)), &drops);
            }
            Choice::Blob { which, fails } => {
                let Some(blob) = pick(&self.fetches, which) else { return };
                self.fetches.remove(&blob);
                if fails {
                    let error = UnitError::Unit("no such blob".into());
                    return self.tell(Event::BlobFailed(blob, error));
                }
                self.disk.blobs.insert(blob);
                self.pins.insert(blob);
                self.tell(Event::BlobReady(blob));
            }
            Choice::Needs { which } => {
                let Some(lease) = self.running_one(which) else { return };
                let Some(LeaseState::Running(_)) = self.agent.lease(lease).map(|l| l.state())
                else {
                    return;
                };
                self.tell(Event::Progress(lease, Progress { done: 1, of: 9 }));
                let wanted = pick(&self.fetches, which).filter(|_| which.is_multiple_of(2));
                if let Some(wanted) = wanted {
                    self.tell(Event::ShardNeeded(lease, wanted));
                }
            }
            Choice::Part { which } => {
                let Some(lease) = self.running_one(which) else { return };
                self.stored.insert(lease);
                self.tell(Event::PartSaved(lease));
            }
            Choice::SlotFree { which, failed } => {
                let Some(lease) = self.running_one(which) else { return };
                if let Some((slot, _)) = self.running.get_mut(&lease) {
                    // No slot any more.
                    *slot = u32::MAX - u32::try_from(lease.0).expect("a small number");
                }
                let trainer = if failed { TrainerState::Failed } else { TrainerState::Good };
                self.tell(Event::SlotFree(lease, trainer));
            }
            Choice::Unit { which, how } => self.unit_ends(which, how),
            Choice::Upload { which, how } => {
                let Some(lease) = pick(&self.uploads, which) else { return };
                self.uploads.remove(&lease);
                let later = CallError { retry_after: Some(Micros::from_secs(3)) };
                self.tell(match how {
                    0 => Event::UploadFailed(lease, UploadError::Later(later)),
                    1 => Event::UploadFailed(lease, UploadError::RefusedOnTheWay(later)),
                    2 => Event::UploadFailed(lease, UploadError::Unreadable("busy".into())),
                    3 => Event::UploadFailed(lease, UploadError::Lost("gone".into())),
                    4 => Event::UploadFailed(lease, UploadError::NotWanted("old".into())),
                    5 => Event::Uploaded(lease, Uploaded::Before),
                    _ => Event::Uploaded(lease, Uploaded::Sent),
                });
            }
            Choice::Report { which, how } => self.report_ends(which, how),
            Choice::Release { fails } => {
                let Some(leases) = self.releases.pop() else { return };
                let answer = ReleaseAnswer { released: leases.clone() };
                let result = if fails { Err(CallError::default()) } else { Ok(answer) };
                self.tell(Event::Released(leases, result));
            }
            Choice::Compute(computes) => self.tell(Event::Owner(OwnerEvent::Compute(computes))),
            Choice::Suspend(suspends) => self.tell(Event::Owner(OwnerEvent::Suspend(suspends))),
            Choice::Budget(limit) => {
                let limit = limit.map(u64::from);
                self.tell(Event::Owner(OwnerEvent::Budget { period: 1, limit, used: 300 }));
            }
            Choice::Later(micros) => {
                self.now += Micros(u64::from(micros));
                self.tell(Event::Tick);
            }
            Choice::Restart => self.restart(),
            Choice::Drain => self.tell(Event::Owner(OwnerEvent::Drain)),
            Choice::Shutdown => self.tell(Event::Shutdown),
        }
    }

    fn tell_with_drops(&mut self, event: Event, drops: &[LeaseId]) {
        let before = self.held();
        if self.exited {
            return;
        }
        let actions = self.agent.handle(self.now, event, &self.disk);
        self.carry_out(actions);
        let gone: Vec<LeaseId> = drops.iter().copied().filter(|id| before.contains(id)).collect();
        self.note_drops(&gone);
        self.check();
    }

    fn running_one(&self, which: u8) -> Option<LeaseId> {
        pick(&self.running.keys().copied().collect(), which)
    }

    fn unit_ends(&mut self, which: u8, how: u8) {
        let Some(lease) = self.running_one(which) else { return };
        let has_part = self.stored.contains(&lease);
        self.running.remove(&lease);
        let facts = ResultFacts { has_checkpoint: how.is_multiple_of(2), continues_from: None };
        let error = match how {
            0 => UnitError::Machine("full".into()),
            1 => UnitError::Stopped,
            2 => UnitError::Unit("no".into()),
            _ => {
                self.stored.insert(lease);
                return self.tell(Event::UnitEnded(lease, facts));
            }
        };
        self.tell(Event::UnitFailed(lease, error, has_part.then_some(facts)));
    }

    fn report_ends(&mut self, which: u8, how: u8) {
        let Some(lease) = pick(&self.reports, which) else { return };
        self.reports.remove(&lease);
        let acknowledged = ReportAnswer { lease, state: ReportState::Acknowledged };
        let ended = ReportAnswer { lease, state: ReportState::Ended(ReportEnd::Superseded) };
        let result = match how {
            0 => Err(ReportError::NoAnswer(CallError::default())),
            1 => Err(ReportError::UploadMissing("send it".into())),
            2 => Err(ReportError::NotWanted("no".into())),
            3 => Ok(ended),
            _ => Ok(acknowledged),
        };
        if let Ok(answer) = &result {
            self.ends.entry(lease).or_default().reports += 1;
            if answer.state == ReportState::Acknowledged {
                self.acknowledged.insert(lease);
            }
        }
        self.tell(Event::Report(lease, result));
    }

    /// The program is killed, and starts again with what is on its disk.
    fn restart(&mut self) {
        let results = self.stored.iter().map(|lease| StoredResult {
            lease: *lease,
            heartbeat_interval: Micros::from_secs(1),
            has_checkpoint: true,
        });
        let lost: Vec<LeaseId> = self.held().difference(&self.stored).copied().collect();
        for lease in lost {
            // The server lets them expire.
            self.ends.entry(lease).or_default().drops += 1;
        }
        for lease in &self.stored {
            self.ends.entry(*lease).or_default().reports = 0;
        }
        self.agent = Agent::new(Arc::clone(&self.config), 8, results.collect());
        self.asks.clear();
        self.beats = 0;
        self.fetches.clear();
        self.pins.clear();
        self.running.clear();
        self.uploads.clear();
        self.reports.clear();
        self.releases.clear();
        self.acknowledged.clear();
        let actions = self.agent.start(self.now, &self.disk);
        self.carry_out(actions);
        self.check();
    }

    /// Lets everything come to its end without another fault.
    fn finish(&mut self) {
        self.choose(Choice::Compute(true));
        self.choose(Choice::Suspend(false));
        for _ in 0..100 {
            if !self.agent.is_server_away() {
                break;
            }
            self.now = self.agent.next_deadline().map_or(self.now, |at| at.max(self.now));
            self.choose(Choice::Later(1));
            self.choose(Choice::Beat { drop: 1, end: false, fails: false });
            self.choose(Choice::Answer {
                grants: 0,
                shards: [0; 3],
                drop: 1,
                stop: false,
                end: false,
            });
        }
        self.choose(Choice::Shutdown);
        for _ in 0..2000 {
            if self.exited {
                return;
            }
            let waits = self.fetches.is_empty() && self.running.is_empty() && self.asks.is_empty();
            let waits = waits && self.uploads.is_empty() && self.reports.is_empty();
            if waits && self.releases.is_empty() && self.beats == 0 {
                self.now = self.agent.next_deadline().map_or(self.now, |at| at.max(self.now));
            }
            for choice in [
                Choice::Blob { which: 0, fails: false },
                Choice::Unit { which: 0, how: 4 },
                Choice::Upload { which: 0, how: 9 },
                Choice::Report { which: 0, how: 7 },
                Choice::Release { fails: false },
                Choice::Answer { grants: 0, shards: [0; 3], drop: 1, stop: false, end: false },
                Choice::Beat { drop: 1, end: true, fails: false },
                Choice::Later(1),
            ] {
                self.choose(choice);
            }
        }
        panic!("it never ends: {:?}", self.agent.leases());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn leases_keep_their_promises_over_any_sequence_of_events(
        choices in proptest::collection::vec(choice(), 1..200),
    ) {
        let mut world = World::new();
        for choice in choices {
            world.choose(choice);
        }
        let begun = world.now;
        world.finish();
        // Results wait on the disk for the next start only where the time passes.
        let late = world.now >= begun + world.config.shutdown_time;
        prop_assert!(world.agent.undelivered() == 0 || late);
    }

    #[test]
    fn an_agent_that_is_drained_ends(choices in proptest::collection::vec(choice(), 1..60)) {
        let mut world = World::new();
        for choice in choices {
            world.choose(choice);
        }
        world.choose(Choice::Drain);
        world.finish();
    }
}

#[test]
fn one_unit_ahead_is_asked_for_and_a_finished_one_does_not_count() {
    let mut world = World::new();
    let demand = |world: &World| {
        let demand = &world.agent.demand()[0];
        (demand.idle, demand.wanted)
    };
    assert_eq!(demand(&world), (2, 4));
    let grant = Choice::Answer { grants: 2, shards: [0; 3], drop: 1, stop: false, end: false };
    world.choose(grant);
    assert_eq!(demand(&world), (0, 2));
    world.choose(Choice::Blob { which: 0, fails: false });
    assert_eq!(world.running.len(), 2);
    world.choose(Choice::Unit { which: 0, how: 4 });
    assert_eq!(demand(&world), (1, 3));
}

#[test]
fn a_host_that_has_all_it_wants_keeps_a_request_open_and_asks_anew_when_it_wants_more() {
    let mut world = World::new();
    world.choose(Choice::Answer { grants: 4, shards: [0; 3], drop: 1, stop: false, end: false });
    let wanted = |world: &World| world.agent.demand()[0].wanted;
    assert_eq!((wanted(&world), world.asks.len()), (0, 1));
    world.choose(Choice::Blob { which: 0, fails: false });
    assert_eq!((world.running.len(), world.asks.len()), (2, 1), "nothing more is wanted");
    // What the server takes back is dropped at once, and another unit is asked for.
    let withdrawn = LeaseId(4);
    assert!(world.is_held(withdrawn));
    let ask = world.asks.pop_first().expect("an open request");
    let answer = WorkAnswer {
        leases: Vec::new(),
        drop: vec![withdrawn],
        reports: Vec::new(),
        ask_again: Millis(0),
        send_inventory: false,
        stop: Vec::new(),
        fetch: Vec::new(),
        evict: Vec::new(),
        waiting: None,
        leave_within: None,
    };
    world.tell_with_drops(Event::Work(ask, Ok(answer)), &[withdrawn]);
    assert_eq!((world.is_held(withdrawn), wanted(&world), world.asks.len()), (false, 1, 1));
    world.choose(Choice::Answer { grants: 1, shards: [0; 3], drop: 1, stop: false, end: false });
    assert_eq!((wanted(&world), world.asks.len()), (0, 1));
    // A unit ends, and the next one begins: the open request doesn't say that one more is wanted.
    world.choose(Choice::Unit { which: 0, how: 4 });
    assert_eq!((wanted(&world), world.asks.len()), (1, 2));
}

#[test]
fn a_drop_that_a_report_overtook_changes_nothing() {
    let mut world = World::new();
    let grant = Choice::Answer { grants: 1, shards: [0; 3], drop: 1, stop: false, end: false };
    world.choose(grant);
    world.choose(Choice::Blob { which: 0, fails: false });
    world.choose(Choice::Unit { which: 0, how: 5 });
    let drop = |world: &mut World| {
        let ask = *world.asks.first().expect("an open request");
        world.asks.remove(&ask);
        let answer = WorkAnswer {
            leases: Vec::new(),
            drop: vec![LeaseId(1)],
            reports: Vec::new(),
            ask_again: Millis(0),
            send_inventory: false,
            stop: Vec::new(),
            fetch: Vec::new(),
            evict: Vec::new(),
            waiting: None,
            leave_within: None,
        };
        world.tell(Event::Work(ask, Ok(answer)));
    };
    // The report is out, and its answer decides.
    drop(&mut world);
    assert_eq!(world.reports, BTreeSet::from([LeaseId(1)]));
    world.choose(Choice::Report { which: 0, how: 7 });
    // The next request names it as reported.
    assert_eq!(world.agent.acknowledged(), [LeaseId(1)]);
    world.now += Micros::from_secs(6);
    world.choose(Choice::Later(1));
    drop(&mut world);
    if world.is_held(LeaseId(1)) {
        world.choose(Choice::Later(10_000_000));
        drop(&mut world);
    }
    assert!(!world.is_held(LeaseId(1)) && world.stored.is_empty());
}

/// A world whose only lease is a hop over three shards, the first of which is on its way.
fn with_a_lease() -> World {
    let mut world = World::new();
    let grant = Choice::Answer { grants: 1, shards: [0, 1, 2], drop: 1, stop: false, end: false };
    world.choose(grant);
    world
}

fn arrives(world: &mut World, number: u8) {
    let blob = blob(number).sha256;
    assert!(world.fetches.remove(&blob), "it was asked for");
    world.disk.blobs.insert(blob);
    world.pins.insert(blob);
    world.tell(Event::BlobReady(blob));
}

fn told(world: &World) -> Vec<HeldState> {
    world.agent.holding(&world.disk).into_iter().map(|held| held.state).collect()
}

#[test]
fn bytes_of_blobs_and_results_are_told_as_they_move() {
    let mut world = with_a_lease();
    assert_eq!(told(&world), [HeldState::Fetching { fetched: 0 }]);
    world.disk.coming.insert(blob(0).sha256, 5);
    world.disk.coming.insert(blob(1).sha256, 7);
    assert_eq!(told(&world), [HeldState::Fetching { fetched: 12 }]);
    world.tell(Event::Owner(OwnerEvent::Compute(false)));
    arrives(&mut world, 0);
    assert_eq!(told(&world), [HeldState::Waiting], "it has no slot yet");
    world.tell(Event::Owner(OwnerEvent::Compute(true)));
    let running = told(&world);
    assert!(matches!(running[..], [HeldState::Running { done: 0, .. }]), "{running:?}");
    // It waits for a shard, and goes on with it.
    let second = blob(1).sha256;
    world.tell(Event::Progress(LeaseId(1), Progress { done: 2, of: 6 }));
    world.tell(Event::ShardNeeded(LeaseId(1), second));
    assert_eq!(told(&world), [HeldState::Awaiting { done: 2, of: 6, fetched: 107 }]);
    arrives(&mut world, 1);
    assert_eq!(told(&world), [HeldState::Running { done: 2, of: 6 }]);
    world.choose(Choice::Unit { which: 0, how: 4 });
    assert_eq!(told(&world), [HeldState::Sending { sent: 7 }]);
    world.choose(Choice::Upload { which: 0, how: 9 });
    assert_eq!(told(&world), [HeldState::Finished]);
    world.choose(Choice::Report { which: 0, how: 7 });
    assert_eq!(told(&world), []);
}

#[test]
fn shards_of_later_hops_come_one_at_a_time_in_their_order() {
    let mut world = with_a_lease();
    let only = |number: u8| BTreeSet::from([blob(number).sha256]);
    assert_eq!(world.fetches, only(0));
    for number in 0..2 {
        arrives(&mut world, number);
        assert_eq!(world.fetches, only(number + 1));
    }
    arrives(&mut world, 2);
    assert!(world.fetches.iter().all(|blob| !only(0).contains(blob)));
}

#[test]
fn a_provisional_result_waits_on_the_disk_until_the_server_has_the_one_before_it() {
    let mut world = World::new();
    let grant = |world: &mut World, lease: Lease| {
        let ask = *world.asks.last().expect("an open request");
        world.asks.remove(&ask);
        world.granted += 1;
        let mut answer = nothing();
        answer.leases = vec![lease];
        world.tell(Event::Work(ask, Ok(answer)));
        if !world.fetches.is_empty() {
            arrives(world, 0);
        }
    };
    let ends = |world: &mut World, id: u64, checkpoint: u8| {
        world.running.remove(&LeaseId(id));
        world.stored.insert(LeaseId(id));
        let continues_from = Some(blob(checkpoint));
        let facts = ResultFacts { has_checkpoint: true, continues_from };
        world.tell(Event::UnitEnded(LeaseId(id), facts));
    };
    grant(&mut world, lease(1, &[0]));
    ends(&mut world, 1, 10);
    assert_eq!(world.uploads, BTreeSet::from([LeaseId(1)]));
    // Granted while the first result is on its way.
    let mut second = lease(2, &[0]);
    let Unit::Train(hop) = &mut second.unit else { panic!("a hop") };
    hop.base = Base::Checkpoint { version: Version(1), blob: blob(10) };
    world.disk.blobs.insert(blob(10).sha256);
    grant(&mut world, second);
    if world.fetches.contains(&blob(10).sha256) {
        arrives(&mut world, 10);
    }
    ends(&mut world, 2, 11);
    assert_eq!(world.uploads, BTreeSet::from([LeaseId(1)]), "the server takes nothing of it yet");
    world.choose(Choice::Later(60_000_000));
    assert_eq!(world.uploads, BTreeSet::from([LeaseId(1)]));
    // The first result is acknowledged: the server is asked whether it takes the second, before bytes are sent.
    world.choose(Choice::Upload { which: 0, how: 9 });
    world.choose(Choice::Report { which: 0, how: 7 });
    assert_eq!(world.agent.acknowledged(), [LeaseId(1)]);
    assert_eq!(world.uploads, BTreeSet::from([LeaseId(2)]));
    assert_eq!(world.upload_starts, [UploadStart::FirstByte, UploadStart::Locate]);
    // It doesn't yet. When the first result has been taken in, it is asked again at once.
    world.choose(Choice::Upload { which: 0, how: 0 });
    assert_eq!(world.uploads, BTreeSet::new());
    let ask = *world.asks.last().expect("an open request");
    world.asks.remove(&ask);
    let mut answer = nothing();
    answer.reports = world.ended_reports(true);
    world.tell(Event::Work(ask, Ok(answer)));
    assert_eq!(world.uploads, BTreeSet::from([LeaseId(2)]));
    assert_eq!(world.upload_starts.last(), Some(&UploadStart::Locate));
}

/// An answer to a request for work that says nothing.
fn nothing() -> WorkAnswer {
    WorkAnswer {
        leases: Vec::new(),
        drop: Vec::new(),
        reports: Vec::new(),
        ask_again: Millis(0),
        send_inventory: false,
        stop: Vec::new(),
        fetch: Vec::new(),
        evict: Vec::new(),
        waiting: None,
        leave_within: None,
    }
}

#[test]
fn only_answers_that_change_nothing_are_followed_by_a_pause() {
    let mut world = World::new();
    // Does it ask again at once?
    let asks_after = |world: &mut World, fetch: Vec<BlobRef>, evict: Vec<Digest>| {
        let ask = *world.asks.last().expect("an open request");
        world.asks.remove(&ask);
        let answer = WorkAnswer {
            leases: Vec::new(),
            drop: Vec::new(),
            reports: Vec::new(),
            ask_again: Millis(0),
            send_inventory: false,
            stop: Vec::new(),
            fetch,
            evict,
            waiting: None,
            leave_within: None,
        };
        world.tell(Event::Work(ask, Ok(answer)));
        !world.asks.is_empty()
    };
    let (shard, other) = (blob(5), blob(4));
    assert!(asks_after(&mut world, vec![shard], Vec::new()), "a shard to fetch ahead");
    assert!(!asks_after(&mut world, vec![shard], Vec::new()), "it knew that");
    world.now += Micros::from_secs(10);
    world.choose(Choice::Later(1));
    world.disk.blobs.insert(other.sha256);
    assert!(asks_after(&mut world, Vec::new(), vec![other.sha256]), "a shard to delete");
    world.disk.blobs.remove(&other.sha256);
    assert!(!asks_after(&mut world, Vec::new(), vec![other.sha256]), "it is gone");
}

#[test]
fn a_lease_that_was_had_is_never_taken_again() {
    let mut world = with_a_lease();
    let grant = |world: &mut World, drop: Vec<LeaseId>| {
        world.now += Micros::from_secs(30);
        world.choose(Choice::Later(1));
        let ask = *world.asks.last().expect("an open request");
        world.asks.remove(&ask);
        let answer = WorkAnswer {
            leases: vec![lease(1, &[0])],
            drop: drop.clone(),
            reports: Vec::new(),
            ask_again: Millis(0),
            send_inventory: false,
            stop: Vec::new(),
            fetch: Vec::new(),
            evict: Vec::new(),
            waiting: None,
            leave_within: None,
        };
        world.tell_with_drops(Event::Work(ask, Ok(answer)), &drop);
    };
    grant(&mut world, Vec::new());
    assert_eq!(world.agent.leases().len(), 1, "it is held");
    grant(&mut world, vec![LeaseId(1)]);
    assert!(world.agent.leases().is_empty());
    assert_eq!(world.releases, [vec![LeaseId(1)]]);
}

#[test]
fn a_lease_that_is_given_back_counts_as_held_but_not_as_work() {
    let mut world = with_a_lease();
    world.choose(Choice::Blob { which: 0, fails: true });
    assert_eq!(told(&world), [HeldState::Waiting]);
    assert_eq!(world.agent.demand()[0].wanted, 4);
    assert!(world.agent.cooldown().is_some());
    world.choose(Choice::Release { fails: true });
    assert_eq!(told(&world), [HeldState::Waiting], "the server hasn't heard it");
    world.now = world.agent.next_deadline().expect("another attempt");
    world.choose(Choice::Later(1));
    while let Some(leases) = world.releases.pop() {
        let answer = ReleaseAnswer { released: leases.clone() };
        world.tell(Event::Released(leases, Ok(answer)));
    }
    world.now += Micros::from_secs(40);
    world.choose(Choice::Later(1));
    let state = world.agent.lease(LeaseId(1)).map(|lease| lease.state().name());
    assert!(state.is_none() || !world.releases.is_empty(), "{state:?}");
}
