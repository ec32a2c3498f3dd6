//! How long units take: measured per host, device and workload, guessed from FLOPs before that.
//!
//! All in whole nanoseconds per row, so that what they decide is the same on any machine.

use crate::state::Trial;
use sojourn_protocol::{
    ids::HostId,
    inventory::{CPU, Device, Workload},
    time::Millis,
};
use std::collections::{BTreeMap, BTreeSet};

/// Forward and backward together cost about three forward passes.
const PASSES: u64 = 3;
/// Operations per second of a host that has said nothing.
const UNKNOWN_FLOPS: u64 = 1_000_000_000;

/// Workloads of which hosts' word is taken: beyond that, one that makes them up would fill the memory.
const MOST_TOLD: usize = 10_000;
/// Hosts that may tell of each of them.
const HOSTS_OF_ONE: usize = 10;

/// What was measured so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Estimates {
    by_device: BTreeMap<(HostId, String, Workload), u64>,
    by_workload: BTreeMap<Workload, u64>,
    /// The least bytes of memory that units took as their most: on processors, and on GPUs.
    least_peaks: BTreeMap<bool, BTreeMap<Workload, u64>>,
}

impl Estimates {
    /// Takes a measurement: a hop of `rows` took `micros` of training on a host's device.
    pub(crate) fn measured(
        &mut self,
        host: HostId,
        device: &str,
        trial: &Trial,
        rows: u64,
        micros: u64,
    ) {
        let Some(per_row) = micros.saturating_mul(1000).checked_div(rows) else { return };
        let workload = Workload::of(&trial.context);
        let own = (host, device.to_owned(), workload.clone());
        smooth(self.by_device.entry(own).or_insert(per_row), per_row);
        smooth(self.by_workload.entry(workload).or_insert(per_row), per_row);
    }

    /// Takes what a host measured before this server knew it: what was seen here goes over it.
    pub(crate) fn told(&mut self, host: HostId, device: &Device) {
        for measured in &device.measured {
            if let Some(peak) = measured.peak_memory {
                let peaks = self.least_peaks.entry(device.name == CPU).or_default();
                if peaks.len() < MOST_TOLD {
                    let least = peaks.entry(measured.workload.clone()).or_insert(peak);
                    *least = peak.min(*least);
                }
            }
            if self.by_workload.len().max(self.by_device.len() / HOSTS_OF_ONE) >= MOST_TOLD {
                continue;
            }
            let Some(per_row) = measured.nanos_per_row else { continue };
            let workload = &measured.workload;
            let own = (host, device.name.clone(), workload.clone());
            self.by_device.entry(own).or_insert(per_row);
            self.by_workload.entry(workload.clone()).or_insert(per_row);
        }
    }

    /// The least memory that units are known to take on such a device: what one host says can't keep them from
    /// all others.
    #[must_use]
    pub(crate) fn least_peak(&self, device: &str, workload: &Workload) -> Option<u64> {
        self.least_peaks.get(&(device == CPU))?.get(workload).copied()
    }

    /// Forgets what was measured on hosts; what is known of architectures stays.
    pub(crate) fn forget(&mut self, hosts: &BTreeSet<HostId>) {
        self.by_device.retain(|(host, ..), _| !hosts.contains(host));
    }

    /// How long a host will train `rows` of the trial on a device of so many `flops`.
    #[must_use]
    pub(crate) fn training(
        &self,
        host: HostId,
        (device, flops): (&str, f64),
        trial: &Trial,
        rows: u64,
    ) -> Millis {
        let workload = Workload::of(&trial.context);
        let anywhere = self.by_workload.get(&workload).copied();
        let own = (host, device.to_owned(), workload);
        let measured = self.by_device.get(&own).copied().or(anywhere);
        let per_row = measured.unwrap_or_else(|| guess(trial, flops));
        Millis(per_row.saturating_mul(rows) / 1_000_000)
    }

    /// Microseconds that the trial, of this workload, has left on a middling host.
    #[must_use]
    pub(crate) fn remaining_micros(&self, trial: &Trial, workload: &Workload) -> u64 {
        let measured = self.by_workload.get(workload).copied();
        let per_row = measured.unwrap_or_else(|| guess(trial, 0.0));
        let batch = u64::from(trial.context.config.training.batch_size);
        trial.chain.left().saturating_mul(batch).saturating_mul(per_row) / 1000
    }
}

fn guess(trial: &Trial, flops: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to a sane range"
    )]
    let flops =
        if flops.is_finite() && flops >= 1e6 { flops.min(1e18) as u64 } else { UNKNOWN_FLOPS };
    let work = trial.flops_per_row.saturating_mul(PASSES);
    work.saturating_mul(1_000_000_000).checked_div(flops).unwrap_or(work).max(1)
}

/// Moves a quarter of the way.
fn smooth(old: &mut u64, new: u64) {
    *old = old.saturating_mul(3).saturating_add(new) / 4;
}
