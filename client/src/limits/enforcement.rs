//! Enforces the limits of processor time and memory: by control groups if they can be used; else by pauses between
//! batches, and by checking the trainers' memory now and then.

use super::{
    Limits,
    cgroup::{CgroupError, Group, Quota},
    machine::cores,
    rules::{allowed, free_threads, quota},
};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use sojourn_slot::TrainerGroup;
use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

/// The means by which one daemon's limits are enforced.
#[derive(Debug)]
pub(crate) struct LimitEnforcement {
    trainer_group: Arc<TrainerGroup>,
    group: Option<Arc<Group>>,
    /// Why there is no group.
    why_none: Option<String>,
    /// Threads of a unit that pins none.
    threads: Arc<AtomicU32>,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    quota: Setting<Quota>,
    memory: Setting<u64>,
}

/// A limit that is set in the kernel.
#[derive(Debug)]
struct Setting<T> {
    /// The last value that was set; `None` before the first.
    applied: Option<Option<T>>,
    /// Whether the kernel has accepted it.
    holds: bool,
}

/// The state of the quotas of single slots, after limits were set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlotCaps {
    /// The quotas are as they were.
    Kept,
    /// The quotas were lifted, because the quota of all was set, of which they are a part: they have to be given again.
    Lifted,
}

impl<T> Default for Setting<T> {
    fn default() -> Self {
        Self { applied: None, holds: false }
    }
}

impl<T: Copy + PartialEq> Setting<T> {
    /// Sets the limit in the kernel if it has changed. A refused limit is tried again each time, and logged once. False
    /// where nothing was to be set.
    fn set(
        &mut self,
        limit: &'static str,
        wanted: Option<T>,
        apply: impl FnOnce(Option<T>) -> Result<(), CgroupError>,
    ) -> bool {
        let is_new = self.applied != Some(wanted);
        if !is_new && self.holds {
            return false;
        }
        let result = apply(wanted);
        self.holds = result.is_ok();
        self.applied = Some(wanted);
        if let Err(error) = result
            && is_new
        {
            tracing::warn!(limit, %error, "the control group doesn't take a limit; the client keeps it itself");
        }
        true
    }
}

/// By what the limits of processor time and memory are kept, for people and programs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keepers {
    /// The control groups: their version, and what they limit. None where none can be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups: Option<String>,
    /// Why there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why_none: Option<String>,
}

impl LimitEnforcement {
    /// Nothing but the client itself keeps the limits of trainers that aren't its children.
    pub(crate) fn none() -> Self {
        Self {
            trainer_group: Arc::default(),
            group: None,
            why_none: None,
            threads: Arc::new(AtomicU32::new(1)),
            held: Mutex::default(),
        }
    }

    /// Finds out whether control groups can be used, and makes them. `allowed`: may they?
    pub(crate) fn find(allowed: bool) -> Self {
        if !allowed {
            return Self { why_none: Some("`cgroup` is false".to_owned()), ..Self::none() };
        }
        match Group::make() {
            Ok(group) => {
                tracing::info!(groups = %group, "control groups keep limits");
                let trainer_group = Arc::new(TrainerGroup::new(group.places().clone()));
                Self { trainer_group, group: Some(Arc::new(group)), ..Self::none() }
            }
            Err(error) => {
                let why = error.to_string();
                tracing::info!(
                    why,
                    "the client itself keeps the limits of processor time and memory; the kernel's control groups aren't used"
                );
                Self { why_none: Some(why), ..Self::none() }
            }
        }
    }

    /// Gives each of several slots on the processor a group of its own, before any trainer works. Where that can't be, slots
    /// have their shares by pauses.
    pub(crate) fn divide(&mut self, slots: u32) {
        let Some(group) = self.group.as_mut().and_then(Arc::get_mut) else { return };
        if slots > 1
            && group.has_cpu()
            && let Err(error) = group.divide(slots)
        {
            tracing::debug!(%error, "slots have no control groups of their own");
        }
    }

    /// The file through which the trainers of a slot on the processor enter its own group, where it has one.
    pub(crate) fn place_of(&self, slot: u32) -> Option<PathBuf> {
        self.group.as_ref()?.place_of(slot)
    }

    /// Has the kernel give a slot on the processor so much of it beside the others, where 1 is usual, and no more than `cap`, as
    /// a part of what is lent. False where it doesn't.
    pub(crate) fn give(&self, slot: u32, weight: f64, cap: Option<f64>, limits: &Limits) -> bool {
        let Some(group) = self.group.as_ref().filter(|_| !self.trainer_group.is_outside()) else {
            return false;
        };
        let cap = cap.map(|cap| hundredths(cap * self.capacity(limits)));
        match group.give(slot, weight, cap) {
            Ok(()) => true,
            Err(error) => {
                tracing::debug!(slot, %error, "a slot's control group doesn't take its share");
                false
            }
        }
    }

    /// Has the kernel give all slots the same.
    pub(crate) fn level(&self) {
        let levelled = self.group.as_ref().map_or(Ok(()), |group| group.level());
        if let Err(error) = levelled {
            tracing::debug!(%error, "a slot's control group doesn't take its share");
        }
    }

    /// The cores that trainers may take together, as far as the kernel sees to that.
    pub(crate) fn capacity(&self, limits: &Limits) -> f64 {
        let cores = cores();
        let quota = quota(limits, cores).filter(|_| self.keep_cpu());
        quota.map_or(f64::from(cores), Quota::cores)
    }

    /// The trainers.
    pub(crate) fn trainer_group(&self) -> &Arc<TrainerGroup> {
        &self.trainer_group
    }

    /// The groups, to be closed when everything else has ended.
    pub(crate) fn group(&self) -> Option<Arc<Group>> {
        self.group.clone()
    }

    /// Threads of a unit that pins none, as they are at the time.
    pub(crate) fn threads(&self) -> Arc<AtomicU32> {
        Arc::clone(&self.threads)
    }

    /// Has so many slots share the threads that the owner allows.
    pub(crate) fn set_threads(&self, slots: u32, limits: &Limits) {
        self.threads.store(free_threads(slots, limits, cores()), Ordering::Relaxed);
    }

    /// The cores of this machine that the owner allows.
    pub(crate) fn allowed_cores(limits: &Limits) -> u32 {
        allowed(limits, cores())
    }

    /// Has the kernel keep what it can.
    pub(super) fn hold(&self, limits: &Limits) -> SlotCaps {
        let Some(group) = &self.group else { return SlotCaps::Kept };
        let mut held = self.held.lock();
        let sets_quota = group.has_cpu()
            && held.quota.set("cpu", quota(limits, cores()), |quota| group.limit_cpu(quota));
        if group.has_memory() {
            let bytes = limits.memory.map(super::Memory::bytes);
            held.memory.set("memory", bytes, |bytes| group.limit_memory(bytes));
        }
        if sets_quota { SlotCaps::Lifted } else { SlotCaps::Kept }
    }

    /// Does the kernel keep the share of processor time?
    pub(super) fn keep_cpu(&self) -> bool {
        self.held.lock().quota.holds && !self.trainer_group.is_outside()
    }

    /// The share of the processor time that is allowed in which trainers compute, in percent, as far as the kernel
    /// sees to that.
    pub(crate) fn ratio(&self, limits: &Limits) -> u8 {
        let ratio = limits.cpu.as_ref().filter(|_| self.keep_cpu());
        ratio.map_or(100, |ratio| ratio.lowest().get())
    }

    /// Does the kernel keep the limit of memory?
    pub(super) fn keep_memory(&self) -> bool {
        self.held.lock().memory.holds && !self.trainer_group.is_outside()
    }

    pub(crate) fn keepers(&self) -> Keepers {
        let why_none = match &self.group {
            Some(_) if self.trainer_group.is_outside() => {
                Some("a trainer couldn't enter its control group".to_owned())
            }
            _ => self.why_none.clone(),
        };
        let group = self.group.as_ref().filter(|_| why_none.is_none());
        Keepers { groups: group.map(|group| group.to_string()), why_none }
    }
}

/// A quota of so many cores.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "cores are few and not negative"
)]
fn hundredths(cores: f64) -> Quota {
    Quota((cores * 100.0).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::{
        super::cgroup::tests::{divided, quota_of},
        *,
    };

    #[test]
    fn whoever_gives_cpu_shares_is_told_when_a_new_quota_of_all_has_lifted_those_of_slots() {
        let (root, group) = divided(2);
        let enforcement =
            LimitEnforcement { group: Some(Arc::new(group)), ..LimitEnforcement::none() };
        let limits = |text: &str| -> Limits { toml::from_str(text).unwrap() };
        let all = limits("");
        assert_eq!(enforcement.hold(&all), SlotCaps::Lifted, "none was there before");
        for (text, caps) in [
            ("", SlotCaps::Kept),
            ("nice = 19", SlotCaps::Kept),
            ("cpu = 50", SlotCaps::Lifted),
            ("cpu = 50", SlotCaps::Kept),
            ("cpu = 60", SlotCaps::Lifted),
        ] {
            assert!(enforcement.give(1, 1.0, Some(0.5), &all));
            assert_ne!(quota_of(&root, 1), "-1");
            assert_eq!(enforcement.hold(&limits(text)), caps, "{text}");
            assert_eq!(quota_of(&root, 1) == "-1", caps == SlotCaps::Lifted, "{text}");
        }
    }

    #[test]
    fn slots_share_the_cores_that_the_quota_leaves() {
        let (root, group) = divided(2);
        let enforcement =
            LimitEnforcement { group: Some(Arc::new(group)), ..LimitEnforcement::none() };
        let none = LimitEnforcement::none();
        for (text, lent, half) in [
            ("threads = 1\ncpu = 50", 0.5, "25000"),
            ("threads = 1\ncpu = 10", 0.1, "5000"),
            ("", f64::from(cores()), ""),
        ] {
            let limits: Limits = toml::from_str(text).unwrap();
            enforcement.hold(&limits);
            assert!((enforcement.capacity(&limits) - lent).abs() < 1e-9, "{text}");
            assert!(enforcement.give(0, 1.0, Some(0.5), &limits));
            assert!(half.is_empty() || quota_of(&root, 0) == half, "{text}");
            // Nothing keeps the trainers from any core.
            assert!((none.capacity(&limits) - f64::from(cores())).abs() < 1e-9);
        }
    }

    #[test]
    fn a_limit_is_set_once_and_tried_again_after_a_refusal() {
        let mut setting = Setting::default();
        let mut applied = Vec::new();
        for (wanted, takes) in [
            (Some(1), true),
            (Some(1), true),
            (Some(2), false),
            (Some(2), false),
            (Some(2), true),
            (None, true),
            (None, true),
        ] {
            setting.set("memory", wanted, |wanted| {
                applied.push(wanted);
                if takes { Ok(()) } else { Err(CgroupError::None) }
            });
            assert_eq!(setting.holds, takes);
        }
        assert_eq!(applied, [Some(1), Some(2), Some(2), Some(2), None]);
    }
}
