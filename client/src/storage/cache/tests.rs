//! The cache and its files, damaged ones and other people's included.

use super::*;
use tempfile::TempDir;

fn blob(bytes: &[u8]) -> BlobRef {
    BlobRef { sha256: Digest::of(bytes), bytes: bytes.len() as u64 }
}

fn open(dir: &TempDir, limit: u64) -> Arc<Cache> {
    open_for(dir, limit, CacheFor::Speed)
}

fn open_for(dir: &TempDir, limit: u64, keeps: CacheFor) -> Arc<Cache> {
    Cache::open(dir.path().join("cache"), limit, keeps).unwrap()
}

fn put(cache: &Arc<Cache>, bytes: &[u8], class: Class) -> Pin {
    let room = cache.reserve(blob(bytes));
    fs::write(room.path(), bytes).unwrap();
    room.publish(class).unwrap()
}

#[tokio::test]
async fn blobs_survive_a_restart_and_strange_files_do_not() {
    let dir = tempfile::tempdir().unwrap();
    let cache = open(&dir, 1000);
    drop(put(&cache, b"shard", Class::Data));
    fs::write(dir.path().join("cache/data/notes.txt"), b"x").unwrap();
    fs::write(dir.path().join("cache/parts/notes.txt"), b"x").unwrap();
    // Fetched again though it was there: the whole one counts.
    fs::write(dir.path().join("cache/parts").join(Digest::of(b"shard").to_string()), b"s").unwrap();
    drop(cache);

    let cache = open(&dir, 1000);
    assert_eq!(cache.used(), 5);
    assert_eq!(cache.data(), [Digest::of(b"shard")]);
    let pin = cache.pin(blob(b"shard")).await.unwrap();
    assert_eq!(fs::read(pin.path()).unwrap(), b"shard");
    assert_eq!(fs::read_dir(dir.path().join("cache/parts")).unwrap().count(), 0);
    assert!(!dir.path().join("cache/data/notes.txt").exists());
}

#[tokio::test]
async fn a_file_that_changed_while_the_daemon_was_down_is_deleted_not_used() {
    for damage in [b"shbrd".as_slice(), b"shar", b"shards", b""] {
        let dir = tempfile::tempdir().unwrap();
        let path = put(&open(&dir, 1000), b"shard", Class::Data).path().to_owned();
        fs::write(&path, damage).unwrap();
        let cache = open(&dir, 1000);
        assert!(cache.pin(blob(b"shard")).await.is_none());
        assert!(!path.exists());
        assert_eq!(cache.used(), 0);
        let pin = put(&cache, b"shard", Class::Data);
        assert_eq!(fs::read(pin.path()).unwrap(), b"shard");
    }
}

#[tokio::test]
async fn a_blob_that_is_fetched_again_stays_though_its_first_pin_is_let_go() {
    let dir = tempfile::tempdir().unwrap();
    let cache = open(&dir, 1000);
    let first = put(&cache, b"shard", Class::Data);
    // Somebody deletes it while a unit uses it.
    fs::remove_file(first.path()).unwrap();
    assert!(cache.pin(blob(b"shard")).await.is_none());
    let second = put(&cache, b"shard", Class::Data);
    drop(first);
    assert_eq!(cache.clear(), 0, "it is in use");
    assert_eq!(fs::read(second.path()).unwrap(), b"shard");
    drop(second);
    assert_eq!(cache.clear(), 5);
}

#[tokio::test]
async fn a_clock_that_jumps_by_a_day_costs_no_blob() {
    let day = Duration::from_secs(86_400);
    for used in [SystemTime::now() + day, SystemTime::now() - day] {
        let dir = tempfile::tempdir().unwrap();
        let path = put(&open(&dir, 10), b"shard", Class::Data).path().to_owned();
        fs::File::options().append(true).open(&path).unwrap().set_modified(used).unwrap();
        // Under a clock that shows another day: it is there, and used now.
        let cache = open(&dir, 10);
        drop(cache.pin(blob(b"shard")).await.unwrap());
        let now = fs::metadata(&path).unwrap().modified().unwrap();
        let off = now.duration_since(used).unwrap_or_else(|behind| behind.duration());
        assert!(off > day / 2, "{off:?}");
        // Uses that this process has seen decide which blob goes first.
        drop(put(&cache, b"other", Class::Data));
        drop(cache.pin(blob(b"shard")).await.unwrap());
        drop(put(&cache, b"third", Class::Data));
        assert!(path.exists());
        assert_eq!(cache.used(), 10);
    }
}

#[tokio::test]
async fn a_file_that_someone_removed_is_missed_not_promised() {
    let dir = tempfile::tempdir().unwrap();
    let cache = open(&dir, 1000);
    let path = put(&cache, b"shard", Class::Data).path().to_owned();
    fs::remove_file(path).unwrap();
    assert!(cache.pin(blob(b"shard")).await.is_none());
}

#[test]
fn a_smaller_limit_holds_at_once_but_for_what_is_in_use() {
    let dir = tempfile::tempdir().unwrap();
    let cache = open(&dir, 1000);
    let shard = put(&cache, b"shard", Class::Data);
    let other = put(&cache, b"other", Class::Data).path().to_owned();
    cache.set_limit(4);
    assert_eq!((cache.limit(), cache.used()), (4, 5));
    assert!(shard.path().exists() && !other.exists());
    let path = shard.path().to_owned();
    drop(shard);
    assert!(!path.exists(), "it goes when nobody needs it any more");
}

#[test]
fn a_cache_that_is_cleared_keeps_what_is_in_use() {
    let dir = tempfile::tempdir().unwrap();
    let cache = open(&dir, 1000);
    let pin = put(&cache, b"shard", Class::Data);
    drop(put(&cache, b"another shard", Class::Data));
    drop(put(&cache, b"checkpoint", Class::Checkpoint));
    assert_eq!(cache.clear(), 23);
    assert_eq!((cache.used(), cache.data()), (5, vec![Digest::of(b"shard")]));
    assert_eq!(fs::read_dir(dir.path().join("cache/data")).unwrap().count(), 1);
    assert_eq!(fs::read_dir(dir.path().join("cache/checkpoints")).unwrap().count(), 0);
    drop(pin);
    assert_eq!(cache.clear(), 5);
}

#[tokio::test]
async fn a_blob_that_is_doubted_is_read_through_again() {
    let dir = tempfile::tempdir().unwrap();
    let cache = open(&dir, 1000);
    let (shard, other) = (blob(b"shard"), blob(b"other"));
    let path = put(&cache, b"shard", Class::Data).path().to_owned();
    drop(put(&cache, b"other", Class::Data));
    fs::write(&path, b"shbrd").unwrap();
    cache.doubt(&[shard.sha256, other.sha256]);
    assert!(cache.pin(shard).await.is_none());
    assert!(cache.pin(other).await.is_some());
    assert!(!path.exists());
}

#[tokio::test]
async fn the_limit_holds_but_for_pins_and_checkpoints_go_first() {
    let dir = tempfile::tempdir().unwrap();
    let cache = open(&dir, 10);
    drop(put(&cache, b"data", Class::Data));
    drop(put(&cache, b"model", Class::Checkpoint));
    drop(put(&cache, b"da", Class::Data));
    assert!(cache.pin(blob(b"model")).await.is_none(), "the checkpoint went first");
    let pins = [put(&cache, b"12345678", Class::Data), put(&cache, b"abcdefgh", Class::Data)];
    assert_eq!(cache.used(), 16, "both are needed now");
    drop(pins);
    assert_eq!(cache.used(), 8);
    assert_eq!(cache.data(), [Digest::of(b"abcdefgh")]);
}

#[tokio::test]
async fn a_disk_that_is_nearly_full_costs_what_no_unit_needs() {
    let dir = tempfile::tempdir().unwrap();
    let cache = open(&dir, 1000);
    drop(put(&cache, b"data", Class::Data));
    drop(put(&cache, b"model", Class::Checkpoint));
    let pin = put(&cache, b"needed", Class::Checkpoint);
    // A disk of 20 bytes with nothing but the cache on it.
    let free = |root: &Path| {
        let files = ["data", "checkpoints"].map(|class| fs::read_dir(root.join(class)).unwrap());
        let sizes = files.into_iter().flatten().map(|file| file.unwrap().metadata().unwrap().len());
        Ok(20 - sizes.sum::<u64>())
    };
    cache.leave_room(5, free);
    assert_eq!(cache.used(), 15, "there is as much");
    cache.leave_room(6, free);
    assert_eq!(cache.used(), 10, "the checkpoint went first");
    cache.leave_room(100, free);
    assert_eq!(cache.used(), 6, "all but what is in use");
    assert!(pin.path().exists());
    cache.leave_room(100, |_| Err(io::Error::other("nobody knows")));
}

#[tokio::test]
async fn an_adopted_checkpoint_is_checked_before_use_and_never_costs_a_shard() {
    let dir = tempfile::tempdir().unwrap();
    let cache = open(&dir, 10);
    drop(put(&cache, b"data", Class::Data));
    let made = dir.path().join("made");
    fs::write(&made, b"model").unwrap();
    cache.adopt(blob(b"model"), &made);
    fs::remove_file(&made).unwrap();
    let pin = cache.pin(blob(b"model")).await.unwrap();
    assert_eq!(fs::read(pin.path()).unwrap(), b"model");
    drop(pin);

    fs::write(&made, b"1234567").unwrap();
    cache.adopt(blob(b"1234567"), &made);
    assert!(cache.pin(blob(b"1234567")).await.is_none(), "only a shard could have made room");
    assert_eq!(cache.data(), [Digest::of(b"data")]);

    fs::write(&made, b"liar").unwrap();
    cache.adopt(blob(b"1234"), &made);
    assert!(cache.pin(blob(b"1234")).await.is_none());
    assert_eq!(cache.used(), 4, "the other checkpoint had to make room");
}

#[tokio::test]
async fn a_checkpoint_whose_name_is_taken_is_adopted_without_a_write() {
    let dir = tempfile::tempdir().unwrap();
    let cache = open(&dir, 100);
    let made = dir.path().join("made");
    fs::write(&made, b"model").unwrap();
    // Somebody has just linked it: the cache's file and the finished one are the same.
    let name = dir.path().join("cache/checkpoints").join(Digest::of(b"model").to_string());
    fs::hard_link(&made, &name).unwrap();
    cache.adopt(blob(b"model"), &made);
    assert_eq!(fs::read(&made).unwrap(), b"model");
    assert!(cache.pin(blob(b"model")).await.is_some());
}

#[test]
fn a_copy_takes_the_place_of_what_is_there_whole() {
    let dir = tempfile::tempdir().unwrap();
    let (file, linked, copy) =
        (dir.path().join("file"), dir.path().join("linked"), dir.path().join("copy"));
    fs::write(&file, b"model").unwrap();
    fs::write(&linked, b"older").unwrap();
    fs::hard_link(&linked, &copy).unwrap();
    copy_whole(&file, &copy).unwrap();
    assert_eq!(fs::read(&copy).unwrap(), b"model");
    assert_eq!(fs::read(&linked).unwrap(), b"older");
    copy_whole(&dir.path().join("none"), &copy).unwrap_err();
    assert_eq!(fs::read(&copy).unwrap(), b"model");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3);
}

#[tokio::test]
async fn a_partial_download_survives_drops_kills_and_restarts() {
    let dir = tempfile::tempdir().unwrap();
    let cache = open(&dir, 20);
    let room = cache.reserve(blob(b"0123456789"));
    fs::write(room.path(), b"0123").unwrap();
    assert_eq!(cache.used(), 10);
    drop(room);
    assert_eq!(cache.used(), 4);
    assert!(cache.pin(blob(b"0123456789")).await.is_none(), "it isn't the blob yet");
    assert!(cache.data().is_empty());

    let room = cache.reserve(blob(b"0123456789"));
    assert_eq!(cache.used(), 10, "counted once");
    assert_eq!(fs::read(room.path()).unwrap(), b"0123");
    fs::write(room.path(), b"012345").unwrap();
    // A kill leaves the part where it is.
    std::mem::forget(room);
    drop(cache);

    let cache = open(&dir, 20);
    assert_eq!(cache.used(), 6);
    let room = cache.reserve(blob(b"0123456789"));
    assert_eq!(fs::read(room.path()).unwrap(), b"012345");
    fs::write(room.path(), b"0123456789").unwrap();
    drop(room.publish(Class::Data).unwrap());
    assert_eq!(cache.used(), 10);
    assert!(cache.pin(blob(b"0123456789")).await.is_some());
}

#[tokio::test]
async fn parts_are_the_first_to_make_room_and_useless_ones_are_not_kept() {
    let dir = tempfile::tempdir().unwrap();
    let cache = open(&dir, 10);
    drop(put(&cache, b"model", Class::Checkpoint));
    for (bytes, kept) in [(b"".as_slice(), 0), (b"12345678", 0), (b"1234", 4)] {
        let room = cache.reserve(blob(b"12345"));
        fs::write(room.path(), bytes).unwrap();
        let path = room.path().to_owned();
        drop(room);
        assert_eq!((cache.used(), path.exists()), (5 + kept, kept > 0), "{bytes:?}");
    }
    drop(put(&cache, b"da", Class::Data));
    assert_eq!(cache.used(), 7);
    assert_eq!(fs::read_dir(dir.path().join("cache/parts")).unwrap().count(), 0);
}

/// Names of the files in a folder of the cache.
fn names(dir: &TempDir, folder: &str) -> Vec<String> {
    let Ok(files) = fs::read_dir(dir.path().join("cache").join(folder)) else { return Vec::new() };
    files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect()
}

#[tokio::test]
async fn shards_that_are_packed_count_with_their_own_size_and_are_unpacked_for_as_long_as_they_are_used()
 {
    let dir = tempfile::tempdir().unwrap();
    let cache = open_for(&dir, 1 << 20, CacheFor::Room);
    let shard: Vec<u8> = b"a row; ".iter().copied().cycle().take(100_000).collect();
    let packed = format!("{}.zst", Digest::of(&shard));
    let first = put(&cache, &shard, Class::Data);
    assert_eq!(fs::read(first.path()).unwrap(), shard);
    assert_eq!(names(&dir, "data"), std::slice::from_ref(&packed));
    let kept = fs::metadata(dir.path().join("cache/data").join(&packed)).unwrap().len();
    assert!(kept < 1000 && cache.used() == kept + 100_000, "{kept} {}", cache.used());
    // Another pin has the same file.
    let second = cache.pin(blob(&shard)).await.unwrap();
    assert_eq!((second.path(), cache.used()), (first.path(), kept + 100_000));
    drop(first);
    assert_eq!(fs::read(second.path()).unwrap(), shard);
    drop(second);
    assert_eq!((cache.used(), names(&dir, "unpacked").len()), (kept, 0));
    assert!(cache.has_file(&Digest::of(&shard)));
    // After a kill, whatever the cache is for then.
    fs::write(dir.path().join("cache/unpacked/left"), b"x").unwrap();
    drop(cache);
    let cache = open(&dir, 1 << 20);
    assert_eq!((cache.used(), names(&dir, "unpacked").len()), (kept, 0));
    let again = cache.pin(blob(&shard)).await.unwrap();
    assert_eq!(fs::read(again.path()).unwrap(), shard);
    drop(again);
    cache.evict(&[Digest::of(&shard)]);
    assert_eq!((cache.used(), names(&dir, "data").len()), (0, 0));
}

#[tokio::test]
async fn a_packed_shard_that_is_damaged_is_deleted_not_used() {
    let shard = vec![7; 100_000];
    let other = sojourn_codec::packed::pack(&[8; 100_000]).unwrap();
    let longer = sojourn_codec::packed::pack(&[7; 200_000]).unwrap();
    for damage in [other, longer, b"no frame".to_vec(), Vec::new()] {
        let dir = tempfile::tempdir().unwrap();
        let cache = open_for(&dir, 1 << 20, CacheFor::Room);
        drop(put(&cache, &shard, Class::Data));
        let [name] = &names(&dir, "data")[..] else { panic!("one file") };
        fs::write(dir.path().join("cache/data").join(name), damage).unwrap();
        assert!(cache.pin(blob(&shard)).await.is_none());
        assert_eq!(
            (cache.used(), names(&dir, "data").len(), names(&dir, "unpacked").len()),
            (0, 0, 0)
        );
    }
}

#[test]
fn checkpoints_and_shards_of_which_little_is_saved_lie_in_the_cache_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let cache = open_for(&dir, 1 << 20, CacheFor::Room);
    drop(put(&cache, &[1; 100_000], Class::Checkpoint));
    drop(put(&cache, &[2; 1000], Class::Data));
    assert_eq!(cache.used(), 101_000);
    assert_eq!(names(&dir, "data"), [Digest::of(&[2; 1000]).to_string()]);
}
