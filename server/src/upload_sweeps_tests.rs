//! Old uploads in the spool folder and in the store, for leases of each kind.

use super::*;
use sojourn_blobs::{BlobStore, Encoding, HashedBytes};
use sojourn_protocol::ids::HostId;
use std::future::ready;

const DAY: Duration = UNREPORTED_UPLOAD_TIMEOUT;

fn content(lease: u64) -> HashedBytes {
    HashedBytes::of(format!("checkpoint of lease {lease}").into_bytes().into())
}

/// Lease 1 is live, 2 is reported, 3 is unknown, and 9 was granted since.
fn wanted() -> LiveUploads {
    LiveUploads::with(&[(LeaseId(1), HostId(4))], &[LeaseId(2)], LeaseId(5))
}

const LEASES: [u64; 4] = [1, 2, 3, 9];

fn ids(left: &[(LeaseId, BlobRef)]) -> Vec<u64> {
    let mut ids: Vec<u64> = left.iter().map(|(lease, _)| lease.0).collect();
    ids.sort_unstable();
    ids
}

#[test]
fn the_spool_folder_keeps_what_was_reported_and_what_is_young() {
    let folder = tempfile::tempdir().unwrap();
    let uploads = Uploads::open(folder.path()).unwrap();
    for lease in LEASES {
        let (name, named) = (UploadName::Lease(LeaseId(lease)), content(lease));
        uploads.put(name, named.blob(), named.bytes()).unwrap();
        let name = UploadName::Delta(LeaseId(lease));
        let mut part = uploads.begin(name, named.blob(), 0, Encoding::Identity).unwrap();
        part.write(b"check").unwrap();
    }
    let now = Instant::now();
    assert_eq!(ids(&sweep_spool(&uploads, &wanted(), now).unwrap()), [1, 2, 9]);
    assert!(uploads.state(UploadName::Delta(LeaseId(1))).is_some());
    assert!(uploads.state(UploadName::Delta(LeaseId(3))).is_none());
    let later = now + DAY + Duration::from_secs(1);
    assert_eq!(ids(&sweep_spool(&uploads, &wanted(), later).unwrap()), [2]);
    assert!(uploads.state(UploadName::Delta(LeaseId(1))).is_none());
}

#[tokio::test]
async fn the_store_keeps_what_was_reported_and_what_is_young() {
    let staging = BlobStore::in_memory().staging();
    for lease in LEASES {
        staging.stage_bytes(LeaseId(lease), content(lease)).await.unwrap();
    }
    let now = staging.now().await.unwrap();
    let after =
        |past: Duration| UnixMillis(now.0 + u64::try_from(past.as_millis()).unwrap() + 1_000);
    let sweep = async |now| {
        let known = wanted();
        sweep_store(&staging, &known, now, || ready(Ok(wanted()))).await.unwrap()
    };
    let left = sweep(now).await;
    assert_eq!(ids(&left), LEASES);
    assert!(left.iter().all(|(lease, blob)| *blob == content(lease.0).blob()));
    let later = after(UNWANTED_UPLOAD_TIMEOUT);
    assert_eq!(ids(&sweep(later).await), [1, 2, 9]);
    assert_eq!(ids(&sweep(after(DAY)).await), [2]);
    assert_eq!(staging.list().await.unwrap().len(), 1);
}

/// The sweep's knowledge may be older than a report.
#[test]
fn an_upload_that_was_reported_since_stays_in_the_spool_folder() {
    let folder = tempfile::tempdir().unwrap();
    let uploads = Uploads::open(folder.path()).unwrap();
    let (name, named) = (UploadName::Lease(LeaseId(1)), content(1));
    uploads.put(name, named.blob(), named.bytes()).unwrap();
    assert!(uploads.report(name, named.blob()));
    let later = Instant::now() + DAY + Duration::from_secs(1);
    assert_eq!(ids(&sweep_spool(&uploads, &wanted(), later).unwrap()), [1]);
    uploads.take_back_report(name, named.blob());
    assert_eq!(ids(&sweep_spool(&uploads, &wanted(), later).unwrap()), [0; 0]);
}

#[tokio::test]
async fn an_upload_that_was_reported_since_stays_in_the_store() {
    let staging = BlobStore::in_memory().staging();
    for lease in [1, 3] {
        staging.stage_bytes(LeaseId(lease), content(lease)).await.unwrap();
    }
    let day = u64::try_from(DAY.as_millis()).unwrap();
    let later = UnixMillis(staging.now().await.unwrap().0 + day + 1_000);
    let since = LiveUploads::with(&[], &[LeaseId(1)], LeaseId(5));
    let refused = ApiError::new(ErrorKind::Unavailable, "another server is active");
    let unknown = || ready(Err(refused.clone()));
    let left = sweep_store(&staging, &wanted(), later, unknown).await.unwrap();
    assert_eq!(ids(&left), [1, 3], "nobody says what is reported");
    let left = sweep_store(&staging, &wanted(), later, || ready(Ok(since.clone()))).await.unwrap();
    assert_eq!(ids(&left), [1]);
}

/// The times of files are of no account: somebody may have set the clock.
#[test]
fn a_clock_that_is_wrong_deletes_no_upload_of_a_live_lease() {
    let folder = tempfile::tempdir().unwrap();
    let (name, named) = (UploadName::Lease(LeaseId(1)), content(1));
    Uploads::open(folder.path()).unwrap().put(name, named.blob(), named.bytes()).unwrap();
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let file = std::fs::File::options().write(true).open(entry.unwrap().path()).unwrap();
        file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    }
    let uploads = Uploads::open(folder.path()).unwrap();
    assert_eq!(ids(&sweep_spool(&uploads, &wanted(), Instant::now()).unwrap()), [1]);
}
