//! Who may reproduce a result, and the unit that it is asked for.

use crate::{
    event::UnitKey,
    hosts::DeviceRef,
    schedule::{Assignment, Eligibility, GrantReason, Scheduler},
    state::{FailedBy, Job, Lease, PendingVerification, Trial},
};
use sojourn_protocol::{
    digest::BlobRef,
    ids::{HostId, LeaseId},
    manifest::DataSplit,
};
use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

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
