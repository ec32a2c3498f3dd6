//! How far estimates were off, for people.

use super::figure::quarter;

/// The smoothed distance of measured times from estimates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EstimateError {
    thousandths: u64,
    /// Units that it is known from.
    pub samples: u64,
}

impl EstimateError {
    /// A unit took `measured` where `expected` was said before.
    pub fn take(&mut self, expected: u64, measured: u64) {
        const MAX_ERROR: u64 = 1_000_000;
        let off = expected.abs_diff(measured).saturating_mul(1000) / measured.max(1);
        let off = off.min(MAX_ERROR);
        self.thousandths = if self.samples == 0 { off } else { quarter(self.thousandths, off) };
        self.samples += 1;
    }

    /// In thousandths of what units took; none before the first.
    #[must_use]
    pub fn thousandths(self) -> Option<u64> {
        (self.samples > 0).then_some(self.thousandths)
    }
}
