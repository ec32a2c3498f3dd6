//! Time of machines that is free.

use super::instance::Instance;

/// A interval of a lane: microseconds from now, on a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) machine: usize,
}

/// Time that is free, on one machine after the other.
#[derive(Debug, Clone, Default)]
pub(super) struct Lane {
    pub(super) intervals: Vec<Interval>,
    /// Work that fits in.
    pub(super) room: u64,
}

impl Lane {
    pub(super) fn new(instance: &Instance<'_>, mut intervals: Vec<Interval>) -> Self {
        intervals.retain(|interval| interval.from < interval.to);
        let room = intervals.iter().map(|of| instance.work_in(*of)).sum();
        Self { intervals, room }
    }

    /// The part of the lane between two instants.
    pub(super) fn cut(&self, from: u64, to: u64) -> Vec<Interval> {
        let cut = self.intervals.iter().map(|interval| Interval {
            from: interval.from.max(from),
            to: interval.to.min(to),
            ..*interval
        });
        cut.filter(|interval| interval.from < interval.to).collect()
    }

    /// The lane without the time between two instants.
    pub(super) fn without(&self, instance: &Instance<'_>, from: u64, to: u64) -> Self {
        let mut intervals = self.cut(0, from);
        intervals.extend(self.cut(to, u64::MAX));
        Self::new(instance, intervals)
    }

    /// Work that fits in between two times.
    pub(super) fn room_in(&self, instance: &Instance<'_>, from: u64, to: u64) -> u64 {
        let of = |interval: &Interval| {
            let (from, to) = (interval.from.max(from), interval.to.min(to));
            if from < to { instance.work_in(Interval { from, to, ..*interval }) } else { 0 }
        };
        self.intervals.iter().map(of).sum()
    }

    /// When so much work is done from a time on.
    pub(super) fn reaches(&self, instance: &Instance<'_>, from: u64, mut work: u64) -> Option<u64> {
        for interval in self.cut(from, u64::MAX) {
            let room = instance.work_in(interval);
            if room >= work {
                return Some(
                    (interval.from + instance.work_takes(work, interval.machine)).min(interval.to),
                );
            }
            work -= room;
        }
        None
    }
}

impl Instance<'_> {
    /// Work that fits in a interval.
    pub(super) fn work_in(&self, interval: Interval) -> u64 {
        self.work_of(interval.to - interval.from, interval.machine)
    }
}
