//! The core's clock: the time of the step, and whether the server has started.

use sojourn_protocol::time::{Millis, UnixMillis};

/// Whether live leases have deadlines yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The state was recovered. Leases get their deadlines when the server starts.
    Recovering,
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

    /// Durable state was read: there is no soft state until the server starts.
    pub(crate) const fn recover(&mut self) {
        self.phase = Phase::Recovering;
    }

    /// The server has started.
    pub(crate) const fn start(&mut self) {
        self.phase = Phase::RunningHop { since: self.now };
    }

    /// Was state recovered, and the server not started since?
    pub(crate) const fn is_recovering(&self) -> bool {
        matches!(self.phase, Phase::Recovering)
    }

    /// When the server started.
    pub(crate) const fn started_at(&self) -> UnixMillis {
        match self.phase {
            Phase::Recovering => UnixMillis(0),
            Phase::RunningHop { since } => since,
        }
    }

    /// Has the server started less than `term` ago, so that hosts may not have reported yet?
    pub(crate) fn is_warming_up(&self, term: Millis) -> bool {
        self.now < self.started_at() + term
    }
}
