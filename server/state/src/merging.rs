//! A trial whose results are merged: its units in flight, and the versions that they started from (see
//! `docs/internals/merging.md`).
//!
//! ```text
//!   hop order --> merging --> draining --> hop order
//!                    ^-----------'
//! ```
//!
//! Several shards of one epoch train at once, each from the version that was current when its lease was granted. That
//! version stays alive as long as a lease refers to it: a live one, one that ran out and may yet be reported, and one
//! whose result waits. A shard is settled by its first result that is merged. While it drains nothing is handed out,
//! but where nothing is out any more and the rule has something gathered: then one more hop, whose result uses that.

use super::{FailedBy, Lease, PendingVerification, Trial};
use crate::event::{HopUnit, UnitKey};
use serde::{Deserialize, Serialize};
use sojourn_protocol::{
    digest::BlobRef,
    ids::{HostId, LeaseId, ShardId, Version},
    position::Position,
    quantity::{SaturatingFrom as _, to_usize},
    report::Trained,
    spec::StalenessBound,
    unit::{Base, Flush},
};
use sojourn_workgen::Chain;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The state of a trial while its results are merged, beside its version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Merging {
    /// Whether the trial goes back to hop order.
    pub draining: bool,
    /// Shards of the epoch that somebody is at, or was.
    pub units: BTreeMap<ShardId, ShardUnit>,
    /// The versions that leases refer to.
    pub bases: BTreeMap<Version, MergeBase>,
    /// The rule's state that was made with the current version; none where that came from hop order.
    pub state: Option<BlobRef>,
    /// The rule has used all that it has gathered.
    pub flushed: bool,
    /// The most units in flight at once in this epoch.
    pub in_flight: u32,
    /// The trial's chain, without the shards in flight.
    pub free: Chain,
    /// The most units in flight at a time; as many as there are where none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// One shard's hop in the epoch that is being trained.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ShardUnit {
    /// Live leases.
    pub live: BTreeSet<LeaseId>,
    /// Leases that ran out and may yet be reported.
    pub late: BTreeSet<LeaseId>,
    /// Leases whose results wait to be merged, or checked.
    pub reported: BTreeSet<LeaseId>,
    /// The verification that its result waits for.
    #[serde(rename = "check", default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<PendingVerification>,
    /// Trainer errors, by host.
    pub failures: BTreeMap<HostId, FailedBy>,
}

/// A version that leases refer to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MergeBase {
    /// The version's checkpoint; none for version 0.
    pub checkpoint: Option<BlobRef>,
    /// The trial's optimiser steps there.
    pub step: u64,
    /// The leases that refer to it.
    pub leases: BTreeSet<LeaseId>,
}

impl ShardUnit {
    /// Is somebody at it, or does its result wait?
    #[must_use]
    pub fn is_in_flight(&self) -> bool {
        !self.live.is_empty() || !self.reported.is_empty()
    }

    /// Is one host at it, and nothing of it there yet but what is checked?
    #[must_use]
    pub(super) fn is_waited_for(&self) -> bool {
        self.live.len() == 1 && (self.reported.is_empty() || self.verification.is_some())
    }

    fn is_forgotten(&self) -> bool {
        !self.is_in_flight() && self.late.is_empty() && self.failures.is_empty()
    }
}

impl Merging {
    /// No unit of a trial with this chain is in flight.
    #[must_use]
    pub(super) fn new(chain: &Chain, limit: Option<u32>) -> Self {
        Self {
            draining: false,
            units: BTreeMap::new(),
            bases: BTreeMap::new(),
            state: None,
            flushed: true,
            in_flight: 0,
            free: chain.clone(),
            limit,
        }
    }

    /// Units in flight.
    pub fn in_flight(&self) -> impl Iterator<Item = ShardId> + '_ {
        self.units.iter().filter(|(_, unit)| unit.is_in_flight()).map(|(shard, _)| *shard)
    }

    /// How old a result may be that is merged.
    #[must_use]
    pub fn bound(&self) -> StalenessBound {
        StalenessBound::of(self.in_flight)
    }

    /// Does the trial wait for what is in flight: it drains, or no shard of the epoch is left to hand out?
    pub(super) fn waits(&self) -> bool {
        self.draining || self.free.open().next().is_none()
    }

    /// How many further shards could be handed out, if there are as many.
    #[must_use]
    pub fn room(&self) -> usize {
        let limit = if self.draining { 1 } else { self.limit.map_or(usize::MAX, to_usize) };
        limit.saturating_sub(self.in_flight().count())
    }

    /// Live leases.
    pub fn live(&self) -> impl Iterator<Item = LeaseId> + '_ {
        self.units.values().flat_map(|unit| &unit.live).copied()
    }

    /// The checkpoints that leases refer to, and the rule's state.
    pub fn blobs(&self) -> impl Iterator<Item = BlobRef> + '_ {
        self.bases.values().filter_map(|base| base.checkpoint).chain(self.state)
    }

    /// A lease of a shard refers to its base.
    fn refer(&mut self, lease: &Lease, checkpoint: Option<BlobRef>, step: u64) {
        let base = self.bases.entry(lease.base);
        let base = base.or_insert_with(|| MergeBase { checkpoint, step, leases: BTreeSet::new() });
        base.leases.insert(lease.id);
    }

    /// A lease is listened to no more.
    fn release(&mut self, hop: HopUnit, lease: &Lease) {
        if let Some(unit) = self.units.get_mut(&hop.shard) {
            unit.live.remove(&lease.id);
            unit.late.remove(&lease.id);
            unit.reported.remove(&lease.id);
        }
        self.unrefer(lease.id);
    }

    fn unrefer(&mut self, lease: LeaseId) {
        for base in self.bases.values_mut() {
            base.leases.remove(&lease);
        }
        self.bases.retain(|_, base| !base.leases.is_empty());
    }

    /// Leases that ran out are listened to no more where they would be refused: their shard is settled, or their
    /// base too old.
    fn forget_late(&mut self, version: Version, settled: impl Fn(ShardId) -> bool) {
        let bound = self.bound();
        let old = |base: Version| !bound.allows(u64::from(version.0.saturating_sub(base.0)));
        let of_old = self.bases.iter().filter(|(base, _)| old(**base));
        let of_old: BTreeSet<LeaseId> =
            of_old.flat_map(|(_, base)| &base.leases).copied().collect();
        let mut gone = Vec::new();
        for (shard, unit) in &mut self.units {
            let all = settled(*shard);
            gone.extend(unit.late.extract_if(.., |lease| all || of_old.contains(lease)));
        }
        for lease in gone {
            self.unrefer(lease);
        }
    }

    /// Something has changed: says anew which shards are free.
    fn renew(&mut self, chain: &Chain) {
        self.units.retain(|_, unit| !unit.is_forgotten());
        let taken: Vec<ShardId> = self.in_flight().collect();
        self.in_flight = self.in_flight.max(u32::saturating_from(taken.len()));
        self.free = chain.without(taken);
    }
}

impl Trial {
    /// The shards that may be handed out, and from where on: those of its chain, but for what is in flight.
    #[must_use]
    pub fn open_chain(&self) -> &Chain {
        self.merging.as_ref().map_or(&self.chain, |merging| &merging.free)
    }

    /// How many hops of it could be granted now, one after the other.
    #[must_use]
    pub fn open_hops(&self) -> usize {
        match &self.merging {
            _ if !self.trains() => 0,
            None => usize::from(self.in_hand().next().is_none()),
            Some(merging) => merging.free.open().count().min(merging.room()),
        }
    }

    /// Hops of it in flight.
    #[must_use]
    pub fn hops_in_flight(&self) -> usize {
        match &self.merging {
            None => usize::from(self.in_hand().next().is_some()),
            Some(merging) => merging.in_flight().count(),
        }
    }

    /// The base of a lease's hop, and the trial's optimiser steps there. The lease is live, or its result is expected
    /// or waits.
    #[must_use]
    pub fn base_of(&self, lease: &Lease) -> Option<(Base, u64)> {
        let Some(merging) = &self.merging else {
            return (lease.base == self.version).then(|| (self.base(), self.chain.step()));
        };
        let base = merging.bases.get(&lease.base)?;
        let of = match base.checkpoint {
            Some(blob) => Base::Checkpoint { version: lease.base, blob },
            None => self.first_base(),
        };
        Some((of, base.step))
    }

    /// Would a result of a hop's lease be taken in?
    #[must_use]
    pub(super) fn wants_hop(&self, lease: &Lease) -> bool {
        let UnitKey::Train { epoch, shard, from, .. } = lease.unit else { return false };
        if !self.is_running() || self.chain.is_done() {
            return false;
        }
        let Some(merging) = &self.merging else {
            return lease.base == self.version && lease.id > self.void_until;
        };
        let (base, next) = (merging.bases.get(&lease.base), self.chain.next(shard));
        next.is_some_and(|next| next.epoch == epoch && next.batch == from)
            && base.is_some_and(|base| base.leases.contains(&lease.id))
            && merging.bound().allows(self.staleness(lease))
    }

    /// Versions made since a lease's base.
    #[must_use]
    pub fn staleness(&self, lease: &Lease) -> u64 {
        u64::from(self.version.0.saturating_sub(lease.base.0))
    }

    /// Where a part of a hop ends in the trial's chain, if it were taken in now: a merged one's own steps count from
    /// its base.
    #[must_use]
    pub fn end_in_chain(&self, lease: &Lease, end: Position) -> Option<Position> {
        let (_, first) = self.base_of(lease)?;
        let steps = end.step.checked_sub(first)?;
        Some(Position { step: self.chain.step().checked_add(steps)?, ..end })
    }

    /// How a result that is merged now uses what its rule has gathered: at the end of an epoch, and where nothing else
    /// is out of a trial that drains, all of it.
    #[must_use]
    pub fn flush_with(&self, lease: &Lease, ends_epoch: bool) -> Flush {
        let last = self.merging.as_ref().is_some_and(|merging| {
            let units = merging.units.values();
            let mut out = units.flat_map(|unit| unit.live.iter().chain(&unit.reported));
            merging.draining && out.all(|other| *other == lease.id)
        });
        if ends_epoch || last { Flush::Now } else { Flush::ByRule }
    }

    /// A hop's lease was granted.
    pub(super) fn hop_granted(&mut self, lease: &Lease) {
        if let Some(merging) = &mut self.merging {
            merging.refer(lease, self.checkpoint, self.chain.step());
            merging.renew(&self.chain);
            if self.history.is_empty() && self.class.is_none() {
                // The others must calculate alike.
                self.class = lease.class;
            }
        }
    }

    /// A hop's lease ran out; it is listened to while its result could still be used.
    pub(super) fn hop_late(&mut self, hop: HopUnit, lease: &Lease) {
        if !self.wants_hop(lease) {
            return self.hop_over(hop, lease);
        }
        if let Some(merging) = &mut self.merging {
            let unit = merging.units.entry(hop.shard).or_default();
            unit.live.remove(&lease.id);
            unit.late.insert(lease.id);
            merging.renew(&self.chain);
        }
    }

    /// Has this lease of a hop run out, and is it listened to?
    pub(super) fn is_late(&self, hop: HopUnit, lease: LeaseId) -> bool {
        let unit = self.merging.as_ref().and_then(|merging| merging.units.get(&hop.shard));
        unit.is_some_and(|unit| unit.late.contains(&lease))
    }

    /// The result of a hop's lease waits.
    pub(super) fn hop_reported(&mut self, hop: HopUnit, lease: &Lease, trained: &Trained) {
        if !self.joins_check(hop, lease, trained.end, trained.checkpoint.sha256) {
            self.awaiting.push_back(lease.id);
        }
        if let Some(merging) = &mut self.merging {
            let unit = merging.units.entry(hop.shard).or_default();
            unit.live.remove(&lease.id);
            unit.late.remove(&lease.id);
            unit.reported.insert(lease.id);
            merging.renew(&self.chain);
        }
    }

    /// A hop's lease is over: nothing of it is to come, or it was taken in.
    pub(super) fn hop_over(&mut self, hop: HopUnit, lease: &Lease) {
        self.awaiting.retain(|waiting| *waiting != lease.id);
        if let Some(verification) = self.verification_mut(hop.shard) {
            verification.results.remove(&lease.id);
            if verification.results.is_empty() {
                self.set_verification(hop, None);
            }
        }
        if let Some(merging) = &mut self.merging {
            merging.release(hop, lease);
            merging.renew(&self.chain);
            // A clone stays in the numeric class of the other.
            if self.history.is_empty() && merging.bases.is_empty() && self.origin.is_none() {
                self.class = None;
            }
        }
    }

    /// A result was merged; the chain and the version are the new ones. The others of its shard, and those of an epoch
    /// that has ended, are listened to no more.
    pub(super) fn merged(
        &mut self,
        shard: ShardId,
        state: BlobRef,
        flush: Flush,
        epoch_ended: bool,
    ) {
        let is_trained = self.is_trained();
        if let Some(merging) = &mut self.merging {
            merging.flushed = flush == Flush::Now;
            // Nothing follows the last one that could go on from it.
            merging.state = Some(state).filter(|_| !is_trained);
            if let Some(unit) = merging.units.get_mut(&shard) {
                unit.failures.clear();
            }
            merging.forget_late(self.version, |of| of == shard || epoch_ended);
            if epoch_ended {
                merging.in_flight = 0;
            }
            merging.renew(&self.chain);
        }
    }

    /// The trial goes back to hop order.
    pub(super) fn drain(&mut self) {
        if let Some(merging) = &mut self.merging {
            merging.draining = true;
        }
    }

    /// The chain has changed: says anew which shards are free.
    pub(super) fn renew_merging(&mut self) {
        if let Some(merging) = &mut self.merging {
            merging.renew(&self.chain);
        }
    }

    /// From now on results are merged: those of live leases too.
    pub(super) fn begin_merging(&mut self, live: &[(HopUnit, Arc<Lease>)], limit: Option<u32>) {
        if let Some(merging) = &mut self.merging {
            merging.draining = false;
            return;
        }
        let mut merging = Merging::new(&self.chain, limit);
        for (hop, lease) in live {
            merging.units.entry(hop.shard).or_default().live.insert(lease.id);
            merging.refer(lease, self.checkpoint, self.chain.step());
        }
        for unit in merging.units.values_mut() {
            unit.failures = std::mem::take(&mut self.failures);
        }
        self.live.clear();
        merging.renew(&self.chain);
        self.merging = Some(merging);
    }
}
