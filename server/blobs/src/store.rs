//! Blobs by digest over any `object_store`. A blob is whole or absent; altered ones are never served.

use crate::{
    error::BlobError,
    hashed_bytes::HashedBytes,
    hold::{Hold, Holds},
    logged::Logged,
    objects::{CONCURRENT_PARTS, blob_key, size_of},
    write_ahead_log::SmallFile,
};
use bytes::{Bytes, BytesMut};
use futures::{
    StreamExt as _, TryStreamExt as _,
    stream::{BoxStream, FuturesUnordered},
};
use object_store::{
    GetOptions, GetRange, GetResult, MultipartUpload as _, ObjectStore, ObjectStoreExt as _,
    PutPayload, PutResult, memory::InMemory, path::Path as Key, signer::Signer,
};
use parking_lot::Mutex;
use sojourn_codec::ranges::Index;
use sojourn_protocol::{
    digest::{BlobRef, Digest, Hasher},
    quantity::to_usize,
};
use std::{collections::HashMap, ops::Range, path::Path, sync::Arc};
use tokio::io::AsyncReadExt as _;

/// Bytes moved at once; S3 wants at least 5 MiB in every part but the last.
const PART_BYTES: usize = 8 << 20;

/// A stream of a blob's bytes.
pub type BlobBytes = BoxStream<'static, Result<Bytes, BlobError>>;

/// Content-addressed blobs; cheap to clone.
#[derive(Debug, Clone)]
pub struct BlobStore {
    store: Arc<dyn ObjectStore>,
    /// The folder that the objects are in, where they are in one.
    folder: Option<Arc<Path>>,
    /// The e-tags of objects whose digest this process has verified.
    checked: Arc<Mutex<HashMap<Digest, String>>>,
    holds: Holds,
    remote: Option<Remote>,
    logged: Option<Logged>,
}

/// How a blob is stored.
#[derive(Debug)]
enum Stored {
    /// As one object, of this size in bytes.
    Whole(u64),
    Pieces(Index),
}

/// The further abilities of a remote store.
#[derive(Debug, Clone)]
pub(crate) struct Remote {
    /// Signs URLs, each for one request.
    pub(crate) signer: Arc<dyn Signer>,
    /// The store refuses bytes that an upload's URL wasn't signed for.
    pub(crate) binds: bool,
}

impl BlobStore {
    /// Blobs in memory, for tests and simulations.
    #[must_use]
    pub fn in_memory() -> Self {
        Self::over(Arc::new(InMemory::new()))
    }

    /// Blobs in any object store.
    #[must_use]
    pub fn over(store: Arc<dyn ObjectStore>) -> Self {
        let (checked, holds) = (Arc::default(), Holds::default());
        Self { store, folder: None, checked, holds, remote: None, logged: None }
    }

    /// The size of a blob, once its bytes have been found to have its digest; `None` where it isn't
    /// there. The check is made once for each stored object. Pieces, where it is stored so, are checked
    /// whenever they are read.
    ///
    /// # Errors
    /// [`BlobError::Altered`], or where the store fails.
    pub async fn size(&self, blob: Digest) -> Result<Option<u64>, BlobError> {
        Ok(self.find(blob).await?.map(|found| match found {
            Stored::Whole(bytes) => bytes,
            Stored::Pieces(index) => index.blob().bytes,
        }))
    }

    async fn find(&self, blob: Digest) -> Result<Option<Stored>, BlobError> {
        if let Some(file) = self.small(blob) {
            return Ok(Some(Stored::Whole(file.bytes.len() as u64)));
        }
        let meta = match self.store.head(&blob_key(blob)).await {
            Ok(meta) => meta,
            Err(object_store::Error::NotFound { .. }) => {
                return Ok(self.index(blob).await?.map(Stored::Pieces));
            }
            Err(error) => return Err(BlobError::store(error)),
        };
        let known = meta.e_tag.is_some() && self.checked.lock().get(&blob) == meta.e_tag.as_ref();
        if !known {
            let got = self.store.get(&blob_key(blob)).await.map_err(BlobError::store)?;
            let e_tag = got.meta.e_tag.clone();
            let mut hasher = Hasher::default();
            let mut stream = whole(blob, got);
            while let Some(chunk) = stream.try_next().await? {
                hasher.update(&chunk);
            }
            let found = hasher.finish();
            if found != blob {
                self.checked.lock().remove(&blob);
                return Err(BlobError::Altered { blob, found });
            }
            self.remember(blob, e_tag);
        }
        Ok(Some(Stored::Whole(meta.size)))
    }

    /// The bytes `range` of a blob, as a stream that fails rather than ending early.
    ///
    /// # Errors
    /// [`BlobError::Missing`], [`BlobError::Altered`], [`BlobError::Range`], or where the store fails.
    pub async fn read(&self, blob: Digest, range: Range<u64>) -> Result<BlobBytes, BlobError> {
        let stored = self.find(blob).await?.ok_or(BlobError::Missing(blob))?;
        let bytes = match &stored {
            Stored::Whole(bytes) => *bytes,
            Stored::Pieces(index) => index.blob().bytes,
        };
        if range.start > range.end || range.end > bytes {
            return Err(BlobError::Range { blob, bytes, start: range.start, end: range.end });
        }
        if range.is_empty() {
            return Ok(futures::stream::empty().boxed());
        }
        if let Stored::Pieces(index) = stored {
            return Ok(self.read_ranged(&index, range));
        }
        if let Some(SmallFile { bytes, .. }) = self.small(blob) {
            let bytes = bytes.slice(to_usize(range.start)..to_usize(range.end));
            return Ok(futures::stream::once(async { Ok(bytes) }).boxed());
        }
        let options =
            GetOptions { range: Some(GetRange::Bounded(range.clone())), ..GetOptions::default() };
        let got = match self.store.get_opts(&blob_key(blob), options).await {
            Ok(got) => got,
            Err(object_store::Error::NotFound { .. }) => return Err(BlobError::Missing(blob)),
            Err(error) => return Err(BlobError::store(error)),
        };
        Ok(whole(blob, got))
    }

    /// All bytes of a blob, hashed as they are read.
    ///
    /// # Errors
    /// As [`BlobStore::read`].
    pub async fn bytes(&self, blob: Digest) -> Result<Bytes, BlobError> {
        if let Some(file) = self.small(blob) {
            return Ok(file.bytes);
        }
        let got = match self.store.get(&blob_key(blob)).await {
            Ok(got) => got,
            Err(object_store::Error::NotFound { .. }) => {
                let index = self.index(blob).await?.ok_or(BlobError::Missing(blob))?;
                return self.bytes_ranged(&index).await;
            }
            Err(error) => return Err(BlobError::store(error)),
        };
        let bytes = got.bytes().await.map_err(BlobError::store)?;
        let found = Digest::of(&bytes);
        if found == blob { Ok(bytes) } else { Err(BlobError::Altered { blob, found }) }
    }

    /// Copies a file into the store. The blob is durable when this returns. The file is hashed on the way: one that isn't
    /// `blob` is refused, and nothing is stored. A blob that is there already is replaced, which repairs an altered one.
    ///
    /// # Errors
    /// [`BlobError::Unverified`], [`BlobError::Full`], or where the store fails or the file can't be read.
    pub async fn publish(&self, blob: BlobRef, file: &Path) -> Result<(), BlobError> {
        if self.logged.as_ref().is_some_and(|logged| logged.takes(blob.bytes)) {
            let file_error = |source| BlobError::File { path: file.to_owned(), source };
            let named = HashedBytes::of(tokio::fs::read(file).await.map_err(file_error)?.into());
            let BlobRef { sha256: found, bytes } = named.blob();
            if named.blob() != blob {
                return Err(BlobError::Unverified { blob, found, bytes });
            }
            return self.publish_bytes(named).await;
        }
        let put = self.put_file(&blob_key(blob.sha256), blob, file).await?;
        self.remember(blob.sha256, put.e_tag);
        Ok(())
    }

    /// Stores a file as an object, which is whole and verified or not there at all.
    pub(crate) async fn put_file(
        &self,
        key: &Key,
        blob: BlobRef,
        file: &Path,
    ) -> Result<PutResult, BlobError> {
        let file_error = |source| BlobError::File { path: file.to_owned(), source };
        let mut source = tokio::fs::File::open(file).await.map_err(file_error)?;
        let mut part = next_part(&mut source).await.map_err(file_error)?;
        if part.len() < PART_BYTES {
            let named = HashedBytes::of(part);
            let BlobRef { sha256: found, bytes } = named.blob();
            if named.blob() != blob {
                return Err(BlobError::Unverified { blob, found, bytes });
            }
            return self.put(key, named).await;
        }

        let mut hasher = Hasher::default();
        hasher.update(&part);
        let mut total = part.len() as u64;
        let upload = self.store.put_multipart(key).await;
        let mut upload = upload.map_err(BlobError::store)?;
        let copied = async {
            let mut going = FuturesUnordered::new();
            while !part.is_empty() {
                let payload = PutPayload::from(std::mem::take(&mut part));
                going.push(upload.put_part(payload));
                if going.len() >= CONCURRENT_PARTS {
                    going.try_next().await.map_err(BlobError::store)?;
                }
                part = next_part(&mut source).await.map_err(file_error)?;
                hasher.update(&part);
                total += part.len() as u64;
            }
            while going.try_next().await.map_err(BlobError::store)?.is_some() {}
            let found = hasher.finish();
            if found != blob.sha256 || total != blob.bytes {
                return Err(BlobError::Unverified { blob, found, bytes: total });
            }
            upload.complete().await.map_err(BlobError::store)
        };
        match copied.await {
            Ok(put) => Ok(put),
            Err(error) => {
                // The first error counts. Parts that an abort leaves are deleted at the next start.
                let _ = upload.abort().await;
                Err(error)
            }
        }
    }

    /// Stores bytes under their digest. They are durable when this returns.
    ///
    /// # Errors
    /// [`BlobError::Full`], or where the store fails.
    pub async fn publish_bytes(&self, named: HashedBytes) -> Result<(), BlobError> {
        let blob = named.blob().sha256;
        if let Some(logged) = &self.logged
            && logged.takes(named.blob().bytes)
        {
            return logged.put(named).await;
        }
        let put = self.put(&blob_key(blob), named).await?;
        self.remember(blob, put.e_tag);
        Ok(())
    }

    /// Stores bytes as an object.
    pub(crate) async fn put(&self, key: &Key, named: HashedBytes) -> Result<PutResult, BlobError> {
        let put = self.store.put(key, PutPayload::from(named.into_bytes())).await;
        put.map_err(BlobError::store)
    }

    /// The size of the stored blob, whose bytes aren't verified; `None` if there is none. It costs one small request, while
    /// [`BlobStore::size`] may read the whole.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn stored_size(&self, blob: Digest) -> Result<Option<u64>, BlobError> {
        match self.plain_size(blob).await? {
            Some(bytes) => Ok(Some(bytes)),
            None => Ok(self.index(blob).await?.map(|index| index.blob().bytes)),
        }
    }

    /// As [`BlobStore::stored_size`]; `None` too for a blob in pieces, which no single URL gives.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn plain_size(&self, blob: Digest) -> Result<Option<u64>, BlobError> {
        if let Some(file) = self.small(blob) {
            return Ok(Some(file.bytes.len() as u64));
        }
        size_of(self.store.head(&blob_key(blob)).await)
    }

    /// Blobs in a store that isn't this machine's.
    pub(crate) fn over_remote(store: Arc<dyn ObjectStore>, remote: Remote) -> Self {
        Self { remote: Some(remote), ..Self::over(store) }
    }

    pub(crate) fn set_folder(&mut self, folder: &Path) {
        self.folder = Some(folder.into());
    }

    /// The folder that has the blobs, where one of this machine's does.
    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    pub(crate) fn set_remote(&mut self, remote: Remote) {
        self.remote = Some(remote);
    }

    pub(crate) const fn remote(&self) -> Option<&Remote> {
        self.remote.as_ref()
    }

    /// Small blobs become durable through this log.
    pub(crate) fn set_log(&mut self, logged: Logged) {
        self.logged = Some(logged);
    }

    /// The blob, while it is in memory only.
    pub(crate) fn small(&self, blob: Digest) -> Option<SmallFile> {
        self.logged.as_ref()?.get(blob)
    }

    pub(crate) const fn logged(&self) -> Option<&Logged> {
        self.logged.as_ref()
    }

    /// The objects that this is over.
    pub(crate) const fn store(&self) -> &Arc<dyn ObjectStore> {
        &self.store
    }

    /// Waits until no other task changes this blob, and excludes others until the hold is dropped. A read needs no hold.
    /// [`BlobStore::publish`] and [`BlobStore::delete`] take none themselves: the caller holds the blob until the core
    /// knows of the change.
    pub async fn hold(&self, blob: Digest) -> Hold {
        self.holds.hold(blob).await
    }

    /// Deletes a blob, and its compressed copy before. A missing one is no error.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn delete(&self, blob: Digest) -> Result<(), BlobError> {
        self.delete_packed(blob).await?;
        self.checked.lock().remove(&blob);
        let deleted = match &self.logged {
            Some(logged) => logged.delete(blob).await,
            None => self.store.delete(&blob_key(blob)).await.map_err(BlobError::store),
        };
        match deleted {
            Ok(()) | Err(BlobError::Store(object_store::Error::NotFound { .. })) => {
                self.delete_ranged(blob).await
            }
            Err(error) => Err(error),
        }
    }

    /// Every blob in the store with its size, in order of digest.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn list(&self) -> Result<Vec<BlobRef>, BlobError> {
        let aged = self.list_aged().await?;
        Ok(aged.into_iter().map(|(blob, _)| blob).collect())
    }

    pub(crate) fn remember(&self, blob: Digest, e_tag: Option<String>) {
        if let Some(e_tag) = e_tag {
            self.checked.lock().insert(blob, e_tag);
        }
    }
}

/// The bytes of an object. The local store gives empty chunks for ever if a file became shorter since it was opened, so an
/// empty chunk is an error.
pub(crate) fn whole(blob: Digest, got: GetResult) -> BlobBytes {
    let chunks = got.into_stream().map(move |chunk| match chunk {
        Ok(chunk) if chunk.is_empty() => Err(BlobError::Shortened(blob)),
        Ok(chunk) => Ok(chunk),
        Err(error) => Err(BlobError::store(error)),
    });
    chunks.boxed()
}

/// Up to [`PART_BYTES`] bytes: fewer only at the end of the file.
async fn next_part(file: &mut tokio::fs::File) -> std::io::Result<Bytes> {
    let mut part = BytesMut::with_capacity(256 << 10);
    let mut limited = file.take(PART_BYTES as u64);
    while limited.read_buf(&mut part).await? > 0 {
        if part.capacity() == part.len() {
            part.reserve(1 << 20);
        }
    }
    Ok(part.freeze())
}
