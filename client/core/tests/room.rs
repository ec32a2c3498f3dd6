//! The owner's limit on the disk, against whatever a server says.

mod support;

use sojourn_client_core::{
    Action, Agent, AgentConfig, DeviceSlots, Event, Micros, ReleaseReason, ResultFacts,
    TrainerState, TransferView,
};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::{LeaseId, ShardId},
    manifest::Shard,
    spec::Architecture,
    unit::{Lease, NextHop, Unit},
};
use std::sync::Arc;

/// Nothing is here, and the owner lends so many bytes of disk, and of memory.
struct Disk(u64, Option<u64>);

impl TransferView for Disk {
    fn has(&self, _: &Digest) -> bool {
        false
    }
    fn fetched(&self, _: &Digest) -> u64 {
        0
    }
    fn sent(&self, _: LeaseId) -> u64 {
        0
    }
    fn has_room(&self, _: u64) -> bool {
        false
    }
    fn capacity(&self) -> u64 {
        self.0
    }
    fn memory(&self, device: &str) -> Option<u64> {
        assert_eq!(device, "cpu");
        self.1
    }
}

const MIB: u64 = 1 << 20;

fn blob(n: u64, bytes: u64) -> BlobRef {
    BlobRef { sha256: Digest::of(&n.to_le_bytes()), bytes }
}

/// A hop over a shard of its own.
fn lease(id: u64, shard_bytes: u64, upload_bytes: u64) -> Lease {
    support::lease(id, blob(id, shard_bytes), upload_bytes)
}

/// A host that is given leases, with a disk of limited capacity.
struct Host {
    agent: Agent,
    disk: Disk,
}

impl Host {
    fn new(slots: u32, capacity: u64) -> Self {
        let device = DeviceSlots { name: "cpu".into(), slots };
        let agent = Agent::new(Arc::new(AgentConfig::new(vec![device])), 7, Vec::new());
        Self { agent, disk: Disk(capacity, None) }
    }

    fn handle(&mut self, event: Event) -> Vec<Action> {
        self.agent.handle(Micros::from_secs(1), event, &self.disk)
    }

    fn given(&mut self, leases: Vec<Lease>) -> Vec<Action> {
        let actions = self.agent.start(Micros::from_secs(1), &self.disk);
        let asked = actions.into_iter().find_map(|action| match action {
            Action::Ask(ask) => Some(ask),
            _ => None,
        });
        let Some(asked) = asked else { panic!("no request for work") };
        self.handle(Event::Work(asked, Ok(support::gives(leases))))
    }
}

fn fetched(actions: &[Action]) -> Vec<BlobRef> {
    let fetches = actions.iter().filter_map(|action| match action {
        Action::Fetch(blob, ..) => Some(*blob),
        _ => None,
    });
    fetches.collect()
}

fn given_back(actions: &[Action]) -> Vec<(usize, String)> {
    let releases = actions.iter().filter_map(|action| match action {
        Action::Release(leases, reason @ ReleaseReason::Fault(_)) => {
            Some((leases.len(), reason.to_string()))
        }
        _ => None,
    });
    releases.collect()
}

#[test]
fn a_unit_that_takes_more_disk_than_is_lent_is_given_back_before_anything_is_fetched() {
    for (shard, upload) in [(1_000_000_000_000_000, 5), (5, 1_000_000_000_000_000), (51 * MIB, 5)] {
        let mut host = Host::new(1, 50 * MIB);
        let actions = host.given(vec![lease(1, shard, upload)]);
        assert_eq!(fetched(&actions), []);
        let [(1, reason)] = &given_back(&actions)[..] else { panic!("{actions:?}") };
        assert!(reason.contains("this machine's owner lends 52428800"), "{reason}");
    }
}

/// A hop of a model with a hidden layer of so many units, over rows of one number.
fn wide(units: u32) -> Lease {
    let mut lease = lease(1, 5, 5);
    let Unit::Train(hop) = &mut lease.unit else { panic!("no hop") };
    let mut context = hop.context.as_ref().clone();
    context.config.model = Architecture::mlp([units]);
    hop.context = context.into();
    lease
}

#[test]
fn a_unit_that_takes_more_memory_than_there_is_for_it_is_given_back_before_anything_is_fetched() {
    let given = |units: u32, memory: Option<u64>| {
        let mut host = Host::new(1, u64::MAX);
        host.disk.1 = memory;
        let actions = host.given(vec![wide(units)]);
        (fetched(&actions).len(), given_back(&actions))
    };
    // All copies that a trainer holds with plain SGD: 22 bytes x (3 x 1,000,000 + 1).
    assert_eq!(given(1_000_000, Some(66_000_022)), (1, vec![]));
    assert_eq!(given(1_000_000, None), (1, vec![]));
    let (0, reasons) = given(1_000_000, Some(66_000_021)) else { panic!("it was begun") };
    let [(1, reason)] = &reasons[..] else { panic!("{reasons:?}") };
    let expected = "at least 66000022 bytes of memory, and this machine has 66000021";
    assert!(reason.contains(expected), "{reason}");
    // A model that no machine could build: nothing overflows, and nothing is allocated for it.
    let (0, reasons) = given(u32::MAX, Some(u64::MAX)) else { panic!("it was begun") };
    let [(1, reason)] = &reasons[..] else { panic!("{reasons:?}") };
    assert!(reason.contains("can't be built"), "{reason}");
}

#[test]
fn units_that_were_not_asked_for_are_given_back() {
    let mut host = Host::new(2, u64::MAX);
    let actions = host.given((1..=20_000).map(|id| lease(id, 5, 5)).collect());
    assert_eq!(fetched(&actions).len(), 8);
    let [(19_992, reason)] = &given_back(&actions)[..] else { panic!("{actions:?}") };
    assert!(reason.contains("more units than it asked for"), "{reason}");
}

/// The unit's blobs are here, and it has run to its end.
fn ended(host: &mut Host, lease: &Lease) -> Vec<Action> {
    let blobs = lease.unit.blobs();
    blobs.iter().for_each(|blob| drop(host.handle(Event::BlobReady(blob.sha256))));
    let result = ResultFacts { has_checkpoint: true, continues_from: None };
    let mut actions = host.handle(Event::SlotFree(lease.id, TrainerState::Good));
    actions.extend(host.handle(Event::UnitEnded(lease.id, result)));
    actions
}

#[test]
fn a_unit_waits_until_there_is_room_for_it_beside_those_that_are_begun() {
    let mut host = Host::new(2, 50 * MIB);
    let leases = [lease(1, 30 * MIB, 5), lease(2, 30 * MIB, 5), lease(3, 10 * MIB, 5)];
    let actions = host.given(leases.to_vec());
    assert_eq!(fetched(&actions), [blob(1, 30 * MIB)], "none overtakes the second");
    assert_eq!(given_back(&actions), []);
    let held = host.agent.holding(&host.disk);
    assert_eq!(held.len(), 3, "the server is told of all");
    let actions = ended(&mut host, &leases[0]);
    assert_eq!(fetched(&actions), [blob(2, 30 * MIB), blob(3, 10 * MIB)]);
}

#[test]
fn units_over_the_same_shard_take_its_room_once() {
    let mut host = Host::new(2, 50 * MIB);
    let second = Lease { id: LeaseId(2), ..lease(1, 30 * MIB, 5) };
    let leases = vec![lease(1, 30 * MIB, 5), second];
    assert_eq!(fetched(&host.given(leases)), [blob(1, 30 * MIB)]);
    let actions = host.handle(Event::BlobReady(blob(1, 30 * MIB).sha256));
    let starts = actions.iter().filter(|action| matches!(action, Action::Start(..)));
    assert_eq!(starts.count(), 2, "{actions:?}");
}

#[test]
fn a_unit_ends_before_a_later_shard_that_there_is_no_room_for() {
    for (later, comes) in [(20 * MIB, true), (30 * MIB, false)] {
        let mut host = Host::new(1, 50 * MIB);
        let mut several = lease(1, 30 * MIB, 5);
        let Unit::Train(hop) = &mut several.unit else { panic!("no hop") };
        let shard = Shard { blob: blob(2, later), rows: 36 };
        hop.then = vec![NextHop { shard_id: ShardId(1), shard, seed: 2 }];
        host.given(vec![several]);
        let actions = host.handle(Event::BlobReady(blob(1, 30 * MIB).sha256));
        let coming = if comes { vec![shard.blob] } else { vec![] };
        assert_eq!(fetched(&actions), coming);
        let actions = host.handle(Event::ShardNeeded(LeaseId(1), shard.blob.sha256));
        let ends = actions.iter().any(|action| matches!(action, Action::StopAfterBatch(_)));
        assert_eq!(ends, !comes, "{actions:?}");
    }
}
