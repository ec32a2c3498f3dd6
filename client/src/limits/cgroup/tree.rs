//! Folders of groups: made in an order, removed in the other. A folder of the kernel's can be removed when no
//! process and no folder is in it, whatever files it shows.

use super::{CgroupError, PREFIX, write};
use sojourn_files::if_exists;
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The end of the name of the group that the daemon itself moves into.
pub(super) const DAEMON: &str = "-daemon";

/// Folders that this daemon has made.
#[derive(Debug, Default)]
pub(super) struct Tree {
    /// In the order in which they were made.
    folders: Vec<PathBuf>,
    /// The group that the daemon came from. It moves back when the others are gone.
    back: Option<(PathBuf, u32)>,
}

impl Tree {
    /// Makes a folder. One that a process of the same id has left is as good.
    pub(super) fn make(&mut self, folder: PathBuf) -> Result<PathBuf, CgroupError> {
        match fs::create_dir(&folder) {
            Err(source) if source.kind() != io::ErrorKind::AlreadyExists => {
                return Err(CgroupError::Refused { path: folder, source });
            }
            _ => {}
        }
        self.folders.push(folder.clone());
        Ok(folder)
    }

    /// Is the folder one of this tree?
    pub(super) fn has(&self, folder: &Path) -> bool {
        self.folders.iter().any(|own| own == folder)
    }

    /// How many folders it has.
    pub(super) fn len(&self) -> usize {
        self.folders.len()
    }

    /// Removes the folders that were made after the first so many.
    pub(super) fn remove_after(&mut self, count: usize) {
        let mut later = self.folders.split_off(count.min(self.folders.len()));
        if let Err(error) = remove_groups(&mut later) {
            tracing::debug!(%error, "a control group can't be removed");
        }
        self.folders.append(&mut later);
    }

    /// Moves the process into a folder of this tree, from `home`, and back at the end.
    pub(super) fn moves(&mut self, pid: u32, home: &Path, to: &Path) -> Result<(), CgroupError> {
        write(&to.join("cgroup.procs"), &pid.to_string())?;
        self.back = Some((home.to_owned(), pid));
        Ok(())
    }

    /// Removes what can be removed; an error where something is left.
    pub(super) fn remove(&mut self) -> io::Result<()> {
        if self.back.is_none() {
            return remove_groups(&mut self.folders);
        }
        // The first is the daemon's own: it is empty only when the daemon is back, and there no groups
        // may have controllers then.
        let mut others = self.folders.split_off(1.min(self.folders.len()));
        let removed = remove_groups(&mut others);
        self.folders.append(&mut others);
        removed?;
        if let Some((home, pid)) = self.back.take() {
            for controller in ["-cpu", "-memory"] {
                // It may not be there.
                let _ = fs::write(home.join("cgroup.subtree_control"), controller);
            }
            fs::write(home.join("cgroup.procs"), pid.to_string())?;
        }
        remove_groups(&mut self.folders)
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        // A group that is still in use is removed at the next start.
        let _ = self.remove();
    }
}

/// Removes control groups, children before parents.
fn remove_groups(folders: &mut Vec<PathBuf>) -> io::Result<()> {
    while let Some(folder) = folders.last() {
        remove_one(folder)?;
        folders.pop();
    }
    Ok(())
}

fn remove_one(folder: &Path) -> io::Result<()> {
    if_exists(fs::remove_dir(folder)).map(|_| ())
}

/// Removes the groups of daemons that have been killed: those in `home` whose process is not alive.
pub(super) fn clear(home: &Path, root: &Path) {
    for group in fs::read_dir(home).into_iter().flatten().flatten() {
        let name = group.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        let pid = pid.map(|rest| rest.strip_suffix(DAEMON).unwrap_or(rest));
        let Some(pid) = pid.and_then(|pid| pid.parse::<u32>().ok()) else { continue };
        if is_alive(root, pid) {
            continue;
        }
        // Files are the kernel's, and no folders.
        for below in fs::read_dir(group.path()).into_iter().flatten().flatten() {
            for slot in fs::read_dir(below.path()).into_iter().flatten().flatten() {
                let _ = fs::remove_dir(slot.path());
            }
            let _ = fs::remove_dir(below.path());
        }
        match fs::remove_dir(group.path()) {
            Ok(()) => tracing::debug!(?name, "removed a control group that was left behind"),
            Err(error) => tracing::debug!(?name, %error, "a control group can't be removed yet"),
        }
    }
}

/// Does the process run? One that has ended and that nobody has asked after yet doesn't.
fn is_alive(root: &Path, pid: u32) -> bool {
    let stat = fs::read_to_string(root.join("proc").join(pid.to_string()).join("stat"));
    // `pid (name) state ...`; the name may hold anything.
    let stat = stat.unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, fields)| fields.chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}
