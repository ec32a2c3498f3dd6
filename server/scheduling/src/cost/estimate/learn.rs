//! How measurements and claims change the estimates.
//!
//! A measurement corrects what is known of its own device as it says. What it changes for others is bounded: by the median
//! over parties of what they let expect of a workload, and by the median over workloads.

use super::{
    Estimates, MIN_FLOPS, SmoothedTime, WorkloadId, at_speed, proved::Measurement, ratio::Ratio,
    sane_flops,
};
use crate::hosts::DeviceKey;
use sojourn_protocol::{
    ids::{HostId, JobId, TrialId},
    inventory::{COMMON_SPEED, CPU, Device},
    names::OwnerName,
    quantity::mul_div,
};
use std::collections::{BTreeSet, btree_map::Entry};

/// The typical ratio is a mean over about so many workloads.
const TYPICAL_OF: u64 = 16;
/// The typical ratio lies within this factor of the median over workloads, either way.
const MAX_OFF_TYPICAL: u64 = 8;
/// The ratio of a workload lies within this factor of the median over hosts, either way.
const MAX_OFF_MEDIAN: u64 = 32;
/// A first ratio of a workload that lies farther from the typical one isn't believed, either way.
const MAX_FIRST_RATIO: u64 = 1 << 20;
/// The same where a host says that it has measured it earlier.
const MAX_CLAIMED_RATIO: u64 = 1 << 14;
/// So many hosts must have measured a workload earlier, before it counts for others; fewer where there aren't more.
const MIN_CLAIMANTS: usize = 2;
/// Hosts beside a claimant that must be there before others are asked for, too.
const MIN_HOSTS_TO_ASK: usize = 3;

/// No device is measured as faster than so many operations per second, whatever its host reports.
const MAX_FLOPS: u64 = 10_000_000_000_000_000;

/// Workloads that hosts may report: a host that makes some up must not fill the memory.
const MAX_REPORTED: usize = 10_000;
/// Hosts that may report each of them.
const MAX_REPORTERS: usize = 10;

/// The origin of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// This server has seen for how long the host had the unit.
    Seen,
    /// The host says so.
    Claimed,
}

impl Estimates {
    /// Takes a measurement: a hop of `rows` took `micros` of training on a device.
    pub fn measured(
        &mut self,
        device: DeviceKey<'_>,
        (job, trial): (JobId, TrialId),
        rows: u64,
        micros: u64,
    ) {
        let Some(per_row) = common_nanos(device, rows, micros) else { return };
        let Some(workload) = self.workload(job, trial) else { return };
        let guess = self.workloads.get(workload.0).and_then(|known| known.guess);
        let fastest = guess.map_or(0, |work| at_speed(work, MAX_FLOPS)).max(1);
        let reporter = self.owners.reporter(device.host);
        let expected = self.common_nanos_per_row(device, workload);
        let per_row = per_row.max(fastest).max(self.proved.shortest(reporter, workload));
        self.learn(device, workload, per_row, Origin::Seen);
        let figures = self.figures(device);
        let per_row_of = figures.by_workload.entry(workload);
        let is_new = matches!(per_row_of, Entry::Vacant(_));
        let time = per_row_of
            .and_modify(|figure| figure.take(per_row))
            .or_insert_with(|| SmoothedTime::first(per_row));
        let per_row_now = time.mean;
        figures.error.take(expected, per_row);
        figures.proved = true;
        self.entries += usize::from(is_new);
        if let Some(work) = guess {
            let pace = self.unbounded_pace(device);
            let (host, is_processor) = (reporter, device.device == CPU);
            let per_row = per_row_now;
            self.proved.measured(Measurement { host, is_processor, workload, per_row, work, pace });
        }
    }

    /// A result of `rows` that took `micros` was taken in: its device may take a few times as long, whatever was measured of
    /// others.
    pub fn taken_in(
        &mut self,
        device: DeviceKey<'_>,
        (job, trial): (JobId, TrialId),
        rows: u64,
        micros: u64,
    ) {
        let Some(per_row) = common_nanos(device, rows, micros) else { return };
        let Some(workload) = self.workload(job, trial) else { return };
        let fastest = self.figures(device).taken_in.entry(workload).or_insert(per_row);
        *fastest = per_row.min(*fastest);
    }

    /// A first measurement corrects the ratio of the workload, or else of the device.
    fn learn(&mut self, device: DeviceKey<'_>, id: WorkloadId, per_row: u64, origin: Origin) {
        let flops = self.flops_of(device);
        let reporter = self.owners.reporter(device.host);
        let hosts = self.proved.hosts();
        let (typical, of) = self.typical;
        let (ratio, placed) =
            self.figures_of(device).map_or((Ratio::default(), false), |of| (of.ratio, of.measured));
        let Some(known) = self.workloads.get_mut(id.0) else { return };
        let Some(guess) = known.guess.map(|work| at_speed(work, flops)) else { return };
        let before = if known.measured { known.ratio } else { typical };
        let error = Ratio::of(per_row, before.and(ratio).times(guess));
        let word = Ratio::of(per_row, ratio.times(guess));
        if !known.measured {
            let (farthest, needed) = match origin {
                Origin::Seen => (MAX_FIRST_RATIO, 1),
                Origin::Claimed if hosts < MIN_HOSTS_TO_ASK => (MAX_CLAIMED_RATIO, 1),
                Origin::Claimed => (MAX_CLAIMED_RATIO, MIN_CLAIMANTS),
            };
            if word.clamp_to(farthest, typical) != word {
                return;
            }
            known.words.set(reporter, word.raw());
            if known.words.len() < needed {
                return;
            }
        } else {
            known.words.set(reporter, word.raw());
        }
        // A new workload takes all of the error: devices that weren't measured must not seem faster than one that was.
        // Of a known workload the device takes half of the error, the workload a little. A device of which nothing was known
        // takes all of the error of a new workload, as other workloads let expect how long this one takes.
        let is_known = placed || device.flops >= MIN_FLOPS;
        let (of_place, of_work) = match (placed, known.measured) {
            (_, false) if of > 0 && !is_known => (Some(1), None),
            (_, false) => (None, Some(1)),
            (false, true) => (Some(2), None),
            (true, true) => (Some(4), Some(8)),
        };
        let wanted = of_work.map_or(before, |part| before.corrected(error, part));
        // Of an even number there are two medians: between them neither half of the hosts decides.
        let medians = known.words.lower_median().zip(known.words.upper_median());
        let now = match medians.filter(|_| known.words.len() > 1) {
            Some((low, _)) if wanted.raw() < low => {
                wanted.clamp_to(MAX_OFF_MEDIAN, Ratio::from_raw(low))
            }
            Some((_, high)) if wanted.raw() > high => {
                wanted.clamp_to(MAX_OFF_MEDIAN, Ratio::from_raw(high))
            }
            _ => wanted,
        };
        // Where the workload was held back, the rest of the error is the device's.
        let error = match now == wanted {
            true => error,
            false => Ratio::of(per_row, now.and(ratio).times(guess)),
        };
        known.ratio = now;
        let is_new = !std::mem::replace(&mut known.measured, true);
        self.ratios.set(id, now.raw());
        if is_new {
            let part = (of + 1).min(TYPICAL_OF);
            self.typical = (typical.corrected(now.over(typical), part), of + 1);
        }
        if let Some(median) = self.ratios.upper_median() {
            self.typical.0 = self.typical.0.clamp_to(MAX_OFF_TYPICAL, Ratio::from_raw(median));
        }
        let figures = self.figures(device);
        figures.flops.get_or_insert(flops);
        figures.ratio = of_place.map_or(ratio, |part| ratio.corrected(error, part));
        figures.measured = true;
    }

    /// Takes what a host claims: how fast its devices are, and what it has measured earlier. Measurements of this server
    /// have precedence.
    pub fn claimed<'d>(
        &mut self,
        (host, owner): (HostId, &OwnerName),
        devices: impl Iterator<Item = &'d Device> + Clone,
    ) {
        self.owners.note(host, owner);
        let reporter = self.owners.reporter(host);
        let fastest = devices.clone().map(|device| sane_flops(device.flops)).max();
        fastest.into_iter().for_each(|flops| self.proved.claimed(reporter, flops));
        devices.for_each(|device| self.reported(host, device));
    }

    fn reported(&mut self, host: HostId, device: &Device) {
        let key =
            DeviceKey { host, device: &device.name, flops: device.flops, speed: COMMON_SPEED };
        let reporter = self.owners.reporter(host);
        for measured in &device.measured {
            if let Some(peak) = measured.peak_memory {
                self.peaks.reported(reporter, &device.name, &measured.workload, peak);
            }
            if self.ids.len().max(self.entries / MAX_REPORTERS) >= MAX_REPORTED {
                continue;
            }
            let Some(per_row) = measured.nanos_per_row else { continue };
            let workload = self.id_of(&measured.workload);
            let known = self.figures_of(key).and_then(|of| of.by_workload.get(&workload));
            if known.is_none() {
                let per_row = per_row.max(self.proved.shortest(reporter, workload));
                self.learn(key, workload, per_row, Origin::Claimed);
                self.figures(key).by_workload.insert(workload, SmoothedTime::first(per_row));
                self.entries += 1;
            }
        }
    }

    /// Forgets the measurements of hosts. The ratios of workloads stay.
    pub fn forget(&mut self, hosts: &BTreeSet<HostId>) {
        for host in hosts {
            let of_host = self.devices.remove(host);
            let gone: usize =
                of_host.iter().flatten().map(|(_, figures)| figures.by_workload.len()).sum();
            self.entries -= gone;
            let reporter = self.owners.reporter(*host);
            self.proved.forget(reporter);
            self.peaks.forget(reporter);
            for known in &mut self.workloads {
                known.words.remove(reporter);
            }
            self.owners.forget(*host);
        }
    }
}

/// Nanoseconds per row of a device in its common class, by what it took in the one that it computes in; none of no rows.
fn common_nanos(device: DeviceKey<'_>, rows: u64, micros: u64) -> Option<u64> {
    let per_row = micros.saturating_mul(1000).checked_div(rows)?;
    Some(mul_div(per_row, device.speed, COMMON_SPEED))
}
