//! Time of places that is free.

use super::ground::Ground;

/// A stretch of a lane: microseconds from now, on a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) place: usize,
}

/// Time that is free, on one place after the other.
#[derive(Debug, Clone, Default)]
pub(super) struct Lane {
    pub(super) stretches: Vec<Stretch>,
    /// Work that fits in.
    pub(super) room: u64,
}

impl Lane {
    pub(super) fn new(ground: &Ground<'_>, mut stretches: Vec<Stretch>) -> Self {
        stretches.retain(|stretch| stretch.from < stretch.to);
        let room = stretches.iter().map(|of| ground.work_in(*of)).sum();
        Self { stretches, room }
    }

    /// What of it lies between two times.
    pub(super) fn cut(&self, from: u64, to: u64) -> Vec<Stretch> {
        let cut = self.stretches.iter().map(|stretch| Stretch {
            from: stretch.from.max(from),
            to: stretch.to.min(to),
            ..*stretch
        });
        cut.filter(|stretch| stretch.from < stretch.to).collect()
    }

    /// What of it lies outside two times.
    pub(super) fn without(&self, ground: &Ground<'_>, from: u64, to: u64) -> Self {
        let mut stretches = self.cut(0, from);
        stretches.extend(self.cut(to, u64::MAX));
        Self::new(ground, stretches)
    }

    /// Work that fits in between two times.
    pub(super) fn room_in(&self, ground: &Ground<'_>, from: u64, to: u64) -> u64 {
        let of = |stretch: &Stretch| {
            let (from, to) = (stretch.from.max(from), stretch.to.min(to));
            if from < to { ground.work_in(Stretch { from, to, ..*stretch }) } else { 0 }
        };
        self.stretches.iter().map(of).sum()
    }

    /// When so much work is done from a time on.
    pub(super) fn reaches(&self, ground: &Ground<'_>, from: u64, mut work: u64) -> Option<u64> {
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
    /// Work that fits in a stretch.
    pub(super) fn work_in(&self, stretch: Stretch) -> u64 {
        self.work_of(stretch.to - stretch.from, stretch.place)
    }
}
