//! Files that are replaced whole or not at all: written under a temporary name beside the final one, then renamed.
//! A reader, and a process that starts after a crash, sees the old content or the new one. Also the room on their disk.
//!
//! ```
//! use sojourn_files::{Access, AtomicFile, Durability};
//! use std::io::Write as _;
//!
//! # fn main() -> std::io::Result<()> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("token");
//! // In one call, on the disk once it returns, readable to its owner alone.
//! sojourn_files::write(&path, b"secret", Access::Owner, Durability::Synced)?;
//!
//! // Piece by piece. Dropped before `commit`, it would leave the old content.
//! let mut file = AtomicFile::create(&path, Access::Owner)?;
//! file.write_all(b"another ")?;
//! file.write_all(b"secret")?;
//! file.commit(Durability::Synced)?;
//! assert_eq!(std::fs::read(&path)?, b"another secret");
//! # Ok(())
//! # }
//! ```

mod space;

pub use space::{DEFAULT_RESERVE, DEFAULT_RESERVE_PART, DiskSpace, Floor, HeldRoom};

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Write},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU64, Ordering},
};

/// The users that may read a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// The user that this process runs as.
    Owner,
    /// The users that the process's file mask allows.
    Mask,
}

/// The failures that a committed file survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// A power cut: file and folder are synced.
    Synced,
    /// The end of the process. After a power cut the file may be damaged, so its reader has to check it.
    Unsynced,
}

/// A file while it is being written. Its path changes with [`AtomicFile::commit`]; dropped before, it leaves nothing.
#[derive(Debug)]
pub struct AtomicFile {
    file: File,
    temporary: PathBuf,
    path: PathBuf,
    is_committed: bool,
}

/// Replaces the file at `path` by `bytes`.
///
/// # Errors
/// Where the file can't be written; what was there before is unchanged.
pub fn write(path: &Path, bytes: &[u8], access: Access, durability: Durability) -> io::Result<()> {
    let mut file = AtomicFile::create(path, access)?;
    file.write_all(bytes)?;
    file.commit(durability)
}

/// The result of an operation on a file or folder that may be missing: `None` where it is.
///
/// # Errors
/// Any other error of the operation.
pub fn if_exists<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}

/// A file that this process has locked, until it is dropped; the system unlocks it even if the process is killed.
#[derive(Debug)]
pub struct LockedFile {
    path: PathBuf,
    file: File,
}

impl LockedFile {
    /// Locks a file, which is created where it is missing. `None` where another process has locked it.
    ///
    /// # Errors
    /// Where the file can't be opened or locked.
    pub fn try_lock(path: &Path) -> io::Result<Option<Self>> {
        let file = File::options().create(true).truncate(false).write(true).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { path: path.to_owned(), file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Has another process locked this file now? The look itself locks it for an instant, so that another's try may fail then.
    ///
    /// # Errors
    /// Where the file can't be opened or locked. A missing one isn't created.
    pub fn is_locked(path: &Path) -> io::Result<bool> {
        match File::open(path)?.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Has somebody deleted, moved or replaced it? Another process could have locked what is in its place by then.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        match (fs::metadata(&self.path), self.file.metadata()) {
            (Ok(found), Ok(held)) => (found.dev(), found.ino()) != (held.dev(), held.ino()),
            (Err(error), _) => error.kind() == io::ErrorKind::NotFound,
            // A disk in trouble, which may pass.
            (Ok(_), Err(_)) => false,
        }
    }
}

/// Makes the names in a folder last: files that were created in it, renamed or removed.
///
/// # Errors
/// Where the disk refuses.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

impl AtomicFile {
    /// Begins a file that will lie at `path`, for a path that nobody else writes. Its temporary name is always the
    /// same, so that leftovers of a killed process don't pile up.
    ///
    /// # Errors
    /// Where the temporary file can't be created.
    pub fn create(path: &Path, access: Access) -> io::Result<Self> {
        let temporary = suffixed(path, ".tmp");
        let mut options = options(access);
        let file = options.create(true).truncate(true).open(&temporary)?;
        Ok(Self { file, temporary, path: path.to_owned(), is_committed: false })
    }

    /// As [`AtomicFile::create`], for a path that others may write at the same time: the last one to commit wins.
    ///
    /// # Errors
    /// As [`AtomicFile::create`].
    pub fn create_unique(path: &Path, access: Access) -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let temporary = suffixed(path, &format!(".{}-{count}.tmp", process::id()));
            match options(access).create_new(true).open(&temporary) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                opened => {
                    let (file, path) = (opened?, path.to_owned());
                    return Ok(Self { file, temporary, path, is_committed: false });
                }
            }
        }
    }

    /// The file itself.
    #[must_use]
    pub const fn file(&self) -> &File {
        &self.file
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// Where the disk refuses; what was there before is unchanged then, or, if only the folder can't be synced,
    /// replaced but not safe from a power cut.
    pub fn commit(mut self, durability: Durability) -> io::Result<()> {
        if durability == Durability::Synced {
            // Before the rename: a file system may write the new name before the bytes.
            self.file.sync_all()?;
        }
        fs::rename(&self.temporary, &self.path)?;
        self.is_committed = true;
        match self.path.parent() {
            Some(folder) if durability == Durability::Synced => {
                let is_here = folder.as_os_str().is_empty();
                sync_folder(if is_here { Path::new(".") } else { folder })
            }
            _ => Ok(()),
        }
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if !self.is_committed {
            // Best effort: the next writer of the same path replaces what stays.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

fn options(access: Access) -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    if access == Access::Owner {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    #[cfg(not(unix))]
    let _ = access;
    options
}

fn suffixed(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn a_file_is_replaced_when_it_is_committed_and_not_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        for durability in [Durability::Synced, Durability::Unsynced] {
            fs::write(&path, "old").unwrap();
            let mut dropped = AtomicFile::create(&path, Access::Mask).unwrap();
            dropped.write_all(b"half").unwrap();
            drop(dropped);
            assert_eq!(fs::read(&path).unwrap(), b"old");
            write(&path, b"new", Access::Mask, durability).unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"new");
            assert_eq!(names(folder.path()), ["a.json"]);
        }
    }

    #[test]
    fn two_writers_of_one_path_do_not_disturb_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let mut one = AtomicFile::create_unique(&path, Access::Mask).unwrap();
        let mut two = AtomicFile::create_unique(&path, Access::Mask).unwrap();
        one.write_all(b"one").unwrap();
        two.write_all(b"two").unwrap();
        one.commit(Durability::Unsynced).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"one");
        two.commit(Durability::Unsynced).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(names(folder.path()), ["a"]);
    }

    #[test]
    #[cfg(unix)]
    fn a_secret_is_readable_to_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        write(&path, b"secret", Access::Owner, Durability::Synced).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("none").join("a");
        let error = write(&path, b"x", Access::Mask, Durability::Synced).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
