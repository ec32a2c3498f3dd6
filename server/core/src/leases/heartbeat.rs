//! Heartbeats: a host is present, its leases make progress, some are of no use any more.

use super::handler::LeaseHandler;
use crate::{effect::Effect, fault::CoreFault, reply::Reply};
use sojourn_protocol::{
    api::{HeartbeatAnswer, HeartbeatRequest, Held, HeldState},
    ids::{HostId, LeaseId},
    quantity::to_usize,
    time::Millis,
};
use sojourn_scheduling::leases::{Deadline, StopRequest};
use sojourn_state::{LeaseEnd, PastState, UnitKey};

/// Overrun leases are dropped after this many times `CoreConfig::least_due` without progress.
const OVERRUN_PATIENCE: u64 = 10;

impl LeaseHandler<'_> {
    /// A host is present. The answer: leases to drop, reports that have ended, hops to end early.
    pub(crate) fn heartbeat(
        &mut self,
        host: HostId,
        HeartbeatRequest { holding, reported }: &HeartbeatRequest,
    ) -> Reply<HeartbeatAnswer> {
        self.ledger.state.check_host(host)?;
        self.mark_present(host, holding)?;
        let drop = self.drop_unwanted(host, holding);
        let reports = self.ledger.state.ended_reports(host, reported);
        let leaves_at = self.hosts.leaves_at(self.ledger.state, host);
        let leave_within = leaves_at.map(|at| at - self.ledger.clock.now());
        Ok(HeartbeatAnswer { drop, reports, stop: self.leases_to_stop(host), leave_within })
    }

    /// The host is present, and so are the leases that it holds: their deadlines move.
    pub(crate) fn mark_present(&mut self, host: HostId, held: &[Held]) -> Result<(), CoreFault> {
        self.revoke(self.paused_before_start(host, held))?;
        let now = self.ledger.clock.now();
        let session = self.hosts.open_session(host);
        session.seen_at = now;
        let slots = to_usize(session.slots);
        let busy =
            held.iter().any(|held| held.state.progress().is_some() && self.is_own(host, held));
        let mut slots = SlotCount { slots, running: None, busy };
        for held in held {
            self.hear_cpu_share(host, held);
            self.record_losses(host, held);
            let live = self.ledger.state.leases.get(&held.lease);
            let own = live.is_some_and(|lease| lease.host == host);
            let deadline = self.ledger.leases.deadline(held.lease).copied();
            let Some(deadline) = deadline.filter(|_| own) else {
                self.watch_overrun(host, held);
                let last = self.ledger.state.last_lease;
                self.ledger.leases.provisional_mut().was_provisional(held.lease, last);
                continue;
            };
            self.ledger.leases.heard(held);
            let deadline = self.progressed(host, deadline, held, &mut slots);
            self.ledger.leases.deadlines_mut().set(held.lease, deadline);
        }
        Ok(())
    }

    /// Keeps what the host has seen of the trial of one of its leases.
    fn hear_cpu_share(&mut self, host: HostId, held: &Held) {
        let Some(cpu_share) = held.cpu_share else { return };
        let state = &*self.ledger.state;
        let live = state.leases.get(&held.lease);
        let lease = live.or_else(|| state.past.get(&held.lease).map(|past| &past.lease));
        if let Some(lease) = lease.filter(|lease| lease.host == host) {
            self.ledger.leases.cpu_shares_mut().heard(state, lease, cpu_share);
        }
    }

    /// Takes in the losses of a unit, where its job's policy looks at them.
    fn record_losses(&mut self, host: HostId, held: &Held) {
        let Some(losses) = held.losses else { return };
        let state = &*self.ledger.state;
        let lease = state.leases.get(&held.lease).filter(|lease| lease.host == host);
        let Some(hop) = lease.and_then(|lease| lease.unit.hop()) else { return };
        let job = state.jobs.get(&hop.job).filter(|job| job.spec.placement.residency.looks());
        let Some(trial) = job.and_then(|job| job.trial(hop.trial)) else { return };
        // No more than its unit has.
        let of = self.ledger.leases.deadline(held.lease).map_or(0, |deadline| deadline.of);
        if losses.batches <= of {
            self.ledger.leases.losses_mut().heard(state, (hop.job, trial), (held.lease, losses));
        }
    }

    /// May a held lease be in a slot: does it live, or has it run out, or is it provisional, and is it the host's?
    fn is_own(&self, host: HostId, held: &Held) -> bool {
        let state = &*self.ledger.state;
        let ran_out = || {
            let past = state.past.get(&held.lease);
            let past = past.filter(|past| matches!(past.state, PastState::Closed(_)));
            past.is_some_and(|past| past.lease.host == host)
        };
        match state.leases.get(&held.lease) {
            Some(lease) => lease.host == host,
            None => self.ledger.leases.provisional().has(host, held.lease) || ran_out(),
        }
    }

    /// The deadline of a live lease, after its host has reported how far it is.
    fn progressed(
        &self,
        host: HostId,
        mut deadline: Deadline,
        held: &Held,
        slots: &mut SlotCount,
    ) -> Deadline {
        let (now, config) = (self.ledger.clock.now(), self.ledger.config);
        deadline.renew_by = now + config.lease_term;
        let grace = now + config.start_grace;
        match held.state {
            HeldState::Waiting => {
                // It starts when the unit before it ends, however long that takes. Where none runs, it should have
                // started.
                if !deadline.started && slots.busy {
                    deadline.due = deadline.due.max(grace);
                }
            }
            HeldState::Fetching { fetched } => deadline.fetched_more(fetched, grace),
            HeldState::Running { done, of } | HeldState::Awaiting { done, of, .. } => {
                let had_for = now - deadline.sent_at;
                let (done, of) = deadline.bounds.believed((done, of), had_for);
                let starts = !deadline.started && self.has_free_slot(host, slots);
                if starts {
                    (deadline.since, deadline.first) = (now, done);
                    deadline.started = true;
                    slots.running = slots.running.map(|running| running + 1);
                    self.review(held.lease, &mut deadline, true);
                }
                if starts || (deadline.started && done > deadline.done) {
                    (deadline.done, deadline.of, deadline.done_at) = (done, of, now);
                    let cost = self.cost();
                    let whole = cost.lease_estimate(held.lease);
                    let remaining = u64::from(of.saturating_sub(done));
                    let remaining = whole.0.saturating_mul(remaining) / u64::from(of.max(1));
                    deadline.due = now + cost.patience(held.lease, Millis(remaining));
                }
                // The bytes that it waits for arrive, if slowly.
                if let HeldState::Awaiting { fetched, .. } = held.state {
                    deadline.fetched_more(fetched, grace);
                }
            }
            HeldState::Finished | HeldState::Sending { .. } => {
                // Its slot is free. The upload remains.
                if deadline.is_running() {
                    slots.running = slots.running.map(|running| running.saturating_sub(1));
                }
                deadline.produced = held.result;
                if !deadline.is_finished() {
                    (deadline.finished_at, deadline.uploaded_at) = (Some(now), now);
                    deadline.bounds.trained(now);
                    deadline.due = now + self.cost().delivery_time(held.lease);
                }
                // More than ever before: a slow link, but it works.
                if let HeldState::Sending { sent } = held.state
                    && sent.min(deadline.bounds.allowance.upload) > deadline.uploaded
                {
                    deadline.uploaded = sent.min(deadline.bounds.allowance.upload);
                    deadline.uploaded_at = now;
                    deadline.due = deadline.due.max(grace);
                }
            }
        }
        self.review(held.lease, &mut deadline, false);
        deadline
    }

    /// Looks at what was measured of others since, and has a hop end early that has taken half of what it may: so a
    /// slow host delivers what it has, before it loses the lease. A part of a unit that is verified is of no use: its lease
    /// goes on until its end.
    fn review(&self, lease: LeaseId, deadline: &mut Deadline, begun: bool) {
        let now = self.ledger.clock.now();
        if deadline.is_finished() {
            return;
        }
        let Some(known) = self.ledger.state.leases.get(&lease) else { return };
        if begun || now >= deadline.bounds.review_at {
            deadline.bounds.review(now, begun, self.cost().allowance(known));
        }
        if deadline.is_running()
            && deadline.stop == StopRequest::None
            && matches!(known.unit, UnitKey::Train { .. })
            && deadline.bounds.is_to_stop(deadline.since, now)
            && !self.ledger.state.is_being_verified(&known.unit)
        {
            deadline.stop = StopRequest::Wanted;
        }
    }

    /// Has the host a slot in which no lease runs? The running leases are counted when that is first asked.
    fn has_free_slot(&self, host: HostId, slots: &mut SlotCount) -> bool {
        let running = slots.running.get_or_insert_with(|| self.occupancy().running_leases(host));
        *running < slots.slots
    }

    /// Leases of paused jobs that a host holds and hasn't started.
    fn paused_before_start(&self, host: HostId, held: &[Held]) -> Vec<LeaseId> {
        let state = &*self.ledger.state;
        let own = |id: LeaseId| state.leases.get(&id).is_some_and(|lease| lease.host == host);
        let paused = held.iter().filter(|held| match held.state {
            HeldState::Waiting | HeldState::Fetching { .. } => {
                own(held.lease) && state.is_paused(held.lease)
            }
            HeldState::Running { .. }
            | HeldState::Awaiting { .. }
            | HeldState::Finished
            | HeldState::Sending { .. } => false,
        });
        paused.map(|held| held.lease).collect()
    }

    /// A lease of the host that ran out may still bring a result. One that makes no progress hangs. Of leases of other
    /// hosts nothing is believed.
    fn watch_overrun(&mut self, host: HostId, held: &Held) {
        let past = self.ledger.state.past.get(&held.lease);
        let Some(past) = past.filter(|past| past.lease.host == host) else { return };
        let ran_out = matches!(past.state, PastState::Closed(_));
        if let (HeldState::Running { done, of }, true) = (held.state, ran_out) {
            let done = done.min(of).min(self.cost().allowance(&past.lease).batches);
            self.ledger.leases.watch_overrun(held.lease, done, self.ledger.clock.now());
        } else {
            self.ledger.leases.end_overrun(held.lease);
        }
    }

    /// Has a lease that ran out made no progress for as long as a slow unit may take?
    fn is_hung(&self, lease: LeaseId) -> bool {
        let patience = Millis(self.ledger.config.least_due.0.saturating_mul(OVERRUN_PATIENCE));
        let since = self.ledger.leases.overrun_since(lease);
        since.is_some_and(|since| since + patience < self.ledger.clock.now())
    }

    /// Takes out the held leases that are of no use any more, with what was uploaded under them.
    pub(crate) fn drop_unwanted(&mut self, host: HostId, held: &[Held]) -> Vec<LeaseId> {
        let unwanted = |held: &&Held| self.is_unwanted(host, held);
        let dropped: Vec<LeaseId> = held.iter().filter(unwanted).map(|held| held.lease).collect();
        for lease in &dropped {
            let past = self.ledger.state.past.get(lease);
            if past.is_some_and(|past| past.lease.host == host) {
                self.ledger.leases.end_overrun(*lease);
                self.ledger.leases.drop_upload(*lease);
                self.ledger.effect(Effect::DropUpload(*lease));
            }
        }
        dropped
    }

    /// Is a held lease of no use any more: not this host's, revoked, settled, or hung?
    fn is_unwanted(&self, host: HostId, held: &Held) -> bool {
        let state = &*self.ledger.state;
        if let Some(lease) = state.leases.get(&held.lease) {
            return lease.host != host || !state.is_wanted(lease);
        }
        if self.ledger.leases.provisional().has(host, held.lease) {
            return false;
        }
        let Some(past) = state.past.get(&held.lease) else { return true };
        let is_useless = past.lease.host != host || !state.is_wanted(&past.lease);
        match &past.state {
            PastState::Closed(LeaseEnd::Silent) => is_useless || self.is_hung(held.lease),
            // A unit that hung is to be stopped. One that is trained may still be of use.
            PastState::Closed(LeaseEnd::Overdue) => is_useless || !held.state.is_finished(),
            PastState::Closed(LeaseEnd::Revoked | LeaseEnd::GivenBack { .. }) => true,
            PastState::Acknowledged(_) | PastState::Failed(_) | PastState::Ended(_) => {
                past.lease.host != host
            }
        }
    }
}

/// The slots of a host, while its held leases are gone through.
struct SlotCount {
    slots: usize,
    /// Running leases; `None` where they haven't been counted, as no lease has started.
    running: Option<usize>,
    /// Does any unit run there?
    busy: bool,
}
