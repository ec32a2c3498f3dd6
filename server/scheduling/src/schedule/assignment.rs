//! The choice for a slot: a unit, or until when to wait for one.

use super::{explain::GrantReason, plan::PlannedHop};
use crate::{cost::Cost, hosts::DeviceSlots, leases::ResultBefore};
use sojourn_protocol::{
    digest::Digest,
    ids::{LeaseId, ShardId, Version},
    time::UnixMillis,
};
use sojourn_state::{Job, UnitKey};

/// A unit for a device.
pub struct Assignment {
    /// The unit.
    pub unit: UnitKey,
    /// Shards whose hops follow under the same lease.
    pub then: Vec<ShardId>,
    /// The batch of the last shard before which it ends, where that isn't the shard's end.
    pub until: Option<u32>,
    /// The version that it begins with.
    pub base: Version,
    /// The live lease of the same unit beside which it is a speculative one.
    pub speculative_for: Option<LeaseId>,
    /// The result that it goes on from, while that is uploaded: the lease is provisional.
    pub after: Option<ResultBefore>,
    /// Why the unit goes there.
    pub why: GrantReason,
    /// The hop of the plan that it is.
    pub planned: Option<PlannedHop>,
}

/// The choice for a slot.
pub enum Pick {
    /// This unit. The evaluations are left to others.
    Assign(Box<Assignment>, Vec<UnitKey>),
    /// Nothing yet: others are likely to be done sooner.
    Defer {
        /// When to look again.
        until: UnixMillis,
        /// Evaluations that are left to others meanwhile.
        evaluations: Vec<UnitKey>,
    },
    /// No unit.
    Nothing,
}

impl Cost<'_> {
    /// The numeric class in which a device computes the unit that it gets: that of the trial, and before the trial has one
    /// that of the lease which the unit repeats or goes on from. A device that evaluates a trial of a class that it
    /// doesn't offer computes as it does for new trials; so does one that offers a proved class, where the trial's isn't proved.
    pub fn class_of(&self, job: &Job, unit: &Assignment, slots: &DeviceSlots) -> Digest {
        let beside = match unit.why {
            GrantReason::Verification(first) => Some(first),
            _ => unit.speculative_for.or(unit.after.as_ref().map(|after| after.lease)),
        };
        let beside = beside.and_then(|lease| self.state.lease(lease)?.class);
        let kept = job.trial(unit.unit.trial());
        let is_hop = unit.unit.hop().is_some();
        let may_stay = |class: &Digest| {
            is_hop || self.is_proved(job, *class) || !self.may_begin(job, &slots.classes)
        };
        let kept = || kept.and_then(|trial| self.state.required_class(job, trial)).filter(may_stay);
        let class = beside.or_else(kept).filter(|class| slots.classes.offers(*class));
        let class = class.filter(|_| job.spec.placement.reproducible);
        class.unwrap_or_else(|| self.class_for(job, &slots.classes))
    }
}
