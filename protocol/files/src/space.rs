//! The room on the disk of a folder: how much is free, a floor below which it is too little, and a file that holds some.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

/// Bytes that are kept free, if nobody says otherwise and this is less than [`DEFAULT_RESERVE_PART`].
pub const DEFAULT_RESERVE: u64 = 2_000_000_000;
/// The part of the disk that is kept free, if nobody says otherwise and this is less than [`DEFAULT_RESERVE`].
pub const DEFAULT_RESERVE_PART: u64 = 20;
/// Room counts as enough again once this part of the floor is free above it, so that the two don't alternate.
const RECOVERY_PART: u64 = 10;

/// The bytes of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskSpace {
    /// Free for this user.
    pub free: u64,
    /// In all.
    pub total: u64,
}

impl DiskSpace {
    /// The bytes of the disk that a folder is on.
    ///
    /// # Errors
    /// As `statvfs`.
    pub fn of(folder: &Path) -> io::Result<Self> {
        let disk = rustix::fs::statvfs(folder)?;
        let bytes = |blocks: u64| blocks.saturating_mul(disk.f_frsize);
        Ok(Self { free: bytes(disk.f_bavail), total: bytes(disk.f_blocks) })
    }

    /// The bytes to keep free where nobody says otherwise: 2 GB, or 5 % of the disk where that is less.
    #[must_use]
    pub const fn default_reserve(self) -> u64 {
        let part = self.total / DEFAULT_RESERVE_PART;
        if part < DEFAULT_RESERVE { part } else { DEFAULT_RESERVE }
    }
}

/// Whether less than a floor is free.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Floor {
    is_below: bool,
}

impl Floor {
    /// Takes in that so many bytes are free, where `floor` are to be. True where less are. Once there were less, a tenth more
    /// than the floor must be free.
    pub const fn look(&mut self, free: u64, floor: u64) -> bool {
        let margin = if self.is_below { floor / RECOVERY_PART } else { 0 };
        self.is_below = free < floor.saturating_add(margin);
        self.is_below
    }
}

/// A file that holds room on the disk, until that is needed for something else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldRoom {
    path: PathBuf,
}

impl HeldRoom {
    /// Room that the file at `path` holds, if it is there.
    #[must_use]
    pub const fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// Bytes that it holds.
    ///
    /// # Errors
    /// Where the file can't be looked at.
    pub fn bytes(&self) -> io::Result<u64> {
        let meta = super::if_exists(fs::metadata(&self.path))?;
        Ok(meta.map_or(0, |meta| meta.len()))
    }

    /// Has it hold so many bytes. They are the file's own from now on, whoever fills the disk.
    ///
    /// # Errors
    /// Where the disk hasn't so much room, or can't set room aside. Then it holds nothing.
    pub fn hold(&self, bytes: u64) -> io::Result<()> {
        let file = File::create(&self.path)?;
        let held = rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, bytes);
        held.map_err(|error| {
            // What it did get is of no use.
            let _ = fs::remove_file(&self.path);
            error.into()
        })
    }

    /// Lets go of the room.
    ///
    /// # Errors
    /// Where the file can't be removed.
    pub fn release(&self) -> io::Result<()> {
        super::if_exists(fs::remove_file(&self.path)).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_default_two_gigabytes_are_kept_free_or_a_twentieth_of_a_small_disk() {
        let of = |total| DiskSpace { free: 0, total }.default_reserve();
        assert_eq!(of(252_000_000_000), 2_000_000_000);
        assert_eq!(of(40_000_000_000), 2_000_000_000);
        assert_eq!(of(20_000_000_000), 1_000_000_000);
        assert_eq!(of(64 << 20), (64 << 20) / 20);
    }

    #[test]
    fn room_that_was_too_little_is_enough_again_at_a_tenth_more() {
        let mut floor = Floor::default();
        let looks =
            [(100, false), (99, true), (100, true), (109, true), (110, false), (100, false)];
        for (free, expected) in looks {
            assert_eq!(floor.look(free, 100), expected, "{free}");
        }
        assert!(!floor.look(0, 0), "nothing is to be free");
    }

    #[test]
    fn a_file_holds_room_until_it_lets_go_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let held = HeldRoom::at(folder.path().join("reserve"));
        assert_eq!(held.bytes().unwrap(), 0);
        held.hold(1 << 20).unwrap();
        let blocks = std::os::unix::fs::MetadataExt::blocks(&fs::metadata(&held.path).unwrap());
        assert!(blocks * 512 >= 1 << 20, "the blocks are its own");
        assert_eq!(held.bytes().unwrap(), 1 << 20);
        held.release().unwrap();
        held.release().unwrap();
        assert_eq!(held.bytes().unwrap(), 0);
        assert!(held.hold(u64::MAX >> 1).is_err(), "no disk has so much");
        assert_eq!(held.bytes().unwrap(), 0, "nothing is left of it");
        let space = DiskSpace::of(folder.path()).unwrap();
        assert!(space.free <= space.total && space.total > 0);
    }
}
