//! A server whose disk fills: what it says, refuses and goes on with, until there is room again.

use crate::{
    folder,
    serve::AssimilatorConfig,
    world::{World, ask, blob, trained},
};
use sojourn_blobs::FullDisk;
use sojourn_protocol::{
    api::{Health, UploadState},
    error::ErrorKind,
    report::ReportEnd,
    storage::StorageLevel,
    view::JobView,
};
use std::sync::Arc;

const DISK: u64 = 1 << 30;
const RESERVE: u64 = 1 << 20;

/// Asks for the server's health until its disk has this level.
async fn level(world: &World, wanted: StorageLevel) -> Health {
    for _ in 0..100_000 {
        let health: Health = world.get("/v1/health", "").await.json();
        if health.storage.level == wanted {
            return health;
        }
    }
    panic!("the level never was {wanted:?}");
}

#[tokio::test]
async fn a_disk_that_fills_ends_new_work_then_uploads_and_all_goes_on_with_room() {
    let folder = folder();
    let disk = Arc::new(FullDisk::with_left(DISK));
    let mut config = World::config(folder.path(), AssimilatorConfig::default());
    (config.disk, config.disk_reserve) = (disk.clone(), Some(RESERVE));
    let world = World::with(config).await;
    let host = world.enrol("one").await;
    world.submit().await;
    let lease = world.lease(&host.token).await;
    assert_eq!(level(&world, StorageLevel::Enough).await.status, "ready");

    disk.make_room(RESERVE - 1);
    let health = level(&world, StorageLevel::Low).await;
    assert_eq!((health.status.as_str(), health.storage.reserve), ("storage-low", RESERVE));
    let data = blob(b"of another job");
    let path = format!("/v1/blobs/{}", data.sha256);
    let refused = world.put(&path, &world.admin, data, &[], b"of another job").await;
    let refused = refused.refused(ErrorKind::StorageFull);
    assert!(refused.message.contains("keeps 1 MB"), "{refused}");

    // No checkpoint is taken now; the lease lives on.
    disk.make_room(RESERVE / 4 - 1);
    assert_eq!(level(&world, StorageLevel::Full).await.status, "storage-full");
    let (bytes, report) = trained(&lease, 3);
    world.upload(&host.token, &lease, &bytes).await.refused(ErrorKind::StorageFull);

    // Running work is finished, and nothing new given out.
    disk.make_room(RESERVE - 1);
    level(&world, StorageLevel::Low).await;
    let state: UploadState = world.upload(&host.token, &lease, &bytes).await.json();
    assert!(state.complete);
    assert_eq!(world.report(&host.token, &report).await.status, 200);
    assert!(matches!(world.end(&host.token, lease.id).await, ReportEnd::Assimilated { .. }));
    assert_eq!(world.work(&host.token, &ask(1)).await.leases, []);
    let jobs: Vec<JobView> = world.get("/v1/jobs", &world.admin).await.json();
    let waits = jobs[0].waiting.clone().unwrap();
    assert!(waits.contains("the server's disk has 1 MB free and keeps 1 MB"), "{waits}");

    disk.make_room(DISK);
    level(&world, StorageLevel::Enough).await;
    assert_eq!(world.publish(b"of another job").await, data);
    // The core hears of it a moment after health.
    let mut given = Vec::new();
    while given.is_empty() {
        given = world.work(&host.token, &ask(1)).await.leases;
    }
    assert_eq!(given.len(), 1);
    world.server.stop().await;
}

#[tokio::test]
async fn a_server_that_starts_on_a_full_disk_serves_and_gives_out_nothing() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    let host = world.enrol("one").await;
    world.submit().await;
    world.server.stop().await;
    let mut config = World::config(folder.path(), AssimilatorConfig::default());
    config.disk = Arc::new(FullDisk::with_left(DISK));
    config.disk_reserve = Some(2 * DISK);
    let world = World::with(config).await;
    let health: Health = world.get("/v1/health", "").await.json();
    assert_eq!(health.status, "storage-low", "it knows before it serves");
    let jobs: Vec<JobView> = world.get("/v1/jobs", &world.admin).await.json();
    assert_eq!(jobs.len(), 1);
    assert_eq!(world.work(&host.token, &ask(1)).await.leases, []);
    world.server.stop().await;
}
