//! The data folder: its layout, its lock, and what is cleared at start. Knows no file's content.
//!
//! ```text
//! lock            held by the one daemon that may use the folder
//! identity.json   who this machine is (mode 0600)
//! cache/          blobs by digest: data/, checkpoints/, and parts/ (half-fetched)
//! log/            the log of the last days
//! outbox/         finished results until their reports have ended
//! scratch/        what trainers are writing
//! control.sock    where the owner speaks with the daemon
//! volume.json     how many bytes have come and gone in each month
//! client.toml     settings and limits of the owner
//! owner.json      the owner's commands that hold: a pause, the wish to drain
//! replaced-limits.json  limits of flags that the owner has replaced
//! machine.json    the machine that the identity belongs to
//! ```

use crate::{control::SOCKET_FILE, error::ClientError, log::LOG_FOLDER};
use rustix::process::Signal;
use sojourn_files::{Access, DiskSpace, Durability, LockedFile, if_exists};
use sojourn_protocol::ids::LeaseId;
use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::signal::unix::{SignalKind, signal};

/// The file of the machine's identity.
const IDENTITY_FILE: &str = "identity.json";
/// The name of the lock.
const LOCK: &str = "lock";

/// A data folder that this process holds the lock of.
#[derive(Debug)]
pub(crate) struct Folder {
    root: PathBuf,
    lock: LockedFile,
}

impl Folder {
    /// Makes the folder where it is missing, locks it, and clears what a killed daemon left half-made.
    pub(crate) fn open(root: &Path) -> Result<Self, ClientError> {
        let refuse = |path: &Path| {
            let path = path.to_owned();
            move |source| ClientError::Folder { path, source }
        };
        fs::create_dir_all(root).map_err(refuse(root))?;
        // Absolute, because trainers are told these paths and may run elsewhere.
        let root = root.canonicalize().map_err(refuse(root))?;
        let lock_path = root.join(LOCK);
        let Some(lock) = LockedFile::try_lock(&lock_path).map_err(refuse(&lock_path))? else {
            return Err(ClientError::FolderInUse { path: root });
        };
        let folder = Self { root, lock };
        for made in [folder.cache(), folder.outbox()] {
            fs::create_dir_all(&made).map_err(refuse(&made))?;
        }
        let scratch = folder.scratch();
        if_exists(fs::remove_dir_all(&scratch)).map_err(refuse(&scratch))?;
        fs::create_dir_all(&scratch).map_err(refuse(&scratch))?;
        Ok(folder)
    }

    /// Ends when somebody has deleted, moved or replaced the folder, or its lock; looks so often. Another daemon
    /// could be in its place by then.
    pub(crate) async fn gone(&self, every: Duration) -> ClientError {
        loop {
            tokio::time::sleep(every).await;
            if self.lock.is_gone() {
                return ClientError::FolderGone { path: self.root.clone() };
            }
        }
    }

    /// The folder itself.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn identity(&self) -> PathBuf {
        self.root.join(IDENTITY_FILE)
    }

    /// The file of the stores that this machine may be sent to.
    pub(crate) fn stores(&self) -> PathBuf {
        self.root.join("stores.json")
    }

    /// Where the owner speaks with the daemon.
    pub(crate) fn control(&self) -> PathBuf {
        self.root.join(SOCKET_FILE)
    }

    /// The file of the owner's commands that hold.
    pub(crate) fn owner(&self) -> PathBuf {
        self.root.join("owner.json")
    }

    /// The file that says which machine the identity belongs to.
    pub(crate) fn machine(&self) -> PathBuf {
        self.root.join("machine.json")
    }

    /// The file of measurements of units.
    pub(crate) fn measured(&self) -> PathBuf {
        self.root.join("measured.json")
    }

    /// The file that counts the bytes of each month.
    pub(crate) fn volume(&self) -> PathBuf {
        self.root.join("volume.json")
    }

    /// Where the log is written.
    pub(crate) fn log(&self) -> PathBuf {
        self.root.join(LOG_FOLDER)
    }

    pub(crate) fn cache(&self) -> PathBuf {
        self.root.join("cache")
    }

    pub(crate) fn outbox(&self) -> PathBuf {
        self.root.join("outbox")
    }

    pub(crate) fn scratch(&self) -> PathBuf {
        self.root.join("scratch")
    }

    /// A place of its own for what a lease's trainer writes, if it `writes` anything; all of it goes when the guard does.
    pub(crate) fn scratch_dir(&self, lease: LeaseId, writes: bool) -> io::Result<ScratchDir> {
        let scratch = ScratchDir(self.scratch().join(lease.to_string()));
        if writes {
            fs::create_dir_all(&scratch.0)?;
        }
        Ok(scratch)
    }
}

/// Bytes that the disk of a folder has free for this user.
pub(crate) fn free_bytes(folder: &Path) -> io::Result<u64> {
    Ok(DiskSpace::of(folder)?.free)
}

/// Has writes fail that make a file larger than it may be (`ulimit -f`), as on a full disk: by default such a
/// write ends the process.
pub(crate) fn survive_file_limits() {
    // Once listened to, a signal has no other effect for as long as the process lives.
    if let Err(error) = signal(SignalKind::from_raw(Signal::XFSZ.as_raw())) {
        tracing::debug!(%error, "a limit on the size of files would end this client");
    }
}

/// A folder that is removed with this guard.
#[derive(Debug)]
pub(crate) struct ScratchDir(PathBuf);

impl ScratchDir {
    /// Where the trainer writes the checkpoint.
    pub(crate) fn output(&self) -> PathBuf {
        self.0.join("checkpoint.safetensors")
    }

    /// Has the disk room for `bytes` more? Found out by writing them, which is the only way that
    /// also sees quotas.
    pub(crate) async fn probe(&self, bytes: u64) -> io::Result<()> {
        let folder = self.0.clone();
        let probe = tokio::task::spawn_blocking(move || {
            fs::create_dir_all(&folder)?;
            let mut file = File::create(folder.join("probe"))?;
            io::copy(&mut io::Read::take(io::repeat(0xA5), bytes.max(1)), &mut file)
        });
        // Not run at all: the program is ending, and the disk is not to blame.
        probe.await.unwrap_or(Ok(0)).map(|_| ())
    }
}

impl Drop for ScratchDir {
    fn drop(&mut self) {
        // A folder that can't be removed now is cleared at the next start.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Replaces a small file of the data folder. Not synced: whatever is read back after a start is checked first.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    sojourn_files::write(path, bytes, Access::Mask, Durability::Unsynced)
}

/// As [`write_whole`], and synced: the file survives a power cut.
pub(crate) fn write_lasting(path: &Path, bytes: &[u8]) -> io::Result<()> {
    sojourn_files::write(path, bytes, Access::Mask, Durability::Synced)
}

/// As [`write_lasting`], readable to its owner alone.
pub(crate) fn write_lasting_secret(path: &Path, bytes: &[u8]) -> io::Result<()> {
    sojourn_files::write(path, bytes, Access::Owner, Durability::Synced)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Opens a folder that nobody has any more. A child that another test is starting holds the lock for a moment.
    fn reopened(dir: &Path) -> Folder {
        loop {
            match Folder::open(dir) {
                Err(ClientError::FolderInUse { .. }) => std::thread::yield_now(),
                opened => return opened.unwrap(),
            }
        }
    }

    #[test]
    fn a_second_daemon_is_refused_until_the_first_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let first = Folder::open(dir.path()).unwrap();
        let error = Folder::open(dir.path()).unwrap_err();
        assert!(matches!(error, ClientError::FolderInUse { .. }), "{error}");
        drop(first);
        reopened(dir.path());
    }

    #[tokio::test]
    async fn scratch_folders_are_removed_with_their_guard_or_at_the_next_start() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        let scratch = folder.scratch_dir(LeaseId(1), true).unwrap();
        fs::write(scratch.output(), b"half").unwrap();
        scratch.probe(10).await.unwrap();
        drop(scratch);
        assert_eq!(fs::read_dir(folder.scratch()).unwrap().count(), 0);

        let unwritten = folder.scratch_dir(LeaseId(3), false).unwrap();
        assert_eq!(fs::read_dir(folder.scratch()).unwrap().count(), 0);
        unwritten.probe(10).await.unwrap();
        drop(unwritten);
        assert_eq!(fs::read_dir(folder.scratch()).unwrap().count(), 0);

        let killed = folder.scratch_dir(LeaseId(2), true).unwrap();
        fs::write(killed.output(), b"half").unwrap();
        std::mem::forget(killed);
        drop(folder);
        let folder = reopened(dir.path());
        assert_eq!(fs::read_dir(folder.scratch()).unwrap().count(), 0);
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, b"").unwrap();
        let error = Folder::open(&file.join("data")).unwrap_err();
        assert!(error.to_string().contains("file/data"), "{error}");
    }
}
