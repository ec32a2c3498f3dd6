//! One suite over every store that blobs may lie in.

mod staging;

use sojourn_blobs::BlobStore;
use sojourn_protocol::digest::{BlobRef, Digest};
use tempfile::TempDir;

/// A store under test, with what it needs to live.
struct Subject {
    name: &'static str,
    blobs: BlobStore,
    _folder: Option<TempDir>,
}

/// Every store, empty.
fn subjects() -> Vec<Subject> {
    let folder = TempDir::new().unwrap();
    let opened = BlobStore::open(folder.path()).unwrap();
    vec![
        Subject { name: "memory", blobs: BlobStore::in_memory(), _folder: None },
        Subject { name: "folder", blobs: opened, _folder: Some(folder) },
    ]
}

/// Bytes that no two seeds share.
fn content(seed: u8, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| seed.wrapping_add((at % 251) as u8)).collect()
}

fn named(bytes: &[u8]) -> BlobRef {
    BlobRef { sha256: Digest::of(bytes), bytes: bytes.len() as u64 }
}
