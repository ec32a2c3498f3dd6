//! Results that other hosts are asked to reproduce before they are taken in.
//!
//! ```text
//!   acknowledged --by chance--> challenged --a quorum agrees------> taken in, the others are refuted
//!        |                        '--------nobody can be asked----> waits for another party
//!        '--------------------------------------------------------> taken in
//! ```
//!
//! A share of the results of each host is verified: a smaller share where it has earned trust, all of them where it has lost
//! trust. Until a quorum agrees nothing is taken in: in hop order the trial waits, and where results are merged the shard does.
//! An unconfirmed result would make everything trained from it doubtful, so waiting costs less. If results differ and no party is
//! left to ask, further hosts of any owner are asked: if one host of an owner is broken, another host of that owner may agree
//! with the other party.
//!
//! Evaluations are verified likewise, and always those on which something depends: that make their trial the best of the job,
//! that end it at the target, and those outside the search.

use super::ResultHandler;
use crate::{effect::Effect, fault::CoreFault, hosts::HostHandler};
use sojourn_protocol::{
    ids::{HostId, JobId, LeaseId, TrialId},
    quantity::to_usize,
    report::Evaluated,
    seeds,
    spec::Verify,
};
use sojourn_scheduling::{hosts::Session, schedule::Verifiers, waiters::Wake};
use sojourn_state::{Event, Fault, Host, Job, Lease, PER_MILLE, PendingVerification, UnitKey};

/// Number of parties beyond the quorum: if so many have given results and no quorum agrees, the arithmetic of the numeric class
/// is at fault.
const MAX_EXTRA_RESULTS: usize = 3;
/// Number of owners whose own hosts contradict each other: from this number on, the arithmetic is at fault once no verifier is
/// left.
const MIN_CONTRADICTORY_OWNERS: usize = 2;
/// Why a trial fails whose results nobody can reproduce.
const NOT_REPRODUCIBLE: &str =
    "every host of its numeric class comes to another result: its arithmetic can't be reproduced";
/// Why a result is rejected that a quorum disagrees with.
const OUTVOTED: &str = "other hosts of its numeric class agree on another result";

impl ResultHandler<'_> {
    /// Queues the first waiting result of a trial for assimilation, or starts its verification. A result that no host could
    /// repeat is superseded.
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
            // When merging, both branches can leave another result in front, which the next iteration processes.
            match self.can_be_repeated(first) {
                true => self.ledger.record(Event::Challenged { lease: first })?,
                false => {
                    self.supersede(first)?;
                    self.ledger.waiters.wake(Wake::All);
                }
            }
        }
    }

    /// Handles a hop's result that has arrived: judges the verification that waited for it, or processes it as the trial's first
    /// waiting result.
    pub(crate) fn result_arrived(&mut self, lease: &Lease) -> Result<(), CoreFault> {
        let (job, id) = (lease.unit.job(), lease.unit.trial());
        let Some(known) = self.ledger.state.jobs.get(&job) else { return Ok(()) };
        let Some(trial) = known.trial(id) else { return Ok(()) };
        match known.verification_of(&lease.unit).cloned() {
            Some(verification) if verification.results.contains_key(&lease.id) => {
                self.judge(&verification)
            }
            // A result that ends at another position can't be compared with the one under verification.
            Some(_) => self.supersede(lease.id),
            None if trial.awaiting.front() == Some(&lease.id) => self.process_next(job, id),
            None => Ok(()),
        }
    }

    /// Handles an evaluation that has arrived: judges the verification that waited for it, takes it in, or starts its
    /// verification.
    pub(crate) fn evaluation_arrived(
        &mut self,
        lease: &Lease,
        evaluated: &Evaluated,
    ) -> Result<(), CoreFault> {
        let job = self.ledger.state.jobs.get(&lease.unit.job());
        if let Some(verification) = job.and_then(|job| job.verification_of(&lease.unit)).cloned() {
            return self.judge(&verification);
        }
        if !self.is_evaluation_to_verify(lease, evaluated) {
            return self.take_in_evaluation(lease.id);
        }
        match self.can_be_repeated(lease.id) {
            true => self.ledger.record(Event::Challenged { lease: lease.id }),
            false => self.supersede(lease.id),
        }
    }

    /// Whether another host could repeat a result's unit exactly: the numeric class is known, and a hop's trial wasn't extended
    /// after the grant. Other results are superseded, and their units are done anew.
    fn can_be_repeated(&self, lease: LeaseId) -> bool {
        let state = &*self.ledger.state;
        let Some(known) = state.lease(lease) else { return false };
        let trial = state.trial(known.unit.job(), known.unit.trial());
        let is_former = known.unit.hop().is_some()
            && trial.is_some_and(|trial| trial.is_of_former_length(lease));
        known.class.is_some() && !is_former
    }

    /// Puts a result into the queue where it is the first of its trial.
    pub(crate) fn queue_assimilation(&mut self, lease: LeaseId) {
        let now = self.ledger.clock.now();
        if self.ledger.state.is_to_assimilate(lease) && self.queue.push(lease, now) {
            self.ledger.effect(Effect::Assimilate);
        }
    }

    /// Ends verifications that need no further result. Either a change in which parties count has made a quorum, or the
    /// arithmetic is at fault.
    pub(crate) fn settle_verifications(&mut self) -> Result<(), CoreFault> {
        let (state, verifiers) = (&*self.ledger.state, Verifiers::of(&self.eligibility()));
        let pending = state.jobs.values().flat_map(|job| {
            let (quorum, pending) = (quorum_of(job), job.incomplete_verifications());
            pending.filter_map(move |(_, pending)| {
                let (alike, result) = pending.most_alike(state);
                let agree = pending.believed(state).is_some()
                    || (alike >= quorum && !verifiers.needs_established(pending, result));
                let contradict = pending.contradictory_owners(state) >= MIN_CONTRADICTORY_OWNERS;
                (agree || contradict).then(|| (pending.clone(), agree))
            })
        });
        let pending: Vec<(PendingVerification, bool)> = pending.collect();
        for (pending, agree) in pending {
            if agree {
                self.judge(&pending)?;
            } else if !self.could_be_verified(pending.first) {
                self.fail_unit(pending.unit)?;
            }
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
        let parties = state.parties_for(lease.unit.job());
        let may_come = |host: &Host| {
            let is_known = self.hosts.session(host.id).is_some_and(Session::is_known);
            let party = parties.of(host.id);
            let has_said = party == parties.of(lease.host) || have_said.contains(&party);
            !is_known && !has_said && host.is_admitted() && !state.has_lost_trust(host.id)
        };
        Verifiers::of(&self.eligibility()).has_verifier(first)
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

    /// Drops the verifications of an extended trial's hops, whose units are trained anew. Hosts asked from now on would train for
    /// another number of total steps, so their results couldn't match.
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
        let state = &self.ledger.state;
        let Some(checks) = state.checks_of(lease) else { return false };
        let unit = state.lease(lease).map(|lease| lease.unit);
        let trial = unit.and_then(|unit| state.trial(unit.job(), unit.trial()));
        // No evaluation would show what is wrong with a model on all folds.
        let is_unseen = trial.is_some_and(|trial| trial.refit.is_some());
        is_unseen || seeds::below(self.rng, PER_MILLE) < checks.hops
    }

    /// Is an evaluation verified: by chance, or because something depends on it?
    fn is_evaluation_to_verify(&mut self, lease: &Lease, evaluated: &Evaluated) -> bool {
        let Some(checks) = self.ledger.state.checks_of(lease.id) else { return false };
        self.is_decisive(lease, evaluated) || seeds::below(self.rng, PER_MILLE) < checks.evaluations
    }

    /// Would an evaluation make its trial the best of the job or one as good, or end it at the target, or is it outside the search, where its
    /// counts are what was asked for?
    fn is_decisive(&self, lease: &Lease, evaluated: &Evaluated) -> bool {
        let Some(job) = self.ledger.state.jobs.get(&lease.unit.job()) else { return false };
        if let UnitKey::Extra { .. } = lease.unit {
            return true;
        }
        let value = evaluated.value(&job.spec.search);
        job.may_be_best(lease.unit.trial(), value) || job.spec.search.reaches_target(value)
    }

    /// Ends a verification where a quorum of hosts came to the same result.
    fn judge(&mut self, verification: &PendingVerification) -> Result<(), CoreFault> {
        let (state, unit) = (&*self.ledger.state, verification.unit);
        let Some(quorum) = state.jobs.get(&unit.job()).map(quorum_of) else { return Ok(()) };
        let (alike, right) = match verification.believed(state) {
            // The result of a host that itself needs no verification decides alone.
            Some(right) => (quorum, Some(right)),
            None => verification.most_alike(state),
        };
        if alike >= quorum
            && !Verifiers::of(&self.eligibility()).needs_established(verification, right)
        {
            let (confirmed, refuted): (Vec<_>, Vec<_>) =
                verification.results.iter().partition(|(_, digest)| Some(**digest) == right);
            let leases = |of: Vec<(&LeaseId, _)>| of.into_iter().map(|(lease, _)| *lease).collect();
            return self.conclude(unit, leases(confirmed), leases(refuted));
        }
        let parties = verification.parties(state).len();
        if alike < quorum && parties >= quorum.saturating_add(MAX_EXTRA_RESULTS) {
            return self.fail_unit(unit);
        }
        self.ledger.waiters.wake(Wake::All);
        Ok(())
    }

    /// Recounts the numeric classes that a party's hosts offer, after the party has lost or regained trust. A host that has lost
    /// trust proves no class.
    fn count_offers_of_party(&mut self, host: HostId) {
        let state = &*self.ledger.state;
        // Hosts that were never in contact offer nothing.
        let in_contact = self.hosts.sessions().map(|(other, _)| other);
        let hosts = in_contact.filter(|other| state.are_of_one_party(host, *other));
        let hosts: Vec<HostId> = hosts.collect();
        for host in hosts {
            HostHandler { ledger: self.ledger.reborrow(), hosts: self.hosts }.update_fleet(host);
        }
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
        let state = &*self.ledger.state;
        let hosts = confirmed.iter().chain(&refuted).filter_map(|of| Some(state.lease(*of)?.host));
        let trusted: Vec<(HostId, bool)> =
            hosts.map(|host| (host, !state.has_lost_trust(host))).collect();
        self.ledger.record(Event::Verified { confirmed, refuted: refuted.clone() })?;
        for (host, was_trusted) in trusted {
            if self.ledger.state.has_lost_trust(host) == was_trusted {
                self.count_offers_of_party(host);
            }
        }
        let mut distrusted = Vec::new();
        for lease in refuted {
            let host = self.ledger.state.lease(lease).map(|lease| lease.host);
            let reason = OUTVOTED.into();
            self.ledger.record(Event::Rejected { lease, reason, fault: Fault::Host })?;
            self.ledger.effect(Effect::DropUpload(lease));
            if let Some(host) = host {
                distrusted.push(host);
                self.ledger.waiters.wake(Wake::Host(host));
                self.result_rejected(host);
            }
        }
        for lease in others {
            self.supersede(lease)?;
        }
        self.take_in(unit, first)?;
        // After that, since trials that go back have other units.
        if distrusted.is_empty() { Ok(()) } else { self.take_back(&distrusted) }
    }
}

/// How many of a job's results must be equal.
fn quorum_of(job: &Job) -> usize {
    job.verified_quorum().unwrap_or(to_usize(Verify::QUORUM))
}
