//! Ending a lease without a report, or a unit before its time.

use super::handler::LeaseHandler;
use crate::{effect::Effect, fault::CoreFault, ledger::MIN_MEASURED_BATCHES};
use sojourn_protocol::ids::{HostId, LeaseId};
use sojourn_scheduling::{
    leases::{Deadline, StopRequest},
    waiters::Wake,
};
use sojourn_state::{Event, Lease, LeaseEnd, UnitKey};

/// The release reason of a lease that ran out before its host had begun it.
const NOT_BEGUN: &str = "let a lease run out that it had not begun";
/// The release reason of a lease that took longer than any may.
const TOO_LONG: &str = "let a lease run out that had taken longer than other hosts let expect";

impl LeaseHandler<'_> {
    /// Closes the leases that run out by now.
    pub(crate) fn expire(&mut self) -> Result<(), CoreFault> {
        let now = self.ledger.clock.now();
        while let Some((at, lease)) = self.ledger.leases.deadlines().first()
            && at <= now
        {
            let deadline = self.ledger.leases.deadline(lease);
            let silent = deadline.is_some_and(|deadline| deadline.renew_by <= now);
            self.close(lease, if silent { LeaseEnd::Silent } else { LeaseEnd::Overdue })?;
        }
        Ok(())
    }

    /// Ends a live lease without a report.
    pub(crate) fn close(&mut self, lease: LeaseId, end: LeaseEnd) -> Result<(), CoreFault> {
        let known = self.ledger.state.leases.get(&lease).cloned();
        let deadline = self.ledger.leases.deadline(lease).copied();
        self.ledger.leases.end(lease);
        let Some(known) = known else { return Ok(()) };
        let host = known.host;
        let now = self.ledger.clock.now();
        self.ledger.planner.settle_held(self.ledger.state, &known, now);
        if let Some(deadline) = &deadline {
            self.measure_unfinished(&known, deadline);
        }
        if end != LeaseEnd::Revoked {
            self.ledger.planner.plan_overtaken(known.unit.job(), now);
        }
        if matches!(end, LeaseEnd::Revoked | LeaseEnd::GivenBack { .. }) {
            self.ledger.effect(Effect::DropUpload(lease));
        }
        if let Some(deadline) = deadline.filter(|_| end == LeaseEnd::Overdue) {
            if deadline.bounds.ends_by <= now {
                self.took_too_long(host, now - known.granted_at, &TOO_LONG.into());
            } else if !deadline.started {
                self.count_release(host, &NOT_BEGUN.into());
            }
        }
        self.ledger.record(Event::LeaseEnded { lease, end })
    }

    /// Adds to the estimates how fast a host trained a hop whose result isn't wanted any more, as far as it has reported. Else a
    /// host that others always overtake would never be known to be slow.
    fn measure_unfinished(&mut self, lease: &Lease, deadline: &Deadline) {
        let Some((micros, batches)) = deadline.pace() else { return };
        let (job, trial) = (lease.unit.job(), lease.unit.trial());
        let known = self.ledger.state.trial(job, trial).filter(|_| lease.unit.hop().is_some());
        let Some(known) = known.filter(|_| u64::from(batches) >= MIN_MEASURED_BATCHES) else {
            return;
        };
        let rows = u64::from(batches) * u64::from(known.context.config.training.batch_size);
        let device = self.cost().device_of(lease);
        self.ledger.planner.estimates_mut().measured(device, (job, trial), rows, micros);
        self.ledger.take_in_estimates();
    }

    /// Revokes a lease that its host hasn't begun, a provisional one too: a job of higher priority has the slot.
    pub(crate) fn give_way(&mut self, host: HostId, lease: LeaseId) -> Result<(), CoreFault> {
        match self.ledger.leases.provisional_mut().take(host, lease) {
            Some(provisional) => self.ledger.withdrawn(&provisional),
            None => {
                let job = self.ledger.state.leases.get(&lease).map(|lease| lease.unit.job());
                self.close(lease, LeaseEnd::Revoked)?;
                job.into_iter().for_each(|job| self.ledger.planner.outdate_plan(job));
            }
        }
        Ok(())
    }

    /// Closes leases whose unit is settled.
    pub(crate) fn revoke(
        &mut self,
        leases: impl IntoIterator<Item = LeaseId>,
    ) -> Result<(), CoreFault> {
        leases.into_iter().try_for_each(|lease| self.close(lease, LeaseEnd::Revoked))
    }

    /// Ends a unit before its time: a hop in a slot comes back as far as it is, anything else is revoked.
    pub(crate) fn stop(&mut self, lease: LeaseId) -> Result<(), CoreFault> {
        let Some(known) = self.ledger.state.leases.get(&lease) else { return Ok(()) };
        let host = known.host;
        let is_hop = matches!(known.unit, UnitKey::Train { .. });
        match self.ledger.leases.deadline(lease) {
            Some(deadline) if is_hop && deadline.started => {
                if !deadline.is_finished() && !deadline.is_to_stop() {
                    self.ledger.leases.deadlines_mut().set_stop(lease, StopRequest::Wanted);
                    self.ledger.waiters.wake(Wake::Host(host));
                }
                Ok(())
            }
            _ => self.close(lease, LeaseEnd::Revoked),
        }
    }

    /// Hops that a host runs and is to end early.
    pub(crate) fn leases_to_stop(&self, host: HostId) -> Vec<LeaseId> {
        let live = self.ledger.state.hosts.get(&host).map(|host| &host.live);
        let stops = |lease: &&LeaseId| {
            let deadline = self.ledger.leases.deadline(**lease);
            deadline.is_some_and(|deadline| deadline.is_to_stop() && !deadline.is_finished())
        };
        live.into_iter().flatten().filter(stops).copied().collect()
    }

    /// The hops to end early that the host hasn't been told of yet. They count as told from now on.
    pub(crate) fn take_stop_requests(&mut self, host: HostId) -> Vec<LeaseId> {
        let mut stop = self.leases_to_stop(host);
        let deadlines = self.ledger.leases.deadlines_mut();
        stop.retain(|lease| {
            let wanted = deadlines.get(*lease).is_some_and(|of| of.stop == StopRequest::Wanted);
            if wanted {
                deadlines.set_stop(*lease, StopRequest::Sent);
            }
            wanted
        });
        stop
    }

    /// A paused job goes on: its hops needn't end early. A host that was told ends one nevertheless, which is harmless.
    pub(crate) fn cancel_stops(&mut self, leases: Vec<LeaseId>) {
        for lease in leases {
            self.ledger.leases.deadlines_mut().set_stop(lease, StopRequest::None);
        }
    }
}
