//! Ends the agent: in good order when its owner wants that, and in time when the machine will be taken away.

use super::{Agent, Turn};
use crate::{
    action::Action,
    event::{ReleaseReason, TransferView},
    lease::{HeldLease, LeaseState},
    shutdown::{CallStep, Calls, Draining, Mode, Notice, Phase, Stopping, reserve},
    time::Micros,
};
use sojourn_protocol::time::Millis;

impl Agent {
    /// Finishes what runs and takes nothing new. `notice`: because the machine will be taken away, in so long where
    /// that is known.
    pub(super) fn drain<V: TransferView>(
        &mut self,
        notice: Option<Option<Micros>>,
        turn: &mut Turn<'_, V>,
    ) {
        if !matches!(self.mode, Mode::Normal | Mode::Draining(_)) {
            return;
        }
        if let Some(left) = notice {
            self.notice = Some(Notice { gone_at: left.map(|left| turn.now + left) });
        }
        let gone_in = self.notice.and_then(|notice| notice.gone_at).map(|at| at - turn.now);
        let until = gone_in.map(|left| turn.now + (left - reserve(left)));
        let (calls, before) = match &self.mode {
            Mode::Draining(before) => (before.calls, before.is_idle),
            _ => {
                let time = self.config.shutdown_time + self.config.shutdown_time;
                (Calls { step: CallStep::Releasing, until: turn.now + time }, false)
            }
        };
        // On a machine that goes, the next start can't send results.
        let is_idle = before && self.notice.is_none();
        self.take_nothing_new(turn);
        self.mode = Mode::Draining(Draining { until, calls, is_idle });
        self.withdraw(|lease| !lease.is_in_slot(), ReleaseReason::Stopping, turn);
    }

    /// The server gives the machine back after so long.
    pub(super) fn leave<V: TransferView>(
        &mut self,
        within: Option<Millis>,
        turn: &mut Turn<'_, V>,
    ) {
        let Some(within) = within else { return };
        let gone_at = turn.now + Micros::from(within);
        // Each answer says it again. What is known of an earlier end stands.
        let is_known = self.notice.and_then(|notice| notice.gone_at);
        if is_known.is_none_or(|known| gone_at < known) {
            self.drain(Some(Some(Micros::from(within))), turn);
        }
    }

    /// Ends in good order where nothing was to do for as long as the machine is to be kept without work.
    pub(super) fn leave_idle<V: TransferView>(&mut self, turn: &mut Turn<'_, V>) {
        // Where the server answers, it sees to it that what is held goes on.
        let held =
            |lease: &HeldLease| lease.is_in_slot() || (lease.is_work() && !self.requests.is_away());
        if self.leases.iter().any(held) {
            self.idle_since = None;
            return;
        }
        self.idle_since.get_or_insert(turn.now);
        if matches!(self.mode, Mode::Normal) && self.idle_end().is_some_and(|at| at <= turn.now) {
            self.drain(None, turn);
            if let Mode::Draining(draining) = &mut self.mode {
                draining.is_idle = true;
            }
        }
    }

    /// When it ends for lack of work.
    pub(super) fn idle_end(&self) -> Option<Micros> {
        Some(self.idle_since? + self.config.exit_when_idle?)
    }

    /// When it no longer waits for a server that is to take its results, where it ends for lack of work: once neither a
    /// unit has run nor the server answered for as long as the machine is to be kept without work. The next start sends them.
    fn idle_wait_end(&self) -> Option<Micros> {
        let Mode::Draining(Draining { is_idle: true, .. }) = &self.mode else { return None };
        let alone_since = self.idle_since?.max(self.requests.away_since()?);
        Some(alone_since + self.config.exit_when_idle?)
    }

    /// Ends: hops after their batch, and everything else that isn't finished at once.
    pub(super) fn stop<V: TransferView>(&mut self, turn: &mut Turn<'_, V>) {
        if !matches!(self.mode, Mode::Normal | Mode::Draining(_)) {
            return;
        }
        self.take_nothing_new(turn);
        self.mode = Mode::Stopping(Stopping::new(&self.config, self.notice, turn.now));
        self.stop_all_hops(turn);
        self.withdraw(|lease| !lease.is_stoppable(), ReleaseReason::Stopping, turn);
    }

    /// Ends, and hops with it: there is no place any more for what they train.
    pub(super) fn disk_gone<V: TransferView>(&mut self, turn: &mut Turn<'_, V>) {
        self.stop(turn);
        self.end_hops(turn);
    }

    fn take_nothing_new<V>(&mut self, turn: &mut Turn<'_, V>) {
        self.requests.forget_asks();
        self.fetches.stop_ahead(&mut turn.out);
    }

    pub(super) fn last_ask_ended(&mut self) {
        if let Some(calls) = self.calls_mut()
            && calls.step == CallStep::Asking
        {
            calls.step = CallStep::Over;
        }
    }

    pub(super) fn last_heartbeat_ended(&mut self) {
        if let Mode::Stopping(stopping) = &mut self.mode
            && stopping.phase == Phase::Asking
        {
            stopping.phase = Phase::Over;
        }
    }

    fn calls_mut(&mut self) -> Option<&mut Calls> {
        match &mut self.mode {
            Mode::Draining(Draining { calls, .. }) | Mode::Stopping(Stopping { calls, .. }) => {
                Some(calls)
            }
            Mode::Normal | Mode::Ended => None,
        }
    }

    /// Goes on with the end as far as it can now.
    pub(super) fn advance_ending<V: TransferView>(&mut self, turn: &mut Turn<'_, V>) {
        if self.idle_wait_end().is_some_and(|at| at <= turn.now) {
            self.stop(turn);
        }
        self.advance_calls(turn);
        if let Mode::Draining(draining) = &self.mode {
            let is_due = draining.until.is_some_and(|until| until <= turn.now);
            if is_due || (self.are_calls_over(draining.calls, turn.now) && !self.is_busy()) {
                self.stop(turn);
                self.advance_calls(turn);
            }
        }
        while self.advance_phase(turn) {}
        let Mode::Stopping(stopping) = &self.mode else { return };
        let is_done =
            stopping.phase == Phase::Over && self.are_calls_over(stopping.calls, turn.now);
        if is_done || stopping.end() <= turn.now {
            self.mode = Mode::Ended;
            turn.out.push(Action::Exit);
        }
    }

    fn advance_calls<V>(&mut self, turn: &mut Turn<'_, V>) {
        let is_released = self.open_releases == 0;
        let Some(calls) = self.calls_mut() else { return };
        if calls.step == CallStep::Releasing && is_released {
            calls.step = CallStep::Asking;
            let ask = self.requests.begin_ask(Vec::new(), true, turn.now);
            turn.out.push(Action::Ask(ask));
        }
    }

    fn are_calls_over(&self, calls: Calls, now: Micros) -> bool {
        (calls.step == CallStep::Over && self.open_releases == 0) || calls.until <= now
    }

    /// Goes on to the next phase of a shutdown, where the present one has ended.
    fn advance_phase<V: TransferView>(&mut self, turn: &mut Turn<'_, V>) -> bool {
        let Mode::Stopping(stopping) = &mut self.mode else { return false };
        let is_late = stopping.phase_end() <= turn.now;
        let no_hops = !self.leases.iter().any(HeldLease::is_stoppable);
        match stopping.phase {
            Phase::Ending if no_hops || is_late => {
                self.end_hops(turn);
                true
            }
            Phase::Ended if no_hops || is_late => {
                stopping.phase = Phase::Delivering;
                self.withdraw(|_| true, ReleaseReason::Stopping, turn);
                true
            }
            Phase::Delivering if !self.leases.iter().any(HeldLease::is_undelivered) => {
                let asks = |l: &HeldLease| matches!(l.state(), LeaseState::Acknowledged(_));
                let asks = self.leases.iter().any(asks);
                stopping.phase = if asks { Phase::Asking } else { Phase::Over };
                if asks && !self.requests.is_beating() {
                    self.requests.begin_beat(turn.now);
                    turn.out.push(Action::Beat);
                }
                true
            }
            // The next start sends them; on a machine that goes there is none.
            Phase::Delivering if self.requests.is_away() && !stopping.is_last_chance => {
                stopping.phase = Phase::Over;
                true
            }
            Phase::Ending | Phase::Ended | Phase::Delivering | Phase::Asking | Phase::Over => false,
        }
    }

    /// Has hops end at once, with the parts that are on the disk.
    fn end_hops<V>(&mut self, turn: &mut Turn<'_, V>) {
        if let Mode::Stopping(stopping) = &mut self.mode
            && stopping.phase == Phase::Ending
        {
            stopping.phase = Phase::Ended;
            let hops = self.leases.iter().filter(|lease| lease.is_stoppable());
            turn.out.extend(hops.map(|lease| Action::StopNow(lease.id())));
        }
    }

    /// Is there a unit that runs, or a result on its way?
    fn is_busy(&self) -> bool {
        self.leases.iter().any(|lease| lease.is_in_slot() || lease.is_undelivered())
    }

    pub(super) fn ending_deadline(&self) -> Option<Micros> {
        match &self.mode {
            Mode::Normal | Mode::Ended => None,
            Mode::Draining(Draining { until, calls, .. }) => {
                let at = [*until, Some(calls.until), self.idle_wait_end()].into_iter().flatten();
                at.filter(|at| *at > self.now).min()
            }
            Mode::Stopping(stopping) => {
                let at = [stopping.phase_end(), stopping.calls.until, stopping.end()];
                at.into_iter().filter(|at| *at > self.now).min()
            }
        }
    }
}
