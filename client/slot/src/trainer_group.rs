//! The trainers of several slots, looked after together: the control groups that they enter as they start, who of
//! them is alive, and which was ended for want of memory.
//!
//! This module makes no groups and sets no limits; whoever does that says here where the groups are.

use parking_lot::Mutex;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};
use std::{
    collections::BTreeMap,
    fs, io,
    os::{fd::OwnedFd, unix::process::ExitStatusExt},
    path::PathBuf,
    process::ExitStatus,
    sync::Arc,
};

/// The signal by which the kernel ends what takes too much memory.
const SIGKILL: i32 = 9;

/// Files of control groups.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    /// A trainer's process id is written into these as it starts.
    pub at_start: Vec<PathBuf>,
    /// Into these once it has said hello: what slows it down may not make it late for that.
    pub at_work: Vec<PathBuf>,
    /// Says in a line `oom_kill N` how many processes of the group the kernel has ended for want of memory.
    pub kills: Option<PathBuf>,
}

/// Trainers that are looked after together.
#[derive(Debug, Default)]
pub struct TrainerGroup {
    places: Places,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// By process id.
    members: BTreeMap<u32, MemberState>,
    /// How many of the kernel's kills are accounted for.
    claimed: u64,
    /// Is there a trainer that didn't get into its groups?
    outside: bool,
}

#[derive(Debug)]
struct MemberState {
    /// Why it is to end, where it is.
    reason: Option<String>,
    /// The process itself, whoever has its number after it; none where the kernel has no such.
    process: Option<OwnedFd>,
}

impl TrainerGroup {
    /// Trainers that enter these groups.
    #[must_use]
    pub fn new(places: Places) -> Self {
        Self { places, state: Mutex::default() }
    }

    /// The process ids of those who are alive.
    #[must_use]
    pub fn pids(&self) -> Vec<u32> {
        self.state.lock().members.keys().copied().collect()
    }

    /// The trainer is about to be ended by the caller because memory is short, for that reason; its unit then
    /// fails so. False where it has ended already.
    #[must_use]
    pub fn condemn(&self, pid: u32, why: String) -> bool {
        let mut state = self.state.lock();
        let member = state.members.get_mut(&pid);
        member.map(|member| member.reason = Some(why)).is_some()
    }

    /// Ends a trainer with `SIGKILL`. One that has ended stays so, and whoever got its number lives.
    ///
    /// # Errors
    /// Where it has ended already, or the system refuses.
    pub fn kill(&self, pid: u32) -> io::Result<()> {
        let state = self.state.lock();
        let member = state.members.get(&pid).ok_or(io::ErrorKind::NotFound)?;
        let killed = match (&member.process, raw(pid)) {
            (Some(process), _) => pidfd_send_signal(process, Signal::KILL),
            (None, Some(pid)) => kill_process(pid, Signal::KILL),
            (None, None) => return Err(io::ErrorKind::InvalidInput.into()),
        };
        Ok(killed?)
    }

    /// Is there, or was there, a trainer that couldn't enter its groups? What they limit isn't limited then.
    #[must_use]
    pub fn is_outside(&self) -> bool {
        self.state.lock().outside
    }

    /// A trainer has started. `own`: the file of a group of its slot's own, into which it goes once it works.
    pub(crate) fn enter(self: &Arc<Self>, pid: u32, own: Option<PathBuf>) -> Member {
        // It hasn't been waited for: the number is its own.
        let process = raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        self.state.lock().members.insert(pid, MemberState { reason: None, process });
        self.put(pid, &self.places.at_start);
        Member { trainer_group: Arc::clone(self), pid, own }
    }

    fn put(&self, pid: u32, places: &[PathBuf]) {
        for place in places {
            if let Err(error) = fs::write(place, pid.to_string()) {
                tracing::warn!(pid, ?place, %error, "a trainer can't enter its control group");
                self.state.lock().outside = true;
            }
        }
    }

    /// Has the kernel ended a process that nobody has missed so far?
    fn claim_kill(&self) -> bool {
        let Some(Ok(kills)) = self.places.kills.as_ref().map(fs::read_to_string) else {
            return false;
        };
        let kills = kills.lines().find_map(|line| line.strip_prefix("oom_kill ")?.parse().ok());
        let mut state = self.state.lock();
        let missed = kills.is_some_and(|kills: u64| kills > state.claimed);
        state.claimed += u64::from(missed);
        missed
    }
}

/// A process id as the system takes it.
fn raw(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

/// A trainer of a trainer group, for as long as it lives.
#[derive(Debug)]
pub(crate) struct Member {
    trainer_group: Arc<TrainerGroup>,
    pid: u32,
    own: Option<PathBuf>,
}

impl Member {
    /// The trainer has said hello, and enters the groups for work.
    pub(crate) fn works(&self) {
        let places = &self.trainer_group.places;
        self.trainer_group
            .put(self.pid, self.own.as_ref().map_or(&places.at_work[..], std::slice::from_ref));
    }

    /// Was it memory that it ended for? In words.
    pub(crate) fn out_of_memory(&self, ended: &io::Result<ExitStatus>) -> Option<String> {
        let killed = ended.as_ref().is_ok_and(|status| status.signal() == Some(SIGKILL));
        if !killed {
            return None;
        }
        let condemned = self
            .trainer_group
            .state
            .lock()
            .members
            .get_mut(&self.pid)
            .and_then(|of| of.reason.take());
        condemned.or_else(|| {
            let by_kernel =
                "the trainers took more memory than they may, and the kernel ended this one";
            self.trainer_group.claim_kill().then(|| by_kernel.to_owned())
        })
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.trainer_group.state.lock().members.remove(&self.pid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn trainer_group(folder: &Path) -> Arc<TrainerGroup> {
        let file = |name: &str| folder.join(name);
        Arc::new(TrainerGroup::new(Places {
            at_start: vec![file("start")],
            at_work: vec![file("work")],
            kills: Some(file("events")),
        }))
    }

    #[test]
    fn a_trainer_enters_its_groups_in_two_steps() {
        let folder = tempfile::tempdir().unwrap();
        let trainer_group = trainer_group(folder.path());
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).ok();
        let member = trainer_group.enter(70, None);
        assert_eq!((read("start").as_deref(), read("work")), (Some("70"), None));
        member.works();
        assert_eq!(read("work").as_deref(), Some("70"));
        assert_eq!((trainer_group.pids(), trainer_group.is_outside()), (vec![70], false));
        drop(member);
        assert!(trainer_group.pids().is_empty());
        folder.close().unwrap();
        drop(trainer_group.enter(71, None));
        assert!(trainer_group.is_outside());
    }

    #[test]
    fn a_slots_own_group_stands_for_the_one_of_all() {
        let folder = tempfile::tempdir().unwrap();
        let trainer_group = trainer_group(folder.path());
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).ok();
        trainer_group.enter(70, Some(folder.path().join("own"))).works();
        assert_eq!((read("start").as_deref(), read("work")), (Some("70"), None));
        assert_eq!(read("own").as_deref(), Some("70"));
    }

    #[test]
    fn each_kill_of_the_kernel_explains_one_death() {
        let folder = tempfile::tempdir().unwrap();
        let trainer_group = trainer_group(folder.path());
        let events = |kills: u32| {
            let text = format!("oom 9\noom_kill {kills}\noom_group_kill 0\n");
            fs::write(folder.path().join("events"), text).unwrap();
        };
        let killed = || Ok(ExitStatus::from_raw(SIGKILL));
        let (first, second) = (trainer_group.enter(1, None), trainer_group.enter(2, None));
        assert_eq!(first.out_of_memory(&killed()), None, "there is no such file");
        events(0);
        assert_eq!(first.out_of_memory(&killed()), None, "somebody else did it");
        events(1);
        assert_eq!(first.out_of_memory(&Ok(ExitStatus::from_raw(11))), None);
        assert!(first.out_of_memory(&killed()).unwrap().contains("kernel"));
        assert_eq!(second.out_of_memory(&killed()), None);
        events(2);
        assert!(second.out_of_memory(&killed()).is_some());
    }

    #[test]
    fn a_trainer_is_ended_and_whoever_has_its_number_afterwards_is_not() {
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let trainer_group = Arc::new(TrainerGroup::default());
        let member = trainer_group.enter(child.id(), None);
        trainer_group.kill(child.id()).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(SIGKILL));
        // From now on the number may be anybody's.
        let again = trainer_group.kill(child.id()).unwrap_err();
        assert_eq!(again.raw_os_error(), Some(rustix::io::Errno::SRCH.raw_os_error()));
        drop(member);
        assert_eq!(trainer_group.kill(child.id()).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_trainer_ended_for_memory_reports_the_reason() {
        let trainer_group = Arc::new(TrainerGroup::default());
        let member = trainer_group.enter(1, None);
        assert!(trainer_group.condemn(1, "it took most".to_owned()));
        assert_eq!(member.out_of_memory(&Ok(ExitStatus::from_raw(0))), None, "it was quicker");
        let why = member.out_of_memory(&Ok(ExitStatus::from_raw(SIGKILL)));
        assert_eq!(why.as_deref(), Some("it took most"));
        drop(member);
        assert!(!trainer_group.condemn(1, String::new()));
    }
}
