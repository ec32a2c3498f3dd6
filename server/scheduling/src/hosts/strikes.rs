//! Strikes: failures of trainers, counted by workload before they are counted against hosts.
//!
//! ```text
//!   a unit fails --> strike of (host, unit), kept with the workload
//!                      |-- two parties fail the unit, or the workload: nobody's host is blamed, the workload is held back
//!                      |-- another host succeeds at the workload: the strikes of the hosts that failed it count
//!                      '-- nobody knows yet: they don't count while another party could tell
//! ```
//!
//! A workload is counted within its job: nobody can hold back another user's job by a wrong one of the same model and data.
//! All of it is soft state, as cool-downs are.

use sojourn_protocol::{
    ids::{HostId, JobId, LeaseId, TrialId},
    inventory::Workload,
    quantity::to_u64,
    report::{Failure, FailureKind},
    text::plain_text,
    time::{Millis, UnixMillis},
};
use sojourn_state::{Parties, Trial, UnitKey};
use std::collections::{BTreeMap, BTreeSet};

/// Trainer errors that count against the host, in a row, or against the job, on as many hosts.
pub const MAX_FAILURES: u32 = 3;
/// Parties that must have failed a workload before it is held back.
const MIN_REFUSING_PARTIES: usize = 2;
/// The longest time between two tries of a workload that is held back.
const MAX_BACKOFF: Millis = Millis::from_secs(600);
/// Doublings of the time between tries.
const MAX_DOUBLINGS: u32 = 20;
/// Workloads whose failures are kept. Beyond these, the one that failed first is forgotten.
const MAX_WORKLOADS: usize = 4096;
/// Characters of an error that are kept to be shown.
const MAX_ERROR_CHARS: usize = 300;

/// A workload of a job.
pub type WorkloadOfJob = (JobId, Workload);

/// The workload of a job's trial.
pub fn workload_of(job: JobId, trial: &Trial) -> WorkloadOfJob {
    (job, Workload::of(&trial.context))
}

/// The party to blame for the failures of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blame {
    /// The hosts': others succeed at it.
    Hosts,
    /// The workload's: two parties have failed it.
    Workload,
    /// Nobody has succeeded, and one party has failed.
    Unknown,
}

/// A workload that is tried on one host at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Hold {
    /// When it may be tried next.
    until: UnixMillis,
    /// Failures since it is held back.
    tries: u32,
    /// The lease that tries it.
    trying: Option<LeaseId>,
}

/// The record of a workload that has failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusals {
    /// When it failed first.
    since: UnixMillis,
    /// Hosts whose last result of it was a failure.
    failed: BTreeSet<HostId>,
    /// Hosts that have succeeded at it.
    succeeded: BTreeSet<HostId>,
    /// The strikes of each host since it last succeeded at anything, by unit.
    strikes: BTreeMap<HostId, BTreeMap<UnitKey, u32>>,
    /// Hosts that aren't given it for a while, since they failed it again and again.
    waits: BTreeMap<HostId, UnixMillis>,
    hold: Option<Hold>,
    /// Failures since the last success.
    count: u32,
    /// A trainer has said that the unit is wrong.
    is_called_wrong: bool,
    /// The last error.
    error: String,
}

impl Refusals {
    fn new(since: UnixMillis, succeeded: BTreeSet<HostId>) -> Self {
        Self {
            since,
            failed: BTreeSet::new(),
            succeeded,
            strikes: BTreeMap::new(),
            waits: BTreeMap::new(),
            hold: None,
            count: 0,
            is_called_wrong: false,
            error: String::new(),
        }
    }

    /// The party to blame for the workload's failures. Several parties that fail it outweigh as many that succeed: a liar's
    /// success blames no two others.
    pub fn blame(&self, parties: Parties<'_>) -> Blame {
        let failed = parties.behind(self.failed.iter().copied()).len();
        let succeeded = parties.behind(self.succeeded.iter().copied()).len();
        if failed >= MIN_REFUSING_PARTIES && failed >= succeeded {
            Blame::Workload
        } else if succeeded > 0 {
            Blame::Hosts
        } else {
            Blame::Unknown
        }
    }

    /// The hosts that have failed it and how many failures there are, where no host has succeeded.
    pub fn failed_everywhere(&self) -> Option<(&BTreeSet<HostId>, u32)> {
        self.succeeded.is_empty().then_some((&self.failed, self.count))
    }

    /// Has a trainer said that the unit is wrong?
    pub const fn is_called_wrong(&self) -> bool {
        self.is_called_wrong
    }

    /// The strikes of a host.
    fn strikes_of(&self, host: HostId) -> u32 {
        self.strikes.get(&host).into_iter().flatten().map(|(_, count)| *count).sum()
    }

    /// The hosts that have strikes of it.
    pub fn hosts(&self) -> impl Iterator<Item = HostId> {
        self.strikes.keys().copied()
    }

    fn is_limited(&self, now: UnixMillis) -> bool {
        self.hold.is_some() || self.waits.values().any(|until| *until > now)
    }

    fn ends(&self) -> impl Iterator<Item = UnixMillis> {
        self.waits.values().copied().chain(self.hold.map(|hold| hold.until))
    }
}

/// Why a workload isn't given to hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldBack {
    /// Hosts that failed it.
    pub hosts: u64,
    /// When it is tried next.
    pub until: UnixMillis,
    /// The last error.
    pub error: String,
}

/// The strikes of all hosts, by workload.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Strikes {
    workloads: BTreeMap<WorkloadOfJob, Refusals>,
    /// Results of hosts in a row that were rejected by their fault: they are of no workload.
    rejected: BTreeMap<HostId, u32>,
    /// Jobs with a workload that some host isn't given.
    limited: BTreeSet<JobId>,
    /// When the next of these may be tried.
    next_end: Option<UnixMillis>,
}

impl Strikes {
    /// The record of a workload that has failed.
    pub fn of(&self, workload: &WorkloadOfJob) -> Option<&Refusals> {
        self.workloads.get(workload)
    }

    /// Has nothing failed?
    pub fn is_empty(&self) -> bool {
        self.workloads.is_empty() && self.rejected.is_empty()
    }

    /// The strikes of a host that count: rejected results, and those that `counts` says of a workload and a unit.
    pub fn count(&self, host: HostId, counts: impl Fn(&Refusals, &UnitKey) -> bool) -> u32 {
        let rejected = self.rejected.get(&host).copied().unwrap_or(0);
        let of_workload = |refusals: &Refusals| {
            let units = refusals.strikes.get(&host).into_iter().flatten();
            units.filter(|(unit, _)| counts(refusals, unit)).map(|(_, count)| *count).sum::<u32>()
        };
        self.workloads.values().map(of_workload).fold(rejected, u32::saturating_add)
    }

    /// A result of a host was rejected by its fault.
    pub fn rejected(&mut self, host: HostId) {
        *self.rejected.entry(host).or_default() += 1;
    }

    /// A host has failed a unit. `succeeded`: the hosts that have succeeded at the workload, asked where it hasn't failed before.
    pub fn failed(
        &mut self,
        workload: &WorkloadOfJob,
        (host, unit): (HostId, UnitKey),
        failure: &Failure,
        now: UnixMillis,
        succeeded: impl FnOnce() -> BTreeSet<HostId>,
    ) {
        if !self.workloads.contains_key(workload) {
            self.make_room();
            self.workloads.insert(workload.clone(), Refusals::new(now, succeeded()));
        }
        let Some(refusals) = self.workloads.get_mut(workload) else { return };
        refusals.failed.insert(host);
        refusals.count = refusals.count.saturating_add(1);
        refusals.is_called_wrong |= failure.kind == FailureKind::WrongUnit;
        refusals.error = plain_text(failure.parts().0, MAX_ERROR_CHARS);
        *refusals.strikes.entry(host).or_default().entry(unit).or_default() += 1;
    }

    fn make_room(&mut self) {
        if self.workloads.len() >= MAX_WORKLOADS
            && let Some((oldest, _)) = self.workloads.iter().min_by_key(|(_, of)| of.since)
        {
            let oldest = oldest.clone();
            self.workloads.remove(&oldest);
        }
    }

    /// Holds a workload back, or for longer: it is tried on one host at a time, the first time at once.
    pub fn hold(&mut self, workload: &WorkloadOfJob, first_rest: Millis, now: UnixMillis) {
        let Some(refusals) = self.workloads.get_mut(workload) else { return };
        let tries = refusals.hold.map_or(0, |hold| hold.tries.saturating_add(1));
        let until = match tries {
            0 => now,
            tries => now + backoff(first_rest, tries - 1),
        };
        refusals.hold = Some(Hold { until, tries, trying: None });
        self.refresh(now);
    }

    /// A trial of a workload has ended by failures: the next one is tried at once.
    pub fn trial_ended(&mut self, workload: &WorkloadOfJob, now: UnixMillis) {
        let Some(refusals) = self.workloads.get_mut(workload) else { return };
        refusals.waits.clear();
        if let Some(hold) = &mut refusals.hold {
            (hold.until, hold.tries) = (now, 0);
        }
        self.refresh(now);
    }

    /// A host that isn't blamed has failed a workload. After each three failures it isn't given it for a while.
    pub fn let_wait(
        &mut self,
        workload: &WorkloadOfJob,
        host: HostId,
        first_rest: Millis,
        now: UnixMillis,
    ) {
        let Some(refusals) = self.workloads.get_mut(workload) else { return };
        let count = refusals.strikes_of(host);
        if count > 0 && count.is_multiple_of(MAX_FAILURES) {
            let doublings = count / MAX_FAILURES - 1;
            refusals.waits.insert(host, now + backoff(first_rest, doublings));
            self.refresh(now);
        }
    }

    /// A host has succeeded at a workload: it has no strikes any more, and the workload is not held back.
    pub fn succeeded(&mut self, workload: &WorkloadOfJob, host: HostId, now: UnixMillis) {
        self.rejected.remove(&host);
        if self.workloads.is_empty() {
            return;
        }
        for refusals in self.workloads.values_mut() {
            refusals.strikes.remove(&host);
        }
        if let Some(refusals) = self.workloads.get_mut(workload) {
            refusals.failed.remove(&host);
            refusals.waits.remove(&host);
            refusals.succeeded.insert(host);
            (refusals.hold, refusals.count) = (None, 0);
        }
        self.workloads.retain(|_, of| !(of.failed.is_empty() && of.strikes.is_empty()));
        self.refresh(now);
    }

    /// Takes back the strikes of hosts at the units of a trial that has failed elsewhere as well.
    pub fn pardon(&mut self, job: JobId, trial: TrialId, hosts: &[HostId]) {
        let of_job = self.workloads.iter_mut().filter(|((of, _), _)| *of == job);
        for (_, refusals) in of_job {
            for host in hosts {
                if let Some(units) = refusals.strikes.get_mut(host) {
                    units.retain(|unit, _| unit.trial() != trial);
                }
            }
            refusals.strikes.retain(|_, units| !units.is_empty());
        }
    }

    /// Forgets the workloads of jobs that aren't run any more.
    pub fn retain_jobs(&mut self, runs: impl Fn(JobId) -> bool, now: UnixMillis) {
        if !self.workloads.is_empty() {
            self.workloads.retain(|(job, _), _| runs(*job));
            self.refresh(now);
        }
    }

    /// Has a job a workload that some host isn't given?
    pub fn limits(&self, job: JobId) -> bool {
        self.limited.contains(&job)
    }

    /// May a host try a workload of a job? `is_live`: does a lease run?
    pub fn may_try(
        &self,
        workload: &WorkloadOfJob,
        host: HostId,
        now: UnixMillis,
        is_live: impl Fn(LeaseId) -> bool,
    ) -> bool {
        let Some(refusals) = self.workloads.get(workload) else { return true };
        let is_free = |hold: &Hold| hold.until <= now && !hold.trying.is_some_and(is_live);
        refusals.hold.as_ref().is_none_or(is_free)
            && refusals.waits.get(&host).is_none_or(|until| *until <= now)
    }

    /// A lease tries a workload.
    pub fn granted(&mut self, workload: &WorkloadOfJob, lease: LeaseId) {
        let hold = self.workloads.get_mut(workload).and_then(|refusals| refusals.hold.as_mut());
        if let Some(hold) = hold {
            hold.trying = Some(lease);
        }
    }

    /// Why a workload is held back, where it is.
    pub fn held_back(&self, workload: &WorkloadOfJob, now: UnixMillis) -> Option<HeldBack> {
        let refusals = self.workloads.get(workload).filter(|of| of.is_limited(now))?;
        let until = match refusals.hold {
            Some(hold) => hold.until,
            None => refusals.waits.values().copied().min()?,
        };
        let hosts = to_u64(refusals.failed.len());
        Some(HeldBack { hosts, until, error: refusals.error.clone() })
    }

    /// When the next workload may be tried that waits for its time.
    pub const fn next_end(&self) -> Option<UnixMillis> {
        self.next_end
    }

    /// Takes note that waits are over.
    pub fn expire(&mut self, now: UnixMillis) {
        self.refresh(now);
    }

    fn refresh(&mut self, now: UnixMillis) {
        for refusals in self.workloads.values_mut() {
            refusals.waits.retain(|_, until| *until > now);
        }
        let limited = self.workloads.iter().filter(|(_, of)| of.is_limited(now));
        self.limited = limited.map(|((job, _), _)| *job).collect();
        let ends = self.workloads.values().flat_map(Refusals::ends);
        self.next_end = ends.filter(|end| *end > now).min();
    }
}

fn backoff(first: Millis, doublings: u32) -> Millis {
    let time = first.0.saturating_mul(1 << doublings.min(MAX_DOUBLINGS));
    Millis(time.min(MAX_BACKOFF.0.max(first.0)))
}
