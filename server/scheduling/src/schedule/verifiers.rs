//! Verifiers: the hosts that may reproduce a result, and the unit that they are asked for.

use super::{assignment::Assignment, eligibility::Eligibility, explain::GrantReason};
use crate::hosts::{DeviceRef, Hosts};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::{HostId, LeaseId},
    manifest::DataSplit,
    time::UnixMillis,
};
use sojourn_state::{FailedBy, Job, Lease, PendingVerification, State, Trial, UnitKey};
use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

/// The hosts that may reproduce a result. It reads, and changes nothing.
#[derive(Clone, Copy)]
pub struct Verifiers<'a> {
    /// The durable state.
    pub state: &'a State,
    /// Hosts in contact.
    pub hosts: &'a Hosts,
    /// The time of the step.
    pub now: UnixMillis,
    /// Which hosts may do a unit.
    pub eligible: Eligibility<'a>,
}

impl<'a> Verifiers<'a> {
    /// The view that a wider one has the parts for.
    pub fn of(eligible: &Eligibility<'a>) -> Self {
        let Eligibility { state, hosts, now, .. } = *eligible;
        Self { state, hosts, now, eligible: *eligible }
    }
}

impl Verifiers<'_> {
    /// Is there a host that could be asked to reproduce this result, of a party that hasn't given one?
    pub fn has_verifier(&self, first: LeaseId) -> bool {
        let lease = self.state.lease(first);
        let Some(lease) = lease else { return false };
        let parties = self.state.parties_for(lease.unit.job());
        let pending = self.verification_of(first);
        let mut have_said = pending.map(|pending| pending.parties(self.state)).unwrap_or_default();
        have_said.insert(parties.of(lease.host));
        self.able_to_repeat(first).any(|host| !have_said.contains(&parties.of(host)))
    }

    /// Is there any host that could be asked next for this verification?
    pub fn has_next_verifier(&self, pending: &PendingVerification) -> bool {
        let asks_any = self.asks_any_host(pending);
        self.able_to_repeat(pending.first).any(|host| self.is_wanted(pending, host, asks_any))
    }

    /// Results differ, and no party is left that hasn't given one: hosts are asked whoever owns them, unless only another party's
    /// word counts.
    fn asks_any_host(&self, pending: &PendingVerification) -> bool {
        let job = self.state.jobs.get(&pending.unit.job());
        let is_strict = job.is_some_and(|job| job.spec.placement.verifies_strangers());
        !is_strict && !pending.is_unanimous() && !self.has_verifier(pending.first)
    }

    /// Could a host get a unit, as far as its session says: has it a capable device, the disk and the class, is it admitted,
    /// and trusted where a result is verified?
    pub fn could_get(&self, job: &Job, trial: &Trial, unit: &UnitKey, host: HostId) -> bool {
        let pending = job.verification_of(unit);
        let first = pending.and_then(|pending| self.state.lease(pending.first)?.class);
        let class = first.or_else(|| self.state.required_class(job, trial));
        let has_device = match (class, unit.hop()) {
            (None, Some(_)) => self.eligible.has_device_for_hops(job, trial, host),
            (class, _) => self.eligible.has_device_for(trial, class, host),
        };
        self.state.admits_host(job, host)
            && self.has_disk_for(job, unit, host)
            && has_device
            && pending.is_none_or(|pending| self.may_verify(pending, host))
    }

    /// Hosts that could do a result's unit again: in contact, of its class, trusted, admitted to the job, not cooling down, with the
    /// memory and the disk.
    fn able_to_repeat(&self, first: LeaseId) -> impl Iterator<Item = HostId> {
        let lease = self.state.lease(first).filter(|lease| lease.class.is_some());
        let known = lease.and_then(|lease| {
            let job = self.state.jobs.get(&lease.unit.job())?;
            let trial = job.trial(lease.unit.trial())?;
            let is_lost = lease.unit.hop().is_none() && self.is_base_lost(job, trial, &lease.unit);
            (!is_lost).then_some((lease, job, trial))
        });
        known.into_iter().flat_map(move |(lease, job, trial)| {
            self.eligible.live_hosts(lease.class).filter(move |host| {
                self.has_disk_for(job, &lease.unit, *host)
                    && !self.hosts.is_cooling_down(*host, self.now)
                    && self.state.admits_host(job, *host)
                    && !self.state.has_lost_trust(*host)
                    && self.eligible.has_device_for(trial, lease.class, *host)
            })
        })
    }

    fn verification_of(&self, lease: LeaseId) -> Option<&PendingVerification> {
        let unit = self.state.lease(lease)?.unit;
        self.state.jobs.get(&unit.job())?.verification_of(&unit)
    }

    /// May the host try: it hasn't failed at it, or every other host that could be asked has failed as often?
    fn may_try_again(
        &self,
        job: &Job,
        trial: &Trial,
        pending: &PendingVerification,
        host: HostId,
    ) -> bool {
        let failures: Cow<'_, BTreeMap<HostId, FailedBy>> = match pending.unit {
            UnitKey::Train { .. } => trial.hop_failures(),
            of => job.failures_of(&of).map(Cow::Borrowed).unwrap_or_default(),
        };
        let count = |host: &HostId| failures.get(host).map_or(0, |failed| failed.count);
        let own = count(&host);
        if own == 0 {
            return true;
        }
        let asks_any = self.asks_any_host(pending);
        let mut others = self
            .able_to_repeat(pending.first)
            .filter(|other| *other != host && self.is_wanted(pending, *other, asks_any));
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
    pub fn has_disk_for(&self, job: &Job, unit: &UnitKey, host: HostId) -> bool {
        match self.evaluation_of(job, unit) {
            Some((split, checkpoint)) => self.eligible.lends_disk_for(job, split, checkpoint, host),
            None => job
                .trial(unit.trial())
                .is_none_or(|trial| self.eligible.lends_disk_for_hops(job, trial, host)),
        }
    }

    /// Has the store lost what a unit that is verified begins with?
    fn is_base_lost(&self, job: &Job, trial: &Trial, unit: &UnitKey) -> bool {
        match self.evaluation_of(job, unit) {
            Some((_, checkpoint)) => self.state.blobs.is_lost(&checkpoint.sha256),
            None => trial.blobs().any(|blob| self.state.blobs.is_lost(&blob.sha256)),
        }
    }

    /// May the host be asked: nobody of its party has given a result yet, and it is trusted? Where results differ and no
    /// such host could be asked, the host itself hasn't.
    pub fn may_verify(&self, pending: &PendingVerification, host: HostId) -> bool {
        // Whether any host is asked takes a look at all of them: only where it matters.
        self.is_wanted(pending, host, false)
            || (self.is_wanted(pending, host, true) && self.asks_any_host(pending))
    }

    fn is_wanted(&self, pending: &PendingVerification, host: HostId, asks_any: bool) -> bool {
        let parties = self.state.parties_for(pending.unit.job());
        let own = parties.of(host);
        let mut have_said = pending.hosts(self.state);
        let has_said = match asks_any {
            true => have_said.any(|other| other == host),
            false => have_said.any(|other| parties.of(other) == own),
        };
        !has_said && !self.state.has_lost_trust(host) && !self.gives_way(pending, host)
    }

    /// Is a host a stranger's who hasn't earned trust, while an established one could be asked? Owners in league would confirm each
    /// other's lies.
    fn gives_way(&self, pending: &PendingVerification, host: HostId) -> bool {
        !self.state.is_established(host) && self.has_established_verifier(pending)
    }

    /// Have only strangers who haven't earned trust come to this result, though by default an established party could be asked, which
    /// hasn't given one?
    pub fn needs_established(&self, pending: &PendingVerification, result: Option<Digest>) -> bool {
        let alike = pending.results.iter().filter(|(_, digest)| Some(**digest) == result);
        let mut hosts = alike.filter_map(|(lease, _)| Some(self.state.lease(*lease)?.host));
        !hosts.any(|host| self.state.is_established(host)) && self.has_established_verifier(pending)
    }

    fn has_established_verifier(&self, pending: &PendingVerification) -> bool {
        let job = self.state.jobs.get(&pending.unit.job());
        if !job.is_some_and(|job| job.spec.placement.verifies_strangers()) {
            return false;
        }
        let (parties, have_said) =
            (self.state.parties_for(pending.unit.job()), pending.parties(self.state));
        let mut hosts = self.able_to_repeat(pending.first);
        hosts.any(|host| self.state.is_established(host) && !have_said.contains(&parties.of(host)))
    }
}

impl Verifiers<'_> {
    /// The verification that a device could do for a job.
    pub fn verification_for(&self, job: &Job, at: DeviceRef<'_>) -> Option<Assignment> {
        job.incomplete_verifications().find_map(|(trial, verification)| {
            let first = self.state.lease(verification.first)?;
            let fits = !at.ahead
                && first.class.is_some_and(|class| at.slots.classes.offers(class))
                && self.may_verify(verification, at.host)
                && !self.is_base_lost(job, trial, &verification.unit)
                && self.may_try_again(job, trial, verification, at.host)
                && self.has_disk_for(job, &verification.unit, at.host)
                && self.eligible.is_capable(at.slots, trial);
            fits.then(|| verification_of(verification, first))
        })
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
