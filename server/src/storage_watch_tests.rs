//! Tests of what is seen of disks, of refusals for it, and of the room that is held for the journal.

use super::*;
use sojourn_blobs::FullDisk;
use sojourn_protocol::{digest::Digest, ids::LeaseId};
use std::{fs::File, io};

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
    let spooled = |spooled| Coming { spooled, stored: 0 };
    disk.make_room(RESERVE + 10);
    watch.look();
    assert!(watch.admit(data, spooled(10)).is_ok());
    let refused = watch.admit(data, spooled(11)).unwrap_err();
    assert!(watch.admit(data, Coming { spooled: 5, stored: 6 }).is_err());
    assert_eq!(refused.kind, ErrorKind::StorageFull);
    assert!(refused.message.contains("keeps 104 MB"), "{refused}");
    assert!(watch.admit(result, spooled(RESERVE / 2)).is_ok());
    disk.make_room(RESERVE / FULL_PART - 1);
    watch.look();
    for name in [data, result, UploadName::Delta(LeaseId(1))] {
        assert!(watch.admit(name, spooled(0)).is_err(), "{name}");
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
    assert!(
        watch.admit(UploadName::Blob(Digest::of(b"")), Coming { spooled: 5, stored: 5 }).is_ok()
    );
}

/// Two disks, told apart by the names of folders.
struct Disks {
    data: DiskSpace,
    blobs: DiskSpace,
}

impl Disk for Disks {
    fn append(&self, _: &mut File, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn sync(&self, _: &File) -> io::Result<()> {
        Ok(())
    }

    fn space(&self, folder: &Path) -> io::Result<DiskSpace> {
        Ok(if folder.ends_with("blobs") { self.blobs } else { self.data })
    }
}

const GB: u64 = 1_000_000_000;

fn two_disks(data: u64, blobs: u64) -> StorageWatch {
    let of = |free| DiskSpace { free, total: 100 * GB };
    let disk = Disks { data: of(data), blobs: of(blobs) };
    StorageWatch::new(Arc::new(disk), Path::new("data"), Some(GB), None)
}

#[test]
fn a_blob_needs_room_on_each_disk_that_it_is_written_to_and_twice_only_on_one_that_has_both() {
    let name = UploadName::Blob(Digest::of(b""));
    let six = Coming { spooled: 6 * GB, stored: 6 * GB };
    let is_taken = |watch: StorageWatch| {
        watch.look();
        watch.admit(name, six).is_ok()
    };
    let blobs = Path::new("blobs");
    assert!(!is_taken(two_disks(10 * GB, 0)), "it lies in the spool and in the store");
    assert!(is_taken(two_disks(13 * GB, 0)));
    assert!(is_taken(two_disks(10 * GB, 0).beside_store()));
    assert!(!is_taken(two_disks(6 * GB, 0).beside_store()));
    assert!(is_taken(two_disks(10 * GB, 10 * GB).on_other_disk(blobs)));
    assert!(!is_taken(two_disks(10 * GB, 6 * GB).on_other_disk(blobs)));
    assert!(!is_taken(two_disks(6 * GB, 10 * GB).on_other_disk(blobs)));
    // Another folder of the same disk.
    let folder = tempfile::tempdir().unwrap();
    let (data, blobs) = (folder.path().join("data"), folder.path().join("blobs"));
    for folder in [&data, &blobs] {
        std::fs::create_dir(folder).unwrap();
    }
    let of = |free| {
        let disk = Arc::new(FullDisk::with_left(100 * GB));
        disk.make_room(free);
        StorageWatch::new(disk, &data, Some(GB), None).beside(&blobs)
    };
    assert!(!is_taken(of(10 * GB)));
    assert!(is_taken(of(13 * GB)));
}

#[test]
fn the_room_for_the_journal_does_not_make_the_room_too_little() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Arc::new(FullDisk::with_left(DISK));
    let (watch, room) = watch(&disk, folder.path());
    let wanted = RESERVE / JOURNAL_PART;
    for (free, held) in [(RESERVE + wanted - 1, 0), (RESERVE + wanted, wanted)] {
        disk.make_room(free);
        assert_eq!(watch.look().storage.level, StorageLevel::Enough);
        assert_eq!(room.bytes().unwrap(), held);
        // A real disk has less from now on.
        disk.make_room(free - held);
        assert_eq!(watch.look().storage.level, StorageLevel::Enough);
    }
}
