//! Shards that are kept packed, where the owner would rather have the room: each is unpacked for as long as units use it.
//!
//! ```text
//!   data/<digest>.zst      counts with its own size
//!   unpacked/<digest>.<n>  the shard's bytes, checked; counts too, and goes with the last pin
//! ```

use super::{Cache, Class, Pin, note_use};
use crate::config::CacheFor;
use sojourn_codec::packed::{UnpackError, Unpacker, pack};
use sojourn_files::{Access, AtomicFile, Durability, if_exists};
use sojourn_protocol::{
    digest::{BlobRef, Digest, Hasher},
    quantity::to_u64,
};
use std::{
    fs,
    io::{self, Read as _, Write as _},
    ops::RangeInclusive,
    path::{Path, PathBuf},
    sync::{Arc, Weak},
};

/// How the names of packed files end.
pub(super) const ENDING: &str = ".zst";
/// The folder of unpacked bytes.
const FOLDER: &str = "unpacked";
/// Bytes of shards that are packed: of smaller ones little is saved, and larger ones would take much memory meanwhile.
const PACKED_BYTES: RangeInclusive<u64> = 4 << 10..=256 << 20;
/// Packed bytes that are read at once.
const READ: usize = 64 << 10;

/// A shard's bytes in a file, beside the packed ones. The file is deleted when this is dropped.
#[derive(Debug)]
pub(crate) struct Unpacked {
    cache: Arc<Cache>,
    path: PathBuf,
    /// Such bytes count as reserved.
    bytes: u64,
}

impl Unpacked {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Is the file as long as it was made? Somebody may have deleted it.
    fn is_there(&self) -> bool {
        fs::metadata(&self.path).is_ok_and(|meta| meta.len() == self.bytes)
    }
}

impl Drop for Unpacked {
    fn drop(&mut self) {
        // Gone, perhaps, with a cache that somebody has deleted.
        let _ = fs::remove_file(&self.path);
        self.cache.change(|index| index.unreserve(self.bytes));
    }
}

impl Cache {
    /// Is a blob of this class kept packed, where that saves a tenth?
    pub(super) fn packs(&self, blob: BlobRef, class: Class) -> bool {
        let is_wanted = self.keeps == CacheFor::Room && class == Class::Data;
        is_wanted && PACKED_BYTES.contains(&blob.bytes)
    }

    /// Where a blob lies: packed or as it is.
    pub(super) fn kept_path(&self, digest: &Digest, class: Class) -> PathBuf {
        let path = self.path(digest, class);
        let packed = self.packed_path(digest);
        let is_packed = class == Class::Data && !path.exists() && packed.exists();
        if is_packed { packed } else { path }
    }

    pub(super) fn packed_path(&self, digest: &Digest) -> PathBuf {
        self.folder(Class::Data).join(format!("{digest}{ENDING}"))
    }

    /// Deletes what an earlier run has left unpacked.
    pub(super) fn clear_unpacked(&self) -> io::Result<()> {
        if_exists(fs::remove_dir_all(self.root.join(FOLDER))).map(drop)
    }

    /// Writes the packed form of a shard that lies in a file, and gives its size; `None` where it saves too little. Blocks.
    pub(super) fn write_packed(&self, blob: BlobRef, raw: &Path) -> io::Result<Option<u64>> {
        let Some(packed) = pack(&fs::read(raw)?) else { return Ok(None) };
        // Not synced: the digest is checked whenever it is unpacked.
        let file = AtomicFile::create(&self.packed_path(&blob.sha256), Access::Mask)?;
        file.file().write_all(&packed)?;
        file.commit(Durability::Unsynced)?;
        Ok(Some(to_u64(packed.len())))
    }

    /// Takes a shard's checked bytes, which count as reserved, for those of its packed form.
    pub(super) fn take_unpacked(
        self: &Arc<Self>,
        blob: BlobRef,
        raw: &Path,
    ) -> io::Result<Arc<Unpacked>> {
        let path = self.new_unpacked_path(blob.sha256)?;
        fs::rename(raw, &path)?;
        Ok(self.register(blob, path))
    }

    /// The blob, pinned and unpacked, if the packed file `kept` has its bytes. One that hasn't is deleted.
    pub(super) async fn pin_packed(
        self: &Arc<Self>,
        blob: BlobRef,
        mut pin: Pin,
        kept: PathBuf,
    ) -> Option<Pin> {
        let live = self.state.lock().unpacked.get(&blob.sha256).and_then(Weak::upgrade);
        let unpacked = match live.filter(|unpacked| unpacked.is_there()) {
            Some(unpacked) => Ok(unpacked),
            None => {
                let (cache, file) = (Arc::clone(self), kept.clone());
                let unpacked = tokio::task::spawn_blocking(move || cache.unpack(blob, &file)).await;
                // Not read at all: the program is ending, and the file is not to blame.
                unpacked.ok()?
            }
        };
        match unpacked {
            Ok(unpacked) => {
                note_use(&kept);
                pin.path = unpacked.path().to_owned();
                pin.unpacked = Some(unpacked);
                Some(pin)
            }
            Err(UnpackError::Sink(error)) => {
                tracing::warn!(%error, blob = %blob.sha256.short(), "a cached blob can't be unpacked");
                None
            }
            Err(UnpackError::Zstd(_) | UnpackError::TooLong { .. }) => {
                self.remove_damaged(&blob.sha256, Class::Data);
                None
            }
        }
    }

    /// Unpacks a file, and checks the blob's digest. Blocks.
    fn unpack(self: &Arc<Self>, blob: BlobRef, kept: &Path) -> Result<Arc<Unpacked>, UnpackError> {
        let path = self.new_unpacked_path(blob.sha256).map_err(UnpackError::Sink)?;
        self.change(|index| index.reserve(blob.bytes));
        // From here on it is deleted, and its room given back, where it isn't whole.
        let unpacked = self.register(blob, path);
        let mut file = fs::File::create(unpacked.path()).map_err(UnpackError::Sink)?;
        let mut packed = fs::File::open(kept).map_err(UnpackError::Zstd)?;
        let mut unpacker = Unpacker::new(blob.bytes).map_err(UnpackError::Sink)?;
        let mut hasher = Hasher::default();
        let mut buffer = vec![0; READ];
        loop {
            let read = packed.read(&mut buffer).map_err(UnpackError::Zstd)?;
            if read == 0 {
                break;
            }
            unpacker.push(buffer.get(..read).unwrap_or_default(), &mut |bytes| {
                hasher.update(bytes);
                file.write_all(bytes)
            })?;
        }
        match hasher.finish() == blob.sha256 {
            true => Ok(unpacked),
            false => Err(UnpackError::Zstd(io::ErrorKind::InvalidData.into())),
        }
    }

    /// A name that no unpacked file has or had.
    fn new_unpacked_path(&self, digest: Digest) -> io::Result<PathBuf> {
        let folder = self.root.join(FOLDER);
        fs::create_dir_all(&folder)?;
        let mut state = self.state.lock();
        state.last_unpacked += 1;
        Ok(folder.join(format!("{digest}.{}", state.last_unpacked)))
    }

    fn register(self: &Arc<Self>, blob: BlobRef, path: PathBuf) -> Arc<Unpacked> {
        let unpacked = Unpacked { cache: Arc::clone(self), path, bytes: blob.bytes };
        let unpacked = Arc::new(unpacked);
        let mut state = self.state.lock();
        state.unpacked.retain(|_, of| of.strong_count() > 0);
        state.unpacked.insert(blob.sha256, Arc::downgrade(&unpacked));
        unpacked
    }
}
