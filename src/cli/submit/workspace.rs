//! A folder in the user's cache for one submission's shards; gone when it ends.
//!
//! A process that is killed can't tidy up, so each folder holds a lock, and the next submission removes
//! those whose lock nobody holds.

use crate::cli::terminal::{exit::Failure, local::absolute};
use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};
use tempfile::TempDir;

const LOCK: &str = "lock";
/// The lock's name until it is held: a sweep that finds one by its own name may take it.
const LOCK_TO_BE: &str = "lock.new";

/// The folder.
pub(crate) struct Workspace {
    folder: TempDir,
    /// Held until the process ends, in whatever way.
    _lock: File,
}

impl Workspace {
    /// Makes a folder, and removes those that killed processes left.
    pub(crate) fn new() -> Result<Self, Failure> {
        Self::below(&parent())
    }

    fn below(parent: &Path) -> Result<Self, Failure> {
        let failed = |error: io::Error| {
            Failure::work(format!("can't use the cache folder `{}`: {error}", parent.display()))
        };
        fs::create_dir_all(parent).map_err(failed)?;
        sweep(parent);
        let folder = tempfile::Builder::new().prefix("s-").tempdir_in(parent).map_err(failed)?;
        let unheld = folder.path().join(LOCK_TO_BE);
        let lock = File::create(&unheld).map_err(failed)?;
        lock.try_lock().map_err(|error| failed(error.into()))?;
        fs::rename(unheld, folder.path().join(LOCK)).map_err(failed)?;
        Ok(Self { folder, _lock: lock })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Where such folders are made.
pub(crate) fn parent() -> PathBuf {
    cache_folder().join("sojourn").join("submit")
}

fn cache_folder() -> PathBuf {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    absolute("XDG_CACHE_HOME").or_else(home).unwrap_or_else(std::env::temp_dir)
}

/// Removes what nobody holds. Best effort: what can't be removed is in nobody's way.
fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let folder = entry.path();
        // A folder without a lock may be one that is being made just now.
        if let Ok(lock) = File::open(folder.join(LOCK))
            && lock.try_lock().is_ok()
        {
            let _ = fs::remove_dir_all(folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_folder_is_deleted_while_others_are_created() {
        let parent = tempfile::tempdir().unwrap();
        let made = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        let made = (0..50).map(|_| Workspace::below(parent.path()).ok());
                        made.collect::<Option<Vec<_>>>().expect("a folder and its lock are had")
                    })
                })
                .collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        assert!(made.iter().all(|workspace| workspace.path().join(LOCK).exists()));
        drop(made);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }
}
