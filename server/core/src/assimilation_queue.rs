//! The queue of assimilators: results that wait or are claimed, and how fast they end.

use sojourn_protocol::{
    ids::{ClaimId, LeaseId},
    quantity::SaturatingFrom as _,
    time::{Millis, UnixMillis},
};
use sojourn_scheduling::waiters::ReplyTo;
use std::{
    collections::{BTreeMap, VecDeque},
    ops::Bound,
};

/// Seconds over which the rate is taken.
const RATE_SECONDS: u64 = 60;

/// A unit that an assimilator has claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Claim {
    /// The number of the claim.
    id: ClaimId,
    /// The reply that it was given with.
    to: ReplyTo,
    /// When the claim expires.
    until: UnixMillis,
    /// When it was queued.
    since: UnixMillis,
}

/// The queue. A result is in it or claimed, not both.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct AssimilationQueue {
    /// Results in the order in which they are given out.
    queue: BTreeMap<u64, LeaseId>,
    /// The position of each result in the queue, and when it was queued.
    positions: BTreeMap<LeaseId, (u64, UnixMillis)>,
    /// The position of the next one.
    next: u64,
    claims: BTreeMap<LeaseId, Claim>,
    last: ClaimId,
    ended: u64,
    /// Ends by second, of the last ones.
    recent: VecDeque<(u64, u32)>,
}

impl AssimilationQueue {
    /// Queues a result, unless it is queued or claimed. True where it isn't claimed.
    pub(crate) fn push(&mut self, lease: LeaseId, now: UnixMillis) -> bool {
        let free = !self.claims.contains_key(&lease);
        if free {
            self.enqueue(lease, now);
        }
        free
    }

    fn enqueue(&mut self, lease: LeaseId, since: UnixMillis) {
        if !self.positions.contains_key(&lease) {
            self.queue.insert(self.next, lease);
            self.positions.insert(lease, (self.next, since));
            self.next += 1;
        }
    }

    /// The first result behind a position, or of all; with its own position.
    pub(crate) fn first_behind(&self, position: Option<u64>) -> Option<(u64, LeaseId)> {
        let from = position.map_or(Bound::Unbounded, Bound::Excluded);
        let mut line = self.queue.range((from, Bound::Unbounded));
        line.next().map(|(position, lease)| (*position, *lease))
    }

    /// Results that wait, in order.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = LeaseId> + '_ {
        self.queue.values().copied()
    }

    /// Results that are claimed.
    pub(crate) fn claimed(&self) -> impl ExactSizeIterator<Item = LeaseId> + '_ {
        self.claims.keys().copied()
    }

    /// When a result was queued.
    pub(crate) fn since(&self, lease: LeaseId) -> Option<UnixMillis> {
        let waiting = self.positions.get(&lease).map(|(_, since)| *since);
        waiting.or_else(|| self.claims.get(&lease).map(|claim| claim.since))
    }

    /// Gives a waiting result out, for a term. The numbers of claims follow the clock, so that they go on where those of
    /// another server ended.
    pub(crate) fn claim(
        &mut self,
        lease: LeaseId,
        to: ReplyTo,
        now: UnixMillis,
        term: Millis,
    ) -> Option<ClaimId> {
        let (position, since) = self.positions.remove(&lease)?;
        self.queue.remove(&position);
        self.last = self.last.next().max(ClaimId(now.0));
        let claim = self.last;
        self.claims.insert(lease, Claim { id: claim, to, until: now + term, since });
        Some(claim)
    }

    /// Begins the term of a claim again. True where the claim still holds.
    pub(crate) fn renew(&mut self, lease: LeaseId, claim: ClaimId, until: UnixMillis) -> bool {
        let known = self.claims.get_mut(&lease).filter(|known| known.id == claim);
        known.map(|known| known.until = until).is_some()
    }

    /// Forgets a result: it is queued and claimed no more.
    pub(crate) fn forget(&mut self, lease: LeaseId) {
        self.claims.remove(&lease);
        if let Some((position, _)) = self.positions.remove(&lease) {
            self.queue.remove(&position);
        }
    }

    /// An offer has ended a result.
    pub(crate) fn end(&mut self, lease: LeaseId, now: UnixMillis) {
        self.forget(lease);
        self.ended += 1;
        let second = now.0 / 1000;
        match self.recent.back_mut().filter(|(at, _)| *at == second) {
            Some((_, count)) => *count = count.saturating_add(1),
            None => self.recent.push_back((second, 1)),
        }
        while self.recent.front().is_some_and(|(at, _)| at + RATE_SECONDS <= second) {
            self.recent.pop_front();
        }
    }

    /// Puts results back whose claims have expired. How many.
    pub(crate) fn expire(&mut self, now: UnixMillis) -> usize {
        self.give_back(|_, claim| claim.until <= now)
    }

    /// A result's claim has ended without an offer that could be taken: puts it back. How many: none where it isn't claimed.
    pub(crate) fn put_back(&mut self, lease: LeaseId) -> usize {
        self.give_back(|claimed, _| claimed == lease)
    }

    /// The connection of a request is gone: puts the results back that it claimed. How many.
    pub(crate) fn hang_up(&mut self, to: ReplyTo) -> usize {
        self.give_back(|_, claim| claim.to == to)
    }

    fn give_back(&mut self, which: impl Fn(LeaseId, &Claim) -> bool) -> usize {
        let back: Vec<_> =
            self.claims.extract_if(.., |lease, claim| which(*lease, claim)).collect();
        for (lease, claim) in &back {
            self.enqueue(*lease, claim.since);
        }
        back.len()
    }

    /// Is each result queued or claimed, and in its position?
    pub(crate) fn agree(&self) -> bool {
        let positions = self.queue.iter().map(|(position, lease)| (*lease, *position));
        let waiting = self.positions.iter().map(|(lease, (position, _))| (*lease, *position));
        positions.collect::<BTreeMap<_, _>>() == waiting.collect()
            && self.queue.len() == self.positions.len()
            && self.claims.keys().all(|lease| !self.positions.contains_key(lease))
    }

    /// When the first claim expires.
    pub(crate) fn first_claim_end(&self) -> Option<UnixMillis> {
        self.claims.values().map(|claim| claim.until).min()
    }

    /// How many have ended, and in each of the last seconds, on average.
    pub(crate) fn ended(&self, started_at: UnixMillis, now: UnixMillis) -> (u64, f64) {
        let second = now.0 / 1000;
        let counts = self.recent.iter().filter(|(at, _)| at + RATE_SECONDS > second);
        let recent: f64 = counts.map(|(_, count)| f64::from(*count)).sum();
        let seconds = ((now - started_at).0 / 1000).clamp(1, RATE_SECONDS);
        (self.ended, recent / f64::from(u32::saturating_from(seconds)))
    }
}
