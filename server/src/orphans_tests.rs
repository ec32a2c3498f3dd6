//! Only what is old and unknown goes.

use super::*;
use crate::{
    journal::{Journal, MemoryJournal},
    shell::{Clock, Shell, ShellConfig},
};
use sojourn_blobs::{BlobStore, HashedBytes};
use sojourn_protocol::{ids::LeaseId, time::Millis};
use std::sync::Arc;

/// Time stands still.
struct NoClock;

impl Clock for NoClock {
    fn now(&self) -> UnixMillis {
        UnixMillis(1_000)
    }
    fn at_least(&self, _: UnixMillis) {}
}

struct World {
    shell: Shell,
    blobs: BlobLifecycle,
    known: BlobRef,
    unknown: BlobRef,
}

impl World {
    async fn new() -> Self {
        let journal = MemoryJournal::default();
        let open =
            Arc::new(move || -> Result<Box<dyn Journal>, _> { Ok(Box::new(journal.clone())) });
        let (shell, _) = Shell::start(open, ShellConfig::default(), Arc::new(NoClock)).unwrap();
        let blobs = BlobLifecycle::new(shell.handle().clone(), BlobStore::in_memory());
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, b"known").unwrap();
        let known = HashedBytes::of(b"known".as_slice().into()).blob();
        blobs.publish(known, &file).await.unwrap();
        let unknown = HashedBytes::of(b"unknown".as_slice().into());
        blobs.store().publish_bytes(unknown.clone()).await.unwrap();
        let staging = blobs.store().staging();
        staging.stage_bytes(LeaseId(0), unknown.clone()).await.unwrap();
        staging.stage_bytes(LeaseId(7), unknown.clone()).await.unwrap();
        Self { shell, blobs, known, unknown: unknown.blob() }
    }

    async fn collect(&self, dry_run: bool, grace: Millis) -> CollectAnswer {
        let request = CollectRequest { dry_run, grace };
        let staging = self.blobs.store().staging();
        collect(self.shell.handle(), &self.blobs, &staging, &request).await.unwrap()
    }

    /// Waits until what is there is older than the store's now.
    async fn age(&self) {
        let last = self.blobs.store().now().await.unwrap();
        while self.blobs.store().now().await.unwrap() <= last {}
    }
}

const NONE: Found = Found { objects: 0, bytes: 0 };

#[tokio::test]
async fn unknown_old_blobs_are_listed_and_then_deleted() {
    let world = World::new().await;
    world.age().await;
    let dry = world.collect(true, Millis(0)).await;
    let (one, known) = (Found { objects: 1, bytes: 7 }, Found { objects: 1, bytes: 5 });
    // Lease 7 may be granted yet.
    assert_eq!((dry.unknown, dry.uploads, dry.kept), (one, one, known));
    assert_eq!(world.blobs.store().list().await.unwrap().len(), 2, "a dry run deletes nothing");
    let done = world.collect(false, Millis(0)).await;
    assert_eq!(CollectAnswer { dry_run: true, ..done }, dry, "it does what the dry run said");
    assert_eq!(world.blobs.store().list().await.unwrap(), [world.known]);
    let left = world.blobs.store().staging().list().await.unwrap();
    assert_eq!(left.iter().map(|staged| staged.lease).collect::<Vec<_>>(), [LeaseId(7)]);
    let again = world.collect(false, Millis(0)).await;
    assert_eq!((again.unknown, again.uploads), (NONE, NONE));
    world.shell.stop().await;
}

#[tokio::test]
async fn young_blobs_stay_for_their_offers() {
    let world = World::new().await;
    let done = world.collect(false, Millis::from_secs(3600)).await;
    assert_eq!((done.unknown, done.uploads), (NONE, NONE));
    assert_eq!(done.kept.objects, 2);
    world.shell.stop().await;
}

#[tokio::test]
async fn blobs_that_become_known_or_young_meanwhile_stay() {
    let world = World::new().await;
    world.age().await;
    let (shell, blobs, blob) = (world.shell.handle(), &world.blobs, world.unknown);
    let before = blobs.store().now().await.unwrap();
    // Somebody puts it there once more.
    world.age().await;
    blobs.store().publish_bytes(HashedBytes::of(b"unknown".as_slice().into())).await.unwrap();
    assert!(!sweep(shell, blobs, blob, before).await.unwrap());
    // The core hears of it.
    world.age().await;
    let before = blobs.store().now().await.unwrap();
    shell.request(request::Published { blob }).await.unwrap();
    assert!(!sweep(shell, blobs, blob, before).await.unwrap());
    assert_eq!(blobs.store().size(blob.sha256).await.unwrap(), Some(blob.bytes));
    world.shell.stop().await;
}

#[tokio::test]
async fn a_sweep_waits_for_the_blobs_holder() {
    let world = World::new().await;
    world.age().await;
    let (shell, blobs, blob) = (world.shell.handle(), &world.blobs, world.unknown);
    let before = blobs.store().now().await.unwrap();
    let hold = blobs.store().hold(blob.sha256).await;
    let mut sweeping = Box::pin(sweep(shell, blobs, blob, before));
    assert!(futures::poll!(&mut sweeping).is_pending());
    shell.request(request::Published { blob }).await.unwrap();
    drop(hold);
    assert!(!sweeping.await.unwrap());
    world.shell.stop().await;
}
