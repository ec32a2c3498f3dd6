//! The core's clock: the time of the step, and whether the server has started.

use sojourn_protocol::time::{Millis, UnixMillis};

/// The time between the last event and a start that counts as passed, at most: a restart or a take-over takes seconds.
const MAX_UNSEEN_TIME: Millis = Millis::from_secs(30);

/// Whether live leases have deadlines yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The state was recovered. Leases get their deadlines when the server starts. `active_until`: the last time at which a
    /// server is known to have been active.
    Recovering { active_until: UnixMillis },
    /// The server runs since then; 0 for a core that began empty.
    RunningHop { since: UnixMillis },
}

/// The time of the current step. It never goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Clock {
    now: UnixMillis,
    phase: Phase,
}

impl Clock {
    /// A clock of a core that begins empty.
    pub(crate) const fn new(now: UnixMillis) -> Self {
        Self { now, phase: Phase::RunningHop { since: UnixMillis(0) } }
    }

    /// The time of the current step.
    pub(crate) const fn now(&self) -> UnixMillis {
        self.now
    }

    /// Moves the clock forward; an earlier time leaves it as it is.
    pub(crate) fn advance(&mut self, at: UnixMillis) {
        self.now = self.now.max(at);
    }

    /// A server was active at this time: durable state of then was read. There is no soft state until the server starts.
    pub(crate) fn recover(&mut self, at: UnixMillis) {
        self.advance(at);
        self.phase = Phase::Recovering { active_until: self.now };
    }

    /// The time since a server is known to have been active, beyond what counts as passed; none once the server has started.
    ///
    /// Nobody knows what it was: hours in which no server ran, or a clock that is wrong by years. As it counts for little, no
    /// clock can end what runs by the length of time that has passed.
    pub(crate) fn unseen_time(&self) -> Millis {
        match self.phase {
            Phase::Recovering { active_until } => self.now - (active_until + MAX_UNSEEN_TIME),
            Phase::RunningHop { .. } => Millis(0),
        }
    }

    /// The server has started.
    pub(crate) const fn start(&mut self) {
        self.phase = Phase::RunningHop { since: self.now };
    }

    /// Was state recovered, and the server not started since?
    pub(crate) const fn is_recovering(&self) -> bool {
        matches!(self.phase, Phase::Recovering { .. })
    }

    /// When the server started.
    pub(crate) const fn started_at(&self) -> UnixMillis {
        match self.phase {
            Phase::Recovering { .. } => UnixMillis(0),
            Phase::RunningHop { since } => since,
        }
    }

    /// Has the server started less than `term` ago, so that hosts may not have reported yet?
    pub(crate) fn is_warming_up(&self, term: Millis) -> bool {
        self.now < self.started_at() + term
    }
}
