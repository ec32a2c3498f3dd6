//! Results that other hosts are asked to reproduce before they are taken in.
//!
//! ```text
//!   acknowledged --by chance--> challenged --a quorum agrees------> taken in, the others are refuted
//!        |                        '--------nobody can be asked----> taken in, unverified
//!        '--------------------------------------------------------> taken in
//! ```
//!
//! A share of the results of each host is verified: a smaller share where it has earned trust, all of them where it has
//! lost trust. While hosts disagree nothing is taken in: in hop order the trial waits, and where results are merged the
//! shard does.
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
    hosts::{DeviceRef, Session},
    schedule::{Assignment, Eligibility, GrantReason, Scheduler},
    state::{FailedBy, Host, Job, Lease, PendingVerification, Trial, Trust},
};
use sojourn_protocol::{
    digest::BlobRef,
    ids::{HostId, JobId, LeaseId, TrialId},
    manifest::DataSplit,
    metrics::ByClass,
    quantity::to_usize,
    report::Evaluated,
    seeds,
    spec::Verify,
};
use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

/// When the results of so many more hosts (owners, where there are several) than the quorum differ, the numeric class itself is at fault.
const MAX_EXTRA_RESULTS: usize = 3;
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
            // Where results are merged, another one is the first after either.
            self.ledger.record(if self.could_be_verified(first) {
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

    /// Ends verifications for which there is no host left to ask.
    pub(crate) fn close_unanswerable(&mut self) -> Result<(), CoreFault> {
        let verifications = self.ledger.state.jobs.values().flat_map(|job| {
            let verifications =
                job.incomplete_verifications().map(|(_, verification)| verification);
            verifications.filter(|verification| verification.is_unanimous()).cloned()
        });
        let verifications: Vec<PendingVerification> = verifications.collect();
        for PendingVerification { first, unit, results, .. } in verifications {
            if self.could_be_verified(first) {
                continue;
            }
            for lease in results.into_keys().filter(|lease| *lease != first) {
                self.supersede(lease)?;
            }
            self.ledger.record(Event::Unverified { lease: first })?;
            self.take_in(unit, first)?;
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
            !is_known && !has_said && !host.revoked && !host.trust.is_lost()
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
        let f1 = evaluated.by_class.as_ref().map(ByClass::macro_f1);
        let value = job.spec.search.metric.value(&evaluated.sums(), f1);
        job.may_be_best(value) || job.spec.search.reaches_target(value)
    }

    /// Ends a verification where a quorum of hosts came to the same result.
    fn judge(&mut self, verification: &PendingVerification) -> Result<(), CoreFault> {
        let (state, unit) = (&*self.ledger.state, verification.unit);
        let Some(known) = state.jobs.get(&unit.job()) else { return Ok(()) };
        let quorum = known.spec.placement.verify.map_or(Verify::QUORUM, |verify| verify.quorum);
        let quorum = to_usize(quorum);
        let (alike, right) = verification.most_alike(state);
        if alike >= quorum {
            let (confirmed, refuted): (Vec<_>, Vec<_>) =
                verification.results.iter().partition(|(_, digest)| Some(**digest) == right);
            let leases = |of: Vec<(&LeaseId, _)>| of.into_iter().map(|(lease, _)| *lease).collect();
            return self.conclude(unit, leases(confirmed), leases(refuted));
        }
        if verification.parties(state).len() >= quorum.saturating_add(MAX_EXTRA_RESULTS) {
            return match unit {
                UnitKey::Train { job, trial, .. } | UnitKey::Evaluate { job, trial, .. } => {
                    self.fail_trial(job, trial, NOT_REPRODUCIBLE.into())
                }
                UnitKey::Extra { job, name } => {
                    self.fail_evaluation(job, name, NOT_REPRODUCIBLE.into())
                }
            };
        }
        self.ledger.waiters.wake(Wake::All);
        Ok(())
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
                self.cool_down_if_failing(host);
            }
        }
        for lease in others {
            self.supersede(lease)?;
        }
        self.take_in(unit, first)
    }
}

impl Eligibility<'_> {
    /// Is there another host that could be asked to reproduce this result?
    pub(crate) fn has_verifier(&self, first: LeaseId) -> bool {
        let Some(lease) = self.state.lease(first) else { return false };
        let unit = lease.unit;
        let Some(job) = self.state.jobs.get(&unit.job()) else { return false };
        let Some(trial) = job.trial(unit.trial()) else { return false };
        let verification = job.verification_of(&unit);
        let parties = self.state.parties();
        let own = parties.of(lease.host);
        let have_said = verification.map(|verification| verification.parties(self.state));
        let may_say =
            |party| have_said.as_ref().is_none_or(|have_said| !have_said.contains(&party));
        let has_device = |host: HostId| {
            let session = self.hosts.session(host);
            let mut devices = session.into_iter().flat_map(|session| session.devices.values());
            devices.any(|slots| {
                lease.class.is_some_and(|class| slots.classes.offers(class))
                    && self.fits_memory(slots, trial)
            })
        };
        let is_lost = unit.hop().is_none() && self.is_base_lost(job, trial, &unit);
        lease.class.is_some()
            && !is_lost
            && self.live_hosts(lease.class).any(|host| {
                parties.of(host) != own
                    && self.has_disk_for(job, &unit, host)
                    && !self.hosts.is_cooling_down(host, self.now)
                    && self.state.admits_host(job, host)
                    && has_device(host)
                    && may_say(parties.of(host))
                    && !self.state.has_lost_trust(host)
            })
    }

    /// May the host try: it hasn't failed at it, or every other host that could be asked has failed as often?
    fn may_try_again(
        &self,
        job: &Job,
        trial: &Trial,
        verification: &PendingVerification,
        first: &Lease,
        host: HostId,
    ) -> bool {
        let failures: Cow<'_, BTreeMap<HostId, FailedBy>> = match verification.unit {
            UnitKey::Train { .. } => trial.hop_failures(),
            of => job.failures_of(&of).map(Cow::Borrowed).unwrap_or_default(),
        };
        let count = |host: &HostId| failures.get(host).map_or(0, |failed| failed.count);
        let own = count(&host);
        if own == 0 {
            return true;
        }
        let parties = self.state.parties();
        let have_said = verification.parties(self.state);
        let mut others = self.live_hosts(first.class).filter(|other| {
            *other != host
                && !self.hosts.is_cooling_down(*other, self.now)
                && self.has_disk_for(job, &verification.unit, *other)
                && !have_said.contains(&parties.of(*other))
                && !self.state.has_lost_trust(*other)
        });
        others.all(|other| count(&other) >= own)
    }

    /// The rows and the checkpoint of a unit that is an evaluation.
    fn evaluation_of(&self, job: &Job, unit: &UnitKey) -> Option<(DataSplit, BlobRef)> {
        match unit {
            UnitKey::Train { .. } => None,
            UnitKey::Evaluate { trial, epoch, .. } => {
                let evaluation = job.trial(*trial)?.evaluations.get(epoch)?;
                Some((DataSplit::Valid, evaluation.checkpoint))
            }
            UnitKey::Extra { name, .. } => Some((name.split, job.extra(name)?.checkpoint)),
        }
    }

    /// Does the host lend the disk for a unit that is verified?
    fn has_disk_for(&self, job: &Job, unit: &UnitKey, host: HostId) -> bool {
        match self.evaluation_of(job, unit) {
            Some((split, checkpoint)) => self.lends_disk_for(job, split, checkpoint, host),
            None => job
                .trial(unit.trial())
                .is_none_or(|trial| self.lends_disk_for_hops(job, trial, host)),
        }
    }

    /// Has the store lost what a unit that is verified begins with?
    fn is_base_lost(&self, job: &Job, trial: &Trial, unit: &UnitKey) -> bool {
        match self.evaluation_of(job, unit) {
            Some((_, checkpoint)) => self.state.blobs.is_lost(&checkpoint.sha256),
            None => trial.blobs().any(|blob| self.state.blobs.is_lost(&blob)),
        }
    }

    /// May the host be asked: it, and in a deployment of several owners its owner, hasn't given a result yet, and it is
    /// trusted?
    pub(crate) fn may_verify(&self, verification: &PendingVerification, host: HostId) -> bool {
        let parties = self.state.parties();
        let own = parties.of(host);
        let has_said =
            |lease: &LeaseId| self.state.lease(*lease).is_some_and(|of| parties.of(of.host) == own);
        !verification.results.keys().any(has_said) && !self.state.has_lost_trust(host)
    }
}

impl Scheduler<'_> {
    /// The verification that a device could do for a job.
    pub(crate) fn verification_for(&self, job: &Job, at: DeviceRef<'_>) -> Option<Assignment> {
        job.incomplete_verifications().find_map(|(trial, verification)| {
            let first = self.state.lease(verification.first)?;
            let fits = !at.ahead
                && first.class.is_some_and(|class| at.slots.classes.offers(class))
                && self.may_verify(verification, at.host)
                && !self.is_base_lost(job, trial, &verification.unit)
                && self.may_try_again(job, trial, verification, first, at.host)
                && self.has_disk_for(job, &verification.unit, at.host)
                && self.fits_memory(at.slots, trial);
            fits.then(|| verification_of(verification, first))
        })
    }
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

/// The unit of a result that is verified, as far as that came.
fn verification_of(verification: &PendingVerification, first: &Arc<Lease>) -> Assignment {
    let end = verification.end;
    let reached = first.then.iter().position(|shard| Some(*shard) == end.map(|end| end.shard));
    let then = first.then.iter().take(reached.map_or(0, |at| at + 1)).copied().collect();
    Assignment {
        unit: verification.unit,
        then,
        until: end.map(|end| end.batch),
        base: first.base,
        speculative_for: None,
        after: None,
        why: GrantReason::Verification(first.id),
        planned: None,
    }
}
