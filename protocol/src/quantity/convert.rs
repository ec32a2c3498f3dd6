//! Conversions between integers that need no checks where they are used: exact ones for lengths and indices, and
//! ones that keep to the target's range.

/// Lengths and indices have 64 bits on every platform that is supported, so their conversions lose nothing.
const _: () = assert!(usize::BITS == u64::BITS, "usize must have 64 bits");

/// A length or an index as a `u64`, exactly.
#[must_use]
pub const fn to_u64(index: usize) -> u64 {
    u64::from_ne_bytes(index.to_ne_bytes())
}

/// A number as a length or an index, exactly.
#[must_use]
pub fn to_usize(number: impl Into<u64>) -> usize {
    usize::from_ne_bytes(number.into().to_ne_bytes())
}

/// `value * numerator / denominator`, rounded down, without overflow on the way. A result that is too large becomes
/// [`u64::MAX`]; so does a division by zero.
#[must_use]
pub const fn mul_div(value: u64, numerator: u64, denominator: u64) -> u64 {
    // Nearly always the product fits, and schedulers ask this of hundreds of trials for each decision.
    if let Some(product) = value.checked_mul(numerator)
        && let Some(quotient) = product.checked_div(denominator)
    {
        return quotient;
    }
    match widen(value).saturating_mul(widen(numerator)).checked_div(widen(denominator)) {
        Some(quotient) => narrow(quotient),
        None => u64::MAX,
    }
}

/// [`mul_div`], rounded up.
#[must_use]
pub const fn mul_div_ceil(value: u64, numerator: u64, denominator: u64) -> u64 {
    if denominator == 0 {
        return u64::MAX;
    }
    match value.checked_mul(numerator) {
        Some(product) => product.div_ceil(denominator),
        None => narrow((widen(value) * widen(numerator)).div_ceil(widen(denominator))),
    }
}

/// The 64 low bits of `wide`, or [`u64::MAX`] where it has more.
const fn narrow(wide: u128) -> u64 {
    let [a, b, c, d, e, f, g, h, high @ ..] = wide.to_le_bytes();
    if u64::from_le_bytes(high) > 0 {
        return u64::MAX;
    }
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

const fn widen(number: u64) -> u128 {
    let [a, b, c, d, e, f, g, h] = number.to_le_bytes();
    u128::from_le_bytes([a, b, c, d, e, f, g, h, 0, 0, 0, 0, 0, 0, 0, 0])
}

/// Conversion to an integer type that can't hold every value of the other: what lies outside of its range becomes
/// the nearest value in it.
///
/// ```
/// use sojourn_protocol::quantity::SaturatingFrom as _;
///
/// assert_eq!(u32::saturating_from(7_u64), 7);
/// assert_eq!(u32::saturating_from(1_u64 << 40), u32::MAX);
/// assert_eq!(u64::saturating_from(-1_i64), 0);
/// ```
pub trait SaturatingFrom<S> {
    /// `value`, or the nearest number that this type can hold.
    #[must_use]
    fn saturating_from(value: S) -> Self;
}

macro_rules! saturating_from {
    ($($target:ty),*) => {$(
        impl<S: Copy + Default + PartialOrd> SaturatingFrom<S> for $target
        where
            $target: TryFrom<S>,
        {
            fn saturating_from(value: S) -> Self {
                let nearest = if value < S::default() { <$target>::MIN } else { <$target>::MAX };
                <$target>::try_from(value).unwrap_or(nearest)
            }
        }
    )*};
}

saturating_from!(u8, u16, u32, u64, usize, i32, i64, i128);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn products_and_quotients_are_exact_or_saturate(value: u64, numerator: u64, denominator: u64) {
            let (wide, over) = (u128::from(value) * u128::from(numerator), u128::from(denominator));
            let nearest = |wide: Option<u128>| wide.and_then(|wide| u64::try_from(wide).ok()).unwrap_or(u64::MAX);
            prop_assert_eq!(mul_div(value, numerator, denominator), nearest(wide.checked_div(over)));
            let up = if over == 0 { None } else { Some(wide.div_ceil(over)) };
            prop_assert_eq!(mul_div_ceil(value, numerator, denominator), nearest(up));
        }

        #[test]
        fn lengths_and_indices_come_back_as_they_were(number: u64) {
            prop_assert_eq!(to_u64(to_usize(number)), number);
        }
    }

    #[test]
    fn a_division_by_zero_gives_the_largest_number() {
        assert_eq!((mul_div(3, 4, 0), mul_div_ceil(3, 4, 0)), (u64::MAX, u64::MAX));
        assert_eq!((mul_div(7, 1, 2), mul_div_ceil(7, 1, 2)), (3, 4));
    }

    #[test]
    fn what_lies_outside_of_the_range_becomes_its_nearest_end() {
        assert_eq!((u8::saturating_from(300_usize), u64::saturating_from(-5_i64)), (255, 0));
        assert_eq!(
            (i64::saturating_from(u64::MAX), i32::saturating_from(-1_i64 << 40)),
            (i64::MAX, i32::MIN)
        );
        assert_eq!(
            (u64::saturating_from(u128::MAX), i128::saturating_from(u128::MAX)),
            (u64::MAX, i128::MAX)
        );
    }
}
