//! The machine's memory bandwidth, as plain loops over large slices reach it with all threads.

use rayon::prelude::*;

const BLOCK: usize = 16_384;

/// Three slices of as many `f32` as the kernels have.
pub(crate) struct Memory {
    a: Vec<f32>,
    b: Vec<f32>,
    c: Vec<f32>,
}

/// A loop that does nothing but move.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Loop {
    /// `a = b`.
    Copy,
    /// `a = b + 3 c`, as STREAM has it.
    Triad,
    /// `a += 3 b`: as the kernels, it writes where it has read.
    Update,
}

impl Loop {
    pub(crate) const ALL: [Self; 3] = [Self::Copy, Self::Triad, Self::Update];
}

impl Memory {
    pub(crate) fn new(count: usize) -> Self {
        let [a, b, c] = [1.0, 2.0, 3.0].map(|value| vec![value; count]);
        Self { a, b, c }
    }

    /// Bytes read and written by one run of a loop.
    pub(crate) fn bytes(&self, of: Loop) -> f64 {
        let streams = if matches!(of, Loop::Copy) { 2 } else { 3 };
        (streams * size_of_val(self.a.as_slice())) as f64
    }

    pub(crate) fn run(&mut self, of: Loop) {
        let (b, c) = (self.b.par_chunks(BLOCK), self.c.par_chunks(BLOCK));
        let pairs = self.a.par_chunks_mut(BLOCK).zip(b);
        match of {
            Loop::Copy => pairs.for_each(|(a, b)| a.copy_from_slice(b)),
            Loop::Triad => pairs.zip(c).for_each(|((a, b), c)| triad(a, b, c)),
            Loop::Update => pairs.for_each(|(a, b)| update(a, b)),
        }
    }
}

#[inline(never)]
fn triad(a: &mut [f32], b: &[f32], c: &[f32]) {
    for ((a, b), c) in a.iter_mut().zip(b).zip(c) {
        *a = b + 3.0 * c;
    }
}

#[inline(never)]
fn update(a: &mut [f32], b: &[f32]) {
    for (a, b) in a.iter_mut().zip(b) {
        *a += 3.0 * b;
    }
}
