//! Looking at all hosts that wait, where they are so many that others would have to wait for it: a piece at a time, and
//! no further than it is of use.
//!
//! What has changed for all of them, such as a host that went, is rarely of use to one: what has become open is
//! offered at once to those that it concerns (`handle/ask.rs`). A round begins with the fastest and goes on for as
//! long as it finds work for some; the others hear of it when they ask again, as all do within the longest wait.

use crate::parked::Rank;
use sojourn_protocol::time::{Millis, UnixMillis};

/// Hosts that are looked at in one step.
pub(crate) const PIECE: usize = 256;
/// From the end of a round to the next one's beginning.
const PAUSE: Millis = Millis::from_secs(1);

/// How far a round has come.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Round {
    /// Behind whom it goes on; none where none is under way.
    at: Option<Place>,
    /// Something has changed since it began: another one follows.
    again: bool,
    /// When it goes on.
    next: UnixMillis,
}

/// Where a round goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Begin,
    Behind(Rank),
}

impl Round {
    /// All are to be looked at, from the first on.
    pub(crate) fn want(&mut self) {
        match self.at {
            None | Some(Place::Begin) => self.at = Some(Place::Begin),
            Some(Place::Behind(_)) => self.again = true,
        }
    }

    /// Whether a piece is due, and behind whom it begins.
    pub(crate) fn due(&self, now: UnixMillis) -> Option<Option<Rank>> {
        let at = self.at.filter(|_| self.next <= now)?;
        Some(match at {
            Place::Begin => None,
            Place::Behind(rank) => Some(rank),
        })
    }

    /// A piece was of use, and the round goes on behind its last host once others have been heard.
    pub(crate) fn goes_on(&mut self, last: Rank) {
        self.at = Some(Place::Behind(last));
    }

    /// There is nothing to look for.
    pub(crate) fn forget(&mut self) {
        (self.at, self.again) = (None, false);
    }

    /// A round has ended without having been of use at last.
    pub(crate) fn end(&mut self, now: UnixMillis) {
        self.at = std::mem::take(&mut self.again).then_some(Place::Begin);
        self.next = now + PAUSE;
    }

    /// When it goes on, where one is under way.
    pub(crate) fn next_piece(&self) -> Option<UnixMillis> {
        self.at.map(|_| self.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{command::ReplyTo, parked::ParkedAsks};
    use sojourn_protocol::{api::WorkRequest, ids::HostId};

    #[test]
    fn a_round_goes_on_behind_its_last_host_and_another_follows_after_a_pause() {
        let mut asks = ParkedAsks::default();
        let request = WorkRequest {
            demand: Vec::new(),
            holding: Vec::new(),
            reported: Vec::new(),
            wait: Millis(10),
            inventory: None,
        };
        asks.park(HostId(1), ReplyTo(1), request, UnixMillis(30), 5);
        let last = asks.first_behind(None).unwrap();
        let (mut round, now) = (Round::default(), UnixMillis(5_000));
        assert_eq!((round.due(now), round.next_piece()), (None, None));
        round.want();
        assert_eq!(round.due(now), Some(None));
        round.goes_on(last);
        round.want();
        assert_eq!(round.due(now), Some(Some(last)), "others come in between, no pause does");
        round.end(now);
        assert_eq!((round.due(now), round.next_piece()), (None, Some(now + PAUSE)));
        assert_eq!(round.due(now + PAUSE), Some(None), "something has changed since it began");
        round.forget();
        assert_eq!(round.next_piece(), None);
    }
}
