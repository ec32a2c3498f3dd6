//! Speeds that hosts have proved, and how far claims are believed beside that.
//!
//! Proved is what this server has measured: a hop that a host reported, in the time for which it has had the lease. A
//! benchmark and measurements of earlier are claims. Each bound rests on a median over parties, so a single one moves none.

use super::{
    REFERENCE_FLOPS, WorkloadId,
    party_votes::{PartyVotes, Reporter},
    ratio::Ratio,
};
use crate::hosts::PACE_ONE;
use sojourn_protocol::quantity::mul_div;
use std::collections::BTreeMap;

/// A claimed speed of more than so many times the median claim counts as the median, until the device is measured.
const MAX_CLAIM: u64 = 4096;
/// A device that wasn't measured counts as so many times as fast as the fastest that was, at most.
const MAX_UNPROVED_SPEEDUP: u64 = 16;
/// A device that was measured counts as so many times as fast as the median of those that were, at most.
const MAX_PROVED_SPEEDUP: u64 = 64;
/// Before a device may be given up as too slow, it may take so many times as long as others of its kind (processors, or
/// accelerators).
const MAX_SLOWDOWN: u64 = 32;
/// The same of a processor where only accelerators were measured.
const MAX_PROCESSOR_SLOWDOWN: u64 = 1024;
/// A workload that no other host was measured on may take so many times longer than others let expect.
const MAX_WORKLOAD_SLOWDOWN: u64 = 8;
/// Where nothing was measured of others: so many times as long as at the reference speed, or as the device itself has
/// proved.
const MAX_UNMEASURED_SLOWDOWN: u64 = 1024;
/// See [`MAX_UNMEASURED_SLOWDOWN`].
const MAX_OWN_SLOWDOWN: u64 = 32;
/// However fast others were: a device may take so many times as long as at the reference speed.
const MIN_SLOWDOWN: u64 = 4;
/// However fast others were: a device may take so many times as long as the fastest of its results that were taken in.
const MIN_OWN_SLOWDOWN: u64 = 4;
/// Nanoseconds of a row at the reference speed, at least: small batches take longer than their operations do.
const MIN_ROW_NANOS: u64 = 1_000;

/// Figures of hosts by the kind of their device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct ByKind {
    processors: PartyVotes,
    accelerators: PartyVotes,
}

impl ByKind {
    fn of(&mut self, is_processor: bool) -> &mut PartyVotes {
        if is_processor { &mut self.processors } else { &mut self.accelerators }
    }

    fn remove(&mut self, host: Reporter) {
        self.processors.remove(host);
        self.accelerators.remove(host);
    }

    /// By figures of times: the longest that is plausible for a host, from those of all others.
    fn longest(&self, is_processor: bool, host: Reporter) -> Option<u64> {
        let processors = || self.processors.upper_median_without(host);
        let accelerators = || self.accelerators.upper_median_without(host);
        let times = |slowdown: u64| move |figure: u64| figure.saturating_mul(slowdown);
        match is_processor {
            true => processors()
                .map(times(MAX_SLOWDOWN))
                .or_else(|| accelerators().map(times(MAX_PROCESSOR_SLOWDOWN))),
            false => accelerators().or_else(processors).map(times(MAX_SLOWDOWN)),
        }
    }

    /// The shortest that is plausible for a host, from those of all others.
    fn shortest(&self, host: Reporter) -> Option<u64> {
        let processors = self.processors.upper_median_without(host);
        let accelerators = self.accelerators.upper_median_without(host);
        let least = [processors, accelerators].into_iter().flatten().min()?;
        Some(least / MAX_PROVED_SPEEDUP)
    }
}

/// One measurement of this server.
#[derive(Debug, Clone, Copy)]
pub(super) struct Measurement {
    pub(super) host: Reporter,
    pub(super) is_processor: bool,
    pub(super) workload: WorkloadId,
    /// Nanoseconds per row in the common class: smoothed over the device's measurements.
    pub(super) per_row: u64,
    /// The same at the reference speed, as guessed.
    pub(super) work: u64,
    /// The device's pace.
    pub(super) pace: u64,
}

/// The times that a device has proved for a workload, in nanoseconds per row.
#[derive(Debug, Clone, Copy)]
pub(super) struct OwnTimes {
    /// Smoothed over its measurements; it counts where nothing was measured of others.
    pub(super) measured: Option<u64>,
    /// Of the fastest of its results that were taken in.
    pub(super) taken_in: Option<u64>,
}

/// Claims and proofs of all hosts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Proved {
    /// Operations per second of each host's fastest device, by its own benchmark.
    claims: PartyVotes,
    /// The pace of each host's device that was measured last.
    paces: PartyVotes,
    /// Nanoseconds per row by workload.
    times: BTreeMap<WorkloadId, ByKind>,
    /// Measured times over those at the reference speed, as [`Ratio`]s, of any workload.
    slowness: ByKind,
}

impl Proved {
    /// A host says how fast its fastest device is.
    pub(super) fn claimed(&mut self, host: Reporter, flops: u64) {
        self.claims.set(host, flops);
    }

    /// How many parties have said how fast they are.
    pub(super) fn hosts(&self) -> usize {
        self.claims.len()
    }

    /// Takes a measurement in.
    pub(super) fn measured(&mut self, of: Measurement) {
        self.paces.set(of.host, of.pace);
        self.times.entry(of.workload).or_default().of(of.is_processor).set(of.host, of.per_row);
        let slowness = Ratio::of(of.per_row, of.work.max(MIN_ROW_NANOS));
        self.slowness.of(of.is_processor).set(of.host, slowness.raw());
    }

    /// Forgets a host.
    pub(super) fn forget(&mut self, host: Reporter) {
        self.claims.remove(host);
        self.paces.remove(host);
        self.slowness.remove(host);
        self.times.values_mut().for_each(|times| times.remove(host));
    }

    /// The operations per second that a device counts as before it was measured, where it claims so many.
    pub(super) fn believed(&self, claim: u64) -> u64 {
        match self.claims.lower_median() {
            Some(median) if claim / MAX_CLAIM > median => median,
            _ => claim,
        }
    }

    /// The smallest pace that a device may have: no claim makes it faster.
    pub(super) fn least_pace(&self, is_proved: bool) -> u64 {
        let Some(median) = self.paces.upper_median() else {
            let claim = self.claims.lower_median().map(|claim| claim.saturating_mul(MAX_CLAIM));
            return claim.map_or(0, |claim| mul_div(PACE_ONE, REFERENCE_FLOPS, claim.max(1)));
        };
        let proved = median / MAX_PROVED_SPEEDUP;
        let fastest = self.paces.smallest().filter(|_| !is_proved);
        fastest.map_or(proved, |fastest| proved.max(fastest / MAX_UNPROVED_SPEEDUP))
    }

    /// The most nanoseconds per row that a host may take: by what was measured of others, but no less than the reference
    /// speed, and the host's own results, make plausible.
    pub(super) fn longest(
        &self,
        host: (Reporter, bool),
        workload: WorkloadId,
        work: u64,
        own: OwnTimes,
    ) -> u64 {
        let work = work.max(MIN_ROW_NANOS);
        let least = work.saturating_mul(MIN_SLOWDOWN);
        let taken_in = own.taken_in.map_or(0, |own| own.saturating_mul(MIN_OWN_SLOWDOWN));
        self.longest_by_others(host, workload, work, own.measured).max(least).max(taken_in)
    }

    fn longest_by_others(
        &self,
        (host, is_processor): (Reporter, bool),
        workload: WorkloadId,
        work: u64,
        own: Option<u64>,
    ) -> u64 {
        let times = self.times.get(&workload);
        if let Some(longest) = times.and_then(|times| times.longest(is_processor, host)) {
            return longest;
        }
        if let Some(slowness) = self.slowness.longest(is_processor, host) {
            return Ratio::from_raw(slowness).times(work).saturating_mul(MAX_WORKLOAD_SLOWDOWN);
        }
        let own = own.map_or(0, |own| own.saturating_mul(MAX_OWN_SLOWDOWN));
        work.saturating_mul(MAX_UNMEASURED_SLOWDOWN).max(own)
    }

    /// The least nanoseconds per row that a host can take, by what was measured of others; 0 where nothing was.
    pub(super) fn shortest(&self, host: Reporter, workload: WorkloadId) -> u64 {
        let times = self.times.get(&workload);
        times.and_then(|times| times.shortest(host)).unwrap_or(0)
    }
}
