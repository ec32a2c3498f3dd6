//! Control groups: the kernel's own limits, on the trainers alone, in groups of the daemon's own below the one
//! that it was started in. They are gone when the daemon is; what a killed one has left goes at the next start.
//!
//! ```text
//! version 1                                  version 2
//! CPU/HOME/sojourn-PID      the quota        HOME/sojourn-PID           memory.max
//! MEMORY/HOME/sojourn-PID   the limit        HOME/sojourn-PID/starting  until a trainer's hello
//!                                            HOME/sojourn-PID/working   cpu.max
//! ```
//!
//! Where there are several slots, each has a group `slot-N` below the one of the quota, for its CPU share.
//!
//! A trainer that starts isn't slowed down, so that a small quota doesn't make it late; the memory that it then
//! takes counts. In version 2 a group that has groups below it can't have processes too: a daemon that is alone
//! in its group (as a service whose unit says `Delegate=`, or in a scope of its own) moves into `sojourn-PID-daemon`.
//!
//! | file | holds |
//! |---|---|
//! | `home.rs` | the groups that this process is in |
//! | `slots.rs` | a group for each slot |
//! | `tree.rs` | folders that are made and removed again |
//! | `version1.rs`, `version2.rs` | the groups of either |

mod home;
mod slots;
mod tree;
mod version1;
mod version2;

use home::Homes;
use slots::SlotGroups;
use sojourn_protocol::quantity::SaturatingFrom as _;
use sojourn_slot::Places;
use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
    process,
    time::Duration,
};
use tree::Tree;

/// The beginning of the name of each group of a daemon. Its process id follows.
const PREFIX: &str = "sojourn-";
/// The time over which a quota is counted, in microseconds: the kernel's own choice.
const QUOTA_PERIOD: u64 = 100_000;
/// The least quota that the kernel takes, in microseconds.
const MIN_QUOTA: u64 = 1_000;
/// How often, and how many times, what can't be removed yet is tried again: trainers that were killed take a
/// moment to end.
const RETRY_INTERVAL: Duration = Duration::from_millis(20);
const MAX_TRIES: u32 = 100;

/// Processor time that trainers may take together, in hundredths of a core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Quota(pub(crate) u64);

impl Quota {
    /// In cores.
    pub(super) fn cores(self) -> f64 {
        f64::from(u32::saturating_from(self.0)) / 100.0
    }

    /// In microseconds of a period.
    fn micros(self) -> u64 {
        self.0.saturating_mul(QUOTA_PERIOD / 100).max(MIN_QUOTA)
    }
}

/// Why there are no groups.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CgroupError {
    #[error("no controller of processor time or memory is at hand")]
    None,
    /// The client isn't alone in its group, which can't have processes and groups.
    #[error(
        "other programs are in the client's group `{}`; a service, or `systemd-run --user --scope -p \
         Delegate=yes`, has one of its own", .0.display()
    )]
    Shared(PathBuf),
    /// The file system doesn't allow it.
    #[error("`{}`: {source}", path.display())]
    Refused { path: PathBuf, source: io::Error },
}

/// The groups of one daemon.
#[derive(Debug, Default)]
pub(crate) struct Group {
    cpu: Option<Control>,
    memory: Option<Control>,
    places: Places,
    trees: Vec<Tree>,
    slots: SlotGroups,
}

/// A limit's file, and what it may be given.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Control {
    version: Version,
    /// The group's folder.
    folder: PathBuf,
}

/// Of the kernel's interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    /// A hierarchy for each controller.
    One,
    /// One for all.
    Two,
}

impl Group {
    /// Makes groups for this process's trainers.
    ///
    /// # Errors
    /// Where no limit could be kept by groups.
    pub(crate) fn make() -> Result<Self, CgroupError> {
        Self::make_in(Path::new("/"), process::id())
    }

    /// The same for the process `pid` of a machine whose files lie in `root`.
    fn make_in(root: &Path, pid: u32) -> Result<Self, CgroupError> {
        let homes = Homes::find(root);
        let mut group = Self::default();
        let mut refused = None;
        if let Some(home) = &homes.two {
            tree::clear(home, root);
            match version2::make(home, pid, homes.of_two()) {
                Ok(made) => group.take(made),
                Err(error) => refused = Some(error),
            }
        }
        for (controller, home) in [("cpu", &homes.cpu), ("memory", &homes.memory)] {
            let Some(home) = home else { continue };
            tree::clear(home, root);
            match version1::make(home, pid, controller) {
                Ok(made) => group.take(made),
                Err(error) => refused = Some(error),
            }
        }
        if group.cpu.is_none() && group.memory.is_none() {
            return Err(refused.unwrap_or(CgroupError::None));
        }
        if let Some(error) = refused {
            tracing::debug!(%error, "not all limits can be kept by control groups");
        }
        Ok(group)
    }

    /// Takes in what was made; what is there already stays.
    fn take(&mut self, made: Self) {
        self.cpu = self.cpu.take().or(made.cpu);
        self.memory = self.memory.take().or(made.memory);
        self.places.at_start.extend(made.places.at_start);
        self.places.at_work.extend(made.places.at_work);
        self.places.kills = self.places.kills.take().or(made.places.kills);
        self.trees.extend(made.trees);
    }

    /// The files through which trainers enter.
    pub(crate) fn places(&self) -> &Places {
        &self.places
    }

    /// Can processor time be limited?
    pub(crate) fn has_cpu(&self) -> bool {
        self.cpu.is_some()
    }

    /// Can memory be limited?
    pub(crate) fn has_memory(&self) -> bool {
        self.memory.is_some()
    }

    /// Has trainers take no more processor time than this; as much as they want where nothing is said. The quotas of single
    /// slots are lifted.
    pub(crate) fn limit_cpu(&self, quota: Option<Quota>) -> Result<(), CgroupError> {
        let Some(control) = &self.cpu else { return Err(CgroupError::None) };
        self.lift_caps()?;
        slots::set_quota(control, quota)
    }

    /// Has trainers take no more memory than this together, in bytes.
    pub(crate) fn limit_memory(&self, bytes: Option<u64>) -> Result<(), CgroupError> {
        let Some(Control { version, folder }) = &self.memory else {
            return Err(CgroupError::None);
        };
        let (file, none) = match version {
            Version::One => ("memory.limit_in_bytes", "-1"),
            Version::Two => ("memory.max", "max"),
        };
        write(&folder.join(file), &bytes.map_or_else(|| none.to_owned(), |bytes| bytes.to_string()))
    }

    /// Removes the groups, once the trainers have ended.
    pub(crate) async fn close(mut self) {
        for _ in 0..MAX_TRIES {
            self.trees.retain_mut(|tree| tree.remove().is_err());
            if self.trees.is_empty() {
                return;
            }
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
        tracing::debug!("control groups are left for the next start to remove");
    }
}

impl fmt::Display for Group {
    /// `version 1: cpu, memory`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let both = [("cpu", &self.cpu), ("memory", &self.memory)];
        let names = |wanted| {
            let of = both.into_iter().filter(move |(_, control)| {
                control.as_ref().is_some_and(|control| control.version == wanted)
            });
            of.map(|(name, _)| name).collect::<Vec<_>>().join(", ")
        };
        let versions = [("1", names(Version::One)), ("2", names(Version::Two))];
        let said = versions.iter().filter(|(_, names)| !names.is_empty());
        let said: Vec<String> =
            said.map(|(version, names)| format!("version {version}: {names}")).collect();
        f.write_str(&said.join("; "))
    }
}

fn write(path: &Path, text: &str) -> Result<(), CgroupError> {
    fs::write(path, text).map_err(|source| CgroupError::Refused { path: path.to_owned(), source })
}

#[cfg(test)]
pub(super) mod tests;
