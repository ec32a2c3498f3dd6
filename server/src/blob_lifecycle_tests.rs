//! Publishes, deletions and offers that meet in the worst order.

use super::*;
use crate::{
    journal::{Journal, JournalError, MemoryJournal, OpenJournal},
    shell::{Clock, Shell, ShellConfig, SideEffect},
};
use sojourn_protocol::{
    ids::JobId,
    manifest::{DataManifest, Labels, Scaling, Shard, Targets},
    time::{Millis, UnixMillis},
};
use std::{
    path::PathBuf,
    sync::atomic::{AtomicU64, Ordering},
};
use tokio::sync::mpsc::UnboundedReceiver;

/// A clock that only the test moves.
struct SetClock(AtomicU64);

impl Clock for SetClock {
    fn now(&self) -> UnixMillis {
        UnixMillis(self.0.load(Ordering::SeqCst))
    }
    fn at_least(&self, _: UnixMillis) {}
}

/// A journal whose lease the test sets.
#[derive(Default)]
struct Leased {
    journal: MemoryJournal,
    held_for: Mutex<Duration>,
}

impl OpenJournal for Leased {
    fn open(&self) -> Result<Box<dyn Journal>, JournalError> {
        Ok(Box::new(self.journal.clone()))
    }
    fn is_shared(&self) -> bool {
        true
    }
    fn held_for(&self) -> Duration {
        *self.held_for.lock()
    }
}

struct World {
    folder: tempfile::TempDir,
    clock: Arc<SetClock>,
    leased: Arc<Leased>,
    shell: Shell,
    side_effects: UnboundedReceiver<SideEffect>,
    blobs: BlobLifecycle,
}

const BYTES: &[u8] = b"some bytes";

fn blob() -> BlobRef {
    BlobRef { sha256: Digest::of(BYTES), bytes: BYTES.len() as u64 }
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("file"), BYTES).unwrap();
        let clock = Arc::new(SetClock(AtomicU64::new(1_000)));
        let mut config = ShellConfig::default();
        config.core.awaited_for = Millis(10);
        config.core.condemn_after = Millis(10);
        config.core.delete_after = Millis(10);
        let leased = Arc::new(Leased { held_for: Mutex::new(Duration::MAX), ..Leased::default() });
        let (shell, side_effects) = Shell::start(leased.clone(), config, clock.clone()).unwrap();
        let blobs = BlobStore::open(&folder.path().join("blobs")).unwrap();
        let blobs = BlobLifecycle::new(shell.handle().clone(), blobs);
        Self { folder, clock, leased, shell, side_effects, blobs }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("file")
    }

    fn stored(&self) -> PathBuf {
        let name = blob().sha256.to_string();
        self.folder.path().join("blobs/sha256").join(&name[..2]).join(name)
    }

    async fn publish(&self) {
        self.blobs.publish(blob(), &self.file()).await.unwrap();
    }

    /// A job trains on the blob.
    async fn refer(&self) {
        let spec = "name = \"t\"\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\n[[model]]\narch = \"mlp\"\nhidden = [4]\n\
                    [training]\nepochs = 1\n";
        let shard = Shard { blob: blob(), rows: 8 };
        let data = DataManifest {
            columns: Vec::new(),
            shape: vec![1],
            features: vec!["a".to_owned()],
            labels: Labels::Classes(vec!["0".to_owned(), "1".to_owned()]),
            categories: Vec::new(),
            fill: Vec::new(),
            scaling: Scaling::None,
            targets: Targets::Plain,
            train: vec![shard],
            valid: vec![shard],
            test: Vec::new(),
        };
        let (spec, data) =
            (Box::new(sojourn_protocol::jobfile::parse(spec).unwrap()), Box::new(data));
        let submit = request::Submit { spec, data, again: false, nonce: None };
        self.shell.handle().request(submit).await.unwrap();
    }

    async fn status(&self) -> Option<BlobStatus> {
        let blob = blob().sha256;
        self.shell.handle().request(request::GetBlobStatus { blob }).await.unwrap()
    }

    /// Time passes until the blob has gone one step further.
    async fn later(&self) -> Option<BlobStatus> {
        self.clock.0.fetch_add(10, Ordering::SeqCst);
        self.status().await
    }

    async fn doom(&mut self) {
        assert_eq!(self.later().await, Some(BlobStatus::Condemned));
        assert_eq!(self.later().await, Some(BlobStatus::Doomed));
        assert_eq!(self.side_effects.recv().await, Some(SideEffect::Delete(blob().sha256)));
    }

    /// Lets `task` go on for many answers of the core; it must wait for something else.
    async fn waits(&self, task: &mut (impl Future<Output = impl Sized> + Unpin)) {
        for _ in 0..20 {
            assert!(futures::poll!(&mut *task).is_pending(), "it went on while the blob was held");
            self.status().await;
        }
    }
}

#[tokio::test]
async fn requests_that_complete_the_same_upload_all_find_it_published() {
    let world = World::new();
    let uploads = Uploads::open(&world.folder.path().join("uploads")).unwrap();
    let name = UploadName::Blob(blob().sha256);
    let hold = world.blobs.store().hold(blob().sha256).await;
    uploads.put(name, blob(), BYTES).unwrap();
    let publish = || {
        let (blobs, uploads) = (world.blobs.clone(), uploads.clone());
        tokio::spawn(async move { blobs.publish_upload(&uploads, blob()).await })
    };
    // Each has been told that the upload is complete, and none has begun to publish it.
    let requests = [publish(), publish(), publish()];
    drop(hold);
    for request in requests {
        request.await.unwrap().unwrap();
    }
    assert!(uploads.state(name).is_none() && world.stored().exists());

    // It comes again, and is removed before it is published: the blob is there.
    uploads.put(name, blob(), BYTES).unwrap();
    uploads.remove(name).unwrap();
    publish().await.unwrap().unwrap();
    let missing = BlobRef { sha256: Digest::of(b"other"), bytes: 5 };
    let refused = world.blobs.publish_upload(&uploads, missing).await.unwrap_err();
    assert!(matches!(refused, PublishError::Upload(UploadError::NotComplete { .. })), "{refused}");
}

#[tokio::test]
async fn a_blob_that_is_doomed_while_it_is_published_again_is_refused_and_then_deleted() {
    let mut world = World::new();
    world.publish().await;
    assert_eq!(world.later().await, Some(BlobStatus::Condemned));
    // A publish, as far as its bytes in the store.
    let hold = world.blobs.store.hold(blob().sha256).await;
    world.blobs.store.publish(blob(), &world.file()).await.unwrap();
    assert_eq!(world.later().await, Some(BlobStatus::Doomed));
    assert_eq!(world.side_effects.recv().await, Some(SideEffect::Delete(blob().sha256)));
    let mut deletion = Box::pin(world.blobs.delete(blob().sha256));
    world.waits(&mut deletion).await;
    assert!(world.stored().exists());
    let refused = world.shell.handle().call(|to| Command::Published { to, blob: blob() }).await;
    assert_eq!(refused.unwrap_err().kind, ErrorKind::Unavailable);
    drop(hold);
    deletion.await;
    assert_eq!(world.status().await, None);
    assert!(!world.stored().exists());
    world.publish().await;
    assert_eq!(world.status().await, Some(BlobStatus::Published));
    assert!(world.stored().exists());
}

#[tokio::test]
async fn a_publish_waits_for_the_end_of_a_deletion() {
    let mut world = World::new();
    world.publish().await;
    world.doom().await;
    // A deletion, as far as the unlinked file.
    let hold = world.blobs.store.hold(blob().sha256).await;
    world.blobs.store.delete(blob().sha256).await.unwrap();
    let file = world.file();
    let mut publish = Box::pin(world.blobs.publish(blob(), &file));
    world.waits(&mut publish).await;
    world.shell.handle().tell(Command::Deleted { blob: blob().sha256 });
    drop(hold);
    publish.await.unwrap();
    assert_eq!(world.status().await, Some(BlobStatus::Published));
    assert!(world.stored().exists());
}

#[tokio::test]
async fn a_late_deletion_spares_a_blob_that_was_published_again() {
    let mut world = World::new();
    world.publish().await;
    world.doom().await;
    world.blobs.delete(blob().sha256).await;
    assert_eq!(world.status().await, None);
    world.publish().await;
    // An older one, whose pause after a failure ends only now.
    world.blobs.delete(blob().sha256).await;
    assert!(world.stored().exists());
    assert_eq!(world.status().await, Some(BlobStatus::Published));
}

#[tokio::test]
async fn deletions_of_one_blob_are_merged() {
    let mut world = World::new();
    world.publish().await;
    world.doom().await;
    let hold = world.blobs.store.hold(blob().sha256).await;
    let mut first = Box::pin(world.blobs.delete(blob().sha256));
    world.waits(&mut first).await;
    // The second has nothing to do, and doesn't wait for the first.
    world.blobs.delete(blob().sha256).await;
    assert!(world.stored().exists());
    drop(hold);
    first.await;
    assert!(!world.stored().exists());
    assert_eq!(world.status().await, None);
}

#[tokio::test]
async fn a_lost_blob_is_reported_and_can_be_published_again() {
    let world = World::new();
    for damage in [None, Some(&b"some byte!"[..]), Some(b"some")] {
        world.publish().await;
        assert_eq!(world.status().await, Some(BlobStatus::Published));
        // There after all: somebody was quicker.
        let error = world.blobs.report_missing(blob().sha256).await;
        assert_eq!(error.kind, ErrorKind::Unavailable);
        match damage {
            None => std::fs::remove_file(world.stored()).unwrap(),
            Some(bytes) => {
                let other = world.folder.path().join("damaged");
                std::fs::write(&other, bytes).unwrap();
                std::fs::rename(&other, world.stored()).unwrap();
            }
        }
        let error = world.blobs.report_missing(blob().sha256).await;
        assert_eq!(error.kind, ErrorKind::NotFound);
        let missing = world.shell.handle().request(request::Missing { blobs: vec![blob()] });
        assert_eq!(missing.await.unwrap(), [blob().sha256], "{damage:?}");
    }
}

#[tokio::test]
async fn who_asks_which_blobs_to_send_hears_of_losses_that_nobody_has_seen_yet() {
    let world = World::new();
    let other = BlobRef { sha256: Digest::of(b"never sent"), bytes: 10 };
    let missing = || world.blobs.missing(vec![other, blob()]);
    world.publish().await;
    assert_eq!(missing().await.unwrap(), [other.sha256]);
    std::fs::remove_file(world.stored()).unwrap();
    assert_eq!(missing().await.unwrap(), [other.sha256, blob().sha256]);
    world.publish().await;
    assert_eq!(missing().await.unwrap(), [other.sha256]);
    std::fs::write(world.stored(), b"some").unwrap();
    assert_eq!(missing().await.unwrap(), [other.sha256, blob().sha256], "it is cut short");
}

#[tokio::test]
async fn a_lost_blob_that_turns_up_again_is_found() {
    let world = World::new();
    world.publish().await;
    world.refer().await;
    let aside = world.folder.path().join("aside");
    std::fs::rename(world.stored(), &aside).unwrap();
    world.blobs.report_missing(blob().sha256).await;
    assert_eq!(world.status().await, Some(BlobStatus::Lost));
    world.blobs.find_lost().await;
    assert_eq!(world.status().await, Some(BlobStatus::Lost), "it isn't there");
    std::fs::write(world.stored(), b"some byte!").unwrap();
    world.blobs.find_lost().await;
    assert_eq!(world.status().await, Some(BlobStatus::Lost), "what is there is another");
    std::fs::rename(&aside, world.stored()).unwrap();
    world.blobs.find_lost().await;
    assert_eq!(world.status().await, Some(BlobStatus::Published));
}

#[tokio::test]
async fn the_data_of_a_deleted_job_leaves_the_disk() {
    let mut world = World::new();
    world.publish().await;
    world.refer().await;
    let job = JobId(1);
    world.shell.handle().request(request::Cancel { job }).await.unwrap();
    assert_eq!(world.later().await, Some(BlobStatus::Published), "a job that has ended keeps it");
    let delete = request::Delete { jobs: vec![job], preview: false };
    let deleted = world.shell.handle().request(delete).await.unwrap();
    assert_eq!(deleted.bytes_freed, blob().bytes);
    assert!(world.stored().exists());
    world.doom().await;
    world.blobs.delete(blob().sha256).await;
    assert!(!world.stored().exists());
    assert_eq!(world.status().await, None);
}

/// By then another server may have been given the blob again, and no hold of this process protects it.
#[tokio::test(start_paused = true)]
async fn a_server_whose_lease_is_about_to_pass_on_deletes_nothing() {
    let mut world = World::new();
    world.publish().await;
    world.doom().await;
    // It still answers.
    *world.leased.held_for.lock() = Duration::from_millis(100);
    let mut deletion = Box::pin(world.blobs.delete(blob().sha256));
    for _ in 0..20 {
        assert!(futures::poll!(&mut deletion).is_pending());
        assert_eq!(world.status().await, Some(BlobStatus::Doomed));
    }
    assert!(world.stored().exists());
    // The lease was renewed after all.
    *world.leased.held_for.lock() = Duration::MAX;
    deletion.await;
    assert!(!world.stored().exists());
    assert_eq!(world.status().await, None);
}
