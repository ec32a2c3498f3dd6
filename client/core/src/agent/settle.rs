//! Everything that is due after each event: retries, slots for units that are ready, blobs to fetch ahead, heartbeats, and
//! requests for work.

use super::{Agent, Turn};
use crate::{
    action::Action,
    demand::{self, DeviceDemand},
    event::{ReleaseReason, TransferView},
    lease::{HeldLease, LeaseEvent, LeaseState, Releasing},
    needs::{Rest, batches_of},
    shutdown::Mode,
    time::Micros,
};
use sojourn_protocol::{ids::LeaseId, trainer::Progress};

impl Agent {
    pub(super) fn settle<V: TransferView>(&mut self, turn: &mut Turn<'_, V>) {
        self.now = turn.now;
        if matches!(self.mode, Mode::Ended) {
            return;
        }
        self.slots.restore(turn.now);
        if matches!(self.mode, Mode::Normal | Mode::Draining(_)) {
            self.keep_limits(turn);
        }
        self.retry_due(turn);
        if matches!(self.mode, Mode::Normal) {
            self.begin_queued(turn);
        }
        self.assign_slots(turn);
        self.divide(turn);
        self.leave_idle(turn);
        self.advance_ending(turn);
        if self.may_fetch_ahead() {
            self.fetches.advance(self.budget.free(), turn.view, &mut turn.out);
        }
        self.beat(turn);
        self.ask(turn);
    }

    /// When [`crate::Event::Tick`] is wanted at the latest; none where nothing is due without another event.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Micros> {
        if matches!(self.mode, Mode::Ended) {
            return None;
        }
        let retries = self.leases.iter().filter_map(|lease| match lease.state() {
            LeaseState::Stored(_) if self.waits_for_result_before(lease) => None,
            LeaseState::Stored(stored) => Some(stored.delivery.due),
            LeaseState::Releasing(releasing) => releasing.retry_at,
            _ => None,
        });
        let beat = self.requests.next_beat(self.heartbeat_interval());
        let idle = self.idle_end().filter(|_| matches!(self.mode, Mode::Normal));
        let (slots, cpu_shares) = (self.slots.next_deadline(), self.cpu_shares.due());
        let other = [slots, cpu_shares, self.ending_deadline(), self.ask_at(), beat, idle];
        retries.chain(other.into_iter().flatten()).filter(|at| *at > self.now).min()
    }

    /// May blobs be fetched that no unit needs yet? They would take the room that a low disk still has.
    pub(super) const fn may_fetch_ahead(&self) -> bool {
        matches!(self.mode, Mode::Normal) && !self.owner.disk_is_low
    }

    /// Gives back what may not be done now, and has hops end.
    fn keep_limits<V: TransferView>(&mut self, turn: &mut Turn<'_, V>) {
        if self.owner.is_suspended {
            self.stop_all_hops(turn);
            self.withdraw(|lease| !lease.is_stoppable(), ReleaseReason::Paused, turn);
        }
        if self.owner.disk_is_low {
            self.withdraw(|lease| !lease.is_in_slot(), ReleaseReason::DiskReserve, turn);
        }
        // A unit may have set aside the bytes that a blob which no unit needs was to take.
        if self.fetches.rest_ahead(turn.view) > self.budget.free() {
            self.fetches.stop_ahead(&mut turn.out);
        }
        if self.budget.is_over() {
            self.withdraw(|lease| !lease.is_in_slot(), ReleaseReason::MonthlyBudget, turn);
            let comes = |lease: &&HeldLease| matches!(lease.needs.rest, Rest::Coming(..));
            let coming = self.leases.iter().filter(comes).map(HeldLease::id);
            for lease in coming.collect::<Vec<_>>() {
                self.give_up_rest(lease, turn);
            }
        }
    }

    pub(super) fn stop_all_hops<V: TransferView>(&mut self, turn: &mut Turn<'_, V>) {
        let hops = self.leases.iter().filter(|lease| lease.is_stoppable()).map(HeldLease::id);
        for lease in hops.collect::<Vec<_>>() {
            self.apply(lease, LeaseEvent::StopAsked, turn);
        }
    }

    /// Gives back, in one call, those of the unfinished leases.
    pub(super) fn withdraw<V: TransferView>(
        &mut self,
        which: impl Fn(&HeldLease) -> bool,
        reason: ReleaseReason,
        turn: &mut Turn<'_, V>,
    ) {
        // Those among them that the server is being told of are left to that call.
        let unfinished = |lease: &&HeldLease| match lease.state() {
            LeaseState::Releasing(releasing) => releasing.retry_at.is_some(),
            _ => lease.is_work(),
        };
        let leases = self.leases.iter().filter(unfinished).filter(|lease| which(lease));
        for lease in leases.map(HeldLease::id).collect::<Vec<_>>() {
            self.apply(lease, LeaseEvent::Withdrawn, turn);
        }
        let withdrawn = std::mem::take(&mut turn.withdrawn);
        if !withdrawn.is_empty() {
            self.release(withdrawn, reason, turn);
        }
    }

    /// Tells the server that leases are given back.
    pub(super) fn release<V>(
        &mut self,
        leases: Vec<LeaseId>,
        reason: ReleaseReason,
        turn: &mut Turn<'_, V>,
    ) {
        self.open_releases += 1;
        turn.out.push(Action::Release(leases, reason));
    }

    fn retry_due<V: TransferView>(&mut self, turn: &mut Turn<'_, V>) {
        let now = turn.now;
        let is_due = |lease: &&HeldLease| match lease.state() {
            LeaseState::Stored(stored) => stored.delivery.due <= now,
            LeaseState::Releasing(Releasing { retry_at: Some(at), .. }) => *at <= now,
            _ => false,
        };
        if !self.leases.iter().any(|lease| is_due(&lease)) {
            return;
        }
        for id in self.leases.iter().filter(is_due).map(HeldLease::id).collect::<Vec<_>>() {
            self.deliver(id, turn);
            let Ok(at) = self.index(id) else { continue };
            let Some(lease) = self.leases.get_mut(at) else { continue };
            if let LeaseState::Releasing(releasing) = &mut lease.state {
                releasing.retry_at = None;
                let reason = releasing.reason.clone();
                self.release(vec![id], reason, turn);
            }
        }
    }

    /// Gives free slots to the units that became ready first.
    fn assign_slots<V: TransferView>(&mut self, turn: &mut Turn<'_, V>) {
        if !self.owner.computes {
            return;
        }
        for device in 0..self.config.devices.len() {
            while self.slots.has_free(device)
                && let Some(id) = self.first_ready(device)
                && let Some(slot) = self.slots.take(device)
            {
                let of = self.lease(id).map_or(0, |lease| match lease.state() {
                    LeaseState::Ready(ready) => batches_of(&ready.lease.unit),
                    _ => 0,
                });
                let event = LeaseEvent::SlotAssigned(slot, Progress { done: 0, of });
                self.apply(id, event, turn);
            }
        }
    }

    /// Gives running units their CPU shares.
    fn divide<V>(&mut self, turn: &mut Turn<'_, V>) {
        let unit = |id: LeaseId| self.leases.iter().find(|lease| lease.id() == id);
        let is_running = |id: LeaseId| unit(id).and_then(HeldLease::slot).is_some();
        let is_held = |id: LeaseId| unit(id).is_some();
        let cpu_shares = self.cpu_shares.settle(turn.now, is_running, is_held);
        turn.out.extend(cpu_shares.map(Action::SetCpuShares));
    }

    fn first_ready(&self, device: usize) -> Option<LeaseId> {
        let ready = self.leases.iter().filter_map(|lease| match lease.state() {
            LeaseState::Ready(ready) if lease.device == Some(device) => {
                Some((ready.turn, lease.id()))
            }
            _ => None,
        });
        ready.min().map(|(_, id)| id)
    }

    /// How often to send heartbeats; none while nothing is held.
    fn heartbeat_interval(&self) -> Option<Micros> {
        let held = self.leases.iter().filter(|l| !matches!(l.state(), LeaseState::Acknowledged(_)));
        held.map(|lease| lease.heartbeat_interval).min()
    }

    fn beat<V>(&mut self, turn: &mut Turn<'_, V>) {
        if !matches!(self.mode, Mode::Normal | Mode::Draining(_)) {
            return;
        }
        let interval = self.heartbeat_interval();
        if self.requests.beat_at(interval, turn.now).is_some_and(|at| at <= turn.now) {
            self.requests.begin_beat(turn.now);
            turn.out.push(Action::Beat);
        }
    }

    /// The demand of each device.
    pub(super) fn device_demands(&self) -> impl Iterator<Item = DeviceDemand> {
        let devices = 0..self.config.devices.len();
        devices.map(|device| match self.owner.disk_is_low {
            // A host without slots is there, and gets nothing.
            true => DeviceDemand::default(),
            false => demand::of_device(device, &self.config, &self.slots, &self.leases),
        })
    }

    /// When to ask for work; none where no slot may be used, something speaks against it, or a request says it already.
    fn ask_at(&self) -> Option<Micros> {
        let may_ask = matches!(self.mode, Mode::Normal)
            && self.owner.computes
            && !self.owner.is_suspended
            && self.budget.is_open();
        // One whose disk is low asks for nothing, and says so.
        let says = self.owner.disk_is_low || self.device_demands().any(|demand| demand.slots > 0);
        if !may_ask || !says {
            return None;
        }
        let is_more = |said: &[DeviceDemand]| {
            self.device_demands().zip(said).any(|(demand, said)| demand.is_more_than(*said))
        };
        let is_said = self
            .requests
            .current()
            .is_some_and(|open| !is_more(&open.demand) && !self.requests.inventory_changed);
        if is_said {
            return None;
        }
        let at = self.requests.ask_at(is_more);
        let at = at.max(self.cooldown.until().unwrap_or_default());
        let head_start = self.head_start.as_ref().map(|(until, _)| *until);
        Some(at.max(head_start.unwrap_or_default()))
    }

    fn ask<V>(&mut self, turn: &mut Turn<'_, V>) {
        if self.ask_at().is_some_and(|at| at <= turn.now) {
            let demand = self.device_demands().collect();
            let ask = self.requests.begin_ask(demand, false, turn.now);
            turn.out.push(Action::Ask(ask));
        }
    }
}
