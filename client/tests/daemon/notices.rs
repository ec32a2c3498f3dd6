//! Machines that are taken away: what the cloud says, and what becomes of the work.

use super::*;
use crate::{
    metadata::{Kind, Metadata, Said},
    restarts::{ends, released},
    server::wanted,
};
use std::sync::atomic::Ordering;

/// The notice of each cloud that the machine goes at once, or in a long time.
fn notice(kind: Kind, soon: bool) -> Said {
    let text = match (kind, soon) {
        (Kind::Aws, true) => r#"{"action": "terminate", "time": "2017-09-18T08:22:00Z"}"#,
        (Kind::Aws, false) => r#"{"action": "terminate", "time": "2217-09-18T08:22:00Z"}"#,
        // It has no time of its own: half a minute.
        (Kind::Gcp, _) => "TRUE\n",
        (Kind::Azure, true) => {
            r#"{"EventType": "Preempt", "Resources": ["spot_3"], "NotBefore": ""}"#
        }
        (Kind::Azure, false) => {
            r#"{"EventType": "Preempt", "Resources": ["spot_3"], "NotBefore": "Thu, 18 Sep 2217 08:22:00 GMT"}"#
        }
    };
    Said { notice: Some(text.to_owned()), ..Said::default() }
}

fn noticing(server: &Server, dir: &TempDir, metadata: &Metadata) -> ClientConfig {
    let config = config(server, dir);
    let timing = Timing { poll: Duration::from_millis(5), ..config.timing };
    ClientConfig { metadata: Some(metadata.url.clone()), timing, ..config }
}

#[tokio::test]
async fn a_machine_that_goes_soon_sends_what_it_has_trained_and_ends_well() {
    for kind in [Kind::Aws, Kind::Azure] {
        let (dir, server, trainer) =
            (TempDir::new().unwrap(), Server::start().await, Trainer::gated(0));
        let metadata = Metadata::start(kind).await;
        server.change(|world| queue_hops(world, 1..=2));
        let daemon = Daemon::start(noticing(&server, &dir, &metadata), &trainer);
        trainer.until_started(1).await;
        server.until("both leases", |world| world.held.len() == 2).await;
        metadata.forget_tokens();
        metadata.say(notice(kind, true));
        daemon.ended().await.unwrap();
        let world = server.world();
        assert_eq!(ends(&world).iter().map(|(_, end)| *end).collect::<Vec<_>>(), [1], "{kind:?}");
        assert_eq!(released(&world).len(), 1, "{kind:?}");
    }
}

#[tokio::test]
async fn a_machine_that_has_time_finishes_what_runs_and_takes_nothing_new() {
    for kind in [Kind::Aws, Kind::Gcp, Kind::Azure] {
        let (dir, server, trainer) =
            (TempDir::new().unwrap(), Server::start().await, Trainer::gated(0));
        let metadata = Metadata::start(kind).await;
        server.change(|world| queue_hops(world, 1..=2));
        let daemon = Daemon::start(noticing(&server, &dir, &metadata), &trainer);
        trainer.until_started(1).await;
        metadata.say(notice(kind, false));
        server.until("the other to be given back", |world| world.released.len() == 1).await;
        trainer.gate.add_permits(2);
        daemon.ended().await.unwrap();
        let world = server.world();
        assert_eq!(ends(&world).iter().map(|(_, end)| *end).collect::<Vec<_>>(), [2], "{kind:?}");
        assert_eq!(*trainer.started.borrow(), 1, "{kind:?}");
    }
}

#[tokio::test]
async fn a_machine_that_the_server_gives_back_sends_what_it_has_trained_and_ends_well() {
    let (dir, server, trainer) =
        (TempDir::new().unwrap(), Server::start().await, Trainer::gated(0));
    server.change(|world| {
        queue_hops(world, 1..=2);
        world.queue.iter_mut().for_each(|lease| lease.heartbeat_every = Millis(10));
    });
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    trainer.until_started(1).await;
    server.until("both leases", |world| world.held.len() == 2).await;
    server.change(|world| world.leave_within = Some(Millis(0)));
    daemon.ended().await.unwrap();
    let world = server.world();
    assert_eq!(ends(&world).iter().map(|(_, end)| *end).collect::<Vec<_>>(), [1]);
    assert_eq!(released(&world).len(), 1);
}

#[tokio::test]
async fn a_client_that_may_not_wait_for_ever_ends_once_nothing_has_run_for_so_long() {
    let (dir, server, trainer) = (TempDir::new().unwrap(), Server::start().await, Trainer::free());
    server.change(|world| queue_hops(world, 1..=2));
    let config = config(&server, &dir);
    let timing = Timing { exit_when_idle: Some(Duration::from_millis(200)), ..config.timing };
    let daemon = Daemon::start(ClientConfig { timing, ..config }, &trainer);
    daemon.ended().await.unwrap();
    assert_eq!(server.world().reports.len(), 2, "it has done what there was");
}

#[tokio::test]
async fn such_a_client_ends_too_where_no_server_answers() {
    let (dir, server, trainer) = (TempDir::new().unwrap(), Server::start().await, Trainer::free());
    server.change(|world| queue_hops(world, 1..=1));
    let config = config(&server, &dir);
    let timing = Timing { exit_when_idle: Some(Duration::from_millis(300)), ..config.timing };
    let daemon = Daemon::start(ClientConfig { timing, ..config }, &trainer);
    server.until("a report", |world| world.reports.len() == 1).await;
    server.change(|world| world.away = true);
    daemon.ended().await.unwrap();
}

#[tokio::test]
async fn such_a_client_ends_too_with_a_result_that_no_server_takes() {
    let (dir, server, trainer) =
        (TempDir::new().unwrap(), Server::start().await, Trainer::gated(0));
    server.change(|world| {
        queue_hops(world, 1..=1);
        world.queue[0].heartbeat_every = Millis(10);
    });
    let config = config(&server, &dir);
    let timing = Timing { exit_when_idle: Some(Duration::from_millis(300)), ..config.timing };
    let daemon = Daemon::start(ClientConfig { timing, ..config }, &trainer);
    trainer.until_started(1).await;
    server.change(|world| world.away = true);
    trainer.gate.add_permits(1);
    daemon.ended().await.unwrap();
    assert!(server.world().reports.is_empty());
    assert_eq!(files(&dir, "outbox").len(), 2, "the next start sends it");
}

#[tokio::test]
async fn a_machine_that_will_go_some_time_is_told_when() {
    let (dir, server, trainer) =
        (TempDir::new().unwrap(), Server::start().await, Trainer::gated(0));
    let metadata = Metadata::start(Kind::Aws).await;
    server.change(|world| queue_hops(world, 1..=2));
    let daemon = Daemon::start(noticing(&server, &dir, &metadata), &trainer);
    trainer.until_started(1).await;
    metadata.say(Said { rebalance: true, ..Said::default() });
    server.until("the other to be given back", |world| world.released.len() == 1).await;
    assert!(server.world().reports.is_empty(), "what runs goes on");
    metadata.say(Said { rebalance: true, ..notice(Kind::Aws, true) });
    daemon.ended().await.unwrap();
    assert_eq!(ends(&server.world()).len(), 1);
}

#[tokio::test]
async fn a_machine_that_is_going_already_takes_no_work_and_ends_well() {
    let rebalance = Said { rebalance: true, ..Said::default() };
    let standing = [
        (Kind::Aws, rebalance),
        (Kind::Aws, notice(Kind::Aws, true)),
        (Kind::Gcp, notice(Kind::Gcp, true)),
        (Kind::Azure, notice(Kind::Azure, false)),
    ];
    for (kind, said) in standing {
        let (dir, server, trainer) =
            (TempDir::new().unwrap(), Server::start().await, Trainer::free());
        let metadata = Metadata::start(kind).await;
        server.change(|world| queue_hops(world, 1..=1));
        metadata.say(said);
        Daemon::start(noticing(&server, &dir, &metadata), &trainer).ended().await.unwrap();
        let world = server.world();
        assert!(world.works.iter().all(|work| wanted(work) == 0), "{kind:?}: {:?}", world.works);
        assert_eq!((world.queue.len(), world.enrolled), (1, 1), "{kind:?}");
    }
}

#[tokio::test]
async fn a_machine_that_is_going_already_still_delivers_what_it_has() {
    let (dir, server, trainer) =
        (TempDir::new().unwrap(), Server::start().await, Trainer::gated(0));
    crate::restarts::with_a_result_on_disk(&server, &dir, &trainer).await;
    let metadata = Metadata::start(Kind::Aws).await;
    metadata.say(Said { rebalance: true, ..Said::default() });
    Daemon::start(noticing(&server, &dir, &metadata), &trainer).ended().await.unwrap();
    assert_eq!(ends(&server.world()), [(1, 2)]);
    assert_eq!(files(&dir, "outbox"), [""; 0]);
}

#[tokio::test]
async fn a_machine_that_ends_for_its_hosts_maintenance_hands_its_work_over() {
    let (dir, server, trainer) =
        (TempDir::new().unwrap(), Server::start().await, Trainer::gated(0));
    let metadata = Metadata::start(Kind::Gcp).await;
    let event = |event| Said { maintenance: Some(event), ..Said::default() };
    // It is moved while it runs: nothing ends.
    metadata.say(event("MIGRATE_ON_HOST_MAINTENANCE"));
    server.change(|world| queue_hops(world, 1..=2));
    let daemon = Daemon::start(noticing(&server, &dir, &metadata), &trainer);
    trainer.until_started(1).await;
    metadata.say(event("TERMINATE_ON_HOST_MAINTENANCE"));
    server.until("the other to be given back", |world| world.released.len() == 1).await;
    trainer.gate.add_permits(1);
    daemon.ended().await.unwrap();
    assert_eq!(ends(&server.world()).len(), 1);
}

#[tokio::test]
async fn a_first_answer_that_takes_long_does_not_cost_the_notices() {
    let (dir, server, trainer) =
        (TempDir::new().unwrap(), Server::start().await, Trainer::gated(0));
    let metadata = Metadata::start(Kind::Azure).await;
    metadata.say(Said { slow: true, ..Said::default() });
    server.change(|world| queue_hops(world, 1..=1));
    let daemon = Daemon::start(noticing(&server, &dir, &metadata), &trainer);
    metadata.until_slow().await;
    // Work doesn't wait for it longer than for any answer.
    trainer.until_started(1).await;
    metadata.say(notice(Kind::Azure, true));
    daemon.ended().await.unwrap();
    assert_eq!(ends(&server.world()), [(1, 1)]);
}

#[tokio::test]
async fn strange_answers_of_the_metadata_service_are_ignored() {
    let (dir, server, trainer) =
        (TempDir::new().unwrap(), Server::start().await, Trainer::gated(0));
    let metadata = Metadata::start(Kind::Gcp).await;
    metadata.say(Said { broken: true, ..Said::default() });
    server.change(|world| queue_hops(world, 1..=1));
    let daemon = Daemon::start(noticing(&server, &dir, &metadata), &trainer);
    trainer.until_started(1).await;
    metadata.say(Said { notice: Some("PERHAPS".to_owned()), ..Said::default() });
    trainer.gate.add_permits(1);
    server.until("a report", |world| world.reports.len() == 1).await;
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn a_notice_in_mid_download_gives_the_unit_back() {
    let (dir, server, trainer) = (TempDir::new().unwrap(), Server::start().await, Trainer::free());
    let metadata = Metadata::start(Kind::Azure).await;
    server.change(|world| {
        queue_hops(world, 1..=1);
        world.fail("GET /v1/blobs", server::Fault::Stall(5));
    });
    let daemon = Daemon::start(noticing(&server, &dir, &metadata), &trainer);
    server.until("half the shard", |world| world.count("GET /v1/blobs") == 1).await;
    metadata.say(notice(Kind::Azure, false));
    daemon.ended().await.unwrap();
    assert_eq!(released(&server.world()), [1]);
}

#[tokio::test]
async fn a_notice_in_mid_upload_lets_the_result_arrive() {
    let (dir, server, trainer) = (TempDir::new().unwrap(), Server::start().await, Trainer::free());
    let metadata = Metadata::start(Kind::Azure).await;
    server.change(|world| {
        queue_hops(world, 1..=1);
        world.fail("PUT /v1/leases", server::Fault::Cut(300));
        world.fail("GET /v1/leases", server::Fault::Hang);
    });
    let config = noticing(&server, &dir, &metadata);
    let timing = Timing { answer: Duration::from_secs(1), ..config.timing };
    let daemon = Daemon::start(ClientConfig { timing, ..config }, &trainer);
    server.until("half the checkpoint", |world| world.count("GET /v1/leases") == 1).await;
    metadata.say(notice(Kind::Azure, false));
    daemon.ended().await.unwrap();
    let world = server.world();
    assert_eq!((ends(&world), released(&world)), (vec![(1, 2)], vec![]));
    assert_eq!(trainer.at_once.load(Ordering::SeqCst), 0);
}
