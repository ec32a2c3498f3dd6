//! Gives running units their CPU shares: by control groups where each slot has one, else by pauses between batches.

use super::Driver;
use crate::{limits::Kind, trainers::cpu_share::KeptCpuShare};
use sojourn_client_core::{SlotId, UnitCpuShare};
use sojourn_protocol::{ids::LeaseId, inventory::CPU, trainer::Pace};
use sojourn_shares::{Demand, Runner, divide, paces};
use std::collections::BTreeMap;

/// A unit in a slot.
struct InSlot {
    lease: LeaseId,
    slot: SlotId,
    kind: Kind,
    runner: Runner,
}

impl<R> Driver<R> {
    /// The cores that units on a device may take together; a GPU counts as one.
    pub(super) fn capacity(&self, kind: Kind) -> f64 {
        match kind {
            Kind::Cpu => {
                let limits = self.context.owner.limits();
                self.context.trainers.enforcement.capacity(&limits)
            }
            Kind::Gpu => 1.0,
        }
    }

    /// From now on units have these CPU shares.
    pub(super) fn set_cpu_shares(&mut self, cpu_shares: Vec<(LeaseId, UnitCpuShare)>) {
        self.cpu_shares = cpu_shares.into_iter().collect();
        for (lease, cpu_share) in &self.cpu_shares {
            let UnitCpuShare { cpu_share, list, .. } = cpu_share;
            tracing::debug!(%lease, share = cpu_share, list = list.name(), "a unit has a share");
        }
        self.cpu_shares_are_new = true;
    }

    /// Gives units their CPU shares again, of what is lent now.
    pub(super) fn give_cpu_shares_again(&mut self) {
        self.cpu_shares_are_new = true;
        self.keep_cpu_shares();
    }

    /// Keeps the CPU shares of the units that run now, where they have changed or others run.
    pub(super) fn keep_cpu_shares(&mut self) {
        let running: Vec<LeaseId> = self.in_slots().map(|unit| unit.lease).collect();
        let is_same = !self.cpu_shares_are_new && running == self.shared_by;
        if is_same || (self.cpu_shares.is_empty() && !self.has_cpu_shares) {
            self.shared_by = running;
            return;
        }
        (self.cpu_shares_are_new, self.has_cpu_shares) = (false, !self.cpu_shares.is_empty());
        if self.cpu_shares.is_empty() {
            // Slots that are free now too.
            self.context.trainers.enforcement.level();
        }
        let mut devices: BTreeMap<usize, Vec<InSlot>> = BTreeMap::new();
        for unit in self.in_slots() {
            devices.entry(unit.slot.device).or_default().push(unit);
        }
        for units in devices.into_values() {
            self.keep_cpu_shares_of(&units);
        }
        self.shared_by = running;
    }

    /// Of the units of one device.
    fn keep_cpu_shares_of(&self, units: &[InSlot]) {
        let Some(kind) = units.first().map(|unit| unit.kind) else { return };
        let capacity = self.capacity(kind);
        let runners: Vec<Runner> = units.iter().map(|unit| unit.runner).collect();
        let rates = |is_equal: bool| {
            let demand = |of: &Runner| Demand {
                weight: if is_equal { 1.0 } else { of.weight },
                most: match of.cap.filter(|_| !is_equal) {
                    Some(cap) => of.most.min(cap * capacity),
                    None => of.most,
                },
            };
            divide(capacity, &runners.iter().map(demand).collect::<Vec<_>>())
        };
        let relative = rates(false).into_iter().zip(rates(true));
        let relative = relative.map(|(rate, equal)| if equal > 0.0 { rate / equal } else { 1.0 });
        let limits = self.context.owner.limits();
        let enforcement = &self.context.trainers.enforcement;
        let given = |unit: &InSlot| {
            let Runner { weight, cap, .. } = unit.runner;
            enforcement.give(unit.slot.number, weight, cap, &limits)
        };
        // All of them, so that a slot that is refused doesn't leave the others with the weights of before.
        let by_kernel = kind == Kind::Cpu && units.iter().filter(|unit| !given(unit)).count() == 0;
        for ((unit, part), relative) in units.iter().zip(paces(capacity, &runners)).zip(relative) {
            let percent = percent(part);
            let kept = match by_kernel {
                true => KeptCpuShare { pace: Pace::FULL, kernel: percent, relative },
                false => KeptCpuShare {
                    pace: Pace::percent(percent).unwrap_or(Pace::FULL),
                    kernel: 100,
                    relative,
                },
            };
            if let Some(running) = self.running.get(&unit.lease) {
                running.cpu_share.send_if_modified(|now| std::mem::replace(now, kept) != kept);
            }
        }
    }

    /// The units that are in slots.
    fn in_slots(&self) -> impl Iterator<Item = InSlot> {
        self.running.iter().filter_map(|(lease, unit)| {
            let slot = self.agent.lease(*lease)?.slot()?;
            let cpu_share = self.cpu_shares.get(lease);
            let (weight, cap) =
                cpu_share.map_or((1.0, None), |cpu_share| (cpu_share.weight, cpu_share.cap));
            let kind = if unit.device == CPU { Kind::Cpu } else { Kind::Gpu };
            let most = match kind {
                Kind::Cpu => f64::from(unit.threads).min(f64::from(crate::limits::cores())),
                Kind::Gpu => 1.0,
            };
            Some(InSlot { lease: *lease, slot, kind, runner: Runner { weight, cap, most } })
        })
    }
}

/// A part of the time in percent, at least one: none at all is a pause.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 1 to 100")]
fn percent(part: f64) -> u8 {
    (part * 100.0).round().clamp(1.0, 100.0) as u8
}
