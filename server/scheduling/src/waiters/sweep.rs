//! Checks waiting hosts for work in batches, so that one step stays short.
//!
//! A sweep starts with the fastest host and stops after the first batch in which no host got work. The other hosts get
//! their chance when they ask again, as all do within the longest wait.

use super::long_polls::Rank;
use sojourn_protocol::time::{Millis, UnixMillis};

/// Hosts that are looked at in one step.
pub const SWEEP_BATCH: usize = 256;
/// From the end of a sweep to the start of the next one.
const SWEEP_INTERVAL: Millis = Millis::from_secs(1);

/// How far a sweep has come.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sweep {
    /// Where it goes on; `None` where no sweep is running.
    at: Option<SweepStart>,
    /// Another one was requested since it began.
    again: bool,
    /// When its next batch is due.
    next: UnixMillis,
}

/// Where a sweep goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SweepStart {
    First,
    Behind(Rank),
}

impl Sweep {
    /// Requests a sweep through all waiting hosts.
    pub fn request(&mut self) {
        match self.at {
            None | Some(SweepStart::First) => self.at = Some(SweepStart::First),
            Some(SweepStart::Behind(_)) => self.again = true,
        }
    }

    /// Where the next batch begins, if it is due.
    pub fn due(&self, now: UnixMillis) -> Option<Option<Rank>> {
        let at = self.at.filter(|_| self.next <= now)?;
        Some(match at {
            SweepStart::First => None,
            SweepStart::Behind(rank) => Some(rank),
        })
    }

    /// Some host of a batch got work: the next batch begins behind its last host.
    pub fn goes_on(&mut self, last: Rank) {
        self.at = Some(SweepStart::Behind(last));
    }

    /// Ends it: there is no work.
    pub fn cancel(&mut self) {
        (self.at, self.again) = (None, false);
    }

    /// Ends it: no host of the last batch got work.
    pub fn end(&mut self, now: UnixMillis) {
        self.at = std::mem::take(&mut self.again).then_some(SweepStart::First);
        self.next = now + SWEEP_INTERVAL;
    }

    /// Has a sweep begun, or been requested, that hasn't ended yet?
    pub fn is_running(&self) -> bool {
        self.at.is_some()
    }

    /// When its next batch is due, where a sweep is running.
    pub fn next_batch(&self) -> Option<UnixMillis> {
        self.at.map(|_| self.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{waiters::LongPolls, waiters::ReplyTo};
    use sojourn_protocol::{
        api::WorkRequest,
        ids::HostId,
        inventory::{CPU, Demand},
        money::MicroUsd,
    };

    #[test]
    fn a_sweep_goes_on_behind_its_last_host_and_another_follows_after_a_pause() {
        let mut polls = LongPolls::default();
        let request = WorkRequest {
            demand: vec![Demand { device: CPU.into(), slots: 1, idle: 1, wanted: 1 }],
            holding: Vec::new(),
            reported: Vec::new(),
            wait: Millis(10),
            inventory: None,
        };
        polls.hold(HostId(1), ReplyTo(1), request, UnixMillis(30), (5, MicroUsd(0)));
        let last = polls.first_behind(None).unwrap();
        let (mut sweep, now) = (Sweep::default(), UnixMillis(5_000));
        assert_eq!((sweep.due(now), sweep.next_batch()), (None, None));
        sweep.request();
        assert_eq!(sweep.due(now), Some(None));
        sweep.goes_on(last);
        sweep.request();
        assert_eq!(sweep.due(now), Some(Some(last)), "others come in between, no pause does");
        sweep.end(now);
        assert_eq!((sweep.due(now), sweep.next_batch()), (None, Some(now + SWEEP_INTERVAL)));
        assert_eq!(
            sweep.due(now + SWEEP_INTERVAL),
            Some(None),
            "something has changed since it began"
        );
        sweep.cancel();
        assert_eq!(sweep.next_batch(), None);
    }
}
