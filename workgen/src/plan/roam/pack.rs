//! Trials into places before a deadline, with few moves: the algorithm of Gonzalez and Sahni for machines of
//! different speeds ("Preemptive scheduling of uniform processor systems", J. ACM 25(1), 1978).
//!
//! What is left of places is kept as lanes: a lane is on one place at a time, perhaps on several one after the
//! other. The longest trial goes first. It takes a part of one lane, from as early as it can, as long as the k
//! longest of the other trials still have room on the k best lanes, for every k; else it takes all that is left of
//! the time: first on one lane, then on the next better or worse one, and the rest of the two becomes one lane.
//!
//! ```text
//!   fast  [ trial 3 .......... | trial 5 ..... ]     trial 5 leaves the slow place for the fast one,
//!   slow  [ trial 5 .......... | free          ]     so that neither holds the job up
//! ```

use super::ground::{Ground, Share};

/// A stretch of a lane: microseconds from now, on a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stretch {
    from: u64,
    to: u64,
    place: usize,
}

/// Time that is free, on one place after the other.
#[derive(Debug, Clone, Default)]
struct Lane {
    stretches: Vec<Stretch>,
    /// Work that fits in.
    room: u64,
}

/// Shares by place so that all end before the deadline, as far as that can be said before they are worked off;
/// `None` where some trial doesn't fit.
pub(super) fn pack(ground: &Ground<'_>, weights: &[u64], deadline: u64) -> Option<Vec<Vec<Share>>> {
    let mut packing = Packing::new(ground, deadline);
    let order = ground.by_work(weights);
    let mut needs: Vec<u64> = order.iter().map(|trial| packing.need(*trial)).collect();
    needs.reverse();
    for trial in order {
        needs.pop();
        let way = packing.place(trial, &needs)?;
        packing.take(trial, way);
    }
    let mut shares = packing.shares;
    for shares in &mut shares {
        shares.sort_by_key(|share| (share.from, share.trial));
    }
    Some(shares)
}

struct Packing<'a> {
    ground: &'a Ground<'a>,
    deadline: u64,
    /// The most room first.
    lanes: Vec<Lane>,
    shares: Vec<Vec<Share>>,
}

/// Where a trial goes: its stretches, the lanes that they are cut from, and what becomes of those.
struct Way {
    stretches: Vec<Stretch>,
    lanes: Vec<usize>,
    left: Vec<Lane>,
}

impl<'a> Packing<'a> {
    fn new(ground: &'a Ground<'a>, deadline: u64) -> Self {
        let places = &ground.problem.places;
        let lane = |(place, from): (usize, u64)| {
            Lane::new(ground, vec![Stretch { from, to: deadline, place }])
        };
        let free = places.iter().map(|place| place.free_at.min(deadline)).enumerate();
        let mut lanes: Vec<Lane> = free.map(lane).collect();
        lanes.sort_by_key(|lane| std::cmp::Reverse(lane.room));
        Self { ground, deadline, lanes, shares: vec![Vec::new(); places.len()] }
    }

    /// Work of a trial, and of the time in which its checkpoints are on their way: it can't be trained then.
    fn need(&self, trial: usize) -> u64 {
        self.ground.work(trial)
    }

    fn place(&self, trial: usize, others: &[u64]) -> Option<Way> {
        let known = &self.ground.problem.trials[trial];
        let at = known.at.map(|at| at as usize);
        let between = self.ground.between(trial);
        let ends = self.deadline.checked_sub(between)?;
        // Where it needs the least of what is better, its own place before others.
        let mut fitting: Vec<(bool, u64, usize)> = Vec::new();
        for (n, lane) in self.lanes.iter().enumerate() {
            let Some(first) = lane.stretches.first() else { continue };
            let moves = if at.is_some_and(|at| at != first.place) { known.fetch } else { 0 };
            let room = lane.room_in(self.ground, known.free_at + moves, ends);
            if room >= self.need(trial) {
                fitting.push((at.is_some_and(|at| at != first.place), lane.room, n));
            }
        }
        fitting.sort_unstable();
        for (_, _, n) in fitting {
            let way = self.along(trial, n, ends)?;
            if self.keeps_room(&way, others) {
                return Some(way);
            }
        }
        let mut best: Option<(usize, Way)> = None;
        for n in 0..self.lanes.len() {
            for (first, second) in [(n, n + 1), (n + 1, n)] {
                if let Some(way) = self.across(trial, (first, second), ends)
                    && self.keeps_room(&way, others)
                    && best.as_ref().is_none_or(|(moves, _)| way.stretches.len() < *moves)
                {
                    best = Some((way.stretches.len(), way));
                }
            }
        }
        best.map(|(_, way)| way)
    }

    /// Along one lane, from as early as it can.
    fn along(&self, trial: usize, n: usize, ends: u64) -> Option<Way> {
        let lane = self.lanes.get(n)?;
        let from = self.begins(trial, lane);
        let need = self.need(trial);
        let to = lane.reaches(self.ground, from, need).filter(|to| *to <= ends)?;
        let stretches = lane.cut(from, to);
        let left = lane.without(self.ground, from, to);
        Some(Way { stretches, lanes: vec![n], left: vec![left] })
    }

    /// First on one lane, then to the end on another.
    fn across(&self, trial: usize, (first, second): (usize, usize), ends: u64) -> Option<Way> {
        let none = Lane::default();
        let (a, b) =
            (self.lanes.get(first).unwrap_or(&none), self.lanes.get(second).unwrap_or(&none));
        if a.stretches.is_empty() || b.stretches.is_empty() {
            return None;
        }
        let known = &self.ground.problem.trials[trial];
        let moves = known.send + known.fetch;
        let from = self.begins(trial, a);
        let need = self.need(trial);
        let room = |change: u64| {
            a.room_in(self.ground, from, change) + b.room_in(self.ground, change + moves, ends)
        };
        // Changing later gives more of the first lane and less of the second.
        let (mut low, mut high) = (from, ends.checked_sub(moves)?.max(from));
        let grows = room(high) >= room(low);
        if room(if grows { high } else { low }) < need {
            return None;
        }
        if room(if grows { low } else { high }) >= need {
            // One of them alone would do: that is no change.
            return None;
        }
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if (room(middle) >= need) == grows { high = middle } else { low = middle }
        }
        let change = if grows { high } else { low };
        let mut stretches = a.cut(from, change);
        stretches.extend(b.cut(change + moves, ends));
        let rest = a.cut(change, self.deadline);
        let before = b.cut(0, change);
        let joined: Vec<Stretch> = before.into_iter().chain(rest).collect();
        let joined = Lane::new(self.ground, joined);
        let early = Lane::new(self.ground, a.cut(0, from));
        Some(Way { stretches, lanes: vec![first, second], left: vec![joined, early] })
    }

    /// When a trial can begin on a lane.
    fn begins(&self, trial: usize, lane: &Lane) -> u64 {
        let place = lane.stretches.first().map_or(0, |first| first.place);
        let arrives = self.ground.arrives(trial, place);
        lane.stretches.first().map_or(arrives, |first| arrives.max(first.from))
    }

    /// Would the k longest of the others still have room on the k best lanes, for every k? They come with the
    /// longest last.
    fn keeps_room(&self, way: &Way, others: &[u64]) -> bool {
        let kept = self.lanes.iter().enumerate().filter(|(n, _)| !way.lanes.contains(n));
        let mut kept = kept.map(|(_, lane)| lane.room).peekable();
        let mut left: Vec<u64> = way.left.iter().map(|lane| lane.room).collect();
        left.sort_unstable();
        let (mut needed, mut there) = (0u64, 0u64);
        others.iter().rev().all(|need| {
            // Lanes stand by their room: of those that stay and those that are new, the next best.
            let best = match (kept.peek(), left.last()) {
                (Some(kept), Some(left)) if left > kept => None,
                (None, _) => None,
                (Some(_), _) => kept.next(),
            };
            there += best.or_else(|| left.pop()).unwrap_or(0);
            needed += need;
            needed <= there
        })
    }

    fn take(&mut self, trial: usize, way: Way) {
        let mut n = 0;
        self.lanes.retain(|_| {
            n += 1;
            !way.lanes.contains(&(n - 1))
        });
        for lane in way.left.into_iter().filter(|lane| lane.room > 0) {
            let at = self.lanes.partition_point(|other| other.room >= lane.room);
            self.lanes.insert(at, lane);
        }
        let hops = self.ground.hops[trial];
        let all: u64 = way.stretches.iter().map(|of| self.ground.work_in(*of)).sum();
        let (mut first, mut work) = (0, 0u64);
        let mut joined: Vec<(Stretch, u64)> = Vec::new();
        for stretch in way.stretches {
            work += self.ground.work_in(stretch);
            let end = u128::from(hops) * u128::from(work) / u128::from(all.max(1));
            let end = u64::try_from(end).unwrap_or(hops).min(hops);
            match joined.last_mut() {
                Some((last, until)) if last.place == stretch.place => *until = end,
                _ => joined.push((stretch, end)),
            }
        }
        if let Some((_, end)) = joined.last_mut() {
            *end = hops;
        }
        for (stretch, end) in joined {
            if end > first {
                self.shares[stretch.place].push(Share { trial, first, end, from: stretch.from });
                first = end;
            }
        }
    }
}

impl Lane {
    fn new(ground: &Ground<'_>, mut stretches: Vec<Stretch>) -> Self {
        stretches.retain(|stretch| stretch.from < stretch.to);
        let room = stretches.iter().map(|of| ground.work_in(*of)).sum();
        Self { stretches, room }
    }

    /// What of it lies between two times.
    fn cut(&self, from: u64, to: u64) -> Vec<Stretch> {
        let cut = self.stretches.iter().map(|stretch| Stretch {
            from: stretch.from.max(from),
            to: stretch.to.min(to),
            ..*stretch
        });
        cut.filter(|stretch| stretch.from < stretch.to).collect()
    }

    fn without(&self, ground: &Ground<'_>, from: u64, to: u64) -> Self {
        let mut stretches = self.cut(0, from);
        stretches.extend(self.cut(to, u64::MAX));
        Self::new(ground, stretches)
    }

    fn room_in(&self, ground: &Ground<'_>, from: u64, to: u64) -> u64 {
        let of = |stretch: &Stretch| {
            let (from, to) = (stretch.from.max(from), stretch.to.min(to));
            if from < to { ground.work_in(Stretch { from, to, ..*stretch }) } else { 0 }
        };
        self.stretches.iter().map(of).sum()
    }

    /// When so much work is done from a time on.
    fn reaches(&self, ground: &Ground<'_>, from: u64, mut work: u64) -> Option<u64> {
        for stretch in self.cut(from, u64::MAX) {
            let room = ground.work_in(stretch);
            if room >= work {
                return Some(
                    (stretch.from + ground.work_takes(work, stretch.place)).min(stretch.to),
                );
            }
            work -= room;
        }
        None
    }
}

impl Ground<'_> {
    fn work_in(&self, stretch: Stretch) -> u64 {
        self.work_of(stretch.to - stretch.from, stretch.place)
    }
}
