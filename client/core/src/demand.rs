//! The demand for work of each device.

use crate::{config::AgentConfig, lease::HeldLease, slots::Slots};
use sojourn_protocol::{inventory::Demand, quantity::SaturatingFrom as _};

/// Idle slots and wanted leases of one device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeviceDemand {
    /// Slots that units may get.
    pub slots: u32,
    /// Slots without a unit to run.
    pub idle: u32,
    /// Leases wanted beside those held.
    pub wanted: u32,
}

impl DeviceDemand {
    /// Of a device with so many slots and units, where for each slot so many are wanted ahead.
    #[must_use]
    pub fn new(slots: u32, units: usize, units_ahead: u32) -> Self {
        let units = u32::saturating_from(units);
        let all = slots.saturating_mul(units_ahead.saturating_add(1));
        Self { slots, idle: slots.saturating_sub(units), wanted: all.saturating_sub(units) }
    }

    /// Is there more to ask for than was said before: another idle slot, or any units where none were wanted?
    #[must_use]
    pub const fn is_more_than(self, said: Self) -> bool {
        self.idle > said.idle || (self.wanted > 0 && said.wanted == 0)
    }

    /// As the server is told.
    #[must_use]
    pub fn of(self, device: &str) -> Demand {
        let Self { slots, idle, wanted } = self;
        Demand { device: device.to_owned(), slots, idle, wanted }
    }
}

/// The demand of a device, by its index.
pub(crate) fn of_device(
    device: usize,
    config: &AgentConfig,
    slots: &Slots,
    leases: &[HeldLease],
) -> DeviceDemand {
    let mine = |lease: &&HeldLease| lease.device == Some(device) && lease.is_work();
    let units = leases.iter().filter(mine).count();
    DeviceDemand::new(slots.usable(device), units, config.units_ahead)
}
