//! Compressed copies of blobs are made once, and go with their blobs.

use super::{content, named, subjects};
use bytes::Bytes;
use futures::TryStreamExt as _;
use sojourn_blobs::HashedBytes;

#[tokio::test]
async fn a_copy_is_made_once_and_goes_with_its_blob() {
    for subject in subjects().await {
        let (name, blobs) = (subject.name, &subject.blobs);
        let raw = content(3, 1 << 20);
        let blob = named(&raw);
        assert!(blobs.packed_size(blob).await.is_err(), "{name}: there is no such blob");
        assert_eq!(blobs.list_packed().await.unwrap(), [], "{name}");
        blobs.publish_bytes(HashedBytes::of(Bytes::from(raw.clone()))).await.unwrap();
        let bytes = blobs.packed_size(blob).await.unwrap().unwrap();
        assert_eq!(blobs.packed_size(blob).await.unwrap(), Some(bytes), "{name}");
        assert!(bytes < 10_000, "{name}: {bytes}");
        let (length, stream) = blobs.read_packed(blob.sha256).await.unwrap();
        let packed: Vec<Bytes> = stream.try_collect().await.unwrap();
        assert_eq!(length, bytes, "{name}");
        assert_eq!(zstd::decode_all(&packed.concat()[..]).unwrap(), raw, "{name}");
        // It is no blob of its own.
        assert_eq!(blobs.list().await.unwrap(), [blob], "{name}");
        let copies = blobs.list_packed().await.unwrap();
        let known: Vec<_> = copies.iter().map(|copy| (copy.blob, copy.bytes)).collect();
        assert_eq!(known, [(blob.sha256, bytes)], "{name}");
        blobs.delete(blob.sha256).await.unwrap();
        assert_eq!(blobs.list_packed().await.unwrap(), [], "{name}");
        assert!(blobs.read_packed(blob.sha256).await.is_err(), "{name}");
    }
}

#[tokio::test]
async fn small_blobs_are_not_compressed() {
    for subject in subjects().await {
        let raw = content(3, 4000);
        let blob = named(&raw);
        subject.blobs.publish_bytes(HashedBytes::of(Bytes::from(raw))).await.unwrap();
        assert_eq!(subject.blobs.packed_size(blob).await.unwrap(), None, "{}", subject.name);
        assert_eq!(subject.blobs.list_packed().await.unwrap(), [], "{}", subject.name);
    }
}
