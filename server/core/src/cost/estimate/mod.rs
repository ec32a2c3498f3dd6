//! How long units take: measured by device and workload, and guessed before that.
//!
//! A guess is the model's FLOPs over the device's benchmark, times two ratios of measured to guessed times: that of the
//! workload on all devices, and that of the device over all workloads. A workload that wasn't measured yet gets the
//! typical ratio of the others; else it would seem shorter than they. So one measurement improves all guesses.
//!
//! ```text
//!   time(device, workload) = measured there, or
//!                            3 x FLOPs / FLOP/s  x  ratio(workload)  x  ratio(device)
//! ```
//!
//! All times are whole nanoseconds per row, so that decisions are the same on any machine.

mod error;
mod figure;
mod ratio;

pub(crate) use error::EstimateError;
pub(crate) use figure::SmoothedTime;

use crate::state::{Job, Trial};
use ratio::Ratio;
use sojourn_protocol::{
    ids::{HostId, JobId, TrialId},
    inventory::{COMMON_SPEED, CPU, Device, Workload},
    quantity::mul_div,
};
use std::collections::{BTreeMap, BTreeSet};

/// Forward and backward together cost about three forward passes.
const PASSES: u64 = 3;
/// Operations per second of a device without a benchmark.
const UNKNOWN_FLOPS: u64 = 1_000_000_000;
/// The speed at which work is counted: a FLOP a nanosecond.
const REFERENCE_FLOPS: u64 = 1_000_000_000;
/// The pace of a device of the reference speed. Slower ones have a larger one.
pub(crate) const PACE_ONE: u64 = 1 << 32;

/// The typical ratio is a mean over about so many workloads.
const TYPICAL_OF: u64 = 16;

/// Workloads that hosts may report: a host that makes some up must not fill the memory.
const MAX_REPORTED: usize = 10_000;
/// Hosts that may report each of them.
const MAX_REPORTERS: usize = 10;

/// Names a workload among those that are known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WorkloadId(usize);

/// Estimates of times, from all measurements so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Estimates {
    ids: BTreeMap<Workload, WorkloadId>,
    workloads: Vec<WorkloadFigures>,
    /// The typical ratio of workloads, and of how many.
    typical: (Ratio, u64),
    /// The typical ratio when it was last announced to have changed.
    announced: Ratio,
    /// By trial.
    jobs: BTreeMap<JobId, Vec<WorkloadId>>,
    devices: BTreeMap<HostId, BTreeMap<String, DeviceFigures>>,
    /// Entries of all devices together.
    entries: usize,
    /// The lowest reported peak of memory by workload, in bytes: on processors, and on GPUs.
    least_peaks: BTreeMap<bool, BTreeMap<Workload, u64>>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct WorkloadFigures {
    /// Nanoseconds per row at the reference speed; none before a job has this workload.
    guess: Option<u64>,
    ratio: Ratio,
    measured: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct DeviceFigures {
    ratio: Ratio,
    measured: bool,
    by_workload: BTreeMap<WorkloadId, SmoothedTime>,
    error: EstimateError,
}

/// A device, as estimates know it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeviceKey<'a> {
    pub(crate) host: HostId,
    /// Its device.
    pub(crate) device: &'a str,
    /// Operations per second in its common class, as the device reports.
    pub(crate) flops: f64,
    /// How fast it is in the class that it computes in, in thousandths of its speed in its common class. All figures of a
    /// device are kept as of its common class.
    pub(crate) speed: u64,
}

impl Estimates {
    /// Takes a job's trials in. Again, where it is known: nothing changes.
    pub(crate) fn register(&mut self, job: &Job) {
        if self.jobs.contains_key(&job.id) {
            return;
        }
        let trials = job.trials.iter().map(|trial| {
            let id = self.id_of(&Workload::of(&trial.context));
            if let Some(known) = self.workloads.get_mut(id.0) {
                known.guess.get_or_insert(trial.flops_per_row.saturating_mul(PASSES).max(1));
            }
            id
        });
        let trials: Vec<WorkloadId> = trials.collect();
        self.jobs.insert(job.id, trials);
    }

    fn id_of(&mut self, workload: &Workload) -> WorkloadId {
        if let Some(id) = self.ids.get(workload) {
            return *id;
        }
        let id = WorkloadId(self.workloads.len());
        self.workloads.push(WorkloadFigures::default());
        self.ids.insert(workload.clone(), id);
        id
    }

    fn workload(&self, job: JobId, trial: TrialId) -> Option<WorkloadId> {
        let trials = self.jobs.get(&job)?;
        trials.get(usize::try_from(trial.0).ok()?).copied()
    }

    /// Takes a measurement: a hop of `rows` took `micros` of training on a device.
    pub(crate) fn measured(
        &mut self,
        device: DeviceKey<'_>,
        (job, trial): (JobId, TrialId),
        rows: u64,
        micros: u64,
    ) {
        let Some(per_row) = micros.saturating_mul(1000).checked_div(rows) else { return };
        let Some(workload) = self.workload(job, trial) else { return };
        let expected = self.common_nanos_per_row(device, workload);
        let per_row = mul_div(per_row, device.speed, COMMON_SPEED);
        self.learn(device, workload, per_row);
        let figures = self.figures(device);
        match figures.by_workload.get_mut(&workload) {
            Some(figure) => figure.take(per_row),
            None => {
                figures.by_workload.insert(workload, SmoothedTime::first(per_row));
                self.entries += 1;
            }
        }
        self.figures(device).error.take(expected, per_row);
    }

    /// A first measurement corrects the ratio of the workload, or else of the device.
    fn learn(&mut self, device: DeviceKey<'_>, workload: WorkloadId, per_row: u64) {
        let Some(guess) = self.guess(device, workload) else { return };
        let Some(of_workload) = self.workloads.get(workload.0).copied() else { return };
        let (ratio, placed) =
            self.figures_of(device).map_or((Ratio::default(), false), |of| (of.ratio, of.measured));
        let before = self.ratio(of_workload);
        let error = Ratio::of(per_row, before.and(ratio).times(guess));
        // A new workload takes all of the error: devices that weren't measured must not seem faster than one that was.
        // Of a known workload the device takes half of the error, the workload a little.
        let (of_place, of_work) = match (placed, of_workload.measured) {
            (_, false) => (None, Some(1)),
            (false, true) => (Some(2), None),
            (true, true) => (Some(4), Some(8)),
        };
        let figures = self.figures(device);
        figures.ratio = of_place.map_or(ratio, |part| ratio.corrected(error, part));
        figures.measured = true;
        if let Some(known) = self.workloads.get_mut(workload.0) {
            known.ratio = of_work.map_or(before, |part| before.corrected(error, part));
            let is_new = !std::mem::replace(&mut known.measured, true);
            let (typical, of) = self.typical;
            if is_new {
                let part = (of + 1).min(TYPICAL_OF);
                self.typical = (typical.corrected(known.ratio.over(typical), part), of + 1);
            }
        }
    }

    fn ratio(&self, workload: WorkloadFigures) -> Ratio {
        if workload.measured { workload.ratio } else { self.typical.0 }
    }

    /// Has the typical ratio changed by much since this was asked last?
    pub(crate) fn have_changed(&mut self) -> bool {
        let (typical, _) = self.typical;
        let much = typical.is_far_from(self.announced);
        if much {
            self.announced = typical;
        }
        much
    }

    fn figures(&mut self, device: DeviceKey<'_>) -> &mut DeviceFigures {
        let of_host = self.devices.entry(device.host).or_default();
        if !of_host.contains_key(device.device) {
            of_host.insert(device.device.to_owned(), DeviceFigures::default());
        }
        of_host.entry(device.device.to_owned()).or_default()
    }

    fn figures_of(&self, device: DeviceKey<'_>) -> Option<&DeviceFigures> {
        self.devices.get(&device.host)?.get(device.device)
    }

    /// Takes what a host has measured earlier. Measurements of this server have precedence.
    pub(crate) fn reported(&mut self, host: HostId, device: &Device) {
        let key =
            DeviceKey { host, device: &device.name, flops: device.flops, speed: COMMON_SPEED };
        for measured in &device.measured {
            if let Some(peak) = measured.peak_memory {
                let peaks = self.least_peaks.entry(device.name == CPU).or_default();
                if peaks.len() < MAX_REPORTED {
                    let least = peaks.entry(measured.workload.clone()).or_insert(peak);
                    *least = peak.min(*least);
                }
            }
            if self.ids.len().max(self.entries / MAX_REPORTERS) >= MAX_REPORTED {
                continue;
            }
            let Some(per_row) = measured.nanos_per_row else { continue };
            let workload = self.id_of(&measured.workload);
            let known = self.figures_of(key).and_then(|of| of.by_workload.get(&workload));
            if known.is_none() {
                self.learn(key, workload, per_row);
                self.figures(key).by_workload.insert(workload, SmoothedTime::first(per_row));
                self.entries += 1;
            }
        }
    }

    /// The lowest reported peak of memory of a workload on such a device: one host's report can't keep it from all
    /// others.
    #[must_use]
    pub(crate) fn least_peak(&self, device: &str, workload: &Workload) -> Option<u64> {
        self.least_peaks.get(&(device == CPU))?.get(workload).copied()
    }

    /// Forgets the measurements of hosts. The ratios of workloads stay.
    pub(crate) fn forget(&mut self, hosts: &BTreeSet<HostId>) {
        for host in hosts {
            let of_host = self.devices.remove(host);
            let gone: usize =
                of_host.iter().flatten().map(|(_, figures)| figures.by_workload.len()).sum();
            self.entries -= gone;
        }
    }

    /// The guess from FLOPs alone.
    fn guess(&self, device: DeviceKey<'_>, workload: WorkloadId) -> Option<u64> {
        let work = self.workloads.get(workload.0)?.guess?;
        Some(at_speed(work, device.flops))
    }

    /// The time in the class that the device computes in.
    fn nanos_per_row(&self, device: DeviceKey<'_>, workload: WorkloadId) -> u64 {
        mul_div(self.common_nanos_per_row(device, workload), COMMON_SPEED, device.speed.max(1))
            .max(1)
    }

    fn common_nanos_per_row(&self, device: DeviceKey<'_>, workload: WorkloadId) -> u64 {
        let of_place = self.figures_of(device);
        if let Some(figure) = of_place.and_then(|of| of.by_workload.get(&workload)) {
            return figure.mean;
        }
        let guess = self.guess(device, workload).unwrap_or(1);
        let of_workload =
            self.workloads.get(workload.0).map_or(self.typical.0, |of| self.ratio(*of));
        of_place.map_or(of_workload, |of| of_workload.and(of.ratio)).times(guess).max(1)
    }

    /// Microseconds that a device should take for `rows` of a trial.
    #[must_use]
    pub(crate) fn micros(
        &self,
        device: DeviceKey<'_>,
        job: JobId,
        trial: TrialId,
        rows: u64,
    ) -> u64 {
        let Some(workload) = self.workload(job, trial) else { return 0 };
        self.nanos_per_row(device, workload).saturating_mul(rows) / 1000
    }

    /// By how much a unit may take longer than estimated, in thousandths of the estimate: four mean deviations, after
    /// Jacobson; nine times the estimate while there are fewer than four measurements.
    #[must_use]
    pub(crate) fn spread(&self, device: DeviceKey<'_>, job: JobId, trial: TrialId) -> u64 {
        /// Thousandths, with too few measurements.
        const UNKNOWN: u64 = 9_000;
        /// Thousandths for each mean deviation of the size of the estimate.
        const DEVIATIONS: u64 = 4_000;
        const MIN_SAMPLES: u32 = 4;
        let workload = self.workload(job, trial);
        let figures = self.figures_of(device).map(|of| &of.by_workload);
        let figure = workload.and_then(|workload| figures?.get(&workload));
        let Some(figure) = figure.filter(|figure| figure.samples >= MIN_SAMPLES) else {
            return UNKNOWN;
        };
        (figure.deviation.saturating_mul(DEVIATIONS) / figure.mean.max(1)).clamp(1_000, UNKNOWN)
    }

    /// Microseconds of a trial's remaining work, at the reference speed.
    #[must_use]
    pub(crate) fn work_left(&self, job: JobId, trial: &Trial) -> u64 {
        let Some(workload) = self.workload(job, trial.id) else { return 0 };
        let Some(known) = self.workloads.get(workload.0) else { return 0 };
        let batch = u64::from(trial.context.config.training.batch_size);
        let per_row = self.ratio(*known).times(known.guess.unwrap_or(1));
        trial.chain.remaining().saturating_mul(batch).saturating_mul(per_row) / 1000
    }

    /// The time of a device for work that takes [`PACE_ONE`] at the reference speed.
    #[must_use]
    pub(crate) fn pace(&self, device: DeviceKey<'_>) -> u64 {
        let ratio = self.figures_of(device).map_or(Ratio::default(), |of| of.ratio);
        let common = ratio.times(at_speed(PACE_ONE, device.flops));
        mul_div(common, COMMON_SPEED, device.speed.max(1)).max(1)
    }

    /// How far estimates of a device were off.
    #[must_use]
    pub(crate) fn error_of(&self, host: HostId, device: &str) -> EstimateError {
        let of_host = self.devices.get(&host);
        of_host.and_then(|of| of.get(device)).map(|of| of.error).unwrap_or_default()
    }
}

/// The time at a speed for `work` at the reference speed.
fn at_speed(work: u64, flops: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to a sane range"
    )]
    let flops =
        if flops.is_finite() && flops >= 1e6 { flops.min(1e18) as u64 } else { UNKNOWN_FLOPS };
    mul_div(work, REFERENCE_FLOPS, flops)
}

#[cfg(test)]
mod tests;
