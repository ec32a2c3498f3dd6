//! The server's answers: new leases, leases to drop, the ends of reports, and failures to answer.

use super::{Agent, Turn};
use crate::{
    action::Action,
    delivery::{Clock, GivenUp},
    event::{
        AskId, CallError, CallResult, ReleaseReason, ReportError, TransferView, UploadError,
        Uploaded,
    },
    lease::{HeldLease, LeaseEvent, LeaseState, Releasing, Reporting, Uploading},
    shutdown::Mode,
    time::Micros,
};
use sojourn_model::{Place, Work, least_memory};
use sojourn_protocol::{
    api::{HeartbeatAnswer, ReleaseAnswer, ReportAnswer, WorkAnswer},
    ids::LeaseId,
    inventory::CPU,
    quantity::to_usize,
    report::ReportState,
    unit::{Lease, Unit},
};

/// The longest pause before the server is asked again whether it takes the result of a unit that was granted
/// provisionally. Nothing is sent until it does.
const MAX_PROVISIONAL_PAUSE: Micros = Micros::from_secs(1);
/// Units that a host holds at most for each of its slots. It asks for two.
const MAX_UNITS_PER_SLOT: usize = 4;
/// Why a unit beyond these is given back.
const SURPLUS: &str = "the machine has more units than it asked for";

impl Agent {
    pub(super) fn work_answered<V: TransferView>(
        &mut self,
        id: AskId,
        result: CallResult<WorkAnswer>,
        turn: &mut Turn<'_, V>,
    ) {
        let (ask, is_current) = match self.requests.end_ask(id) {
            Some((ask, is_current)) => (Some(ask), is_current),
            None => (None, false),
        };
        if ask.as_ref().is_some_and(|ask| ask.is_last) {
            self.last_ask_ended();
        }
        let answer = match result {
            Ok(answer) => answer,
            Err(error) => {
                if is_current {
                    self.requests.unanswered(turn.now);
                    let at = (turn.now, &mut self.rng);
                    self.requests.ask_failed(error, &self.config, at);
                }
                return;
            }
        };
        self.server_answers(turn.now);
        let asked = ask.as_ref().map_or(&[][..], |ask| &ask.reported);
        let mut fruitful = self.obey(&answer.drop, &answer.reports, asked, turn);
        self.leave(answer.leave_within, turn);
        fruitful |= self.stop_hops(&answer.stop, turn);
        fruitful |= answer.evict.iter().any(|blob| turn.view.has(blob));
        turn.out.extend(answer.evict.into_iter().map(Action::Evict));
        if self.may_fetch_ahead() {
            fruitful |= self.fetches.fetch_ahead(answer.fetch, self.budget.free(), turn.view);
        }
        fruitful |= self.take_leases(answer.leases, turn);
        let Some(ask) = ask else { return };
        self.requests.sends_inventory = answer.send_inventory;
        fruitful |= answer.send_inventory && !ask.has_inventory;
        if is_current {
            let demand = self.device_demands().collect();
            let at = (turn.now, &mut self.rng);
            let again = Micros::from(answer.ask_again);
            self.requests.answered(&ask, fruitful, again, demand, &self.config, at);
        }
    }

    pub(super) fn heartbeat_answered<V: TransferView>(
        &mut self,
        result: CallResult<HeartbeatAnswer>,
        turn: &mut Turn<'_, V>,
    ) {
        self.last_heartbeat_ended();
        match result {
            Ok(answer) => {
                let reported = self.requests.beat_answered();
                self.server_answers(turn.now);
                self.obey(&answer.drop, &answer.reports, &reported, turn);
                self.leave(answer.leave_within, turn);
                self.stop_hops(&answer.stop, turn);
            }
            Err(error) => {
                self.requests.unanswered(turn.now);
                self.requests.beat_failed(error, &self.config, (turn.now, &mut self.rng));
            }
        }
    }

    /// The server is there. Where it wasn't, nothing waits any longer for its return.
    fn server_answers(&mut self, now: Micros) {
        if !self.requests.is_back(now) {
            return;
        }
        for lease in &mut self.leases {
            match &mut lease.state {
                LeaseState::Stored(stored) => stored.delivery.due = now.min(stored.delivery.due),
                LeaseState::Releasing(Releasing { retry_at: Some(at), .. }) => *at = now.min(*at),
                _ => {}
            }
        }
    }

    /// Does what an answer says of leases. `asked`: the acknowledged reports that the request named. False where that
    /// was nothing.
    fn obey<V: TransferView>(
        &mut self,
        drop: &[LeaseId],
        reports: &[ReportAnswer],
        asked: &[LeaseId],
        turn: &mut Turn<'_, V>,
    ) -> bool {
        let mut changed = false;
        for report in reports {
            if matches!(report.state, ReportState::Ended(_)) {
                changed |= self.apply(report.lease, LeaseEvent::ReportEnded, turn);
            }
        }
        for lease in drop {
            let is_acknowledged = self
                .lease(*lease)
                .is_some_and(|held| matches!(held.state(), LeaseState::Acknowledged(_)));
            let event = match is_acknowledged && asked.contains(lease) {
                true => LeaseEvent::DroppedAsReported,
                false => LeaseEvent::Dropped,
            };
            self.apply(*lease, event, turn);
            changed |= self.lease(*lease).is_none() && self.closed.contains(*lease);
        }
        changed
    }

    /// Has hops end early, as the server says. False where that was known.
    fn stop_hops<V: TransferView>(&mut self, leases: &[LeaseId], turn: &mut Turn<'_, V>) -> bool {
        let mut changed = false;
        for lease in leases {
            changed |= self.apply(*lease, LeaseEvent::StopAsked, turn);
            let held = self.index(*lease).ok().and_then(|at| self.leases.get_mut(at));
            if let Some(held) = held.filter(|held| held.is_work() && !held.is_in_slot()) {
                changed |= !std::mem::replace(&mut held.stops_at_start, true);
            }
        }
        changed
    }

    /// Takes new leases. False where none was new.
    fn take_leases<V: TransferView>(&mut self, leases: Vec<Lease>, turn: &mut Turn<'_, V>) -> bool {
        let (mut again, mut unwanted, mut surplus) = (Vec::new(), Vec::new(), Vec::new());
        let mut changed = false;
        for lease in leases {
            let Err(at) = self.index(lease.id) else { continue };
            if !matches!(self.mode, Mode::Normal) {
                unwanted.push(lease.id);
            } else if self.closed.contains(lease.id) {
                // The server still counts on it; without a word it would until the lease runs out.
                again.push(lease.id);
            } else if self.is_full() {
                surplus.push(lease.id);
            } else {
                changed = true;
                self.take_lease(at, Box::new(lease), turn);
            }
        }
        for (leases, reason) in [
            (again, ReleaseReason::Closed),
            (unwanted, ReleaseReason::Stopping),
            (surplus, ReleaseReason::Fault(SURPLUS.to_owned())),
        ] {
            if !leases.is_empty() {
                self.release(leases, reason, turn);
            }
        }
        changed
    }

    /// Has this host more units to do than any server that it asked would give it?
    fn is_full(&self) -> bool {
        let work = self.leases.iter().filter(|lease| lease.is_work()).count();
        let slots: usize = self.config.devices.iter().map(|device| to_usize(device.slots)).sum();
        work >= slots.saturating_mul(MAX_UNITS_PER_SLOT)
    }

    fn take_lease<V: TransferView>(
        &mut self,
        at: usize,
        lease: Box<Lease>,
        turn: &mut Turn<'_, V>,
    ) {
        let (id, upload) = (lease.id, lease.upload_bytes);
        let device = self.config.device(&lease.device);
        let memory = turn.view.memory(&lease.device);
        let too_much_memory =
            memory.and_then(|memory| takes_too_much(&lease.unit, &lease.device, memory));
        let mut held = HeldLease::granted(lease, device);
        let fetch = held.needs.missing(turn.view);
        held.continues = self.producer_of(held.needs.checkpoint());
        let refusal = too_large(&held, upload, turn.view.capacity()).or(too_much_memory);
        let too_large = match refusal {
            Some(reason) => Some(reason),
            None if self.budget.reserve(fetch.saturating_add(upload)) => {
                (held.reserved_fetch, held.reserved_upload) = (fetch, upload);
                None
            }
            None => Some(ReleaseReason::MonthlyBudget),
        };
        self.leases.insert(at, held);
        match too_large {
            Some(reason) => drop(self.apply(id, LeaseEvent::TooLarge(reason), turn)),
            None => self.begin_queued(turn),
        }
    }

    pub(super) fn report_ended<V: TransferView>(
        &mut self,
        id: LeaseId,
        result: Result<ReportAnswer, ReportError>,
        turn: &mut Turn<'_, V>,
    ) {
        let Some(LeaseState::Reporting(Reporting { result: facts, delivery })) =
            self.lease(id).map(HeldLease::state)
        else {
            return;
        };
        let (facts, delivery) = (*facts, *delivery);
        let event = match result {
            Ok(ReportAnswer { state: ReportState::Acknowledged, .. }) => {
                self.end_head_start(id);
                LeaseEvent::Acknowledged
            }
            Ok(ReportAnswer { state: ReportState::Ended(_), .. }) => LeaseEvent::ReportEnded,
            Err(error) => {
                let is_missing = matches!(error, ReportError::UploadMissing(_));
                let clock = self.clock(turn.now);
                let next =
                    delivery.report_failed(error, facts.has_checkpoint, clock, &mut self.rng);
                match next {
                    Ok(delivery) if is_missing => LeaseEvent::UploadMissing(delivery),
                    Ok(delivery) => LeaseEvent::NoAnswer(delivery),
                    Err(given_up) => give_up(given_up),
                }
            }
        };
        self.apply(id, event, turn);
    }

    pub(super) fn upload_ended<V: TransferView>(
        &mut self,
        id: LeaseId,
        result: Result<Uploaded, UploadError>,
        turn: &mut Turn<'_, V>,
    ) {
        let Some(held) = self.lease(id) else { return };
        let LeaseState::Uploading(Uploading { delivery, .. }) = held.state() else { return };
        let (delivery, is_provisional) = (*delivery, held.continues.is_some());
        let event = match result {
            // It has the checkpoint and yet refuses the report that goes with it.
            Ok(Uploaded::Before) if delivery.is_contested() => LeaseEvent::NotWanted(
                ReleaseReason::Fault("the server has another report for this lease".to_owned()),
            ),
            Ok(Uploaded::Before | Uploaded::Sent) => LeaseEvent::Uploaded,
            Err(error) => {
                let mut clock = self.clock(turn.now);
                if is_provisional {
                    clock.max_pause = clock.max_pause.min(MAX_PROVISIONAL_PAUSE);
                }
                match delivery.upload_failed(error, clock, &mut self.rng) {
                    Ok(delivery) => LeaseEvent::UploadFailed(delivery),
                    Err(given_up) => give_up(given_up),
                }
            }
        };
        self.apply(id, event, turn);
    }

    pub(super) fn release_ended<V: TransferView>(
        &mut self,
        leases: &[LeaseId],
        result: CallResult<ReleaseAnswer>,
        turn: &mut Turn<'_, V>,
    ) {
        self.open_releases = self.open_releases.saturating_sub(1);
        let released = match result {
            Ok(answer) => answer.released,
            Err(error) => {
                leases.iter().for_each(|lease| self.release_later(*lease, error, turn.now));
                return;
            }
        };
        for lease in leases {
            let held = self.lease(*lease).map(HeldLease::state);
            let is_unit_fault =
                matches!(held, Some(LeaseState::Releasing(Releasing { is_unit_fault: true, .. })));
            // The unit may have failed because the server had dropped its lease: that says nothing of the next.
            if is_unit_fault && !released.contains(lease) {
                self.cooldown.cancel();
            }
            self.apply(*lease, LeaseEvent::Released, turn);
        }
    }

    fn release_later(&mut self, lease: LeaseId, error: CallError, now: Micros) {
        let clock = self.clock(now);
        let Ok(at) = self.index(lease) else { return };
        let Some(held) = self.leases.get_mut(at) else { return };
        if let LeaseState::Releasing(releasing) = &mut held.state {
            let Releasing { retry_at, attempts, .. } = releasing;
            let rng = &mut self.rng;
            let pause = crate::retry::pause(*attempts, clock.max_pause, error.retry_after, rng);
            (*retry_at, *attempts) = (Some(now + pause), attempts.saturating_add(1));
        }
    }

    fn clock(&self, now: Micros) -> Clock {
        Clock { now, max_pause: self.config.max_retry_pause }
    }
}

/// Why a unit can't be done within so many bytes of disk, also with nothing else there.
fn too_large(lease: &HeldLease, upload: u64, capacity: u64) -> Option<ReleaseReason> {
    let begins = lease.needs.first.iter().map(|need| need.blob.bytes);
    let needed = begins.fold(0, u64::saturating_add).max(upload);
    (needed > capacity).then(|| {
        ReleaseReason::Fault(format!(
            "the unit takes {needed} bytes of disk, and this machine's owner lends {capacity}"
        ))
    })
}

/// Why a unit can't be done within so many bytes of memory, or at all: its model can't be built.
fn takes_too_much(unit: &Unit, device: &str, memory: u64) -> Option<ReleaseReason> {
    let work = match unit {
        Unit::Train(_) => Work::Training,
        Unit::Evaluate(_) => Work::Evaluation,
    };
    let place = if device == CPU { Place::Machine } else { Place::Gpu };
    let why = match least_memory(unit.context(), work, place) {
        Err(error) => format!("the unit's model can't be built: {error}"),
        Ok(needed) if needed > memory => format!(
            "the unit takes at least {needed} bytes of memory, and this machine has {memory} for it"
        ),
        Ok(_) => return None,
    };
    Some(ReleaseReason::Fault(why))
}

fn give_up(given_up: GivenUp) -> LeaseEvent {
    match given_up {
        GivenUp::NotWanted(reason) => LeaseEvent::NotWanted(ReleaseReason::Fault(reason)),
        GivenUp::FileLost(reason) => LeaseEvent::FileLost(ReleaseReason::Fault(reason)),
    }
}
