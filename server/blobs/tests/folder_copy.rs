//! Copies of a server's folder: what is copied, what isn't, and what goes.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use bytes::Bytes;
use sojourn_blobs::{
    BLOBS_FOLDER, BlobStore, FilesCount, FolderCopy, HashedBytes, UPLOADS_FOLDER, WantedFiles,
    WriteAheadLog,
};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::LeaseId,
};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// The file of a blob in a server's folder.
fn blob_file(root: &Path, blob: Digest) -> PathBuf {
    let name = blob.to_string();
    root.join(BLOBS_FOLDER).join("sha256").join(&name[..2]).join(name)
}

fn named(bytes: &'static [u8]) -> HashedBytes {
    HashedBytes::of(Bytes::from_static(bytes))
}

/// A server's folder with a large blob, a small one that is only in the log, and an altered one.
async fn server(root: &Path) -> (BlobStore, Vec<BlobRef>) {
    let log = WriteAheadLog::open(root).unwrap();
    let store = BlobStore::with_log(&root.join(BLOBS_FOLDER), log).unwrap();
    let large = HashedBytes::of(vec![7; 300 << 10].into());
    let (small, altered) = (named(b"small"), HashedBytes::of(vec![8; 200 << 10].into()));
    let blobs = [large, small, altered];
    for blob in &blobs {
        store.publish_bytes(blob.clone()).await.unwrap();
    }
    let path = blob_file(root, blobs[2].blob().sha256);
    fs::write(path, vec![9; 200 << 10]).unwrap();
    (store, blobs.iter().map(HashedBytes::blob).collect())
}

#[tokio::test]
async fn blobs_are_copied_once_and_an_altered_one_never() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    fs::create_dir_all(&from).unwrap();
    let (store, blobs) = server(&from).await;
    let copy = FolderCopy::new(&from, &to);
    let wanted = WantedFiles { blobs: blobs.iter().copied().collect(), ..WantedFiles::default() };
    let mut told = Vec::new();
    let swept = copy.sweep(&mut |done, of| told.push((done, of))).unwrap();
    assert_eq!(swept, FilesCount { files: 1, bytes: 300 << 10 });
    assert_eq!(told.last(), Some(&(500 << 10, 500 << 10)));
    // The log's file is taken, also where it was removed since.
    store.delete(blobs[1].sha256).await.unwrap();
    let taken = copy.take(&copy.logged().unwrap(), &wanted).unwrap();
    assert_eq!(taken, FilesCount { files: 1, bytes: 5 });
    assert_eq!(copy.lacks(&wanted).unwrap().blobs, [blobs[2]].into());
    assert_eq!(copy.sweep(&mut |_, _| {}).unwrap(), FilesCount::default());

    let of_copy = BlobStore::open(&to.join(BLOBS_FOLDER)).unwrap();
    for blob in &blobs[..2] {
        assert_eq!(of_copy.size(blob.sha256).await.unwrap(), Some(blob.bytes));
    }
    let wanted = WantedFiles { blobs: [blobs[1]].into(), ..WantedFiles::default() };
    assert_eq!(copy.prune(&wanted).unwrap(), FilesCount { files: 1, bytes: 300 << 10 });
    assert_eq!(of_copy.list().await.unwrap(), [blobs[1]]);
}

#[test]
fn complete_uploads_are_copied_and_others_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    let blob = named(b"checkpoint").blob();
    let file = |lease: u64, state: &str| {
        let name = format!("lease-{lease}.{}.{}.{state}", blob.sha256, blob.bytes);
        from.join(UPLOADS_FOLDER).join(name)
    };
    fs::create_dir_all(from.join(UPLOADS_FOLDER)).unwrap();
    fs::write(file(1, "done"), b"checkpoint").unwrap();
    fs::write(file(2, "part"), b"check").unwrap();
    fs::write(file(3, "done"), b"check").unwrap();
    let copy = FolderCopy::new(&from, &to);
    assert_eq!(copy.sweep(&mut |_, _| {}).unwrap(), FilesCount { files: 1, bytes: 10 });
    let uploads = [(LeaseId(1), blob), (LeaseId(3), blob)].into();
    let wanted = WantedFiles { uploads, ..WantedFiles::default() };
    assert_eq!(copy.lacks(&wanted).unwrap().uploads, [(LeaseId(3), blob)].into());
    assert_eq!(copy.prune(&WantedFiles::default()).unwrap().files, 1);
    assert_eq!(copy.lacks(&wanted).unwrap().uploads.len(), 2);
}
