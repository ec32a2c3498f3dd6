//! The length of a change.

use super::{BLOCK, cut, element::Element};
use rayon::prelude::*;

/// Sums side by side in a block: as many as keep a core's multipliers busy.
const LANES: usize = 8;

/// The same numbers of base and returned model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pair<'a, E> {
    pub(crate) base: &'a [E],
    pub(crate) returned: &'a [E],
}

/// The Euclidean norm of `returned - base`, which are of one length. Differences, squares and sums are in `f64`, so
/// that no two finite models are too far apart for it.
#[must_use]
pub fn norm<E: Element>(base: &[E], returned: &[E]) -> f64 {
    squares_of([Pair { base, returned }]).iter().sum::<f64>().sqrt()
}

/// The sums of squares of each block of several tensors, in this order.
pub(crate) fn squares_of<'a, E: Element + 'a>(
    pairs: impl IntoIterator<Item = Pair<'a, E>>,
) -> Vec<f64> {
    let mut blocks = Vec::new();
    for Pair { mut base, mut returned } in pairs {
        while !base.is_empty() {
            let (block, later) = cut(base, BLOCK);
            let (other, later_other) = cut(returned, BLOCK);
            blocks.push(Pair { base: block, returned: other });
            (base, returned) = (later, later_other);
        }
    }
    blocks.into_par_iter().map(|Pair { base, returned }| squares(base, returned)).collect()
}

#[inline(never)]
fn squares<E: Element>(base: &[E], returned: &[E]) -> f64 {
    let (base, base_rest) = base.as_chunks::<LANES>();
    let (returned, returned_rest) = returned.as_chunks::<LANES>();
    let mut lanes = [0.0; LANES];
    for (base, returned) in base.iter().zip(returned) {
        for ((lane, b), c) in lanes.iter_mut().zip(base).zip(returned) {
            *lane += square(*b, *c);
        }
    }
    let rest = base_rest.iter().zip(returned_rest).map(|(b, c)| square(*b, *c));
    lanes.iter().sum::<f64>() + rest.sum::<f64>()
}

#[inline]
fn square<E: Element>(base: E, returned: E) -> f64 {
    let change = f64::from(returned.load()) - f64::from(base.load());
    change * change
}
