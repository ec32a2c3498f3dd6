//! Large blobs that are stored as pieces, which several processes can put and fetch side by side.
//!
//! ```text
//! ranges/<name>                 a piece: one zstd frame; whoever makes it chooses a name that nobody else does
//! sha256/ab/<sha256>.ranges     put last, by whoever has hashed the whole: the index, which makes it a blob
//! ```
//!
//! Each piece belongs to one index, so that it goes with its blob. Pieces that no index names are left of a version
//! that was never ended; they go after a grace period. A piece is checked by its own digest whenever it is read.

use crate::{
    error::BlobError,
    objects::{CONCURRENT_PARTS, index_key, indexed, time_of},
    store::{BlobBytes, BlobStore},
};
use bytes::{Bytes, BytesMut};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use object_store::{Error, ObjectStore, ObjectStoreExt as _, PutPayload, path::Path as Key};
use sojourn_codec::ranges::{Index, Piece, PieceError};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::LeaseId,
    quantity::to_usize,
    time::UnixMillis,
};
use std::{collections::BTreeSet, ops::Range, sync::Arc};

/// The folder of all pieces.
pub(crate) const FOLDER: &str = "ranges";
/// The largest index, in bytes: one of 50,000 pieces has about 8 MiB.
const MAX_INDEX_BYTES: u64 = 8 << 20;

impl BlobStore {
    /// Stores a piece of a blob whose index comes later. It is durable when this returns.
    ///
    /// # Errors
    /// [`BlobError::Full`], or where the store fails.
    pub async fn put_piece(&self, piece: &Piece, packed: Bytes) -> Result<(), BlobError> {
        let put = self.store().put(&piece_key(&piece.name), PutPayload::from(packed)).await;
        put.map(drop).map_err(BlobError::store)
    }

    /// The raw bytes of a piece of `blob`, found to be right.
    ///
    /// # Errors
    /// [`BlobError::Missing`] and [`BlobError::Altered`] of the blob, or where the store fails.
    pub async fn piece(&self, blob: Digest, piece: &Piece) -> Result<Bytes, BlobError> {
        read_piece(Arc::clone(self.store()), blob, piece.clone()).await
    }

    /// Makes pieces that are all stored a blob, and returns once that lasts. Whoever does so has found all of their
    /// bytes, one piece after the other, to have the blob's digest.
    ///
    /// # Errors
    /// [`BlobError::Full`], or where the store fails.
    pub async fn publish_ranged(&self, index: &Index) -> Result<(), BlobError> {
        let key = index_key(index.blob().sha256);
        let put = self.store().put(&key, PutPayload::from(index.write())).await;
        put.map(drop).map_err(BlobError::store)
    }

    /// The bytes `range` of a blob, of which no others are fetched where it is stored in pieces.
    ///
    /// # Errors
    /// As [`BlobStore::read`].
    pub async fn range(&self, blob: Digest, range: Range<u64>) -> Result<Bytes, BlobError> {
        let length = to_usize(range.end.saturating_sub(range.start));
        let mut stream = self.read(blob, range).await?;
        let Some(first) = stream.try_next().await? else { return Ok(Bytes::new()) };
        if first.len() == length {
            return Ok(first);
        }
        let mut all = BytesMut::from(first);
        all.reserve(length.saturating_sub(all.len()));
        while let Some(chunk) = stream.try_next().await? {
            all.extend_from_slice(&chunk);
        }
        Ok(all.freeze())
    }

    /// As [`BlobStore::size`], every piece having been read where there are pieces: those are else looked at only when
    /// somebody reads them.
    ///
    /// # Errors
    /// As [`BlobStore::size`], and [`BlobError::Missing`] where a piece is.
    pub async fn size_of_whole(&self, blob: Digest) -> Result<Option<u64>, BlobError> {
        let size = self.size(blob).await?;
        if size.is_some()
            && self.plain_size(blob).await?.is_none()
            && let Some(index) = self.index(blob).await?
        {
            let read = self.read_ranged(&index, 0..index.blob().bytes);
            read.try_for_each(|_| std::future::ready(Ok(()))).await?;
        }
        Ok(size)
    }

    /// Throws away pieces that were put before `before`, by the store's clock, that no index names, and that weren't made
    /// of the upload of a lease for which `wanted` holds: such a merge may still be under way. Where `dry_run` says so,
    /// it only looks. Gives the stored size of each.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn sweep_pieces(
        &self,
        before: UnixMillis,
        dry_run: bool,
        wanted: impl Fn(LeaseId) -> bool,
    ) -> Result<Vec<u64>, BlobError> {
        let store = self.store();
        let mut old = Vec::new();
        let mut objects = store.list(Some(&Key::from(FOLDER)));
        while let Some(meta) = objects.try_next().await.map_err(BlobError::store)? {
            if time_of(&meta) < before && !lease_of(&meta.location).is_some_and(&wanted) {
                old.push(meta);
            }
        }
        if old.is_empty() {
            return Ok(Vec::new());
        }
        // Read after the list, so that it names the pieces of indexes that were put meanwhile.
        let named = self.named_pieces().await?;
        let mut swept = Vec::new();
        for meta in old {
            if meta.location.filename().is_none_or(|name| !named.contains(name)) {
                if !dry_run {
                    delete(store, &meta.location).await?;
                }
                swept.push(meta.size);
            }
        }
        Ok(swept)
    }

    /// The names of all pieces that belong to blobs.
    async fn named_pieces(&self) -> Result<BTreeSet<String>, BlobError> {
        let mut named = BTreeSet::new();
        let mut objects = self.store().list(Some(&Key::from("sha256")));
        while let Some(meta) = objects.try_next().await.map_err(BlobError::store)? {
            if let Some(blob) = indexed(&meta.location)
                && let Ok(Some(index)) = self.index(blob).await.or_else(of_damaged)
            {
                named.extend(index.pieces().iter().map(|piece| piece.name.clone()));
            }
        }
        Ok(named)
    }

    /// The index of a blob that is stored in pieces; `None` where there is none.
    pub(crate) async fn index(&self, blob: Digest) -> Result<Option<Index>, BlobError> {
        let got = match self.store().get(&index_key(blob)).await {
            Ok(got) => got,
            Err(Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(BlobError::store(error)),
        };
        if got.meta.size > MAX_INDEX_BYTES {
            return Err(BlobError::Altered { blob, found: Digest::of(b"") });
        }
        let bytes = got.bytes().await.map_err(BlobError::store)?;
        match Index::read(&bytes) {
            Ok(index) if index.blob().sha256 == blob => Ok(Some(index)),
            _ => Err(BlobError::Altered { blob, found: Digest::of(&bytes) }),
        }
    }

    /// The bytes `range` of a blob that is stored in pieces.
    pub(crate) fn read_ranged(&self, index: &Index, range: Range<u64>) -> BlobBytes {
        let (store, blob) = (Arc::clone(self.store()), index.blob().sha256);
        let pieces: Vec<(Piece, Range<u64>)> =
            index.within(range).map(|(piece, of)| (piece.clone(), of)).collect();
        let read = stream::iter(pieces).map(move |(piece, of)| {
            let store = Arc::clone(&store);
            async move {
                let place = usize::try_from(of.start).ok().zip(usize::try_from(of.end).ok());
                let bytes = read_piece(store, blob, piece).await?;
                // A piece has as many bytes as its index says.
                Ok(place.map_or_else(Bytes::new, |(start, end)| bytes.slice(start..end)))
            }
        });
        read.buffered(CONCURRENT_PARTS).boxed()
    }

    /// All bytes of a blob that is stored in pieces, hashed as they are read.
    pub(crate) async fn bytes_ranged(&self, index: &Index) -> Result<Bytes, BlobError> {
        let BlobRef { sha256: blob, bytes } = index.blob();
        let mut stream = self.read_ranged(index, 0..bytes);
        let mut all = BytesMut::new();
        while let Some(chunk) = stream.try_next().await? {
            all.reserve(to_usize(bytes).saturating_sub(all.len()));
            all.extend_from_slice(&chunk);
        }
        let found = Digest::of(&all);
        if found == blob { Ok(all.freeze()) } else { Err(BlobError::Altered { blob, found }) }
    }

    /// Removes what makes a blob of pieces, and then the pieces.
    pub(crate) async fn delete_ranged(&self, blob: Digest) -> Result<(), BlobError> {
        let index = match self.index(blob).await {
            Ok(None) => return Ok(()),
            Ok(index) => index,
            // The pieces are unknown without the index: a sweep deletes them.
            Err(BlobError::Altered { .. }) => None,
            Err(error) => return Err(error),
        };
        delete(self.store(), &index_key(blob)).await?;
        for piece in index.iter().flat_map(Index::pieces) {
            delete(self.store(), &piece_key(&piece.name)).await?;
        }
        Ok(())
    }

    /// The size of a blob that an object is the index of; that of the index where nobody can read it.
    pub(crate) async fn size_indexed(&self, blob: Digest, stored: u64) -> Result<u64, BlobError> {
        let index = self.index(blob).await.or_else(of_damaged)?;
        Ok(index.map_or(stored, |index| index.blob().bytes))
    }
}

/// An index that is damaged names nothing.
fn of_damaged(error: BlobError) -> Result<Option<Index>, BlobError> {
    match error {
        BlobError::Altered { .. } => Ok(None),
        error => Err(error),
    }
}

async fn read_piece(
    store: Arc<dyn ObjectStore>,
    blob: Digest,
    piece: Piece,
) -> Result<Bytes, BlobError> {
    let got = match store.get(&piece_key(&piece.name)).await {
        // More than was put there is nothing to be held in memory.
        Ok(got) if got.meta.size <= piece.packed => got,
        Ok(_) => return Err(BlobError::Altered { blob, found: Digest::of(b"") }),
        Err(Error::NotFound { .. }) => return Err(BlobError::Missing(blob)),
        Err(error) => return Err(BlobError::store(error)),
    };
    let packed = got.bytes().await.map_err(BlobError::store)?;
    // It takes a core for a while, which others may wait for.
    let unpacked = tokio::task::spawn_blocking(move || {
        piece.unpack(&packed).map_err(|error| match error {
            PieceError::Digest { found, .. } => found,
            PieceError::Zstd(_) | PieceError::Length { .. } => Digest::of(&packed),
        })
    });
    match unpacked.await {
        Ok(Ok(bytes)) => Ok(Bytes::from(bytes)),
        Ok(Err(found)) => Err(BlobError::Altered { blob, found }),
        Err(_) => Err(BlobError::Shortened(blob)),
    }
}

/// Deletes an object. A missing one is no error.
pub(crate) async fn delete(store: &Arc<dyn ObjectStore>, key: &Key) -> Result<(), BlobError> {
    match store.delete(key).await {
        Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
        Err(error) => Err(BlobError::store(error)),
    }
}

/// The lease of whose upload a piece was made, as its name says.
fn lease_of(piece: &Key) -> Option<LeaseId> {
    let lease = piece.filename()?.strip_prefix("lease-")?;
    lease.split('-').next()?.parse().ok()
}

pub(crate) fn piece_key(name: &str) -> Key {
    Key::from(format!("{FOLDER}/{name}"))
}
