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
    cmp::Reverse,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
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
/// The contents of the watched folders, as monitoring names them.
const FOLDERS: [&str; 2] = ["data", "blobs"];
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
    blobs: BlobsLie,
    /// The bytes to keep free; by default they follow from the disk's size.
    reserve: Option<u64>,
    /// The room that is held for the journal; none where the journal is elsewhere.
    journal: Option<HeldRoom>,
    state: Mutex<State>,
    /// Whether it has been said that the disk can't hold room.
    is_refusal_told: AtomicBool,
}

/// Where the bytes of a blob go, once they have all come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlobsLie {
    /// On the disk of the data folder.
    WithData,
    /// On the disk of the second folder.
    OnOtherDisk,
    /// In a store that isn't of this machine.
    InStore,
}

/// A disk that the server writes to, as the last look saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WatchedDisk {
    /// The folder that is on it: that of all data, or that of the blobs.
    pub(crate) folder: &'static str,
    pub(crate) space: DiskSpace,
    /// The bytes to keep free: below it no new work is given out.
    pub(crate) reserve: u64,
}

/// Bytes that an upload needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Coming {
    /// In the data folder.
    pub(crate) spooled: u64,
    /// Among the blobs, beside those in the data folder.
    pub(crate) stored: u64,
}

#[derive(Debug, Default)]
struct State {
    /// By folder, as far as it is known.
    spaces: Vec<Option<DiskSpace>>,
    /// By folder: below the reserve, below the floor of checkpoints.
    floors: Vec<(Floor, Floor)>,
    seen: Storage,
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
        let (folders, blobs) = (vec![data.to_owned()], BlobsLie::WithData);
        let (state, is_refusal_told) = Default::default();
        let shared = Shared { disk, folders, blobs, reserve, journal, state, is_refusal_told };
        Self { shared: Arc::new(shared) }
    }

    /// The same where blobs are in another folder, whose disk is watched too.
    pub(crate) fn beside(self, blobs: &Path) -> Self {
        let disk_of = |folder: &Path| std::fs::metadata(folder).map(|meta| meta.dev());
        let data = self.shared.folders.first().map(|data| disk_of(data));
        // Where it isn't known, each is taken for a disk of its own.
        match (data, disk_of(blobs)) {
            (Some(Ok(data)), Ok(other)) if data == other => {
                self.with(Some(blobs), BlobsLie::WithData)
            }
            _ => self.on_other_disk(blobs),
        }
    }

    fn on_other_disk(self, blobs: &Path) -> Self {
        self.with(Some(blobs), BlobsLie::OnOtherDisk)
    }

    /// The same where blobs are in a store of other machines.
    pub(crate) fn beside_store(self) -> Self {
        self.with(None, BlobsLie::InStore)
    }

    fn with(self, folder: Option<&Path>, blobs: BlobsLie) -> Self {
        let Shared { disk, folders, reserve, journal, .. } = &*self.shared;
        let (disk, reserve, journal) = (Arc::clone(disk), *reserve, journal.clone());
        let folders = folders.iter().cloned().chain(folder.map(Path::to_owned)).collect();
        let (state, is_refusal_told) = Default::default();
        let shared = Shared { disk, folders, blobs, reserve, journal, state, is_refusal_told };
        Self { shared: Arc::new(shared) }
    }

    /// The room at the last look.
    pub(crate) fn seen(&self) -> Storage {
        self.shared.state.lock().seen
    }

    /// The disks, as far as the last look saw them.
    pub(crate) fn disks(&self) -> Vec<WatchedDisk> {
        let state = self.shared.state.lock();
        let spaces = FOLDERS.into_iter().zip(&state.spaces);
        let disks = spaces.filter_map(|(folder, space)| {
            let space = (*space)?;
            Some(WatchedDisk { folder, space, reserve: self.shared.reserve_of(space) })
        });
        disks.collect()
    }

    /// Looks at the disks, and logs what has changed. Blocks.
    pub(crate) fn look(&self) -> Looked {
        let shared = &*self.shared;
        // Before the lock: a disk that hangs must not keep others from what was seen.
        let spaces: Vec<_> =
            shared.folders.iter().map(|folder| shared.disk.space(folder)).collect();
        let mut state = shared.state.lock();
        let State { spaces: known, floors, seen } = &mut *state;
        known.resize(shared.folders.len(), None);
        floors.resize(shared.folders.len(), Default::default());
        let mut each = Vec::new();
        for ((space, known), floors) in spaces.into_iter().zip(known).zip(floors) {
            each.push(match space {
                Ok(space) => {
                    *known = Some(space);
                    Some(shared.storage(space, floors))
                }
                Err(error) => {
                    tracing::debug!(%error, "the free room of a disk isn't known");
                    None
                }
            });
        }
        let worst = each.iter().flatten().max_by_key(|one| (one.level, Reverse(one.free)));
        let storage = worst.copied().unwrap_or(*seen);
        let before = std::mem::replace(seen, storage);
        drop(state);
        // The journal is on the disk of the data folder.
        if let Some(Some(data)) = each.first() {
            shared.hold_journal_room(*data);
        }
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

    /// Refuses an upload for which there was no room at the last look, above the floor that goes for it. It doesn't block.
    pub(crate) fn admit(&self, name: UploadName, coming: Coming) -> Result<(), ApiError> {
        let shared = &*self.shared;
        let Coming { spooled, stored } = coming;
        let with_data = if shared.blobs == BlobsLie::WithData { stored } else { 0 };
        let data = (0, spooled.saturating_add(with_data));
        let blobs = (shared.blobs == BlobsLie::OnOtherDisk).then_some((1, stored));
        let state = shared.state.lock();
        for (folder, more) in [Some(data), blobs].into_iter().flatten() {
            // A disk of which nothing is known refuses for itself.
            if let Some(space) = state.spaces.get(folder).copied().flatten() {
                shared.has_room(name, space, more)?;
            }
        }
        Ok(())
    }
}

impl Shared {
    fn reserve_of(&self, space: DiskSpace) -> u64 {
        self.reserve.unwrap_or_else(|| space.default_reserve())
    }

    fn has_room(&self, name: UploadName, space: DiskSpace, more: u64) -> Result<(), ApiError> {
        let reserve = self.reserve_of(space);
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

    /// Holds room for the journal where that leaves the reserve, and releases it when hardly anything else is left. Blocks.
    fn hold_journal_room(&self, storage: Storage) {
        let Some(room) = &self.journal else { return };
        let Storage { level, free, reserve } = storage;
        let wanted = (reserve / JOURNAL_PART).min(MAX_JOURNAL_ROOM);
        let held = room.bytes().unwrap_or(0);
        // Otherwise the server itself would make the room too little.
        let leaves_reserve = free.saturating_add(held) >= reserve.saturating_add(wanted);
        let changed = if held > 0 && (free < wanted / RELEASE_PART || wanted == 0) {
            tracing::warn!(held, "the journal gets the room that was held for it");
            room.release()
        } else if held != wanted && wanted > 0 && level == StorageLevel::Enough && leaves_reserve {
            room.hold(wanted)
        } else {
            Ok(())
        };
        match changed {
            Ok(()) => self.is_refusal_told.store(false, Ordering::Relaxed),
            Err(error) => {
                if !self.is_refusal_told.swap(true, Ordering::Relaxed) {
                    tracing::warn!(%error, wanted, "the disk can't hold room for the journal");
                }
            }
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
#[path = "storage_watch_tests.rs"]
mod tests;
