//! Makes small files durable in groups: a write-ahead log of their bytes, which is synced once for many.
//!
//! ```text
//!   put:     append path and bytes to the log -> sync, once for a group -> keep the bytes in memory -> return
//!   get:     from memory; what isn't there is a file, or absent
//!   retire:  write and sync the files of a full segment that weren't removed -> delete the segment
//!   open:    read the segments into memory
//! ```
//!
//! Most small files are checkpoints that the next one replaces soon. These are removed before their segment is retired, and
//! never become files. That matters on ext4, where creating a file takes the longer, the more files were deleted in the
//! last five seconds.
//!
//! A path must always get the same bytes, for example because its name has their digest. So a file that comes back from
//! the log after its removal is unneeded, but never wrong.

mod open;
mod record;
mod retire;
mod segment;
#[cfg(test)]
mod tests;

pub(crate) use open::puts;

use crate::{
    disk::{Disk, RealDisk},
    hashed_bytes::HashedBytes,
};
use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use segment::{Segment, Ticket};
use sojourn_files::{Access, AtomicFile, Durability, if_exists};
use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::Arc,
    thread::JoinHandle,
    time::SystemTime,
};

/// The largest file that is worth being written twice, in bytes. A larger one is synced by itself.
pub(crate) const MAX_SMALL_BYTES: u64 = 128 << 10;
/// A segment of so many bytes is full.
const DEFAULT_SEGMENT_BYTES: u64 = 32 << 20;
/// With so many segments, which are as much in memory, the disk is behind. Until they are fewer, files are synced by themselves.
const MAX_SEGMENTS: usize = 4;

/// The name of the thread that retires segments.
pub(crate) const THREAD_NAME: &str = "write-ahead log";

/// The log of the small files in one folder; cheap to clone. All calls block on the disk.
#[derive(Clone)]
pub struct WriteAheadLog {
    shared: Arc<Shared>,
    /// Ends with the last clone.
    _retirement: Arc<Retirement>,
}

struct Shared {
    /// Paths in the log are relative to it.
    root: PathBuf,
    folder: PathBuf,
    disk: Arc<dyn Disk>,
    segment_bytes: u64,
    state: Mutex<State>,
    /// A segment was sealed or retired, the last put into a sealed one has ended, or the log ends.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    current: Option<Current>,
    /// All segments that are on the disk.
    segments: BTreeMap<u64, Arc<Segment>>,
    /// The durable files that weren't written to their paths yet.
    files: HashMap<String, Entry>,
    last: u64,
    /// Why the oldest segment can't be retired.
    failure: Option<io::Error>,
    /// Nobody reads the folder for the first time any more.
    may_retire: bool,
    is_retiring: bool,
    is_ending: bool,
}

/// A file in memory.
#[derive(Debug, Clone)]
struct Entry {
    /// The last segment that has its bytes.
    number: u64,
    bytes: Bytes,
    at: SystemTime,
}

/// A small file that isn't at its path yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SmallFile {
    pub(crate) path: PathBuf,
    pub(crate) bytes: Bytes,
    /// When it was put.
    pub(crate) at: SystemTime,
}

/// The segment that gets the next records.
struct Current {
    segment: Arc<Segment>,
    file: File,
    bytes: u64,
}

/// The thread that retires segments.
struct Retirement {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for WriteAheadLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriteAheadLog").field("folder", &self.shared.folder).finish_non_exhaustive()
    }
}

impl WriteAheadLog {
    /// Opens the log of the files below a folder. Only one process may have it open.
    ///
    /// # Errors
    /// Where the disk fails, or a newer version has written the log.
    pub fn open(root: &Path) -> io::Result<Self> {
        Self::with_disk(root, Arc::new(RealDisk))
    }

    /// As [`WriteAheadLog::open`], writing through `disk`.
    ///
    /// # Errors
    /// As [`WriteAheadLog::open`].
    pub fn with_disk(root: &Path, disk: Arc<dyn Disk>) -> io::Result<Self> {
        Self::with_segments_of(root, disk, DEFAULT_SEGMENT_BYTES)
    }

    fn with_segments_of(root: &Path, disk: Arc<dyn Disk>, bytes: u64) -> io::Result<Self> {
        let shared = Shared {
            root: root.to_owned(),
            folder: root.join(open::FOLDER),
            disk,
            segment_bytes: bytes,
            state: Mutex::default(),
            changed: Condvar::new(),
        };
        *shared.state.lock() = shared.recover()?;
        let shared = Arc::new(shared);
        let retirement = Retirement::start(Arc::clone(&shared))?;
        Ok(Self { shared, _retirement: Arc::new(retirement) })
    }

    /// Whether a file of so many bytes is to be put into the log now.
    #[must_use]
    pub fn takes(&self, bytes: u64) -> bool {
        bytes <= MAX_SMALL_BYTES && self.shared.state.lock().segments.len() < MAX_SEGMENTS
    }

    /// Puts a file at a path below the log's folder. It is durable when this returns. Where this fails, there is no such
    /// file, or it is what was there before; after the next start it may have come.
    ///
    /// # Errors
    /// Where the disk fails or is full, or the path isn't below the folder.
    pub fn put(&self, path: &Path, named: &HashedBytes) -> io::Result<()> {
        let Shared { disk, state, changed, .. } = &*self.shared;
        let name = self.shared.name(path)?;
        let mut record = record::put(name, named);
        record.extend_from_slice(named.bytes());
        let (segment, ticket) = self.shared.append_put(&record)?;

        let committed = segment.commit(ticket, &**disk);
        let mut state = state.lock();
        match &committed {
            Ok(()) => {
                let (number, bytes) = (segment.number, named.bytes().clone());
                let entry = Entry { number, bytes, at: SystemTime::now() };
                state.files.insert(name.to_owned(), entry);
            }
            Err(_) => state.give_up(&segment),
        }
        segment.ended();
        if !state.is_current(&segment) {
            changed.notify_all();
        }
        committed
    }

    /// The file that was put at this path, while it is in memory only. Another is a file, if it is anywhere.
    pub(crate) fn get(&self, path: &Path) -> Option<SmallFile> {
        let name = self.shared.name(path).ok()?;
        let state = self.shared.state.lock();
        let Entry { bytes, at, .. } = state.files.get(name)?.clone();
        Some(SmallFile { path: path.to_owned(), bytes, at })
    }

    /// All files below a folder that are in memory only.
    pub(crate) fn list(&self, folder: &Path) -> Vec<SmallFile> {
        let state = self.shared.state.lock();
        let files = state.files.iter().map(|(name, Entry { bytes, at, .. })| SmallFile {
            path: self.shared.root.join(name),
            bytes: bytes.clone(),
            at: *at,
        });
        files.filter(|file| file.path.starts_with(folder)).collect()
    }

    /// Writes a file that is in memory to its path too, for a reader that needs a file. It stays durable by the log.
    pub(crate) fn write_out(&self, path: &Path) -> io::Result<()> {
        let Some(SmallFile { bytes, .. }) = self.get(path) else { return Ok(()) };
        let name = self.shared.name(path)?;
        let file = self.shared.write(path, &bytes)?;
        self.shared.commit_if(file, name, |_| true).map(drop)
    }

    /// Removes a file. A missing one is no error. Unlike a put, a removal may be undone by a power cut.
    ///
    /// # Errors
    /// Where the file can't be removed.
    pub fn remove(&self, path: &Path) -> io::Result<()> {
        let name = self.shared.name(path)?;
        let mut state = self.shared.state.lock();
        if state.files.remove(name).is_some() {
            self.shared.append_removal(&mut state, name);
        }
        drop(state);
        if_exists(fs::remove_file(path)).map(drop)
    }

    /// Makes all files durable at their paths, and deletes the log's segments. A later put begins a new one.
    ///
    /// # Errors
    /// Where the disk fails. The segments stay then, so that nothing is lost.
    pub fn retire(&self) -> io::Result<()> {
        let Shared { state, changed, .. } = &*self.shared;
        let mut state = state.lock();
        (state.current, state.may_retire) = (None, true);
        // An attempt that began before may fail by what is mended now.
        changed.wait_while(&mut state, |state| state.is_retiring);
        state.failure = None;
        changed.notify_all();
        while !state.segments.is_empty() {
            if let Some(failure) = state.failure.take() {
                return Err(failure);
            }
            if state.is_ending {
                return Err(io::Error::other("the write-ahead log has ended"));
            }
            changed.wait(&mut state);
        }
        Ok(())
    }
}

impl Shared {
    /// A path as records have it.
    fn name<'a>(&self, path: &'a Path) -> io::Result<&'a str> {
        let name = path.strip_prefix(&self.root).ok().and_then(Path::to_str);
        name.filter(|name| record::is_path(name)).ok_or_else(|| {
            let message = format!("`{}` can't be in the write-ahead log", path.display());
            io::Error::new(io::ErrorKind::InvalidInput, message)
        })
    }

    fn append_put(&self, record: &[u8]) -> io::Result<(Arc<Segment>, Ticket)> {
        let mut state = self.state.lock();
        let segment = self.append(&mut state, record)?;
        let ticket = segment.appended();
        Ok((segment, ticket))
    }

    /// Says that a file isn't to come back. Where that fails it may come back, unneeded.
    fn append_removal(&self, state: &mut State, name: &str) {
        if let Err(error) = self.append(state, &record::remove(name)) {
            tracing::warn!(name, %error, "a removal can't be written to the write-ahead log");
        }
    }

    /// Appends a record to the current segment, which is sealed once it is full.
    fn append(&self, state: &mut State, record: &[u8]) -> io::Result<Arc<Segment>> {
        let mut current = match state.current.take() {
            Some(current) => current,
            None => self.begin_segment(state)?,
        };
        let segment = Arc::clone(&current.segment);
        let appended = self.disk.append(&mut current.file, record);
        let is_whole = match appended {
            Ok(()) => {
                current.bytes += record.len() as u64;
                true
            }
            // Nothing is appended behind a torn record.
            Err(_) => current.file.set_len(current.bytes).is_ok(),
        };
        if is_whole && current.bytes < self.segment_bytes {
            state.current = Some(current);
        } else {
            state.failure = None;
            self.changed.notify_all();
        }
        appended.map(|()| segment)
    }

    /// Gives a file its name if it is in memory and so far as `is_wanted`. Gives whether it did. A removal comes before this,
    /// and there is nothing to name, or after, and finds the file.
    fn commit_if(
        &self,
        file: AtomicFile,
        name: &str,
        is_wanted: impl FnOnce(&Entry) -> bool,
    ) -> io::Result<bool> {
        let state = self.state.lock();
        let is_there = state.files.get(name).is_some_and(is_wanted);
        if is_there {
            file.commit(Durability::Unsynced)?;
        }
        Ok(is_there)
    }

    /// Writes a file under a temporary name.
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<AtomicFile> {
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        let file = AtomicFile::create_unique(path, Access::Mask)?;
        self.disk.append(&mut file.file().try_clone()?, bytes)?;
        Ok(file)
    }
}

impl State {
    fn is_current(&self, segment: &Segment) -> bool {
        self.current.as_ref().is_some_and(|current| current.segment.number == segment.number)
    }

    /// Appends nothing more to a segment.
    fn give_up(&mut self, segment: &Segment) {
        if self.is_current(segment) {
            self.current = None;
            self.failure = None;
        }
    }
}
