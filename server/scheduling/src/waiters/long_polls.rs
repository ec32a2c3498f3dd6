//! Requests for work that are held open: ordered by the speed of their hosts, then by arrival, and by the time by which
//! they must be answered.
//!
//! Hosts whose slots have all that they want hold one open too. Such a host doesn't wait for work. It is there to hear that
//! what it hasn't begun is taken back, and that a hop is to end.

use super::ReplyTo;
use sojourn_protocol::{
    api::WorkRequest, ids::HostId, inventory::Demand, money::MicroUsd, quantity::to_usize,
    time::UnixMillis,
};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
};

/// A request that is held open.
#[derive(Debug, Clone, PartialEq)]
pub struct LongPoll {
    /// The reply that is awaited.
    pub to: ReplyTo,
    /// The request.
    pub request: WorkRequest,
    /// Answer by then.
    pub until: UnixMillis,
    /// The poll's number, by arrival.
    pub order: u64,
    /// The speed of its host's fastest slots.
    pub speed: u64,
    /// The price of an hour of one of its slots; nothing where it wasn't bought.
    pub price: MicroUsd,
}

/// Bought machines whose speeds differ by less than this part are as fast as each other: what is measured isn't exact.
const SPEED_STEPS: u64 = 8;

impl LongPoll {
    const fn rank(&self, host: HostId) -> Rank {
        let speed = if self.price.0 == 0 { self.speed } else { rounded(self.speed) };
        Rank { speed: Reverse(speed), price: self.price, order: self.order, host }
    }
}

/// A speed, rounded down to so many steps for each doubling.
const fn rounded(speed: u64) -> u64 {
    let octave = match speed.checked_ilog2() {
        Some(bits) => 1 << bits,
        None => return 0,
    };
    let step: u64 = octave / SPEED_STEPS;
    match speed.checked_div(step) {
        Some(steps) => steps * step,
        None => speed,
    }
}

/// The order of requests: the fastest host first, of those that are as fast the cheapest, and those of one price by arrival.
/// So the dearest are idle first, and whoever buys machines gives them back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    speed: Reverse<u64>,
    price: MicroUsd,
    order: u64,
    /// The host that waits.
    pub host: HostId,
}

/// All open requests, one per host.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LongPolls {
    /// Boxed, as each is taken out and put back whenever its host is looked at.
    polls: BTreeMap<HostId, Box<LongPoll>>,
    by_until: BTreeSet<(UnixMillis, HostId)>,
    by_reply: BTreeMap<ReplyTo, HostId>,
    /// Of hosts that wait for work.
    by_speed: BTreeSet<Rank>,
    /// Hosts that have all that they want.
    supplied: BTreeSet<HostId>,
    /// Idle slots of all of them.
    idle: usize,
    /// The number of the next one.
    next: u64,
}

impl LongPolls {
    /// Holds a new request open, behind all others.
    pub fn hold(
        &mut self,
        host: HostId,
        to: ReplyTo,
        request: WorkRequest,
        until: UnixMillis,
        (speed, price): (u64, MicroUsd),
    ) {
        let order = self.next;
        self.next += 1;
        self.put_back(host, Box::new(LongPoll { to, request, until, order, speed, price }));
    }

    /// Puts a request back that was taken, in its old order.
    pub fn put_back(&mut self, host: HostId, poll: Box<LongPoll>) {
        self.take(host);
        self.by_until.insert((poll.until, host));
        self.by_reply.insert(poll.to, host);
        if wants_work(&poll) {
            self.by_speed.insert(poll.rank(host));
        } else {
            self.supplied.insert(host);
        }
        self.idle += idle(&poll);
        self.polls.insert(host, poll);
    }

    /// Takes a host's request out.
    pub fn take(&mut self, host: HostId) -> Option<Box<LongPoll>> {
        let poll = self.polls.remove(&host)?;
        self.by_until.remove(&(poll.until, host));
        self.by_reply.remove(&poll.to);
        self.by_speed.remove(&poll.rank(host));
        self.supplied.remove(&host);
        self.idle -= idle(&poll);
        Some(poll)
    }

    /// Takes a request out that must be answered by `now`, if there is one.
    pub fn take_due(&mut self, now: UnixMillis) -> Option<(HostId, Box<LongPoll>)> {
        let (_, host) = self.by_until.first().copied().filter(|(until, _)| *until <= now)?;
        Some((host, self.take(host)?))
    }

    /// Nobody waits for this reply any more.
    pub fn forget(&mut self, to: ReplyTo) {
        if let Some(host) = self.by_reply.get(&to).copied() {
            self.take(host);
        }
    }

    /// How many hosts wait for work.
    #[must_use]
    pub fn count(&self) -> usize {
        self.by_speed.len()
    }

    /// Does this host wait for work?
    #[must_use]
    pub fn waits(&self, host: HostId) -> bool {
        self.polls.contains_key(&host) && !self.supplied.contains(&host)
    }

    /// Does this host hold a request open, whether it waits for work or not?
    #[must_use]
    pub fn is_open(&self, host: HostId) -> bool {
        self.polls.contains_key(&host)
    }

    /// Hosts that have all that they want, and hold a request open.
    pub fn supplied(&self) -> impl Iterator<Item = HostId> + '_ {
        self.supplied.iter().copied()
    }

    /// The request of a host.
    #[must_use]
    pub fn request(&self, host: HostId) -> Option<&WorkRequest> {
        self.polls.get(&host).map(|poll| &poll.request)
    }

    /// When the first one must be answered.
    #[must_use]
    pub fn first_until(&self) -> Option<UnixMillis> {
        self.by_until.first().map(|(until, _)| *until)
    }

    /// The order of a host's request.
    #[must_use]
    pub fn rank(&self, host: HostId) -> Option<Rank> {
        self.polls.get(&host).map(|poll| poll.rank(host))
    }

    /// The first request behind this one, or of all.
    #[must_use]
    pub fn first_behind(&self, rank: Option<Rank>) -> Option<Rank> {
        let from = rank.map_or(Bound::Unbounded, Bound::Excluded);
        self.by_speed.range((from, Bound::Unbounded)).next().copied()
    }

    /// Hosts that wait for work, the fastest first.
    pub fn fastest(&self) -> impl Iterator<Item = HostId> + '_ {
        self.by_speed.iter().map(|rank| rank.host)
    }

    /// Do any idle slots wait?
    #[must_use]
    pub fn any_idle(&self) -> bool {
        self.idle > 0
    }

    /// The demand of a waiting host; nothing where it doesn't wait.
    #[must_use]
    pub fn demand(&self, host: HostId) -> &[Demand] {
        self.polls.get(&host).map_or(&[], |poll| &poll.request.demand)
    }

    /// Idle slots that wait, without those of this host.
    #[must_use]
    pub fn idle_beside(&self, host: HostId) -> usize {
        self.idle - self.polls.get(&host).map_or(0, |poll| idle(poll))
    }
}

fn wants_work(poll: &LongPoll) -> bool {
    poll.request.demand.iter().any(|demand| demand.wanted > 0)
}

fn idle(poll: &LongPoll) -> usize {
    let idle = poll.request.demand.iter().map(|demand| demand.idle);
    to_usize(idle.fold(0, u32::saturating_add))
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
    fn a_host_that_has_all_that_it_wants_holds_its_request_open_and_waits_for_no_work() {
        let mut polls = LongPolls::default();
        let [idle, supplied] = [HostId(1), HostId(2)];
        polls.hold(idle, ReplyTo(1), request(1), UnixMillis(30), (5, MicroUsd(0)));
        polls.hold(supplied, ReplyTo(2), request(0), UnixMillis(20), (9, MicroUsd(0)));
        assert_eq!(polls.fastest().collect::<Vec<_>>(), [idle]);
        assert_eq!(polls.supplied().collect::<Vec<_>>(), [supplied]);
        assert_eq!((polls.count(), polls.waits(idle), polls.waits(supplied)), (1, true, false));
        assert_eq!(polls.request(supplied), Some(&request(0)));
        assert_eq!(polls.take_due(UnixMillis(20)).map(|(host, _)| host), Some(supplied));
        assert_eq!(polls.supplied().count(), 0);
    }

    #[test]
    fn of_bought_hosts_that_are_about_as_fast_the_cheapest_is_first() {
        let mut polls = LongPolls::default();
        let speeds = [(1, 1000, 5), (2, 1010, 7), (3, 1009, 4), (4, 2000, 9), (5, 1001, 0)];
        for (host, speed, price) in speeds {
            let paid = (speed, MicroUsd(price));
            polls.hold(HostId(host), ReplyTo(host), request(1), UnixMillis(9), paid);
        }
        let order: Vec<u64> = polls.fastest().map(|host| host.0).collect();
        assert_eq!(order, [4, 5, 3, 1, 2], "one that costs nothing goes by its own speed");
    }

    #[test]
    fn they_are_found_by_speed_and_by_time_until_they_are_taken() {
        let mut polls = LongPolls::default();
        let [a, b, c] = [HostId(3), HostId(1), HostId(2)];
        polls.hold(a, ReplyTo(1), request(1), UnixMillis(30), (5, MicroUsd(0)));
        polls.hold(b, ReplyTo(2), request(2), UnixMillis(10), (9, MicroUsd(0)));
        polls.hold(c, ReplyTo(3), request(4), UnixMillis(20), (5, MicroUsd(0)));
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
