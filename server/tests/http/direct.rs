//! Blobs in an object store: hosts go there themselves, and whoever can't is served as ever.

use crate::{
    folder,
    s3::{BUCKET, Fault, StandIn},
    serve::AssimilatorConfig,
    world::{Answer, World, blob, hop, send, trained},
};
use reqwest::{Client, StatusCode};
use sojourn_protocol::{
    api::{FEATURES_HEADER, Health, UploadState},
    digest::BlobRef,
    direct::{DIRECT_HEADER, DIRECT_UPLOADS, DirectAnswer, DirectRequest},
    error::ErrorKind,
    ids::Version,
    report::ReportEnd,
    unit::Lease,
};
use sojourn_server::ServeConfig;
use std::path::Path;

fn config(data: &Path, store: &StandIn) -> ServeConfig {
    ServeConfig {
        blobs: Some(format!("s3://{BUCKET}/blobs")),
        store: store.settings(),
        ..World::config(data, AssimilatorConfig::default())
    }
}

async fn follow(world: &World, token: &str, blob: BlobRef) -> Answer {
    let path = format!("/v1/blobs/{}", blob.sha256);
    send(world.address(), "GET", &path, token, &[(DIRECT_HEADER, "follow")], b"").await
}

async fn ask(world: &World, token: &str, lease: &Lease, checkpoint: BlobRef) -> Answer {
    let path = format!("/v1/leases/{}/checkpoint/direct", lease.id);
    world.post(&path, token, &DirectRequest { checkpoint }).await
}

async fn put(way: &DirectAnswer, bytes: &[u8]) -> StatusCode {
    let DirectAnswer::Put { url, headers, .. } = way else { panic!("{way:?}") };
    let request = Client::new().put(url).body(bytes.to_vec());
    let request =
        headers.iter().fold(request, |request, (name, value)| request.header(name, value));
    request.send().await.unwrap().status()
}

#[tokio::test]
async fn a_result_is_uploaded_to_the_store_and_becomes_a_version() {
    let (folder, store) = (folder(), StandIn::start().await);
    let world = World::with(config(folder.path(), &store)).await;
    world.submit().await;
    let host = world.enrol("one").await;
    let lease = world.lease(&host.token).await;
    let named = host.stores.clone().unwrap();
    let before: Health = world.get("/v1/health", "").await.json();

    let shard = hop(&lease).shard.blob;
    let answer = follow(&world, &host.token, shard).await;
    assert_eq!((answer.status, answer.body.len()), (307, 0));
    let url = answer.header("location").unwrap();
    let [store_named] = &named[..] else { panic!("{named:?}") };
    assert!(url.starts_with(&format!("{store_named}/")), "{url} isn't of {store_named}");
    let got = Client::new().get(&url).send().await.unwrap().bytes().await.unwrap();
    assert_eq!(blob(&got), shard);
    let features = answer.header(FEATURES_HEADER).unwrap();
    assert!(features.split(", ").any(|word| word == DIRECT_UPLOADS), "{features}");

    let (bytes, report) = trained(&lease, 1);
    let way: DirectAnswer = ask(&world, &host.token, &lease, blob(&bytes)).await.json();
    world.report(&host.token, &report).await.refused(ErrorKind::Conflict);
    let mut wrong = bytes.clone();
    wrong[100] ^= 1;
    assert!(put(&way, &wrong).await.is_client_error());
    // The digest binds the length as well.
    let longer = [&bytes[..], b"more"].concat();
    assert!(put(&way, &longer).await.is_client_error());
    assert!(put(&way, &bytes[1..]).await.is_client_error());
    world.report(&host.token, &report).await.refused(ErrorKind::Conflict);
    assert!(put(&way, &bytes).await.is_success());
    let there: DirectAnswer = ask(&world, &host.token, &lease, blob(&bytes)).await.json();
    assert_eq!(there, DirectAnswer::There);
    assert_eq!(world.report(&host.token, &report).await.status, 200);
    let end = world.end(&host.token, lease.id).await;
    assert_eq!(end, ReportEnd::Assimilated { version: Version(1) });
    assert!(follow(&world, &world.admin, blob(&bytes)).await.status == 307, "it is a blob now");

    let after: Health = world.get("/v1/health", "").await.json();
    let bytes = |health: &Health| (health.received_bytes, health.sent_bytes);
    assert_eq!(bytes(&before), bytes(&after), "no byte of it came through the server");
    world.server.stop().await;
}

#[tokio::test]
async fn upload_urls_are_given_only_to_the_leases_host() {
    let (folder, store) = (folder(), StandIn::start().await);
    let world = World::with(config(folder.path(), &store)).await;
    world.submit().await;
    let (one, two) = (world.enrol("one").await, world.enrol("two").await);
    let lease = world.lease(&one.token).await;
    let (bytes, _) = trained(&lease, 1);
    let whole = blob(&bytes);
    ask(&world, &two.token, &lease, whole).await.refused(ErrorKind::Forbidden);
    ask(&world, "nobody's", &lease, whole).await.refused(ErrorKind::Unauthorized);
    let larger = BlobRef { bytes: whole.bytes + 1, ..whole };
    ask(&world, &one.token, &lease, larger).await.refused(ErrorKind::TooLarge);
    let shard = hop(&lease).shard.blob;
    assert_eq!(follow(&world, &two.token, shard).await.status, 403, "no lease of its names it");
    let unknown = blob(b"unknown");
    follow(&world, &world.admin, unknown).await.refused(ErrorKind::NotFound);
    world.server.stop().await;
}

#[tokio::test]
async fn an_upload_through_the_server_is_staged_before_it_is_acknowledged() {
    let (data, store) = (folder(), StandIn::start().await);
    let world = World::with(config(data.path(), &store)).await;
    world.submit().await;
    let host = world.enrol("one").await;
    let lease = world.lease(&host.token).await;
    // Without a word of other ways, as older hosts ask.
    let shard = hop(&lease).shard.blob;
    let whole = world.get(&format!("/v1/blobs/{}", shard.sha256), &host.token).await;
    assert_eq!((whole.status, blob(&whole.body)), (200, shard));
    let (bytes, report) = trained(&lease, 1);
    assert_eq!(world.upload(&host.token, &lease, &bytes).await.status, 200);
    let staged = format!("blobs/uploads/lease-{}/{}", lease.id, blob(&bytes).sha256);
    assert_eq!(std::fs::read(store.bucket().join(&staged)).unwrap(), bytes);
    world.server.stop().await;

    // The next server has the journal, and not the spool folder of the first.
    std::fs::remove_dir_all(data.path().join("uploads")).unwrap();
    let world = World::with(config(data.path(), &store)).await;
    assert_eq!(world.report(&host.token, &report).await.status, 200);
    let end = world.end(&host.token, lease.id).await;
    assert_eq!(end, ReportEnd::Assimilated { version: Version(1) });
    // Nobody needs it any more: it goes, in its time.
    while store.bucket().join(&staged).exists() {
        world.get("/v1/health", "").await;
    }
    world.server.stop().await;
}

#[tokio::test]
async fn a_server_without_a_store_streams_blobs() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    world.submit().await;
    let host = world.enrol("one").await;
    let lease = world.lease(&host.token).await;
    let shard = hop(&lease).shard.blob;
    let answer = follow(&world, &host.token, shard).await;
    assert_eq!((answer.status, blob(&answer.body)), (200, shard));
    assert!(!answer.header(FEATURES_HEADER).unwrap().contains(DIRECT_UPLOADS));
    let (bytes, _) = trained(&lease, 1);
    let way: DirectAnswer = ask(&world, &host.token, &lease, blob(&bytes)).await.json();
    assert_eq!(way, DirectAnswer::Through);
    world.server.stop().await;
}

#[tokio::test]
async fn a_failing_store_is_answered_as_unavailable() {
    let (folder, store) = (folder(), StandIn::start().await);
    let patience = std::time::Duration::from_millis(1);
    let config = ServeConfig {
        store: store.settings().with_patience(patience),
        ..config(folder.path(), &store)
    };
    let world = World::with(config).await;
    world.submit().await;
    let host = world.enrol("one").await;
    let lease = world.lease(&host.token).await;
    let (bytes, report) = trained(&lease, 1);
    store.fail(&[Fault::SlowDown; 1000]);
    let shard = hop(&lease).shard.blob;
    follow(&world, &host.token, shard).await.refused(ErrorKind::Unavailable);
    world.upload(&host.token, &lease, &bytes).await.refused(ErrorKind::Unavailable);
    world.report(&host.token, &report).await.refused(ErrorKind::Unavailable);
    store.script.lock().unwrap().faults.clear();
    // It is whole in the spool folder: a look is enough to have it staged.
    let path = format!("/v1/leases/{}/checkpoint", lease.id);
    assert!(world.get(&path, &host.token).await.json::<UploadState>().complete);
    assert_eq!(world.report(&host.token, &report).await.status, 200);
    world.end(&host.token, lease.id).await;
    world.server.stop().await;
}
