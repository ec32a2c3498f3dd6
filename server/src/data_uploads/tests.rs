//! Files of data that browsers send: which names they may have, how many bytes they may take, and that nothing stays of them.

use super::*;
use sojourn_blobs::FullDisk;

const LIMIT: u64 = 100;
const LIMITS: DataLimits = DataLimits { uploads: LIMIT, memory: 1 << 20 };
const FREE: u64 = 1_000_000;
const RESERVE: u64 = 1_000;

struct Files {
    folder: tempfile::TempDir,
    disk: Arc<FullDisk>,
    storage: StorageWatch,
    uploads: DataUploads,
}

impl Files {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let disk = Arc::new(FullDisk::with_left(FREE));
        let storage = StorageWatch::new(disk.clone(), folder.path(), Some(RESERVE), None);
        storage.look();
        let at = folder.path().join("data-uploads");
        let uploads = DataUploads::open(at, LIMITS, Vec::new(), storage.clone()).unwrap();
        Self { folder, disk, storage, uploads }
    }

    fn send(&self, secret: &str, name: &str, bytes: &[u8]) -> Result<(), ApiError> {
        let mut file = self.uploads.begin_file(self.uploads.get(secret)?, name)?;
        file.write(bytes)?;
        file.finish()
    }

    /// The files that there are, in all folders of uploads.
    fn all(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut folders = vec![self.folder.path().join("data-uploads")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let path = path.strip_prefix(self.folder.path()).unwrap();
                    found.push(path.to_string_lossy().into_owned());
                }
            }
        }
        found.sort();
        found
    }
}

#[test]
fn a_name_leads_nowhere_but_below_its_folder() {
    for name in ["t.csv", "a/b/c.png", "images/", "a b.csv", "ä.csv", "...", "a~"] {
        assert_eq!(path_below(name), Ok(PathBuf::from(name.trim_end_matches('/'))), "{name}");
    }
    let long = "x".repeat(256);
    let deep = vec!["x"; 17].join("/");
    for name in [
        "",
        "/",
        ".",
        "..",
        "/etc/passwd",
        "../t.csv",
        "a/../../t.csv",
        "a//b",
        "./a",
        "~/t.csv",
        "~root/t.csv",
        "a\0b",
        "a\nb",
        "a\\..\\b",
        "http://x/t.csv",
        "s3://b/t.csv",
        &long,
        &deep,
    ] {
        assert!(path_below(name).is_err(), "{name:?}");
    }
    let files = Files::new();
    let secret = files.uploads.begin(0).unwrap();
    let refused = files.send(&secret, "../../escaped", b"x").unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Invalid);
    assert_eq!(files.all(), [""; 0]);
}

#[test]
fn files_come_under_their_names_and_a_later_one_replaces_an_earlier() {
    let files = Files::new();
    let secret = files.uploads.begin(0).unwrap();
    files.send(&secret, "t.csv", b"first").unwrap();
    files.send(&secret, "t.csv", b"a,b").unwrap();
    files.send(&secret, "images/cat/1.png", b"png").unwrap();
    assert_eq!(files.all(), ["data-uploads/0/data/images/cat/1.png", "data-uploads/0/data/t.csv"]);
    let data = files.uploads.get(&secret).unwrap().data();
    assert_eq!(fs::read(data.join("t.csv")).unwrap(), b"a,b");
    assert_eq!(files.uploads.held(), 6);
    for (name, what) in [("t.csv/more", "below a file"), ("images", "in place of a folder")] {
        let refused = files.send(&secret, name, b"x").unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Invalid, "{what}: {refused}");
    }
    assert_eq!(files.uploads.held(), 6);
}

#[test]
fn no_more_is_taken_than_the_limit_and_the_disk_allow() {
    let files = Files::new();
    let (one, other) = (files.uploads.begin(0).unwrap(), files.uploads.begin(0).unwrap());
    files.send(&one, "a", &[0; 60]).unwrap();
    let refused = files.send(&other, "b", &[0; 41]).unwrap_err();
    assert_eq!(refused.kind, ErrorKind::TooLarge);
    // It is said before anything is sent, too.
    assert_eq!(files.uploads.begin(41).unwrap_err().kind, ErrorKind::TooLarge);
    files.uploads.abort(&files.uploads.begin(40).unwrap());
    files.send(&other, "b", &[0; 40]).unwrap();
    files.uploads.abort(&other);
    // What is left of the room goes to others again.
    files.send(&one, "c", &[0; 40]).unwrap();
    files.uploads.abort(&one);
    assert_eq!((files.uploads.held(), files.all()), (0, vec![]));

    let third = files.uploads.begin(0).unwrap();
    files.disk.make_room(RESERVE + 10);
    files.storage.look();
    files.send(&third, "a", &[0; 10]).unwrap();
    let refused = files.send(&third, "b", &[0; 11]).unwrap_err();
    assert_eq!(refused.kind, ErrorKind::StorageFull);
    assert_eq!(files.all(), ["data-uploads/3/data/a"]);
}

#[test]
fn nothing_stays_of_what_was_cut_off_ended_or_forgotten() {
    let files = Files::new();
    let secret = files.uploads.begin(0).unwrap();
    let mut cut = files.uploads.begin_file(files.uploads.get(&secret).unwrap(), "t.csv").unwrap();
    cut.write(b"begun").unwrap();
    assert_eq!((files.all().len(), files.uploads.held()), (1, 5));
    drop(cut);
    assert_eq!((files.all(), files.uploads.held()), (vec![], 0));

    let mut going = files.uploads.begin_file(files.uploads.get(&secret).unwrap(), "t.csv").unwrap();
    going.write(b"begun").unwrap();
    files.uploads.abort(&secret);
    assert_eq!(going.write(b"more").unwrap_err().kind, ErrorKind::Conflict);
    assert_eq!(files.uploads.get(&secret).unwrap_err().kind, ErrorKind::NotFound);
    drop(going);
    assert_eq!((files.all(), files.uploads.held()), (vec![], 0));

    let begun = Instant::now();
    let idle = files.uploads.begin(0).unwrap();
    let busy = files.uploads.begin(0).unwrap();
    files.send(&idle, "a", b"1").unwrap();
    files.send(&busy, "b", b"2").unwrap();
    files.uploads.get(&busy).unwrap().begin_job().unwrap();
    files.uploads.sweep(begun + IDLE);
    assert_eq!(files.all().len(), 2);
    files.uploads.sweep(Instant::now() + IDLE + Duration::from_secs(1));
    assert_eq!(files.all(), ["data-uploads/2/data/b"]);

    // The next server begins with nothing.
    let at = files.folder.path().join("data-uploads");
    DataUploads::open(at, LIMITS, Vec::new(), files.storage.clone()).unwrap();
    assert_eq!(files.all(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_file_that_stands_still_goes_when_it_is_ended_or_the_disk_fills() {
    let files = Files::new();
    let begin = |secret: &str| {
        let mut file = files.uploads.begin_file(files.uploads.get(secret)?, "t.csv")?;
        file.write(b"begun").map(|()| file)
    };
    let nothing = std::future::pending::<()>;
    let secret = files.uploads.begin(0).unwrap();
    let file = begin(&secret).unwrap();
    assert_eq!(file.wait_for(async { 7 }).await.unwrap(), 7);
    let hour = Duration::from_secs(3600);
    let waited = tokio::time::timeout(hour, file.wait_for(nothing())).await;
    assert!(waited.is_err(), "the pace of a body ends it, not this");
    files.uploads.abort(&secret);
    assert_eq!(file.wait_for(nothing()).await.unwrap_err().kind, ErrorKind::Conflict);
    drop(file);
    assert_eq!((files.all(), files.uploads.held()), (vec![], 0));

    let file = begin(&files.uploads.begin(0).unwrap()).unwrap();
    files.disk.make_room(RESERVE - 1);
    files.storage.look();
    assert_eq!(file.wait_for(nothing()).await.unwrap_err().kind, ErrorKind::StorageFull);
    drop(file);
    assert_eq!((files.all(), files.uploads.held()), (vec![], 0));
}

#[test]
fn a_job_is_made_once_and_of_files_that_no_longer_change() {
    let files = Files::new();
    let secret = files.uploads.begin(0).unwrap();
    files.send(&secret, "t.csv", b"a").unwrap();
    let upload = files.uploads.get(&secret).unwrap();
    upload.begin_job().unwrap();
    assert_eq!(upload.begin_job().unwrap_err().kind, ErrorKind::Conflict);
    assert_eq!(files.send(&secret, "t.csv", b"b").unwrap_err().kind, ErrorKind::Conflict);
    // With what was wrong put right it is tried again.
    upload.set_stage(UploadStage::Refused(vec!["no label".to_owned()]));
    files.send(&secret, "t.csv", b"b").unwrap();
    upload.begin_job().unwrap();
    upload.set_stage(UploadStage::Submitted(JobId(1)));
    upload.clear();
    assert_eq!((files.all(), files.uploads.held()), (vec![], 0));
    assert_eq!(upload.begin_job().unwrap_err().kind, ErrorKind::Conflict);
    let many: Vec<_> = (1..MAX_UPLOADS).map(|_| files.uploads.begin(0).unwrap()).collect();
    assert_eq!(files.uploads.begin(0).unwrap_err().kind, ErrorKind::TooManyRequests);
    files.uploads.abort(&many[0]);
    files.uploads.begin(0).unwrap();
    files.uploads.abort_all();
    assert!(upload.is_aborted());
    assert_eq!(files.uploads.get(&secret).unwrap_err().kind, ErrorKind::NotFound);
}
