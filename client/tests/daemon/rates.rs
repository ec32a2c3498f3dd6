//! The owner's limits of the line, with real connections: what they cost in time, and that nothing breaks.

use crate::{
    Daemon, config, hop_of,
    server::{Server, World},
    trainer::Trainer,
};
use sojourn_client::{ClientConfig, Rates, Timing};
use sojourn_protocol::{
    api::HeldState,
    ids::{LeaseId, Version},
    time::Millis,
    unit::{Base, Lease},
};
use std::{
    num::NonZeroU64,
    time::{Duration, Instant},
};
use tempfile::TempDir;

#[tokio::test]
async fn a_slow_line_takes_its_time_in_both_directions_and_breaks_nothing() {
    let (dir, server, trainer) = (TempDir::new().unwrap(), Server::start().await, Trainer::free());
    server.change(|world| {
        let shard = world.put(&crate::trainer::checkpoint(8, 300_000));
        let base = world.put(&crate::trainer::checkpoint(9, 300_000));
        let base = Base::Checkpoint { version: Version(1), blob: base };
        world.queue.push_back(hop_of(1, base, shard, 200_000));
    });
    let rates = Rates { download: NonZeroU64::new(600_000), upload: NonZeroU64::new(400_000) };
    // Each wait for the line is longer than a connection may stand still.
    let timing = Timing { answer: Duration::from_millis(40), ..config(&server, &dir).timing };
    let config = ClientConfig { rates, timing, ..config(&server, &dir) };
    let begun = Instant::now();
    let daemon = Daemon::start(config, &trainer);
    server.until("a report", |world| world.reports.contains_key(&LeaseId(1))).await;
    // One second down, half a second up, but for what the line may be overdrawn by.
    let seconds = begun.elapsed().as_secs_f64();
    assert!(seconds > 0.7, "{seconds}");
    daemon.stop().await.unwrap();
    let world = server.world();
    assert_eq!(world.uploads[&LeaseId(1)].len(), 200_000);
    assert_eq!(world.count("PUT /v1/leases"), 1, "the upload was taken for a stalled one");
}

#[tokio::test]
async fn a_slow_upload_is_told_as_it_goes_where_that_is_understood() {
    let is_told = |world: &World| {
        let mut held = world.heartbeats.iter().flat_map(|beat| &beat.holding);
        held.any(|held| matches!(held.state, HeldState::Sending { sent: 1.. }))
    };
    for features in ["one-day, upload-progress", "one-day"] {
        let (dir, server) = (TempDir::new().unwrap(), Server::start().await);
        server.change(|world| {
            world.features = features;
            let shard = world.put(b"rows");
            let lease = hop_of(1, Base::Initial { seed: 1 }, shard, 60_000);
            world.queue.push_back(Lease { heartbeat_every: Millis(10), ..lease });
        });
        let rates = Rates { download: None, upload: NonZeroU64::new(100_000) };
        let config = ClientConfig { rates, ..config(&server, &dir) };
        let daemon = Daemon::start(config, &Trainer::free());
        let reported = |world: &World| world.reports.contains_key(&LeaseId(1));
        if features.contains("upload-progress") {
            server.until("a heartbeat that tells of it", is_told).await;
            server.until("a report", reported).await;
        } else {
            server.until("a report", reported).await;
            assert!(!is_told(&server.world()), "a server was told what it doesn't understand");
        }
        daemon.stop().await.unwrap();
    }
}
