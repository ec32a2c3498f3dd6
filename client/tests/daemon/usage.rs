//! Heartbeats say what running units take of the host, to servers that understand it.

use crate::{
    Daemon, config, hop_of,
    server::{Server, World},
    trainer::{SAMPLE, Trainer},
};
use sojourn_protocol::{
    api::Held,
    ids::LeaseId,
    quantity::Micros,
    time::Millis,
    unit::{Base, Lease},
    usage::UnitUsage,
};
use tempfile::TempDir;

/// The usage of a unit in a slot that heartbeats have said, in their order.
fn heard(world: &World, lease: LeaseId) -> Vec<Option<UnitUsage>> {
    let held = world.heartbeats.iter().flat_map(|beat| &beat.holding);
    let running =
        held.filter(|held: &&Held| held.lease == lease && held.state.progress().is_some());
    running.map(|held| held.usage).collect()
}

/// Gives the daemon a unit over the same shard, and lets it run until heartbeats have told of it; what the last one said.
async fn said_of(server: &Server, trainer: &Trainer, number: u64) -> Option<UnitUsage> {
    let id = LeaseId(number);
    server.change(|world| {
        let shard = world.put(b"rows");
        let lease = hop_of(number, Base::Initial { seed: 1 }, shard, 60_000);
        world.queue.push_back(Lease { heartbeat_every: Millis(10), ..lease });
    });
    // The first of them may have been on its way when its trainer said what it takes.
    server.until("heartbeats of a unit that runs", |world| heard(world, id).len() > 3).await;
    let last = *heard(&server.world(), id).last().unwrap();
    trainer.gate.add_permits(1);
    server.until("a report", |world| world.reports.contains_key(&id)).await;
    last
}

#[tokio::test]
async fn heartbeats_say_what_a_running_unit_takes_where_that_is_understood() {
    let (dir, server, trainer) =
        (TempDir::new().unwrap(), Server::start().await, Trainer::gated(0));
    server.change(|world| world.features = "one-day, unit-usage");
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    assert_eq!(SAMPLE.span, Micros::from_secs(2));
    let usage = UnitUsage {
        cores: 1.5,
        memory: 312,
        read_per_second: 5.0,
        written_per_second: 0.0,
        received: Some(4),
        loss: Some(0.25),
    };
    assert_eq!(said_of(&server, &trainer, 1).await, Some(usage));
    let cached = UnitUsage { received: Some(0), ..usage };
    assert_eq!(said_of(&server, &trainer, 2).await, Some(cached), "its shard was there");
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn a_server_that_does_not_know_of_it_is_told_nothing() {
    let (dir, server, trainer) =
        (TempDir::new().unwrap(), Server::start().await, Trainer::gated(0));
    server.change(|world| world.features = "one-day");
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    assert_eq!(said_of(&server, &trainer, 1).await, None);
    assert!(heard(&server.world(), LeaseId(1)).iter().all(Option::is_none));
    daemon.stop().await.unwrap();
}
