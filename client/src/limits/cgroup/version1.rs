//! Groups of version 1: a hierarchy for each controller. Made by root alone.

use super::{CgroupError, Control, Group, PREFIX, Places, Version, tree::Tree};
use std::{fs, io, path::Path};

/// A group for one controller, below `home`.
pub(super) fn make(home: &Path, pid: u32, controller: &str) -> Result<Group, CgroupError> {
    let mut tree = Tree::default();
    let folder = tree.make(home.join(format!("{PREFIX}{pid}")))?;
    let doors = vec![folder.join("cgroup.procs")];
    let control = Some(Control { version: Version::One, folder: folder.clone() });
    let group = Group { trees: vec![tree], ..Group::default() };
    if controller == "cpu" {
        // A kernel may be built without quotas.
        let quota = folder.join("cpu.cfs_quota_us");
        fs::metadata(&quota).map_err(|source| refused(&quota, source))?;
        let places = Places { at_work: doors, ..Places::default() };
        return Ok(Group { cpu: control, places, ..group });
    }
    let places =
        Places { at_start: doors, kills: Some(folder.join("memory.oom_control")), at_work: vec![] };
    Ok(Group { memory: control, places, ..group })
}

fn refused(path: &Path, source: io::Error) -> CgroupError {
    CgroupError::Refused { path: path.to_owned(), source }
}
