//! Merges that are shared out by ranges: the open ranges of each merge, their workers and their results.
//!
//! Nothing here is stored, and nothing is decided: a leader names all open ranges with each request, so that a server that
//! has just started knows them too. The merge of a silent leader is dropped; its unit is assimilated again when its claim
//! expires.

use parking_lot::{Mutex, MutexGuard};
use sojourn_protocol::{
    assimilation::{AssimilationUnit, Offer},
    ids::LeaseId,
    ranges::{
        LeadAnswer, LeadRequest, RangeDone, RangeResult, RangeResultRequest, RangeTask, RangeWork,
        RemainingRange,
    },
};
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};
use tokio::sync::watch;

/// A leader that is silent for so long has ended, or does its merge alone.
const LEADER_TIMEOUT: Duration = Duration::from_secs(60);
/// A range goes to another worker after so long.
const RANGE_TIMEOUT: Duration = Duration::from_secs(30);
/// A range goes to its leader, which has nothing else to do, after so long.
const LEADER_TAKEOVER_TIMEOUT: Duration = Duration::from_secs(3);

/// The merges of all leaders that were heard of lately.
#[derive(Debug)]
pub(crate) struct RangeMerges {
    merges: Mutex<BTreeMap<LeaseId, RangeMerge>>,
    done: watch::Sender<u64>,
}

#[derive(Debug)]
struct RangeMerge {
    unit: AssimilationUnit,
    least: u64,
    task: RangeTask,
    /// When the leader last asked.
    heard: Instant,
    ranges: BTreeMap<u32, Posted>,
}

#[derive(Debug)]
struct Posted {
    left: RemainingRange,
    state: State,
}

#[derive(Debug)]
enum State {
    Waiting,
    Taken(Instant),
    Done(RangeResult),
}

/// Whether a request added ranges for others.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum News {
    Ranges,
    None,
}

impl Default for RangeMerges {
    fn default() -> Self {
        Self { merges: Mutex::default(), done: watch::Sender::new(0) }
    }
}

impl RangeMerges {
    /// Sees each completed range from now on.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.done.subscribe()
    }

    /// Answers a leader that names its open ranges: results of others, and a range to do itself.
    pub(crate) fn lead(&self, request: &LeadRequest, now: Instant) -> (LeadAnswer, News) {
        let LeadRequest { unit, task, left, .. } = request;
        let mut merges = self.all(now);
        let known = merges.get(&unit.lease);
        if left.is_empty() || known.is_some_and(|merge| merge.unit.claim > unit.claim) {
            // Nothing is open, or a later claim leads by now. The first offer counts.
            merges.retain(|_, merge| {
                (merge.unit.lease, merge.unit.claim) != (unit.lease, unit.claim)
            });
            let own = left.first().map(|left| left.range);
            return (LeadAnswer { done: Vec::new(), own }, News::None);
        }
        let goes_on = |merge: &RangeMerge| merge.unit.claim == unit.claim && merge.task == *task;
        if !known.is_some_and(goes_on) {
            merges.insert(unit.lease, RangeMerge::new(request, now));
        }
        match merges.get_mut(&unit.lease) {
            Some(merge) => merge.lead(left, now),
            None => (LeadAnswer::default(), News::None),
        }
    }

    /// A range to do, of the first merge that has one.
    pub(crate) fn take(&self, now: Instant) -> Option<RangeWork> {
        self.all(now).values_mut().find_map(|merge| {
            let range = merge.next(now, RANGE_TIMEOUT)?;
            let left = merge.ranges.get(&range)?.left;
            let (unit, task) = (merge.unit.clone(), merge.task.clone());
            Some(RangeWork { unit, least: merge.least, left, task })
        })
    }

    /// Takes the result of a range.
    pub(crate) fn made(&self, lease: LeaseId, request: RangeResultRequest, now: Instant) -> Offer {
        let RangeResultRequest { claim, done: RangeDone { range, result } } = request;
        let mut merges = self.all(now);
        let merge = merges.get_mut(&lease).filter(|merge| merge.unit.claim == claim);
        let merge = merge.filter(|merge| merge.task.fits(&result));
        match merge.and_then(|merge| merge.ranges.get_mut(&range)) {
            Some(Posted { state: state @ (State::Waiting | State::Taken(_)), .. }) => {
                *state = State::Done(result);
                drop(merges);
                self.done.send_modify(|times| *times = times.wrapping_add(1));
                Offer::Taken
            }
            _ => Offer::Stale,
        }
    }

    /// The merges of leaders that were heard of lately.
    fn all(&self, now: Instant) -> MutexGuard<'_, BTreeMap<LeaseId, RangeMerge>> {
        let mut merges = self.merges.lock();
        merges.retain(|_, merge| now.saturating_duration_since(merge.heard) < LEADER_TIMEOUT);
        merges
    }
}

impl RangeMerge {
    fn new(request: &LeadRequest, now: Instant) -> Self {
        let LeadRequest { unit, least, task, .. } = request.clone();
        Self { unit, least, task, heard: now, ranges: BTreeMap::new() }
    }

    fn lead(&mut self, left: &[RemainingRange], now: Instant) -> (LeadAnswer, News) {
        self.heard = now;
        self.ranges.retain(|range, _| left.iter().any(|left| left.range == *range));
        let before = self.ranges.len();
        for left in left {
            let waiting = || Posted { left: *left, state: State::Waiting };
            self.ranges.entry(left.range).or_insert_with(waiting);
        }
        let made = self.ranges.extract_if(.., |_, posted| matches!(posted.state, State::Done(_)));
        let made = made.filter_map(|(range, posted)| match posted.state {
            State::Done(result) => Some(RangeDone { range, result }),
            State::Waiting | State::Taken(_) => None,
        });
        let made = made.collect();
        let news = if self.ranges.len() > before { News::Ranges } else { News::None };
        (LeadAnswer { done: made, own: self.next(now, LEADER_TAKEOVER_TIMEOUT) }, news)
    }

    /// Takes the first range without a worker, or else the one whose worker has been slow for longest.
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
#[path = "range_merges_tests.rs"]
mod tests;
