//! How an agent ends: what can be finished in time is, results are sent, and the rest is given back.
//!
//! ```text
//! begin                      half             three quarters            end
//!   | hops end by themselves  | hops are ended | the rest is given back  |
//!   | results arrive, and what doesn't run is given back                 |
//! ```

use crate::{config::AgentConfig, time::Micros};

/// The most of a machine's last time that is kept for the shutdown.
const MAX_RESERVE: Micros = Micros::from_secs(30);

/// Whether the agent takes work, and how it ends.
#[derive(Debug, Clone, Default)]
pub(crate) enum Mode {
    /// The client takes work.
    #[default]
    Normal,
    /// The client finishes what runs, and takes nothing new.
    Draining(Draining),
    /// The client ends as soon as results are sent.
    Stopping(Stopping),
    /// The client has ended.
    Ended,
}

/// The machine will be taken away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Notice {
    /// When, where that is known.
    pub(crate) gone_at: Option<Micros>,
}

/// See [`Mode::Draining`].
#[derive(Debug, Clone, Default)]
pub(crate) struct Draining {
    /// When the shutdown has to begin, where the machine will be taken away.
    pub(crate) until: Option<Micros>,
    pub(crate) calls: Calls,
    /// The client ends because nothing was to do.
    pub(crate) is_idle: bool,
}

/// See [`Mode::Stopping`].
#[derive(Debug, Clone)]
pub(crate) struct Stopping {
    pub(crate) phase: Phase,
    pub(crate) calls: Calls,
    begun: Micros,
    time: Micros,
    /// The machine will be taken away: nothing can be sent by the next start.
    pub(crate) is_last_chance: bool,
}

/// The phase of a shutdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Hops end after their batch.
    Ending,
    /// Hops are ended at once.
    Ended,
    /// Results arrive.
    Delivering,
    /// The server says what has become of reports.
    Asking,
    /// Nothing of that kind.
    Over,
}

/// The calls that give back leases, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Calls {
    pub(crate) step: CallStep,
    /// The latest time until which the calls are waited for.
    pub(crate) until: Micros,
}

/// Which of those calls is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum CallStep {
    /// The one that releases leases, if there were any.
    #[default]
    Releasing,
    /// The last request for work: an answer that nobody waited for may have granted some.
    Asking,
    /// No call is open.
    Over,
}

impl Stopping {
    pub(crate) fn new(config: &AgentConfig, notice: Option<Notice>, now: Micros) -> Self {
        let left = notice.and_then(|notice| notice.gone_at).map(|at| at - now);
        let time = left.map_or(config.shutdown_time, |left| left.max(config.shutdown_time));
        let calls = Calls { step: CallStep::Releasing, until: now + time };
        let is_last_chance = notice.is_some();
        Self { phase: Phase::Ending, calls, begun: now, time, is_last_chance }
    }

    /// When the present phase has to end.
    pub(crate) fn phase_end(&self) -> Micros {
        match self.phase {
            Phase::Ending => self.begun + Micros(self.time.0 / 2),
            Phase::Ended => self.begun + Micros(self.time.0 / 4 * 3),
            Phase::Delivering | Phase::Asking | Phase::Over => self.end(),
        }
    }

    /// When the agent ends at the latest.
    pub(crate) fn end(&self) -> Micros {
        self.begun + self.time
    }
}

/// How much of the time that is left belongs to the shutdown.
pub(crate) fn reserve(left: Micros) -> Micros {
    Micros(left.0 / 2).min(MAX_RESERVE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_a_short_time_is_for_the_shutdown() {
        let seconds = Micros::from_secs;
        for (left, kept) in [(0, 0), (30, 15), (60, 30), (120, 30)] {
            assert_eq!(reserve(seconds(left)), seconds(kept));
        }
    }
    #[test]
    fn hops_end_within_half_of_the_time_and_are_ended_within_three_quarters() {
        let seconds = Micros::from_secs;
        let config = AgentConfig { shutdown_time: seconds(40), ..AgentConfig::new(Vec::new()) };
        let mut stopping = Stopping::new(&config, None, seconds(100));
        for (phase, end) in [
            (Phase::Ending, 120),
            (Phase::Ended, 130),
            (Phase::Delivering, 140),
            (Phase::Asking, 140),
            (Phase::Over, 140),
        ] {
            stopping.phase = phase;
            assert_eq!(stopping.phase_end(), seconds(end), "{phase:?}");
        }
    }
}
