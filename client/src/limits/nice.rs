//! The nice level of the trainers: of every thread of every child, those to come included.

use super::Nice;
use rustix::process::{Pid, getpid, getpriority_process, setpriority_process};
use std::{fs, path::Path};

/// Has this program's children stand back as far as `level` says. A level that only root may set (one that is
/// lower than before) stays as it is.
pub(super) fn renice_children(level: Nice) {
    for child in children(getpid().as_raw_nonzero().get()) {
        for thread in numbers(&Path::new("/proc").join(child.to_string()).join("task")) {
            let thread = Pid::from_raw(thread);
            // It may have ended meanwhile.
            if getpriority_process(thread).is_ok_and(|now| now != i32::from(level.get()))
                && let Err(error) = setpriority_process(thread, i32::from(level.get()))
            {
                tracing::debug!(%error, level = level.get(), "a trainer keeps its nice level");
            }
        }
    }
}

/// The processes whose parent is `parent`.
fn children(parent: i32) -> impl Iterator<Item = i32> {
    numbers(Path::new("/proc")).into_iter().filter(move |pid| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // `pid (name) state parent`; the name may hold anything.
        let fields = stat.rsplit_once(") ").map(|(_, fields)| fields).unwrap_or_default();
        fields.split(' ').nth(1).and_then(|parent| parent.parse().ok()) == Some(parent)
    })
}

/// The names in a folder that are numbers.
fn numbers(folder: &Path) -> Vec<i32> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    files.filter_map(|file| file.file_name().to_str()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn children_stand_back() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        assert!(children(getpid().as_raw_nonzero().get()).any(|child| child == pid));
        renice_children("11".parse().unwrap());
        let level = getpriority_process(Pid::from_raw(pid)).unwrap();
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(level, 11);
    }
}
