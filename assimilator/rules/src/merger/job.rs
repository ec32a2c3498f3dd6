//! The work on the numbers of one tensor, in blocks that run in parallel.

use crate::{
    kernel::{BLOCK, Slices, cut, cut_mut},
    pass::Pass,
    rule::Slot,
};
use std::mem;

/// A number as files have it.
type Number = [u8; 4];

/// A span of a tensor: the old numbers are copied where the new ones go, block by block, and changed there
/// while they are still in the core's cache.
#[derive(Debug)]
pub(super) struct Job<'a> {
    how: How,
    current: &'a [Number],
    sum: &'a [Number],
    momentum: &'a [Number],
    mean_square: &'a [Number],
    next: Slices<'a, Number, Number>,
}

/// How a tensor is merged.
#[derive(Debug, Clone, Copy)]
pub(super) enum How {
    /// The current version's numbers stay.
    Stays,
    /// A pass over it.
    Pass(Pass),
    /// All its numbers are 0.
    Zero,
    /// The returned tensor's numbers are taken.
    Taken,
    /// The returned one's numbers times this, rounded once.
    Returned(f64),
}

/// The slots of all parameters that are still to come, old and new.
#[derive(Debug, Default)]
pub(super) struct Kept<'a> {
    sum: Stream<'a>,
    momentum: Stream<'a>,
    mean_square: Stream<'a>,
}

/// The rest of a file that is still to be written.
#[derive(Debug, Default)]
pub(super) struct Rest<'a>(pub(super) &'a mut [u8]);

/// One slot's.
#[derive(Debug, Default)]
struct Stream<'a> {
    old: &'a [u8],
    new: Rest<'a>,
}

impl<'a> Kept<'a> {
    /// The slots of a state: each slot's parameters one after the other, in the slots' order. `old` may be empty.
    pub(super) fn new(slots: &[Slot], mut old: &'a [u8], new: &'a mut [u8]) -> Self {
        let bytes = new.len() / slots.len().max(1);
        let mut new = Rest(new);
        let mut kept = Self::default();
        for slot in slots {
            let (first, later) = cut(old, bytes);
            old = later;
            let stream = Stream { old: first, new: Rest(new.advance(bytes)) };
            match slot {
                Slot::MeanSquare => kept.mean_square = stream,
                Slot::Momentum => kept.momentum = stream,
                Slot::Sum => kept.sum = stream,
            }
        }
        kept
    }
}

impl<'a> Stream<'a> {
    fn advance(&mut self, bytes: usize) -> (&'a [Number], &'a mut [Number]) {
        let (old, later) = cut(self.old, bytes);
        self.old = later;
        (old.as_chunks().0, self.new.advance(bytes).as_chunks_mut().0)
    }
}

impl<'a> Rest<'a> {
    /// The first bytes of what is left.
    pub(super) fn advance(&mut self, bytes: usize) -> &'a mut [u8] {
        let (first, later) = cut_mut(mem::take(&mut self.0), bytes);
        self.0 = later;
        first
    }
}

impl<'a> Job<'a> {
    /// The bytes of one tensor: where the next version's go, and the others'.
    pub(super) fn new(
        next: &'a mut [u8],
        current: &'a [u8],
        base: &'a [u8],
        returned: &'a [u8],
    ) -> Self {
        let next = Slices {
            current: next.as_chunks_mut().0,
            base: base.as_chunks().0,
            returned: returned.as_chunks().0,
            sum: &mut [],
            momentum: &mut [],
            mean_square: &mut [],
        };
        Self {
            how: How::Stays,
            current: current.as_chunks().0,
            sum: &[],
            momentum: &[],
            mean_square: &[],
            next,
        }
    }

    pub(super) fn with(self, how: How) -> Self {
        Self { how, ..self }
    }

    /// With the slots of the next parameter.
    pub(super) fn with_slots(mut self, kept: &mut Kept<'a>) -> Self {
        let bytes = size_of_val(self.current);
        (self.sum, self.next.sum) = kept.sum.advance(bytes);
        (self.momentum, self.next.momentum) = kept.momentum.advance(bytes);
        (self.mean_square, self.next.mean_square) = kept.mean_square.advance(bytes);
        self
    }

    /// Adds it to the others, cut into blocks.
    pub(super) fn blocks(mut self, jobs: &mut Vec<Self>) {
        while self.current.len() > BLOCK {
            let (current, later_current) = cut(self.current, BLOCK);
            let (sum, later_sum) = cut(self.sum, BLOCK);
            let (momentum, later_momentum) = cut(self.momentum, BLOCK);
            let (mean_square, later_mean_square) = cut(self.mean_square, BLOCK);
            let (next, later_next) = self.next.split_at(BLOCK);
            jobs.push(Self { how: self.how, current, sum, momentum, mean_square, next });
            self = Self {
                how: self.how,
                current: later_current,
                sum: later_sum,
                momentum: later_momentum,
                mean_square: later_mean_square,
                next: later_next,
            };
        }
        jobs.push(self);
    }

    pub(super) fn run(self) {
        let Self { how, current, sum, momentum, mean_square, next } = self;
        copy(next.sum, sum);
        copy(next.momentum, momentum);
        copy(next.mean_square, mean_square);
        match how {
            How::Stays => copy(next.current, current),
            How::Taken => copy(next.current, next.returned),
            How::Zero => next.current.fill(Number::default()),
            How::Returned(factor) => scale(next.current, next.returned, factor),
            How::Pass(pass) => {
                copy(next.current, current);
                pass.run(next);
            }
        }
    }
}

/// Writes `factor` times the numbers, of which there are as many.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the factor is rounded to the numbers' own type"
)]
fn scale(to: &mut [Number], from: &[Number], factor: f64) {
    let factor = factor as f32;
    for (to, from) in to.iter_mut().zip(from) {
        *to = (f32::from_le_bytes(*from) * factor).to_le_bytes();
    }
}

/// Copies numbers, of which there are as many; without any, all become 0.
fn copy(to: &mut [Number], from: &[Number]) {
    if to.len() == from.len() {
        to.copy_from_slice(from);
    } else {
        to.fill(Number::default());
    }
}
