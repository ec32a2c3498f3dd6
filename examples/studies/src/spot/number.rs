//! Whole numbers and real ones.

/// As a number for arithmetic that may round.
#[expect(clippy::cast_precision_loss, reason = "rounding is meant")]
pub(super) const fn float(value: u64) -> f64 {
    value as f64
}

/// The nearest whole number, between 0 and 9e18.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
pub(super) fn whole(value: f64) -> u64 {
    value.clamp(0.0, 9e18).round() as u64
}
