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

use super::ResultHandler;
use crate::{
    dispatch::Wake,
    effect::Effect,
    event::{Event, Fault},
    fault::CoreFault,
    hosts::DeviceRef,
    schedule::{Assignment, Eligibility, GrantReason, Scheduler},
    state::{Job, Lease, PendingVerification, Trial, Trust},
};
use sojourn_protocol::{
    ids::{HostId, JobId, LeaseId, TrialId},
    quantity::to_usize,
    seeds,
    spec::Verify,
};
use std::sync::Arc;

/// When the results of so many more hosts than the quorum differ, the numeric class itself is at fault.
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
            self.ledger.record(if self.eligibility().has_verifier(first) {
                Event::Challenged { lease: first }
            } else {
                Event::Unverified { lease: first }
            })?;
        }
    }

    /// A hop's result waits to be taken in. A verification may have waited for it.
    pub(crate) fn result_arrived(&mut self, lease: &Lease) -> Result<(), CoreFault> {
        let (job, id) = (lease.unit.job(), lease.unit.trial());
        let Some(trial) = self.ledger.state.trial(job, id) else { return Ok(()) };
        match trial.pending_verification_of(lease).cloned() {
            Some(verification) if verification.results.contains_key(&lease.id) => {
                self.judge(job, id, &verification)
            }
            // It ends elsewhere, and says nothing of the result that is verified.
            Some(_) => self.supersede(lease.id),
            None if trial.awaiting.front() == Some(&lease.id) => self.process_next(job, id),
            None => Ok(()),
        }
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
            let trials = job.open.verifications().filter_map(|trial| job.trial(trial));
            let verifications = trials.flat_map(Trial::incomplete_verifications);
            verifications.filter(|verification| verification.is_unanimous()).cloned()
        });
        let verifications: Vec<PendingVerification> = verifications.collect();
        for PendingVerification { first, results, .. } in verifications {
            let unit = self.ledger.state.lease(first).map(|lease| lease.unit);
            let Some(unit) = unit.filter(|_| !self.eligibility().has_verifier(first)) else {
                continue;
            };
            for lease in results.into_keys().filter(|lease| *lease != first) {
                self.supersede(lease)?;
            }
            self.ledger.record(Event::Unverified { lease: first })?;
            self.process_next(unit.job(), unit.trial())?;
        }
        Ok(())
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
        Ok(())
    }

    fn is_to_verify(&mut self, lease: LeaseId) -> bool {
        let Some((verify, trust)) = self.ledger.state.verification_of(lease) else { return false };
        seeds::below(self.rng, PER_MILLE) < rate(verify, trust)
    }

    /// Ends a verification where a quorum of hosts came to the same result.
    fn judge(
        &mut self,
        job: JobId,
        trial: TrialId,
        verification: &PendingVerification,
    ) -> Result<(), CoreFault> {
        let Some(known) = self.ledger.state.jobs.get(&job) else { return Ok(()) };
        let quorum = known.spec.placement.verify.map_or(Verify::QUORUM, |verify| verify.quorum);
        let quorum = to_usize(quorum);
        let (alike, of) = verification.most_alike();
        if alike >= quorum {
            let right = of.and_then(|of| verification.results.get(&of));
            let (confirmed, refuted): (Vec<_>, Vec<_>) =
                verification.results.iter().partition(|(_, digest)| Some(*digest) == right);
            let leases = |of: Vec<(&LeaseId, _)>| of.into_iter().map(|(lease, _)| *lease).collect();
            return self.conclude(leases(confirmed), leases(refuted));
        }
        if verification.results.len() >= quorum.saturating_add(MAX_EXTRA_RESULTS) {
            return self.fail_trial(job, trial, NOT_REPRODUCIBLE.into());
        }
        self.ledger.waiters.wake(Wake::All);
        Ok(())
    }

    fn conclude(
        &mut self,
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
        let unit = self.ledger.state.lease(first).map(|lease| lease.unit);
        match unit {
            Some(unit) => self.process_next(unit.job(), unit.trial()),
            None => Ok(()),
        }
    }
}

impl Eligibility<'_> {
    /// Is there another host that could be asked to reproduce this result?
    pub(crate) fn has_verifier(&self, first: LeaseId) -> bool {
        let Some(lease) = self.state.lease(first) else { return false };
        let unit = lease.unit;
        let Some(job) = self.state.jobs.get(&unit.job()) else { return false };
        let Some(trial) = job.trial(unit.trial()) else { return false };
        let verification = trial.pending_verification_of(lease);
        let has_device = |host: HostId| {
            let session = self.hosts.session(host);
            let mut devices = session.into_iter().flat_map(|session| session.devices.values());
            devices.any(|slots| {
                lease.class.is_some_and(|class| slots.classes.offers(class))
                    && self.fits_memory(slots, trial)
            })
        };
        lease.class.is_some()
            && self.live_hosts(lease.class).any(|host| {
                host != lease.host
                    && !self.hosts.is_cooling_down(host, self.now)
                    && self.state.admits_host(job, host)
                    && has_device(host)
                    && verification.is_none_or(|verification| self.may_verify(verification, host))
                    && !self.state.has_lost_trust(host)
            })
    }

    /// May the host try: it hasn't failed at it, or every other host that could be asked has failed as often?
    fn may_try_again(
        &self,
        trial: &Trial,
        verification: &PendingVerification,
        first: &Lease,
        host: HostId,
    ) -> bool {
        let failures = trial.hop_failures();
        let count = |host: &HostId| failures.get(host).map_or(0, |failed| failed.count);
        let own = count(&host);
        let mut others = self.live_hosts(first.class).filter(|other| {
            *other != host
                && !self.hosts.is_cooling_down(*other, self.now)
                && self.may_verify(verification, *other)
        });
        own == 0 || others.all(|other| count(&other) >= own)
    }

    /// May the host be asked: it hasn't given its result yet, and is trusted?
    pub(crate) fn may_verify(&self, verification: &PendingVerification, host: HostId) -> bool {
        let has_said = |lease: &LeaseId| self.state.lease(*lease).is_some_and(|of| of.host == host);
        !verification.results.keys().any(has_said) && !self.state.has_lost_trust(host)
    }
}

impl Scheduler<'_> {
    /// The verification that a device could do for a job.
    pub(crate) fn verification_for(&self, job: &Job, at: DeviceRef<'_>) -> Option<Assignment> {
        let trials = job.open.verifications().filter_map(|trial| job.trial(trial));
        let mut verifications = trials.flat_map(|trial| {
            trial.incomplete_verifications().map(move |verification| (trial, verification))
        });
        verifications.find_map(|(trial, verification)| {
            let first = self.state.lease(verification.first)?;
            let fits = !at.ahead
                && first.class.is_some_and(|class| at.slots.classes.offers(class))
                && self.may_verify(verification, at.host)
                && !trial.blobs().any(|blob| self.state.blobs.is_lost(&blob))
                && self.may_try_again(trial, verification, first, at.host)
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
    let reached = first.then.iter().position(|shard| *shard == verification.end.shard);
    let then = first.then.iter().take(reached.map_or(0, |at| at + 1)).copied().collect();
    Assignment {
        unit: verification.unit,
        then,
        until: Some(verification.end.batch),
        base: first.base,
        speculative_for: None,
        after: None,
        why: GrantReason::Verification(first.id),
        planned: None,
    }
}
