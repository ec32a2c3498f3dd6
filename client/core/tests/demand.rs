//! The idle slots that the server is told of, where they change between a request's beginning and its sending.

#[path = "support/all_here.rs"]
mod all_here;
mod support;

use all_here::Disk;
use sojourn_client_core::{
    Action, Agent, AgentConfig, AskId, DeviceSlots, Event, Micros, ResultFacts,
};
use sojourn_protocol::{
    api::WorkAnswer,
    digest::{BlobRef, Digest},
    ids::LeaseId,
};
use std::sync::Arc;
use support::{gives, lease};

/// Tells the agent something, and that each blob that it asks for is here. The request for work that it begins.
fn tell(agent: &mut Agent, event: Event) -> Option<AskId> {
    let (mut events, mut asked) = (vec![event], None);
    while let Some(event) = events.pop() {
        for action in agent.handle(Micros::from_secs(1), event, &Disk) {
            match action {
                Action::Ask(ask) => asked = Some(ask),
                Action::Fetch(blob, ..) => events.push(Event::BlobReady(blob.sha256)),
                _ => {}
            }
        }
    }
    asked
}

fn grants(id: u64) -> WorkAnswer {
    gives(vec![lease(id, BlobRef { sha256: Digest::of(b"shard"), bytes: 5 }, 5)])
}

#[test]
fn an_idle_slot_of_which_the_server_was_not_told_is_asked_for_again() {
    let device = DeviceSlots { name: "cpu".into(), slots: 1 };
    let mut agent = Agent::new(Arc::new(AgentConfig::new(vec![device])), 7, Vec::new());
    let actions = agent.start(Micros::from_secs(1), &Disk);
    let asks = actions.into_iter().filter_map(|action| match action {
        Action::Ask(ask) => Some(ask),
        _ => None,
    });
    let first = asks.last().expect("a request for work");
    let idle = |agent: &mut Agent, ask: AskId| {
        let request = agent.work_request(ask, None, &Disk);
        request.demand.iter().map(|demand| demand.idle).sum::<u32>()
    };
    assert_eq!(idle(&mut agent, first), 1);
    let second = tell(&mut agent, Event::Work(first, Ok(grants(1)))).expect("a request");
    assert_eq!(idle(&mut agent, second), 0);
    // Another request is begun for the idle slot. Before it is sent, the answer to the last one fills the slot.
    let ended = |id| Event::UnitEnded(LeaseId(id), ResultFacts::default());
    let third = tell(&mut agent, ended(1)).expect("a request for the idle slot");
    tell(&mut agent, Event::Work(second, Ok(grants(2))));
    assert_eq!(idle(&mut agent, third), 0);
    assert!(tell(&mut agent, ended(2)).is_some(), "the server knows of no idle slot");
}
