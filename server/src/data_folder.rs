//! The server's data folder: its lock and its files.

use sojourn_blobs::{BLOBS_FOLDER, UPLOADS_FOLDER};
use sojourn_files::{Access, Durability, LockedFile, if_exists};
use std::{
    fs, io,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

/// Why the data folder can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each variant's message says it")]
pub enum DataFolderError {
    #[error(
        "another server uses the data folder `{}`: commands on this machine ask that one already; to run a second server, give \
         it a folder and an address of its own with `--data DIR` and `--listen ADDRESS`", .0.display()
    )]
    InUse(PathBuf),
    #[error("can't use `{}`", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("the system gives no random numbers")]
    NoRandomness(#[source] getrandom::Error),
}

/// How often the folder is looked for.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

fn file_error(path: &Path) -> impl FnOnce(io::Error) -> DataFolderError {
    |source| DataFolderError::File { path: path.to_owned(), source }
}

/// How often the lock is tried, and how long after each try: a command that looks for a live server holds it for an instant.
const LOCK_TRIES: u32 = 5;
const LOCK_PAUSE: Duration = Duration::from_millis(20);

fn try_lock(path: &Path) -> io::Result<Option<LockedFile>> {
    for _ in 1..LOCK_TRIES {
        if let Some(lock) = LockedFile::try_lock(path)? {
            return Ok(Some(lock));
        }
        std::thread::sleep(LOCK_PAUSE);
    }
    LockedFile::try_lock(path)
}

/// A data folder that this process has locked, until it is dropped.
#[derive(Debug)]
pub struct DataFolder {
    root: PathBuf,
    lock: LockedFile,
}

impl DataFolder {
    /// Locks the folder, and makes it if it is missing.
    ///
    /// # Errors
    /// [`DataFolderError::InUse`], or where it can't be made or written.
    pub fn take(root: &Path) -> Result<Self, DataFolderError> {
        fs::create_dir_all(root).map_err(file_error(root))?;
        let path = root.join("lock");
        let Some(lock) = try_lock(&path).map_err(file_error(&path))? else {
            return Err(DataFolderError::InUse(root.to_owned()));
        };
        let folder = Self { root: root.to_owned(), lock };
        // An address of an earlier run must not pass for this one's.
        let address = folder.address_file();
        if_exists(fs::remove_file(&address)).map_err(file_error(&address))?;
        Ok(folder)
    }

    /// Has somebody deleted, moved or replaced the folder?
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.lock.is_gone()
    }

    /// Ends when somebody has deleted, moved or replaced the folder: what is written to it from then on is lost.
    pub async fn gone(&self) {
        while !self.is_gone() {
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    }

    /// The journal's file.
    #[must_use]
    pub fn journal(&self) -> PathBuf {
        self.root.join("journal.sqlite")
    }

    /// The file that holds room for the journal.
    #[must_use]
    pub fn journal_room(&self) -> PathBuf {
        self.root.join("journal.reserve")
    }

    /// The folder itself.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder of the blobs.
    #[must_use]
    pub fn blobs(&self) -> PathBuf {
        self.root.join(BLOBS_FOLDER)
    }

    /// The file of browsers' sessions.
    #[must_use]
    pub fn sessions(&self) -> PathBuf {
        self.root.join("sessions")
    }

    /// The file of the failures that hosts have reported.
    #[must_use]
    pub fn failures(&self) -> PathBuf {
        self.root.join("failures")
    }

    /// The file of what webhooks are still to be told.
    #[must_use]
    pub fn webhooks(&self) -> PathBuf {
        self.root.join("webhooks")
    }

    /// The spool folder of uploads.
    #[must_use]
    pub fn uploads(&self) -> PathBuf {
        self.root.join(UPLOADS_FOLDER)
    }

    /// The folder of the data that browsers send for new jobs.
    #[must_use]
    pub fn data_uploads(&self) -> PathBuf {
        self.root.join("data-uploads")
    }

    /// The file that says where the server listens, while it does.
    #[must_use]
    pub fn address_file(&self) -> PathBuf {
        self.root.join("address")
    }

    /// Writes the server's address and a newline, atomically.
    ///
    /// # Errors
    /// Where the file can't be written.
    pub fn write_address(&self, address: SocketAddr) -> Result<(), DataFolderError> {
        self.write_whole(&self.address_file(), &format!("{address}\n"))
    }

    /// Replaces a file. Only its owner can read it.
    fn write_whole(&self, path: &Path, text: &str) -> Result<(), DataFolderError> {
        sojourn_files::write(path, text.as_bytes(), Access::Owner, Durability::Synced)
            .map_err(file_error(path))
    }
}

impl Drop for DataFolder {
    fn drop(&mut self) {
        // Nothing listens any more. In a folder in its place another server may.
        if !self.is_gone() {
            let _ = fs::remove_file(self.address_file());
        }
    }
}

/// A token of 256 random bits, in hex.
///
/// # Errors
/// Where the system gives no random numbers.
pub(crate) fn new_token() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    Ok(sojourn_protocol::digest::Digest(bytes).to_string())
}
