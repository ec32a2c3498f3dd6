//! Blobs on disk by digest, within the owner's byte limit. Trusts a file only after this process has
//! seen its digest: it wrote it, or read it through once, and nobody has doubted it since. Doesn't fetch
//! anything.

mod index;

pub(crate) use index::Class;
use index::{Generation, Index, Trust, Victim};

use crate::transfer::digest_of_file;
use parking_lot::Mutex;
use sojourn_files::{Access, AtomicFile, Durability, if_exists};
use sojourn_protocol::digest::{BlobRef, Digest};
use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

/// A file of so many bytes is read through in less time than it takes to have another thread do it.
const MAX_INLINE_BYTES: u64 = 128 << 10;
/// Uses that are no further apart are one.
const MIN_USE_INTERVAL: Duration = Duration::from_secs(60);

/// The cache of one daemon.
#[derive(Debug)]
pub(crate) struct Cache {
    root: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    index: Index,
    /// Has it been said that pins take more than the limit?
    excess_told: bool,
}

/// A blob in use: it stays where it is until this is dropped.
#[derive(Debug)]
pub(crate) struct Pin {
    cache: Arc<Cache>,
    digest: Digest,
    /// None where the index doesn't know the blob.
    generation: Option<Generation>,
    path: PathBuf,
}

/// Room for a blob that is on its way, and the name that it is written under meanwhile. Dropped before
/// the blob is whole, what has come of it is kept for the next attempt while there is room.
#[derive(Debug)]
pub(crate) struct Reservation {
    cache: Arc<Cache>,
    blob: BlobRef,
    path: PathBuf,
}

impl Cache {
    /// Opens the cache in `root`: finds what is there, forgets what is misnamed, and makes the limit
    /// hold.
    pub(crate) fn open(root: PathBuf, limit: u64) -> io::Result<Arc<Self>> {
        let cache = Self {
            root,
            state: Mutex::new(State { index: Index::new(limit), excess_told: false }),
        };
        let mut found = Vec::new();
        for class in [Class::Part, Class::Checkpoint, Class::Data] {
            let folder = cache.folder(class);
            fs::create_dir_all(&folder)?;
            for file in fs::read_dir(&folder)? {
                let file = file?;
                let name = file.file_name();
                match name.to_str().and_then(|name| name.parse::<Digest>().ok()) {
                    Some(digest) => {
                        let meta = file.metadata()?;
                        let used = meta.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                        found.push((used, digest, class, meta.len()));
                    }
                    None => fs::remove_file(file.path())?,
                }
            }
        }
        found.sort();
        let whole: BTreeSet<Digest> = (found.iter())
            .filter(|(_, _, class, _)| *class != Class::Part)
            .map(|(_, digest, ..)| *digest)
            .collect();
        let mut state = cache.state.lock();
        for (_, digest, class, bytes) in found {
            if class == Class::Part && whole.contains(&digest) {
                cache.delete(&[(digest, class)]);
            } else {
                state.index.insert(digest, class, bytes, Trust::Unchecked);
            }
        }
        let victims = state.index.shrink();
        drop(state);
        cache.delete(&victims);
        Ok(Arc::new(cache))
    }

    /// The blob, pinned, if its right bytes are here. A file that turns out damaged is deleted.
    ///
    /// At most one call at a time for one digest.
    pub(crate) async fn pin(self: &Arc<Self>, blob: BlobRef) -> Option<Pin> {
        let (entry, generation, path) = {
            let mut state = self.state.lock();
            let entry = state.index.get(&blob.sha256)?;
            if entry.class == Class::Part {
                return None;
            }
            let generation = state.index.pin(&blob.sha256);
            (entry, generation, self.path(&blob.sha256, entry.class))
        };
        let pin = Pin { cache: Arc::clone(self), digest: blob.sha256, generation, path };
        let meta = fs::metadata(&pin.path);
        let whole = meta.as_ref().is_ok_and(|meta| meta.len() == blob.bytes);
        let right = match entry.trust {
            Trust::Checked => whole,
            Trust::Unchecked if !whole => false,
            Trust::Unchecked if blob.bytes <= MAX_INLINE_BYTES => is_right(&pin.path, blob),
            Trust::Unchecked => {
                let path = pin.path.clone();
                let read = tokio::task::spawn_blocking(move || is_right(&path, blob)).await;
                // Not read at all: the program is ending, and the file is not to blame.
                let Ok(right) = read else { return None };
                right
            }
        };
        let mut state = self.state.lock();
        if right {
            state.index.check(&blob.sha256);
            drop(state);
            let used = meta.and_then(|meta| meta.modified()).ok();
            if used
                .and_then(|used| used.elapsed().ok())
                .is_none_or(|since| since >= MIN_USE_INTERVAL)
            {
                // Remembered over restarts as the time of last use; nothing depends on it being right.
                let _ = fs::File::options()
                    .append(true)
                    .open(&pin.path)
                    .and_then(|file| file.set_modified(SystemTime::now()));
            }
            return Some(pin);
        }
        tracing::warn!(blob = %blob.sha256.short(), "a cached blob is damaged; it is fetched again");
        state.index.remove(&blob.sha256);
        self.delete(&[(blob.sha256, entry.class)]);
        drop(state);
        None
    }

    /// Is the blob here, as far as is known?
    pub(crate) fn has(&self, digest: &Digest) -> bool {
        self.state.lock().index.get(digest).is_some_and(|entry| entry.class != Class::Part)
    }

    /// Is the blob here, and its file too? Somebody may have deleted that.
    pub(crate) fn has_file(&self, digest: &Digest) -> bool {
        let entry = self.state.lock().index.get(digest);
        let whole = entry.filter(|entry| entry.class != Class::Part);
        whole.is_some_and(|entry| self.path(digest, entry.class).exists())
    }

    /// Somebody has found other bytes in one of these: each is read through before it is used again.
    pub(crate) fn doubt<'a>(&self, digests: impl IntoIterator<Item = &'a Digest>) {
        let mut state = self.state.lock();
        for digest in digests {
            state.index.doubt(digest);
        }
    }

    /// Makes room for a blob that a unit needs, whatever the limit says of pinned ones. What an earlier
    /// attempt has left of it lies under [`Reservation::path`].
    ///
    /// At most one at a time for one digest.
    pub(crate) fn reserve(self: &Arc<Self>, blob: BlobRef) -> Reservation {
        let path = self.path(&blob.sha256, Class::Part);
        // Somebody may have deleted the cache to make room. Where it can't be made again, writing says so.
        let _ = path.parent().map(fs::create_dir_all);
        self.change(|index| {
            if index.get(&blob.sha256).is_some_and(|entry| entry.class == Class::Part) {
                index.remove(&blob.sha256);
            }
            index.reserve(blob.bytes);
        });
        Reservation { cache: Arc::clone(self), blob, path }
    }

    /// Deletes what no unit in work needs, what would go first before others, until the disk has so many bytes
    /// free: what a unit has trained is worth more than what may be fetched again. `free` says how many there
    /// are; where it can't, nothing is done.
    pub(crate) fn leave_room(&self, bytes: u64, free: impl Fn(&Path) -> io::Result<u64>) {
        while free(&self.root).is_ok_and(|free| free < bytes) {
            let mut state = self.state.lock();
            let Some(victim) = state.index.forget_one() else { break };
            self.delete(&[victim]);
        }
    }

    /// Takes a checkpoint in that this host has just made, by a second link to its file where the
    /// file system can. Not worth any shard: left out where only checkpoints would not make room.
    ///
    /// Its bytes are checked before they are first used, like those of any file found on disk.
    pub(crate) fn adopt(&self, blob: BlobRef, file: &Path) {
        {
            let state = self.state.lock();
            let known = state.index.get(&blob.sha256).is_some();
            if known || !state.index.has_room_beside_data(blob.bytes) {
                return;
            }
        }
        let path = self.path(&blob.sha256, Class::Checkpoint);
        let taken = match fs::hard_link(file, &path) {
            Ok(()) => Ok(()),
            // Somebody was quicker, perhaps with a link to this very file: to write there would empty it.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(_) => copy_whole(file, &path),
        };
        if let Err(error) = taken {
            tracing::debug!(%error, "a checkpoint made here is not cached");
            return;
        }
        self.change(|index| {
            index.insert(blob.sha256, Class::Checkpoint, blob.bytes, Trust::Unchecked);
        });
    }

    /// Digests of the shards and scaling blobs that are here. Checkpoints aren't told: where a trial
    /// goes next is decided by its data.
    pub(crate) fn data(&self) -> Vec<Digest> {
        self.state.lock().index.data()
    }

    /// Deletes all that no unit in work needs. Gives how many bytes that were.
    pub(crate) fn clear(&self) -> u64 {
        let mut state = self.state.lock();
        let before = state.index.used();
        let victims = state.index.clear();
        self.delete(&victims);
        before.saturating_sub(state.index.used())
    }

    /// Deletes those shards that no unit in work needs: nobody else will either.
    pub(crate) fn evict(&self, digests: &[Digest]) {
        let mut state = self.state.lock();
        let victims: Vec<Victim> =
            digests.iter().filter_map(|digest| state.index.evict(digest)).collect();
        self.delete(&victims);
    }

    /// Is there room for so many bytes, with nothing deleted for it?
    pub(crate) fn has_free(&self, bytes: u64) -> bool {
        let state = self.state.lock();
        state.index.used().saturating_add(bytes) <= state.index.limit()
    }

    /// From now on the cache may take so many bytes: what goes first goes now where that is less than it takes.
    pub(crate) fn set_limit(&self, limit: u64) {
        if self.limit() != limit {
            self.change(|index| index.set_limit(limit));
        }
    }

    /// The limit in bytes.
    pub(crate) fn limit(&self) -> u64 {
        self.state.lock().index.limit()
    }

    /// Bytes in use, those on their way included.
    pub(crate) fn used(&self) -> u64 {
        self.state.lock().index.used()
    }

    fn folder(&self, class: Class) -> PathBuf {
        self.root.join(match class {
            Class::Part => "parts",
            Class::Checkpoint => "checkpoints",
            Class::Data => "data",
        })
    }

    fn path(&self, digest: &Digest, class: Class) -> PathBuf {
        self.folder(class).join(digest.to_string())
    }

    /// Changes the accounts, then deletes what must go.
    fn change<T>(&self, change: impl FnOnce(&mut Index) -> T) -> T {
        let mut state = self.state.lock();
        let changed = change(&mut state.index);
        let victims = state.index.shrink();
        // Deleted under the lock: the same blob must not come back between the two.
        self.delete(&victims);
        let excess = state.index.excess();
        let tell = excess > 0 && !state.excess_told;
        state.excess_told = excess > 0;
        drop(state);
        if tell {
            tracing::warn!(excess, "units in work need more blobs than the cache limit allows");
        }
        changed
    }

    fn delete(&self, victims: &[Victim]) {
        for (digest, class) in victims {
            if let Err(error) = if_exists(fs::remove_file(self.path(digest, *class))) {
                tracing::warn!(%error, blob = %digest.short(), "a cached blob can't be deleted");
            }
        }
    }
}

/// Copies a file to a name that never stands for half of it, and never for what it stood for before.
fn copy_whole(file: &Path, path: &Path) -> io::Result<()> {
    // The temporary name is no digest: what a killed daemon leaves of it is deleted at the next start. Not synced: the
    // cache checks what it finds after a start.
    let copy = AtomicFile::create(path, Access::Mask)?;
    io::copy(&mut fs::File::open(file)?, &mut copy.file())?;
    copy.commit(Durability::Unsynced)
}

/// Does the file have the blob's bytes? Blocks.
fn is_right(path: &Path, blob: BlobRef) -> bool {
    digest_of_file(path).is_ok_and(|digest| digest == blob.sha256)
}

impl Pin {
    /// Which blob it is.
    pub(crate) fn digest(&self) -> Digest {
        self.digest
    }

    /// Where the bytes lie.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        if let Some(generation) = self.generation {
            self.cache.change(|index| index.unpin(&self.digest, generation));
        }
    }
}

impl Reservation {
    /// Where to write the bytes meanwhile.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The file under [`Reservation::path`] is whole and has the blob's digest: takes it in, pinned.
    pub(crate) fn publish(mut self, class: Class) -> io::Result<Pin> {
        let BlobRef { sha256: digest, bytes } = self.blob;
        let path = self.cache.path(&digest, class);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::rename(&self.path, &path)?;
        let generation = self.cache.change(|index| {
            index.unreserve(bytes);
            index.insert(digest, class, bytes, Trust::Checked);
            index.pin(&digest)
        });
        // Nothing is left to give back, or to keep.
        self.blob.bytes = 0;
        Ok(Pin { cache: Arc::clone(&self.cache), digest, generation, path })
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let BlobRef { sha256: digest, bytes } = self.blob;
        let length = fs::metadata(&self.path).map_or(0, |meta| meta.len());
        // A checkpoint of the same bytes may have been made here meanwhile.
        let known = self.cache.state.lock().index.get(&digest).is_some();
        let kept = length > 0 && length <= bytes && !known;
        if !kept {
            // Removed before the accounts: afterwards the name may be somebody else's.
            let _ = fs::remove_file(&self.path);
        }
        self.cache.change(|index| {
            index.unreserve(bytes);
            if kept {
                index.insert(digest, Class::Part, length, Trust::Unchecked);
            }
        });
    }
}

#[cfg(test)]
mod tests;
