//! The numbers of pixels: a byte, or two.

use sojourn_protocol::quantity::SaturatingFrom as _;
use std::{
    fmt,
    ops::{AddAssign, Mul},
};

/// Bits after the point of the weights by which images are scaled.
pub(super) const PRECISION: u32 = 22;

/// A number of a pixel.
pub(super) trait Sample: Copy + Ord + fmt::Debug {
    /// A number that holds sums of weighted samples.
    type Sum: Copy + AddAssign + Mul<Output = Self::Sum> + From<i32>;

    /// The sample, to be weighed.
    fn widened(self) -> Self::Sum;
    /// A weighted sum without the bits after the point.
    fn narrowed(sum: Self::Sum) -> Self;
    /// The sample as a number of a row, from 0 to 255.
    fn number(self) -> f32;
    /// The brightness of a color of so many parts in 2^16 of each channel.
    fn mixed(pixel: &[Self], weights: [u32; 3]) -> Self;
}

impl Sample for u8 {
    type Sum = i32;

    fn widened(self) -> i32 {
        i32::from(self)
    }

    fn narrowed(sum: i32) -> Self {
        Self::saturating_from(sum >> PRECISION)
    }

    fn number(self) -> f32 {
        f32::from(self)
    }

    fn mixed(pixel: &[Self], weights: [u32; 3]) -> Self {
        Self::saturating_from(weighed(pixel, weights))
    }
}

impl Sample for u16 {
    type Sum = i64;

    fn widened(self) -> i64 {
        i64::from(self)
    }

    fn narrowed(sum: i64) -> Self {
        Self::saturating_from(sum >> PRECISION)
    }

    /// A byte that was written as 16 bits, 257 times as large, is the byte again.
    fn number(self) -> f32 {
        f32::from(self) / 257.0
    }

    fn mixed(pixel: &[Self], weights: [u32; 3]) -> Self {
        Self::saturating_from(weighed(pixel, weights))
    }
}

/// The weighted sum of samples, whose weights sum to 2^16, rounded.
fn weighed<T: Copy + Into<u32>>(pixel: &[T], weights: [u32; 3]) -> u32 {
    let sum: u32 = pixel.iter().zip(weights).map(|(value, weight)| (*value).into() * weight).sum();
    (sum + (1 << 15)) >> 16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_bytes_are_the_same_numbers() {
        for byte in 0..=u8::MAX {
            let word = u16::from(byte) * 257;
            assert_eq!(word.number().to_bits(), byte.number().to_bits());
        }
        assert!(1u16.number() > 0.0 && 1u16.number() < 0.004);
    }
}
