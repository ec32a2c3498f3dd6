//! The slots of a host: which unit is in which, and which are out of use for a while.

use crate::{config::AgentConfig, event::TrainerState, time::Micros};

/// Units in a row that a slot may fail before it is taken out of use.
const MAX_FAILURES: u32 = 3;
/// How long a slot is out of use.
pub const OUT_OF_USE: Micros = Micros::from_secs(1800);

/// A slot of one of the host's devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotId {
    /// The index of its device in [`AgentConfig::devices`].
    pub device: usize,
    /// The slot's number on that device, from 0.
    pub number: u32,
}

/// All slots of a host.
#[derive(Debug, Clone, Default)]
pub(crate) struct Slots {
    devices: Vec<Pool>,
}

#[derive(Debug, Clone, Default)]
struct Pool {
    /// The last one is taken first: it was used last, so its trainer is warm.
    free: Vec<u32>,
    /// All slots but those that are out of use.
    usable: u32,
    /// Slots whose last units failed, and how many in a row.
    failures: Vec<(u32, u32)>,
    /// Slots that are out of use, and until when.
    out_of_use: Vec<(u32, Micros)>,
}

impl Slots {
    pub(crate) fn new(config: &AgentConfig) -> Self {
        let pool =
            |slots: u32| Pool { free: (0..slots).collect(), usable: slots, ..Pool::default() };
        Self { devices: config.devices.iter().map(|device| pool(device.slots)).collect() }
    }

    /// A free slot of a device, which is then taken.
    pub(crate) fn take(&mut self, device: usize) -> Option<SlotId> {
        let number = self.devices.get_mut(device)?.free.pop()?;
        Some(SlotId { device, number })
    }

    /// A unit has left its slot. Is the slot out of use from now on?
    pub(crate) fn give_back(&mut self, slot: SlotId, trainer: TrainerState, now: Micros) -> bool {
        let Some(pool) = self.devices.get_mut(slot.device) else { return false };
        let known = pool.failures.iter().position(|(number, _)| *number == slot.number);
        let before = known.map_or(0, |at| pool.failures.swap_remove(at).1);
        let failures = before + 1;
        match trainer {
            TrainerState::Good => {}
            TrainerState::Failed if failures >= MAX_FAILURES => {
                pool.usable -= 1;
                pool.out_of_use.push((slot.number, now + OUT_OF_USE));
                return true;
            }
            TrainerState::Failed => pool.failures.push((slot.number, failures)),
        }
        pool.free.push(slot.number);
        false
    }

    /// Takes slots into use again that were out of it for long enough. Were there any?
    pub(crate) fn restore(&mut self, now: Micros) -> bool {
        let mut restored = false;
        for pool in &mut self.devices {
            while let Some(at) = pool.out_of_use.iter().position(|(_, until)| *until <= now) {
                let (number, _) = pool.out_of_use.swap_remove(at);
                pool.free.insert(0, number);
                pool.usable += 1;
                restored = true;
            }
        }
        restored
    }

    /// When the next slot is in use again.
    pub(crate) fn next_deadline(&self) -> Option<Micros> {
        let out = self.devices.iter().flat_map(|pool| &pool.out_of_use);
        out.map(|(_, until)| *until).min()
    }

    /// Slots of a device that units may get.
    pub(crate) fn usable(&self, device: usize) -> u32 {
        self.devices.get(device).map_or(0, |pool| pool.usable)
    }

    /// Is a slot of the device free?
    pub(crate) fn has_free(&self, device: usize) -> bool {
        self.devices.get(device).is_some_and(|pool| !pool.free.is_empty())
    }

    /// Slots that are out of use.
    pub(crate) fn out_of_use(&self) -> usize {
        self.devices.iter().map(|pool| pool.out_of_use.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::DeviceSlots;

    #[test]
    fn a_slot_that_fails_three_units_in_a_row_is_out_of_use_for_a_while() {
        let device = DeviceSlots { name: "cpu".into(), slots: 2 };
        let mut slots = Slots::new(&AgentConfig::new(vec![device]));
        let now = Micros::from_secs(5);
        let outcomes = [
            (TrainerState::Failed, false),
            (TrainerState::Failed, false),
            (TrainerState::Good, false),
            (TrainerState::Failed, false),
            (TrainerState::Failed, false),
            (TrainerState::Failed, true),
        ];
        for (trainer, out) in outcomes {
            let slot = slots.take(0).unwrap();
            assert_eq!(slot.number, 1, "the one that was used last");
            assert_eq!(slots.give_back(slot, trainer, now), out);
        }
        assert_eq!((slots.usable(0), slots.out_of_use()), (1, 1));
        assert_eq!(slots.take(0).unwrap().number, 0);
        assert_eq!(slots.take(0), None);
        assert_eq!(slots.next_deadline(), Some(now + OUT_OF_USE));
        assert!(!slots.restore(now + Micros::from_secs(1799)));
        assert!(slots.restore(now + OUT_OF_USE));
        assert_eq!((slots.usable(0), slots.out_of_use()), (2, 0));
        let slot = slots.take(0).unwrap();
        assert!(!slots.give_back(slot, TrainerState::Failed, now), "its failures are forgotten");
    }
}
