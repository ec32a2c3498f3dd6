//! Trials into machines before a deadline, with few moves: the algorithm of Gonzalez and Sahni for machines of
//! different speeds ("Preemptive scheduling of uniform processor systems", J. ACM 25(1), 1978).
//!
//! The free time of machines is kept as lanes: a lane is on one machine at a time, perhaps on several one after the
//! other. The longest trial goes first. It takes a part of one lane, from as early as it can, as long as the k
//! longest of the other trials still have room on the k best lanes, for every k; else it is split over two lanes,
//! of which the rest becomes one lane. Small trials are no more than filling; they go where they end earliest.
//!
//! ```text
//!   fast  [ trial 3 .......... | trial 5 ..... ]     trial 5 leaves the slow machine for the fast one,
//!   slow  [ trial 5 .......... | free          ]     so that neither holds the job up
//! ```
//!
//! While a trial moves, somebody else could be trained, but few are there at the right time. So there are two ways
//! to count: the time is lost, or it takes none and all comes a little later than planned.

use super::{
    instance::Instance,
    lane::{Interval, Lane},
    share::Share,
};
use sojourn_protocol::quantity::mul_div;
use std::cmp::Reverse;

/// Trials that need less than such a part of the deadline on the slowest machine are small.
const SMALL: u64 = 2;
/// Lanes of a kind, and lanes at all, that are tried for a split.
const OF_A_KIND: usize = 2;
const LANES: usize = 16;
/// Lanes are of a kind where times and paces differ by less than such a part.
const ALIKE: u64 = 32;

/// How the time of a move is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gaps {
    /// As none.
    None,
    /// As lost, but for small trials.
    Lost,
}

/// Shares so that all end before the deadline, as far as that can be said before they are worked off; `None` where
/// some trial doesn't fit.
pub(super) fn pack(
    instance: &Instance<'_>,
    weights: &[u64],
    deadline: u64,
    gaps: Gaps,
) -> Option<Vec<Share>> {
    let mut packing = Packing::new(instance, deadline, gaps);
    let slowest = (0..instance.problem.machines.len())
        .map(|machine| instance.work_of(deadline, machine))
        .min();
    let is_large = |trial: &usize| instance.work(*trial) > slowest.unwrap_or(0) / SMALL;
    let (large, small): (Vec<usize>, Vec<usize>) =
        instance.by_work(weights).into_iter().partition(is_large);
    let mut needs: Vec<u64> = large.iter().map(|trial| instance.work(*trial)).collect();
    needs.reverse();
    packing.small = small.iter().map(|trial| instance.work(*trial)).sum();
    for trial in large {
        needs.pop();
        let route = packing.route(trial, &needs)?;
        packing.take(trial, route);
    }
    packing.fill(&small);
    Some(packing.shares)
}

struct Packing<'a> {
    instance: &'a Instance<'a>,
    deadline: u64,
    /// The most room first.
    lanes: Vec<Lane>,
    shares: Vec<Share>,
    gaps: Gaps,
    /// Work of small trials, and of gaps that they may fill.
    small: u64,
    spare: u64,
}

/// Where a trial goes: its intervals, the lanes that they are cut from, and what becomes of those.
struct Route {
    intervals: Vec<Interval>,
    lanes: Vec<usize>,
    left: Vec<Lane>,
    /// The intervals that are in none of them.
    gaps: Vec<Interval>,
}

impl Route {
    /// Work that the machines could do while the trial moves.
    fn lost(&self, instance: &Instance<'_>) -> u64 {
        self.gaps.iter().map(|of| instance.work_in(*of)).sum()
    }
}

impl<'a> Packing<'a> {
    fn new(instance: &'a Instance<'a>, deadline: u64, gaps: Gaps) -> Self {
        let machines = &instance.problem.machines;
        let lane = |(machine, from): (usize, u64)| {
            Lane::new(instance, vec![Interval { from, to: deadline, machine }])
        };
        let free = machines.iter().map(|machine| machine.free_at.min(deadline)).enumerate();
        let mut lanes: Vec<Lane> = free.map(lane).collect();
        lanes.sort_by_key(|lane| Reverse(lane.room));
        Self { instance, deadline, lanes, shares: Vec::new(), gaps, small: 0, spare: 0 }
    }

    /// Small trials, each to the machine where it ends earliest.
    fn fill(&mut self, small: &[usize]) {
        let instance = self.instance;
        let mut free: Vec<u64> =
            instance.problem.machines.iter().map(|machine| machine.free_at).collect();
        for share in &self.shares {
            free[share.machine] += instance.share_takes(share);
        }
        instance.finish_earliest(small, &mut free, &mut self.shares);
    }

    /// The route of a trial that leaves room for the others.
    fn route(&self, trial: usize, others: &[u64]) -> Option<Route> {
        let known = &self.instance.problem.trials[trial];
        let at = known.at.map(|(at, _)| at as usize);
        // Where it needs the least of what is better, its own machine before others.
        let mut fitting: Vec<(bool, u64, usize)> = Vec::new();
        for (n, lane) in self.lanes.iter().enumerate() {
            let Some(first) = lane.intervals.first() else { continue };
            let from = self.instance.arrives(trial, first.machine);
            if lane.room_in(self.instance, from, self.deadline) >= self.instance.work(trial) {
                fitting.push((at.is_some_and(|at| at != first.machine), lane.room, n));
            }
        }
        fitting.sort_unstable();
        for (_, _, n) in fitting {
            let route = self.along(trial, n)?;
            if self.keeps_room(&route, others) {
                return Some(route);
            }
        }
        // The fewest intervals; of such, where the least is lost.
        let several = self.kinds(at);
        let pairs = several.iter().flat_map(|a| several.iter().map(move |b| (*a, *b)));
        let mut best: Option<((usize, u64), Route)> = None;
        for (first, second) in pairs.filter(|(first, second)| first != second) {
            let Some(route) = self.across(trial, (first, second)) else { continue };
            let price = (route.intervals.len(), route.lost(self.instance));
            if best.as_ref().is_none_or(|(than, _)| price < *than)
                && self.keeps_room(&route, others)
            {
                best = Some((price, route));
            }
        }
        best.map(|(_, route)| route)
    }

    /// Some lanes of each kind.
    fn kinds(&self, at: Option<usize>) -> Vec<usize> {
        let near = |a: u64, b: u64| a.abs_diff(b) <= self.deadline / ALIKE;
        let is_at = |lane: &Lane| lane.intervals.first().is_some_and(|of| at == Some(of.machine));
        let same = |(a, b): (&Interval, &Interval)| {
            near(a.from, b.from)
                && near(a.to, b.to)
                && self.instance.is_as_fast(a.machine, b.machine, ALIKE)
        };
        let alike = |a: &Lane, b: &Lane| {
            a.intervals.len() == b.intervals.len()
                && is_at(a) == is_at(b)
                && a.intervals.iter().zip(&b.intervals).all(same)
        };
        let mut kinds: Vec<usize> = Vec::new();
        for (n, lane) in self.lanes.iter().enumerate() {
            let of_its_kind = kinds.iter().filter(|other| alike(&self.lanes[**other], lane));
            if of_its_kind.count() < OF_A_KIND {
                kinds.push(n);
            }
        }
        let each = kinds.len().div_ceil(LANES).max(1);
        kinds.into_iter().step_by(each).collect()
    }

    /// Along one lane, from as early as it can.
    fn along(&self, trial: usize, n: usize) -> Option<Route> {
        let lane = &self.lanes[n];
        let from = self.begins(trial, lane);
        let need = self.instance.work(trial);
        let to = lane.reaches(self.instance, from, need).filter(|to| *to <= self.deadline)?;
        let intervals = lane.cut(from, to);
        let left = lane.without(self.instance, from, to);
        Some(Route { intervals, lanes: vec![n], left: vec![left], gaps: Vec::new() })
    }

    /// First on one lane, then to the end on another.
    fn across(&self, trial: usize, (first, second): (usize, usize)) -> Option<Route> {
        let (a, b) = (&self.lanes[first], &self.lanes[second]);
        let ends = self.deadline;
        let moves = match (self.gaps, a.intervals.last(), b.intervals.first()) {
            (Gaps::Lost, Some(from), Some(to)) => {
                let transfer =
                    |interval: &Interval| self.instance.transfer(trial, interval.machine);
                transfer(from).send + transfer(to).fetch
            }
            _ => 0,
        };
        let from = self.begins(trial, a);
        let need = self.instance.work(trial);
        let room = |change: u64| {
            a.room_in(self.instance, from, change) + b.room_in(self.instance, change + moves, ends)
        };
        // Between two of these times, what fits in grows or shrinks all the route.
        let latest = ends.checked_sub(moves)?.max(from);
        let mut turns = vec![from, latest];
        turns.extend(a.intervals.iter().flat_map(|of| [of.from, of.to]));
        turns.extend(
            b.intervals.iter().flat_map(|of| [of.from, of.to]).map(|at| at.saturating_sub(moves)),
        );
        turns.retain(|at| (from..=latest).contains(at));
        turns.sort_unstable();
        let fits = |change: &u64| room(*change) >= need;
        let turn = turns.windows(2).find(|two| fits(&two[0]) != fits(&two[1]))?;
        let (mut low, mut high) = (turn[0], turn[1]);
        let grows = fits(&high);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if fits(&middle) == grows { high = middle } else { low = middle }
        }
        let change = if grows { high } else { low };
        let mut intervals = a.cut(from, change);
        intervals.extend(b.cut(change + moves, ends));
        let rest = a.cut(change + moves, self.deadline);
        let before = b.cut(0, change);
        let joined: Vec<Interval> = before.into_iter().chain(rest).collect();
        let joined = Lane::new(self.instance, joined);
        let mut gaps = b.cut(change, change + moves);
        gaps.extend(a.cut(change, change + moves));
        let early = Lane::new(self.instance, a.cut(0, from));
        Some(Route { intervals, lanes: vec![first, second], left: vec![joined, early], gaps })
    }

    /// When a trial can begin on a lane.
    fn begins(&self, trial: usize, lane: &Lane) -> u64 {
        let machine = lane.intervals.first().map_or(0, |first| first.machine);
        let arrives = self.instance.arrives(trial, machine);
        lane.intervals.first().map_or(arrives, |first| arrives.max(first.from))
    }

    /// Would the k longest of the others still have room on the k best lanes, for every k, and all on all? They come
    /// with the longest last.
    fn keeps_room(&self, route: &Route, others: &[u64]) -> bool {
        let kept = self.lanes.iter().enumerate().filter(|(n, _)| !route.lanes.contains(n));
        let mut kept = kept.map(|(_, lane)| lane.room).peekable();
        let mut left: Vec<u64> = route.left.iter().map(|lane| lane.room).collect();
        left.sort_unstable();
        // Lanes stand by their room: of those that stay and those that are new, the next best.
        let rooms = std::iter::from_fn(|| {
            match (kept.peek(), left.last()) {
                (Some(kept), Some(left)) if left > kept => None,
                (None, _) => None,
                (Some(_), _) => kept.next(),
            }
            .or_else(|| left.pop())
        });
        let (mut needed, mut there) = (0u64, 0u64);
        let mut longest = others.iter().rev();
        for room in rooms {
            there += room;
            needed += longest.next().copied().unwrap_or(0);
            if needed > there {
                return false;
            }
        }
        let filling = longest.sum::<u64>() + self.small;
        needed + filling <= there + self.spare + route.lost(self.instance)
    }

    /// Gives a trial its shares along a route.
    fn take(&mut self, trial: usize, route: Route) {
        self.spare += route.lost(self.instance);
        let mut n = 0;
        self.lanes.retain(|_| {
            n += 1;
            !route.lanes.contains(&(n - 1))
        });
        for lane in route.left.into_iter().filter(|lane| lane.room > 0) {
            let at = self.lanes.partition_point(|other| other.room >= lane.room);
            self.lanes.insert(at, lane);
        }
        let hops = self.instance.hops[trial];
        let all: u64 = route.intervals.iter().map(|of| self.instance.work_in(*of)).sum();
        let (mut first, mut work) = (0, 0u64);
        let mut joined: Vec<(Interval, u64)> = Vec::new();
        for interval in route.intervals {
            work += self.instance.work_in(interval);
            let end = mul_div(hops, work, all.max(1)).min(hops);
            match joined.last_mut() {
                Some((last, until)) if last.machine == interval.machine => *until = end,
                _ => joined.push((interval, end)),
            }
        }
        if let Some((_, end)) = joined.last_mut() {
            *end = hops;
        }
        for (interval, end) in joined {
            if end > first {
                let urgency = u64::MAX - interval.from;
                self.shares.push(Share { trial, machine: interval.machine, first, end, urgency });
                first = end;
            }
        }
    }
}
