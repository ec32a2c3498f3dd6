//! Power cuts at every step, groups, failing disks, removals, and retirement.

use super::{open::FOLDER, *};
use crate::{
    FullDisk,
    test_disks::{CutDisk, GatedDisk},
};
use sojourn_protocol::digest::BlobRef;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

fn named(text: &str) -> HashedBytes {
    HashedBytes::of(text.to_owned().into())
}

/// As the spool and the store name files: by digest.
fn path(root: &Path, folder: &str, text: &str) -> PathBuf {
    let BlobRef { sha256, .. } = named(text).blob();
    root.join(folder).join(sha256.to_string())
}

fn put(log: &WriteAheadLog, root: &Path, folder: &str, text: &str) -> io::Result<()> {
    log.put(&path(root, folder, text), &named(text))
}

fn segments(root: &Path) -> usize {
    fs::read_dir(root.join(FOLDER)).map_or(0, Iterator::count)
}

/// All files below a folder that aren't the log's, with the folder's own name.
fn files(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true if path.ends_with(FOLDER) => {}
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found
}

fn in_memory(log: &WriteAheadLog, root: &Path, folder: &str, text: &str) -> bool {
    let file = log.get(&path(root, folder, text));
    assert!(file.iter().all(|file| file.bytes == text), "{file:?}");
    file.is_some()
}

#[test]
fn a_file_is_in_memory_until_its_segment_is_retired() {
    let root = tempfile::tempdir().unwrap();
    let log = WriteAheadLog::open(root.path()).unwrap();
    assert_eq!(segments(root.path()), 0, "a log without records has no files");
    put(&log, root.path(), "a/b", "one").unwrap();
    assert!(in_memory(&log, root.path(), "a/b", "one"));
    let [listed] = &log.list(&root.path().join("a"))[..] else { panic!("one file") };
    assert_eq!((&listed.path, &listed.bytes[..]), (&path(root.path(), "a/b", "one"), &b"one"[..]));
    assert!(log.list(&root.path().join("b")).is_empty());
    assert_eq!((files(root.path()).len(), segments(root.path())), (0, 1));
    log.retire().unwrap();
    assert!(!in_memory(&log, root.path(), "a/b", "one"));
    assert_eq!(fs::read(path(root.path(), "a/b", "one")).unwrap(), b"one");
    assert_eq!((files(root.path()).len(), segments(root.path())), (1, 0));
    put(&log, root.path(), "a/b", "two").unwrap();
    assert_eq!(segments(root.path()), 1, "the next put begins a segment");
    let outside = log.put(Path::new("/elsewhere"), &named("x")).unwrap_err();
    assert_eq!(outside.kind(), io::ErrorKind::InvalidInput);
}

#[test]
fn files_come_back_at_the_next_start_whatever_is_at_their_paths() {
    for damage in [None, Some(&b""[..]), Some(b"on"), Some(b"0ne"), Some(b"one more")] {
        let root = tempfile::tempdir().unwrap();
        let log = WriteAheadLog::open(root.path()).unwrap();
        let one = path(root.path(), "a", "one");
        log.put(&one, &named("one")).unwrap();
        put(&log, root.path(), "a", "two").unwrap();
        drop(log);
        if let Some(bytes) = damage {
            fs::create_dir(root.path().join("a")).unwrap();
            fs::write(&one, bytes).unwrap();
        }
        let log = WriteAheadLog::open(root.path()).unwrap();
        assert!(in_memory(&log, root.path(), "a", "one"));
        assert!(in_memory(&log, root.path(), "a", "two"));
        log.retire().unwrap();
        assert_eq!(fs::read(&one).unwrap(), b"one", "{damage:?}");
        assert_eq!(segments(root.path()), 0);
    }
}

#[test]
fn removed_files_stay_removed() {
    let root = tempfile::tempdir().unwrap();
    let log = WriteAheadLog::open(root.path()).unwrap();
    for text in ["zero", "one", "two", "three"] {
        put(&log, root.path(), "a", text).unwrap();
        if text == "zero" {
            log.retire().unwrap();
        }
    }
    for text in ["zero", "one", "one", "never", "two"] {
        log.remove(&path(root.path(), "a", text)).unwrap();
        assert!(!in_memory(&log, root.path(), "a", text));
    }
    put(&log, root.path(), "a", "two").unwrap();
    drop(log);
    WriteAheadLog::open(root.path()).unwrap().retire().unwrap();
    let mut expected = ["two", "three"].map(|text| path(root.path(), "a", text));
    let mut found = files(root.path());
    expected.sort();
    found.sort();
    assert_eq!(found, expected);
}

#[test]
fn a_file_that_is_written_out_early_is_removed_and_retired_as_others() {
    let root = tempfile::tempdir().unwrap();
    let log = WriteAheadLog::open(root.path()).unwrap();
    for text in ["one", "two"] {
        put(&log, root.path(), "a", text).unwrap();
        log.write_out(&path(root.path(), "a", text)).unwrap();
        assert_eq!(fs::read(path(root.path(), "a", text)).unwrap(), text.as_bytes());
    }
    log.remove(&path(root.path(), "a", "one")).unwrap();
    log.write_out(&path(root.path(), "a", "one")).unwrap();
    log.retire().unwrap();
    assert_eq!(files(root.path()), [path(root.path(), "a", "two")]);
}

#[test]
fn a_log_of_a_newer_version_is_refused() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join(FOLDER)).unwrap();
    let segment = root.path().join(FOLDER).join("1");
    fs::write(&segment, "sojourn write-ahead log 2\n").unwrap();
    let refused = WriteAheadLog::open(root.path()).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::InvalidData);
    // A power cut may leave any begin of the first line, or zeros.
    for torn in ["", "sojourn wri", "\0\0\0\0"] {
        fs::write(&segment, torn).unwrap();
        WriteAheadLog::open(root.path()).unwrap();
    }
}

#[test]
fn puts_at_the_same_time_share_a_sync() {
    const PUTS: usize = 32;
    let root = tempfile::tempdir().unwrap();
    let disk = Arc::new(GatedDisk::default());
    let log = WriteAheadLog::with_disk(root.path(), disk.clone()).unwrap();
    put(&log, root.path(), "a", "begins the segment").unwrap();
    disk.close();
    let (before, appended) = (disk.syncs(), disk.appends());
    std::thread::scope(|scope| {
        let (log, root) = (&log, root.path());
        let puts: Vec<_> = (0..PUTS)
            .map(|number| scope.spawn(move || put(log, root, "a", &format!("{number}"))))
            .collect();
        // All records are in the log while the first of them is being synced.
        disk.wait_for_appends(appended + PUTS);
        assert!(puts.iter().all(|put| !put.is_finished()), "no put returns before its sync");
        assert_eq!(log.list(root).len(), 1, "no file is seen before its sync");
        disk.open();
        for put in puts {
            put.join().unwrap().unwrap();
        }
    });
    let syncs = disk.syncs() - before;
    // One is under way, one is for all that came meanwhile, and the last may come just after that has begun.
    assert!(syncs <= 3, "{syncs} syncs for {PUTS} puts");
    assert_eq!(log.list(root.path()).len(), PUTS + 1);
}

#[test]
fn a_failed_sync_refuses_its_whole_group_and_the_next_put_gets_a_new_segment() {
    const PUTS: usize = 8;
    let root = tempfile::tempdir().unwrap();
    let disk = Arc::new(GatedDisk::default());
    let log = WriteAheadLog::with_disk(root.path(), disk.clone()).unwrap();
    put(&log, root.path(), "a", "kept").unwrap();
    disk.close();
    disk.fail_syncs(true);
    let appended = disk.appends();
    std::thread::scope(|scope| {
        let (log, root) = (&log, root.path());
        let puts: Vec<_> = (0..PUTS)
            .map(|number| scope.spawn(move || put(log, root, "a", &format!("{number}"))))
            .collect();
        disk.wait_for_appends(appended + PUTS);
        disk.open();
        for put in puts {
            let refused = put.join().unwrap().unwrap_err();
            assert!(refused.to_string().contains("the disk fails"), "{refused}");
        }
    });
    assert_eq!(log.list(root.path()).len(), 1);
    assert!(put(&log, root.path(), "a", "0").is_err(), "the disk still fails");

    disk.fail_syncs(false);
    put(&log, root.path(), "a", "0").unwrap();
    drop(log);
    let log = WriteAheadLog::open(root.path()).unwrap();
    log.retire().unwrap();
    for text in ["kept", "0"] {
        assert_eq!(fs::read(path(root.path(), "a", text)).unwrap(), text.as_bytes());
    }
}

#[test]
fn a_full_disk_refuses_one_put_and_keeps_the_others() {
    let root = tempfile::tempdir().unwrap();
    let disk = Arc::new(FullDisk::with_left(1000));
    let log = WriteAheadLog::with_disk(root.path(), disk.clone()).unwrap();
    put(&log, root.path(), "a", "one").unwrap();
    for room in [0, 1, 50, 120, 260] {
        disk.make_room(room);
        let large = "x".repeat(200);
        let refused = put(&log, root.path(), "a", &large).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::StorageFull, "{room} bytes free");
        assert_eq!(log.list(root.path()).len(), 1, "{room} bytes free");
    }
    // Removals go on.
    log.remove(&path(root.path(), "a", "one")).unwrap();
    disk.make_room(10_000);
    put(&log, root.path(), "a", "two").unwrap();
    drop(log);
    let log = WriteAheadLog::open(root.path()).unwrap();
    assert!(in_memory(&log, root.path(), "a", "two"));
}

#[test]
fn retirement_syncs_the_files_that_are_left_and_no_others() {
    let root = tempfile::tempdir().unwrap();
    let disk = Arc::new(GatedDisk::default());
    let log = WriteAheadLog::with_disk(root.path(), disk.clone()).unwrap();
    for number in 0..100 {
        put(&log, root.path(), "a/b", &number.to_string()).unwrap();
    }
    for number in 3..100 {
        log.remove(&path(root.path(), "a/b", &number.to_string())).unwrap();
    }
    let before = disk.syncs();
    assert_eq!(
        before,
        100 + 2,
        "a sync for each put alone, and for the names of folder and segment"
    );
    log.retire().unwrap();
    let folders = ["", "a", "a/b"].len();
    assert_eq!(disk.syncs() - before, 3 + folders);
    assert_eq!(segments(root.path()), 0);
}

#[test]
fn a_failed_retirement_keeps_segments_and_memory() {
    let root = tempfile::tempdir().unwrap();
    let disk = Arc::new(GatedDisk::default());
    let log = WriteAheadLog::with_disk(root.path(), disk.clone()).unwrap();
    put(&log, root.path(), "a", "one").unwrap();
    disk.fail_syncs(true);
    assert!(log.retire().is_err());
    assert_eq!(segments(root.path()), 1);
    assert!(in_memory(&log, root.path(), "a", "one"));
    assert!(files(root.path()).is_empty());
    disk.fail_syncs(false);
    put(&log, root.path(), "a", "two").unwrap();
    log.retire().unwrap();
    assert_eq!(segments(root.path()), 0);
}

#[test]
fn full_segments_are_retired_in_the_background() {
    let root = tempfile::tempdir().unwrap();
    let log = WriteAheadLog::with_segments_of(root.path(), Arc::new(RealDisk), 1000).unwrap();
    for number in 0..200 {
        put(&log, root.path(), "a", &number.to_string()).unwrap();
        if number % 3 > 0 {
            log.remove(&path(root.path(), "a", &number.to_string())).unwrap();
        }
    }
    log.retire().unwrap();
    assert_eq!(segments(root.path()), 0);
    let kept = (0..200).filter(|number| number % 3 == 0);
    for number in kept {
        let text = number.to_string();
        assert_eq!(fs::read(path(root.path(), "a", &text)).unwrap(), text.as_bytes());
    }
}

#[test]
fn recovered_segments_are_not_retired_before_the_first_put() {
    let root = tempfile::tempdir().unwrap();
    let log = WriteAheadLog::open(root.path()).unwrap();
    put(&log, root.path(), "a", "one").unwrap();
    drop(log);
    let log = WriteAheadLog::open(root.path()).unwrap();
    assert!(log.shared.state.lock().to_retire().is_none());
    put(&log, root.path(), "a", "two").unwrap();
    let mut state = log.shared.state.lock();
    log.shared.changed.wait_while(&mut state, |state| state.segments.len() > 1);
    drop(state);
    assert_eq!(files(root.path()), [path(root.path(), "a", "one")]);
    assert!(in_memory(&log, root.path(), "a", "two"));
}

#[test]
fn a_log_that_cannot_be_retired_takes_no_more_after_some_segments() {
    let root = tempfile::tempdir().unwrap();
    let disk = Arc::new(GatedDisk::default());
    let log = WriteAheadLog::with_segments_of(root.path(), disk.clone(), 1).unwrap();
    assert!(log.takes(0) && log.takes(MAX_SMALL_BYTES) && !log.takes(MAX_SMALL_BYTES + 1));
    disk.fail_retirement(true);
    for number in 0..MAX_SEGMENTS {
        assert!(log.takes(1));
        put(&log, root.path(), "a", &number.to_string()).unwrap();
    }
    assert!(!log.takes(1));
    disk.fail_retirement(false);
    log.retire().unwrap();
    assert!(log.takes(1));
    assert_eq!(files(root.path()).len(), MAX_SEGMENTS);
}

/// The promises at one moment.
#[derive(Clone, Default)]
struct Promised {
    kept: Vec<String>,
    /// Removed, or never acknowledged: may be there or not, but never torn.
    open: Vec<String>,
}

/// After each append, sync and return of a call the power is cut, and the log opened on what the disk has then: at worst,
/// with names but no bytes of files that weren't synced, and with all that was written.
#[test]
fn acknowledged_files_survive_a_power_cut_at_any_step() {
    let root = tempfile::tempdir().unwrap();
    let promised = Arc::new(Mutex::new(Promised::default()));
    let cuts = Arc::new(AtomicU64::new(0));
    let is_checking = Arc::new(AtomicBool::new(true));
    let check = {
        let (root, promised, cuts) = (root.path().to_owned(), promised.clone(), cuts.clone());
        let is_checking = is_checking.clone();
        move |disk: &CutDisk| {
            if is_checking.load(Ordering::SeqCst) {
                let (images, promised) = {
                    let promised = promised.lock();
                    (disk.images(&root), promised.clone())
                };
                for image in images {
                    verify(image.path(), &promised);
                    cuts.fetch_add(1, Ordering::SeqCst);
                }
            }
        }
    };
    let disk = Arc::new(CutDisk::new(root.path(), check));
    // Made by a process that was killed before it synced the name.
    fs::create_dir(root.path().join(FOLDER)).unwrap();
    let log = WriteAheadLog::with_segments_of(root.path(), disk.clone(), 700).unwrap();
    for number in 0..9 {
        let text = format!("content {number}");
        let folder = if number % 2 == 0 { "uploads" } else { "blobs/sha256/ab" };
        promised.lock().open.push(format!("{folder} {text}"));
        put(&log, root.path(), folder, &text).unwrap();
        promised.lock().open.pop();
        promised.lock().kept.push(format!("{folder} {text}"));
        disk.check();
        if number % 3 == 2 {
            let mut now = promised.lock();
            let removed = now.kept.remove(0);
            now.open.push(removed.clone());
            drop(now);
            let (folder, text) = removed.split_once(' ').unwrap();
            log.remove(&path(root.path(), folder, text)).unwrap();
            disk.check();
        }
    }
    assert!(segments(root.path()) > 1);
    disk.let_retire();
    log.retire().unwrap();
    disk.check();
    is_checking.store(false, Ordering::SeqCst);
    let cuts = cuts.load(Ordering::SeqCst);
    assert!(cuts > 100, "{cuts} power cuts");
}

fn verify(root: &Path, promised: &Promised) {
    let log = WriteAheadLog::with_disk(root, Arc::new(GatedDisk::default())).unwrap();
    log.retire().unwrap();
    for name in &promised.kept {
        let (folder, text) = name.split_once(' ').unwrap();
        let found = fs::read(path(root, folder, text));
        assert_eq!(found.unwrap(), text.as_bytes(), "an acknowledged file is lost or torn");
    }
    // What wasn't promised is whole or absent.
    let is_being_written = |file: &PathBuf| file.extension().is_some_and(|ending| ending == "tmp");
    for file in files(root).into_iter().filter(|file| !is_being_written(file)) {
        let bytes = fs::read(&file).unwrap();
        let digest = HashedBytes::of(bytes.into()).blob().sha256.to_string();
        assert_eq!(file.file_name().unwrap().to_str().unwrap(), digest, "a torn file is seen");
    }
    assert_eq!(segments(root), 0);
}
