//! Ends that meet trouble: what is done in the time that there is.

use super::*;
use crate::{restarts::ends, server::Fault};
use sojourn_protocol::report::ReportEnd;

#[tokio::test]
async fn a_stop_ends_in_its_time_though_the_server_hangs() {
    let (dir, server, trainer) =
        (TempDir::new().unwrap(), Server::start().await, Trainer::gated(0));
    server.change(|world| queue_hops(world, 1..=2));
    let farewell = Duration::from_secs(4);
    let timing = Timing { farewell, ..config(&server, &dir).timing };
    let daemon = Daemon::start(ClientConfig { timing, ..config(&server, &dir) }, &trainer);
    trainer.until_started(1).await;
    server.until("both leases", |world| world.held.len() == 2).await;
    server.change(|world| world.hangs = true);
    let begun = std::time::Instant::now();
    daemon.stop().await.unwrap();
    // One request after the other would take three times as long.
    assert!(begun.elapsed() < 2 * farewell, "{:?}", begun.elapsed());
    let kept = files(&dir, "outbox");
    assert!(kept.len() == 2 && kept[0].ends_with(".1.safetensors"), "{kept:?}");
}

#[tokio::test]
async fn a_stop_sends_results_though_the_server_does_not_hear_what_is_given_back() {
    let (dir, server, trainer) =
        (TempDir::new().unwrap(), Server::start().await, Trainer::gated(0));
    server.change(|world| queue_hops(world, 1..=2));
    let timing = Timing { farewell: Duration::from_secs(3), ..config(&server, &dir).timing };
    let daemon = Daemon::start(ClientConfig { timing, ..config(&server, &dir) }, &trainer);
    trainer.until_started(1).await;
    server.until("both leases", |world| world.held.len() == 2).await;
    server.change(|world| {
        for call in ["POST /v1/release", "POST /v1/work"] {
            world.fail(call, Fault::Hang);
        }
    });
    daemon.stop().await.unwrap();
    assert_eq!(ends(&server.world()).len(), 1);
}

#[tokio::test]
async fn a_stop_asks_what_has_become_of_reports() {
    let (dir, server, trainer) = (TempDir::new().unwrap(), Server::start().await, Trainer::free());
    server.change(|world| queue_hops(world, 1..=1));
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    server.until("a report", |world| world.reports.len() == 1).await;
    // Said to nobody who doesn't ask.
    server.world().ends.insert(LeaseId(1), ReportEnd::Superseded);
    daemon.stop().await.unwrap();
    assert_eq!(files(&dir, "outbox"), [""; 0]);
}

#[tokio::test]
async fn a_report_that_ended_while_the_server_was_away_is_forgotten_when_it_is_back() {
    let (dir, server, trainer) = (TempDir::new().unwrap(), Server::start().await, Trainer::free());
    server.change(|world| queue_hops(world, 1..=1));
    let timing = Timing { wait: Duration::from_millis(10), ..config(&server, &dir).timing };
    let daemon = Daemon::start(ClientConfig { timing, ..config(&server, &dir) }, &trainer);
    let named = |world: &World| world.works.iter().any(|work| work.reported == [LeaseId(1)]);
    server.until("word of the report", named).await;
    server.change(|world| world.away = true);
    server.change(|world| {
        world.ends.insert(LeaseId(1), ReportEnd::Superseded);
        world.away = false;
    });
    while dir.path().join("client/outbox/1.json").exists() {
        tokio::task::yield_now().await;
    }
    daemon.stop().await.unwrap();
    assert_eq!(files(&dir, "outbox"), [""; 0]);
}

#[tokio::test]
async fn a_data_folder_that_is_deleted_ends_the_daemon_with_a_word_to_the_server() {
    for file in ["", "lock"] {
        let (dir, server) = (TempDir::new().unwrap(), Server::start().await);
        let trainer = Trainer::gated(0);
        server.change(|world| queue_hops(world, 1..=2));
        let timing = Timing { poll: Duration::from_millis(5), ..config(&server, &dir).timing };
        let daemon = Daemon::start(ClientConfig { timing, ..config(&server, &dir) }, &trainer);
        trainer.until_started(1).await;
        server.until("both leases", |world| world.held.len() == 2).await;
        let path = dir.path().join("client").join(file);
        if file.is_empty() {
            // What is being written at the moment may come between.
            while std::fs::remove_dir_all(&path).is_err() {}
        } else {
            std::fs::remove_file(&path).unwrap();
        }
        let error = daemon.ended().await.unwrap_err();
        assert!(matches!(error, ClientError::FolderGone { .. }), "{error:?}");
        assert!(server.world().held.is_empty(), "others can have them at once");
    }
}
