//! A disk with less room left than its owner keeps free.

mod support;

use sojourn_client_core::{
    Action, Agent, AgentConfig, DeviceSlots, Event, Micros, OwnerEvent, Priority, ReleaseReason,
    TransferView,
};
use sojourn_protocol::{
    api::WorkAnswer,
    digest::{BlobRef, Digest},
    ids::LeaseId,
    inventory::Demand,
};
use std::{collections::BTreeSet, sync::Arc};

/// These blobs are here.
#[derive(Default)]
struct Disk(BTreeSet<Digest>);

impl TransferView for Disk {
    fn has(&self, blob: &Digest) -> bool {
        self.0.contains(blob)
    }
    fn fetched(&self, _: &Digest) -> u64 {
        0
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

fn blob(n: u64) -> BlobRef {
    BlobRef { sha256: Digest::of(&n.to_le_bytes()), bytes: 10 }
}

fn asked(actions: &[Action]) -> Option<sojourn_client_core::AskId> {
    actions.iter().find_map(|action| match action {
        Action::Ask(ask) => Some(*ask),
        _ => None,
    })
}

fn fetched(actions: &[Action]) -> Vec<(BlobRef, Priority)> {
    let fetches = actions.iter().filter_map(|action| match action {
        Action::Fetch(blob, _, priority) => Some((*blob, *priority)),
        _ => None,
    });
    fetches.collect()
}

#[test]
fn nothing_is_fetched_ahead_onto_a_low_disk() {
    let device = DeviceSlots { name: "cpu".into(), slots: 1 };
    let mut agent = Agent::new(Arc::new(AgentConfig::new(vec![device])), 7, Vec::new());
    let disk = Disk::default();
    let mut open = asked(&agent.start(Micros::from_secs(1), &disk)).unwrap();
    let mut now = 1;
    for (low, fetches) in [(true, vec![]), (false, vec![(blob(9), Priority::Prefetch)])] {
        now += 100;
        let at = Micros::from_secs(now);
        let said = agent.handle(at, Event::Owner(OwnerEvent::DiskLow(low)), &disk);
        // The request that was open is answered when the newer one comes.
        let newer = asked(&said).expect("it says so to the server");
        let _none = agent.handle(at, Event::Work(open, Ok(support::gives(Vec::new()))), &disk);
        let answer = WorkAnswer { fetch: vec![blob(9)], ..support::gives(Vec::new()) };
        let actions = agent.handle(at, Event::Work(newer, Ok(answer)), &disk);
        assert_eq!(fetched(&actions), fetches, "low: {low}");
        // What a low disk was told of isn't fetched later either, unless the server says it again.
        let again = agent.handle(Micros::from_secs(now + 50), Event::Tick, &disk);
        assert_eq!(fetched(&again), []);
        open = asked(&actions).or_else(|| asked(&again)).expect("it stays in contact");
    }
}

#[test]
fn what_runs_goes_on_and_no_other_unit_is_begun_until_there_is_room() {
    let device = DeviceSlots { name: "cpu".into(), slots: 1 };
    let mut agent = Agent::new(Arc::new(AgentConfig::new(vec![device])), 7, Vec::new());
    let mut disk = Disk::default();
    let mut now = 1;
    let mut handle = |agent: &mut Agent, disk: &Disk, event| {
        now += 1;
        agent.handle(Micros::from_secs(now), event, disk)
    };
    let ask = asked(&agent.start(Micros::from_secs(1), &disk)).unwrap();
    let leases = (1..=2).map(|n| support::lease(n, blob(n), 5)).collect();
    let given = Event::Work(ask, Ok(support::gives(leases)));
    let older = asked(&handle(&mut agent, &disk, given)).expect("a request is held open");
    disk.0.insert(blob(1).sha256);
    let begun = handle(&mut agent, &disk, Event::BlobReady(blob(1).sha256));
    assert!(begun.iter().any(|action| matches!(action, Action::Start(..))), "{begun:?}");

    let actions = handle(&mut agent, &disk, Event::Owner(OwnerEvent::DiskLow(true)));
    let back = Action::Release(vec![LeaseId(2)], ReleaseReason::DiskReserve);
    assert!(actions.contains(&back), "{actions:?}");
    assert!(actions.contains(&Action::CancelFetch(blob(2).sha256)), "{actions:?}");
    let untouched = |action: &Action| {
        matches!(action, Action::Kill(_) | Action::StopAfterBatch(_) | Action::StopNow(_))
    };
    assert!(!actions.iter().any(untouched), "{actions:?}");
    // It says so to the server, and asks for nothing.
    let ask = asked(&actions).unwrap();
    let none = Demand { device: "cpu".into(), slots: 0, idle: 0, wanted: 0 };
    assert_eq!(agent.work_request(ask, None, &disk).demand, std::slice::from_ref(&none));
    let nothing = |ask| Event::Work(ask, Ok(support::gives(Vec::new())));
    // A server answers the older request when the newer one comes.
    let _none = handle(&mut agent, &disk, nothing(older));
    let actions = handle(&mut agent, &disk, nothing(ask));
    let again = asked(&actions);
    let again = again.or_else(|| asked(&agent.handle(Micros::from_secs(100), Event::Tick, &disk)));
    let again = again.expect("it stays in contact");
    assert_eq!(agent.work_request(again, None, &disk).demand, [none]);

    let later = Micros::from_secs(500);
    let actions = agent.handle(later, Event::Owner(OwnerEvent::DiskLow(false)), &disk);
    let ask = asked(&actions).expect("it asks at once");
    let [demand] = &agent.work_request(ask, None, &disk).demand[..] else { panic!("one device") };
    assert_eq!((demand.slots, demand.idle, demand.wanted), (1, 0, 1));
}
