//! Blobs on disk by digest, within the owner's byte limit. Trusts a file only after this process has
//! seen its digest: it wrote it, or read it through once, and nobody has doubted it since. Doesn't fetch
//! anything.
//!
//! | file | holds |
//! |---|---|
//! | `index.rs` | the accounts |
//! | `pin.rs` | blobs in use |
//! | `reservation.rs` | blobs on their way |
//! | `unpacked.rs` | shards that are kept packed |

mod index;
mod pin;
mod reservation;
mod unpacked;

pub(crate) use index::Class;
pub(crate) use pin::Pin;
pub(crate) use reservation::Reservation;

use index::{Index, Trust, Victim};
use unpacked::{ENDING, Unpacked};

use crate::{config::CacheFor, transfer::digest_of_file};
use parking_lot::Mutex;
use sojourn_files::{Access, AtomicFile, Durability, if_exists};
use sojourn_protocol::digest::{BlobRef, Digest};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Weak},
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
    keeps: CacheFor,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    index: Index,
    /// Has it been said that pins take more than the limit?
    excess_told: bool,
    /// The raw bytes of shards that are packed and in use.
    unpacked: BTreeMap<Digest, Weak<Unpacked>>,
    /// Tells files of unpacked bytes apart.
    last_unpacked: u64,
}

impl Cache {
    /// Opens the cache in `root`: finds what is there, forgets what is misnamed, and makes the limit
    /// hold.
    pub(crate) fn open(root: PathBuf, limit: u64, keeps: CacheFor) -> io::Result<Arc<Self>> {
        let state = State {
            index: Index::new(limit),
            excess_told: false,
            unpacked: BTreeMap::new(),
            last_unpacked: 0,
        };
        let cache = Self { root, keeps, state: Mutex::new(state) };
        cache.clear_unpacked()?;
        let mut found = Vec::new();
        for class in [Class::Part, Class::Checkpoint, Class::Data] {
            let folder = cache.folder(class);
            fs::create_dir_all(&folder)?;
            for file in fs::read_dir(&folder)? {
                let file = file?;
                let name = file.file_name();
                let name = name.to_str().unwrap_or_default();
                let packed = name.strip_suffix(ENDING).filter(|_| class == Class::Data);
                let digest: Option<Digest> = packed.unwrap_or(name).parse().ok();
                // A blob that is there as it is needn't be there packed.
                let is_twice = digest
                    .is_some_and(|digest| packed.is_some() && cache.path(&digest, class).exists());
                match digest.filter(|_| !is_twice) {
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
        let unpacked = None;
        let pin = Pin { cache: Arc::clone(self), digest: blob.sha256, generation, path, unpacked };
        let kept = self.kept_path(&blob.sha256, entry.class);
        if kept != pin.path {
            return self.pin_packed(blob, pin, kept).await;
        }
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
        if right {
            self.state.lock().index.check(&blob.sha256);
            note_use(&pin.path);
            return Some(pin);
        }
        self.remove_damaged(&blob.sha256, entry.class);
        None
    }

    /// Deletes a blob whose file hasn't its bytes.
    fn remove_damaged(&self, digest: &Digest, class: Class) {
        tracing::warn!(blob = %digest.short(), "a cached blob is damaged; it is fetched again");
        let mut state = self.state.lock();
        state.index.remove(digest);
        state.unpacked.remove(digest);
        self.delete(&[(*digest, class)]);
    }

    /// Is the blob here, as far as is known?
    pub(crate) fn has(&self, digest: &Digest) -> bool {
        self.state.lock().index.get(digest).is_some_and(|entry| entry.class != Class::Part)
    }

    /// Is the blob here, and its file too? Somebody may have deleted that.
    pub(crate) fn has_file(&self, digest: &Digest) -> bool {
        let entry = self.state.lock().index.get(digest);
        let whole = entry.filter(|entry| entry.class != Class::Part);
        whole.is_some_and(|entry| self.kept_path(digest, entry.class).exists())
    }

    /// Somebody has found other bytes in one of these: each is read through before it is used again.
    pub(crate) fn doubt<'a>(&self, digests: impl IntoIterator<Item = &'a Digest>) {
        let mut state = self.state.lock();
        for digest in digests {
            state.index.doubt(digest);
            // It is unpacked anew, and checked then.
            state.unpacked.remove(digest);
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
    /// The checkpoint's bytes are checked before they are first used, like those of any file found on disk.
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
            let packed = (*class == Class::Data).then(|| self.packed_path(digest));
            let files = [self.path(digest, *class)].into_iter().chain(packed);
            let mut deleted = files.map(|file| if_exists(fs::remove_file(file)));
            if let Some(Err(error)) = deleted.find(Result::is_err) {
                tracing::warn!(%error, blob = %digest.short(), "a cached blob can't be deleted");
            }
        }
    }
}

/// Notes that a file is used now. Remembered over restarts as the time of last use; nothing depends on it being right.
fn note_use(path: &Path) {
    let used = fs::metadata(path).and_then(|meta| meta.modified()).ok();
    let since = used.and_then(|used| used.elapsed().ok());
    if since.is_none_or(|since| since >= MIN_USE_INTERVAL) {
        let opened = fs::File::options().append(true).open(path);
        let _ = opened.and_then(|file| file.set_modified(SystemTime::now()));
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

#[cfg(test)]
mod tests;
