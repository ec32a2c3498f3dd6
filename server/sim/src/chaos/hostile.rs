//! Hosts that do harm on purpose, beside those whose results lie.

use super::fate::UnitFate;
use sojourn_protocol::{
    digest::Digest,
    ids::{HostId, LeaseId},
    inventory::{Inventory, Links, Measured, Workload},
    quantity::SaturatingFrom as _,
    spec::{Architecture, OptimizerName, Precision},
    time::Millis,
    trainer::Progress,
};

/// A unit of a host that trickles never ends: ten years.
const FOR_EVER: Millis = Millis::from_secs(10 * 365 * 24 * 3600);
/// A host that trickles says so often that it has done one more batch.
const TRICKLE: u64 = 1_000;

/// How many hosts of each kind do harm in a world. All are of one owner; the others are of two.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Hostile {
    /// Hosts that come to the same wrong result of whatever they train.
    pub lying: u32,
    /// Hosts whose trainers fail.
    pub failing: u32,
    /// Hosts that report a little progress for ever.
    pub trickling: u32,
    /// Hosts that claim speeds, times, memory and progress without bounds.
    pub claiming: u32,
    /// Hosts that claim a numeric class which nobody else is of, and lie about whatever they do.
    pub inventing: u32,
}

impl Hostile {
    /// How many in all.
    #[must_use]
    pub const fn hosts(self) -> u32 {
        self.lying + self.failing + self.trickling + self.claiming + self.inventing
    }

    /// The first of those that invent their class.
    const fn first_inventing(self) -> u32 {
        self.hosts() - self.inventing
    }

    /// Does the nth of them lie about its results?
    pub(crate) const fn lies(self, n: u32) -> bool {
        n < self.lying || n >= self.first_inventing()
    }

    /// The numeric class that the nth of them claims: that of the others, or one of their owner's own.
    pub(crate) fn class(self, n: u32) -> Digest {
        match n < self.first_inventing() {
            true => Digest::of(&[0]),
            false => Digest::of(b"invented"),
        }
    }

    /// The trick of the nth hostile host, where it doesn't lie about results.
    pub(crate) const fn trick(self, n: u32) -> Option<Trick> {
        if self.lies(n) {
            None
        } else if n < self.lying + self.failing {
            Some(Trick::Fails)
        } else if n < self.lying + self.failing + self.trickling {
            Some(Trick::Trickles)
        } else {
            Some(Trick::Claims)
        }
    }
}

/// A way in which a hostile host does harm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trick {
    /// The host's trainer fails at every unit.
    Fails,
    /// The host reports one more batch again and again, and ends no unit.
    Trickles,
    /// The host claims what can't be.
    Claims,
}

impl Trick {
    /// How long its units take, where that isn't as long as those of others.
    pub(crate) fn takes(self) -> Option<Millis> {
        (self == Self::Trickles).then_some(FOR_EVER)
    }

    /// How a unit is to end, where it matters.
    pub(crate) fn fate(self, lease: LeaseId) -> Option<UnitFate> {
        let fails = if lease.0.is_multiple_of(2) { UnitFate::Fails } else { UnitFate::Diverges };
        (self == Self::Fails).then_some(fails)
    }

    /// The progress that the host reports.
    pub(crate) fn progress(self, passed: Millis, honest: Progress) -> Progress {
        match self {
            Self::Fails => honest,
            Self::Trickles => {
                Progress { done: u32::saturating_from(passed.0 / TRICKLE), of: u32::MAX }
            }
            Self::Claims => Progress { done: u32::MAX - 1, of: u32::MAX },
        }
    }

    /// The inventory that the host reports.
    pub(crate) fn inventory(self, host: HostId, honest: Inventory) -> Inventory {
        if self != Self::Claims {
            return honest;
        }
        let is_even = host.0.is_multiple_of(2);
        let most = if is_even { u64::MAX } else { 0 };
        let measured = Measured {
            workload: workload(),
            nanos_per_row: Some(u64::MAX - most),
            peak_memory: Some(u64::MAX),
            out_of_memory: false,
        };
        let mut claims = honest;
        for device in &mut claims.devices {
            device.flops = if is_even { 1e18 } else { f64::INFINITY };
            device.memory = Some(u64::MAX);
            device.measured = vec![measured.clone()];
        }
        Inventory { links: Links { download: Some(most), upload: Some(most) }, ..claims }
    }
}

/// The workload of all trials of a world.
fn workload() -> Workload {
    Workload {
        model: Architecture::mlp([4]),
        shape: vec![4],
        outputs: 2,
        batch_size: 8,
        precision: Precision::F32,
        optimizer: OptimizerName::Sgd,
    }
}
