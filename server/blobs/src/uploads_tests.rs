//! Small uploads that come at the same time.

use super::*;
use crate::{
    HashedBytes,
    disk::RealDisk,
    test_disks::{CutDisk, GatedDisk},
};
use sojourn_protocol::ids::LeaseId;
use std::{
    fs::File,
    io,
    sync::atomic::{AtomicBool, Ordering},
};
use tempfile::TempDir;

const UPLOADS: u64 = 24;

/// A spool folder in a folder with a log.
fn spool(disk: Arc<dyn Disk>) -> (TempDir, Uploads) {
    let root = tempfile::tempdir().unwrap();
    let uploads = open(root.path(), disk);
    (root, uploads)
}

fn open(root: &Path, disk: Arc<dyn Disk>) -> Uploads {
    let log = WriteAheadLog::with_disk(root, Arc::clone(&disk)).unwrap();
    Uploads::with_log(&root.join("uploads"), disk, log).unwrap()
}

fn receive(uploads: &Uploads, lease: u64) -> Result<UploadState, UploadError> {
    let (name, bytes) = (UploadName::Lease(LeaseId(lease)), content(lease));
    uploads.receive(name, blob(lease), 0, Encoding::Identity, &bytes)
}

fn content(lease: u64) -> Vec<u8> {
    format!("checkpoint of lease {lease}").into_bytes()
}

fn blob(lease: u64) -> BlobRef {
    HashedBytes::of(content(lease).into()).blob()
}

/// Starts all uploads at once, and lets the first sync end when all their bytes are written.
fn at_once(uploads: &Uploads, disk: &GatedDisk) -> Vec<Result<UploadState, UploadError>> {
    disk.close();
    let appended = disk.appends();
    std::thread::scope(|scope| {
        let requests: Vec<_> =
            (1..=UPLOADS).map(|lease| scope.spawn(move || receive(uploads, lease))).collect();
        disk.wait_for_appends(appended + to_usize(UPLOADS));
        assert!(requests.iter().all(|request| !request.is_finished()));
        disk.open();
        requests.into_iter().map(|request| request.join().unwrap()).collect()
    })
}

#[test]
fn small_uploads_share_a_sync_and_none_is_answered_before_it() {
    let disk = Arc::new(GatedDisk::default());
    let (_root, uploads) = spool(disk.clone());
    receive(&uploads, 99).unwrap();
    let before = disk.syncs();
    let ended = at_once(&uploads, &disk);
    assert!(ended.into_iter().all(|ended| ended.unwrap().complete));
    let syncs = disk.syncs() - before;
    // One is under way, one is for all that came meanwhile, and the last may come just after that has begun.
    assert!(syncs <= 3, "{syncs} syncs");
    for lease in 1..=UPLOADS {
        let read = uploads.read(UploadName::Lease(LeaseId(lease)), blob(lease)).unwrap();
        assert_eq!(read.bytes(), &content(lease));
    }
}

#[test]
fn a_failed_sync_refuses_every_upload_of_its_group() {
    let disk = Arc::new(GatedDisk::default());
    let (_root, uploads) = spool(disk.clone());
    receive(&uploads, 99).unwrap();
    disk.fail_syncs(true);
    let ended = at_once(&uploads, &disk);
    assert!(ended.iter().all(Result::is_err), "{ended:?}");
    for lease in 1..=UPLOADS {
        let name = UploadName::Lease(LeaseId(lease));
        assert_eq!(uploads.state(name), None);
        assert!(uploads.complete(name, blob(lease)).is_err());
    }
    disk.fail_syncs(false);
    for lease in 1..=UPLOADS {
        assert!(receive(&uploads, lease).unwrap().complete);
    }
}

/// A disk that can't synchronise folders while it fails.
#[derive(Debug, Default)]
struct NoFolders(AtomicBool);

impl Disk for NoFolders {
    fn append(&self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        RealDisk.append(file, bytes)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        let fails = self.0.load(Ordering::SeqCst) && file.metadata()?.is_dir();
        if fails { Err(io::Error::other("too many open files")) } else { Ok(()) }
    }
}

#[test]
fn an_upload_whose_folder_could_not_be_synchronised_is_completed_later() {
    let disk = Arc::new(NoFolders::default());
    let root = tempfile::tempdir().unwrap();
    let uploads = Uploads::with_disk(&root.path().join("uploads"), disk.clone()).unwrap();
    let name = UploadName::Lease(LeaseId(1));
    let (blob, bytes) = (blob(1), content(1));
    let begin =
        |from: usize| uploads.receive(name, blob, from as u64, Encoding::Identity, &bytes[from..]);
    disk.0.store(true, Ordering::SeqCst);
    begin(0).unwrap_err();
    disk.0.store(false, Ordering::SeqCst);
    assert!(begin(bytes.len()).unwrap().complete);
    assert_eq!(uploads.read(name, blob).unwrap().bytes(), &bytes);
}

#[test]
fn an_acknowledged_upload_is_complete_after_a_power_cut_and_a_torn_one_never_is() {
    let root = tempfile::tempdir().unwrap();
    let acknowledged = Arc::new(Mutex::new(Vec::new()));
    let check = {
        let (root, acknowledged) = (root.path().to_owned(), Arc::clone(&acknowledged));
        move |disk: &CutDisk| {
            for image in disk.images(&root) {
                let uploads = open(image.path(), Arc::new(GatedDisk::default()));
                for lease in 1..=4 {
                    let name = UploadName::Lease(LeaseId(lease));
                    let read = uploads.read(name, blob(lease));
                    let is_acknowledged = acknowledged.lock().contains(&lease);
                    assert!(read.is_ok() || !is_acknowledged, "lease {lease}: {read:?}");
                    let is_complete = uploads.complete(name, blob(lease)).is_ok();
                    assert_eq!(read.is_ok(), is_complete, "lease {lease}");
                }
            }
        }
    };
    let disk = Arc::new(CutDisk::new(root.path(), check));
    let uploads = open(root.path(), disk.clone());
    for lease in 1..=4 {
        receive(&uploads, lease).unwrap();
        acknowledged.lock().push(lease);
        disk.check();
    }
}

/// Whichever was there before, in the log or as a file, and though a power cut may undo its removal.
#[test]
fn an_acknowledged_upload_that_replaced_another_survives_a_power_cut() {
    let texts = [b"first".to_vec(), b"second".to_vec(), vec![3; 130 << 10], vec![4; 130 << 10]];
    for before in 0..texts.len() {
        for after in (0..texts.len()).filter(|after| *after != before) {
            replace(&texts[before], &texts[after]);
        }
    }
}

fn replace(before: &[u8], after: &[u8]) {
    const NAME: UploadName = UploadName::Lease(LeaseId(1));
    let root = tempfile::tempdir().unwrap();
    let acknowledged = Arc::new(Mutex::new(None));
    let check = {
        let (root, acknowledged) = (root.path().to_owned(), Arc::clone(&acknowledged));
        move |disk: &CutDisk| {
            let Some(blob) = *acknowledged.lock() else { return };
            for image in disk.images(&root) {
                let uploads = open(image.path(), Arc::new(GatedDisk::default()));
                assert!(uploads.is_complete(NAME, blob));
                assert_eq!(uploads.read(NAME, blob).unwrap().blob(), blob);
                // The same upload is continued, though another may be there too.
                let again = uploads.begin(NAME, blob, blob.bytes, Encoding::Identity);
                assert!(again.unwrap().finish().unwrap().complete);
                assert_eq!(uploads.state(NAME).map(|(held, _)| held), Some(blob));
                uploads.remove(NAME).unwrap();
                let left = fs::read_dir(image.path().join("uploads")).unwrap();
                let mut left = left.map(|file| file.unwrap().file_name().into_string().unwrap());
                assert_eq!(left.find(|file| file.starts_with("lease-1.")), None);
            }
        }
    };
    let disk = Arc::new(CutDisk::new(root.path(), check));
    let uploads = open(root.path(), disk.clone());
    // Begins the log, which makes the name of the spool folder durable.
    receive(&uploads, 2).unwrap();
    for bytes in [before, after] {
        let declared = HashedBytes::of(bytes.to_vec().into()).blob();
        *acknowledged.lock() = None;
        assert!(uploads.receive(NAME, declared, 0, Encoding::Identity, bytes).unwrap().complete);
        *acknowledged.lock() = Some(declared);
        disk.check();
    }
    // The removal of the first may never have become durable: the next records are synced before it can be retired.
    receive(&uploads, 3).unwrap();
}

#[test]
fn an_upload_that_was_reported_is_not_replaced_by_a_request_that_was_allowed_before() {
    for with_log in [true, false] {
        let root = tempfile::tempdir().unwrap();
        let uploads = match with_log {
            true => open(root.path(), Arc::new(RealDisk)),
            false => Uploads::open(root.path()).unwrap(),
        };
        let name = UploadName::Lease(LeaseId(1));
        uploads.put(name, blob(1), &content(1)).unwrap();
        assert!(!uploads.report(name, blob(2)), "these bytes aren't there");
        assert!(uploads.report(name, blob(1)));
        let refused = |taken: Result<(), UploadError>| {
            assert!(matches!(taken, Err(UploadError::Reported(_))), "{taken:?}");
            assert_eq!(uploads.read(name, blob(1)).unwrap().bytes(), &content(1)[..]);
        };
        let whole = content(2);
        refused(uploads.begin(name, blob(2), 0, Encoding::Identity).map(drop));
        refused(uploads.receive(name, blob(2), 0, Encoding::Identity, &whole).map(drop));
        refused(uploads.put(name, blob(2), &whole));
        // The same again is as it was.
        uploads.put(name, blob(1), &content(1)).unwrap();
        let state = uploads.state(name).unwrap().1;
        assert!(state.complete);
        uploads.remove(name).unwrap();
        uploads.put(name, blob(2), &whole).unwrap();
    }
}
