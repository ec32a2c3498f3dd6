//! When to ask for work, when to send a heartbeat, and when to try again.
//!
//! One request for work counts at a time. The server holds it open, even where nothing is wanted: so it can take back at
//! once what hasn't begun, and have hops stopped. When another slot becomes idle, or a device wants units again, a newer
//! request replaces it, and the server answers both.

use crate::{
    config::AgentConfig,
    demand::DeviceDemand,
    event::{AskId, CallError},
    retry::{self, Rng},
    time::Micros,
};
use sojourn_protocol::ids::LeaseId;

/// The longest pause after answers that changed nothing and came at once.
const MAX_FRUITLESS_PAUSE: Micros = Micros::from_secs(5);

/// A request for work that wasn't answered yet.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub(crate) id: AskId,
    /// The demand of each device, as it says.
    pub(crate) demand: Vec<DeviceDemand>,
    /// Acknowledged reports that it names.
    pub(crate) reported: Vec<LeaseId>,
    pub(crate) has_inventory: bool,
    /// The request is the last one: it asks for nothing.
    pub(crate) is_last: bool,
    sent_at: Micros,
}

/// The calls that keep a host in touch with its server.
#[derive(Debug, Clone, Default)]
pub(crate) struct Requests {
    /// The last one counts.
    asks: Vec<Ask>,
    asked: u32,
    /// The server has to hear the inventory with the next request.
    pub(crate) sends_inventory: bool,
    /// The resources that the host lends have changed since the last request.
    pub(crate) inventory_changed: bool,
    /// No request before then: the last one failed.
    retry_at: Micros,
    ask_failures: u32,
    /// No request before then, unless more is wanted than this.
    fruitless: Option<(Micros, Vec<DeviceDemand>)>,
    fruitless_answers: u32,
    beat: Beat,
    /// Since when the server has answered no call that any server answers; none where it answered the last one.
    away_since: Option<Micros>,
}

#[derive(Debug, Clone, Default)]
struct Beat {
    /// Since when heartbeats are due; none while nothing is held.
    last: Option<Micros>,
    /// The one that isn't answered: acknowledged reports that it names.
    open: Option<Vec<LeaseId>>,
    /// The next one comes then: the last one failed.
    retry_at: Option<Micros>,
    failures: u32,
}

impl Requests {
    pub(crate) fn new() -> Self {
        Self { sends_inventory: true, ..Self::default() }
    }

    /// The request that counts.
    pub(crate) fn current(&self) -> Option<&Ask> {
        self.asks.last()
    }

    pub(crate) fn ask_mut(&mut self, id: AskId) -> Option<&mut Ask> {
        self.asks.iter_mut().find(|ask| ask.id == id)
    }

    /// Begins a request that says this demand of each device.
    pub(crate) fn begin_ask(
        &mut self,
        demand: Vec<DeviceDemand>,
        is_last: bool,
        now: Micros,
    ) -> AskId {
        self.asked = self.asked.wrapping_add(1);
        let id = AskId(self.asked);
        self.inventory_changed = false;
        self.asks.push(Ask {
            id,
            demand,
            reported: Vec::new(),
            has_inventory: false,
            is_last,
            sent_at: now,
        });
        id
    }

    /// A request has ended, and whether it was the one that counts.
    pub(crate) fn end_ask(&mut self, id: AskId) -> Option<(Ask, bool)> {
        let at = self.asks.iter().position(|ask| ask.id == id)?;
        let is_current = at + 1 == self.asks.len();
        Some((self.asks.remove(at), is_current))
    }

    /// No request counts any more.
    pub(crate) fn forget_asks(&mut self) {
        self.asks.clear();
    }

    /// When to ask at the earliest. `is_more`: is more wanted than this?
    pub(crate) fn ask_at(&self, is_more: impl Fn(&[DeviceDemand]) -> bool) -> Micros {
        let fruitless = self.fruitless.as_ref().filter(|(_, before)| !is_more(before));
        self.retry_at.max(fruitless.map_or(Micros::ZERO, |(until, _)| *until))
    }

    /// The request that counts was answered. `fruitful`: the answer changed something.
    pub(crate) fn answered(
        &mut self,
        ask: &Ask,
        fruitful: bool,
        ask_again: Micros,
        demand: Vec<DeviceDemand>,
        config: &AgentConfig,
        (now, rng): (Micros, &mut Rng),
    ) {
        self.ask_failures = 0;
        self.retry_at = Micros::ZERO;
        // The server paces these: by having news, or by holding the request. A pause would only be time in which
        // nobody can give this host work.
        if fruitful || now - ask.sent_at >= Micros(config.ask_wait.0 / 2) {
            self.fruitless_answers = 0;
            self.fruitless = None;
            return;
        }
        let pause = retry::pause(self.fruitless_answers, MAX_FRUITLESS_PAUSE, None, rng);
        self.fruitless_answers = self.fruitless_answers.saturating_add(1);
        self.fruitless = Some((now + pause.max(ask_again), demand));
    }

    /// The request that counts has failed.
    pub(crate) fn ask_failed(
        &mut self,
        error: CallError,
        config: &AgentConfig,
        (now, rng): (Micros, &mut Rng),
    ) {
        let max = config.max_retry_pause;
        self.retry_at = now + retry::pause(self.ask_failures, max, error.retry_after, rng);
        self.ask_failures = self.ask_failures.saturating_add(1);
    }

    /// The server hasn't answered a call that any server answers.
    pub(crate) fn unanswered(&mut self, now: Micros) {
        self.away_since.get_or_insert(now);
    }

    /// Did the server not answer the last call that any server answers?
    pub(crate) const fn is_away(&self) -> bool {
        self.away_since.is_some()
    }

    /// Since when the server hasn't answered; none where it answered the last call.
    pub(crate) const fn away_since(&self) -> Option<Micros> {
        self.away_since
    }

    /// The server has answered after it was away: nothing waits any longer. False where it wasn't away.
    pub(crate) fn is_back(&mut self, now: Micros) -> bool {
        if self.away_since.take().is_none() {
            return false;
        }
        self.retry_at = self.retry_at.min(now);
        self.beat.retry_at = self.beat.retry_at.map(|at| at.min(now));
        true
    }

    /// When the next heartbeat is due, where one is and none is open.
    pub(crate) fn beat_at(&mut self, interval: Option<Micros>, now: Micros) -> Option<Micros> {
        let Some(interval) = interval else {
            self.beat.last = None;
            return None;
        };
        // The arrival of the first lease was contact enough.
        let last = *self.beat.last.get_or_insert(now);
        if self.beat.open.is_some() {
            return None;
        }
        Some(self.beat.retry_at.unwrap_or(last + interval))
    }

    /// When the next heartbeat is due after the last event, where one is and none is open.
    pub(crate) fn next_beat(&self, interval: Option<Micros>) -> Option<Micros> {
        if self.beat.open.is_some() {
            return None;
        }
        let due = self.beat.last? + interval?;
        Some(self.beat.retry_at.unwrap_or(due))
    }

    /// Begins a heartbeat.
    pub(crate) fn begin_beat(&mut self, now: Micros) {
        self.beat.last = Some(now);
        self.beat.retry_at = None;
        self.beat.open = Some(Vec::new());
    }

    pub(crate) fn is_beating(&self) -> bool {
        self.beat.open.is_some()
    }

    /// The open heartbeat names these reports.
    pub(crate) fn beat_names(&mut self, reported: &[LeaseId]) {
        if let Some(open) = &mut self.beat.open {
            reported.clone_into(open);
        }
    }

    /// The heartbeat was answered; gives the reports that it named.
    pub(crate) fn beat_answered(&mut self) -> Vec<LeaseId> {
        self.beat.failures = 0;
        self.beat.open.take().unwrap_or_default()
    }

    /// The heartbeat failed.
    pub(crate) fn beat_failed(
        &mut self,
        error: CallError,
        config: &AgentConfig,
        (now, rng): (Micros, &mut Rng),
    ) {
        self.beat.open = None;
        let max = config.max_retry_pause;
        let pause = retry::pause(self.beat.failures, max, error.retry_after, rng);
        self.beat.failures = self.beat.failures.saturating_add(1);
        self.beat.retry_at = Some(now + pause);
    }
}
