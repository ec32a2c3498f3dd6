//! Numbers as they lie in memory or in a file.

use half::bf16;

/// One stored number; computing is in `f32`.
pub trait Element: Copy + Default + Send + Sync {
    /// The number's value.
    fn load(self) -> f32;

    /// The number that is nearest to a value, ties to even.
    fn store(value: f32) -> Self;
}

impl Element for f32 {
    #[inline]
    fn load(self) -> f32 {
        self
    }

    #[inline]
    fn store(value: f32) -> Self {
        value
    }
}

/// An `f32` as files have it: little-endian, anywhere.
impl Element for [u8; 4] {
    #[inline]
    fn load(self) -> f32 {
        f32::from_le_bytes(self)
    }

    #[inline]
    fn store(value: f32) -> Self {
        value.to_le_bytes()
    }
}

impl Element for bf16 {
    #[inline]
    fn load(self) -> f32 {
        f32::from_bits(u32::from(self.to_bits()) << 16)
    }

    #[inline]
    fn store(value: f32) -> Self {
        Self::from_bits(round(value))
    }
}

/// A `bf16` as files have it: little-endian, anywhere.
impl Element for [u8; 2] {
    #[inline]
    fn load(self) -> f32 {
        bf16::from_le_bytes(self).load()
    }

    #[inline]
    fn store(value: f32) -> Self {
        round(value).to_le_bytes()
    }
}

/// The bits that `bf16::from_f32` gives, without its branches, which keep a loop from being vectorised. For numbers: a
/// NaN isn't looked for, and becomes some NaN or an infinity.
#[inline]
const fn round(value: f32) -> u16 {
    let bits = value.to_bits();
    let odd = (bits >> 16) & 1;
    let rounded = bits.wrapping_add(0x7fff + odd) >> 16;
    rounded as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn rounding_is_that_of_half(bits: u32) {
            let value = f32::from_bits(bits);
            prop_assume!(!value.is_nan());
            let expected = bf16::from_f32(value);
            prop_assert_eq!(bf16::store(value).to_bits(), expected.to_bits());
            prop_assert_eq!(<[u8; 2]>::store(value), expected.to_le_bytes());
            prop_assert_eq!(expected.load().to_bits(), expected.to_f32().to_bits());
            prop_assert_eq!(<[u8; 4]>::store(value).load().to_bits(), bits);
        }
    }
}
