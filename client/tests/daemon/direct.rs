//! Bytes that go past the server, to and from a store that nobody's token is shown to; and through the
//! server where the store fails.

use crate::{
    Daemon, config, hop_of,
    http::Answer,
    server::{Fault, Server, World},
    trainer::Trainer,
};
use sojourn_protocol::{ids::LeaseId, unit::Base};
use std::sync::Arc;
use tempfile::TempDir;

const LEASE: LeaseId = LeaseId(1);

/// Has a daemon train one hop with a server whose blobs are in a store.
async fn after_a_hop(prepare: impl FnOnce(&mut World)) -> Arc<Server> {
    let (dir, server, trainer) = (TempDir::new().unwrap(), Server::start().await, Trainer::free());
    server.change(|world| {
        world.features = "delta-uploads, direct-uploads, upload-progress";
        world.has_store = true;
        world.stores = Some(vec![server.url.clone()]);
        let shard = world.put(b"the rows of one shard");
        world.queue.push_back(hop_of(LEASE.0, Base::Initial { seed: 1 }, shard, 5000));
        prepare(world);
    });
    let daemon = Daemon::start(config(&server, &dir), &trainer);
    server.until("a report", |world| world.reports.contains_key(&LEASE)).await;
    daemon.stop().await.unwrap();
    server
}

fn refused() -> Fault {
    let body = b"<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>";
    Fault::Answer(Answer { status: 403, body: body.to_vec(), ..Answer::default() })
}

/// Requests for blobs to the server and to the store, and those that brought a checkpoint to each.
fn counts(server: &Server) -> [usize; 4] {
    let world = server.world();
    assert_eq!(world.faults_left(), 0, "all were met");
    [
        world.count("GET /v1/blobs"),
        world.count("GET /store/"),
        world.count("PUT /v1/leases/1/checkpoint"),
        world.count("PUT /store/"),
    ]
}

#[tokio::test]
async fn blobs_and_checkpoints_go_past_the_server() {
    assert_eq!(counts(&*after_a_hop(|_| {}).await), [1, 1, 0, 1]);
}

#[tokio::test]
async fn a_url_that_has_ended_is_asked_for_anew() {
    let server = after_a_hop(|world| {
        world.fail("GET /store/", refused());
        world.fail("PUT /store/", refused());
    });
    assert_eq!(counts(&*server.await), [2, 2, 0, 2]);
}

#[tokio::test]
async fn a_broken_download_goes_on_where_it_was() {
    let server = after_a_hop(|world| world.fail("GET /store/", Fault::Cut(8))).await;
    assert_eq!(counts(&server), [2, 2, 0, 1]);
    let world = server.world();
    let ranges: Vec<Option<u64>> = world
        .requests
        .iter()
        .filter(|request| request.method == "GET" && request.path.starts_with("/store/"))
        .map(|request| request.range)
        .collect();
    assert_eq!(ranges, [None, Some(8)]);
}

#[tokio::test]
async fn a_server_that_was_away_for_a_while_still_sends_nothing_that_is_in_the_store() {
    let server = after_a_hop(|world| {
        for _ in 0..3 {
            world.fail("GET /v1/blobs", Fault::Lost);
        }
    });
    assert_eq!(counts(&*server.await), [4, 1, 0, 1]);
}

#[tokio::test]
async fn uploads_that_the_store_keeps_refusing_go_through_the_server() {
    let server = after_a_hop(|world| {
        for _ in 0..2 {
            world.fail("GET /store/", refused());
            world.fail("PUT /store/", refused());
        }
    });
    assert_eq!(counts(&*server.await), [3, 2, 1, 2]);
}

#[tokio::test]
async fn a_blob_that_is_altered_in_the_store_is_fetched_from_the_server() {
    let server = after_a_hop(|world| world.fail("GET /store/", Fault::Alter)).await;
    assert_eq!(counts(&server), [2, 1, 0, 1]);
}

/// The machine's owner didn't hear of that store at enrolment.
#[tokio::test]
async fn a_store_that_the_server_did_not_name_is_not_asked_and_bytes_go_through_the_server() {
    for named in [vec![], vec!["https://store.example".to_owned()]] {
        let server = after_a_hop(|world| world.stores = Some(named)).await;
        let [blobs, from_store, checkpoints, to_store] = counts(&server);
        assert_eq!((from_store, to_store), (0, 0));
        assert!(blobs >= 2 && checkpoints == 1, "{blobs} {checkpoints}");
    }
}

#[tokio::test]
async fn a_server_of_before_that_names_no_store_is_followed_as_before() {
    assert_eq!(counts(&*after_a_hop(|world| world.stores = None).await), [1, 1, 0, 1]);
}

#[tokio::test]
async fn a_server_that_doesnt_offer_it_gets_all_itself() {
    let server = after_a_hop(|world| {
        world.features = "delta-uploads, upload-progress";
        world.has_store = false;
    });
    assert_eq!(counts(&*server.await), [1, 0, 1, 0]);
}
