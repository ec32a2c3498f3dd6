//! Lease events: the transition of one lease, and what follows from it for slots, blobs and bytes.

use super::{Agent, Turn};
use crate::{
    action::{Action, Priority, UploadStart},
    delivery::DeliveryStep,
    event::{ReleaseReason, TrainerState, TransferView, UnitError},
    lease::{Blocked, HeldLease, LeaseAction, LeaseEvent, LeaseState, Losses, Releasing},
    needs::Rest,
    time::Micros,
};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::LeaseId,
};

impl Agent {
    /// Has a lease take an event. False where that changed nothing: it isn't held, or the event isn't for its state.
    pub(super) fn apply<V: TransferView>(
        &mut self,
        id: LeaseId,
        event: LeaseEvent,
        turn: &mut Turn<'_, V>,
    ) -> bool {
        let Ok(at) = self.index(id) else { return false };
        let Some(lease) = self.leases.get_mut(at) else { return false };
        let before = Before::of(lease);
        let Some(transition) = lease.step(event) else { return false };
        let closed = transition.is_closed.then(|| self.close(at));
        let now_work = closed.is_none() && self.lease(id).is_some_and(HeldLease::is_work);
        for action in transition.actions.into_iter().flatten() {
            self.carry_out(id, action, before, turn);
        }
        if before.is_work && !now_work {
            self.leave_work(id, closed, before, turn);
        } else if let Some(lease) = closed {
            self.budget.release(lease.reserved_upload);
        }
        self.give_up_reservation(id);
        true
    }

    fn carry_out<V: TransferView>(
        &mut self,
        id: LeaseId,
        action: LeaseAction,
        before: Before,
        turn: &mut Turn<'_, V>,
    ) {
        match action {
            LeaseAction::Fetch => self.fetch_first(id, turn),
            LeaseAction::FetchRest => self.fetch_rest(id, turn),
            LeaseAction::Start(lease, slot) => {
                self.cpu_shares.begin(&lease, slot);
                turn.out.push(Action::Start(lease, slot));
                let held = self.index(id).ok().and_then(|at| self.leases.get_mut(at));
                let Some(held) = held else { return };
                held.losses = Losses::from(held.in_slot().map_or(0, |unit| unit.progress.done));
                let here = held.needs.later.iter().map(|need| need.blob.sha256);
                let here = here.filter(|blob| self.fetches.is_here(blob));
                turn.out.extend(here.map(|blob| Action::HandOver(id, blob)));
                if held.stops_at_start {
                    self.apply(id, LeaseEvent::StopAsked, turn);
                }
            }
            LeaseAction::HandOver(blob) => turn.out.push(Action::HandOver(id, blob)),
            LeaseAction::StopAfterBatch => turn.out.push(Action::StopAfterBatch(id)),
            LeaseAction::Deliver => self.deliver(id, turn),
            LeaseAction::Upload => {
                let Some(held) = self.lease(id) else { return };
                let LeaseState::Uploading(uploading) = held.state() else { return };
                let start = match uploading.delivery.next {
                    // Until the result before it was taken in, the server refuses each byte.
                    DeliveryStep::Upload if held.continues.is_some() => UploadStart::Locate,
                    DeliveryStep::Upload => UploadStart::FirstByte,
                    DeliveryStep::Locate | DeliveryStep::Report => UploadStart::Locate,
                };
                turn.out.push(Action::Upload(id, start));
            }
            LeaseAction::Report => turn.out.push(Action::Report(id)),
            LeaseAction::Retry => {
                let stored = self.lease(id).map(HeldLease::state);
                if matches!(stored, Some(LeaseState::Stored(stored)) if stored.delivery.due > turn.now)
                {
                    self.end_head_start(id);
                }
            }
            LeaseAction::Abort => {
                if before.is_in_slot {
                    turn.out.push(Action::Kill(id));
                }
            }
            LeaseAction::DeleteResult => {
                self.end_head_start(id);
                turn.out.push(Action::DeleteResult(id));
            }
            LeaseAction::Release => {
                let Some(held) = self.lease(id) else { return };
                let LeaseState::Releasing(Releasing { reason, .. }) = held.state() else { return };
                let reason = reason.clone();
                self.release(vec![id], reason, turn);
            }
            LeaseAction::ReleaseWithOthers => turn.withdrawn.push(id),
            LeaseAction::Cooldown => self.cool_down(id, turn.now),
        }
    }

    /// The lease of this host that has produced a checkpoint, if one has whose result the server isn't done with.
    pub(super) fn producer_of(&self, checkpoint: Option<BlobRef>) -> Option<LeaseId> {
        let checkpoint = checkpoint?;
        let mut leases = self.leases.iter();
        leases.find(|lease| lease.continues_from() == Some(checkpoint)).map(HeldLease::id)
    }

    /// Does the server lack the result that a lease's unit went on from? It takes nothing of the unit before.
    pub(super) fn waits_for_result_before(&self, lease: &HeldLease) -> bool {
        let before = lease.continues.and_then(|before| self.lease(before));
        before.is_some_and(HeldLease::is_undelivered)
    }

    /// Begins to send what is on the disk: the checkpoint first, where there is one.
    pub(super) fn deliver<V: TransferView>(&mut self, id: LeaseId, turn: &mut Turn<'_, V>) {
        let Some(held) = self.lease(id).filter(|held| !self.waits_for_result_before(held)) else {
            return;
        };
        let LeaseState::Stored(stored) = held.state() else { return };
        let nothing = !stored.result.has_checkpoint || stored.delivery.next == DeliveryStep::Report;
        let event = if nothing { LeaseEvent::NothingToUpload } else { LeaseEvent::UploadStarted };
        self.apply(id, event, turn);
    }

    fn cool_down(&mut self, id: LeaseId, now: Micros) {
        let Some(LeaseState::Releasing(releasing)) = self.lease(id).map(HeldLease::state) else {
            return;
        };
        let reason = match &releasing.reason {
            ReleaseReason::Stopping => return,
            // Where nothing at all fits any more, nothing is asked for anyway. A smaller unit may fit.
            ReleaseReason::MonthlyBudget if !self.budget.is_open() => return,
            reason => reason.to_string(),
        };
        self.cooldown.begin(reason, self.config.min_cooldown, now, &mut self.rng);
    }

    /// The lease is no longer held.
    fn close(&mut self, at: usize) -> HeldLease {
        let lease = self.leases.remove(at);
        let after = self.leases.iter_mut().find(|other| other.continues == Some(lease.id));
        if let Some(LeaseState::Stored(stored)) = after.map(|after| &mut after.state) {
            // The server may take it now.
            stored.delivery.due = Micros::ZERO;
        }
        self.closed.insert(lease.id);
        lease
    }

    /// A unit is no longer done, nor will be: its slot, its blobs and the bytes that it hasn't fetched are free.
    fn leave_work<V: TransferView>(
        &mut self,
        id: LeaseId,
        closed: Option<HeldLease>,
        before: Before,
        turn: &mut Turn<'_, V>,
    ) {
        if let Some(slot) = before.slot {
            self.slots.give_back(slot, TrainerState::Good, turn.now);
        }
        let (needs, fetch, upload) = match closed {
            Some(lease) => (lease.needs, lease.reserved_fetch, lease.reserved_upload),
            None => {
                let Ok(at) = self.index(id) else { return };
                let Some(lease) = self.leases.get_mut(at) else { return };
                let fetch = std::mem::take(&mut lease.reserved_fetch);
                (std::mem::take(&mut lease.needs), fetch, 0)
            }
        };
        self.budget.release(fetch.saturating_add(upload));
        if !before.holds_first {
            return;
        }
        let rest_begun = !matches!(needs.rest, Rest::NotBegun);
        let later = needs.later.iter().filter(|_| rest_begun);
        for need in needs.first.iter().chain(later) {
            self.fetches.let_go(&need.blob.sha256, &mut turn.out);
        }
    }

    /// The result has arrived, or there is none: its bytes needn't be set aside any longer.
    fn give_up_reservation(&mut self, id: LeaseId) {
        let Ok(at) = self.index(id) else { return };
        let Some(lease) = self.leases.get_mut(at) else { return };
        if matches!(lease.state, LeaseState::Acknowledged(_) | LeaseState::Releasing(_)) {
            self.budget.release(std::mem::take(&mut lease.reserved_upload));
        }
    }

    fn fetch_first<V: TransferView>(&mut self, id: LeaseId, turn: &mut Turn<'_, V>) {
        let Ok(at) = self.index(id) else { return };
        let Some(lease) = self.leases.get(at) else { return };
        let first = lease.needs.first.clone();
        for need in &first {
            self.fetches.hold(&need.blob);
        }
        for need in first {
            self.fetches.ask(need, Priority::First, turn.view, &mut turn.out);
        }
        self.check_ready(id, turn);
    }

    /// Goes on with a lease whose first blobs are all here.
    fn check_ready<V: TransferView>(&mut self, id: LeaseId, turn: &mut Turn<'_, V>) {
        let Some(lease) = self.lease(id) else { return };
        let LeaseState::Fetching(fetching) = lease.state() else { return };
        if !lease.needs.first.iter().all(|need| self.fetches.is_here(&need.blob.sha256)) {
            return;
        }
        if lease.device.is_none() {
            let reason = format!("this machine has no device `{}`", fetching.lease.device);
            self.apply(id, LeaseEvent::FetchFailed(UnitError::Unit(reason)), turn);
            return;
        }
        self.turns += 1;
        self.apply(id, LeaseEvent::FirstBlobsReady(self.turns), turn);
    }

    fn fetch_rest<V: TransferView>(&mut self, id: LeaseId, turn: &mut Turn<'_, V>) {
        let Ok(at) = self.index(id) else { return };
        let Some(lease) = self.leases.get_mut(at) else { return };
        let (fetches, view) = (&mut self.fetches, turn.view);
        for need in &lease.needs.later {
            fetches.hold(&need.blob);
        }
        let is_cached = |need: &&crate::needs::Need| view.has(&need.blob.sha256);
        // Beside the others, so that none of these is deleted to make room for those.
        for need in lease.needs.later.iter().filter(is_cached) {
            fetches.ask(*need, Priority::Later, view, &mut turn.out);
        }
        let missing = lease.needs.later.iter().filter(|need| !is_cached(need));
        let mut missing = missing.copied().collect();
        lease.needs.rest = fetches.ask_next(&mut missing, view, &mut turn.out);
        self.note_all_here(id);
    }

    pub(super) fn blob_ready<V: TransferView>(&mut self, blob: &Digest, turn: &mut Turn<'_, V>) {
        if !self.fetches.ready(blob, &mut turn.out) {
            return;
        }
        for id in self.users_of(blob) {
            self.go_on_with(id, blob, turn);
            self.check_ready(id, turn);
            self.note_all_here(id);
        }
    }

    /// A blob has come that a lease needs: hands it over where its unit runs, and asks for the next.
    fn go_on_with<V: TransferView>(&mut self, id: LeaseId, blob: &Digest, turn: &mut Turn<'_, V>) {
        let Ok(at) = self.index(id) else { return };
        let Some(lease) = self.leases.get_mut(at) else { return };
        if !lease.needs.is_later(blob) {
            return;
        }
        if let Rest::Coming(current, waiting) = &mut lease.needs.rest
            && current == blob
        {
            let mut waiting = std::mem::take(waiting);
            lease.needs.rest = self.fetches.ask_next(&mut waiting, turn.view, &mut turn.out);
        }
        match &lease.state {
            LeaseState::Blocked(Blocked { shard, .. }) if shard == blob => {
                self.apply(id, LeaseEvent::ShardReady(*blob), turn);
            }
            LeaseState::Running(_) | LeaseState::Blocked(_) => {
                turn.out.push(Action::HandOver(id, *blob));
            }
            _ => {}
        }
    }

    /// Nothing has to come any more for a lease: the bytes that were set aside for that are free.
    fn note_all_here(&mut self, id: LeaseId) {
        let Ok(at) = self.index(id) else { return };
        let Some(lease) = self.leases.get_mut(at) else { return };
        if lease.reserved_fetch > 0
            && lease.needs.all().all(|need| self.fetches.is_here(&need.blob.sha256))
        {
            self.budget.release(std::mem::take(&mut lease.reserved_fetch));
        }
    }

    pub(super) fn blob_failed<V: TransferView>(
        &mut self,
        blob: &Digest,
        error: &UnitError,
        turn: &mut Turn<'_, V>,
    ) {
        if !self.fetches.failed(blob) {
            return;
        }
        for id in self.users_of(blob) {
            if self.lease(id).is_some_and(HeldLease::is_in_slot) {
                // The unit ends with what is trained.
                self.give_up_rest(id, turn);
            } else {
                self.apply(id, LeaseEvent::FetchFailed(error.clone()), turn);
            }
        }
    }

    /// No more of a running unit's later shards come: it ends with what it can train.
    pub(super) fn give_up_rest<V: TransferView>(&mut self, id: LeaseId, turn: &mut Turn<'_, V>) {
        let Ok(at) = self.index(id) else { return };
        let Some(lease) = self.leases.get_mut(at) else { return };
        lease.needs.rest = Rest::Over;
        self.apply(id, LeaseEvent::StopAsked, turn);
    }

    fn users_of(&self, blob: &Digest) -> Vec<LeaseId> {
        let needs = |lease: &&HeldLease| lease.needs.all().any(|need| need.blob.sha256 == *blob);
        self.leases.iter().filter(needs).map(HeldLease::id).collect()
    }

    pub(super) fn slot_free(&mut self, id: LeaseId, trainer: TrainerState, now: Micros) {
        let Ok(at) = self.index(id) else { return };
        let unit = self.leases.get_mut(at).and_then(HeldLease::in_slot_mut);
        if let Some(slot) = unit.and_then(|unit| unit.slot.take()) {
            self.slots.give_back(slot, trainer, now);
        }
    }

    /// A result of an earlier run is delivered, or doesn't go now: work doesn't wait for it.
    pub(super) fn end_head_start(&mut self, id: LeaseId) {
        if let Some((_, ahead)) = &mut self.head_start {
            ahead.retain(|lease| *lease != id);
            if ahead.is_empty() {
                self.head_start = None;
            }
        }
    }
}

/// The facts of a lease before a transition.
#[derive(Debug, Clone, Copy)]
struct Before {
    is_work: bool,
    is_in_slot: bool,
    slot: Option<crate::slots::SlotId>,
    /// The lease's first blobs were asked for.
    holds_first: bool,
}

impl Before {
    fn of(lease: &HeldLease) -> Self {
        Self {
            is_work: lease.is_work(),
            is_in_slot: lease.is_in_slot(),
            slot: lease.in_slot().and_then(|unit| unit.slot),
            holds_first: lease.is_work() && !matches!(lease.state(), LeaseState::Queued(_)),
        }
    }
}
