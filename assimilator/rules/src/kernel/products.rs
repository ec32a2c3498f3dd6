//! How a change lies to what others have changed.

use super::{BLOCK, cut, element::Element};
use crate::overlap::Products;
use rayon::prelude::*;
use std::ops::Add;

/// Sums side by side in a block.
const LANES: usize = 8;

/// The same numbers of base, current and returned model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Triple<'a, E> {
    pub(crate) base: &'a [E],
    pub(crate) current: &'a [E],
    pub(crate) returned: &'a [E],
}

/// The products of a change with what others have changed, over slices of one length.
#[must_use]
pub fn products<E: Element>(base: &[E], current: &[E], returned: &[E]) -> Products {
    let blocks = products_of([Triple { base, current, returned }]);
    blocks.into_iter().fold(Products::default(), Add::add)
}

/// The products of each block of several tensors, in this order. Differences, products and sums are in `f64`.
pub(crate) fn products_of<'a, E: Element + 'a>(
    triples: impl IntoIterator<Item = Triple<'a, E>>,
) -> Vec<Products> {
    let mut blocks = Vec::new();
    for Triple { mut base, mut current, mut returned } in triples {
        while !base.is_empty() {
            let (base_block, base_later) = cut(base, BLOCK);
            let (current_block, current_later) = cut(current, BLOCK);
            let (returned_block, returned_later) = cut(returned, BLOCK);
            blocks.push(Triple {
                base: base_block,
                current: current_block,
                returned: returned_block,
            });
            (base, current, returned) = (base_later, current_later, returned_later);
        }
    }
    blocks.into_par_iter().map(block_products).collect()
}

#[inline(never)]
fn block_products<E: Element>(block: Triple<'_, E>) -> Products {
    let (base, base_rest) = block.base.as_chunks::<LANES>();
    let (current, current_rest) = block.current.as_chunks::<LANES>();
    let (returned, returned_rest) = block.returned.as_chunks::<LANES>();
    let mut change = [0.0; LANES];
    let mut both = [0.0; LANES];
    let mut others = [0.0; LANES];
    for ((base, current), returned) in base.iter().zip(current).zip(returned) {
        let sums = change.iter_mut().zip(&mut both).zip(&mut others);
        for (((b, w), c), ((change, both), others)) in
            base.iter().zip(current).zip(returned).zip(sums)
        {
            let one = of(*b, *w, *c);
            *change += one.change;
            *both += one.both;
            *others += one.others;
        }
    }
    let mut sum = Products {
        change: change.iter().sum(),
        both: both.iter().sum(),
        others: others.iter().sum(),
    };
    for ((b, w), c) in base_rest.iter().zip(current_rest).zip(returned_rest) {
        sum = sum + of(*b, *w, *c);
    }
    sum
}

#[inline]
fn of<E: Element>(base: E, current: E, returned: E) -> Products {
    let base = f64::from(base.load());
    let change = f64::from(returned.load()) - base;
    let others = f64::from(current.load()) - base;
    Products { change: change * change, both: change * others, others: others * others }
}
