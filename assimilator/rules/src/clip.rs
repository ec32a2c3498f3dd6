//! Clipping: a change is at most twice as long as the running median of those before it
//! (docs/internals/merging.md).

/// Norms that are remembered.
pub const WINDOW: usize = 101;
/// Norms that have to be known before any change is clipped.
const MIN_NORMS: usize = 5;
/// The longest change, in medians.
const MAX_NORM_RATIO: f64 = 2.0;

/// The norms of the last changes, the oldest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Norms(Vec<f64>);

impl Norms {
    /// Norms in order of arrival; of more than [`WINDOW`] the last ones.
    #[must_use]
    pub fn new(norms: impl IntoIterator<Item = f64>) -> Self {
        let mut known = Self::default();
        known.extend(norms);
        known
    }

    /// The factor of a change of this norm: 1, or less where the norm is more than twice the median.
    /// The factor is 1 too while fewer than five norms are known, and where the median is 0, which says nothing.
    #[must_use]
    pub fn scale(&self, norm: f64) -> f64 {
        match self.median().filter(|_| self.0.len() >= MIN_NORMS) {
            Some(median) if median > 0.0 && norm > MAX_NORM_RATIO * median => {
                MAX_NORM_RATIO * median / norm
            }
            _ => 1.0,
        }
    }

    /// Remembers norms of changes, as they were before any clipping: a job whose changes grow is followed, and no
    /// minority of long ones moves the median.
    pub fn extend(&mut self, norms: impl IntoIterator<Item = f64>) {
        self.0.extend(norms);
        self.0.drain(..self.0.len().saturating_sub(WINDOW));
    }

    /// The norms, the oldest first.
    #[must_use]
    pub fn known(&self) -> &[f64] {
        &self.0
    }

    /// The middle one; of an even number the mean of the two.
    fn median(&self) -> Option<f64> {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let upper = sorted.get(sorted.len() / 2)?;
        let lower = sorted.get((sorted.len() - 1) / 2)?;
        Some(lower.midpoint(*upper))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_clipped_before_five_norms_are_known() {
        let mut norms = Norms::default();
        for known in 0..5 {
            assert_eq!(norms.scale(1e9), 1.0, "{known} known");
            norms.extend([1.0]);
        }
        assert_eq!(norms.scale(1e9), 2e-9);
        assert_eq!(norms.scale(2.0), 1.0);
        assert_eq!(norms.scale(4.0), 0.5);
        assert_eq!(Norms::new([0.0; 9]).scale(1.0), 1.0, "a median of 0 says nothing");
    }

    #[test]
    fn the_median_is_that_of_the_window() {
        let median = |norms: &[f64]| Norms::new(norms.iter().copied()).median();
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[3.0, 1.0]), Some(2.0));
        assert_eq!(median(&[9.0, 1.0, 2.0]), Some(2.0));
        let many = Norms::new((0..1000).map(f64::from));
        assert_eq!(many.known().len(), WINDOW);
        assert_eq!(many.known().first(), Some(&899.0));
        assert_eq!(many.median(), Some(949.0));
    }

    #[test]
    fn a_minority_of_long_changes_does_not_move_the_median() {
        let norms = Norms::new((0..WINDOW).map(|n| if n % 5 < 2 { 1000.0 } else { 1.0 }));
        assert_eq!(norms.scale(1000.0), 0.002);
    }
}
