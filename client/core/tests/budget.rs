//! A month's bytes, against the shards that a server wants fetched ahead.

mod support;

use sojourn_client_core::{
    Action, Agent, AgentConfig, AskId, DeviceSlots, Event, Micros, OwnerEvent, Priority,
    TransferView,
};
use sojourn_protocol::{
    api::WorkAnswer,
    digest::{BlobRef, Digest},
    ids::LeaseId,
    unit::Lease,
};
use std::{collections::BTreeMap, sync::Arc};

/// Bytes that are here of each blob; all of one with `u64::MAX`.
#[derive(Default)]
struct Disk(BTreeMap<Digest, u64>);

impl TransferView for Disk {
    fn has(&self, blob: &Digest) -> bool {
        self.0.get(blob) == Some(&u64::MAX)
    }
    fn fetched(&self, blob: &Digest) -> u64 {
        self.0.get(blob).copied().unwrap_or_default()
    }
    fn sent(&self, _: LeaseId) -> u64 {
        0
    }
    fn has_room(&self, _: u64) -> bool {
        true
    }
    fn capacity(&self) -> u64 {
        u64::MAX
    }
}

fn blob(n: u64, bytes: u64) -> BlobRef {
    BlobRef { sha256: Digest::of(&n.to_le_bytes()), bytes }
}

/// A host with one slot, in a month of 1000 bytes.
struct Host {
    agent: Agent,
    disk: Disk,
    now: Micros,
}

impl Host {
    /// A host that has been told to fetch these blobs ahead, beside these leases.
    fn told(leases: Vec<Lease>, fetch: Vec<BlobRef>) -> (Self, Vec<Action>) {
        let device = DeviceSlots { name: "cpu".into(), slots: 1 };
        let agent = Agent::new(Arc::new(AgentConfig::new(vec![device])), 7, Vec::new());
        let mut host = Self { agent, disk: Disk::default(), now: Micros::from_secs(1) };
        let ask = asked(&host.agent.start(host.now, &host.disk));
        assert_eq!(host.used(0), []);
        let actions = host.answered(ask, leases, fetch);
        (host, actions)
    }

    fn answered(
        &mut self,
        ask: Option<AskId>,
        leases: Vec<Lease>,
        fetch: Vec<BlobRef>,
    ) -> Vec<Action> {
        let answer = WorkAnswer { fetch, ..support::gives(leases) };
        let Some(ask) = ask else { panic!("no request for work") };
        self.handle(Event::Work(ask, Ok(answer)))
    }

    fn used(&mut self, used: u64) -> Vec<Action> {
        let budget = OwnerEvent::Budget { period: 1, limit: Some(1000), used };
        self.handle(Event::Owner(budget))
    }

    fn handle(&mut self, event: Event) -> Vec<Action> {
        self.now += Micros::from_secs(10);
        self.agent.handle(self.now, event, &self.disk)
    }
}

fn asked(actions: &[Action]) -> Option<AskId> {
    actions.iter().find_map(|action| match action {
        Action::Ask(ask) => Some(*ask),
        _ => None,
    })
}

/// The blobs that are fetched though no unit needs them.
fn ahead(actions: &[Action]) -> Vec<BlobRef> {
    let fetches = actions.iter().filter_map(|action| match action {
        Action::Fetch(blob, _, Priority::Prefetch) => Some(*blob),
        _ => None,
    });
    fetches.collect()
}

#[test]
fn only_blobs_that_fit_into_the_month_are_fetched_ahead() {
    let (_, actions) = Host::told(Vec::new(), vec![blob(1, 2000)]);
    assert_eq!(ahead(&actions), []);
    let (_, actions) = Host::told(Vec::new(), vec![blob(1, 2000), blob(2, 1000)]);
    assert_eq!(ahead(&actions), [blob(2, 1000)], "a smaller one may fit");
    // A unit's shard has used 300 bytes, and its result has set 100 aside.
    for (bytes, fetches) in [(600, vec![blob(2, 600)]), (601, vec![])] {
        let leases = vec![support::lease(1, blob(1, 300), 100)];
        let (mut host, actions) = Host::told(leases, vec![blob(2, bytes)]);
        assert_eq!(ahead(&actions), [], "a unit waits for its shard");
        assert_eq!(ahead(&host.used(300)), [], "the shard is coming");
        let actions = host.handle(Event::BlobReady(blob(1, 300).sha256));
        assert_eq!(ahead(&actions), fetches);
    }
}

#[test]
fn a_blob_is_no_longer_fetched_ahead_once_the_months_bytes_are_used_up() {
    let (mut host, actions) = Host::told(Vec::new(), vec![blob(1, 900), blob(2, 50)]);
    assert_eq!(ahead(&actions), [blob(1, 900)]);
    host.disk.0.insert(blob(1, 900).sha256, 500);
    let cancelled = Action::CancelFetch(blob(1, 900).sha256);
    assert!(!host.used(600).contains(&cancelled), "the rest of it fits");
    let actions = host.used(1000);
    assert!(actions.contains(&cancelled), "{actions:?}");
    assert_eq!(ahead(&actions), []);
    assert_eq!(ahead(&host.handle(Event::Tick)), []);
}

#[test]
fn a_unit_takes_the_bytes_of_a_blob_that_is_fetched_ahead() {
    let (mut host, actions) = Host::told(Vec::new(), vec![blob(1, 900)]);
    assert_eq!(ahead(&actions), [blob(1, 900)]);
    let shard = blob(2, 100);
    host.disk.0.insert(shard.sha256, u64::MAX);
    // Its shard is here: it waits for nothing, and sends 101 bytes.
    let actions = host.answered(asked(&actions), vec![support::lease(1, shard, 101)], Vec::new());
    assert!(actions.contains(&Action::CancelFetch(blob(1, 900).sha256)), "{actions:?}");
}
