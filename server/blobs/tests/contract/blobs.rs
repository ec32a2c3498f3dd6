//! Blobs are whole and right, or absent.

use super::{content, named, subjects};
use bytes::Bytes;
use futures::TryStreamExt as _;
use sojourn_blobs::{BlobError, HashedBytes};

#[tokio::test]
async fn blobs_are_published_read_listed_and_deleted() {
    for subject in subjects().await {
        let (name, blobs) = (subject.name, &subject.blobs);
        assert_eq!(blobs.list().await.unwrap(), [], "{name}: a trial leaves nothing");
        let mut all = Vec::new();
        for bytes in [0, 1, 5000, 20 << 20] {
            let content = content(9, bytes);
            let blob = named(&content);
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), &content).unwrap();
            assert_eq!(blobs.stored_size(blob.sha256).await.unwrap(), None, "{name}");
            blobs.publish(blob, file.path()).await.unwrap();
            // Once more is no error, as somebody else would do it.
            blobs.publish_bytes(HashedBytes::of(Bytes::from(content.clone()))).await.unwrap();
            assert_eq!(blobs.stored_size(blob.sha256).await.unwrap(), Some(blob.bytes), "{name}");
            assert_eq!(blobs.size(blob.sha256).await.unwrap(), Some(blob.bytes), "{name}");
            assert_eq!(blobs.bytes(blob.sha256).await.unwrap(), content, "{name}");
            let (start, end) = (blob.bytes / 3, blob.bytes / 3 * 2);
            let read = blobs.read(blob.sha256, start..end).await.unwrap();
            let read: Vec<Bytes> = read.try_collect().await.unwrap();
            assert_eq!(read.concat(), content[start as usize..end as usize], "{name}");
            let outside = blobs.read(blob.sha256, 0..blob.bytes + 1).await.err().unwrap();
            assert!(matches!(outside, BlobError::Range { .. }), "{name}: {outside:?}");
            all.push(blob);
        }
        all.sort_unstable();
        assert_eq!(blobs.list().await.unwrap(), all, "{name}");
        let gone = all[1].sha256;
        blobs.delete(gone).await.unwrap();
        blobs.delete(gone).await.unwrap();
        assert_eq!(blobs.size(gone).await.unwrap(), None, "{name}");
        let missing = blobs.bytes(gone).await.unwrap_err();
        assert!(matches!(missing, BlobError::Missing(blob) if blob == gone), "{name}: {missing:?}");
    }
}

#[tokio::test]
async fn a_file_with_another_digest_is_not_published() {
    for subject in subjects().await {
        for bytes in [5, 9 << 20] {
            let blob = named(&content(1, bytes));
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), content(2, bytes)).unwrap();
            let refused = subject.blobs.publish(blob, file.path()).await.unwrap_err();
            assert!(matches!(refused, BlobError::Unverified { .. }), "{refused:?}");
            assert_eq!(subject.blobs.list().await.unwrap(), [], "{}", subject.name);
        }
    }
}

#[tokio::test]
async fn prepared_bytes_are_a_blob_once_they_are_published() {
    for subject in subjects().await {
        let (name, blobs) = (subject.name, &subject.blobs);
        for bytes in [0, 5000, 200_000, 9 << 20] {
            let content = content(3, bytes);
            let blob = named(&content);
            let prepared = blobs.prepare(Bytes::from(content.clone())).await.unwrap();
            assert_eq!(prepared.named().blob(), blob, "{name}");
            assert_eq!(blobs.stored_size(blob.sha256).await.unwrap(), None, "{name}");
            assert_eq!(blobs.list().await.unwrap(), [], "{name}");
            blobs.publish_prepared(&prepared).await.unwrap();
            assert_eq!(blobs.list().await.unwrap(), [blob], "{name}");
            assert_eq!(blobs.size(blob.sha256).await.unwrap(), Some(blob.bytes), "{name}");
            blobs.delete(blob.sha256).await.unwrap();
            // Once more, as for a version that was deleted before it was offered.
            blobs.publish_prepared(&prepared).await.unwrap();
            assert_eq!(blobs.bytes(blob.sha256).await.unwrap(), content, "{name}");
            blobs.delete(blob.sha256).await.unwrap();
        }
    }
}
