//! How measured times compare with guessed ones: of one place, of one workload.

use sojourn_protocol::quantity::mul_div;

/// One, as a [`Ratio`].
const ONE: u64 = 1 << 32;
/// The farthest from one that a ratio may lie, either way.
const FARTHEST: u64 = 1 << 24;

/// A factor by which a guess is too small (above one) or too large.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ratio(u64);

impl Default for Ratio {
    fn default() -> Self {
        Self(ONE)
    }
}

impl Ratio {
    /// `measured / guessed`.
    pub(super) fn of(measured: u64, guessed: u64) -> Self {
        Self::clamped(mul_div(measured, ONE, guessed.max(1)))
    }

    /// As a number, to be compared and kept.
    pub(super) const fn raw(self) -> u64 {
        self.0
    }

    /// From [`Ratio::raw`].
    pub(super) const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    fn clamped(ratio: u64) -> Self {
        Self(ratio.clamp(ONE / FARTHEST, ONE * FARTHEST))
    }

    /// `value` times the ratio.
    pub(super) fn times(self, value: u64) -> u64 {
        mul_div(value, self.0, ONE)
    }

    /// Both, one after the other.
    pub(super) fn and(self, other: Self) -> Self {
        Self::clamped(self.times(other.0))
    }

    /// How many times as large as another.
    pub(super) fn over(self, other: Self) -> Self {
        Self::of(self.0, other.0)
    }

    /// This ratio, or the nearest one that lies within a factor of another, either way.
    pub(super) fn clamp_to(self, factor: u64, of: Self) -> Self {
        let factor = factor.max(1);
        Self::clamped(self.0.clamp(of.0 / factor, of.0.saturating_mul(factor)))
    }

    /// Do they differ by more than an eighth?
    pub(super) fn is_far_from(self, other: Self) -> bool {
        self.0.abs_diff(other.0) > self.0.min(other.0) / 8
    }

    /// This ratio, moved by a `part`th of what `error` says that it is off.
    pub(super) fn corrected(self, error: Self, part: u64) -> Self {
        let wanted = self.times(error.0);
        let part = part.max(1);
        Self::clamped(self.0.saturating_mul(part - 1).saturating_add(wanted) / part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_goes_where_errors_point() {
        let mut ratio = Ratio::default();
        for _ in 0..30 {
            ratio = ratio.corrected(Ratio::of(3000, ratio.times(1000)), 2);
        }
        assert!((2990..=3010).contains(&ratio.times(1000)), "{ratio:?}");
        assert_eq!(Ratio::of(1, u64::MAX).times(FARTHEST), 1);
        assert_eq!(Ratio::of(u64::MAX, 0).times(1), FARTHEST);
        assert_eq!(Ratio::of(2, 1).and(Ratio::of(3, 1)).times(10), 60);
        let ten = Ratio::of(10, 1);
        let near = [1, 40, 10_000].map(|ratio| Ratio::of(ratio, 1).clamp_to(8, ten).times(100));
        assert_eq!(near.map(|ratio| ratio / 100), [1, 40, 80]);
    }
}
