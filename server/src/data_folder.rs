//! The server's data folder: its lock and its files.

use sojourn_files::{Access, Durability};
use std::{
    fs::{self, File, TryLockError},
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
};

/// Why the data folder can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataFolderError {
    /// Another server has it.
    #[error("another server uses the data folder `{}`", .0.display())]
    InUse(PathBuf),
    /// A file in it could not be used.
    #[error("can't use `{}`", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The system gives no random numbers for tokens.
    #[error("the system gives no random numbers")]
    Chance(#[source] getrandom::Error),
}

/// A data folder that this process has locked, until it is dropped.
#[derive(Debug)]
pub struct DataFolder {
    root: PathBuf,
    /// Locked while it is open. The system unlocks it even if the process is killed.
    _lock: File,
}

impl DataFolder {
    /// Locks the folder, and makes it if it is missing.
    ///
    /// # Errors
    /// [`DataFolderError::InUse`], or where it can't be made or written.
    pub fn take(root: &Path) -> Result<Self, DataFolderError> {
        let error = |path: &Path| {
            let path = path.to_owned();
            |source| DataFolderError::File { path, source }
        };
        fs::create_dir_all(root).map_err(error(root))?;
        let path = root.join("lock");
        let lock = File::options().create(true).truncate(false).write(true).open(&path);
        let lock = lock.map_err(error(&path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(DataFolderError::InUse(root.to_owned())),
            Err(TryLockError::Error(source)) => return Err(DataFolderError::File { path, source }),
        }
        let folder = Self { root: root.to_owned(), _lock: lock };
        // An address of an earlier run must not pass for this one's.
        match fs::remove_file(folder.address_file()) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(DataFolderError::File { path: folder.address_file(), source })
            }
            _ => Ok(folder),
        }
    }

    /// The journal's file.
    #[must_use]
    pub fn journal(&self) -> PathBuf {
        self.root.join("journal.sqlite")
    }

    /// The folder of the blobs.
    #[must_use]
    pub fn blobs(&self) -> PathBuf {
        self.root.join("blobs")
    }

    /// The spool folder of uploads.
    #[must_use]
    pub fn uploads(&self) -> PathBuf {
        self.root.join("uploads")
    }

    /// The file with the token with which machines become hosts.
    #[must_use]
    pub fn enrol_token_file(&self) -> PathBuf {
        self.root.join("enrol-token")
    }

    /// The file with the token of users and operators.
    #[must_use]
    pub fn admin_token_file(&self) -> PathBuf {
        self.root.join("admin-token")
    }

    /// The file with the token of processes that assimilate.
    #[must_use]
    pub fn assimilator_token_file(&self) -> PathBuf {
        self.root.join("assimilator-token")
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

    /// The token in a file. It is made at the first start, and only its owner can read it.
    ///
    /// # Errors
    /// Where the file can't be read or written.
    pub fn token(&self, file: &Path) -> Result<String, DataFolderError> {
        match fs::read_to_string(file) {
            Ok(text) if !text.trim().is_empty() => Ok(text.trim().to_owned()),
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(DataFolderError::File { path: file.to_owned(), source })
            }
            _ => {
                let token = new_token().map_err(DataFolderError::Chance)?;
                self.set_token(file, &token)?;
                Ok(token)
            }
        }
    }

    /// Writes a token that the servers share to a file.
    ///
    /// # Errors
    /// Where the file can't be written.
    pub(crate) fn set_token(&self, file: &Path, token: &str) -> Result<(), DataFolderError> {
        self.write_whole(file, &format!("{token}\n"))
    }

    /// Replaces a file. Only its owner can read it.
    fn write_whole(&self, path: &Path, text: &str) -> Result<(), DataFolderError> {
        sojourn_files::write(path, text.as_bytes(), Access::Owner, Durability::Synced)
            .map_err(|source| DataFolderError::File { path: path.to_owned(), source })
    }
}

impl Drop for DataFolder {
    fn drop(&mut self) {
        // Nothing listens any more.
        let _ = fs::remove_file(self.address_file());
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
