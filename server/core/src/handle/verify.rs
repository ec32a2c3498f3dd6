//! Results that other hosts are to come to as well before they are taken in (DESIGN section 11).
//!
//! ```text
//!   acknowledged --chance--> challenged --enough came to the same--> taken in, the others refuted
//!        |                       '------nobody is there to ask-----> taken in, unverified
//!        '--------------------------------------------------------> taken in
//! ```
//!
//! A host that hasn't earned trust has a share of its results checked, one that has a share of that share, and one that
//! has lost it all of them. While opinions differ nothing is taken in: in hop order the trial waits, and where results
//! are merged the shard does.

use super::{choose::Chosen, fit::Place, reason::Reason};
use crate::{
    core::Core,
    effect::Effect,
    event::{Event, Fault, LeaseEnd},
    state::{Check, Job, Lease, Trial, Trust},
};
use sojourn_protocol::{
    ids::{HostId, JobId, LeaseId, TrialId},
    seeds,
    spec::Verify,
    view::{HopRecord, Verification},
};
use std::sync::Arc;

/// So many results more than the quorum may differ before it is the class that is at fault.
const MORE_OPINIONS: usize = 3;
/// What a rate is of.
const ALL: u32 = 1000;

impl Core {
    /// A trial has a result that waits: has the first one taken in, or checked before.
    pub(crate) fn take_up(&mut self, job: JobId, trial: TrialId) {
        while !self.has_failed() {
            let Some(known) = self.state.trial(job, trial) else { return };
            let Some(first) = known.awaiting.front().copied() else { return };
            if known.check.is_some() {
                return;
            }
            if known.verdict_of(first).is_some() || !self.is_to_check(first) {
                return self.queue_assimilation(first);
            }
            if !self.has_witness(first) {
                self.emit(Event::Unverified { lease: first });
                return self.queue_assimilation(first);
            }
            self.emit(Event::Challenged { lease: first });
            self.soft.work_changed = true;
        }
    }

    /// A result waits: it may be one that a check waited for.
    pub(crate) fn waits(&mut self, lease: &Lease) {
        let (job, id) = (lease.unit.job(), lease.unit.trial());
        let Some(trial) = self.state.trial(job, id) else { return };
        if let Some(check) = trial.check_of(lease).cloned() {
            match check.results.contains_key(&lease.id) {
                true => self.judge(job, id, &check),
                // It ends elsewhere, and says nothing of the result that is checked.
                false => self.supersede(lease.id),
            }
        } else if trial.awaiting.front() == Some(&lease.id) {
            self.take_up(job, id);
        }
    }

    /// Gives up checks for which there is nobody any more to ask.
    pub(crate) fn renew_checks(&mut self) {
        let checks = self.state.jobs.values().flat_map(|job| {
            let trials = job.open.checks().filter_map(|trial| job.trial(trial));
            let checks = trials.flat_map(Trial::open_checks);
            checks.filter(|check| check.is_unanimous()).cloned()
        });
        let checks: Vec<Check> = checks.collect();
        for Check { first, results, .. } in checks {
            let unit = self.state.lease(first).map(|lease| lease.unit);
            if let Some(unit) = unit.filter(|_| !self.has_witness(first)) {
                for lease in results.into_keys().filter(|lease| *lease != first) {
                    self.supersede(lease);
                }
                self.emit(Event::Unverified { lease: first });
                self.take_up(unit.job(), unit.trial());
            }
        }
    }

    /// A trial is to be longer: who is asked from now on would train by another length than those that were. What is
    /// checked is trained anew.
    pub(crate) fn drop_checks(&mut self, job: JobId, trial: TrialId) {
        let Some(known) = self.state.trial(job, trial) else { return };
        let checks: Vec<Check> = known.checks().cloned().collect();
        for Check { unit, results, .. } in checks {
            for lease in self.live_attempts(&unit) {
                self.end_lease(lease, LeaseEnd::Revoked);
            }
            for lease in results.into_keys() {
                self.supersede(lease);
            }
        }
    }

    /// The check that a place could do for a job.
    pub(crate) fn check_for(&self, job: &Job, place: Place<'_>) -> Option<Chosen> {
        let trials = job.open.checks().filter_map(|trial| job.trial(trial));
        let mut checks =
            trials.flat_map(|trial| trial.open_checks().map(move |check| (trial, check)));
        checks.find_map(|(trial, check)| {
            let first = self.state.lease(check.first)?;
            let fits = !place.ahead
                && first.class == Some(place.class())
                && self.may_witness(check, place.host)
                && !trial.blobs().any(|blob| self.state.blobs.is_lost(&blob))
                && self.may_try_again(trial, check, first, place.host)
                && self.has_room(place.slots, trial);
            fits.then(|| chosen(check, first))
        })
    }

    fn is_to_check(&mut self, lease: LeaseId) -> bool {
        let Some((verify, trust)) = self.check_of(lease) else { return false };
        seeds::below(&mut self.chance, ALL) < rate(verify, trust)
    }

    /// How results of a lease's job are checked, where they are, and how far its host is trusted.
    fn check_of(&self, lease: LeaseId) -> Option<(Verify, Trust)> {
        let lease = self.state.lease(lease)?;
        let job = self.state.jobs.get(&lease.unit.job())?;
        let placement = &job.spec.placement;
        let verify = placement.verify.filter(|_| placement.reproducible)?;
        Some((verify, self.state.hosts.get(&lease.host)?.trust))
    }

    /// Is there another host that could come to this result as well?
    fn has_witness(&self, first: LeaseId) -> bool {
        let Some(lease) = self.state.lease(first) else { return false };
        let unit = lease.unit;
        let Some(job) = self.state.jobs.get(&unit.job()) else { return false };
        let Some(trial) = job.trial(unit.trial()) else { return false };
        let check = trial.check_of(lease);
        let has_place = |host: HostId| {
            let contact = self.soft.contacts.get(&host);
            let mut devices = contact.into_iter().flat_map(|contact| contact.devices.values());
            devices.any(|slots| {
                lease.class == Some(slots.device.numeric_class) && self.has_room(slots, trial)
            })
        };
        lease.class.is_some()
            && self.hosts_in_contact(lease.class).any(|host| {
                host != lease.host
                    && !self.soft.is_resting(host, self.now)
                    && self.may_employ(job, host)
                    && has_place(host)
                    && check.is_none_or(|check| self.may_witness(check, host))
                    && !self.has_lost_trust(host)
            })
    }

    /// Hasn't the host failed at it, or has every other one that could be asked failed as often?
    fn may_try_again(&self, trial: &Trial, check: &Check, first: &Lease, host: HostId) -> bool {
        let failures = trial.hop_failures();
        let count = |host: &HostId| failures.get(host).map_or(0, |failed| failed.count);
        let own = count(&host);
        let mut others = self.hosts_in_contact(first.class).filter(|other| {
            *other != host
                && !self.soft.is_resting(*other, self.now)
                && self.may_witness(check, *other)
        });
        own == 0 || others.all(|other| count(&other) >= own)
    }

    /// Hasn't the host said what it came to, and may it be asked?
    pub(super) fn may_witness(&self, check: &Check, host: HostId) -> bool {
        let has_said = |lease: &LeaseId| self.state.lease(*lease).is_some_and(|of| of.host == host);
        !check.results.keys().any(has_said) && !self.has_lost_trust(host)
    }

    fn has_lost_trust(&self, host: HostId) -> bool {
        self.state.hosts.get(&host).is_some_and(|host| host.trust.is_lost())
    }

    /// Ends a check where enough hosts came to the same.
    fn judge(&mut self, job: JobId, trial: TrialId, check: &Check) {
        let Some(known) = self.state.jobs.get(&job) else { return };
        let quorum = known.spec.placement.verify.map_or(Verify::QUORUM, |verify| verify.quorum);
        let quorum = usize::try_from(quorum).unwrap_or(usize::MAX);
        let (alike, of) = check.most_alike();
        if alike >= quorum {
            let right = of.and_then(|of| check.results.get(&of));
            let (confirmed, refuted): (Vec<_>, Vec<_>) =
                check.results.iter().partition(|(_, digest)| Some(*digest) == right);
            let leases = |of: Vec<(&LeaseId, _)>| of.into_iter().map(|(lease, _)| *lease).collect();
            return self.conclude(leases(confirmed), leases(refuted));
        }
        if check.results.len() >= quorum.saturating_add(MORE_OPINIONS) {
            let error = "every host of its numeric class comes to another result: its arithmetic can't be reproduced";
            return self.fail_trial(job, trial, error.into());
        }
        self.soft.work_changed = true;
    }

    fn conclude(&mut self, confirmed: Vec<LeaseId>, refuted: Vec<LeaseId>) {
        let Some((first, others)) = confirmed.split_first() else { return };
        let (first, others) = (*first, others.to_vec());
        self.emit(Event::Verified { confirmed, refuted: refuted.clone() });
        for lease in refuted {
            let host = self.state.lease(lease).map(|lease| lease.host);
            let reason = "other hosts of its numeric class agree on another result".into();
            self.emit(Event::Rejected { lease, reason, fault: Fault::Host });
            self.effect(Effect::DropUpload(lease));
            self.soft.notify.extend(host);
            if let Some(host) = host {
                self.rest_if_failing(host);
            }
        }
        for lease in others {
            self.supersede(lease);
        }
        let unit = self.state.lease(first).map(|lease| lease.unit);
        if let Some(unit) = unit {
            self.take_up(unit.job(), unit.trial());
        }
    }

    /// What a host whose trust is lost has delivered to a job's trials since its last confirmed result.
    pub(crate) fn doubtful<'a>(
        &'a self,
        host: HostId,
        job: &'a Job,
    ) -> impl Iterator<Item = (&'a Trial, &'a HopRecord)> + 'a {
        let since = self.state.hosts.get(&host).map(|host| host.trust.last_confirmed);
        let since = since.filter(|_| self.has_lost_trust(host));
        let hops = |trial: &'a Trial| trial.history.iter().map(move |hop| (trial, hop));
        job.trials.iter().flat_map(hops).filter(move |(_, hop)| {
            since.is_some_and(|since| hop.host == host && hop.lease > since)
                && hop.verified != Some(Verification::Confirmed)
        })
    }
}

/// How many of a thousand results are checked.
fn rate(verify: Verify, trust: Trust) -> u32 {
    if trust.is_lost() {
        ALL
    } else if trust.is_earned() {
        (verify.rate * verify.rate / ALL).max(1)
    } else {
        verify.rate
    }
}

/// The unit of a result that is checked, as far as that came.
fn chosen(check: &Check, first: &Arc<Lease>) -> Chosen {
    let reached = first.then.iter().position(|shard| *shard == check.end.shard);
    let then = first.then.iter().take(reached.map_or(0, |at| at + 1)).copied().collect();
    Chosen {
        unit: check.unit,
        then,
        until: Some(check.end.batch),
        base: first.base,
        copy_of: None,
        after: None,
        why: Reason::Check(first.id),
        planned: None,
    }
}
