//! One suite for every blob store: the folder, and the one in memory.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use futures::{StreamExt as _, TryStreamExt as _};
use sojourn_blobs::{BlobError, BlobStore, HashedBytes, WriteAheadLog};
use sojourn_protocol::digest::{BlobRef, Digest};
use std::path::{Path, PathBuf};

fn blob(bytes: &[u8]) -> BlobRef {
    BlobRef { sha256: Digest::of(bytes), bytes: bytes.len() as u64 }
}

fn file(folder: &Path, bytes: &[u8]) -> PathBuf {
    let path = folder.join("source");
    std::fs::write(&path, bytes).unwrap();
    path
}

async fn range(store: &BlobStore, blob: Digest, range: std::ops::Range<u64>) -> Vec<u8> {
    let chunks: Vec<_> = store.read(blob, range).await.unwrap().try_collect().await.unwrap();
    chunks.concat()
}

/// The contract that every store keeps.
async fn contract(store: BlobStore) {
    let folder = tempfile::tempdir().unwrap();
    // Beyond one part, so that the multipart way is taken too.
    let large_bytes: Vec<u8> = (0..9_000_000u32).map(|i| (i % 251) as u8).collect();
    for bytes in [&b""[..], b"x", b"some bytes", &large_bytes] {
        let blob = blob(bytes);
        assert_eq!(store.size(blob.sha256).await.unwrap(), None);
        assert!(matches!(
            store.bytes(blob.sha256).await,
            Err(BlobError::Missing(missing)) if missing == blob.sha256
        ));
        store.publish(blob, &file(folder.path(), bytes)).await.unwrap();
        // Again is no error.
        store.publish(blob, &file(folder.path(), bytes)).await.unwrap();
        assert_eq!(store.size(blob.sha256).await.unwrap(), Some(blob.bytes));
        assert_eq!(store.bytes(blob.sha256).await.unwrap(), bytes);
        assert_eq!(range(&store, blob.sha256, 0..blob.bytes).await, bytes);
    }

    let large = blob(&large_bytes);
    assert_eq!(range(&store, large.sha256, 250..253).await, [250, 0, 1]);
    assert_eq!(range(&store, large.sha256, 5..5).await, b"");
    for outside in [0..9_000_001, 9_000_001..9_000_001] {
        let refused = store.read(large.sha256, outside).await.err().unwrap();
        assert!(matches!(refused, BlobError::Range { bytes: 9_000_000, .. }), "{refused}");
    }

    let mut expected = [blob(b""), blob(b"x"), blob(b"some bytes"), large];
    expected.sort_unstable();
    assert_eq!(store.list().await.unwrap(), expected);

    // From memory, too.
    store.delete(large.sha256).await.unwrap();
    let named = HashedBytes::of(large_bytes.clone().into());
    assert_eq!(named.blob(), large);
    for _ in 0..2 {
        store.publish_bytes(named.clone()).await.unwrap();
        assert_eq!(store.size(large.sha256).await.unwrap(), Some(large.bytes));
        assert_eq!(store.bytes(large.sha256).await.unwrap(), large_bytes);
        assert_eq!(store.list().await.unwrap(), expected);
    }

    store.delete(large.sha256).await.unwrap();
    store.delete(large.sha256).await.unwrap();
    assert_eq!(store.size(large.sha256).await.unwrap(), None);
    assert_eq!(store.list().await.unwrap().len(), 3);

    // A file that isn't what it should be leaves nothing.
    for (declared, bytes) in
        [(blob(b"other"), &b"bytes"[..]), (BlobRef { bytes: 4, ..blob(b"bytes") }, b"bytes")]
    {
        let refused = store.publish(declared, &file(folder.path(), bytes)).await.unwrap_err();
        assert!(matches!(refused, BlobError::Unverified { .. }), "{refused}");
        assert_eq!(store.size(declared.sha256).await.unwrap(), None);
    }
    let altered: Vec<u8> = vec![7; 9_000_000];
    let refused = store.publish(large, &file(folder.path(), &altered)).await.unwrap_err();
    assert!(matches!(refused, BlobError::Unverified { .. }), "{refused}");
    assert_eq!(store.size(large.sha256).await.unwrap(), None);
    assert_eq!(store.list().await.unwrap().len(), 3);
}

#[tokio::test]
async fn memory_keeps_the_contract() {
    contract(BlobStore::in_memory()).await;
}

#[tokio::test]
async fn a_folder_keeps_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    contract(BlobStore::open(folder.path()).unwrap()).await;
}

#[tokio::test]
async fn a_folder_with_a_log_keeps_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    let log = WriteAheadLog::open(folder.path()).unwrap();
    contract(BlobStore::with_log(&folder.path().join("blobs"), log).unwrap()).await;
}

#[tokio::test]
async fn a_folder_without_a_log_gets_one_and_goes_back() {
    let folder = tempfile::tempdir().unwrap();
    let blobs = folder.path().join("blobs");
    let (old, new) = (HashedBytes::of("old".into()), HashedBytes::of("new".into()));
    let (first, second) = (old.blob().sha256, new.blob().sha256);
    BlobStore::open(&blobs).unwrap().publish_bytes(old).await.unwrap();
    let log = WriteAheadLog::open(folder.path()).unwrap();
    let store = BlobStore::with_log(&blobs, log.clone()).unwrap();
    store.publish_bytes(new).await.unwrap();
    for blob in [first, second] {
        assert_eq!(store.size(blob).await.unwrap(), Some(3));
    }
    store.delete(first).await.unwrap();
    log.retire().unwrap();
    let store = BlobStore::open(&blobs).unwrap();
    assert_eq!(store.bytes(second).await.unwrap(), "new");
    assert_eq!(store.list().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_small_blob_that_a_power_cut_tore_is_whole_after_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let blobs = folder.path().join("blobs");
    let open = || {
        let log = WriteAheadLog::open(folder.path()).unwrap();
        BlobStore::with_log(&blobs, log).unwrap()
    };
    let store = open();
    let named = HashedBytes::of("some bytes".into());
    let blob = named.blob().sha256;
    store.publish_bytes(named).await.unwrap();
    drop(store);
    let name = blob.to_string();
    let folder_of = blobs.join("sha256").join(&name[..2]);
    std::fs::create_dir_all(&folder_of).unwrap();
    std::fs::write(folder_of.join(&name), "some").unwrap();
    let store = open();
    assert_eq!(store.size(blob).await.unwrap(), Some(10));
    assert_eq!(store.bytes(blob).await.unwrap(), "some bytes");
}

#[tokio::test]
async fn blobs_survive_a_restart_and_temporary_files_do_not() {
    let folder = tempfile::tempdir().unwrap();
    let other = tempfile::tempdir().unwrap();
    let store = BlobStore::open(folder.path()).unwrap();
    let blob = blob(b"kept");
    store.publish(blob, &file(other.path(), b"kept")).await.unwrap();
    let name = blob.sha256.to_string();
    let stored = folder.path().join("sha256").join(&name[..2]).join(&name);
    let staging = stored.with_file_name(format!("{name}#1"));
    std::fs::write(&staging, b"half").unwrap();

    let store = BlobStore::open(folder.path()).unwrap();
    assert!(!staging.exists());
    assert_eq!(store.bytes(blob.sha256).await.unwrap(), &b"kept"[..]);
}

#[tokio::test]
async fn altered_and_truncated_blobs_are_not_served_and_can_be_published_again() {
    for damage in [&b"alt!red"[..], b"alter"] {
        let folder = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        let blob = blob(b"altered");
        let store = BlobStore::open(folder.path()).unwrap();
        store.publish(blob, &file(other.path(), b"altered")).await.unwrap();
        let name = blob.sha256.to_string();
        let stored = folder.path().join("sha256").join(&name[..2]).join(&name);
        // A new file, so that the e-tag differs whatever the clock's resolution.
        let replaced = other.path().join("damage");
        std::fs::write(&replaced, damage).unwrap();
        std::fs::rename(&replaced, &stored).unwrap();

        // The store that published it, and one that has never seen it.
        for store in [&store, &BlobStore::open(folder.path()).unwrap()] {
            let refused = store.read(blob.sha256, 0..1).await.err().unwrap();
            assert!(matches!(refused, BlobError::Altered { .. }), "{refused}");
            assert!(matches!(store.size(blob.sha256).await, Err(BlobError::Altered { .. })));
            assert!(matches!(store.bytes(blob.sha256).await, Err(BlobError::Altered { .. })));
        }
        store.publish(blob, &file(other.path(), b"altered")).await.unwrap();
        assert_eq!(store.bytes(blob.sha256).await.unwrap(), &b"altered"[..]);
        assert_eq!(store.size(blob.sha256).await.unwrap(), Some(7));
    }
}

#[tokio::test]
async fn a_read_that_meets_a_truncated_file_fails_rather_than_ending_early() {
    let folder = tempfile::tempdir().unwrap();
    let other = tempfile::tempdir().unwrap();
    let bytes = vec![3; 1 << 20];
    let blob = blob(&bytes);
    let store = BlobStore::open(folder.path()).unwrap();
    store.publish(blob, &file(other.path(), &bytes)).await.unwrap();
    let mut stream = store.read(blob.sha256, 0..blob.bytes).await.unwrap();
    let name = blob.sha256.to_string();
    let stored = folder.path().join("sha256").join(&name[..2]).join(&name);
    std::fs::OpenOptions::new().write(true).open(stored).unwrap().set_len(10).unwrap();
    let mut whole = 0;
    while let Some(Ok(chunk)) = stream.next().await {
        whole += chunk.len();
    }
    assert!(whole < bytes.len(), "the missing bytes were made up");
}

#[tokio::test]
async fn a_blob_has_one_holder_at_a_time() {
    let store = BlobStore::in_memory();
    let (one, other) = (blob(b"one").sha256, blob(b"other").sha256);
    let held = store.hold(one).await;
    let clone = store.clone();
    let mut second = Box::pin(clone.hold(one));
    assert!(futures::poll!(&mut second).is_pending());
    // Another blob is free.
    drop(store.hold(other).await);
    drop(held);
    let held = second.await;
    assert!(futures::poll!(Box::pin(store.hold(one))).is_pending());
    drop(held);
    drop(store.hold(one).await);
}

/// The files right in a folder.
fn files_in(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries.filter(|entry| entry.file_type().unwrap().is_file()).count()
}

#[tokio::test]
async fn prepared_bytes_are_in_the_folder_until_they_have_a_name_or_are_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let store = BlobStore::open(folder.path()).unwrap();
    let large = |byte| store.prepare(vec![byte; 200_000].into());
    let (first, second) = tokio::join!(large(1), large(2));
    let (first, second) = (first.unwrap(), second.unwrap());
    assert_eq!(files_in(folder.path()), 2);
    store.publish_prepared(&first).await.unwrap();
    assert_eq!(files_in(folder.path()), 1, "it was renamed");
    drop((first, second));
    assert_eq!(files_in(folder.path()), 0);
    assert_eq!(store.list().await.unwrap(), [blob(&[1; 200_000])]);

    // A crash deletes nothing; the next start does.
    std::mem::forget(large(3).await.unwrap());
    assert_eq!(files_in(folder.path()), 1);
    BlobStore::open(folder.path()).unwrap();
    assert_eq!(files_in(folder.path()), 0);
}
