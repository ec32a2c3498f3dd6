//! The nice level of the trainers: of every thread of every one, those to come included.

use super::Nice;
use rustix::process::{Pid, getpriority_process, setpriority_process};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Keeps trainers at a level.
#[derive(Debug, Default)]
pub(super) struct Levels {
    /// Trainers have been given a level that isn't this program's own.
    changed: bool,
    /// The level that running trainers can't be given, which has been said.
    wanted: Option<i32>,
}

impl Levels {
    /// Has these processes stand back as far as the limit says; as far as this program where it says nothing
    /// any more. A level that is lower than before takes rights: without them it stays until they start anew.
    pub(super) fn hold(&mut self, limit: Option<Nice>, pids: &[u32]) {
        let wanted = match limit {
            Some(level) => i32::from(level.get()),
            None if self.changed => match getpriority_process(None) {
                Ok(own) => own,
                Err(_) => return,
            },
            None => return,
        };
        let refused = pids.iter().filter(|pid| !renice(**pid, wanted)).count();
        // Those that keep the old level are tried again: the owner may raise it once more.
        self.changed = limit.is_some() || refused > 0;
        if refused == 0 {
            self.wanted = None;
        } else if self.wanted.replace(wanted) != Some(wanted) {
            tracing::warn!(
                level = wanted,
                trainers = refused,
                "running trainers keep the higher nice level that they have: only root may lower it; new ones get this"
            );
        }
    }
}

/// Gives a process and all its threads a level. False where that isn't allowed.
fn renice(pid: u32, level: i32) -> bool {
    let mut allowed = true;
    for thread in threads(pid) {
        // It may have ended meanwhile.
        if getpriority_process(Some(thread)).is_ok_and(|now| now != level)
            && let Err(error) = setpriority_process(Some(thread), level)
        {
            allowed &= error == rustix::io::Errno::SRCH;
        }
    }
    allowed
}

fn threads(pid: u32) -> Vec<Pid> {
    let folder: PathBuf = Path::new("/proc").join(pid.to_string()).join("task");
    let threads = fs::read_dir(folder).into_iter().flatten().flatten();
    threads.filter_map(|thread| Pid::from_raw(thread.file_name().to_str()?.parse().ok()?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn trainers_stand_back_and_come_forward_again_where_that_is_allowed() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let pid = child.id();
        let level = || getpriority_process(threads(pid).first().copied()).unwrap();
        let own = getpriority_process(None).unwrap();
        let mut levels = Levels::default();
        levels.hold(None, &[pid]);
        assert_eq!((level(), levels.changed), (own, false));
        levels.hold("11".parse().ok(), &[pid]);
        let raised = level();
        levels.hold(None, &[pid]);
        let lowered = level();
        // A process that may not lower its nice level logs that once.
        let kept = (lowered != own).then_some(own);
        let after = (levels.wanted, levels.changed);
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(raised, 11);
        assert!(lowered == own || lowered == 11, "{lowered}");
        assert_eq!(after, (kept, kept.is_some()));
    }
}
