//! Ends and beginnings: of the daemon, asked for or not, and of the server.

use super::*;
use crate::server::{Fault, idle};
use sojourn_protocol::{
    api::HeldState,
    error::ErrorKind,
    report::{Failure, FailureKind, Outcome, Report},
};
use std::{collections::BTreeSet, fs, sync::atomic::Ordering};

pub(crate) fn released(world: &World) -> Vec<u64> {
    world.released.iter().map(|(lease, _)| lease.0).collect()
}

pub(crate) fn ends(world: &World) -> Vec<(u64, u32)> {
    let end = |report: &Report| match &report.outcome {
        Outcome::Trained(trained) => (report.lease.0, trained.end.batch),
        other => panic!("{other:?}"),
    };
    world.reports.values().map(end).collect()
}

#[tokio::test]
async fn a_stop_sends_what_hops_have_trained_and_gives_the_rest_back() {
    let (dir, server, trainer) =
        (TempDir::new().unwrap(), Server::start().await, Trainer::gated(0));
    server.change(|world| queue_hops(world, 1..=4));
    let daemon = Daemon::start(ClientConfig { slots: Some(2), ..config(&server, &dir) }, &trainer);
    trainer.until_started(2).await;
    daemon.stop().await.unwrap();
    assert_eq!(*trainer.started.borrow(), 2, "what waited for a slot doesn't begin");
    let world = server.world();
    let parts = ends(&world);
    assert_eq!(parts.iter().map(|(_, end)| *end).collect::<Vec<_>>(), [1, 1], "of two batches");
    for (lease, _) in &parts {
        let expected = trainer::checkpoint(*lease, u64::from(CHECKPOINT));
        assert_eq!(world.uploads[&LeaseId(*lease)], expected);
    }
    let all: BTreeSet<u64> =
        parts.iter().map(|(lease, _)| *lease).chain(released(&world)).collect();
    assert_eq!((released(&world).len(), all), (2, (1..=4).collect()));
    assert!(world.released[0].1.contains("stopping"));
    drop(world);
    assert_eq!(files(&dir, "scratch"), [""; 0]);
}

#[tokio::test]
async fn a_stop_gives_back_what_does_not_end_in_time() {
    let (dir, server, trainer) =
        (TempDir::new().unwrap(), Server::start().await, Trainer::gated(0));
    trainer.deaf.store(true, Ordering::SeqCst);
    server.change(|world| queue_hops(world, 1..=4));
    let timing = Timing { farewell: Duration::from_millis(50), ..config(&server, &dir).timing };
    let config = ClientConfig { slots: Some(2), timing, ..config(&server, &dir) };
    let daemon = Daemon::start(config, &trainer);
    trainer.until_started(2).await;
    daemon.stop().await.unwrap();
    assert_eq!(*trainer.stopped.borrow(), 2, "no unit runs on");
    let world = server.world();
    let all: BTreeSet<u64> = released(&world).into_iter().collect();
    assert_eq!((released(&world).len(), all), (4, (1..=4).collect()));
    assert!(world.held.is_empty());
    drop(world);
    assert_eq!(files(&dir, "scratch"), [""; 0]);
}

#[tokio::test]
async fn a_part_that_the_server_cannot_take_is_delivered_by_the_next_start() {
    let (dir, server, trainer) =
        (TempDir::new().unwrap(), Server::start().await, Trainer::gated(0));
    server.change(|world| queue_hops(world, 1..=1));
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    trainer.until_started(1).await;
    server.change(|world| world.away = true);
    daemon.stop().await.unwrap();
    assert_eq!(files(&dir, "outbox"), ["1.1.safetensors", "1.json"]);
    server.change(|world| {
        world.away = false;
        world.works.clear();
    });
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    server.until("the part", |world| world.reports.len() == 1).await;
    daemon.stop().await.unwrap();
    assert_eq!(ends(&server.world()), [(1, 1)]);
    assert_eq!(*trainer.started.borrow(), 1);
}

#[tokio::test]
async fn a_lease_whose_grant_is_not_heard_any_more_is_given_back() {
    let (dir, server, trainer) =
        (TempDir::new().unwrap(), Server::start().await, Trainer::gated(0));
    server.change(|world| {
        queue_hops(world, 1..=1);
        world.fail("POST /v1/work", Fault::Stall(0));
    });
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    server.until("the lease", |world| world.held.len() == 1).await;
    daemon.stop().await.unwrap();
    assert_eq!(released(&server.world()), [1]);
}

/// A daemon with one hop that has kept a part and goes on.
async fn with_a_part(server: &Arc<Server>, dir: &TempDir, trainer: &Arc<Trainer>) -> Daemon {
    trainer.keeps.store(true, Ordering::SeqCst);
    server.change(|world| queue_hops(world, 1..=1));
    let timing = Timing { farewell: Duration::from_millis(50), ..config(server, dir).timing };
    let daemon = Daemon::start(ClientConfig { timing, ..config(server, dir) }, trainer);
    trainer.until_started(1).await;
    assert_eq!(files(dir, "outbox"), ["1.1.safetensors", "1.json"]);
    daemon
}

#[tokio::test]
async fn the_part_that_a_killed_daemon_kept_is_delivered_by_the_next() {
    let (dir, server, trainer) =
        (TempDir::new().unwrap(), Server::start().await, Trainer::gated(0));
    with_a_part(&server, &dir, &trainer).await.kill().await;
    server.change(|world| world.end_at_once = true);
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    server.until("the part", |world| world.reports.len() == 1).await;
    daemon.stop().await.unwrap();
    assert_eq!(ends(&server.world()), [(1, 1)]);
    assert_eq!(*trainer.started.borrow(), 1, "the rest is another lease's");
    assert_eq!(files(&dir, "outbox"), [""; 0]);
}

#[tokio::test]
async fn a_trainer_that_does_not_stop_leaves_the_part_that_it_kept() {
    let (dir, server, trainer) =
        (TempDir::new().unwrap(), Server::start().await, Trainer::gated(0));
    trainer.deaf.store(true, Ordering::SeqCst);
    with_a_part(&server, &dir, &trainer).await.stop().await.unwrap();
    assert_eq!(*trainer.stopped.borrow(), 1, "no unit runs on");
    let world = server.world();
    assert_eq!((ends(&world), released(&world)), (vec![(1, 1)], vec![]));
}

#[tokio::test]
async fn a_trainer_that_dies_for_whatever_reason_leaves_the_part_that_it_kept() {
    for kind in [FailureKind::Died, FailureKind::OutOfMemory] {
        let (dir, server, trainer) =
            (TempDir::new().unwrap(), Server::start().await, Trainer::gated(0));
        let failure = Failure { kind, message: "killed".to_owned() };
        *trainer.instead.lock().unwrap() = Some(Box::new(|_| Ok(Outcome::Failed(failure))));
        let daemon = with_a_part(&server, &dir, &trainer).await;
        trainer.gate.add_permits(1);
        server.until("the part", |world| world.reports.len() == 1).await;
        daemon.stop().await.unwrap();
        let world = server.world();
        let Outcome::Trained(part) = &world.reports[&LeaseId(1)].outcome else {
            panic!("{kind:?}: {:?}", world.reports)
        };
        assert_eq!(part.end.batch, 1, "{kind:?}");
    }
}

#[tokio::test]
async fn a_lease_of_several_hops_ends_on_whichever_shard_it_is_at() {
    // Batches that are trained, and where that is.
    for (reached, shard, batch) in [(1, 0, 1), (2, 0, 2), (3, 5, 1), (5, 3, 1)] {
        let (dir, server, trainer) =
            (TempDir::new().unwrap(), Server::start().await, Trainer::gated(0));
        trainer.reached.store(reached, Ordering::SeqCst);
        server.change(|world| queue_several(world, 1));
        let daemon = Daemon::start(config(&server, &dir), &trainer);
        trainer.until_started(1).await;
        daemon.stop().await.unwrap();
        let world = server.world();
        let Outcome::Trained(part) = &world.reports[&LeaseId(1)].outcome else {
            panic!("{:?}", world.reports)
        };
        assert_eq!((part.end.shard, part.end.batch), (ShardId(shard), batch));
        assert_eq!(part.end.step, u64::from(reached));
    }
}

#[tokio::test]
async fn a_part_of_several_hops_outlives_a_kill_on_whichever_shard_it_is() {
    let (dir, server, trainer) =
        (TempDir::new().unwrap(), Server::start().await, Trainer::gated(0));
    trainer.keeps.store(true, Ordering::SeqCst);
    trainer.reached.store(3, Ordering::SeqCst);
    server.change(|world| queue_several(world, 1));
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    trainer.until_started(1).await;
    assert_eq!(files(&dir, "outbox"), ["1.3.safetensors", "1.json"]);
    daemon.kill().await;
    server.change(|world| world.end_at_once = true);
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    server.until("the part", |world| world.reports.len() == 1).await;
    daemon.stop().await.unwrap();
    assert_eq!(ends(&server.world()), [(1, 1)], "the first batch of the second shard");
    assert_eq!(*trainer.started.borrow(), 1, "the rest is another lease's");
}

#[tokio::test]
async fn a_lease_of_several_hops_makes_one_result() {
    let (dir, server, trainer) =
        (TempDir::new().unwrap(), Server::start().await, Trainer::gated(0));
    server.change(|world| queue_several(world, 1));
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    trainer.until_started(1).await;
    trainer.gate.add_permits(1);
    server.until("a report", |world| world.reports.len() == 1).await;
    let (outcome, uploads) = {
        let world = server.world();
        (world.reports[&LeaseId(1)].outcome.clone(), world.uploads.len())
    };
    let Outcome::Trained(trained) = outcome else { panic!("{outcome:?}") };
    let end = trained.end;
    assert_eq!((end.shard, end.batch, end.step), (ShardId(3), 2, 6));
    assert_eq!(uploads, 1, "one checkpoint for three hops");
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn a_whole_result_takes_the_place_of_its_part() {
    let (dir, server, trainer) =
        (TempDir::new().unwrap(), Server::start().await, Trainer::gated(0));
    let daemon = with_a_part(&server, &dir, &trainer).await;
    trainer.gate.add_permits(1);
    server.until("a report", |world| world.reports.len() == 1).await;
    assert_eq!(files(&dir, "outbox"), ["1.2.safetensors", "1.json"]);
    assert_eq!(ends(&server.world()), [(1, 2)]);
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn a_part_goes_with_its_lease() {
    let (dir, server, trainer) =
        (TempDir::new().unwrap(), Server::start().await, Trainer::gated(0));
    let daemon = with_a_part(&server, &dir, &trainer).await;
    server.change(|world| {
        world.drops.insert(LeaseId(1));
        queue_hops(world, 2..=2)
    });
    trainer.until_stopped(1).await;
    trainer.until_started(2).await;
    assert_eq!(files(&dir, "outbox"), ["2.1.safetensors", "2.json"]);
    daemon.kill().await;
}

#[tokio::test]
async fn after_a_kill_the_server_sends_the_lease_again() {
    let (dir, server, trainer) =
        (TempDir::new().unwrap(), Server::start().await, Trainer::gated(0));
    server.change(|world| queue_hops(world, 1..=1));
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    trainer.until_started(1).await;
    daemon.kill().await;
    // What a kill leaves: files half-written under every name that is written to.
    let folder = dir.path().join("client");
    fs::create_dir_all(folder.join("scratch/1")).unwrap();
    fs::write(folder.join("scratch/1/checkpoint.safetensors"), b"half").unwrap();
    fs::write(folder.join("outbox/1.2.safetensors"), b"half").unwrap();
    fs::write(folder.join("outbox/1.tmp"), b"{\"format\"").unwrap();
    let shard = files(&dir, "cache/data").remove(0);
    fs::write(folder.join("cache/parts").join(&shard), b"ha").unwrap();
    fs::write(folder.join("cache/data").join(&shard), b"the rows of one sharT").unwrap();

    trainer.gate.add_permits(1);
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    server.until("a report", |world| world.reports.len() == 1).await;
    daemon.stop().await.unwrap();
    assert_eq!(server.world().count("GET /v1/blobs"), 2, "the altered shard was fetched again");
    assert_eq!(server.world().enrolled, 1);
}

#[tokio::test]
async fn a_server_that_is_away_costs_nothing_that_is_held() {
    let (dir, server, trainer) =
        (TempDir::new().unwrap(), Server::start().await, Trainer::gated(0));
    server.change(|world| {
        world.end_at_once = true;
        queue_hops(world, 1..=2);
    });
    let timing = Timing { wait: Duration::from_millis(10), ..config(&server, &dir).timing };
    let config = || ClientConfig { timing, ..config(&server, &dir) };
    let daemon = Daemon::start(config(), &trainer);
    trainer.until_started(1).await;
    server.until("both leases", |world| world.held.len() == 2).await;
    server.until("the shard", |world| world.count("GET /v1/blobs") == 1).await;
    server.change(|world| world.away = true);
    trainer.gate.add_permits(1);
    // The next unit starts though the result of the first can't be sent.
    trainer.until_started(2).await;
    trainer.gate.add_permits(1);
    trainer.until_started(2).await;
    assert!(server.world().reports.is_empty());
    server.change(|world| {
        world.away = false;
        world.send_inventory = true;
        world.works.clear();
    });
    server.until("both reports", |world| world.reports.len() == 2).await;
    let inventory = |world: &World| world.works.iter().any(|work| work.inventory.is_some());
    server.until("the inventory", inventory).await;
    daemon.stop().await.unwrap();
    assert_eq!(*trainer.started.borrow(), 2);
    assert_eq!(files(&dir, "outbox"), [""; 0]);
}

/// Leaves one finished result on disk: trained while the server was away.
pub(crate) async fn with_a_result_on_disk(
    server: &Arc<Server>,
    dir: &TempDir,
    trainer: &Arc<Trainer>,
) {
    server.change(|world| queue_hops(world, 1..=1));
    let daemon = Daemon::start(config(server, dir), trainer);
    trainer.until_started(1).await;
    server.change(|world| world.away = true);
    trainer.gate.add_permits(1);
    let stopped = async {
        // The record is renamed into place last.
        while !dir.path().join("client/outbox/1.json").exists() {
            tokio::task::yield_now().await;
        }
        daemon.kill().await;
    };
    stopped.await;
    server.change(|world| {
        world.away = false;
        world.end_at_once = true;
        world.works.clear();
        world.requests.clear();
    });
}

#[tokio::test]
async fn a_result_on_disk_is_delivered_by_the_next_start() {
    let (dir, server, trainer) =
        (TempDir::new().unwrap(), Server::start().await, Trainer::gated(0));
    with_a_result_on_disk(&server, &dir, &trainer).await;
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    server.until("a report", |world| world.reports.len() == 1).await;
    daemon.stop().await.unwrap();
    let world = server.world();
    assert_eq!(world.uploads[&LeaseId(1)], trainer::checkpoint(1, u64::from(CHECKPOINT)));
    assert_eq!(*trainer.started.borrow(), 1, "not trained again");
    drop(world);
    assert_eq!(files(&dir, "outbox"), [""; 0]);
}

#[tokio::test]
async fn stored_results_are_delivered_before_work_is_asked_for() {
    let (dir, server, trainer) =
        (TempDir::new().unwrap(), Server::start().await, Trainer::gated(0));
    with_a_result_on_disk(&server, &dir, &trainer).await;
    // Told by its slots from the one that was killed, of which a request may still be under way.
    let daemon = Daemon::start(ClientConfig { slots: Some(2), ..config(&server, &dir) }, &trainer);
    let asked = |world: &World| world.works.iter().any(|work| idle(work) == 2);
    server.until("a request for work", asked).await;
    assert_eq!(server.world().reports.len(), 1);
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn an_undelivered_result_holds_up_no_work() {
    let (dir, server, trainer) =
        (TempDir::new().unwrap(), Server::start().await, Trainer::gated(0));
    with_a_result_on_disk(&server, &dir, &trainer).await;
    server.change(|world| {
        queue_hops(world, 2..=2);
        for _ in 0..1000 {
            world.fail("PUT /v1/leases/1/", Fault::refusal(ErrorKind::StorageFull));
        }
    });
    trainer.gate.add_permits(1);
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    server.until("the next report", |world| world.reports.contains_key(&LeaseId(2))).await;
    daemon.kill().await;
    assert!(!server.world().reports.contains_key(&LeaseId(1)));
}

#[tokio::test]
async fn a_damaged_result_on_disk_is_dropped_and_its_unit_done_again() {
    let (dir, server, trainer) =
        (TempDir::new().unwrap(), Server::start().await, Trainer::gated(0));
    with_a_result_on_disk(&server, &dir, &trainer).await;
    let path = dir.path().join("client/outbox/1.2.safetensors");
    let mut bytes = fs::read(&path).unwrap();
    bytes[500] ^= 1;
    fs::write(&path, bytes).unwrap();
    trainer.gate.add_permits(1);
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    server.until("a report", |world| world.reports.len() == 1).await;
    daemon.stop().await.unwrap();
    assert_eq!(*trainer.started.borrow(), 2);
    let world = server.world();
    assert_eq!(world.uploads[&LeaseId(1)], trainer::checkpoint(1, u64::from(CHECKPOINT)));
}

#[tokio::test]
async fn a_result_that_is_acknowledged_already_is_not_sent_again() {
    let (dir, server, trainer) = (TempDir::new().unwrap(), Server::start().await, Trainer::free());
    server.change(|world| queue_hops(world, 1..=1));
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    server.until("a report", |world| world.reports.len() == 1).await;
    daemon.kill().await;
    server.change(|world| world.requests.clear());
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    server.until("the report again", |world| world.count("POST /v1/results") == 1).await;
    daemon.stop().await.unwrap();
    assert_eq!(server.world().count("PUT /v1/leases"), 0);
    assert_eq!(files(&dir, "outbox"), ["1.2.safetensors", "1.json"], "kept until it has ended");
}

#[tokio::test]
async fn a_stop_keeps_results_that_the_server_cannot_take_now() {
    let (dir, server, trainer) =
        (TempDir::new().unwrap(), Server::start().await, Trainer::gated(0));
    server.change(|world| queue_hops(world, 1..=1));
    let timing = Timing { farewell: Duration::from_millis(50), ..config(&server, &dir).timing };
    let config = || ClientConfig { timing, ..config(&server, &dir) };
    let daemon = Daemon::start(config(), &trainer);
    trainer.until_started(1).await;
    server.change(|world| world.away = true);
    trainer.gate.add_permits(1);
    while !dir.path().join("client/outbox/1.json").exists() {
        tokio::task::yield_now().await;
    }
    daemon.stop().await.unwrap();
    assert_eq!(files(&dir, "outbox"), ["1.2.safetensors", "1.json"]);
    server.change(|world| {
        world.away = false;
        world.works.clear();
    });
    let daemon = Daemon::start(config(), &trainer);
    let finished = |world: &World| {
        world.reports.len() == 1
            || world
                .works
                .iter()
                .any(|work| work.holding.iter().any(|held| held.state == HeldState::Finished))
    };
    server.until("the result to be known or reported", finished).await;
    server.until("a report", |world| world.reports.len() == 1).await;
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn a_result_that_is_lost_before_it_is_sent_has_its_unit_given_back() {
    let (dir, server, trainer) = (TempDir::new().unwrap(), Server::start().await, Trainer::free());
    server.change(|world| {
        queue_hops(world, 1..=1);
        world.fail("PUT /v1/leases", Fault::refusal(ErrorKind::Unavailable));
        // While the host waits for this answer, it doesn't have the file open.
        world.fail("GET /v1/leases", Fault::Hang);
    });
    let timing = Timing { answer: Duration::from_secs(1), ..config(&server, &dir).timing };
    let daemon = Daemon::start(ClientConfig { timing, ..config(&server, &dir) }, &trainer);
    server.until("the question", |world| world.count("GET /v1/leases") == 1).await;
    fs::remove_file(dir.path().join("client/outbox/1.2.safetensors")).unwrap();
    server.until("a release", |world| !world.released.is_empty()).await;
    daemon.stop().await.unwrap();
    assert!(server.world().released[0].1.contains("lost"));
    assert_eq!(files(&dir, "outbox"), [""; 0]);
}

/// Has the first fetch of a long shard stall after 100,000 bytes, and waits until the server has heard
/// that the host has them.
async fn with_a_stalled_fetch(server: &Arc<Server>, daemon: impl FnOnce() -> Daemon) -> Daemon {
    server.change(|world| {
        let shard = world.put(&trainer::checkpoint(99, 600_000));
        world.queue.push_back(Lease { heartbeat_every: Millis(10), ..hop(1, shard) });
        world.fail("GET /v1/blobs", Fault::Stall(100_000));
    });
    let daemon = daemon();
    let told = |world: &World| {
        let mut held = world.heartbeats.iter().flat_map(|beat| &beat.holding);
        held.any(|held| held.state == HeldState::Fetching { fetched: 100_000 })
    };
    server.until("a heartbeat that tells of the fetch", told).await;
    daemon
}

/// From where on the shard was asked for, each time.
fn ranges(server: &Server) -> Vec<u64> {
    let world = server.world();
    let blobs = world.requests.iter().filter(|request| request.path.starts_with("/v1/blobs"));
    blobs.map(|request| request.range.unwrap_or(0)).collect()
}

#[tokio::test]
async fn a_fetch_that_is_dropped_is_gone_on_with_by_the_next_unit() {
    let (dir, server, trainer) = (TempDir::new().unwrap(), Server::start().await, Trainer::free());
    let start = || Daemon::start(config(&server, &dir), &trainer);
    let daemon = with_a_stalled_fetch(&server, start).await;
    server.change(|world| {
        world.held.clear();
        let shard = world.put(&trainer::checkpoint(99, 600_000));
        world.queue.push_back(hop(2, shard));
    });
    server.until("a report", |world| world.reports.contains_key(&LeaseId(2))).await;
    daemon.stop().await.unwrap();
    assert_eq!(ranges(&server), [0, 100_000]);
    assert_eq!(files(&dir, "cache/parts"), [""; 0]);
}

#[tokio::test]
async fn a_fetch_that_a_kill_cut_off_is_gone_on_with_and_checked_as_a_whole() {
    for (damaged, expected) in [(false, &[0, 100_000][..]), (true, &[0, 100_000, 0])] {
        let (dir, server) = (TempDir::new().unwrap(), Server::start().await);
        let trainer = Trainer::free();
        let start = || Daemon::start(config(&server, &dir), &trainer);
        with_a_stalled_fetch(&server, start).await.kill().await;
        let part = dir.path().join("client/cache/parts").join(&files(&dir, "cache/parts")[0]);
        let mut bytes = fs::read(&part).unwrap();
        assert_eq!(bytes.len(), 100_000);
        if damaged {
            bytes[50_000] ^= 1;
            fs::write(&part, bytes).unwrap();
        }
        let daemon = start();
        server.until("a report", |world| world.reports.len() == 1).await;
        daemon.stop().await.unwrap();
        assert_eq!(ranges(&server), expected);
        assert_eq!(files(&dir, "cache/parts"), [""; 0]);
    }
}
