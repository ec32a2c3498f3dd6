//! What a lease may take at most, and how much of its unit there is: bounds for what its host reports of it.
//!
//! They come from the unit, and from what was measured of other hosts. No report of the host moves them.

use super::deadline::{Deadline, StopRequest};
use crate::cost::{Allowance, Occupancy};
use sojourn_protocol::{
    ids::LeaseId,
    quantity::{SaturatingFrom as _, to_usize},
    time::{Millis, UnixMillis},
};

/// The bounds of a live lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LeaseBounds {
    /// Since when it counts: granted, and the units before it in its slot may have ended; or begun.
    pub(crate) counted_from: UnixMillis,
    /// It runs out then, whatever is reported of it.
    pub(crate) ends_by: UnixMillis,
    /// When to look at what was measured of others since.
    pub(crate) review_at: UnixMillis,
    /// What its unit has, and how long it may take.
    pub(crate) allowance: Allowance,
}

impl LeaseBounds {
    /// Of a lease that counts from a time on.
    pub(crate) fn new(counted_from: UnixMillis, allowance: Allowance) -> Self {
        let ends_by = counted_from + allowance.whole();
        let review_at = counted_from + allowance.review();
        Self { counted_from, ends_by, review_at, allowance }
    }

    /// It has begun, or others were measured since: it has so much time in all.
    pub(crate) fn review(&mut self, now: UnixMillis, begun: bool, allowance: Allowance) {
        if begun {
            self.counted_from = self.counted_from.min(now);
        }
        self.allowance = allowance;
        self.ends_by = self.counted_from + allowance.whole();
        self.review_at = now + allowance.review();
    }

    /// Its unit is trained: what remains is the upload.
    pub(crate) fn trained(&mut self, now: UnixMillis) {
        self.ends_by = self.ends_by.min(now + self.allowance.delivery);
        self.review_at = UnixMillis(u64::MAX);
    }

    /// A hop has run for so long that its host should deliver what it has.
    pub(crate) fn is_to_stop(&self, since: UnixMillis, now: UnixMillis) -> bool {
        now >= since + Millis(self.allowance.training.0 / 2)
    }

    /// The batches that can be done by now, of those that are reported.
    pub(crate) fn believed(&self, (done, of): (u32, u32), had_for: Millis) -> (u32, u32) {
        let of = of.min(self.allowance.batches);
        let least = self.allowance.least.0;
        let plausible = u64::from(of)
            .saturating_mul(had_for.0)
            .checked_div(least)
            .map_or(of, u32::saturating_from);
        (done.min(of).min(plausible), of)
    }
}

impl Occupancy<'_> {
    /// The deadline of a lease that has just been granted, or whose server has just started.
    pub(crate) fn new_deadline(&self, lease: LeaseId) -> Deadline {
        self.deadline_for(lease, self.lease_estimate(lease))
    }

    /// The same, where it is known how long its unit should take.
    pub(crate) fn deadline_for(&self, lease: LeaseId, estimate: Millis) -> Deadline {
        let known = self.state.leases.get(&lease);
        let allowance = known.map(|known| self.allowance(known)).unwrap_or_default();
        Deadline {
            renew_by: self.now + self.config.lease_term,
            due: self.now + self.config.start_grace + self.patience(lease, estimate),
            bounds: LeaseBounds::new(self.slot_free_by(lease), allowance),
            started: false,
            since: self.now,
            first: 0,
            finished: false,
            produced: None,
            sent_at: self.now,
            fetched: 0,
            done: 0,
            of: 0,
            done_at: self.now,
            uploaded: 0,
            stop: StopRequest::None,
        }
    }

    /// When the slots of a new lease's device are free at the latest: the leases there have ended by then.
    fn slot_free_by(&self, lease: LeaseId) -> UnixMillis {
        let Some(known) = self.state.leases.get(&lease) else { return self.now };
        let slots = self.hosts.device(known.host, &known.device).map_or(1, |slots| slots.count);
        let others = self.leases_on(known.host, &known.device).filter(|other| *other != lease);
        let others = others.filter_map(|other| self.leases.deadline(other));
        let (count, last) =
            others.filter(|other| !other.finished).fold((0, self.now), |(count, last), other| {
                (count + 1, last.max(other.bounds.ends_by))
            });
        if count < to_usize(slots.max(1)) { self.now } else { last }
    }
}
