//! Groups of version 2: one hierarchy, whose groups have the controllers that the group above hands down.

use super::{
    CgroupError, Control, Group, PREFIX, Places, Version,
    tree::{DAEMON, Tree},
    write,
};
use std::{fs, io, path::Path};

/// Groups below `home`, for those of the wanted controllers that it has.
pub(super) fn make(home: &Path, pid: u32, wanted: Vec<&str>) -> Result<Group, CgroupError> {
    let has = words(&home.join("cgroup.controllers"));
    let wanted: Vec<&str> =
        wanted.into_iter().filter(|name| has.iter().any(|word| word == name)).collect();
    if wanted.is_empty() {
        return Err(CgroupError::None);
    }
    let mut tree = Tree::default();
    hand_down(home, pid, &wanted, &mut tree, write)?;
    let folder = tree.make(home.join(format!("{PREFIX}{pid}")))?;
    let has = |name: &str| wanted.contains(&name);
    let mut door = folder.clone();
    let mut cpu = None;
    let mut at_work = Vec::new();
    if has("cpu") {
        write(&folder.join("cgroup.subtree_control"), "+cpu")?;
        door = tree.make(folder.join("starting"))?;
        let working = tree.make(folder.join("working"))?;
        at_work.push(working.join("cgroup.procs"));
        cpu = Some(Control { version: Version::Two, folder: working });
    }
    let memory = has("memory").then(|| Control { version: Version::Two, folder: folder.clone() });
    let kills = has("memory").then(|| folder.join("memory.events"));
    let places = Places { at_start: vec![door.join("cgroup.procs")], at_work, kills };
    Ok(Group { cpu, memory, places, trees: vec![tree], ..Group::default() })
}

/// Has the groups in `home` have these controllers. Where this process stands in the way, and no other, it moves
/// into a group of its own.
pub(super) fn hand_down(
    home: &Path,
    pid: u32,
    wanted: &[&str],
    tree: &mut Tree,
    write: impl Fn(&Path, &str) -> Result<(), CgroupError>,
) -> Result<(), CgroupError> {
    let control = home.join("cgroup.subtree_control");
    let there = words(&control);
    let missing: Vec<String> = wanted
        .iter()
        .filter(|name| there.iter().all(|word| word != **name))
        .map(|name| format!("+{name}"))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let missing = missing.join(" ");
    // The root of all may have both processes and groups.
    match write(&control, &missing) {
        Err(CgroupError::Refused { source, .. })
            if source.kind() == io::ErrorKind::ResourceBusy => {}
        written => return written,
    }
    let own = pid.to_string();
    if words(&home.join("cgroup.procs")) != [own] {
        return Err(CgroupError::Shared(home.to_owned()));
    }
    let daemon = tree.make(home.join(format!("{PREFIX}{pid}{DAEMON}")))?;
    tree.moves(pid, home, &daemon)?;
    write(&control, &missing)
}

fn words(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}
