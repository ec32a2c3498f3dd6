//! Watches the free bytes of the disks that the server writes to, against two floors.
//!
//! ```text
//!   all of the disk
//!   |  everything goes on
//!   +-- the reserve (`--disk-reserve`): below it no new work, and no data of new jobs
//!   |  units that run are finished: their checkpoints are taken, and published
//!   +-- a quarter of the reserve: below it no checkpoints either
//!   |  the journal goes on
//!   +-- nothing: the journal gets the room that a file beside it has held
//! ```

use crate::shell::ShellHandle;
use parking_lot::Mutex;
use sojourn_blobs::{Disk, UploadName};
use sojourn_core::Command;
use sojourn_files::{DiskSpace, Floor, HeldRoom};
use sojourn_protocol::{
    error::{ApiError, ErrorKind},
    storage::{Storage, StorageLevel},
};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

/// How often the disks are looked at.
pub(crate) const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// The part of the reserve below which no checkpoints are taken.
const FULL_PART: u64 = 4;
/// The part of the reserve that is held for the journal, unless this is more than [`MAX_JOURNAL_ROOM`].
const JOURNAL_PART: u64 = 8;
/// Most bytes that are held for the journal: of about fifty thousand events.
const MAX_JOURNAL_ROOM: u64 = 64 << 20;
/// The held room is released when less than this part of it is free besides.
const RELEASE_PART: u64 = 2;
/// Bytes in which people are told of room.
const MB: u64 = 1_000_000;

/// The watch; cheap to clone.
#[derive(Clone)]
pub(crate) struct StorageWatch {
    shared: Arc<Shared>,
}

struct Shared {
    disk: Arc<dyn Disk>,
    /// The data folder, and that of the blobs where it is another one.
    folders: Vec<PathBuf>,
    /// The bytes to keep free; by default they follow from the disk's size.
    reserve: Option<u64>,
    /// The room that is held for the journal; none where the journal is elsewhere.
    journal: Option<HeldRoom>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// By folder: below the reserve, below the floor of checkpoints.
    floors: Vec<(Floor, Floor)>,
    seen: Storage,
    /// That the disk can't hold room has been said.
    is_refusal_told: bool,
}

/// The result of a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Looked {
    pub(crate) storage: Storage,
    pub(crate) has_changed: bool,
}

impl std::fmt::Debug for StorageWatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StorageWatch")
            .field("folders", &self.shared.folders)
            .finish_non_exhaustive()
    }
}

impl StorageWatch {
    /// A watch over the disk of a data folder, for its uploads and its journal.
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        data: &Path,
        reserve: Option<u64>,
        journal: Option<HeldRoom>,
    ) -> Self {
        let folders = vec![data.to_owned()];
        Self {
            shared: Arc::new(Shared { disk, folders, reserve, journal, state: Mutex::default() }),
        }
    }

    /// The same that also watches the disk of a folder of blobs.
    pub(crate) fn beside(self, blobs: &Path) -> Self {
        let Shared { disk, folders, reserve, journal, .. } = &*self.shared;
        let (disk, reserve, journal) = (Arc::clone(disk), *reserve, journal.clone());
        let folders = folders.iter().cloned().chain([blobs.to_owned()]).collect();
        Self {
            shared: Arc::new(Shared { disk, folders, reserve, journal, state: Mutex::default() }),
        }
    }

    /// The room at the last look.
    pub(crate) fn seen(&self) -> Storage {
        self.shared.state.lock().seen
    }

    /// Looks at the disks, and logs what has changed. Blocks.
    pub(crate) fn look(&self) -> Looked {
        let shared = &*self.shared;
        // Before the lock: a disk that hangs must not keep others from what was seen.
        let spaces: Vec<_> =
            shared.folders.iter().map(|folder| shared.disk.space(folder)).collect();
        let mut state = shared.state.lock();
        state.floors.resize(shared.folders.len(), Default::default());
        let mut worst: Option<Storage> = None;
        for (space, floors) in spaces.into_iter().zip(&mut state.floors) {
            let space = match space {
                Ok(space) => space,
                Err(error) => {
                    tracing::debug!(%error, "the free room of a disk isn't known");
                    continue;
                }
            };
            let storage = shared.storage(space, floors);
            let is_worse =
                worst.is_none_or(|worst| (storage.level, worst.free) > (worst.level, storage.free));
            if is_worse {
                worst = Some(storage);
            }
        }
        let storage = worst.unwrap_or(state.seen);
        let before = std::mem::replace(&mut state.seen, storage);
        shared.hold_journal_room(storage, &mut state.is_refusal_told);
        drop(state);
        let has_changed = before.level != storage.level;
        if has_changed {
            say(storage);
        }
        Looked { storage, has_changed }
    }

    /// Looks, and tells the core of a change, and again and again that there is too little room.
    pub(crate) fn look_for(&self, shell: &ShellHandle) {
        let Looked { storage, has_changed } = self.look();
        if has_changed || storage.is_low() {
            shell.tell(Command::Storage(storage));
        }
    }

    /// The journal is about to be opened again after a failure: it may need the room that is held for it.
    pub(crate) fn release_journal_room(&self) {
        if let Some(room) = &self.shared.journal
            && let Err(error) = room.release()
        {
            tracing::warn!(%error, "the room that is held for the journal can't be released");
        }
    }

    /// Refuses `more` bytes of an upload for which there is no room above the floor that goes for it.
    pub(crate) fn admit(&self, name: UploadName, more: u64) -> Result<(), ApiError> {
        let shared = &*self.shared;
        let Some(Ok(space)) = shared.folders.first().map(|data| shared.disk.space(data)) else {
            return Ok(());
        };
        let reserve = shared.reserve_of(space);
        let floor = match name {
            UploadName::Blob(_) => reserve,
            UploadName::Lease(_) | UploadName::Delta(_) => reserve / FULL_PART,
        };
        if space.free.saturating_sub(more) >= floor {
            return Ok(());
        }
        let message = format!(
            "the server's disk has {} MB free, and keeps {} MB of them: this takes {} MB",
            space.free / MB,
            floor / MB,
            more.div_ceil(MB)
        );
        Err(ApiError::new(ErrorKind::StorageFull, message))
    }
}

impl Shared {
    fn reserve_of(&self, space: DiskSpace) -> u64 {
        self.reserve.unwrap_or_else(|| space.default_reserve())
    }

    fn storage(&self, space: DiskSpace, (low, full): &mut (Floor, Floor)) -> Storage {
        let DiskSpace { free, .. } = space;
        let reserve = self.reserve_of(space);
        let is_low = low.look(free, reserve);
        let level = if full.look(free, reserve / FULL_PART) {
            StorageLevel::Full
        } else if is_low {
            StorageLevel::Low
        } else {
            StorageLevel::Enough
        };
        Storage { level, free, reserve }
    }

    /// Holds room for the journal while there is enough, and releases it when hardly anything else is left.
    fn hold_journal_room(&self, storage: Storage, is_refusal_told: &mut bool) {
        let Some(room) = &self.journal else { return };
        let wanted = (storage.reserve / JOURNAL_PART).min(MAX_JOURNAL_ROOM);
        let held = room.bytes().unwrap_or(0);
        let changed = if held > 0 && (storage.free < wanted / RELEASE_PART || wanted == 0) {
            tracing::warn!(held, "the journal gets the room that was held for it");
            room.release()
        } else if held != wanted && wanted > 0 && storage.level == StorageLevel::Enough {
            room.hold(wanted)
        } else {
            Ok(())
        };
        match changed {
            Ok(()) => *is_refusal_told = false,
            Err(error) if !*is_refusal_told => {
                tracing::warn!(%error, wanted, "the disk can't hold room for the journal");
                *is_refusal_told = true;
            }
            Err(_) => {}
        }
    }
}

fn say(storage: Storage) {
    let Storage { level, free, reserve } = storage;
    match level {
        StorageLevel::Enough => tracing::info!(free, reserve, "the disk has enough room again"),
        StorageLevel::Low => tracing::warn!(
            free,
            reserve,
            "the disk has less room than is to be kept: running units are finished, and no new work is given out"
        ),
        StorageLevel::Full => tracing::error!(
            free,
            reserve,
            "the disk is nearly full: no checkpoints are taken, and what is left is the journal's"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_blobs::FullDisk;
    use sojourn_protocol::{digest::Digest, ids::LeaseId};

    const DISK: u64 = 1 << 30;
    const RESERVE: u64 = 100 << 20;

    fn watch(disk: &Arc<FullDisk>, folder: &Path) -> (StorageWatch, HeldRoom) {
        let room = HeldRoom::at(folder.join("journal.reserve"));
        let disk: Arc<dyn Disk> = disk.clone();
        (StorageWatch::new(disk, folder, Some(RESERVE), Some(room.clone())), room)
    }

    #[test]
    fn as_the_disk_fills_first_new_work_ends_and_then_uploads_and_all_come_back() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Arc::new(FullDisk::with_left(DISK));
        let (watch, _) = watch(&disk, folder.path());
        let mut levels = Vec::new();
        let floor = RESERVE / FULL_PART;
        for free in [DISK, RESERVE, RESERVE - 1, floor, floor - 1, floor, RESERVE, 2 * RESERVE] {
            disk.make_room(free);
            let Looked { storage, has_changed } = watch.look();
            assert_eq!((storage.free, storage, watch.seen()), (free, watch.seen(), storage));
            levels.push((storage.level, has_changed));
        }
        use StorageLevel::{Enough, Full, Low};
        let expected = [
            (Enough, false),
            (Enough, false),
            (Low, true),
            (Low, false),
            (Full, true),
            (Full, false),
            (Low, true),
            (Enough, true),
        ];
        assert_eq!(levels, expected);
    }

    #[test]
    fn uploads_are_taken_as_far_as_there_is_room_above_their_floor() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Arc::new(FullDisk::with_left(DISK));
        let (watch, _) = watch(&disk, folder.path());
        let (data, result) = (UploadName::Blob(Digest::of(b"")), UploadName::Lease(LeaseId(1)));
        disk.make_room(RESERVE + 10);
        assert!(watch.admit(data, 10).is_ok());
        let refused = watch.admit(data, 11).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::StorageFull);
        assert!(refused.message.contains("keeps 104 MB"), "{refused}");
        assert!(watch.admit(result, RESERVE / 2).is_ok());
        disk.make_room(RESERVE / FULL_PART - 1);
        for name in [data, result, UploadName::Delta(LeaseId(1))] {
            assert!(watch.admit(name, 0).is_err(), "{name}");
        }
    }

    #[test]
    fn the_room_that_is_held_for_the_journal_is_released_when_nothing_else_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Arc::new(FullDisk::with_left(DISK));
        let (watch, room) = watch(&disk, folder.path());
        let held = |free| {
            disk.make_room(free);
            watch.look();
            room.bytes().unwrap()
        };
        let wanted = RESERVE / JOURNAL_PART;
        assert_eq!(held(DISK), wanted);
        assert_eq!(held(wanted), wanted, "the journal has other room");
        assert_eq!(held(wanted / RELEASE_PART - 1), 0);
        assert_eq!(held(RESERVE - 1), 0, "not before there is enough room for all");
        assert_eq!(held(DISK), wanted);
        watch.release_journal_room();
        assert_eq!(room.bytes().unwrap(), 0);
    }

    #[test]
    fn a_reserve_of_nothing_refuses_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let disk: Arc<dyn Disk> = Arc::new(FullDisk::with_left(0));
        let room = HeldRoom::at(folder.path().join("journal.reserve"));
        let watch = StorageWatch::new(disk, folder.path(), Some(0), Some(room.clone()));
        assert_eq!((watch.look().storage.level, room.bytes().unwrap()), (StorageLevel::Enough, 0));
        assert!(watch.admit(UploadName::Blob(Digest::of(b"")), 5).is_ok());
    }
}
