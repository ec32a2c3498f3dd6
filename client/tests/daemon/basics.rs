//! The work of a daemon while nothing goes wrong.

use super::*;
use crate::server::{idle, wanted};
use sojourn_protocol::{
    api::HeldState,
    digest::Digest,
    report::{Outcome, ReportEnd},
};

#[tokio::test]
async fn a_machine_enrols_once_works_and_leaves_nothing_behind() {
    let (dir, server, trainer) = (TempDir::new().unwrap(), Server::start().await, Trainer::free());
    server.change(|world| {
        world.end_at_once = true;
        queue_hops(world, 1..=5);
    });
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    server.until("five reports", |world| world.reports.len() == 5).await;
    daemon.stop().await.unwrap();
    {
        let world = server.world();
        assert_eq!(world.count("GET /v1/blobs"), 1, "one shard, fetched once");
        let inventory = world.works[0].inventory.as_ref().unwrap();
        assert_eq!(inventory.devices[0].numeric_class, Digest::of(b"fake"));
        for (lease, report) in &world.reports {
            let Outcome::Trained(trained) = &report.outcome else { panic!("{report:?}") };
            let sent = trainer::checkpoint(lease.0, u64::from(CHECKPOINT));
            assert_eq!(world.uploads[lease], sent);
            assert_eq!(trained.checkpoint.sha256, Digest::of(&sent));
        }
    }
    assert_eq!(files(&dir, "outbox"), [""; 0]);
    assert_eq!(files(&dir, "scratch"), [""; 0]);

    // No enrolment token is needed any more, and the shard is still there.
    server.change(|world| queue_hops(world, 6..=6));
    let again = ClientConfig { token: None, ..config(&server, &dir) };
    let daemon = Daemon::start(again, &trainer);
    server.until("a sixth report", |world| world.reports.len() == 6).await;
    daemon.stop().await.unwrap();
    let world = server.world();
    assert_eq!(world.enrolled, 1);
    assert_eq!(world.count("GET /v1/blobs"), 1);
    let inventory = world.works.iter().rev().find_map(|work| work.inventory.clone()).unwrap();
    assert_eq!(inventory.cached, [Digest::of(b"the rows of one shard")]);
}

#[tokio::test]
async fn every_slots_trainer_is_started_before_there_is_work() {
    let (dir, server, trainer) = (TempDir::new().unwrap(), Server::start().await, Trainer::free());
    let daemon = Daemon::start(ClientConfig { slots: Some(3), ..config(&server, &dir) }, &trainer);
    trainer.greeted.subscribe().wait_for(|greeted| *greeted == 3).await.unwrap();
    daemon.stop().await.unwrap();
    assert_eq!(*trainer.started.borrow(), 0);
}

#[tokio::test]
async fn slots_run_side_by_side_and_the_next_units_blobs_come_meanwhile() {
    let (dir, server, trainer) =
        (TempDir::new().unwrap(), Server::start().await, Trainer::gated(0));
    server.change(|world| {
        for lease in 1..=6u64 {
            let shard = world.put(format!("shard {lease}").as_bytes());
            world.queue.push_back(hop(lease, shard));
        }
    });
    let daemon = Daemon::start(ClientConfig { slots: Some(2), ..config(&server, &dir) }, &trainer);
    trainer.until_started(2).await;
    server.until("four downloads", |world| world.count("GET /v1/blobs") == 4).await;
    assert_eq!(server.world().queue.len(), 2, "one unit ahead for each slot, no more");
    trainer.gate.add_permits(6);
    server.until("six reports", |world| world.reports.len() == 6).await;
    assert_eq!(trainer.most_at_once.load(std::sync::atomic::Ordering::SeqCst), 2);
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn a_checkpoint_that_was_made_here_is_not_fetched_again() {
    let (dir, server, trainer) = (TempDir::new().unwrap(), Server::start().await, Trainer::free());
    let shard = server.change(|world| queue_hops(world, 1..=1));
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    server.until("a report", |world| world.reports.len() == 1).await;
    let bytes = trainer::checkpoint(1, u64::from(CHECKPOINT));
    let blob = BlobRef { sha256: Digest::of(&bytes), bytes: bytes.len() as u64 };
    server.change(|world| {
        let base = Base::Checkpoint { version: Version(1), blob };
        world.queue.push_back(hop_of(2, base, shard, CHECKPOINT));
        world.queue.push_back(evaluation(3, blob, &[shard]));
    });
    server.until("three reports", |world| world.reports.len() == 3).await;
    daemon.stop().await.unwrap();
    let world = server.world();
    assert_eq!(world.count("GET /v1/blobs"), 1, "the shard alone");
    assert!(matches!(world.reports[&LeaseId(3)].outcome, Outcome::Evaluated(_)));
    assert!(!world.uploads.contains_key(&LeaseId(3)));
}

#[tokio::test]
async fn a_slot_that_becomes_idle_is_told_at_once_though_a_request_is_held() {
    let (dir, server, trainer) =
        (TempDir::new().unwrap(), Server::start().await, Trainer::gated(0));
    server.change(|world| queue_hops(world, 1..=1));
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    trainer.until_started(1).await;
    let ahead = |world: &World| world.works.last().is_some_and(|w| (idle(w), wanted(w)) == (0, 1));
    server.until("a request for the unit ahead", ahead).await;
    trainer.gate.add_permits(1);
    let free = |world: &World| world.works.last().is_some_and(|w| (idle(w), wanted(w)) == (1, 2));
    server.until("a request for the idle slot", free).await;
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn reports_are_named_until_they_have_ended_and_results_kept_as_long() {
    let (dir, server, trainer) = (TempDir::new().unwrap(), Server::start().await, Trainer::free());
    server.change(|world| queue_hops(world, 1..=1));
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    let named = |world: &World| world.works.last().is_some_and(|w| w.reported == [LeaseId(1)]);
    // The next request names it; a new unit makes sure that there is one.
    server.until("a report", |world| world.reports.len() == 1).await;
    server.change(|world| queue_hops(world, 2..=2));
    server
        .until("a request that names the report", |world| {
            world.works.iter().any(|work| work.reported.contains(&LeaseId(1))) || named(world)
        })
        .await;
    assert!(files(&dir, "outbox").contains(&"1.2.safetensors".to_owned()));
    server.change(|world| {
        world.ends.insert(LeaseId(1), ReportEnd::Superseded);
        world.ends.insert(LeaseId(2), ReportEnd::Rejected { reason: "as told".into() });
        queue_hops(world, 3..=3);
    });
    let none_named = |world: &World| {
        world.reports.len() == 3
            && world.works.last().is_some_and(|work| {
                !work.reported.contains(&LeaseId(1)) && !work.reported.contains(&LeaseId(2))
            })
    };
    server.until("a request that names neither", none_named).await;
    daemon.stop().await.unwrap();
    let left = files(&dir, "outbox");
    assert!(!left.iter().any(|name| name.starts_with("1.") || name.starts_with("2.")), "{left:?}");
}

#[tokio::test]
async fn heartbeats_carry_progress_and_a_drop_stops_the_unit() {
    let (dir, server, trainer) =
        (TempDir::new().unwrap(), Server::start().await, Trainer::gated(0));
    server.change(|world| {
        let shard = world.put(b"shard");
        world.queue.push_back(Lease { heartbeat_every: Millis(10), ..hop(1, shard) });
    });
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    trainer.until_started(1).await;
    let running = |world: &World| {
        world.heartbeats.iter().any(|beat| {
            beat.holding.iter().any(|held| held.state == HeldState::Running { done: 1, of: 2 })
        })
    };
    server.until("a heartbeat with progress", running).await;
    server.change(|world| world.held.clear());
    trainer.until_stopped(1).await;
    // The slot is free for the next.
    trainer.gate.add_permits(1);
    server.change(|world| queue_hops(world, 2..=2));
    server.until("the next report", |world| world.reports.contains_key(&LeaseId(2))).await;
    daemon.stop().await.unwrap();
    assert!(!server.world().reports.contains_key(&LeaseId(1)));
    assert_eq!(files(&dir, "scratch"), [""; 0]);
}

#[tokio::test]
async fn a_lease_that_comes_back_from_the_dead_is_given_back() {
    let (dir, server, trainer) =
        (TempDir::new().unwrap(), Server::start().await, Trainer::gated(0));
    server.change(|world| {
        queue_hops(world, 1..=1);
        // Dropped, and yet counted on.
        world.drops.insert(LeaseId(1));
    });
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    let released = |world: &World| world.released.iter().any(|(lease, _)| *lease == LeaseId(1));
    server.until("a release", released).await;
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn the_cache_limit_holds_while_shards_come_and_go() {
    let (dir, server, trainer) = (TempDir::new().unwrap(), Server::start().await, Trainer::free());
    server.change(|world| {
        world.end_at_once = true;
        for lease in 1..=20u64 {
            let shard = world.put(&vec![u8::try_from(lease).unwrap(); 1500]);
            world.queue.push_back(hop(lease, shard));
        }
    });
    let daemon =
        Daemon::start(ClientConfig { cache_bytes: 6000, ..config(&server, &dir) }, &trainer);
    server.until("twenty reports", |world| world.reports.len() == 20).await;
    daemon.stop().await.unwrap();
    let folder = dir.path().join("client/cache");
    let size = |class: &str| -> u64 {
        let files = std::fs::read_dir(folder.join(class)).unwrap();
        files.map(|file| file.unwrap().metadata().unwrap().len()).sum()
    };
    let (data, checkpoints) = (size("data"), size("checkpoints"));
    assert!(data >= 1500 && data + checkpoints <= 6000, "{data} {checkpoints}");
}
