//! The next hops of a trial begin on the checkpoint that is still on its way.

use crate::{
    Daemon, config, hop_of,
    server::{Fault, Server, World},
    trainer::Trainer,
};
use sojourn_client::{ClientConfig, Timing};
use sojourn_protocol::{
    digest::BlobRef,
    ids::{LeaseId, Version},
    unit::Base,
};
use std::time::Duration;
use tempfile::TempDir;

/// The checkpoint that the host has said that lease 1 has made; `None` where it has said none.
fn made(world: &World) -> Option<BlobRef> {
    let asks = world.works.iter().flat_map(|ask| &ask.holding);
    let beats = world.heartbeats.iter().flat_map(|beat| &beat.holding);
    let mut held = asks.chain(beats).filter(|held| held.lease == LeaseId(1));
    held.find_map(|held| held.result)
}

#[tokio::test]
async fn a_hop_begins_with_what_the_host_has_made_before_that_is_at_the_server() {
    let (dir, server, trainer) = (TempDir::new().unwrap(), Server::start().await, Trainer::free());
    server.change(|world| {
        world.features = "made-checkpoints";
        let shard = world.put(b"rows");
        world.queue.push_back(hop_of(1, Base::Initial { seed: 1 }, shard, 6_000));
        // Its upload isn't heard of for a while.
        world.fail("PUT /v1/leases/1/", Fault::Hang);
    });
    let timing = Timing { answer: Duration::from_secs(3), ..config(&server, &dir).timing };
    let config = ClientConfig { timing, ..config(&server, &dir) };
    let daemon = Daemon::start(config, &trainer);
    server.until("a word on what was made", |world| made(world).is_some()).await;
    server.change(|world| {
        let base = Base::Checkpoint { version: Version(1), blob: made(world).unwrap() };
        let shard = world.put(b"other rows");
        world.queue.push_back(hop_of(2, base, shard, 6_000));
    });
    trainer.until_started(2).await;
    assert!(server.world().reports.is_empty(), "the first is still on its way");
    server.until("both reports", |world| world.reports.len() == 2).await;
    daemon.stop().await.unwrap();
    let world = server.world();
    let fetched = made(&world).unwrap().sha256.to_string();
    assert_eq!(world.count(&format!("GET /v1/blobs/{fetched}")), 0, "its base was fetched");
}

#[tokio::test]
async fn a_server_that_does_not_understand_it_is_not_told() {
    let (dir, server, trainer) = (TempDir::new().unwrap(), Server::start().await, Trainer::free());
    server.change(|world| {
        let shard = world.put(b"rows");
        world.queue.push_back(hop_of(1, Base::Initial { seed: 1 }, shard, 6_000));
        world.fail("PUT /v1/leases/1/", Fault::Hang);
    });
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    let finished = |world: &World| {
        let mut held = world.works.iter().flat_map(|ask| &ask.holding);
        held.any(|held| held.lease == LeaseId(1) && held.state.is_finished())
    };
    server.until("an ask after its end", finished).await;
    assert_eq!(made(&server.world()), None);
    daemon.stop().await.unwrap();
}
