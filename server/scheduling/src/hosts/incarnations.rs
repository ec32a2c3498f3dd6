//! Tells one client that was started again from two clients with one identity (a copied data folder, an image of a disk).
//!
//! Each start of a client has an incarnation. A new one takes the place of the one before: that is a restart. The one before may be
//! heard of once more, by a request that was on its way. It is told of the new one. Where it repeats that, it is alive: there are two
//! machines. The one that came later is refused for good, and has to enrol anew.
//!
//! A new incarnation waits for a moment where the one before has a request open, and longer where there was a copy before. So a copy
//! takes no unit of the other, also if it is started again and again.

use sojourn_protocol::{
    incarnation::Incarnation,
    time::{Millis, UnixMillis},
};
use std::collections::VecDeque;

/// Incarnations of before that are remembered, and copies.
const MAX_REMEMBERED: usize = 16;
/// How long one whose request was open may take to send another.
const OPEN_REQUEST_PATIENCE: Millis = Millis::from_secs(5);

/// The incarnations of one host.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Incarnations {
    /// The one that works, and when it was heard of last.
    current: Option<(Incarnation, UnixMillis)>,
    /// Incarnations whose place another took, the last one at the end.
    earlier: VecDeque<Incarnation>,
    /// Incarnations of other machines.
    copies: VecDeque<Incarnation>,
    /// One that waits until it is clear whether the current one works.
    waiting: Option<Waiting>,
    /// How many copies there were.
    copies_found: u64,
    /// When the last of them was found.
    copy_found_at: Option<UnixMillis>,
}

/// An incarnation that waits.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Waiting {
    incarnation: Incarnation,
    /// When it takes the place of the current one, unless that has shown that it is there.
    until: UnixMillis,
}

/// A request of an incarnation.
#[derive(Debug, Clone, Copy)]
pub struct Heard {
    /// The incarnation that sent the request.
    pub incarnation: Incarnation,
    /// The other one of which it was told.
    pub rival: Option<Incarnation>,
    /// Has the host a request open, from before this one?
    pub is_asking: bool,
    /// The time of the step.
    pub now: UnixMillis,
    /// A host that is silent for so long is away.
    pub term: Millis,
}

/// Whether an incarnation may work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The incarnation works.
    Works,
    /// The incarnation works, and has shown that the one that took its place is a copy.
    WorksAgain,
    /// The incarnation waits until the current one, which is told of it, has had the time to show that it is there.
    Waits {
        /// The one that works.
        current: Incarnation,
    },
    /// Either the incarnation is there, or its request was on its way for long.
    Unclear {
        /// The other one.
        other: Incarnation,
    },
    /// The incarnation is that of a copy.
    Copy,
}

impl Incarnations {
    /// A request comes.
    pub fn hear(&mut self, heard: Heard) -> Verdict {
        let Heard { incarnation, rival, is_asking, now, term } = heard;
        if self.copies.contains(&incarnation) {
            return Verdict::Copy;
        }
        let Some((current, heard_at)) = self.current else {
            self.current = Some((incarnation, now));
            return Verdict::Works;
        };
        if incarnation == current {
            return self.hear_current(rival, now);
        }
        if self.earlier.contains(&incarnation) {
            if rival != Some(current) {
                return Verdict::Unclear { other: current };
            }
            self.earlier.retain(|earlier| *earlier != incarnation);
            self.found(current, now);
            (self.current, self.waiting) = (Some((incarnation, now)), None);
            return Verdict::WorksAgain;
        }
        let waiting = self.waiting.filter(|waiting| waiting.incarnation == incarnation);
        let until = match waiting {
            Some(waiting) => waiting.until,
            None if is_asking => now + OPEN_REQUEST_PATIENCE,
            None if self.copies_found > 0 => heard_at + term,
            None => now,
        };
        if now < until {
            self.waiting = Some(Waiting { incarnation, until });
            return Verdict::Waits { current };
        }
        remember(&mut self.earlier, current);
        (self.current, self.waiting) = (Some((incarnation, now)), None);
        Verdict::Works
    }

    /// A request of the current one comes. Where another one waits, it shows that it is there by naming that.
    fn hear_current(&mut self, rival: Option<Incarnation>, now: UnixMillis) -> Verdict {
        if let Some((_, heard_at)) = &mut self.current {
            *heard_at = now;
        }
        match self.waiting {
            None => Verdict::Works,
            Some(Waiting { incarnation, .. }) if rival == Some(incarnation) => {
                self.waiting = None;
                self.found(incarnation, now);
                Verdict::Works
            }
            Some(Waiting { incarnation, .. }) => Verdict::Unclear { other: incarnation },
        }
    }

    /// An incarnation is a copy.
    fn found(&mut self, copy: Incarnation, now: UnixMillis) {
        remember(&mut self.copies, copy);
        self.copies_found += 1;
        self.copy_found_at = Some(now);
    }

    /// How many copies there were since the server started, and when the last one was found.
    pub fn copies(&self) -> Option<(u64, UnixMillis)> {
        self.copy_found_at.map(|at| (self.copies_found, at))
    }
}

fn remember(list: &mut VecDeque<Incarnation>, incarnation: Incarnation) {
    list.push_back(incarnation);
    if list.len() > MAX_REMEMBERED {
        list.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Incarnation = Incarnation(0xa);
    const B: Incarnation = Incarnation(0xb);
    const C: Incarnation = Incarnation(0xc);
    const TERM: Millis = Millis::from_secs(90);

    /// A host's incarnations, and whether the server holds a request of the current one open. Times are in seconds.
    #[derive(Default)]
    struct World {
        incarnations: Incarnations,
        is_asking: bool,
    }

    impl World {
        fn hear(
            &mut self,
            at: u64,
            incarnation: Incarnation,
            rival: Option<Incarnation>,
        ) -> Verdict {
            let now = UnixMillis(1_000_000 + at * 1_000);
            let is_asking = self.is_asking;
            self.incarnations.hear(Heard { incarnation, rival, is_asking, now, term: TERM })
        }
    }

    #[test]
    fn a_client_that_is_started_again_works_at_once_whatever_comes_late() {
        let mut world = World::default();
        assert_eq!(world.hear(0, A, None), Verdict::Works);
        assert_eq!(world.hear(1, B, None), Verdict::Works);
        // Requests of the first start that were on their way, one after the other.
        for at in [1, 2, 50] {
            assert_eq!(world.hear(at, A, None), Verdict::Unclear { other: B });
            assert_eq!(world.hear(at, B, None), Verdict::Works);
        }
        assert_eq!(world.hear(51, C, None), Verdict::Works);
        assert_eq!(world.hear(52, B, Some(A)), Verdict::Unclear { other: C });
        assert_eq!(world.incarnations.copies(), None);
    }

    #[test]
    fn of_two_that_are_both_there_the_later_one_is_the_copy() {
        let mut world = World::default();
        world.hear(0, A, None);
        world.hear(1, B, None);
        assert_eq!(world.hear(2, A, None), Verdict::Unclear { other: B });
        assert_eq!(world.hear(2, A, Some(B)), Verdict::WorksAgain);
        for at in [3, 4, 500] {
            assert_eq!(world.hear(at, B, None), Verdict::Copy);
            assert_eq!(world.hear(at, B, Some(A)), Verdict::Copy);
            assert_eq!(world.hear(at, A, Some(B)), Verdict::Works);
        }
        assert_eq!(world.incarnations.copies(), Some((1, UnixMillis(1_002_000))));
    }

    #[test]
    fn a_copy_of_one_that_has_a_request_open_takes_its_place_at_no_time() {
        let mut world = World::default();
        world.hear(0, A, None);
        world.is_asking = true;
        assert_eq!(world.hear(1, B, None), Verdict::Waits { current: A });
        world.is_asking = false;
        assert_eq!(world.hear(1, B, Some(A)), Verdict::Waits { current: A });
        // Its open request is answered with the other's name, which it repeats.
        assert_eq!(world.hear(2, A, None), Verdict::Unclear { other: B });
        assert_eq!(world.hear(2, A, Some(B)), Verdict::Works);
        assert_eq!(world.hear(3, B, Some(A)), Verdict::Copy);
        assert_eq!(world.hear(4, A, Some(B)), Verdict::Works);
    }

    #[test]
    fn a_restart_while_a_dead_request_is_open_works_after_a_moment() {
        let mut world = World { is_asking: true, ..World::default() };
        world.hear(0, A, None);
        assert_eq!(world.hear(1, B, None), Verdict::Waits { current: A });
        world.is_asking = false;
        // A request that was on its way shows nothing.
        assert_eq!(world.hear(2, A, None), Verdict::Unclear { other: B });
        assert_eq!(world.hear(5, B, Some(A)), Verdict::Waits { current: A });
        assert_eq!(world.hear(6, B, Some(A)), Verdict::Works);
        assert_eq!(world.incarnations.copies(), None);
    }

    #[test]
    fn where_there_was_a_copy_a_new_one_waits_until_the_one_of_before_is_silent() {
        let mut world = World::default();
        world.hear(0, A, None);
        world.hear(1, B, None);
        world.hear(2, A, Some(B));
        for (at, verdict) in [
            (10, Verdict::Waits { current: A }),
            (91, Verdict::Waits { current: A }),
            (92, Verdict::Works),
        ] {
            assert_eq!(world.hear(at, C, None), verdict, "{at}");
        }
        assert_eq!(world.hear(93, A, None), Verdict::Unclear { other: C });
        // A copy that is started again is found as soon as the other one is heard of.
        let mut world = World::default();
        world.hear(0, A, None);
        world.hear(1, B, None);
        world.hear(2, A, Some(B));
        assert_eq!(world.hear(10, C, None), Verdict::Waits { current: A });
        assert_eq!(world.hear(11, A, Some(B)), Verdict::Unclear { other: C });
        assert_eq!(world.hear(11, A, Some(C)), Verdict::Works);
        assert_eq!(world.hear(12, C, None), Verdict::Copy);
        assert_eq!(world.incarnations.copies().map(|(count, _)| count), Some(2));
    }
}
