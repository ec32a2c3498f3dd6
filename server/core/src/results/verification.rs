//! Results that other hosts are asked to reproduce before they are taken in.
//!
//! ```text
//!   acknowledged --by chance--> challenged --a quorum agrees------> taken in, the others are refuted
//!        |                        |--------nobody can be asked----> taken in, unverified
//!        |                        '--a quorum of hosts of parties---> taken in, unverified
//!        |                           that have all given a result
//!        '--------------------------------------------------------> taken in
//! ```
//!
//! A share of the results of each host is verified: a smaller share where it has earned trust, all of them where it has
//! lost trust. While hosts disagree nothing is taken in: in hop order the trial waits, and where results are merged the
//! shard does. Where they disagree and all parties have given a result, further hosts are asked whoever owns them, and a quorum of
//! hosts decides; nobody's trust changes by that.
//!
//! Evaluations are verified likewise, and always those on which something depends: that make their trial the best of the job,
//! that end it at the target, and those outside the search.

use super::ResultHandler;
use crate::{
    dispatch::Wake,
    effect::Effect,
    event::UnitKey,
    event::{Event, Fault},
    fault::CoreFault,
    hosts::Session,
    state::{Host, Job, Lease, PendingVerification, State, Trust},
};
use sojourn_protocol::{
    ids::{JobId, LeaseId, TrialId},
    quantity::to_usize,
    report::Evaluated,
    seeds,
    spec::Verify,
};

/// When the results of so many more hosts (owners, where there are several) than the quorum differ, the numeric class itself is at fault.
const MAX_EXTRA_RESULTS: usize = 3;
/// The same when hosts of one owner differ from each other, of so many owners.
const MIN_CONTRADICTORY_OWNERS: usize = 2;
/// The unit of verification rates: per mille.
const PER_MILLE: u32 = 1000;
/// Why a trial fails whose results nobody can reproduce.
const NOT_REPRODUCIBLE: &str =
    "every host of its numeric class comes to another result: its arithmetic can't be reproduced";
/// Why a result is rejected that a quorum disagrees with.
const OUTVOTED: &str = "other hosts of its numeric class agree on another result";

impl ResultHandler<'_> {
    /// The first waiting result of a trial is queued for assimilation, or verified before.
    pub(crate) fn process_next(&mut self, job: JobId, trial: TrialId) -> Result<(), CoreFault> {
        loop {
            let Some(known) = self.ledger.state.trial(job, trial) else { return Ok(()) };
            let Some(first) = known.awaiting.front().copied() else { return Ok(()) };
            if known.verification.is_some() {
                return Ok(());
            }
            if known.verdict_of(first).is_some() || !self.is_to_verify(first) {
                self.queue_assimilation(first);
                return Ok(());
            }
            // One that was granted before its trial was extended can't be trained again as it was. Where results are merged,
            // another one is the first after either.
            let known = self.ledger.state.trial(job, trial);
            let is_former = known.is_some_and(|known| known.is_of_former_length(first));
            self.ledger.record(if !is_former && self.could_be_verified(first) {
                Event::Challenged { lease: first }
            } else {
                Event::Unverified { lease: first }
            })?;
        }
    }

    /// A hop's result waits to be taken in. A verification may have waited for it.
    pub(crate) fn result_arrived(&mut self, lease: &Lease) -> Result<(), CoreFault> {
        let (job, id) = (lease.unit.job(), lease.unit.trial());
        let Some(known) = self.ledger.state.jobs.get(&job) else { return Ok(()) };
        let Some(trial) = known.trial(id) else { return Ok(()) };
        match known.verification_of(&lease.unit).cloned() {
            Some(verification) if verification.results.contains_key(&lease.id) => {
                self.judge(&verification)
            }
            // It ends elsewhere, and says nothing of the result that is verified.
            Some(_) => self.supersede(lease.id),
            None if trial.awaiting.front() == Some(&lease.id) => self.process_next(job, id),
            None => Ok(()),
        }
    }

    /// The counts of an evaluation are taken in, or verified before. A verification may have waited for them.
    pub(crate) fn evaluation_arrived(
        &mut self,
        lease: &Lease,
        evaluated: &Evaluated,
    ) -> Result<(), CoreFault> {
        let job = self.ledger.state.jobs.get(&lease.unit.job());
        if let Some(verification) = job.and_then(|job| job.verification_of(&lease.unit)).cloned() {
            return self.judge(&verification);
        }
        if self.is_evaluation_to_verify(lease, evaluated) {
            if self.could_be_verified(lease.id) {
                return self.ledger.record(Event::Challenged { lease: lease.id });
            }
            self.ledger.record(Event::Unverified { lease: lease.id })?;
        }
        self.take_in_evaluation(lease.id)
    }

    /// Puts a result into the queue where it is the first of its trial.
    pub(crate) fn queue_assimilation(&mut self, lease: LeaseId) {
        let now = self.ledger.clock.now();
        if self.ledger.state.is_to_assimilate(lease) && self.queue.push(lease, now) {
            self.ledger.effect(Effect::Assimilate);
        }
    }

    /// Ends verifications for which no party is left to ask, where that says what to do with their results.
    pub(crate) fn close_unanswerable(&mut self) -> Result<(), CoreFault> {
        let state = &*self.ledger.state;
        let pending = state.jobs.values().flat_map(|job| {
            let pending = job.incomplete_verifications().map(|(_, pending)| pending);
            pending.filter_map(|pending| Some((pending.clone(), Verdict::of(state, job, pending)?)))
        });
        let pending: Vec<(PendingVerification, Verdict)> = pending.collect();
        for (PendingVerification { first, unit, results, .. }, verdict) in pending {
            if self.could_be_verified(first) {
                continue;
            }
            let taken = match verdict {
                Verdict::TakeIn(taken) => taken,
                Verdict::Fail => {
                    self.fail_unit(unit)?;
                    continue;
                }
            };
            for lease in results.into_keys().filter(|lease| *lease != taken) {
                self.supersede(lease)?;
            }
            self.ledger.record(Event::Unverified { lease: taken })?;
            self.take_in(unit, taken)?;
        }
        Ok(())
    }

    /// Is there another host that could be asked to reproduce this result? Right after a start others may not have had the time
    /// to show themselves.
    fn could_be_verified(&self, first: LeaseId) -> bool {
        let state = &*self.ledger.state;
        let Some(lease) = state.lease(first) else { return false };
        let job = state.jobs.get(&lease.unit.job());
        let have_said = job.and_then(|job| job.verification_of(&lease.unit));
        let have_said =
            have_said.map(|verification| verification.parties(state)).unwrap_or_default();
        let parties = state.parties();
        let may_come = |host: &Host| {
            let is_known = self.hosts.session(host.id).is_some_and(Session::is_known);
            let party = parties.of(host.id);
            let has_said = party == parties.of(lease.host) || have_said.contains(&party);
            !is_known && !has_said && host.is_admitted() && !host.trust.is_lost()
        };
        self.eligibility().has_verifier(first)
            || (self.ledger.clock.is_warming_up(self.ledger.config.lease_term)
                && state.hosts.values().any(may_come))
    }

    /// A result's verification has ended: it is taken in, or queued for that.
    fn take_in(&mut self, unit: UnitKey, lease: LeaseId) -> Result<(), CoreFault> {
        match unit {
            UnitKey::Train { job, trial, .. } => self.process_next(job, trial),
            UnitKey::Evaluate { .. } | UnitKey::Extra { .. } => self.take_in_evaluation(lease),
        }
    }

    /// A trial is extended: hosts that are asked from now on would train for another length than those that were. So
    /// the results that are being verified are trained anew.
    pub(crate) fn drop_verifications(
        &mut self,
        job: JobId,
        trial: TrialId,
    ) -> Result<(), CoreFault> {
        let Some(known) = self.ledger.state.trial(job, trial) else { return Ok(()) };
        let verifications: Vec<PendingVerification> = known.verifications().cloned().collect();
        for PendingVerification { unit, results, .. } in verifications {
            let live = self.ledger.state.live_leases_of(&unit);
            self.leases().revoke(live)?;
            results.into_keys().try_for_each(|lease| self.supersede(lease))?;
        }
        // A result that has waited behind them may be the first now.
        let first = self.ledger.state.trial(job, trial).and_then(|known| known.awaiting.front());
        match first.is_some_and(|first| self.queue.since(*first).is_none()) {
            true => self.process_next(job, trial),
            false => Ok(()),
        }
    }

    fn is_to_verify(&mut self, lease: LeaseId) -> bool {
        let Some((verify, trust)) = self.ledger.state.verification_of(lease) else { return false };
        seeds::below(self.rng, PER_MILLE) < rate(verify, trust)
    }

    /// Is an evaluation verified: by chance, or because something depends on it?
    fn is_evaluation_to_verify(&mut self, lease: &Lease, evaluated: &Evaluated) -> bool {
        let Some((verify, trust)) = self.ledger.state.verification_of(lease.id) else {
            return false;
        };
        self.is_decisive(lease, evaluated)
            || seeds::below(self.rng, PER_MILLE) < rate(verify, trust)
    }

    /// Would an evaluation make its trial the best of the job or one as good, or end it at the target, or is it outside the search, where its
    /// counts are what was asked for?
    fn is_decisive(&self, lease: &Lease, evaluated: &Evaluated) -> bool {
        let Some(job) = self.ledger.state.jobs.get(&lease.unit.job()) else { return false };
        if let UnitKey::Extra { .. } = lease.unit {
            return true;
        }
        let value = evaluated.value(&job.spec.search);
        job.may_be_best(value) || job.spec.search.reaches_target(value)
    }

    /// Ends a verification where a quorum of hosts came to the same result.
    fn judge(&mut self, verification: &PendingVerification) -> Result<(), CoreFault> {
        let (state, unit) = (&*self.ledger.state, verification.unit);
        let Some(quorum) = state.jobs.get(&unit.job()).map(quorum_of) else { return Ok(()) };
        let (alike, right) = verification.most_alike(state);
        if alike >= quorum {
            let (confirmed, refuted): (Vec<_>, Vec<_>) =
                verification.results.iter().partition(|(_, digest)| Some(**digest) == right);
            let leases = |of: Vec<(&LeaseId, _)>| of.into_iter().map(|(lease, _)| *lease).collect();
            return self.conclude(unit, leases(confirmed), leases(refuted));
        }
        if verification.parties(state).len() >= quorum.saturating_add(MAX_EXTRA_RESULTS) {
            return self.fail_unit(unit);
        }
        self.ledger.waiters.wake(Wake::All);
        Ok(())
    }

    /// Nobody can reproduce a unit: its trial fails, or the evaluation outside the search.
    fn fail_unit(&mut self, unit: UnitKey) -> Result<(), CoreFault> {
        match unit {
            UnitKey::Train { job, trial, .. } | UnitKey::Evaluate { job, trial, .. } => {
                self.fail_trial(job, trial, NOT_REPRODUCIBLE.into())
            }
            UnitKey::Extra { job, name } => {
                self.fail_evaluation(job, name, NOT_REPRODUCIBLE.into())
            }
        }
    }

    fn conclude(
        &mut self,
        unit: UnitKey,
        confirmed: Vec<LeaseId>,
        refuted: Vec<LeaseId>,
    ) -> Result<(), CoreFault> {
        let Some((first, others)) = confirmed.split_first() else { return Ok(()) };
        let (first, others) = (*first, others.to_vec());
        self.ledger.record(Event::Verified { confirmed, refuted: refuted.clone() })?;
        for lease in refuted {
            let host = self.ledger.state.lease(lease).map(|lease| lease.host);
            let reason = OUTVOTED.into();
            self.ledger.record(Event::Rejected { lease, reason, fault: Fault::Host })?;
            self.ledger.effect(Effect::DropUpload(lease));
            if let Some(host) = host {
                self.ledger.waiters.wake(Wake::Host(host));
                self.result_rejected(host);
            }
        }
        for lease in others {
            self.supersede(lease)?;
        }
        self.take_in(unit, first)
    }
}

/// The end of a verification for which no party is left to ask.
enum Verdict {
    /// This result is taken in, unverified.
    TakeIn(LeaseId),
    /// It can't be reproduced.
    Fail,
}

impl Verdict {
    /// What the results so far say; `None` where further hosts are asked, whoever owns them.
    fn of(state: &State, job: &Job, pending: &PendingVerification) -> Option<Self> {
        if pending.is_unanimous() {
            return Some(Self::TakeIn(pending.first));
        }
        let (alike, right) = pending.most_alike_hosts(state);
        if alike >= quorum_of(job) {
            let mut results = pending.results.iter();
            return results.find(|(_, of)| Some(**of) == right).map(|(of, _)| Self::TakeIn(*of));
        }
        (pending.contradictory_owners(state) >= MIN_CONTRADICTORY_OWNERS).then_some(Self::Fail)
    }
}

/// How many of a job's results must be equal.
fn quorum_of(job: &Job) -> usize {
    to_usize(job.spec.placement.verify.map_or(Verify::QUORUM, |verify| verify.quorum))
}

/// How many of a thousand results are verified.
fn rate(verify: Verify, trust: Trust) -> u32 {
    if trust.is_lost() {
        PER_MILLE
    } else if trust.is_earned() {
        (verify.rate * verify.rate / PER_MILLE).max(1)
    } else {
        verify.rate
    }
}
