//! When the next request for work follows an answer: at once where that changed something, after a pause where not.

#[path = "support/all_here.rs"]
mod all_here;
mod support;

use all_here::Disk;
use sojourn_client_core::{
    Action, Agent, AgentConfig, AskId, DeviceSlots, Event, Micros, ResultFacts,
};
use sojourn_protocol::{
    api::{ReportAnswer, WorkAnswer},
    digest::{BlobRef, Digest},
    ids::LeaseId,
    report::{ReportEnd, ReportState},
};
use std::sync::Arc;
use support::{gives, lease};

/// A host with one slot, all at one instant.
struct Host {
    agent: Agent,
    open: Option<AskId>,
}

impl Host {
    fn new() -> Self {
        let device = DeviceSlots { name: "cpu".into(), slots: 1 };
        let agent = Agent::new(Arc::new(AgentConfig::new(vec![device])), 7, Vec::new());
        let mut host = Self { agent, open: None };
        let actions = host.agent.start(Micros::from_secs(1), &Disk);
        host.note(actions);
        host
    }

    fn handle(&mut self, event: Event) {
        let actions = self.agent.handle(Micros::from_secs(1), event, &Disk);
        self.note(actions);
    }

    fn note(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Ask(ask) => self.open = Some(ask),
                Action::Fetch(blob, ..) => self.handle(Event::BlobReady(blob.sha256)),
                _ => {}
            }
        }
    }

    /// Does another request follow this answer at once?
    fn asks_after(&mut self, answer: WorkAnswer) -> bool {
        let Some(ask) = self.open.take() else { panic!("no request for work") };
        let _body = self.agent.work_request(ask, None, &Disk);
        self.handle(Event::Work(ask, Ok(answer)));
        self.open.is_some()
    }
}

fn granted(ids: [u64; 2]) -> WorkAnswer {
    let shard = BlobRef { sha256: Digest::of(b"shard"), bytes: 5 };
    gives(ids.map(|id| lease(id, shard, 5)).to_vec())
}

#[test]
fn an_answer_that_changes_nothing_is_followed_by_a_pause() {
    assert!(!Host::new().asks_after(gives(Vec::new())));
}

#[test]
fn a_server_that_wants_the_inventory_gets_it_at_once() {
    let wants = || WorkAnswer { send_inventory: true, ..gives(Vec::new()) };
    assert!(Host::new().asks_after(wants()));
}

#[test]
fn a_hop_that_waits_is_told_to_stop_once() {
    let mut host = Host::new();
    assert!(host.asks_after(granted([1, 2])), "the units are new");
    // The first is in the slot, the second waits for it.
    let stops = || WorkAnswer { stop: vec![LeaseId(2)], ..gives(Vec::new()) };
    assert!(host.asks_after(stops()));
    assert!(!host.asks_after(stops()), "that was known");
}

#[test]
fn the_end_of_a_report_is_news() {
    let mut host = Host::new();
    assert!(host.asks_after(granted([1, 2])));
    let lease = LeaseId(1);
    host.handle(Event::UnitEnded(lease, ResultFacts::default()));
    let acknowledged = ReportAnswer { lease, state: ReportState::Acknowledged };
    host.handle(Event::Report(lease, Ok(acknowledged)));
    assert_eq!(host.agent.acknowledged(), [lease]);
    let ended = ReportAnswer { lease, state: ReportState::Ended(ReportEnd::Superseded) };
    let says = || WorkAnswer { reports: vec![ended.clone()], ..gives(Vec::new()) };
    assert!(host.asks_after(says()));
    assert!(!host.asks_after(says()), "that was known");
}
