//! Uploads that are staged are whole, right and their lease's own.

use super::{content, named, subjects};
use bytes::Bytes;
use sojourn_blobs::{BlobError, HashedBytes, UploadError};
use sojourn_protocol::{digest::BlobRef, ids::LeaseId, time::UnixMillis};

#[tokio::test]
async fn a_staged_upload_is_read_by_its_digest() {
    for subject in subjects().await {
        let staging = subject.blobs.staging();
        // Over the size of one part and one range.
        for bytes in [0, 5, 20 << 20] {
            let content = content(1, bytes);
            let blob = named(&content);
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), &content).unwrap();
            assert!(!staging.is_staged(LeaseId(7), blob).await.unwrap(), "{}", subject.name);
            staging.stage(LeaseId(7), blob, file.path()).await.unwrap();
            assert!(staging.is_staged(LeaseId(7), blob).await.unwrap(), "{}", subject.name);
            let read = subject.blobs.staging().staged(LeaseId(7), blob).await.unwrap();
            assert_eq!(read.bytes(), &content, "{}", subject.name);
            let (start, end) = (bytes as u64 / 3, bytes as u64 / 3 * 2);
            if start < end {
                let read = staging.staged_range(LeaseId(7), blob, start..end).await.unwrap();
                assert_eq!(read, content[start as usize..end as usize], "{}", subject.name);
            }
            let other = BlobRef { bytes: blob.bytes + 1, ..blob };
            assert!(!staging.is_staged(LeaseId(7), other).await.unwrap());
            let missing = staging.staged(LeaseId(70), blob).await.unwrap_err();
            assert!(matches!(missing, UploadError::NotComplete { .. }), "{missing:?}");
        }
    }
}

#[tokio::test]
async fn a_file_with_another_digest_is_not_staged() {
    for subject in subjects().await {
        let staging = subject.blobs.staging();
        for bytes in [5, 9 << 20] {
            let blob = named(&content(1, bytes));
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), content(2, bytes)).unwrap();
            let refused = staging.stage(LeaseId(7), blob, file.path()).await.unwrap_err();
            assert!(matches!(refused, BlobError::Unverified { .. }), "{refused:?}");
            assert!(!staging.is_staged(LeaseId(7), blob).await.unwrap(), "{}", subject.name);
            assert!(staging.list().await.unwrap().is_empty(), "{}", subject.name);
        }
    }
}

#[tokio::test]
async fn an_upload_in_parts_is_complete_with_its_last_part() {
    for subject in subjects().await {
        let staging = subject.blobs.staging();
        let (first, second) = (content(1, 1000), content(2, 500));
        let all = [first.clone(), second.clone()].concat();
        let (blob, parts) = (named(&all), [named(&first), named(&second)]);
        // As the store's own URLs put them.
        let put =
            |bytes: Vec<u8>| staging.stage_bytes(LeaseId(7), HashedBytes::of(Bytes::from(bytes)));
        put(first).await.unwrap();
        let absent = staging.absent(LeaseId(7), &parts).await.unwrap();
        assert_eq!(absent, [parts[1]], "{}", subject.name);
        let early = staging.join(LeaseId(7), blob, &parts).await.unwrap_err();
        assert!(matches!(early, BlobError::Missing(part) if part == parts[1].sha256));
        assert!(!staging.is_staged(LeaseId(7), blob).await.unwrap(), "{}", subject.name);
        put(second).await.unwrap();
        staging.join(LeaseId(7), blob, &parts).await.unwrap();
        assert!(staging.is_staged(LeaseId(7), blob).await.unwrap(), "{}", subject.name);
        let read = staging.staged(LeaseId(7), blob).await.unwrap();
        assert_eq!(read.bytes(), &all);
        for range in [0..1500, 10..20, 999..1001, 1000..1500, 1499..1500] {
            let read = staging.staged_range(LeaseId(7), blob, range.clone()).await.unwrap();
            assert_eq!(read, all[range.start as usize..range.end as usize], "{}", subject.name);
        }
        let missing = staging.staged_range(LeaseId(8), blob, 0..1).await.unwrap_err();
        assert!(matches!(missing, UploadError::NotComplete { .. }), "{missing:?}");
        staging.publish(LeaseId(7), &read).await.unwrap();
        assert_eq!(subject.blobs.bytes(blob.sha256).await.unwrap(), all);

        // Every part is what it says, and the whole isn't.
        let swapped = [parts[1], parts[0]];
        staging.join(LeaseId(7), blob, &swapped).await.unwrap();
        let wrong = staging.staged(LeaseId(7), blob).await.unwrap_err();
        assert!(matches!(wrong, UploadError::DigestMismatch { .. }), "{wrong:?}");
    }
}

#[tokio::test]
async fn an_upload_becomes_a_blob_and_is_deleted_with_its_lease() {
    for subject in subjects().await {
        let staging = subject.blobs.staging();
        let upload = HashedBytes::of(Bytes::from(content(3, 4000)));
        let blob = upload.blob();
        for lease in [1, 12] {
            staging.stage_bytes(LeaseId(lease), upload.clone()).await.unwrap();
        }
        staging.publish(LeaseId(1), &upload).await.unwrap();
        staging.unstage(LeaseId(1)).await.unwrap();
        staging.unstage(LeaseId(1)).await.unwrap();
        assert!(!staging.is_staged(LeaseId(1), blob).await.unwrap(), "{}", subject.name);
        assert!(staging.is_staged(LeaseId(12), blob).await.unwrap(), "{}", subject.name);
        assert_eq!(subject.blobs.size(blob.sha256).await.unwrap(), Some(blob.bytes));
        assert_eq!(subject.blobs.list().await.unwrap(), [blob], "staged ones are no blobs");
        // What was unstaged between reading and publishing is published all the same.
        subject.blobs.delete(blob.sha256).await.unwrap();
        staging.publish(LeaseId(1), &upload).await.unwrap();
        assert_eq!(subject.blobs.size(blob.sha256).await.unwrap(), Some(blob.bytes));
    }
}

#[tokio::test]
async fn each_object_of_a_lease_is_listed_with_its_time_and_can_be_removed() {
    for subject in subjects().await {
        let staging = subject.blobs.staging();
        let upload = HashedBytes::of(Bytes::from(content(3, 40)));
        for lease in [1, 2] {
            staging.stage_bytes(LeaseId(lease), upload.clone()).await.unwrap();
        }
        staging.join(LeaseId(2), upload.blob(), &[upload.blob()]).await.unwrap();
        let now = staging.now().await.unwrap();
        let all = staging.list().await.unwrap();
        // The header with the time of one object has whole seconds, lists have milliseconds.
        let seconds = |at: UnixMillis| at.0 / 1_000;
        assert!(all.iter().all(|of| seconds(of.at) <= seconds(now)), "{}", subject.name);
        let of = |lease: u64| all.iter().filter(move |staged| staged.lease == LeaseId(lease));
        let blobs: Vec<_> = of(2).map(|staged| staged.blob()).collect();
        assert_eq!(of(1).map(|staged| staged.blob()).collect::<Vec<_>>(), [Some(upload.blob())]);
        assert!(
            blobs.len() == 2 && blobs.contains(&None),
            "{}: a manifest is no blob",
            subject.name
        );
        for staged in of(1) {
            staging.remove(staged).await.unwrap();
            staging.remove(staged).await.unwrap();
        }
        let left = staging.list().await.unwrap();
        assert!(left.iter().all(|staged| staged.lease == LeaseId(2)), "{}", subject.name);
        assert_eq!(left.len(), 2, "{}", subject.name);
    }
}
