//! Merges that are shared out by ranges: what is left of each, who is at it, and what has come of it.
//!
//! Nothing here lasts, and nothing here decides: each leader says all that is left whenever it asks, so that a server
//! that has just started knows as much. A leader that isn't heard of any more has its board taken down; its unit comes
//! again by its own term.

use sojourn_protocol::{
    assimilation::{AssimilationUnit, Offer},
    ids::LeaseId,
    ranges::{
        LeadAnswer, LeadRequest, MadeRequest, RangeDone, RangeLeft, RangeMade, RangeTask, RangeWork,
    },
};
use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tokio::sync::watch;

/// A leader that is silent for so long is gone, or does its merge alone.
const LEADS: Duration = Duration::from_secs(60);
/// A range is given to another after so long,
const TERM: Duration = Duration::from_secs(30);
/// and to its leader, who has nothing else to do, after so long.
const STRAGGLES: Duration = Duration::from_secs(3);

/// All of them.
#[derive(Debug)]
pub(crate) struct Boards {
    boards: Mutex<BTreeMap<LeaseId, Board>>,
    done: watch::Sender<u64>,
}

#[derive(Debug)]
struct Board {
    unit: AssimilationUnit,
    least: u64,
    task: RangeTask,
    /// When its leader was heard of.
    heard: Instant,
    ranges: BTreeMap<u32, Posted>,
}

#[derive(Debug)]
struct Posted {
    left: RangeLeft,
    state: State,
}

#[derive(Debug)]
enum State {
    Waiting,
    Taken(Instant),
    Made(RangeMade),
}

/// Whether there is more to do for others than before.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum News {
    Ranges,
    None,
}

impl Default for Boards {
    fn default() -> Self {
        Self { boards: Mutex::default(), done: watch::Sender::new(0) }
    }
}

impl Boards {
    /// Hears when a range has been done, from now on.
    pub(crate) fn listen(&self) -> watch::Receiver<u64> {
        self.done.subscribe()
    }

    /// What a leader gets for what it says is left.
    pub(crate) fn lead(&self, request: &LeadRequest, now: Instant) -> (LeadAnswer, News) {
        let LeadRequest { unit, task, left, .. } = request;
        let mut boards = self.all(now);
        let known = boards.get(&unit.lease);
        if left.is_empty() || known.is_some_and(|board| board.unit.taking > unit.taking) {
            // There is nothing to share, or another leads by now: whoever is first offers.
            boards.retain(|_, board| {
                (board.unit.lease, board.unit.taking) != (unit.lease, unit.taking)
            });
            let own = left.first().map(|left| left.range);
            return (LeadAnswer { made: Vec::new(), own }, News::None);
        }
        let goes_on = |board: &Board| board.unit.taking == unit.taking && board.task == *task;
        if !known.is_some_and(goes_on) {
            boards.insert(unit.lease, Board::new(request, now));
        }
        match boards.get_mut(&unit.lease) {
            Some(board) => board.lead(left, now),
            None => (LeadAnswer::default(), News::None),
        }
    }

    /// A range for whoever asks, of the merge that leads the list.
    pub(crate) fn take(&self, now: Instant) -> Option<RangeWork> {
        self.all(now).values_mut().find_map(|board| {
            let range = board.next(now, TERM)?;
            let left = board.ranges.get(&range)?.left;
            let (unit, task) = (board.unit.clone(), board.task.clone());
            Some(RangeWork { unit, least: board.least, left, task })
        })
    }

    /// Somebody has done a range.
    pub(crate) fn made(&self, lease: LeaseId, request: MadeRequest, now: Instant) -> Offer {
        let MadeRequest { taking, done: RangeDone { range, made } } = request;
        let mut boards = self.all(now);
        let board = boards.get_mut(&lease).filter(|board| board.unit.taking == taking);
        let board = board.filter(|board| board.task.fits(&made));
        match board.and_then(|board| board.ranges.get_mut(&range)) {
            Some(Posted { state: state @ (State::Waiting | State::Taken(_)), .. }) => {
                *state = State::Made(made);
                drop(boards);
                self.done.send_modify(|times| *times = times.wrapping_add(1));
                Offer::Taken
            }
            _ => Offer::Stale,
        }
    }

    /// Those whose leaders were heard of lately.
    fn all(&self, now: Instant) -> MutexGuard<'_, BTreeMap<LeaseId, Board>> {
        let mut boards = self.boards.lock().unwrap_or_else(PoisonError::into_inner);
        boards.retain(|_, board| now.saturating_duration_since(board.heard) < LEADS);
        boards
    }
}

impl Board {
    fn new(request: &LeadRequest, now: Instant) -> Self {
        let LeadRequest { unit, least, task, .. } = request.clone();
        Self { unit, least, task, heard: now, ranges: BTreeMap::new() }
    }

    fn lead(&mut self, left: &[RangeLeft], now: Instant) -> (LeadAnswer, News) {
        self.heard = now;
        self.ranges.retain(|range, _| left.iter().any(|left| left.range == *range));
        let before = self.ranges.len();
        for left in left {
            let waiting = || Posted { left: *left, state: State::Waiting };
            self.ranges.entry(left.range).or_insert_with(waiting);
        }
        let made = self.ranges.extract_if(.., |_, posted| matches!(posted.state, State::Made(_)));
        let made = made.filter_map(|(range, posted)| match posted.state {
            State::Made(made) => Some(RangeDone { range, made }),
            State::Waiting | State::Taken(_) => None,
        });
        let made = made.collect();
        let news = if self.ranges.len() > before { News::Ranges } else { News::None };
        (LeadAnswer { made, own: self.next(now, STRAGGLES) }, news)
    }

    /// Takes the first range that nobody is at, or else one that somebody has been at for too long.
    fn next(&mut self, now: Instant, too_long: Duration) -> Option<u32> {
        let mut ranges = self.ranges.iter();
        let waiting = ranges.find(|(_, posted)| matches!(posted.state, State::Waiting));
        let slow = |(range, posted): (&u32, &Posted)| match posted.state {
            State::Taken(at) if now.saturating_duration_since(at) >= too_long => Some((at, *range)),
            _ => None,
        };
        let slowest = || self.ranges.iter().filter_map(slow).min().map(|(_, range)| range);
        let range = waiting.map(|(range, _)| *range).or_else(slowest)?;
        self.ranges.get_mut(&range)?.state = State::Taken(now);
        Some(range)
    }
}

#[cfg(test)]
#[path = "boards_tests.rs"]
mod tests;
