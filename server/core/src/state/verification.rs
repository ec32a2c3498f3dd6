//! Verification of results by recomputation (see `docs/internals/trust.md`): other hosts train the same unit again.
//!
//! Units are exact: hosts of one numeric class that train the same batches from the same version produce the same
//! bytes. Equal digests of different hosts confirm each other, and a different one is refuted.

use super::{FoldFault, Lease, State, Trial};
use crate::event::{HopUnit, UnitKey};
use serde::{Deserialize, Serialize};
use sojourn_protocol::{
    digest::Digest,
    ids::{LeaseId, ShardId},
    position::Position,
    view::Verification,
};
use std::collections::BTreeMap;

/// A verification under way. In hop order the trial waits for it; where results are merged, the shard does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PendingVerification {
    /// The lease of the result that is verified.
    pub first: LeaseId,
    /// Its unit.
    pub unit: UnitKey,
    /// Where it ended; the others must end there too.
    pub end: Position,
    /// The digest of each lease's result, the first one included.
    pub results: BTreeMap<LeaseId, Digest>,
}

/// The record of a host's verified results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trust {
    /// Results that other hosts reproduced.
    pub confirmed: u64,
    /// How many were reproduced since the last one that wasn't.
    pub in_row: u32,
    /// Results that differ from those of an agreeing quorum.
    pub refuted: u64,
    /// The last lease whose result was confirmed.
    pub last_confirmed: LeaseId,
}

/// So many reproduced results in a row make a host trusted.
const TRUSTED_AFTER: u32 = 10;

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
}

impl PendingVerification {
    /// The largest number of equal results, and the first of their leases.
    #[must_use]
    pub fn most_alike(&self) -> (usize, Option<LeaseId>) {
        let mut alike: BTreeMap<Digest, (usize, LeaseId)> = BTreeMap::new();
        for (lease, digest) in &self.results {
            alike.entry(*digest).or_insert((0, *lease)).0 += 1;
        }
        let most =
            alike.into_values().max_by_key(|(count, lease)| (*count, std::cmp::Reverse(*lease)));
        most.map_or((0, None), |(count, lease)| (count, Some(lease)))
    }

    /// Are all results so far equal?
    #[must_use]
    pub fn is_unanimous(&self) -> bool {
        self.most_alike().0 == self.results.len()
    }

    /// Is a result of this lease, which ended there, comparable with the one that is verified?
    fn concerns(&self, lease: &Lease, end: Position) -> bool {
        (lease.unit, end) == (self.unit, self.end)
    }
}

impl Trial {
    /// Its verifications under way: of its next hop, or of shards whose results are merged.
    pub fn verifications(&self) -> impl Iterator<Item = &PendingVerification> {
        let merging = self.merging.iter().flat_map(|merging| merging.units.values());
        self.verification.iter().chain(merging.filter_map(|unit| unit.verification.as_ref()))
    }

    /// The verification that a result of this lease would be part of.
    #[must_use]
    pub fn pending_verification_of(&self, lease: &Lease) -> Option<&PendingVerification> {
        self.verifications().find(|verification| verification.unit == lease.unit)
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
        self.verifications()
            .filter(move |verification| self.is_running() && open(&verification.unit))
    }

    /// How the verification of a waiting result ended, where there was one.
    #[must_use]
    pub fn verdict_of(&self, lease: LeaseId) -> Option<Verification> {
        self.verdicts.get(&lease).copied()
    }
}

impl State {
    /// Begins the verification of a result that waits.
    pub(super) fn challenged(&mut self, id: LeaseId) -> Result<(), FoldFault> {
        let (lease, hop, trained) = self.trained(id)?;
        let (unit, end, made) = (lease.unit, trained.end, trained.checkpoint.sha256);
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
        let waiting = match confirmed.first() {
            Some(first) => self.waiting_hop(*first)?,
            None => None,
        };
        for lease in confirmed {
            let trust = self.trust_of(*lease)?;
            trust.confirmed += 1;
            trust.in_row = trust.in_row.saturating_add(1);
            trust.last_confirmed = trust.last_confirmed.max(*lease);
        }
        for lease in refuted {
            let trust = self.trust_of(*lease)?;
            trust.refuted += 1;
            trust.in_row = 0;
        }
        // A result that was assimilated or given up before doesn't wait: then only the hosts' records change.
        match (confirmed.first(), waiting) {
            (Some(first), Some(hop)) => self.end_check(*first, hop, Verification::Confirmed),
            _ => Ok(()),
        }
    }

    /// A verification was given up: no host is there to ask.
    pub(super) fn unverified(&mut self, lease: LeaseId) -> Result<(), FoldFault> {
        let hop = self.waiting_hop(lease)?.ok_or(FoldFault::NotAcknowledged(lease))?;
        self.end_check(lease, hop, Verification::Unverified)
    }

    /// The hop of a lease whose result waits, or is being verified; `None` where it doesn't.
    fn waiting_hop(&self, lease: LeaseId) -> Result<Option<HopUnit>, FoldFault> {
        let hop = self.known_lease(lease)?.unit.hop().ok_or(FoldFault::WrongUnit(lease))?;
        let trial = self.known_trial(hop.job, hop.trial)?;
        Ok(trial.waiting().any(|waiting| waiting == lease).then_some(hop))
    }

    /// Ends a verification: this result is to be assimilated, in hop order before all others.
    fn end_check(
        &mut self,
        lease: LeaseId,
        hop: HopUnit,
        verdict: Verification,
    ) -> Result<(), FoldFault> {
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

    fn trust_of(&mut self, lease: LeaseId) -> Result<&mut Trust, FoldFault> {
        let host = self.known_lease(lease)?.host;
        Ok(&mut self.known_host_mut(host)?.trust)
    }
}
