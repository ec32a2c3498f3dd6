//! Effects of a workload's failures and successes: on the hosts, which cool down, and on the workload, which is held back.

use super::ResultHandler;
use sojourn_protocol::{
    ids::{HostId, JobId, TrialId},
    inventory::Workload,
    report::Failure,
    time::Millis,
};
use sojourn_scheduling::{
    hosts::{Blame, MAX_FAILURES, Refusals, WorkloadOfJob, workload_of},
    waiters::Wake,
};
use sojourn_state::{FailedBy, Job, Lease, Parties, Trial, UnitKey};
use std::collections::{BTreeMap, BTreeSet};

/// The longest cool-down of a host that fails.
const MAX_FAILURE_COOLDOWN: Millis = Millis::from_secs(3600);
/// Doublings of the cool-down of a host that fails.
const MAX_DOUBLINGS: u32 = 20;
/// Trials of a job that are looked at for hosts that have succeeded at a workload, and hops of each.
const MAX_TRIALS_SEEN: usize = 256;
/// See [`MAX_TRIALS_SEEN`].
const MAX_HOPS_SEEN: usize = 16;
/// Parties that fail one unit before none of their hosts is blamed for it.
const MIN_PARTIES_OF_UNIT: usize = 2;

/// The strikes of hosts that count, before something was learned of a workload.
pub(crate) type StrikesBefore = BTreeMap<HostId, u32>;

impl ResultHandler<'_> {
    /// The record of the workload of a lease, where it has failed.
    pub(super) fn refusals_of(&self, lease: &Lease) -> Option<&Refusals> {
        self.hosts.strikes().of(&self.workload(lease)?)
    }

    fn workload(&self, lease: &Lease) -> Option<WorkloadOfJob> {
        let (job, trial) = (lease.unit.job(), lease.unit.trial());
        Some(workload_of(job, self.ledger.state.trial(job, trial)?))
    }

    /// The strikes of a lease's host, and of those that failed its workload.
    pub(super) fn strikes_before(&self, lease: &Lease) -> StrikesBefore {
        let others = self.refusals_of(lease).into_iter().flat_map(Refusals::hosts);
        let hosts: BTreeSet<HostId> = others.chain([lease.host]).collect();
        hosts.into_iter().map(|host| (host, self.strikes(host))).collect()
    }

    /// The strikes of a host that count against it.
    fn strikes(&self, host: HostId) -> u32 {
        let parties = self.ledger.state.parties();
        let counts =
            |refusals: &Refusals, unit: &UnitKey| self.counts(parties, refusals, unit, host);
        self.hosts.strikes().count(host, counts)
    }

    /// Does a strike of a unit count against the host?
    fn counts(
        &self,
        parties: Parties<'_>,
        refusals: &Refusals,
        unit: &UnitKey,
        host: HostId,
    ) -> bool {
        let job = self.ledger.state.jobs.get(&unit.job());
        let failures = job.and_then(|job| job.failures_of(unit));
        let failed = parties.behind(failures.into_iter().flatten().map(|(host, _)| *host));
        if failed.len() >= MIN_PARTIES_OF_UNIT {
            return false;
        }
        match refusals.blame(parties) {
            Blame::Hosts => true,
            Blame::Workload => false,
            Blame::Unknown => {
                let works = self.ledger.state.hosts.get(&host).is_some_and(|host| host.used > 0);
                !works && !refusals.is_called_wrong() && !self.can_others_tell(parties, host)
            }
        }
    }

    /// Is a host of another party there, which can show whose fault a failure is?
    fn can_others_tell(&self, parties: Parties<'_>, host: HostId) -> bool {
        let (own, now) = (parties.of(host), self.ledger.clock.now());
        let eligibility = self.eligibility();
        eligibility
            .live_hosts(None)
            .any(|other| parties.of(other) != own && !self.hosts.is_cooling_down(other, now))
    }

    /// Counts a failure with the workload, which is held back where two parties have failed it.
    pub(super) fn count_strike(&mut self, lease: &Lease, failure: &Failure) {
        let Some(workload) = self.workload(lease) else { return };
        let (now, first_rest) = (self.ledger.clock.now(), self.ledger.config.first_rest);
        let state = &*self.ledger.state;
        let succeeded = || {
            let job = state.jobs.get(&lease.unit.job());
            job.map(|job| succeeded_at(job, &workload.1)).unwrap_or_default()
        };
        let strikes = self.hosts.strikes_mut();
        strikes.failed(&workload, (lease.host, lease.unit), failure, now, succeeded);
        match strikes.of(&workload).map(|refusals| refusals.blame(state.parties())) {
            Some(Blame::Workload) => strikes.hold(&workload, first_rest, now),
            Some(Blame::Unknown) => strikes.let_wait(&workload, lease.host, first_rest, now),
            Some(Blame::Hosts) | None => {}
        }
    }

    /// A host has succeeded at a workload: it isn't held back any more, and others' failures of it count against them.
    pub(super) fn workload_succeeded(&mut self, lease: &Lease) {
        if self.hosts.strikes().is_empty() {
            return;
        }
        let Some(workload) = self.workload(lease) else { return };
        let before = self.strikes_before(lease);
        let was_limited = self.hosts.strikes().limits(workload.0);
        let now = self.ledger.clock.now();
        self.hosts.strikes_mut().succeeded(&workload, lease.host, now);
        if was_limited {
            self.ledger.waiters.wake(Wake::All);
        }
        self.weigh_strikes(before);
    }

    /// A result was rejected by its host's fault.
    pub(crate) fn result_rejected(&mut self, host: HostId) {
        let before = StrikesBefore::from([(host, self.strikes(host))]);
        self.hosts.strikes_mut().rejected(host);
        self.weigh_strikes(before);
    }

    /// Hosts whose strikes have come to another three cool down, each time for longer; those that have lost as many go on.
    pub(super) fn weigh_strikes(&mut self, before: StrikesBefore) {
        for (host, before) in before {
            let (was, is) = (before / MAX_FAILURES, self.strikes(host) / MAX_FAILURES);
            if is > was {
                let doublings = (is - 1).min(MAX_DOUBLINGS);
                let cooldown = self.ledger.config.first_rest.0.saturating_mul(1 << doublings);
                let cooldown = Millis(cooldown.min(MAX_FAILURE_COOLDOWN.0));
                self.hosts.cool_down(host, self.ledger.clock.now() + cooldown);
            } else if is < was {
                self.hosts.end_cooldown(host);
                self.ledger.waiters.wake(Wake::Host(host));
            }
        }
    }

    /// Takes back the strikes of the hosts whose failures of a trial others confirm, and ends their cool-downs.
    pub(super) fn pardon(
        &mut self,
        job: JobId,
        trial: TrialId,
        failures: &BTreeMap<HostId, FailedBy>,
    ) {
        let pardoned = self.ledger.state.pardoned(failures);
        for host in &pardoned {
            self.hosts.end_cooldown(*host);
        }
        self.hosts.strikes_mut().pardon(job, trial, &pardoned);
    }
}

/// Hosts whose hops of a job's workload were used: of the first trials, and of each the last ones.
fn succeeded_at(job: &Job, workload: &Workload) -> BTreeSet<HostId> {
    let begun = job.trials.iter().filter(|trial| !trial.history.is_empty());
    let is_of = |trial: &&Trial| Workload::of(&trial.context) == *workload;
    let of_workload = begun.take(MAX_TRIALS_SEEN).filter(is_of);
    let hops = of_workload.flat_map(|trial| trial.history.iter().rev().take(MAX_HOPS_SEEN));
    hops.map(|record| record.host).collect()
}
