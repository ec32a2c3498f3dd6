//! Faults on the wire, on the disk, and in the trainer.

use super::*;
use crate::{http::Answer, server::Fault};
use sojourn_client::RunnerError;
use sojourn_protocol::{
    digest::Digest,
    error::ErrorKind,
    report::{Failure, FailureKind, Outcome},
};
use std::sync::atomic::Ordering;

/// Long enough for several chunks.
fn long_bytes() -> Vec<u8> {
    trainer::checkpoint(99, 600_000)
}

fn garbage(status: u16) -> Fault {
    Fault::Answer(Answer { status, body: b"<html>who?</html>".into(), ..Answer::default() })
}

#[tokio::test]
async fn downloads_go_on_where_they_were_cut() {
    let (dir, server, trainer) = (TempDir::new().unwrap(), Server::start().await, Trainer::free());
    let cuts = [0, 1, 4096, 300_000];
    server.change(|world| {
        let shard = world.put(&long_bytes());
        world.queue.push_back(hop(1, shard));
        for cut in cuts {
            world.fail("GET /v1/blobs", Fault::Cut(cut));
        }
        world.fail("GET /v1/blobs", Fault::Stall(100_000));
    });
    let timing = Timing { answer: Duration::from_secs(1), ..config(&server, &dir).timing };
    let daemon = Daemon::start(ClientConfig { timing, ..config(&server, &dir) }, &trainer);
    server.until("a report", |world| world.reports.len() == 1).await;
    daemon.stop().await.unwrap();
    let world = server.world();
    let blobs = world.requests.iter().filter(|request| request.path.starts_with("/v1/blobs"));
    let from: Vec<u64> = blobs.map(|request| request.range.unwrap_or(0)).collect();
    assert_eq!(from.len(), cuts.len() + 2);
    assert!(from.is_sorted() && from[4] >= 4096, "{from:?}");
    assert_eq!(files(&dir, "cache/parts"), [""; 0]);
}

#[tokio::test]
async fn an_altered_blob_is_fetched_again_and_never_reaches_a_trainer() {
    let (dir, server, trainer) = (TempDir::new().unwrap(), Server::start().await, Trainer::free());
    server.change(|world| {
        queue_hops(world, 1..=1);
        world.fail("GET /v1/blobs", Fault::Alter);
        world.fail("GET /v1/blobs", Fault::Cut(7));
        world.fail("GET /v1/blobs", Fault::Alter);
    });
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    server.until("a report", |world| world.reports.len() == 1).await;
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn a_blob_that_is_never_right_has_its_unit_given_back() {
    for bytes in [b"other rows".as_slice(), b"these rows and more"] {
        let (dir, server) = (TempDir::new().unwrap(), Server::start().await);
        let trainer = Trainer::free();
        server.change(|world| {
            let shard = world.put(b"these rows");
            world.blobs.insert(shard.sha256, bytes.to_owned());
            world.queue.push_back(hop(1, shard));
        });
        let daemon = Daemon::start(config(&server, &dir), &trainer);
        server.until("a release", |world| !world.released.is_empty()).await;
        daemon.stop().await.unwrap();
        let reason = server.world().released[0].1.clone();
        assert!(reason.contains("arrives altered"), "{reason}");
        assert_eq!(*trainer.started.borrow(), 0);
        assert_eq!(files(&dir, "cache"), [""; 0]);
    }
}

#[tokio::test]
async fn every_call_outlives_every_passing_fault() {
    let calls =
        ["POST /v1/enrol", "POST /v1/work", "GET /v1/blobs", "PUT /v1/leases", "POST /v1/results"];
    let (dir, server, trainer) = (TempDir::new().unwrap(), Server::start().await, Trainer::free());
    server.change(|world| {
        queue_hops(world, 1..=1);
        for call in calls {
            world.fail(call, Fault::refusal(ErrorKind::Unavailable));
            world.fail(call, Fault::refusal(ErrorKind::Internal));
            world.fail(call, Fault::refusal(ErrorKind::StorageFull));
            world.fail(call, garbage(200));
            world.fail(call, garbage(401));
            world.fail(call, garbage(404));
            world.fail(call, garbage(502));
            world.fail(call, Fault::Cut(3));
            world.fail(call, Fault::Hang);
            world.fail(call, Fault::Lost);
        }
    });
    let timing = Timing {
        wait: Duration::from_secs(1),
        answer: Duration::from_secs(1),
        ..config(&server, &dir).timing
    };
    let daemon = Daemon::start(ClientConfig { timing, ..config(&server, &dir) }, &trainer);
    // Enrolling again after a lost answer makes another host; the last one works.
    server.until("a report", |world| world.reports.len() == 1).await;
    server.until("all faults to be met", |world| world.faults_left() == 0).await;
    let named = |world: &World| world.works.iter().any(|work| work.reported == [LeaseId(1)]);
    server.until("the report's answer", named).await;
    daemon.stop().await.unwrap();
    assert_eq!(*trainer.started.borrow(), 1, "trained once");
}

#[tokio::test]
async fn uploads_go_on_where_they_were_cut() {
    let (dir, server, trainer) = (TempDir::new().unwrap(), Server::start().await, Trainer::free());
    server.change(|world| {
        let shard = world.put(b"rows");
        world.queue.push_back(hop_of(1, Base::Initial { seed: 1 }, shard, 900_000));
        world.fail("PUT /v1/leases", Fault::Cut(100_000));
        world.fail("PUT /v1/leases", Fault::Cut(500_001));
        world.fail("PUT /v1/leases", Fault::Lost);
    });
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    server.until("a report", |world| world.reports.len() == 1).await;
    daemon.stop().await.unwrap();
    let world = server.world();
    let puts = world.requests.iter().filter(|request| request.method == "PUT");
    let offsets: Vec<&str> = puts.map(|request| request.query.as_str()).collect();
    assert_eq!(offsets, ["offset=0", "offset=100000", "offset=600001"]);
    assert_eq!(world.uploads[&LeaseId(1)], trainer::checkpoint(1, 900_000));
}

#[tokio::test]
async fn bytes_that_suffer_on_the_way_are_sent_again() {
    let (dir, server, trainer) = (TempDir::new().unwrap(), Server::start().await, Trainer::free());
    server.change(|world| {
        queue_hops(world, 1..=1);
        world.fail("PUT /v1/leases", Fault::refusal(ErrorKind::DigestMismatch));
        world.fail("PUT /v1/leases", Fault::refusal(ErrorKind::WrongOffset));
        world.fail("POST /v1/results", Fault::refusal(ErrorKind::Conflict));
    });
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    server.until("a report", |world| world.reports.len() == 1).await;
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn a_result_that_nobody_wants_is_dropped_and_work_goes_on() {
    for kind in [ErrorKind::Forbidden, ErrorKind::NotFound, ErrorKind::TooLarge, ErrorKind::Invalid]
    {
        for call in ["PUT /v1/leases", "POST /v1/results"] {
            let dir = TempDir::new().unwrap();
            let (server, trainer) = (Server::start().await, Trainer::free());
            server.change(|world| {
                world.end_at_once = true;
                queue_hops(world, 1..=2);
                world.fail(call, Fault::refusal(kind));
            });
            let daemon = Daemon::start(config(&server, &dir), &trainer);
            server.until("the other report", |world| world.reports.len() == 1).await;
            server.until("a release", |world| world.released.len() == 1).await;
            daemon.stop().await.unwrap();
            assert_eq!(files(&dir, "outbox"), [""; 0], "{kind:?} {call}");
        }
    }
}

#[tokio::test]
async fn a_result_that_a_proxy_does_not_let_through_is_kept_until_its_lease_ends() {
    let (dir, server, trainer) = (TempDir::new().unwrap(), Server::start().await, Trainer::free());
    server.change(|world| {
        let shard = world.put(b"rows");
        for lease in [1, 2] {
            let lease = Lease { heartbeat_every: Millis(10), ..hop(lease, shard) };
            world.queue.push_back(lease);
        }
        for _ in 0..1000 {
            world.fail("PUT /v1/leases/1/", garbage(413));
        }
    });
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    let tried = |world: &World| world.count("PUT /v1/leases/1/") >= 3;
    server.until("three attempts", tried).await;
    server.until("the other report", |world| world.reports.contains_key(&LeaseId(2))).await;
    assert!(files(&dir, "outbox").contains(&"1.2.safetensors".to_owned()));
    // The server waits no longer, and says so when it is asked next.
    server.change(|world| {
        world.held.remove(&LeaseId(1));
        world.heartbeats.clear();
        world.works.clear();
    });
    server
        .until("word that it is dropped", |world| {
            let beats = world.heartbeats.iter().map(|beat| &beat.holding);
            let mut told = beats.chain(world.works.iter().map(|work| &work.holding));
            told.any(|holding| holding.iter().all(|held| held.lease != LeaseId(1)))
        })
        .await;
    server.change(|world| queue_hops(world, 3..=3));
    server.until("the next report", |world| world.reports.contains_key(&LeaseId(3))).await;
    daemon.stop().await.unwrap();
    let left = files(&dir, "outbox");
    assert!(!left.iter().any(|name| name.starts_with("1.")), "{left:?}");
    assert!(!server.world().reports.contains_key(&LeaseId(1)));
}

#[tokio::test]
async fn a_result_that_came_too_late_is_reported_all_the_same() {
    let (dir, server, trainer) = (TempDir::new().unwrap(), Server::start().await, Trainer::free());
    server.change(|world| {
        queue_hops(world, 1..=1);
        // The unit is settled: no upload is wanted, and the report is acknowledged as superseded.
        world.settled = true;
    });
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    server.until("a report", |world| world.reports.len() == 1).await;
    // A stop waits for what is on its way, here the answer to the report.
    daemon.stop().await.unwrap();
    assert!(server.world().released.is_empty());
    assert_eq!(files(&dir, "outbox"), [""; 0]);
}

#[tokio::test]
async fn a_blob_that_the_server_refuses_has_its_unit_given_back() {
    let (dir, server, trainer) = (TempDir::new().unwrap(), Server::start().await, Trainer::free());
    server.change(|world| {
        queue_hops(world, 1..=1);
        world.blobs.clear();
    });
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    server.until("a release", |world| !world.released.is_empty()).await;
    daemon.stop().await.unwrap();
    assert!(server.world().released[0].1.contains("no such blob"));
}

#[tokio::test]
async fn a_unit_that_cannot_be_fetched_comes_again_only_after_a_rest() {
    let (dir, server, trainer) = (TempDir::new().unwrap(), Server::start().await, Trainer::free());
    server.change(|world| {
        queue_hops(world, 1..=1);
        world.again = true;
        world.blobs.clear();
    });
    let rest = Duration::from_millis(300);
    let timing = Timing { rest, ..config(&server, &dir).timing };
    let begun = std::time::Instant::now();
    let daemon = Daemon::start(ClientConfig { timing, ..config(&server, &dir) }, &trainer);
    // Requests that are held open when a rest begins may still bring it.
    server.until("six releases", |world| world.released.len() == 6).await;
    daemon.stop().await.unwrap();
    assert!(begun.elapsed() >= 2 * rest, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_revoked_token_ends_the_daemon_and_keeps_the_results() {
    for call in ["POST /v1/work", "PUT /v1/leases", "POST /v1/results", "GET /v1/blobs"] {
        let (dir, server) = (TempDir::new().unwrap(), Server::start().await);
        let trainer = Trainer::free();
        server.change(|world| {
            queue_hops(world, 1..=1);
            world.fail(call, Fault::refusal(ErrorKind::Unauthorized));
            // It is asked again, and stays with it.
            for _ in 0..20 {
                world.fail("POST /v1/heartbeat", Fault::refusal(ErrorKind::Unauthorized));
            }
        });
        let error = Daemon::start(config(&server, &dir), &trainer).ended().await.unwrap_err();
        assert!(matches!(error, ClientError::Revoked { .. }), "{error:?}");
        assert!(error.to_string().contains("identity.json"), "{error}");
        let kept = files(&dir, "outbox").contains(&"1.json".to_owned());
        assert_eq!(kept, call.starts_with("PUT") || call.contains("results"));
    }
}

#[tokio::test]
async fn a_machine_that_the_server_has_forgotten_enrols_again_or_says_what_to_do() {
    let (dir, server) = (TempDir::new().unwrap(), Server::start().await);
    let trainer = Trainer::free();
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    // It asks by its identity, so that is stored.
    server.until("a request for work", |world| !world.works.is_empty()).await;
    daemon.stop().await.unwrap();
    server.change(|world| {
        queue_hops(world, 1..=1);
        world.forgotten.insert("host-1".to_owned());
    });
    // Without a token it can't enrol, and keeps what it has.
    let without = ClientConfig { token: None, ..config(&server, &dir) };
    let error = Daemon::start(without, &trainer).ended().await.unwrap_err();
    assert!(matches!(error, ClientError::Forgotten { .. }), "{error:?}");
    assert!(error.to_string().contains("--token-file"), "{error}");
    let wrong = ClientConfig { token: Some("wrong".to_owned()), ..config(&server, &dir) };
    let error = Daemon::start(wrong, &trainer).ended().await.unwrap_err();
    assert!(matches!(error, ClientError::EnrolmentRefused { .. }), "{error:?}");
    assert!(dir.path().join("client/identity.json").exists(), "another server may know it");

    let daemon = Daemon::start(config(&server, &dir), &trainer);
    server.until("work by another name", |world| world.reports.len() == 1).await;
    server.change(|world| assert_eq!(world.enrolled, 2));
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn an_identity_that_was_set_aside_comes_back_while_there_is_no_other() {
    let (dir, server) = (TempDir::new().unwrap(), Server::start().await);
    let trainer = Trainer::free();
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    // It asks by its identity, so that is stored.
    server.until("a request for work", |world| !world.works.is_empty()).await;
    daemon.stop().await.unwrap();
    let identity = dir.path().join("client/identity.json");
    let kept = std::fs::read(&identity).unwrap();
    // Enrolling fails otherwise than by a refused token.
    server.change(|world| {
        world.forgotten.insert("host-1".to_owned());
        world.fail("POST /v1/enrol", Fault::refusal(ErrorKind::UnsupportedProtocol));
    });
    let error = Daemon::start(config(&server, &dir), &trainer).ended().await.unwrap_err();
    assert!(matches!(error, ClientError::Protocol { .. }), "{error:?}");
    assert_eq!(std::fs::read(&identity).unwrap(), kept);
    // A daemon was killed before it had enrolled.
    std::fs::rename(&identity, identity.with_extension("forgotten")).unwrap();
    let without = ClientConfig { token: None, ..config(&server, &dir) };
    let error = Daemon::start(without, &trainer).ended().await.unwrap_err();
    assert!(matches!(error, ClientError::Forgotten { .. }), "{error:?}");
    assert_eq!(std::fs::read(&identity).unwrap(), kept);
}

#[tokio::test]
async fn a_token_that_is_refused_once_ends_nothing() {
    for call in ["POST /v1/work", "PUT /v1/leases", "POST /v1/results", "GET /v1/blobs"] {
        let (dir, server) = (TempDir::new().unwrap(), Server::start().await);
        let trainer = Trainer::free();
        server.change(|world| {
            queue_hops(world, 1..=1);
            world.fail(call, Fault::refusal(ErrorKind::Unauthorized));
        });
        let daemon = Daemon::start(config(&server, &dir), &trainer);
        server.until("the report", |world| world.reports.len() == 1).await;
        daemon.stop().await.unwrap();
    }
}

#[tokio::test]
async fn a_trainer_that_is_killed_as_the_daemon_starts_is_started_again() {
    let (dir, server, trainer) = (TempDir::new().unwrap(), Server::start().await, Trainer::free());
    trainer.classes.lock().unwrap().push_back(trainer::KILLED);
    server.change(|world| queue_hops(world, 1..=1));
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    server.until("the report", |world| world.reports.len() == 1).await;
    daemon.stop().await.unwrap();
    // But not for ever.
    trainer.classes.lock().unwrap().extend([trainer::KILLED; 3]);
    let ended = Daemon::start(config(&server, &dir), &trainer).ended().await;
    assert!(matches!(ended, Err(ClientError::Trainer(_))), "{ended:?}");
}

#[tokio::test]
async fn a_trainer_that_is_killed_leaves_its_part_and_the_unit_is_not_to_blame() {
    let died = |_: &_| {
        let failure = Failure { kind: FailureKind::Died, message: "killed by signal 9".into() };
        Ok(Outcome::Failed(failure))
    };
    for keeps in [true, false] {
        let (dir, server) = (TempDir::new().unwrap(), Server::start().await);
        let trainer = Trainer::free();
        trainer.keeps.store(keeps, Ordering::SeqCst);
        *trainer.instead.lock().unwrap() = Some(Box::new(died));
        server.change(|world| queue_hops(world, 1..=1));
        let daemon = Daemon::start(config(&server, &dir), &trainer);
        server.until("a report", |world| world.reports.len() == 1).await;
        daemon.stop().await.unwrap();
        match &server.world().reports[&LeaseId(1)].outcome {
            Outcome::Trained(part) if keeps => assert_eq!(part.end.batch, 1),
            Outcome::Failed(failure) if !keeps => assert_eq!(failure.kind, FailureKind::Died),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn an_invalid_configuration_is_reported_at_the_start() {
    let (dir, server, trainer) = (TempDir::new().unwrap(), Server::start().await, Trainer::free());
    let with_token = |token: Option<&str>| ClientConfig {
        token: token.map(ToOwned::to_owned),
        ..config(&server, &dir)
    };
    let error = Daemon::start(with_token(None), &trainer).ended().await.unwrap_err();
    assert!(matches!(error, ClientError::NoToken), "{error:?}");
    let error = Daemon::start(with_token(Some("wrong")), &trainer).ended().await.unwrap_err();
    assert!(error.to_string().contains("no such enrolment token"), "{error}");
    server.change(|world| {
        world.fail("POST /v1/enrol", Fault::refusal(ErrorKind::UnsupportedProtocol));
    });
    let error = Daemon::start(config(&server, &dir), &trainer).ended().await.unwrap_err();
    assert!(matches!(error, ClientError::Protocol { .. }), "{error:?}");

    let none = |_| Err::<trainer::Runner, _>(RunnerError::new("no program at `/nowhere`"));
    let ended = run_with(config(&server, &dir), none, std::future::pending()).await;
    assert!(matches!(ended, Err(ClientError::Trainer(_))), "{ended:?}");

    let daemon = Daemon::start(config(&server, &dir), &trainer);
    server.until("a request", |world| !world.works.is_empty()).await;
    let error = Daemon::start(config(&server, &dir), &trainer).ended().await.unwrap_err();
    assert!(matches!(error, ClientError::FolderInUse { .. }), "{error:?}");
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn a_disk_that_takes_nothing_has_units_given_back_with_the_reason() {
    // Folders that are no folders stand for a disk that is full: both refuse the write.
    for (folder, words) in [("cache/parts", "can't be written"), ("outbox", "can't be kept")] {
        let (dir, server) = (TempDir::new().unwrap(), Server::start().await);
        let trainer = Trainer::free();
        let daemon = Daemon::start(config(&server, &dir), &trainer);
        server.until("a request", |world| !world.works.is_empty()).await;
        let folder = dir.path().join("client").join(folder);
        std::fs::remove_dir_all(&folder).unwrap();
        std::fs::write(&folder, b"").unwrap();
        server.change(|world| queue_hops(world, 1..=1));
        server.until("a release", |world| !world.released.is_empty()).await;
        daemon.stop().await.unwrap();
        let reason = server.world().released[0].1.clone();
        assert!(reason.contains(words), "{reason}");
        assert_eq!(files(&dir, "scratch"), [""; 0]);
    }
}

#[tokio::test]
async fn folders_that_somebody_deletes_are_made_again() {
    let (dir, server, trainer) = (TempDir::new().unwrap(), Server::start().await, Trainer::free());
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    server.until("a request", |world| !world.works.is_empty()).await;
    for folder in ["cache", "outbox", "scratch"] {
        std::fs::remove_dir_all(dir.path().join("client").join(folder)).unwrap();
    }
    server.change(|world| queue_hops(world, 1..=2));
    server.until("two reports", |world| world.reports.len() == 2).await;
    daemon.stop().await.unwrap();
}

/// Runs one unit with something else instead of training, and gives the world after it.
async fn with_trainer(instead: trainer::Instead, until: fn(&World) -> bool) -> Arc<Server> {
    let (dir, server, trainer) = (TempDir::new().unwrap(), Server::start().await, Trainer::free());
    *trainer.instead.lock().unwrap() = Some(instead);
    server.change(|world| queue_hops(world, 1..=1));
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    server.until("the unit's end", until).await;
    daemon.stop().await.unwrap();
    assert_eq!(files(&dir, "scratch"), [""; 0]);
    server
}

#[tokio::test]
async fn a_trainers_error_is_reported_and_one_without_a_trainer_is_not() {
    let failure = Failure { kind: FailureKind::NonFinite, message: "loss is NaN".into() };
    let outcome = Outcome::Failed(failure);
    let expected = outcome.clone();
    let server = with_trainer(Box::new(|_| Ok(outcome)), |world| world.reports.len() == 1).await;
    assert_eq!(server.world().reports[&LeaseId(1)].outcome, expected);

    let gone = |_: &_| Err(RunnerError::new("no program at `/nowhere`"));
    let server = with_trainer(Box::new(gone), |world| world.released.len() == 1).await;
    assert!(server.world().released[0].1.contains("/nowhere"));
    assert!(server.world().reports.is_empty());
}

/// `send_log` in `client.toml`.
#[tokio::test]
async fn the_end_of_a_trainers_log_is_sent_only_where_the_owner_allows_it() {
    for send_log in [true, false] {
        let (dir, server) = (TempDir::new().unwrap(), Server::start().await);
        let trainer = Trainer::free();
        let failure = Failure { kind: FailureKind::NonFinite, message: "loss is NaN".into() };
        let with_log = failure.clone().with_log("/home/alice/data: batch 31");
        let told = Outcome::Failed(if send_log { with_log.clone() } else { failure });
        *trainer.instead.lock().unwrap() = Some(Box::new(|_| Ok(Outcome::Failed(with_log))));
        server.change(|world| queue_hops(world, 1..=1));
        let config = ClientConfig { send_log, ..config(&server, &dir) };
        let daemon = Daemon::start(config, &trainer);
        server.until("a report", |world| world.reports.len() == 1).await;
        daemon.stop().await.unwrap();
        assert_eq!(server.world().reports[&LeaseId(1)].outcome, told);
    }
}

#[tokio::test]
async fn trainers_that_do_not_calculate_alike_end_the_daemon() {
    let (dir, server) = (TempDir::new().unwrap(), Server::start().await);
    let trainer = Trainer::gated(0);
    trainer.classes.lock().unwrap().extend(["fake", "fake", "other"]);
    server.change(|world| queue_hops(world, 1..=6));
    let config = ClientConfig { slots: Some(3), ..config(&server, &dir) };
    let error = Daemon::start(config, &trainer).ended().await.unwrap_err();
    let ClientError::Unlike(why) = error else { panic!("{error}") };
    for class in ["fake", "other"] {
        let class = Digest::of(class.as_bytes()).short();
        assert!(why.to_string().contains(&class), "{why}");
    }
    assert!(server.world().reports.is_empty());
}

#[tokio::test]
async fn a_trainer_that_calculates_otherwise_than_before_ends_the_daemon_with_a_word_to_the_server()
{
    let (dir, server, trainer) = (TempDir::new().unwrap(), Server::start().await, Trainer::free());
    let changed = |_: &_| Err(RunnerError::new("`trainer` is now another").for_good());
    *trainer.instead.lock().unwrap() = Some(Box::new(changed));
    server.change(|world| queue_hops(world, 1..=1));
    let error = Daemon::start(config(&server, &dir), &trainer).ended().await.unwrap_err();
    let ClientError::Unlike(why) = error else { panic!("{error}") };
    assert!(why.to_string().contains("is now another"), "{why}");
    let world = server.world();
    assert!(world.reports.is_empty());
    // Another host can have it at once.
    assert_eq!(world.released.first().map(|(lease, _)| *lease), Some(LeaseId(1)));
}

#[tokio::test]
async fn a_trainers_promise_is_checked() {
    let lies: [fn(&mut Vec<u8>, &Path); 3] = [
        |_, output| std::fs::remove_file(output).unwrap(),
        |_, output| std::fs::write(output, b"half").unwrap(),
        |bytes, output| {
            bytes.push(0);
            std::fs::write(output, &*bytes).unwrap();
        },
    ];
    for lie in lies {
        let instead = move |run: &sojourn_protocol::trainer::RunUnit| {
            let Outcome::Trained(mut trained) = trainer::trained(run) else { unreachable!() };
            let mut bytes = std::fs::read(&run.output).unwrap();
            lie(&mut bytes, &run.output);
            trained.checkpoint = BlobRef { sha256: Digest::of(&bytes), bytes: bytes.len() as u64 };
            Ok(Outcome::Trained(trained))
        };
        let server = with_trainer(Box::new(instead), |world| world.reports.len() == 1).await;
        let outcome = server.world().reports[&LeaseId(1)].outcome.clone();
        assert!(matches!(outcome, Outcome::Failed(_)), "{outcome:?}");
    }
}

#[tokio::test]
async fn a_blob_that_the_trainer_found_altered_is_fetched_again_for_the_next_unit() {
    let (dir, server, trainer) = (TempDir::new().unwrap(), Server::start().await, Trainer::free());
    *trainer.instead.lock().unwrap() = Some(Box::new(|run| {
        let path = run.files.values().next().unwrap();
        let mut bytes = std::fs::read(path).unwrap();
        bytes[0] ^= 1;
        std::fs::write(path, bytes).unwrap();
        let failure = Failure { kind: FailureKind::Damaged, message: "altered".into() };
        Ok(Outcome::Failed(failure))
    }));
    server.change(|world| queue_hops(world, 1..=1));
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    // The unit isn't to blame: it is given back, not reported.
    server.until("a release", |world| world.released.len() == 1).await;
    server.change(|world| queue_hops(world, 2..=2));
    server.until("a report", |world| world.reports.len() == 1).await;
    daemon.stop().await.unwrap();
    let world = server.world();
    assert!(matches!(world.reports[&LeaseId(2)].outcome, Outcome::Trained(_)));
    assert_eq!(world.count("GET /v1/blobs"), 2);
}
