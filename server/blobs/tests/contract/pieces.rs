//! A blob in pieces is read like any other, is there once its index is, and goes with all that belongs to it.

use super::{content, named, subjects};
use bytes::Bytes;
use futures::TryStreamExt as _;
use sojourn_blobs::{BlobError, BlobStore, HashedBytes};
use sojourn_codec::ranges::{Index, Piece, pack};
use sojourn_protocol::{digest::BlobRef, ids::LeaseId, time::UnixMillis};

/// Puts the pieces of a blob there; nothing says yet that they are one.
async fn put(blobs: &BlobStore, maker: &str, content: &[u8], lengths: &[usize]) -> Index {
    let (mut pieces, mut rest) = (Vec::new(), content);
    for (at, length) in lengths.iter().enumerate() {
        let (raw, later) = rest.split_at(*length);
        rest = later;
        let packed = pack(raw).unwrap();
        let name = format!("{maker}-{at}");
        let piece = Piece { name, raw: named(raw), packed: packed.len() as u64 };
        blobs.put_piece(&piece, Bytes::from(packed)).await.unwrap();
        pieces.push(piece);
    }
    Index::new(named(content), pieces).unwrap()
}

/// A time at which all that is there is old.
async fn later(blobs: &BlobStore) -> UnixMillis {
    UnixMillis(blobs.now().await.unwrap().0 + 60_000)
}

#[tokio::test]
async fn a_blob_in_pieces_is_read_listed_and_deleted_as_any_other() {
    for subject in subjects().await {
        let (name, blobs) = (subject.name, &subject.blobs);
        let content = content(9, 10_000);
        let blob = named(&content);
        let index = put(blobs, "lease-1", &content, &[3000, 1, 6000, 999]).await;
        assert_eq!(blobs.size(blob.sha256).await.unwrap(), None, "{name}: without an index");
        assert_eq!(blobs.stored_at(blob.sha256).await.unwrap(), None, "{name}");
        assert_eq!(blobs.list().await.unwrap(), [], "{name}");
        blobs.publish_ranged(&index).await.unwrap();

        assert_eq!(blobs.size(blob.sha256).await.unwrap(), Some(10_000), "{name}");
        assert_eq!(blobs.size_of_whole(blob.sha256).await.unwrap(), Some(10_000), "{name}");
        assert_eq!(blobs.stored_size(blob.sha256).await.unwrap(), Some(10_000), "{name}");
        assert_eq!(blobs.plain_size(blob.sha256).await.unwrap(), None, "{name}");
        assert_eq!(blobs.bytes(blob.sha256).await.unwrap(), content, "{name}");
        for range in [0..10_000, 2999..3002, 3000..3001, 5000..5000, 9999..10_000] {
            let read = blobs.read(blob.sha256, range.clone()).await.unwrap();
            let read: Vec<Bytes> = read.try_collect().await.unwrap();
            let expected = &content[range.start as usize..range.end as usize];
            assert_eq!(read.concat(), expected, "{name}: {range:?}");
            assert_eq!(blobs.range(blob.sha256, range).await.unwrap(), expected, "{name}");
        }
        let outside = blobs.read(blob.sha256, 0..10_001).await.err().unwrap();
        assert!(matches!(outside, BlobError::Range { bytes: 10_000, .. }), "{name}: {outside:?}");

        // The same one as a whole, beside another.
        let small = HashedBytes::of(Bytes::from_static(b"small"));
        blobs.publish_bytes(small.clone()).await.unwrap();
        blobs.publish_bytes(HashedBytes::of(Bytes::from(content.clone()))).await.unwrap();
        let mut all = [blob, small.blob()];
        all.sort_unstable();
        assert_eq!(blobs.list().await.unwrap(), all, "{name}");
        assert!(blobs.stored_at(blob.sha256).await.unwrap() <= Some(later(blobs).await), "{name}");

        blobs.delete(blob.sha256).await.unwrap();
        blobs.delete(blob.sha256).await.unwrap();
        assert_eq!(blobs.list().await.unwrap(), [small.blob()], "{name}");
        let gone = blobs.bytes(blob.sha256).await.unwrap_err();
        assert!(matches!(gone, BlobError::Missing(gone) if gone == blob.sha256), "{name}");
        assert!(blobs.read(blob.sha256, 0..1).await.is_err(), "{name}");
        let left = blobs.sweep_pieces(later(blobs).await, false, |_| false).await.unwrap();
        assert!(left.is_empty(), "{name}: its pieces went with it: {left:?}");
    }
}

#[tokio::test]
async fn pieces_that_were_altered_or_lost_are_not_served() {
    for subject in subjects().await {
        let (name, blobs) = (subject.name, &subject.blobs);
        let content = content(3, 3000);
        let blob = named(&content);
        let index = put(blobs, "lease-2", &content, &[1000, 1000, 1000]).await;
        blobs.publish_ranged(&index).await.unwrap();
        let second = &index.pieces()[1];
        let is_altered = |error: &BlobError| matches!(error, BlobError::Altered { blob: of, .. } if *of == blob.sha256);
        let other = Bytes::from(pack(&vec![7; 1000]).unwrap());
        for bad in [other, Bytes::from_static(b"no zstd"), Bytes::new(), vec![0; 9000].into()] {
            blobs.put_piece(second, bad).await.unwrap();
            let refused = blobs.range(blob.sha256, 1500..1600).await.unwrap_err();
            assert!(is_altered(&refused), "{name}: {refused:?}");
            let refused = blobs.size_of_whole(blob.sha256).await.unwrap_err();
            assert!(is_altered(&refused), "{name}: {refused:?}");
            assert!(is_altered(&blobs.bytes(blob.sha256).await.unwrap_err()), "{name}");
            // What isn't read needn't be right.
            let read = blobs.range(blob.sha256, 2000..2010).await.unwrap();
            assert_eq!(read, content[2000..2010], "{name}");
        }
        // Put by somebody else in another order: each piece is right, and the whole isn't.
        let mut pieces = index.pieces().to_vec();
        pieces.swap(0, 2);
        let swapped = Index::new(blob, pieces).unwrap();
        blobs.put_piece(second, Bytes::from(pack(&content[1000..2000]).unwrap())).await.unwrap();
        blobs.publish_ranged(&swapped).await.unwrap();
        assert!(is_altered(&blobs.bytes(blob.sha256).await.unwrap_err()), "{name}");
        blobs.publish_ranged(&index).await.unwrap();
        assert_eq!(blobs.bytes(blob.sha256).await.unwrap(), content, "{name}");
    }
}

#[tokio::test]
async fn a_sweep_deletes_old_pieces_without_a_blob() {
    for subject in subjects().await {
        let (name, blobs) = (subject.name, &subject.blobs);
        let content = content(5, 2000);
        let blob = named(&content);
        let index = put(blobs, "lease-3", &content, &[1500, 500]).await;
        blobs.publish_ranged(&index).await.unwrap();
        // Made twice, as when its first maker was taken for dead.
        let again = put(blobs, "lease-4", &content, &[1000, 1000]).await;
        let stored: u64 = again.pieces().iter().map(|piece| piece.packed).sum();
        let sweep_but = async |before, dry_run, kept: LeaseId| -> u64 {
            let wanted = |lease| lease == kept;
            blobs.sweep_pieces(before, dry_run, wanted).await.unwrap().into_iter().sum()
        };
        let sweep = async |before, dry_run| sweep_but(before, dry_run, LeaseId(9)).await;
        assert_eq!(sweep(UnixMillis(0), false).await, 0, "{name}: none is old");
        let later = later(blobs).await;
        let kept = sweep_but(later, false, LeaseId(4)).await;
        assert_eq!(kept, 0, "{name}: its merge may be under way");
        assert_eq!(sweep(later, true).await, stored, "{name}");
        assert_eq!(sweep(later, false).await, stored, "{name}");
        assert_eq!(sweep(later, false).await, 0, "{name}");
        assert_eq!(blobs.bytes(blob.sha256).await.unwrap(), content, "{name}");
        let of_other = BlobRef { bytes: 2000, ..named(b"other") };
        let dangling = Index::new(of_other, again.pieces().to_vec()).unwrap();
        blobs.publish_ranged(&dangling).await.unwrap();
        let lost = blobs.size_of_whole(of_other.sha256).await.unwrap_err();
        assert!(matches!(lost, BlobError::Missing(blob) if blob == of_other.sha256), "{name}");
    }
}
