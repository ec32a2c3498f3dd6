//! Leases for a host that asks: what is picked for its slots, and which job's slot share it counts towards.

use super::dispatcher::Dispatcher;
use crate::{fault::CoreFault, leases::LeaseHandler};
use sojourn_protocol::{
    api::{WorkAnswer, WorkRequest},
    ids::HostId,
    inventory::Demand,
    time::Millis,
    unit,
};
use sojourn_scheduling::{
    hosts::{DeviceRef, workload_of},
    leases::{ProvisionalLease, ResultBefore},
    schedule::{Assignment, Explanation, NotBegun, Pick, PlannedHop, Priorities},
};
use sojourn_state::{Event, Lease, UnitKey};

impl Dispatcher<'_> {
    /// Grants units for each device, up to as many as are wanted there. Those for idle slots come first. The others are
    /// granted ahead, and only while the idle slots of other hosts don't need them.
    pub(super) fn grant(
        &mut self,
        host: HostId,
        demand: &[Demand],
        leases: &mut Vec<unit::Lease>,
    ) -> Result<(), CoreFault> {
        let mut filled = Vec::new();
        for Demand { device, idle, wanted, .. } in demand {
            let idle = *idle.min(wanted);
            let mut granted_now = 0;
            while granted_now < idle
                && let Some(lease) = self.grant_one(host, device, false)?
            {
                granted_now += 1;
                leases.push(lease);
            }
            filled.push(granted_now == idle);
        }
        for (Demand { device, idle, wanted, .. }, filled) in demand.iter().zip(filled) {
            let ahead = if filled { wanted.saturating_sub(*idle) } else { 0 };
            for _ in 0..ahead {
                let ledger = &self.leases.ledger;
                if ledger.state.supply() <= ledger.waiters.polls().idle_beside(host) {
                    return Ok(());
                }
                let Some(lease) = self.grant_one(host, device, true)? else { break };
                leases.push(lease);
            }
        }
        Ok(())
    }

    /// Grants units of jobs of higher priority in place of what a host hasn't begun, and revokes that.
    pub(super) fn replace_not_begun(
        &mut self,
        host: HostId,
        request: &WorkRequest,
        answer: &mut WorkAnswer,
    ) -> Result<(), CoreFault> {
        for NotBegun { priority, lease, device } in
            Priorities::of(&self.scheduler()).not_begun(host, request)
        {
            let ahead = !self.leases.occupancy().has_idle_slot(host, &device);
            let Some(assignment) = self.pick(host, &device, ahead, Some(priority)) else {
                continue;
            };
            self.leases.give_way(host, lease)?;
            answer.drop.push(lease);
            answer.leases.extend(self.give(host, &device, assignment)?);
        }
        Ok(())
    }

    /// Has leases of several hops end early where units of jobs of higher priority wait for their slots.
    pub(super) fn shorten_lower(
        &mut self,
        host: HostId,
        request: &WorkRequest,
    ) -> Result<(), CoreFault> {
        for demand in &request.demand {
            for lease in Priorities::of(&self.scheduler()).leases_to_shorten(host, &demand.device) {
                self.leases.stop(lease)?;
            }
        }
        Ok(())
    }

    fn grant_one(
        &mut self,
        host: HostId,
        device: &str,
        ahead: bool,
    ) -> Result<Option<unit::Lease>, CoreFault> {
        match self.pick(host, device, ahead, None) {
            Some(assignment) => self.give(host, device, assignment),
            None => Ok(None),
        }
    }

    /// Picks a unit for a slot, of a job of a priority above `above`, and remembers what the slot leaves to others.
    fn pick(
        &mut self,
        host: HostId,
        device: &str,
        ahead: bool,
        above: Option<i32>,
    ) -> Option<Assignment> {
        let LeaseHandler { ledger, hosts } = &mut self.leases;
        if !ledger.scheduler(hosts, self.data, self.policy).has_work_for(host) {
            return None;
        }
        hosts.session_mut(host)?.index_cache(&ledger.state.jobs);
        let slots = hosts.device(host, device)?;
        let scheduler = ledger.scheduler(hosts, self.data, self.policy);
        let pick = scheduler.pick(DeviceRef { host, slots, ahead }, above, self.rng);
        let (assignment, evaluations) = match pick {
            Pick::Assign(assignment, evaluations) => (Some(*assignment), evaluations),
            Pick::Defer { until, evaluations } => {
                ledger.waiters.offer_again(host, until);
                (None, evaluations)
            }
            Pick::Nothing => (None, Vec::new()),
        };
        let (state, now) = (&*ledger.state, ledger.clock.now());
        let is_open = |unit: &UnitKey| {
            let job = state.jobs.get(&unit.job());
            job.and_then(|job| job.live_of(unit)).is_some_and(|live| live.is_empty())
        };
        for unit in evaluations {
            ledger.waiters.defer_evaluation(unit, now, is_open);
        }
        assignment
    }

    /// Grants what was picked for a host's device; where the result before it isn't taken in yet, provisionally.
    pub(crate) fn give(
        &mut self,
        host: HostId,
        device: &str,
        assignment: Assignment,
    ) -> Result<Option<unit::Lease>, CoreFault> {
        let Some(slots) = self.leases.hosts.device(host, device) else { return Ok(None) };
        let job = self.leases.ledger.state.jobs.get(&assignment.unit.job());
        let Some(job) = job else { return Ok(None) };
        let cost = self.leases.cost();
        let computes_in = cost.class_of(job, &assignment, slots);
        let takes = cost.unit_time(slots.key(host, computes_in), assignment.unit, &assignment.then);
        // A unit that pins nothing is of no class that could be kept; the common one stands for the device.
        let reproducible = job.spec.placement.reproducible;
        let class = Some(if reproducible { computes_in } else { slots.device.numeric_class });
        let why = Explanation {
            reason: assignment.why,
            hops: assignment.then.len() + 1,
            takes,
            others: self.leases.ledger.waiters.polls().idle_beside(host),
        };
        let why = why.text();
        let granted_at = self.leases.ledger.clock.now();
        let lease = Lease {
            id: self.leases.occupancy().next_lease_id(),
            host,
            device: device.to_owned(),
            unit: assignment.unit,
            then: assignment.then,
            until: assignment.until,
            base: assignment.base,
            class,
            speculative_for: assignment.speculative_for,
            granted_at,
        };
        match assignment.after {
            Some(after) if class.is_some() => {
                Ok(self.give_provisionally(lease, assignment.planned, after, takes, why))
            }
            Some(_) => Ok(None),
            None => self.give_now(lease, assignment.planned, takes, why),
        }
    }

    fn give_now(
        &mut self,
        lease: Lease,
        planned: Option<PlannedHop>,
        takes: u64,
        why: String,
    ) -> Result<Option<unit::Lease>, CoreFault> {
        let (id, job, speculative_for) = (lease.id, lease.unit.job(), lease.speculative_for);
        let is_hop = matches!(lease.unit, UnitKey::Train { .. });
        let ledger = &mut self.leases.ledger;
        ledger.planner.pass_over_before(ledger.state, job);
        ledger.record(Event::LeaseGranted {
            lease: id,
            host: lease.host,
            device: lease.device,
            unit: lease.unit,
            then: lease.then,
            until: lease.until,
            base: lease.base,
            class: lease.class,
            speculative_for,
            why,
        })?;
        if let Some(granted) = self.leases.ledger.state.leases.get(&id).cloned() {
            self.leases.expect_shards(&granted);
            if speculative_for.is_none() {
                self.follow_plan(&granted, planned);
            }
            self.note_try(&granted);
        }
        if is_hop {
            self.leases.ledger.consider_speculation();
        }
        let deadline = self.leases.occupancy().deadline_for(id, Millis(takes / 1000));
        let ledger = &mut self.leases.ledger;
        ledger.leases.deadlines_mut().set(id, deadline);
        ledger.planner.charge(ledger.state, job, id, takes);
        Ok(self.leases.occupancy().lease_message(id))
    }

    /// Takes note of a lease that tries a workload which is held back.
    fn note_try(&mut self, lease: &Lease) {
        let LeaseHandler { ledger, hosts } = &mut self.leases;
        let (job, trial) = (lease.unit.job(), lease.unit.trial());
        if hosts.strikes().limits(job)
            && let Some(trial) = ledger.state.trial(job, trial)
        {
            hosts.strikes_mut().granted(&workload_of(job, trial), lease.id);
        }
    }

    /// Gives a host a lease that is granted when the result before it was taken in.
    fn give_provisionally(
        &mut self,
        lease: Lease,
        planned: Option<PlannedHop>,
        after: ResultBefore,
        takes: u64,
        why: String,
    ) -> Option<unit::Lease> {
        let provisional =
            ProvisionalLease { lease, start: after.start, base: after.produced, takes, why };
        let message = self.leases.occupancy().provisional_message(&provisional)?;
        let lease = provisional.lease.clone();
        self.leases.ledger.leases.provisional_mut().insert(after.lease, provisional);
        self.leases.expect_shards(&lease);
        self.follow_plan(&lease, planned);
        Some(message)
    }
}
