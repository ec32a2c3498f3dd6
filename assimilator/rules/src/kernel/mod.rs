//! Passes over slices: each number is read once and written once, in blocks of a fixed size side by side.
//!
//! All sums are elementwise, or over blocks of a fixed size and then in the blocks' order, so no result depends on
//! the number of threads. Nothing is fused (no FMA), and nothing is compared by `min` and `max`, which leave open the sign of a
//! zero, so none depends on the machine either.

mod element;
mod loops;
mod norm;
mod products;
mod slices;

pub use element::Element;
pub use norm::norm;
pub(crate) use norm::{Pair, squares_of};
pub use products::products;
pub(crate) use products::{Triple, products_of};
pub use slices::{Lengths, Slices};

/// Numbers in a block: the model's three streams and two slots, 320 KiB, fit a core's own cache.
pub(crate) const BLOCK: usize = 16_384;

/// The first `at` of a slice and the others; of an empty one two empty ones.
pub(crate) fn cut<T>(slice: &[T], at: usize) -> (&[T], &[T]) {
    slice.split_at(at.min(slice.len()))
}

/// As [`cut`].
pub(crate) fn cut_mut<T>(slice: &mut [T], at: usize) -> (&mut [T], &mut [T]) {
    let at = at.min(slice.len());
    slice.split_at_mut(at)
}
