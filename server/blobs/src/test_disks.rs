//! Disks for tests: one whose syncs wait and fail as told, and one whose power can be cut.

use crate::{
    disk::{Disk, RealDisk},
    write_ahead_log::THREAD_NAME,
};
use parking_lot::{Condvar, Mutex};
use std::{
    collections::HashMap,
    fs::{self, File},
    io,
    os::{fd::AsRawFd as _, unix::fs::MetadataExt as _},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    thread,
};
use tempfile::TempDir;

/// Counts appends and syncs. While it is closed, syncs wait.
#[derive(Debug, Default)]
pub(crate) struct GatedDisk {
    state: Mutex<Gate>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Gate {
    appends: usize,
    syncs: usize,
    is_closed: bool,
    fails: bool,
    fails_retirement: bool,
}

impl GatedDisk {
    pub(crate) fn close(&self) {
        self.state.lock().is_closed = true;
    }

    pub(crate) fn open(&self) {
        self.state.lock().is_closed = false;
        self.changed.notify_all();
    }

    pub(crate) fn fail_syncs(&self, fails: bool) {
        self.state.lock().fails = fails;
    }

    /// Fails the syncs of the thread that retires segments.
    pub(crate) fn fail_retirement(&self, fails: bool) {
        self.state.lock().fails_retirement = fails;
    }

    pub(crate) fn appends(&self) -> usize {
        self.state.lock().appends
    }

    pub(crate) fn syncs(&self) -> usize {
        self.state.lock().syncs
    }

    /// Returns once so many appends have been made.
    pub(crate) fn wait_for_appends(&self, appends: usize) {
        let mut state = self.state.lock();
        self.changed.wait_while(&mut state, |state| state.appends < appends);
    }
}

impl Disk for GatedDisk {
    fn append(&self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        RealDisk.append(file, bytes)?;
        self.state.lock().appends += 1;
        self.changed.notify_all();
        Ok(())
    }

    fn sync(&self, _: &File) -> io::Result<()> {
        let mut state = self.state.lock();
        self.changed.wait_while(&mut state, |state| state.is_closed);
        state.syncs += 1;
        let fails = state.fails || (state.fails_retirement && retires());
        if fails { Err(io::Error::other("the disk fails")) } else { Ok(()) }
    }
}

type Check = Box<dyn Fn(&CutDisk) + Send + Sync>;

/// A disk that knows what a power cut leaves: of each file the bytes of its last sync, of each folder the names of its
/// last sync.
pub(crate) struct CutDisk {
    durable: Mutex<Durable>,
    /// All files that were synced or named, so that no other gets the inode of one.
    known: Mutex<Vec<File>>,
    check: Check,
    may_retire: AtomicBool,
}

#[derive(Debug, Clone, Default)]
struct Durable {
    bytes: HashMap<u64, Vec<u8>>,
    names: HashMap<u64, Vec<Name>>,
}

/// A name in a folder.
#[derive(Debug, Clone)]
struct Name {
    name: PathBuf,
    inode: u64,
    is_folder: bool,
}

impl CutDisk {
    /// Calls `check` before and after each append and each sync.
    pub(crate) fn new(root: &Path, check: impl Fn(&Self) + Send + Sync + 'static) -> Self {
        let mut durable = Durable::default();
        durable.names.insert(fs::metadata(root).unwrap().ino(), Vec::new());
        let (durable, may_retire) = (Mutex::new(durable), AtomicBool::new(false));
        Self { durable, known: Mutex::default(), check: Box::new(check), may_retire }
    }

    /// Until now, the thread that retires segments could not write, so that nothing changed while `check` looked.
    pub(crate) fn let_retire(&self) {
        self.may_retire.store(true, Ordering::SeqCst);
    }

    fn refuse_early_retirement(&self) -> io::Result<()> {
        if retires() && !self.may_retire.load(Ordering::SeqCst) {
            return Err(io::Error::other("segments aren't retired yet"));
        }
        Ok(())
    }

    pub(crate) fn check(&self) {
        (self.check)(self);
    }

    /// The three folders that a power cut may leave. The first has only what was synced. The second has all names, and the
    /// bytes that were synced. The third has everything, as after the end of the process.
    pub(crate) fn images(&self, root: &Path) -> [TempDir; 3] {
        let durable = self.durable.lock().clone();
        let images = [(); 3].map(|()| tempfile::tempdir().unwrap());
        let [synced, named, written] = &images;
        copy_synced(&durable, fs::metadata(root).unwrap().ino(), synced.path());
        let bytes = |file: &Path| {
            let inode = fs::metadata(file).ok()?.ino();
            Some(durable.bytes.get(&inode).cloned().unwrap_or_default())
        };
        copy(root, named.path(), &bytes);
        copy(root, written.path(), &|file| fs::read(file).ok());
        images
    }
}

fn copy_synced(durable: &Durable, folder: u64, to: &Path) {
    // A folder that was never synced has no names, and a file no bytes.
    for Name { name, inode, is_folder } in durable.names.get(&folder).into_iter().flatten() {
        let path = to.join(name);
        if *is_folder {
            fs::create_dir(&path).unwrap();
            copy_synced(durable, *inode, &path);
        } else {
            fs::write(&path, durable.bytes.get(inode).map_or(&[][..], Vec::as_slice)).unwrap();
        }
    }
}

/// Copies a folder that others change meanwhile: what is gone when it is read isn't there.
fn copy(from: &Path, to: &Path, bytes: &impl Fn(&Path) -> Option<Vec<u8>>) {
    for entry in fs::read_dir(from).into_iter().flatten().flatten() {
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            fs::create_dir(&to).unwrap();
            copy(&path, &to, bytes);
        } else if let Some(bytes) = bytes(&path) {
            fs::write(&to, bytes).unwrap();
        }
    }
}

/// Whether this is the thread that retires segments.
fn retires() -> bool {
    thread::current().name() == Some(THREAD_NAME)
}

fn path_of(file: &File) -> PathBuf {
    fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap()
}

impl Disk for CutDisk {
    fn append(&self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        self.refuse_early_retirement()?;
        // A power cut may come in the middle of a write.
        let (some, rest) = bytes.split_at(bytes.len() / 2);
        RealDisk.append(file, some)?;
        self.check();
        RealDisk.append(file, rest)?;
        self.check();
        Ok(())
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        self.refuse_early_retirement()?;
        self.check();
        let path = path_of(file);
        let inode = file.metadata()?.ino();
        if path.is_dir() {
            let names = fs::read_dir(&path)?.map(|entry| {
                let entry = entry?;
                self.known.lock().push(File::open(entry.path())?);
                let (name, found) = (PathBuf::from(entry.file_name()), entry.metadata()?);
                Ok(Name { name, inode: found.ino(), is_folder: found.is_dir() })
            });
            // A file that goes away meanwhile needn't be there.
            let names = names.filter_map(io::Result::ok).collect();
            self.durable.lock().names.insert(inode, names);
        } else if let Ok(bytes) = fs::read(&path) {
            self.known.lock().push(file.try_clone()?);
            self.durable.lock().bytes.insert(inode, bytes);
        }
        self.check();
        Ok(())
    }
}
