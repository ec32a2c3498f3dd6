//! The server's data folder: who may use it, and what lies where in it.

use std::{
    fs::{self, File, TryLockError},
    io::{self, Write as _},
    net::SocketAddr,
    path::{Path, PathBuf},
};

/// Why the data folder can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FolderError {
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

/// A data folder that this process has for itself, until it is dropped.
#[derive(Debug)]
pub struct DataFolder {
    root: PathBuf,
    /// Locked as long as it is open; the system frees it even when the process is killed.
    _lock: File,
}

impl DataFolder {
    /// Takes the folder, making it where it isn't there.
    ///
    /// # Errors
    /// [`FolderError::InUse`], or where it can't be made or written.
    pub fn take(root: &Path) -> Result<Self, FolderError> {
        let error = |path: &Path| {
            let path = path.to_owned();
            |source| FolderError::File { path, source }
        };
        fs::create_dir_all(root).map_err(error(root))?;
        let path = root.join("lock");
        let lock = File::options().create(true).truncate(false).write(true).open(&path);
        let lock = lock.map_err(error(&path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(FolderError::InUse(root.to_owned())),
            Err(TryLockError::Error(source)) => return Err(FolderError::File { path, source }),
        }
        let folder = Self { root: root.to_owned(), _lock: lock };
        // An address of an earlier run must not be taken for this one's.
        match fs::remove_file(folder.address_file()) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(FolderError::File { path: folder.address_file(), source })
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

    /// Says where the server listens: the address and a newline, all at once.
    ///
    /// # Errors
    /// Where the file can't be written.
    pub fn write_address(&self, address: SocketAddr) -> Result<(), FolderError> {
        self.write_whole(&self.address_file(), &format!("{address}\n"))
    }

    /// The token in a file, made at the first start and readable to its owner alone.
    ///
    /// # Errors
    /// Where the file can't be read or written.
    pub fn token(&self, file: &Path) -> Result<String, FolderError> {
        match fs::read_to_string(file) {
            Ok(text) if !text.trim().is_empty() => Ok(text.trim().to_owned()),
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(FolderError::File { path: file.to_owned(), source })
            }
            _ => {
                let token = new_token().map_err(FolderError::Chance)?;
                self.set_token(file, &token)?;
                Ok(token)
            }
        }
    }

    /// Puts a token that others have settled on into a file.
    ///
    /// # Errors
    /// Where the file can't be written.
    pub(crate) fn set_token(&self, file: &Path, token: &str) -> Result<(), FolderError> {
        self.write_whole(file, &format!("{token}\n"))
    }

    /// Writes a file that is there whole or not at all, readable to its owner alone.
    fn write_whole(&self, path: &Path, text: &str) -> Result<(), FolderError> {
        let temporary = path.with_extension("new");
        let write = || -> io::Result<()> {
            let mut options = File::options();
            options.create(true).truncate(true).write(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            let mut file = options.open(&temporary)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&temporary, path)?;
            File::open(&self.root)?.sync_all()
        };
        write().map_err(|source| FolderError::File { path: path.to_owned(), source })
    }
}

impl Drop for DataFolder {
    fn drop(&mut self) {
        // Nothing listens any more; a leftover would only be out of date.
        let _ = fs::remove_file(self.address_file());
    }
}

/// A token that nobody can guess: 256 random bits in hex.
///
/// # Errors
/// Where the system gives no random numbers.
pub(crate) fn new_token() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    Ok(sojourn_protocol::digest::Digest(bytes).to_string())
}
