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
//! No host's word decides for others: the ratio of a workload stays near the median of what hosts let expect, and a device
//! counts as no faster than `proved.rs` allows.
//!
//! | file | holds |
//! |---|---|
//! | `learn.rs` | how measurements and claims are taken in |
//! | `figure.rs` | a time that is measured again and again |
//! | `ratio.rs` | measured over guessed times |
//! | `votes.rs` | one figure for each voter, and their median |
//! | `party_votes.rs` | figures of hosts, counted by party |
//! | `proved.rs` | what hosts have proved of their speed, and bounds for what they claim |
//! | `peaks.rs` | reported peaks of memory |
//! | `error.rs` | how far estimates were off |
//!
//! All times are whole nanoseconds per row, so that decisions are the same on any machine.

mod error;
mod figure;
mod learn;
mod party_votes;
mod peaks;
mod proved;
mod ratio;
mod votes;

pub(super) use error::EstimateError;
pub(super) use figure::SmoothedTime;

use crate::hosts::{DeviceKey, PACE_ONE};
use party_votes::{HostOwners, PartyVotes};
use peaks::Peaks;
use proved::{OwnTimes, Proved};
use ratio::Ratio;
use sojourn_model::{ModelSize, Place, Work as MemoryUse};
use sojourn_protocol::{
    ids::{HostId, JobId, TrialId},
    inventory::{COMMON_SPEED, CPU, Workload},
    quantity::mul_div,
};
use sojourn_state::{Job, Trial};
use std::collections::BTreeMap;
use votes::Votes;

/// Forward and backward together cost about three forward passes.
const PASSES: u64 = 3;
/// Operations per second of a device without a benchmark.
const UNKNOWN_FLOPS: u64 = 1_000_000_000;
/// Operations per second that a benchmark gives at least; less is none.
const MIN_FLOPS: f64 = 1e6;
/// The speed at which work is counted: a FLOP a nanosecond.
const REFERENCE_FLOPS: u64 = 1_000_000_000;

/// Names a workload among those that are known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct WorkloadId(usize);

/// Estimates of times, from all measurements so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Estimates {
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
    /// The ratios of workloads that were measured.
    ratios: Votes<WorkloadId>,
    peaks: Peaks,
    proved: Proved,
    owners: HostOwners,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct WorkloadFigures {
    /// Nanoseconds per row at the reference speed; none before a job has this workload.
    guess: Option<u64>,
    /// The size of its model; none before a job has this workload.
    size: Option<ModelSize>,
    ratio: Ratio,
    measured: bool,
    /// The ratio that each host lets expect.
    words: PartyVotes,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct DeviceFigures {
    /// Operations per second that the ratio is of: as the device claimed when it was first measured, within bounds.
    flops: Option<u64>,
    ratio: Ratio,
    measured: bool,
    /// This server has measured it.
    proved: bool,
    by_workload: BTreeMap<WorkloadId, SmoothedTime>,
    /// Nanoseconds per row of the fastest of its results that were taken in.
    taken_in: BTreeMap<WorkloadId, u64>,
    error: EstimateError,
}

impl Estimates {
    /// Takes a job's trials in. Those that are known stay as they are; a search may have added others.
    pub fn register(&mut self, job: &Job) {
        let known = self.jobs.get(&job.id).map_or(0, Vec::len);
        if known > 0 && known >= job.trials.len() {
            return;
        }
        let mut last: Option<(&Trial, WorkloadId)> = None;
        let trials = job.trials.iter().skip(known).map(|trial| {
            if let Some((before, id)) = last
                && Workload::is_shared(&before.context, &trial.context)
            {
                return id;
            }
            let id = self.id_of(&Workload::of(&trial.context));
            if let Some(known) = self.workloads.get_mut(id.0) {
                known.guess.get_or_insert(trial.flops_per_row.saturating_mul(PASSES).max(1));
                // A job has only trials whose models can be built.
                known.size = known.size.or_else(|| ModelSize::of(&trial.context).ok());
            }
            last = Some((trial, id));
            id
        });
        let trials: Vec<WorkloadId> = trials.collect();
        self.jobs.entry(job.id).or_default().extend(trials);
    }

    /// Forgets a job that was deleted. Its workloads may be others' too.
    pub fn forget_job(&mut self, job: JobId) {
        self.jobs.remove(&job);
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

    /// The workload of a trial.
    pub fn workload_of(&self, job: JobId, trial: TrialId) -> Option<WorkloadId> {
        self.workload(job, trial)
    }

    /// Nanoseconds for a row of a workload at the reference speed, from its operations alone.
    pub fn reference_nanos(&self, workload: WorkloadId) -> u64 {
        self.workloads.get(workload.0).and_then(|of| of.guess).unwrap_or(1)
    }

    /// Nanoseconds for a row of a workload, as they were measured on a device.
    pub fn measured_nanos(&self, device: DeviceKey<'_>, workload: WorkloadId) -> Option<u64> {
        let is_measured = self.figures_of(device)?.by_workload.contains_key(&workload);
        is_measured.then(|| self.nanos_per_row(device, workload))
    }

    /// Was anything measured on a device?
    pub fn is_measured(&self, device: DeviceKey<'_>) -> bool {
        self.figures_of(device).is_some_and(|of| of.measured)
    }

    fn ratio(&self, workload: &WorkloadFigures) -> Ratio {
        if workload.measured { workload.ratio } else { self.typical.0 }
    }

    /// Has the typical ratio changed by much since this was asked last?
    pub fn have_changed(&mut self) -> bool {
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

    /// The peak of memory of a workload on such a device, as other hosts have reported it.
    #[must_use]
    pub fn expected_peak(&self, device: &str, workload: &Workload, checkpoint: u64) -> Option<u64> {
        self.peaks.expected(device, workload, checkpoint)
    }

    /// The least bytes of a device's memory that a trial's hop takes, by which clients give units back.
    #[must_use]
    pub fn least_memory(&self, device: &str, workload: &Workload, trial: &Trial) -> u64 {
        let known = self.ids.get(workload).and_then(|id| self.workloads.get(id.0));
        let training = &trial.context.config.training;
        let place = if device == CPU { Place::Machine } else { Place::Gpu };
        let size = known.and_then(|known| known.size);
        size.map_or(0, |size| size.least_memory(training, MemoryUse::Training, place))
    }

    /// The operations per second that a device counts as.
    fn flops_of(&self, device: DeviceKey<'_>) -> u64 {
        let frozen = self.figures_of(device).and_then(|of| of.flops);
        frozen.unwrap_or_else(|| self.proved.believed(sane_flops(device.flops)))
    }

    /// The time in the class that the device computes in.
    fn nanos_per_row(&self, device: DeviceKey<'_>, workload: WorkloadId) -> u64 {
        mul_div(self.common_nanos_per_row(device, workload), COMMON_SPEED, device.speed.max(1))
            .max(1)
    }

    fn common_nanos_per_row(&self, device: DeviceKey<'_>, workload: WorkloadId) -> u64 {
        let of_place = self.figures_of(device);
        let known = self.workloads.get(workload.0);
        let of_workload = known.map_or(self.typical.0, |of| self.ratio(of));
        let work = known.and_then(|of| of.guess);
        let expected = match of_place.and_then(|of| of.by_workload.get(&workload)) {
            Some(figure) => figure.mean,
            None => {
                let flops = of_place.and_then(|of| of.flops);
                let flops = flops.unwrap_or_else(|| self.proved.believed(sane_flops(device.flops)));
                let guess = work.map_or(1, |work| at_speed(work, flops));
                of_place.map_or(of_workload, |of| of_workload.and(of.ratio)).times(guess).max(1)
            }
        };
        let least = self.proved.least_pace(of_place.is_some_and(|of| of.proved));
        let least = work.map_or(0, |work| mul_div(of_workload.times(work), least, PACE_ONE));
        expected.max(least)
    }

    /// The most nanoseconds per row that a device may take, and the least that it can take: by what was measured of
    /// other parties, and of its own results that were taken in.
    #[must_use]
    pub fn plausible_nanos(
        &self,
        device: DeviceKey<'_>,
        (job, trial): (JobId, TrialId),
    ) -> Option<(u64, u64)> {
        let workload = self.workload(job, trial)?;
        let work = self.workloads.get(workload.0)?.guess?;
        let own = self.figures_of(device).filter(|of| of.proved);
        let measured = own.and_then(|of| of.by_workload.get(&workload)).map(|figure| figure.mean);
        let taken_in = own.and_then(|of| of.taken_in.get(&workload)).copied();
        let reporter = self.owners.reporter(device.host);
        let place = (reporter, device.device == CPU);
        let longest = self.proved.longest(place, workload, work, OwnTimes { measured, taken_in });
        Some((longest, self.proved.shortest(reporter, workload)))
    }

    /// Microseconds that a device should take for `rows` of a trial.
    #[must_use]
    pub fn micros(&self, device: DeviceKey<'_>, job: JobId, trial: TrialId, rows: u64) -> u64 {
        let Some(workload) = self.workload(job, trial) else { return 0 };
        self.nanos_per_row(device, workload).saturating_mul(rows) / 1000
    }

    /// By how much a unit may take longer than estimated, in thousandths of the estimate: four mean deviations, after
    /// Jacobson; nine times the estimate while there are fewer than four measurements.
    #[must_use]
    pub fn spread(&self, device: DeviceKey<'_>, job: JobId, trial: TrialId) -> u64 {
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
    pub fn work_left(&self, job: JobId, trial: &Trial) -> u64 {
        let Some(workload) = self.workload(job, trial.id) else { return 0 };
        let Some(known) = self.workloads.get(workload.0) else { return 0 };
        let batch = u64::from(trial.context.config.training.batch_size);
        let per_row = self.ratio(known).times(known.guess.unwrap_or(1));
        trial.chain.remaining().saturating_mul(batch).saturating_mul(per_row) / 1000
    }

    /// The time of a device for work that takes [`PACE_ONE`] at the reference speed.
    #[must_use]
    pub fn pace(&self, device: DeviceKey<'_>) -> u64 {
        let is_proved = self.figures_of(device).is_some_and(|of| of.proved);
        let common = self.unbounded_pace(device).max(self.proved.least_pace(is_proved));
        mul_div(common, COMMON_SPEED, device.speed.max(1)).max(1)
    }

    /// The same in its common class, as far as the device's own measurements and claims go.
    fn unbounded_pace(&self, device: DeviceKey<'_>) -> u64 {
        let ratio = self.figures_of(device).map_or(Ratio::default(), |of| of.ratio);
        ratio.times(at_speed(PACE_ONE, self.flops_of(device)))
    }

    /// How far estimates of a device were off.
    #[must_use]
    pub fn error_of(&self, host: HostId, device: &str) -> EstimateError {
        let of_host = self.devices.get(&host);
        of_host.and_then(|of| of.get(device)).map(|of| of.error).unwrap_or_default()
    }
}

/// The time at a speed for `work` at the reference speed.
fn at_speed(work: u64, flops: u64) -> u64 {
    mul_div(work, REFERENCE_FLOPS, flops)
}

/// Operations per second, as far as a benchmark's figure can be one.
fn sane_flops(flops: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to a sane range"
    )]
    let sane = if flops.is_finite() && flops >= MIN_FLOPS {
        flops.min(1e18) as u64
    } else {
        UNKNOWN_FLOPS
    };
    sane
}

#[cfg(test)]
mod tests;
