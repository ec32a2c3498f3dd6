//! Errors of trainers: whose fault they are, and what they end.
//!
//! The rule of three failures: a unit that has failed on three hosts is the job's fault, and ends its trial. Where nobody has
//! ever succeeded at its workload, the failures of the workload's other trials count as well. Where a deployment has hosts of several owners, the three
//! hosts are of three parties, or of all that could get the unit: one owner alone ends nothing while another could try.
//! There is an upper bound: a unit that has failed on very many hosts ends, whoever owns them.
//!
//! Units that a device's engine refuses as unsupported count towards none of that: the device gets no unit of that workload
//! again, and the unit waits for another.

use super::ResultHandler;
use crate::{effect::Effect, fault::CoreFault};
use sojourn_protocol::{
    ids::{JobId, LeaseId, TrialId},
    inventory::Workload,
    quantity::to_usize,
    report::{Failure, FailureKind},
};
use sojourn_scheduling::{
    hosts::{DeviceSlots, MAX_FAILURES, Refusals, workload_of},
    schedule::Verifiers,
    waiters::Wake,
};
use sojourn_state::{
    Event, ExtraEvaluation, Host, InFlight, Lease, Party, RequestedEvaluation, Trial, UnitKey,
    marks,
};
use std::collections::BTreeSet;

/// A unit that has failed on so many hosts is the job's fault, whoever owns them: it can't go on for ever.
const MAX_FAILED_HOSTS: usize = 32;
/// Parties that a loss which isn't finite must occur with, before it is the model's.
const MIN_NON_FINITE_PARTIES: usize = 2;
/// Parties that must have failed an evaluation outside the search before it is given up, where so many could do it.
const MIN_PARTIES_OF_EVALUATION: usize = 2;

impl ResultHandler<'_> {
    /// A trainer has failed: it ends the trial or the evaluation, or counts against the host.
    pub(super) fn unit_failed(&mut self, lease: &Lease, failure: Failure) -> Result<(), CoreFault> {
        let (job, trial) = (lease.unit.job(), lease.unit.trial());
        let before = self.strikes_before(lease);
        self.ledger.record(Event::UnitFailed { lease: lease.id, failure: failure.clone() })?;
        self.ledger.effect(Effect::DropUpload(lease.id));
        match failure.kind {
            FailureKind::OutOfMemory => self.exclude_workload(lease, |slots| &mut slots.ran_out),
            FailureKind::Unsupported => {
                self.exclude_workload(lease, |slots| &mut slots.unsupported);
            }
            _ => {}
        }
        if failure.kind.blames_host() {
            self.count_strike(lease, &failure);
        }
        let ends = self.ends_unit(lease, failure.kind);
        match lease.unit {
            UnitKey::Extra { name, .. } if ends => self.fail_evaluation(job, name, failure.message),
            _ if ends => self.fail_trial(job, trial, failure.message),
            _ => Ok(()),
        }?;
        // Where the end was the unit's fault, this failure doesn't count any more.
        self.weigh_strikes(before);
        Ok(())
    }

    /// Is there a party beside these that could get the unit: with a host that was heard of since hosts were last
    /// forgotten? Right after a start all count, as they have not had the time to show themselves.
    fn could_be_tried_by_others(&self, lease: &Lease, than: &BTreeSet<Party<'_>>) -> bool {
        let (state, unit) = (&*self.ledger.state, &lease.unit);
        let Some(job) = state.jobs.get(&unit.job()) else { return false };
        let Some(trial) = job.trial(unit.trial()) else { return false };
        let (eligibility, parties) = (self.eligibility(), state.parties());
        let verifiers = Verifiers::of(&eligibility);
        let is_warming_up = self.ledger.clock.is_warming_up(self.ledger.config.lease_term);
        let may_come = |host: &Host| match self.hosts.session(host.id) {
            Some(session) if session.is_known() => {
                // An owner doesn't decide because the others are away for a while.
                (parties.are_owners() || eligibility.is_live(host.id))
                    && verifiers.could_get(job, trial, unit, host.id)
            }
            _ => is_warming_up && state.admits_host(job, host.id),
        };
        let mut hosts = state.hosts.values().filter(|host| host.is_admitted());
        hosts.any(|host| !than.contains(&parties.of(host.id)) && may_come(host))
    }

    /// Is the failure of a unit the job's fault, by what hosts have reported of it?
    fn ends_unit(&self, lease: &Lease, kind: FailureKind) -> bool {
        let job = self.ledger.state.jobs.get(&lease.unit.job());
        let failures = job.and_then(|job| job.failures_of(&lease.unit));
        let hosts = failures.map_or(0, |failures| failures.len());
        let state = &*self.ledger.state;
        let parties = state.parties();
        let by = |wanted: Option<FailureKind>| {
            let failed = failures.into_iter().flatten();
            let failed =
                failed.filter(|(_, failed)| wanted.is_none_or(|of| failed.last.kind == of));
            parties.behind(failed.map(|(host, _)| *host))
        };
        let mut failed = by(None);
        let mut count: u32 =
            failures.map_or(0, |failures| failures.values().map(|failed| failed.count).sum());
        let of_unit = failed.len();
        // Where nobody has ever succeeded at the workload, its other trials have failed for the same reason.
        if let Some((others, times)) = self.refusals_of(lease).and_then(Refusals::failed_everywhere)
        {
            failed.extend(parties.behind(others.iter().copied()));
            count = count.max(times);
        }
        let on_many = hosts >= MAX_FAILED_HOSTS
            || (failed.len() > of_unit && failed.len() >= to_usize(MAX_FAILURES))
            || (hosts >= to_usize(MAX_FAILURES)
                && (failed.len() >= to_usize(MAX_FAILURES)
                    || !self.could_be_tried_by_others(lease, &failed)));
        match kind {
            FailureKind::NonFinite => {
                let own = parties.behind([lease.host]);
                hosts >= MAX_FAILED_HOSTS
                    || by(Some(FailureKind::NonFinite)).len() >= MIN_NON_FINITE_PARTIES
                    || !self.could_be_tried_by_others(lease, &own)
            }
            // It says nothing about the unit, which waits for a device that supports it.
            FailureKind::Unsupported => false,
            // It waits for a host with more memory. Where many had too little, it is the job.
            FailureKind::OutOfMemory => on_many && self.unit_fits_nowhere(lease),
            FailureKind::WrongUnit
            | FailureKind::Trainer
            | FailureKind::Died
            | FailureKind::Stalled
            | FailureKind::Damaged => match lease.unit {
                // Nothing is lost with it, and somebody waits: so whoever's fault it is.
                UnitKey::Extra { .. } => {
                    count >= MAX_FAILURES
                        && (!parties.are_owners()
                            || failed.len() >= MIN_PARTIES_OF_EVALUATION
                            || !self.could_be_tried_by_others(lease, &failed))
                }
                UnitKey::Train { .. } | UnitKey::Evaluate { .. } => {
                    // Where there are too few hosts for three, what nobody else could try ends too: else it would keep
                    // those there are from all other work. A host that never did any may be broken.
                    let works = state.hosts.get(&lease.host).is_some_and(|host| host.used > 0);
                    let says_so =
                        kind == FailureKind::WrongUnit || (works && kind == FailureKind::Trainer);
                    let is_refused = says_so && count >= MAX_FAILURES;
                    on_many || (is_refused && !self.could_be_tried_by_others(lease, &failed))
                }
            },
        }
    }

    /// The unit's workload isn't given to that device again.
    fn exclude_workload(
        &mut self,
        lease: &Lease,
        excluded: impl FnOnce(&mut DeviceSlots) -> &mut BTreeSet<Workload>,
    ) {
        let trial = self.ledger.state.trial(lease.unit.job(), lease.unit.trial());
        let Some(trial) = trial else { return };
        let workload = Workload::of(&trial.context);
        let session = self.hosts.session_mut(lease.host);
        if let Some(slots) = session.and_then(|session| session.devices.get_mut(&lease.device)) {
            excluded(slots).insert(workload);
            // Its shards may need another replica.
            self.data.invalidate();
        }
    }

    fn unit_fits_nowhere(&self, lease: &Lease) -> bool {
        let Some(job) = self.ledger.state.jobs.get(&lease.unit.job()) else { return false };
        let trial = job.trial(lease.unit.trial());
        trial.is_some_and(|trial| self.eligibility().fits_nowhere(job, trial))
    }

    /// Ends a trial with an error. Hosts whose failures of it others confirm don't cool down for that.
    pub(crate) fn fail_trial(
        &mut self,
        job: JobId,
        trial: TrialId,
        error: String,
    ) -> Result<(), CoreFault> {
        let known = self.ledger.state.trial(job, trial);
        let failures = known.map(Trial::all_failures).unwrap_or_default();
        let workload = known.map(|known| workload_of(job, known));
        self.pardon(job, trial, &failures);
        if let Some(workload) = workload {
            self.hosts.strikes_mut().trial_ended(&workload, self.ledger.clock.now());
        }
        let in_flight = self.ledger.state.in_flight(job, trial);
        self.ledger.record(Event::TrialFailed { job, trial, error })?;
        // Its hops are planned beside others'.
        self.ledger.planner.outdate_plan(job);
        self.abandon(in_flight)
    }

    /// Ends an open evaluation outside the search with an error, and its leases.
    pub(crate) fn fail_evaluation(
        &mut self,
        job: JobId,
        name: RequestedEvaluation,
        error: String,
    ) -> Result<(), CoreFault> {
        let unit = UnitKey::Extra { job, name };
        let known = self.ledger.state.jobs.get(&job);
        let failures = marks(known.and_then(|job| job.failures_of(&unit)));
        self.pardon(job, name.trial, &failures);
        let known = self.ledger.state.jobs.get(&job);
        let extra = known.and_then(|job| job.extra(&name));
        let in_flight = extra.map(ExtraEvaluation::in_flight).unwrap_or_default();
        self.ledger.record(Event::ExtraFailed { job, name, error })?;
        self.abandon(in_flight)
    }

    /// Fails evaluations whose checkpoint the store has lost: it won't come back.
    pub(crate) fn fail_lost_evaluations(&mut self) -> Result<(), CoreFault> {
        let state = &*self.ledger.state;
        let open = state.jobs.values().flat_map(|job| {
            let lost = |checkpoint| state.blobs.is_lost(checkpoint);
            let extras = job.extras.iter().filter(move |e| lost(&e.checkpoint.sha256));
            extras.map(|extra| (job.id, extra.name))
        });
        let lost: Vec<(JobId, RequestedEvaluation)> = open.collect();
        lost.into_iter().try_for_each(|(job, name)| {
            self.fail_evaluation(job, name, "the server's store has lost the checkpoint".into())
        })
    }

    /// Ends the leases and the waiting results of a trial that has ended.
    pub(crate) fn abandon(&mut self, in_flight: InFlight) -> Result<(), CoreFault> {
        self.leases().revoke(in_flight.live)?;
        in_flight.awaiting.into_iter().try_for_each(|lease| self.supersede(lease))
    }

    /// Ends an acknowledged report that isn't wanted any more.
    pub(crate) fn supersede(&mut self, lease: LeaseId) -> Result<(), CoreFault> {
        self.queue.forget(lease);
        self.wake_host_of(lease);
        self.ledger.record(Event::Superseded { lease })?;
        self.ledger.effect(Effect::DropUpload(lease));
        Ok(())
    }

    /// The host of a past lease is to hear what has become of its report.
    pub(crate) fn wake_host_of(&mut self, lease: LeaseId) {
        if let Some(past) = self.ledger.state.past.get(&lease) {
            self.ledger.waiters.wake(Wake::Host(past.lease.host));
        }
    }
}
