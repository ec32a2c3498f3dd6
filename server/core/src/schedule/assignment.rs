//! The choice for a slot: a unit, or until when to wait for one.

use super::{explain::GrantReason, plan::PlannedHop};
use crate::{event::UnitKey, leases::ResultBefore};
use sojourn_protocol::{
    ids::{LeaseId, ShardId, Version},
    time::UnixMillis,
};

/// A unit for a device.
pub(crate) struct Assignment {
    pub(crate) unit: UnitKey,
    /// Shards whose hops follow under the same lease.
    pub(crate) then: Vec<ShardId>,
    /// The batch of the last shard before which it ends, where that isn't the shard's end.
    pub(crate) until: Option<u32>,
    pub(crate) base: Version,
    /// The live lease of the same unit beside which it is a speculative one.
    pub(crate) speculative_for: Option<LeaseId>,
    /// The result that it goes on from, while that is uploaded: the lease is provisional.
    pub(crate) after: Option<ResultBefore>,
    pub(crate) why: GrantReason,
    /// The hop of the plan that it is.
    pub(crate) planned: Option<PlannedHop>,
}

/// The choice for a slot.
pub(crate) enum Pick {
    /// This unit. The evaluations are left to others.
    Assign(Box<Assignment>, Vec<UnitKey>),
    /// Nothing yet: others are likely to be done sooner.
    Defer {
        /// When to look again.
        until: UnixMillis,
        /// Evaluations that are left to others meanwhile.
        evaluations: Vec<UnitKey>,
    },
    /// Nothing.
    Nothing,
}
