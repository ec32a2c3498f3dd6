//! Units that begin before the shards of their later legs are there.

use super::*;
use crate::{
    limits::{limited, said},
    restarts::{ends, released},
};
use sojourn_protocol::{
    api::{Held, HeldState},
    report::{Failure, FailureKind, Outcome},
};
use std::sync::atomic::Ordering;

/// A daemon in the middle of a unit of three legs: the first is trained, and the others' shards don't come.
struct Waiting {
    dir: TempDir,
    server: Arc<Server>,
    trainer: Arc<Trainer>,
    daemon: Daemon,
    shards: [BlobRef; 3],
}

impl Waiting {
    async fn start() -> Self {
        Self::start_with("").await
    }

    /// One whose owner has set limits.
    async fn start_with(limits: &str) -> Self {
        let (dir, server) = (TempDir::new().unwrap(), Server::start().await);
        let trainer = Trainer::gated(1);
        trainer.reached.store(2, Ordering::SeqCst);
        let shards = server.change(|world| {
            world.features = "awaiting-shards";
            let shards = queue_several(world, 1);
            world.queue[0].heartbeat_every = Millis(10);
            world.withheld.extend(shards[1..].iter().map(|shard| shard.sha256));
            shards
        });
        let daemon = Daemon::start(limited(&server, &dir, limits), &trainer);
        trainer.until_started(1).await;
        server.until("word that it waits", |world| waits(world).is_some()).await;
        // What it waits for is asked for at the same time.
        server.until("a request for it", |world| world.count("GET /v1/blobs") >= 2).await;
        Self { dir, server, trainer, daemon, shards }
    }

    /// Lets all come that is on its way.
    fn let_come(&self) {
        self.server.change(|world| world.withheld.clear());
    }
}

fn told(world: &World) -> impl Iterator<Item = &Held> {
    world.heartbeats.iter().flat_map(|beat| &beat.holding)
}

/// The state of a waiting unit that the server was told; `None` where it was told of none.
fn waits(world: &World) -> Option<HeldState> {
    told(world).map(|held| held.state).find(|state| matches!(state, HeldState::Awaiting { .. }))
}

fn asked_for(world: &World) -> Vec<String> {
    let blobs = world.requests.iter().filter_map(|asked| asked.path.strip_prefix("/v1/blobs/"));
    blobs.map(str::to_owned).collect()
}

fn names(shards: &[BlobRef]) -> Vec<String> {
    shards.iter().map(|shard| shard.sha256.to_string()).collect()
}

#[tokio::test]
async fn a_unit_begins_with_its_first_shard_and_gets_the_others_in_the_order_of_its_legs() {
    let unit = Waiting::start().await;
    {
        let world = unit.server.world();
        let first = unit.shards[0].bytes;
        assert_eq!(waits(&world), Some(HeldState::Awaiting { done: 1, of: 2, fetched: first }));
        assert_eq!(asked_for(&world), names(&unit.shards[..2]), "the line is the next leg's");
    }
    unit.let_come();
    unit.server.until("the report", |world| world.reports.len() == 1).await;
    unit.daemon.stop().await.unwrap();
    let world = unit.server.world();
    assert_eq!(asked_for(&world), names(&unit.shards));
    let Outcome::Trained(trained) = &world.reports[&LeaseId(1)].outcome else { panic!() };
    assert_eq!((trained.end.shard, trained.end.batch, trained.end.step), (ShardId(3), 2, 6));
    assert_eq!(world.uploads.len(), 1);
}

#[tokio::test]
async fn a_server_that_knows_of_no_waiting_is_told_that_the_unit_runs() {
    let (dir, server, trainer) = (TempDir::new().unwrap(), Server::start().await, Trainer::free());
    server.change(|world| {
        let shards = queue_several(world, 1);
        world.queue[0].heartbeat_every = Millis(10);
        world.withheld.insert(shards[2].sha256);
    });
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    trainer.until_started(1).await;
    let runs =
        |world: &World| told(world).any(|held| held.state == HeldState::Running { done: 1, of: 2 });
    server.until("word that it runs", runs).await;
    server.until("the last shard asked for", |world| world.count("GET /v1/blobs") == 3).await;
    server.change(|world| world.withheld.clear());
    server.until("the report", |world| world.reports.len() == 1).await;
    daemon.stop().await.unwrap();
    assert_eq!(waits(&server.world()), None);
}

#[tokio::test]
async fn a_stop_ends_a_unit_that_waits_with_what_it_has_trained() {
    let unit = Waiting::start().await;
    unit.daemon.stop().await.unwrap();
    let world = unit.server.world();
    assert_eq!((ends(&world), released(&world)), (vec![(1, 2)], vec![]));
}

#[tokio::test]
async fn the_servers_word_ends_a_unit_that_waits_with_what_it_has_trained() {
    let unit = Waiting::start().await;
    unit.server.change(|world| world.stop = vec![LeaseId(1)]);
    unit.server.until("the part", |world| world.reports.len() == 1).await;
    assert_eq!(ends(&unit.server.world()), [(1, 2)]);
    unit.daemon.stop().await.unwrap();
}

#[tokio::test]
async fn an_owners_pause_ends_a_unit_that_waits_when_it_is_long() {
    let unit = Waiting::start_with("[limits]\ngive_back_after = '0s'\n").await;
    let socket = unit.dir.path().join("client/control.sock");
    said(&socket, r#"{"pause":{}}"#).await;
    unit.server.until("the part", |world| world.reports.len() == 1).await;
    assert_eq!(ends(&unit.server.world()), [(1, 2)]);
    unit.daemon.stop().await.unwrap();
}

#[tokio::test]
async fn a_later_shard_that_can_not_be_had_leaves_what_is_trained() {
    let unit = Waiting::start().await;
    unit.server.change(|world| {
        world.blobs.remove(&unit.shards[1].sha256);
        world.withheld.clear();
    });
    unit.server.until("the part", |world| world.reports.len() == 1).await;
    // The machine doesn't rest: it could do this unit so far.
    unit.server.change(|world| queue_hops(world, 2..=2));
    unit.trainer.gate.add_permits(1);
    unit.server.until("the next report", |world| world.reports.len() == 2).await;
    unit.daemon.stop().await.unwrap();
    let world = unit.server.world();
    assert_eq!((ends(&world), released(&world)), (vec![(1, 2), (2, 2)], vec![]));
}

#[tokio::test]
async fn a_later_shard_that_can_not_be_had_before_the_unit_begins_gives_it_back() {
    let (dir, server, trainer) =
        (TempDir::new().unwrap(), Server::start().await, Trainer::gated(0));
    server.change(|world| queue_hops(world, 1..=1));
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    trainer.until_started(1).await;
    server.change(|world| {
        let shards = queue_several(world, 2);
        world.blobs.remove(&shards[2].sha256);
    });
    server.until("a release", |world| world.released.len() == 1).await;
    let (lease, reason) = server.world().released[0].clone();
    assert_eq!(lease, LeaseId(2));
    assert!(reason.contains("no such blob"), "{reason}");
    trainer.gate.add_permits(1);
    server.until("the report", |world| world.reports.len() == 1).await;
    daemon.stop().await.unwrap();
    assert_eq!(*trainer.started.borrow(), 1);
}

#[tokio::test]
async fn a_lease_that_is_dropped_while_its_unit_waits_is_over() {
    let unit = Waiting::start().await;
    unit.server.change(|world| world.held.clear());
    unit.trainer.until_stopped(1).await;
    unit.server.change(|world| queue_hops(world, 2..=2));
    unit.trainer.gate.add_permits(1);
    unit.server.until("the next report", |world| world.reports.len() == 1).await;
    unit.daemon.stop().await.unwrap();
    assert_eq!(ends(&unit.server.world()), [(2, 2)]);
    assert_eq!(files(&unit.dir, "scratch"), [""; 0]);
}

#[tokio::test]
async fn a_trainer_that_dies_while_its_unit_waits_is_reported() {
    let unit = Waiting::start().await;
    let failure = Failure { kind: FailureKind::Died, message: "killed".to_owned() };
    let outcome = Outcome::Failed(failure);
    let expected = outcome.clone();
    *unit.trainer.instead.lock().unwrap() = Some(Box::new(|_| Ok(outcome)));
    unit.let_come();
    unit.server.until("the report", |world| world.reports.len() == 1).await;
    assert_eq!(unit.server.world().reports[&LeaseId(1)].outcome, expected);
    unit.daemon.stop().await.unwrap();
}

#[tokio::test]
async fn a_unit_that_waited_when_the_daemon_was_killed_is_done_by_the_next() {
    let Waiting { dir, server, trainer, daemon, shards } = Waiting::start().await;
    daemon.kill().await;
    server.change(|world| world.withheld.clear());
    trainer.gate.add_permits(1);
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    server.until("the report", |world| world.reports.len() == 1).await;
    daemon.stop().await.unwrap();
    let world = server.world();
    let Outcome::Trained(trained) = &world.reports[&LeaseId(1)].outcome else { panic!() };
    assert_eq!((trained.end.shard, trained.end.step), (ShardId(3), 6));
    let first = shards[0].sha256.to_string();
    assert_eq!(asked_for(&world).iter().filter(|asked| **asked == first).count(), 1);
}

#[tokio::test]
async fn shards_that_are_cached_come_without_a_request() {
    let (dir, server, trainer) = (TempDir::new().unwrap(), Server::start().await, Trainer::free());
    server.change(|world| queue_several(world, 1));
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    server.until("a report", |world| world.reports.len() == 1).await;
    daemon.stop().await.unwrap();
    // Nobody has looked at their bytes since the start; and one is gone.
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    let gone = server.change(|world| {
        let shards = queue_several(world, 2);
        world.queue.clear();
        world.evict = vec![shards[1].sha256];
        shards[1]
    });
    server.until("it to be dropped", |world| world.evict.is_empty()).await;
    server.change(|world| queue_several(world, 2));
    server.until("the next report", |world| world.reports.len() == 2).await;
    daemon.stop().await.unwrap();
    let asked = asked_for(&server.world());
    assert_eq!((asked.len(), &asked[3]), (4, &gone.sha256.to_string()));
}

#[tokio::test]
async fn a_month_that_is_used_up_stops_what_still_has_to_come() {
    let unit = Waiting::start_with("[limits]\nmonthly = '1MB'\n").await;
    let socket = unit.dir.path().join("client/control.sock");
    said(&socket, r#"{"set_limits":["monthly=5B"]}"#).await;
    unit.server.until("the part", |world| world.reports.len() == 1).await;
    unit.daemon.stop().await.unwrap();
    assert_eq!(ends(&unit.server.world()), [(1, 2)]);
}

#[tokio::test]
async fn a_shard_that_is_fetched_ahead_gives_way_to_what_a_unit_waits_for() {
    let (dir, server, trainer) = (TempDir::new().unwrap(), Server::start().await, Trainer::free());
    let [ahead, other] = server.change(|world| {
        let shards = [world.put(&[1; 5000]), world.put(&[2; 5000])];
        world.withheld.extend(shards.map(|shard| shard.sha256));
        world.fetch = shards.to_vec();
        shards
    });
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    server.until("the shard ahead", |world| world.count("GET /v1/blobs") == 1).await;
    // A unit waits for another, and then for that very one.
    let shard = server.change(|world| {
        let shard = world.put(b"rows");
        world.withheld.insert(shard.sha256);
        world.queue.push_back(hop(1, shard));
        shard
    });
    server.until("the unit's", |world| world.count("GET /v1/blobs") == 2).await;
    server.change(|world| {
        world.queue.push_back(hop(2, ahead));
    });
    server.until("the unit's", |world| world.count("GET /v1/blobs") == 3).await;
    server.change(|world| {
        world.withheld.remove(&ahead.sha256);
        world.withheld.remove(&shard.sha256);
    });
    server.until("both reports", |world| world.reports.len() == 2).await;
    server.until("the other", |world| world.count("GET /v1/blobs") == 4).await;
    daemon.stop().await.unwrap();
    assert_eq!(asked_for(&server.world()), names(&[ahead, shard, ahead, other]));
}
