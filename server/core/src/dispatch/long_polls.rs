//! Asks that are held open: by their hosts' speed, then in the order in which they came; and by when they must be
//! answered.

use crate::command::ReplyTo;
use sojourn_protocol::{api::WorkRequest, ids::HostId, inventory::Demand, time::UnixMillis};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
};

/// An ask that is held open.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LongPoll {
    /// Whom to answer.
    pub(crate) to: ReplyTo,
    /// What was asked.
    pub(crate) request: WorkRequest,
    /// Answer by then.
    pub(crate) until: UnixMillis,
    /// Its place among those that wait.
    pub(crate) order: u64,
    /// The speed of its host's fastest slots.
    pub(crate) speed: u64,
}

impl LongPoll {
    const fn rank(&self, host: HostId) -> Rank {
        Rank { speed: Reverse(self.speed), order: self.order, host }
    }
}

/// How an ask stands among all: the fastest first, those of one speed in the order in which they came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    speed: Reverse<u64>,
    order: u64,
    /// Who asked.
    pub(crate) host: HostId,
}

/// All of them, one a host.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct LongPolls {
    /// Each goes in and out whenever its host may have something to hear.
    polls: BTreeMap<HostId, Box<LongPoll>>,
    by_until: BTreeSet<(UnixMillis, HostId)>,
    by_reply: BTreeMap<ReplyTo, HostId>,
    by_speed: BTreeSet<Rank>,
    /// Idle slots of all of them.
    idle: usize,
    /// The next one's place.
    next: u64,
}

impl LongPolls {
    /// Holds a new ask open, behind all others.
    pub(crate) fn hold(
        &mut self,
        host: HostId,
        to: ReplyTo,
        request: WorkRequest,
        until: UnixMillis,
        speed: u64,
    ) {
        let order = self.next;
        self.next += 1;
        self.put_back(host, Box::new(LongPoll { to, request, until, order, speed }));
    }

    /// Holds an ask open that was taken, in its old place.
    pub(crate) fn put_back(&mut self, host: HostId, poll: Box<LongPoll>) {
        self.take(host);
        self.by_until.insert((poll.until, host));
        self.by_reply.insert(poll.to, host);
        self.by_speed.insert(poll.rank(host));
        self.idle += idle(&poll);
        self.polls.insert(host, poll);
    }

    /// Takes a host's ask out.
    pub(crate) fn take(&mut self, host: HostId) -> Option<Box<LongPoll>> {
        let poll = self.polls.remove(&host)?;
        self.by_until.remove(&(poll.until, host));
        self.by_reply.remove(&poll.to);
        self.by_speed.remove(&poll.rank(host));
        self.idle -= idle(&poll);
        Some(poll)
    }

    /// Takes the ask out that must be answered by `now`, if there is one.
    pub(crate) fn take_due(&mut self, now: UnixMillis) -> Option<(HostId, Box<LongPoll>)> {
        let (_, host) = self.by_until.first().copied().filter(|(until, _)| *until <= now)?;
        Some((host, self.take(host)?))
    }

    /// Nobody waits for this reply any more.
    pub(crate) fn forget(&mut self, to: ReplyTo) {
        if let Some(host) = self.by_reply.get(&to).copied() {
            self.take(host);
        }
    }

    /// How many wait.
    #[must_use]
    pub(crate) fn len(&self) -> usize {
        self.polls.len()
    }

    /// Does an ask of this host wait?
    #[must_use]
    pub(crate) fn waits(&self, host: HostId) -> bool {
        self.polls.contains_key(&host)
    }

    /// When the first one must be answered.
    #[must_use]
    pub(crate) fn first_until(&self) -> Option<UnixMillis> {
        self.by_until.first().map(|(until, _)| *until)
    }

    /// How a host's ask stands among all.
    #[must_use]
    pub(crate) fn rank(&self, host: HostId) -> Option<Rank> {
        self.polls.get(&host).map(|poll| poll.rank(host))
    }

    /// The first ask behind this rank, or of all.
    #[must_use]
    pub(crate) fn first_behind(&self, rank: Option<Rank>) -> Option<Rank> {
        let from = rank.map_or(Bound::Unbounded, Bound::Excluded);
        self.by_speed.range((from, Bound::Unbounded)).next().copied()
    }

    /// Hosts whose asks wait, the fastest first.
    pub(crate) fn fastest(&self) -> impl Iterator<Item = HostId> + '_ {
        self.by_speed.iter().map(|rank| rank.host)
    }

    /// Do any idle slots wait?
    #[must_use]
    pub(crate) fn any_idle(&self) -> bool {
        self.idle > 0
    }

    /// What the slots of a host that waits could do with; nothing where it doesn't wait.
    #[must_use]
    pub(crate) fn demand(&self, host: HostId) -> &[Demand] {
        self.polls.get(&host).map_or(&[], |poll| &poll.request.demand)
    }

    /// Idle slots that wait, without those of this host.
    #[must_use]
    pub(crate) fn idle_beside(&self, host: HostId) -> usize {
        self.idle - self.polls.get(&host).map_or(0, |poll| idle(poll))
    }
}

fn idle(poll: &LongPoll) -> usize {
    let idle = poll.request.demand.iter().map(|demand| demand.idle);
    usize::try_from(idle.fold(0, u32::saturating_add)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_protocol::{
        inventory::{CPU, Demand},
        time::Millis,
    };

    fn request(idle: u32) -> WorkRequest {
        WorkRequest {
            demand: vec![Demand { device: CPU.into(), slots: idle, idle, wanted: idle }],
            holding: Vec::new(),
            reported: Vec::new(),
            wait: Millis(10),
            inventory: None,
        }
    }

    #[test]
    fn they_are_found_by_speed_and_by_time_until_they_are_taken() {
        let mut polls = LongPolls::default();
        let [a, b, c] = [HostId(3), HostId(1), HostId(2)];
        polls.hold(a, ReplyTo(1), request(1), UnixMillis(30), 5);
        polls.hold(b, ReplyTo(2), request(2), UnixMillis(10), 9);
        polls.hold(c, ReplyTo(3), request(4), UnixMillis(20), 5);
        assert_eq!(polls.fastest().collect::<Vec<_>>(), [b, a, c]);
        assert_eq!((polls.idle_beside(b), polls.idle_beside(HostId(9))), (5, 7));
        let [rank_a, rank_b, rank_c] = [a, b, c].map(|host| polls.rank(host));
        assert_eq!((polls.first_behind(None), polls.first_behind(rank_b)), (rank_b, rank_a));
        assert_eq!((polls.first_behind(rank_a), polls.first_behind(rank_c)), (rank_c, None));
        assert_eq!(polls.first_until(), Some(UnixMillis(10)));

        let taken = polls.take(a).unwrap();
        assert_eq!(
            (polls.waits(a), polls.rank(a), polls.first_behind(rank_b)),
            (false, None, rank_c)
        );
        polls.put_back(a, taken);
        assert_eq!((polls.rank(a), polls.first_behind(rank_b)), (rank_a, rank_a));

        assert_eq!(polls.take_due(UnixMillis(9)), None);
        assert_eq!(polls.take_due(UnixMillis(20)).map(|(host, _)| host), Some(b));
        assert_eq!(polls.take_due(UnixMillis(20)).map(|(host, _)| host), Some(c));
        assert_eq!(polls.take_due(UnixMillis(20)), None);
        polls.forget(ReplyTo(7));
        assert!(polls.waits(a));
        polls.forget(ReplyTo(1));
        assert_eq!(polls, LongPolls { next: 3, ..LongPolls::default() });
    }
}
