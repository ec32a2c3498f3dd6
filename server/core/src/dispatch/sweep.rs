//! Checks waiting hosts for work in batches, so that one step stays short.
//!
//! A sweep starts with the fastest host and stops after the first batch in which no host got work. The other hosts get
//! their chance when they ask again, as all do within the longest wait.

use super::long_polls::Rank;
use sojourn_protocol::time::{Millis, UnixMillis};

/// Hosts that are looked at in one step.
pub(crate) const SWEEP_BATCH: usize = 256;
/// From the end of a round to the next one's beginning.
const SWEEP_INTERVAL: Millis = Millis::from_secs(1);

/// How far a round has come.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Sweep {
    /// Behind whom it goes on; none where none is under way.
    at: Option<SweepStart>,
    /// Something has changed since it began: another one follows.
    again: bool,
    /// When it goes on.
    next: UnixMillis,
}

/// Where a round goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SweepStart {
    First,
    Behind(Rank),
}

impl Sweep {
    /// All are to be looked at, from the first on.
    pub(crate) fn request(&mut self) {
        match self.at {
            None | Some(SweepStart::First) => self.at = Some(SweepStart::First),
            Some(SweepStart::Behind(_)) => self.again = true,
        }
    }

    /// Whether a piece is due, and behind whom it begins.
    pub(crate) fn due(&self, now: UnixMillis) -> Option<Option<Rank>> {
        let at = self.at.filter(|_| self.next <= now)?;
        Some(match at {
            SweepStart::First => None,
            SweepStart::Behind(rank) => Some(rank),
        })
    }

    /// A piece was of use, and the round goes on behind its last host once others have been heard.
    pub(crate) fn goes_on(&mut self, last: Rank) {
        self.at = Some(SweepStart::Behind(last));
    }

    /// There is nothing to look for.
    pub(crate) fn cancel(&mut self) {
        (self.at, self.again) = (None, false);
    }

    /// A round has ended without having been of use at last.
    pub(crate) fn end(&mut self, now: UnixMillis) {
        self.at = std::mem::take(&mut self.again).then_some(SweepStart::First);
        self.next = now + SWEEP_INTERVAL;
    }

    /// When it goes on, where one is under way.
    pub(crate) fn next_batch(&self) -> Option<UnixMillis> {
        self.at.map(|_| self.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{command::ReplyTo, dispatch::LongPolls};
    use sojourn_protocol::{api::WorkRequest, ids::HostId};

    #[test]
    fn a_round_goes_on_behind_its_last_host_and_another_follows_after_a_pause() {
        let mut polls = LongPolls::default();
        let request = WorkRequest {
            demand: Vec::new(),
            holding: Vec::new(),
            reported: Vec::new(),
            wait: Millis(10),
            inventory: None,
        };
        polls.hold(HostId(1), ReplyTo(1), request, UnixMillis(30), 5);
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
