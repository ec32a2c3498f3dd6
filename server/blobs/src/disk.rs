//! The two operations of the spool that fail on a full disk, and its free bytes, as a trait; with a fake disk that is full.

use sojourn_files::DiskSpace;
use sojourn_protocol::quantity::to_usize;
use std::{
    fs::File,
    io::{self, Write as _},
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};

/// Writes to an open file, and syncs it.
pub trait Disk: Send + Sync + 'static {
    /// Writes all of `bytes` at the file's end.
    ///
    /// # Errors
    /// As [`std::io::Write::write_all`]; a part may have been written.
    fn append(&self, file: &mut File, bytes: &[u8]) -> io::Result<()>;

    /// Returns when the bytes of a file, or the names in a folder, survive a power cut.
    ///
    /// # Errors
    /// As [`File::sync_all`].
    fn sync(&self, file: &File) -> io::Result<()>;

    /// The bytes of the disk that a folder is on.
    ///
    /// # Errors
    /// As [`DiskSpace::of`].
    fn space(&self, folder: &Path) -> io::Result<DiskSpace> {
        DiskSpace::of(folder)
    }
}

/// Returns when the names in a folder survive a power cut.
pub(crate) fn sync_folder(disk: &dyn Disk, folder: &Path) -> io::Result<()> {
    disk.sync(&File::open(folder)?)
}

/// The disk as it is.
#[derive(Debug, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn append(&self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        file.write_all(bytes)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        file.sync_all()
    }
}

/// A disk with so many free bytes: it writes what fits, and then fails as a full disk does.
#[derive(Debug)]
pub struct FullDisk {
    left: AtomicU64,
    total: u64,
}

impl FullDisk {
    /// A disk that has `bytes`, all of them free.
    #[must_use]
    pub const fn with_left(bytes: u64) -> Self {
        Self { left: AtomicU64::new(bytes), total: bytes }
    }

    /// Sets the free bytes.
    pub fn make_room(&self, bytes: u64) {
        self.left.store(bytes, Ordering::SeqCst);
    }
}

impl Disk for FullDisk {
    fn append(&self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        let left = self.left.load(Ordering::SeqCst);
        let fits = to_usize(left).min(bytes.len());
        let (now, rest) = bytes.split_at(fits);
        file.write_all(now)?;
        self.left.store(left - fits as u64, Ordering::SeqCst);
        if rest.is_empty() { Ok(()) } else { Err(io::ErrorKind::StorageFull.into()) }
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        file.sync_all()
    }

    fn space(&self, _: &Path) -> io::Result<DiskSpace> {
        let free = self.left.load(Ordering::SeqCst);
        Ok(DiskSpace { free, total: self.total })
    }
}
