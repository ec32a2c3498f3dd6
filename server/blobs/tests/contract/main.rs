//! One suite over every store that blobs may lie in.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking, and has small blobs"
)]

mod blobs;
mod faults;
mod moto;
mod packed;
mod pieces;
mod s3;
mod staging;

use moto::Moto;
use s3::{BUCKET, StandIn, provide_tls};
use sojourn_blobs::{BlobStore, StoreSettings, WriteAheadLog};
use sojourn_protocol::digest::{BlobRef, Digest};
use tempfile::TempDir;

/// A store under test, with what it needs to live.
struct Subject {
    name: &'static str,
    blobs: BlobStore,
    _folders: Vec<TempDir>,
    _stand_in: Option<StandIn>,
    _moto: Option<Moto>,
}

/// Every store, empty.
async fn subjects() -> Vec<Subject> {
    provide_tls();
    let (own, shared) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let subject =
        |name, blobs| Subject { name, blobs, _folders: vec![], _stand_in: None, _moto: None };
    let opened = BlobStore::open(own.path()).unwrap();
    let above = TempDir::new().unwrap();
    let log = WriteAheadLog::open(above.path()).unwrap();
    let logged = BlobStore::with_log(&above.path().join("blobs"), log).unwrap();
    let url = format!("file://{}/made", shared.path().display());
    let by_url = BlobStore::connect(&url, &StoreSettings::default()).await.unwrap();
    let (stand_in, s3) = on_stand_in("a/prefix").await;
    let moto = Moto::start().await;
    let url = format!("s3://{BUCKET}/a/prefix");
    let on_moto = BlobStore::connect(&url, &moto.settings()).await.unwrap();
    vec![
        subject("memory", BlobStore::in_memory()),
        Subject { _folders: vec![own], ..subject("folder", opened) },
        Subject { _folders: vec![above], ..subject("folder with a log", logged) },
        Subject { _folders: vec![shared], ..subject("folder by URL", by_url) },
        Subject { _stand_in: Some(stand_in), ..subject("S3", s3) },
        Subject { _moto: Some(moto), ..subject("moto", on_moto) },
    ]
}

/// Blobs on a stand-in of their own.
async fn on_stand_in(prefix: &str) -> (StandIn, BlobStore) {
    provide_tls();
    let stand_in = StandIn::start().await;
    let url = format!("s3://{BUCKET}/{prefix}");
    let blobs = BlobStore::connect(&url, &stand_in.settings()).await.unwrap();
    (stand_in, blobs)
}

/// Bytes that no two seeds share.
fn content(seed: u8, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| seed.wrapping_add((at % 251) as u8)).collect()
}

fn named(bytes: &[u8]) -> BlobRef {
    BlobRef { sha256: Digest::of(bytes), bytes: bytes.len() as u64 }
}
