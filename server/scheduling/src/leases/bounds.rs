//! Bounds of a lease: the most time that it may take, and the size of its unit. They hold for what its host reports of it.
//!
//! The bounds come from the unit, and from what was measured of other hosts. No report of the host moves them.

use crate::cost::Allowance;
use sojourn_protocol::{
    quantity::SaturatingFrom as _,
    time::{Millis, UnixMillis},
};

/// The bounds of a live lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseBounds {
    /// Since when it counts: granted, and the units before it in its slot may have ended; or begun.
    pub counted_from: UnixMillis,
    /// The lease runs out then, whatever is reported of it.
    pub ends_by: UnixMillis,
    /// When to look at what was measured of others since.
    pub review_at: UnixMillis,
    /// The batches and bytes of its unit, and the time that it may take.
    pub allowance: Allowance,
}

impl LeaseBounds {
    /// Of a lease that counts from a time on.
    pub fn new(counted_from: UnixMillis, allowance: Allowance) -> Self {
        let ends_by = counted_from + allowance.whole();
        let review_at = counted_from + allowance.review();
        Self { counted_from, ends_by, review_at, allowance }
    }

    /// The unit has begun, or others were measured since: the lease has so much time in all.
    pub fn review(&mut self, now: UnixMillis, begun: bool, allowance: Allowance) {
        if begun {
            self.counted_from = self.counted_from.min(now);
        }
        self.allowance = allowance;
        self.ends_by = self.counted_from + allowance.whole();
        self.review_at = now + allowance.review();
    }

    /// The lease's unit is trained: what remains is the upload.
    pub fn trained(&mut self, now: UnixMillis) {
        self.ends_by = self.ends_by.min(now + self.allowance.delivery);
        self.review_at = UnixMillis(u64::MAX);
    }

    /// A hop has run for so long that its host should deliver what it has.
    pub fn is_to_stop(&self, since: UnixMillis, now: UnixMillis) -> bool {
        now >= since + Millis(self.allowance.training.0 / 2)
    }

    /// The batches that can be done by now, of those that are reported.
    pub fn believed(&self, (done, of): (u32, u32), had_for: Millis) -> (u32, u32) {
        let of = of.min(self.allowance.batches);
        let least = self.allowance.least.0;
        let plausible = u64::from(of)
            .saturating_mul(had_for.0)
            .checked_div(least)
            .map_or(of, u32::saturating_from);
        (done.min(of).min(plausible), of)
    }
}
