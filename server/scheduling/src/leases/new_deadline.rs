//! The deadline of a new lease.

use super::{
    bounds::LeaseBounds,
    deadline::{Deadline, StopRequest},
};
use crate::leases::Occupancy;
use sojourn_protocol::{
    ids::LeaseId,
    quantity::to_usize,
    time::{Millis, UnixMillis},
};

impl Occupancy<'_> {
    /// The deadline of a lease that has just been granted, or whose server has just started.
    pub fn new_deadline(&self, lease: LeaseId) -> Deadline {
        self.deadline_for(lease, self.cost.lease_estimate(lease))
    }

    /// The same, where it is known how long its unit should take.
    pub fn deadline_for(&self, lease: LeaseId, estimate: Millis) -> Deadline {
        let known = self.state.leases.get(&lease);
        let allowance = known.map(|known| self.cost.allowance(known)).unwrap_or_default();
        Deadline {
            renew_by: self.now + self.cost.config.lease_term,
            due: self.now + self.cost.config.start_grace + self.cost.patience(lease, estimate),
            bounds: LeaseBounds::new(self.slot_free_by(lease), allowance),
            started: false,
            since: self.now,
            first: 0,
            finished_at: None,
            produced: None,
            sent_at: self.now,
            fetched: 0,
            done: 0,
            of: 0,
            done_at: self.now,
            uploaded: 0,
            uploaded_at: self.now,
            stop: StopRequest::None,
        }
    }

    /// When the slots of a new lease's device are free at the latest: the leases there have ended by then.
    fn slot_free_by(&self, lease: LeaseId) -> UnixMillis {
        let Some(known) = self.state.leases.get(&lease) else { return self.now };
        let slots = self.hosts.device(known.host, &known.device).map_or(1, |slots| slots.count);
        let others = self.leases_on(known.host, &known.device).filter(|other| *other != lease);
        let others = others.filter_map(|other| self.leases.deadline(other));
        let (count, last) = others
            .filter(|other| !other.is_finished())
            .fold((0, self.now), |(count, last), other| {
                (count + 1, last.max(other.bounds.ends_by))
            });
        if count < to_usize(slots.max(1)) { self.now } else { last }
    }
}
