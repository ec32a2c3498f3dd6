//! Verification of results by recomputation (see `docs/internals/trust.md`): other hosts train the same unit again.
//!
//! Units are exact: hosts of one numeric class that train the same batches from the same version produce the same
//! bytes, and those that evaluate the same version the same counts. Equal digests of different hosts confirm each other, and a
//! different one is refuted.

use super::{FoldFault, Job, Lease, State, Trial, is_default, parties::Party};
use crate::event::{HopUnit, UnitKey};
use serde::{Deserialize, Serialize};
use sojourn_protocol::{
    digest::Digest,
    ids::{HostId, LeaseId, ShardId},
    names::OwnerName,
    position::Position,
    quantity::to_usize,
    report::{Evaluated, Outcome},
    view::{HopRecord, Verification},
};
use std::collections::{BTreeMap, BTreeSet};

/// A verification under way. In hop order the trial waits for it; where results are merged, the shard does; an evaluation waits
/// by itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PendingVerification {
    /// The lease of the result that is verified.
    pub first: LeaseId,
    /// The unit of the result.
    pub unit: UnitKey,
    /// Where a hop ended; the others must end there too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Position>,
    /// The digest of each lease's result, the first one included: of a checkpoint, or of an evaluation's counts.
    pub results: BTreeMap<LeaseId, Digest>,
}

/// The record of a host's verified results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trust {
    /// Results that other hosts reproduced.
    pub confirmed: u64,
    /// How many hops were reproduced since the last result that wasn't.
    pub in_row: u32,
    /// Results that differ from those of an agreeing quorum.
    pub refuted: u64,
    /// The last lease whose hop was confirmed.
    pub last_confirmed: LeaseId,
    /// The last lease that any host had when a result was refuted: up to it, results that nobody confirmed are in doubt.
    #[serde(default, skip_serializing_if = "is_default")]
    pub suspect_until: LeaseId,
}

/// So many reproduced hops in a row make a host trusted.
pub(super) const TRUSTED_AFTER: u32 = 10;

impl Trust {
    /// Has it earned trust, and not lost it since?
    #[must_use]
    pub fn is_earned(&self) -> bool {
        self.in_row >= TRUSTED_AFTER
    }

    /// Has it lost trust, and not earned it since?
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.refuted > 0 && !self.is_earned()
    }

    /// Is a hop of this party in doubt: nobody has confirmed it, and the party was refuted since?
    #[must_use]
    pub fn doubts(&self, hop: &HopRecord) -> bool {
        hop.verified != Some(Verification::Confirmed)
            && self.refuted > 0
            && (self.is_lost() || hop.lease <= self.suspect_until)
    }
}

impl PendingVerification {
    /// The largest number of parties with equal results, and the digest of these. A party that has reported twice, under a
    /// lease that had expired too, counts once. A host that was revoked has no say.
    pub fn most_alike(&self, state: &State) -> (usize, Option<Digest>) {
        let parties = state.parties_for(self.unit.job());
        let has_say = |host: &HostId| state.hosts.get(host).is_none_or(|host| !host.revoked);
        let mut alike: BTreeMap<Digest, (BTreeSet<Party<'_>>, LeaseId)> = BTreeMap::new();
        for (lease, digest) in &self.results {
            let (agree, _) = alike.entry(*digest).or_insert_with(|| (BTreeSet::new(), *lease));
            let host = state.lease(*lease).map(|lease| lease.host).filter(has_say);
            agree.extend(host.map(|host| parties.of(host)));
        }
        let most = alike
            .into_iter()
            .max_by_key(|(_, (agree, lease))| (agree.len(), std::cmp::Reverse(*lease)));
        most.map_or((0, None), |(digest, (agree, _))| (agree.len(), Some(digest)))
    }

    /// The result of a host that is believed, where one has been asked to come to the same as a stranger.
    pub fn believed(&self, state: &State) -> Option<Digest> {
        let job = state.jobs.get(&self.unit.job())?;
        let is_believed = |host| state.verified_quorum_for(job, host).is_none();
        let mut results = self.results.iter();
        let found = results
            .find(|(lease, _)| state.lease(**lease).is_some_and(|lease| is_believed(lease.host)));
        found.map(|(_, digest)| *digest)
    }

    /// How many owners have hosts whose results differ from each other.
    pub fn contradictory_owners(&self, state: &State) -> usize {
        let mut said: BTreeMap<&OwnerName, BTreeSet<Digest>> = BTreeMap::new();
        for (lease, digest) in &self.results {
            if let Some(owner) = state.lease(*lease).and_then(|lease| state.owner_of(lease.host)) {
                said.entry(owner).or_default().insert(*digest);
            }
        }
        said.values().filter(|results| results.len() > 1).count()
    }

    /// The hosts that have given a result; one that has reported twice comes twice.
    pub fn hosts<'s>(&'s self, state: &'s State) -> impl Iterator<Item = HostId> + 's {
        self.results.keys().filter_map(|lease| Some(state.lease(*lease)?.host))
    }

    /// The parties that have given a result.
    pub fn parties<'s>(&self, state: &'s State) -> BTreeSet<Party<'s>> {
        state.parties_for(self.unit.job()).behind(self.hosts(state))
    }

    /// Are all results so far equal?
    #[must_use]
    pub fn is_unanimous(&self) -> bool {
        let mut results = self.results.values();
        let first = results.next();
        results.all(|other| Some(other) == first)
    }

    /// Is a result of this lease, which ended there, comparable with the one that is verified?
    fn concerns(&self, lease: &Lease, end: Position) -> bool {
        (lease.unit, Some(end)) == (self.unit, self.end)
    }
}

impl Trial {
    /// The verifications under way of its hops: of the next one, or of shards whose results are merged.
    pub fn verifications(&self) -> impl Iterator<Item = &PendingVerification> {
        let merging = self.merging.iter().flat_map(|merging| merging.units.values());
        self.verification.iter().chain(merging.filter_map(|unit| unit.verification.as_ref()))
    }

    pub(super) fn verification_mut(&mut self, shard: ShardId) -> Option<&mut PendingVerification> {
        match &mut self.merging {
            None => self.verification.as_mut(),
            Some(merging) => merging.units.get_mut(&shard)?.verification.as_mut(),
        }
    }

    /// Begins the verification of a hop's result, or ends it.
    pub(super) fn set_verification(
        &mut self,
        hop: HopUnit,
        verification: Option<PendingVerification>,
    ) {
        match &mut self.merging {
            None => self.verification = verification,
            Some(merging) => {
                merging.units.entry(hop.shard).or_default().verification = verification
            }
        }
    }

    /// Adds an acknowledged result to the verification of its unit, where one is under way. True where it was added.
    pub(super) fn joins_check(
        &mut self,
        hop: HopUnit,
        lease: &Lease,
        end: Position,
        made: Digest,
    ) -> bool {
        let verification = self
            .verification_mut(hop.shard)
            .filter(|verification| verification.concerns(lease, end));
        verification
            .is_some_and(|verification| verification.results.insert(lease.id, made).is_none())
    }

    /// Acknowledged evaluations of it that are verified.
    pub fn evaluations_verified(&self) -> impl Iterator<Item = LeaseId> + '_ {
        let verifications = self.evaluations.values().filter_map(|of| of.verification.as_ref());
        verifications.flat_map(|verification| verification.results.keys().copied())
    }

    /// The verifications under way of its hops and of its evaluations.
    fn all_verifications(&self) -> impl Iterator<Item = &PendingVerification> {
        let evaluations = self.evaluations.values();
        self.verifications().chain(evaluations.filter_map(|of| of.verification.as_ref()))
    }

    /// Results that wait to be assimilated, and those that are verified first.
    pub fn waiting(&self) -> impl Iterator<Item = LeaseId> + '_ {
        let checked = self.verifications().flat_map(|verification| verification.results.keys());
        self.awaiting.iter().chain(checked).copied()
    }

    /// In hop order: live leases of its next hop, and results of it.
    pub fn in_hand(&self) -> impl Iterator<Item = LeaseId> + '_ {
        self.live.iter().copied().chain(self.waiting())
    }

    /// Verifications for which one more host could be asked.
    pub fn incomplete_verifications(&self) -> impl Iterator<Item = &PendingVerification> {
        let open = |unit: &UnitKey| match (&self.merging, unit) {
            (Some(merging), UnitKey::Train { shard, .. }) => {
                merging.units.get(shard).is_some_and(|unit| unit.live.is_empty())
            }
            _ => self.live.is_empty(),
        };
        let of_hops = self.verifications().filter(move |verification| open(&verification.unit));
        let free = self.evaluations.values().filter(|evaluation| evaluation.live.is_empty());
        let of_evaluations = free.filter_map(|evaluation| evaluation.verification.as_ref());
        of_hops.chain(of_evaluations).filter(|_| self.is_running())
    }

    /// How the verification of a waiting result ended, where there was one.
    #[must_use]
    pub fn verdict_of(&self, lease: LeaseId) -> Option<Verification> {
        self.verdicts.get(&lease).copied()
    }
}

impl Job {
    /// How many parties have to come to the same result, where the job's results are verified. Every decision asks here.
    #[must_use]
    pub fn verified_quorum(&self) -> Option<usize> {
        self.spec.placement.verifies_all().map(|verify| to_usize(verify.quorum))
    }

    /// The verification under way of a unit.
    #[must_use]
    pub fn verification_of(&self, unit: &UnitKey) -> Option<&PendingVerification> {
        match unit {
            UnitKey::Train { trial, .. } => {
                self.trial(*trial)?.verifications().find(|of| of.unit == *unit)
            }
            UnitKey::Evaluate { trial, epoch, .. } => {
                self.trial(*trial)?.evaluations.get(epoch)?.verification.as_ref()
            }
            UnitKey::Extra { name, .. } => self.extra(name)?.verification.as_ref(),
        }
    }

    /// Where the verification of an open evaluation is kept.
    fn evaluation_verification_mut(
        &mut self,
        unit: &UnitKey,
    ) -> Option<&mut Option<PendingVerification>> {
        match unit {
            UnitKey::Train { .. } => None,
            UnitKey::Evaluate { trial, epoch, .. } => {
                Some(&mut self.trial_mut(*trial)?.evaluations.get_mut(epoch)?.verification)
            }
            UnitKey::Extra { name, .. } => {
                let extra = self.extras.iter_mut().find(|extra| extra.name == *name)?;
                Some(&mut extra.verification)
            }
        }
    }

    /// Is there a verification for which one more host could be asked?
    #[must_use]
    pub fn has_verifications(&self) -> bool {
        self.open.has_verifications() || self.extras.iter().any(|of| of.verification.is_some())
    }

    /// Verifications whose results differ.
    pub(super) fn disputes(&self) -> impl Iterator<Item = &PendingVerification> {
        let of_extras = self.extras.iter().filter_map(|extra| extra.verification.as_ref());
        let of_trials = self.trials.iter().flat_map(Trial::all_verifications);
        of_trials.chain(of_extras).filter(|pending| !pending.is_unanimous())
    }

    /// Verifications for which one more host could be asked, with their trials.
    pub fn incomplete_verifications(&self) -> impl Iterator<Item = (&Trial, &PendingVerification)> {
        let trials = self.open.verifications().filter_map(|trial| self.trial(trial));
        let of_trials = trials.flat_map(|trial| {
            trial.incomplete_verifications().map(move |pending| (trial, pending))
        });
        let free = self.extras.iter().filter(|extra| extra.live.is_empty());
        of_trials.chain(free.filter_map(|extra| {
            Some((self.trial(extra.name.trial)?, extra.verification.as_ref()?))
        }))
    }
}

impl State {
    /// Begins the verification of a result that waits.
    pub(super) fn challenged(&mut self, id: LeaseId) -> Result<(), FoldFault> {
        let (lease, outcome) = self.reported(id)?;
        if let Outcome::Evaluated(evaluated) = outcome {
            let (unit, results) = (lease.unit, BTreeMap::from([(id, evaluated.digest())]));
            let slot = self.known_job_mut(unit.job())?.evaluation_verification_mut(&unit);
            *slot.ok_or(FoldFault::UnknownEvaluation(unit))? =
                Some(PendingVerification { first: id, unit, end: None, results });
            return Ok(());
        }
        let (lease, hop, trained) = self.trained(id)?;
        let (unit, end, made) = (lease.unit, Some(trained.end), trained.checkpoint.sha256);
        let trial = self.known_trial_mut(hop.job, hop.trial)?;
        if !trial.awaiting.contains(&id) {
            return Err(FoldFault::NotAcknowledged(id));
        }
        trial.awaiting.retain(|waiting| *waiting != id);
        let results = BTreeMap::from([(id, made)]);
        trial.set_verification(hop, Some(PendingVerification { first: id, unit, end, results }));
        Ok(())
    }

    /// A verification has ended: the results of these leases are equal, and those of the others differ.
    pub(super) fn verified(
        &mut self,
        confirmed: &[LeaseId],
        refuted: &[LeaseId],
    ) -> Result<(), FoldFault> {
        for lease in confirmed.iter().chain(refuted) {
            self.known_host(self.known_lease(*lease)?.host)?;
        }
        let waits = match confirmed.first() {
            Some(first) => self.waits(*first)?,
            None => false,
        };
        for lease in confirmed {
            let is_hop = self.known_lease(*lease)?.unit.hop().is_some();
            self.change_records(*lease, |trust| {
                trust.confirmed += 1;
                // An evaluation costs little, and says nothing of what the host has trained.
                if is_hop {
                    trust.in_row = trust.in_row.saturating_add(1);
                    trust.last_confirmed = trust.last_confirmed.max(*lease);
                }
            })?;
        }
        let suspect_until = self.last_lease;
        for lease in refuted {
            self.change_records(*lease, |trust| {
                trust.refuted += 1;
                trust.in_row = 0;
                trust.suspect_until = suspect_until;
            })?;
        }
        // A result that was assimilated or given up before doesn't wait: then only the hosts' records change.
        match confirmed.first() {
            Some(first) if waits => self.end_check(*first, Verification::Confirmed),
            _ => Ok(()),
        }
    }

    /// A verification was given up, as servers of before did where no host was there to ask.
    pub(super) fn unverified(&mut self, lease: LeaseId) -> Result<(), FoldFault> {
        if !self.waits(lease)? {
            return Err(FoldFault::NotAcknowledged(lease));
        }
        self.end_check(lease, Verification::Unverified)
    }

    /// Does the result of a lease wait, or is it being verified?
    fn waits(&self, lease: LeaseId) -> Result<bool, FoldFault> {
        let unit = self.known_lease(lease)?.unit;
        let trial = self.known_trial(unit.job(), unit.trial())?;
        Ok(match unit {
            UnitKey::Train { .. } => trial.waiting().any(|waiting| waiting == lease),
            UnitKey::Evaluate { .. } | UnitKey::Extra { .. } => {
                self.known_job(unit.job())?.failures_of(&unit).is_some()
                    && matches!(self.reported(lease), Ok((_, Outcome::Evaluated(_))))
            }
        })
    }

    /// Ends a verification: this result is to be taken in, in hop order before all others.
    fn end_check(&mut self, lease: LeaseId, verdict: Verification) -> Result<(), FoldFault> {
        let unit = self.known_lease(lease)?.unit;
        let Some(hop) = unit.hop() else {
            self.known_trial(unit.job(), unit.trial())?;
            let job = self.known_job_mut(unit.job())?;
            let slot = job.evaluation_verification_mut(&unit);
            *slot.ok_or(FoldFault::UnknownEvaluation(unit))? = None;
            self.known_trial_mut(unit.job(), unit.trial())?.verdicts.insert(lease, verdict);
            return Ok(());
        };
        let trial = self.known_trial_mut(hop.job, hop.trial)?;
        trial.set_verification(hop, None);
        trial.verdicts.insert(lease, verdict);
        trial.awaiting.retain(|waiting| *waiting != lease);
        match trial.merging {
            None => trial.awaiting.push_front(lease),
            Some(_) => trial.awaiting.push_back(lease),
        }
        Ok(())
    }

    /// Adds an acknowledged evaluation to the verification of its unit, where one is under way.
    pub(super) fn evaluation_reported(&mut self, lease: &Lease, evaluated: &Evaluated) {
        let job = self.jobs.get_mut(&lease.unit.job());
        let slot = job.and_then(|job| job.evaluation_verification_mut(&lease.unit));
        if let Some(Some(verification)) = slot {
            verification.results.insert(lease.id, evaluated.digest());
        }
    }

    /// An acknowledged evaluation has ended: its verification goes on without it.
    pub(super) fn evaluation_over(&mut self, lease: &Lease) {
        let job = self.jobs.get_mut(&lease.unit.job());
        let slot = job.and_then(|job| job.evaluation_verification_mut(&lease.unit));
        if let Some(slot) = slot
            && let Some(verification) = slot
        {
            verification.results.remove(&lease.id);
            if verification.results.is_empty() {
                *slot = None;
            }
        }
    }

    /// Changes the record of the host that had a lease, and that of the stranger behind it.
    fn change_records(
        &mut self,
        lease: LeaseId,
        change: impl Fn(&mut Trust),
    ) -> Result<(), FoldFault> {
        let host = self.known_lease(lease)?.host;
        let host = self.known_host_mut(host)?;
        change(&mut host.trust);
        if host.is_strangers() {
            let owner = host.owner.clone();
            change(self.records.entry(owner).or_default());
        }
        Ok(())
    }
}
