//! A group for each slot below the trainers' own, by which the kernel gives slots their CPU shares.

use super::{CgroupError, Control, Group, QUOTA_PERIOD, Quota, Version, write};
use parking_lot::Mutex;
use std::path::PathBuf;

/// The groups of the slots, by their numbers.
#[derive(Debug, Default)]
pub(super) struct SlotGroups {
    folders: Vec<PathBuf>,
    /// The quota of each.
    caps: Mutex<Vec<Option<Quota>>>,
}

/// How a version says how much a group gets beside others: the file, the usual weight, and the least and the most that it takes.
const fn weights(version: Version) -> (&'static str, f64, f64, f64) {
    match version {
        Version::One => ("cpu.shares", 1024.0, 2.0, 262_144.0),
        Version::Two => ("cpu.weight", 100.0, 1.0, 10_000.0),
    }
}

impl Group {
    /// Makes a group for each of so many slots, before any trainer works.
    ///
    /// # Errors
    /// Where the kernel refuses; all is as it was then.
    pub(crate) fn divide(&mut self, slots: u32) -> Result<(), CgroupError> {
        let Some(Control { version, folder }) = &self.cpu else { return Err(CgroupError::None) };
        let tree = self.trees.iter_mut().find(|tree| tree.has(folder));
        let tree = tree.ok_or(CgroupError::None)?;
        let before = tree.len();
        let folders = (0..slots).map(|slot| tree.make(folder.join(format!("slot-{slot}"))));
        let folders: Result<Vec<PathBuf>, _> = folders.collect();
        let divided = folders.and_then(|folders| {
            if *version == Version::Two {
                write(&folder.join("cgroup.subtree_control"), "+cpu")?;
            }
            Ok(folders)
        });
        match divided {
            Ok(folders) => {
                let caps = Mutex::new(vec![None; folders.len()]);
                self.slots = SlotGroups { folders, caps };
                Ok(())
            }
            Err(error) => {
                tree.remove_after(before);
                Err(error)
            }
        }
    }

    /// The file through which the trainers of a slot enter its group, where it has one.
    pub(crate) fn place_of(&self, slot: u32) -> Option<PathBuf> {
        let folder = self.slots.folders.get(usize::try_from(slot).ok()?)?;
        Some(folder.join("cgroup.procs"))
    }

    /// Has a slot get so much of the processor beside the others, where 1 is usual, and no more than this.
    pub(crate) fn give(
        &self,
        slot: u32,
        weight: f64,
        cap: Option<Quota>,
    ) -> Result<(), CgroupError> {
        let (Some(Control { version, .. }), Ok(at)) = (&self.cpu, usize::try_from(slot)) else {
            return Err(CgroupError::None);
        };
        let folder = self.slots.folders.get(at).ok_or(CgroupError::None)?;
        let (file, usual, least, most) = weights(*version);
        let weight = (weight * usual).round().clamp(least, most);
        write(&folder.join(file), &weight.to_string())?;
        if let Some(own) = self.slots.caps.lock().get_mut(at)
            && *own != cap
        {
            set_quota(&Control { version: *version, folder: folder.clone() }, cap)?;
            *own = cap;
        }
        Ok(())
    }

    /// Gives all slots what is usual.
    pub(crate) fn level(&self) -> Result<(), CgroupError> {
        let slots = 0..u32::try_from(self.slots.folders.len()).unwrap_or(u32::MAX);
        slots.into_iter().try_for_each(|slot| self.give(slot, 1.0, None))
    }

    /// Lifts the quotas of the slots while that of all is changed: version 1 takes none that is less than one below it.
    pub(super) fn lift_caps(&self) -> Result<(), CgroupError> {
        let Some(Control { version, .. }) = &self.cpu else { return Ok(()) };
        let mut caps = self.slots.caps.lock();
        for (folder, cap) in self.slots.folders.iter().zip(caps.iter_mut()) {
            if cap.take().is_some() {
                set_quota(&Control { version: *version, folder: folder.clone() }, None)?;
            }
        }
        Ok(())
    }
}

/// Has the processes of a group take no more processor time than this; as much as they want where nothing is said.
pub(super) fn set_quota(
    Control { version, folder }: &Control,
    quota: Option<Quota>,
) -> Result<(), CgroupError> {
    let micros = quota.map(Quota::micros);
    match version {
        Version::One => {
            write(&folder.join("cpu.cfs_period_us"), &QUOTA_PERIOD.to_string())?;
            let micros = micros.map_or_else(|| "-1".to_owned(), |micros| micros.to_string());
            write(&folder.join("cpu.cfs_quota_us"), &micros)
        }
        Version::Two => {
            let micros = micros.map_or_else(|| "max".to_owned(), |micros| micros.to_string());
            write(&folder.join("cpu.max"), &format!("{micros} {QUOTA_PERIOD}"))
        }
    }
}
