//! Arrays that the evaluation of a user's own model adds up over rows, and the metrics that follow from them.

use crate::{f1::mean_f1, quantity::to_u64};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The most numbers in all arrays of an evaluation together: a confusion matrix of 256 classes.
pub const MAX_ARRAY_NUMBERS: usize = 65_536;
/// The most dimensions of such an array.
pub const MAX_ARRAY_DIMENSIONS: usize = 16;
/// Sums that are one number, whatever the model.
const NUMBERS: [&str; 2] = ["loss", "accuracy"];

/// An array of numbers, each added up over rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct SumArray {
    /// How many numbers there are in each dimension.
    pub shape: Vec<u64>,
    /// The numbers; the last dimension's lie beside each other.
    pub numbers: Vec<f64>,
}

/// Can these sums be arrays of these shapes?
///
/// # Errors
/// The name of the first that can't, and why.
pub fn check_array_shapes(
    shapes: &BTreeMap<String, Vec<u64>>,
    is_sum: impl Fn(&str) -> bool,
) -> Result<(), (String, String)> {
    let mut all = 0u64;
    for (name, shape) in shapes {
        let fault = |fault: &str| Err((name.clone(), fault.to_owned()));
        if !is_sum(name) {
            return fault("has a shape, and is no sum");
        }
        if NUMBERS.contains(&name.as_str()) {
            return fault("must be one number");
        }
        if shape.is_empty() || shape.len() > MAX_ARRAY_DIMENSIONS || shape.contains(&0) {
            return fault("has a shape that no array of sums can have");
        }
        let numbers = shape.iter().try_fold(1u64, |product, side| product.checked_mul(*side));
        all = all.saturating_add(numbers.unwrap_or(u64::MAX));
        if all > to_u64(MAX_ARRAY_NUMBERS) {
            let most = MAX_ARRAY_NUMBERS;
            return fault(&format!(
                "is too large: all arrays together have {most} numbers at most"
            ));
        }
    }
    Ok(())
}

impl SumArray {
    /// Isn't it an array of this shape, as it is whole?
    #[must_use]
    pub fn differs_from(&self, shape: &[u64]) -> bool {
        let numbers = shape.iter().try_fold(1u64, |product, side| product.checked_mul(*side));
        self.shape != shape || numbers != Some(to_u64(self.numbers.len()))
    }

    /// The lines of a matrix whose numbers can be counts; `None` where it is none.
    #[must_use]
    pub fn lines(&self) -> Option<Vec<&[f64]>> {
        let [lines, line] = *self.shape.as_slice() else { return None };
        let are_counts = self.numbers.iter().all(|number| number.is_finite() && *number >= 0.0);
        if line == 0 || !are_counts || self.differs_from(&[lines, line]) {
            return None;
        }
        Some(self.numbers.chunks_exact(usize::try_from(line).ok()?).collect())
    }

    /// Macro F1 of a confusion matrix with a line for each class of labels: that of
    /// [`ByClass`](crate::metrics::ByClass::macro_f1). `None` where nothing was counted, or where it is no such matrix.
    #[must_use]
    pub fn macro_f1(&self) -> Option<f64> {
        let lines = self.lines()?;
        let mut predicted = vec![0.0; lines.len()];
        for line in &lines {
            for (sum, count) in predicted.iter_mut().zip(*line) {
                *sum += count;
            }
        }
        let classes = lines.iter().zip(&predicted).enumerate();
        let f1 = mean_f1(classes.map(|(class, (line, predicted))| {
            let correct = line.get(class).copied().unwrap_or(0.0);
            (line.iter().sum(), *predicted, correct)
        }));
        Some(f1).filter(|f1| f1.is_finite())
    }

    /// The area under the ROC curve of `[2, bins]` counts: of rows that are negative, then of those that are positive, by
    /// bins of rising score. It is the probability that a positive row's score is in a later bin than a negative one's,
    /// where the same bin counts half: the trapezoids under the curve. `None` without rows of either kind.
    #[must_use]
    pub fn auc(&self) -> Option<f64> {
        let lines = self.lines()?;
        let [negative, positive] = *lines.as_slice() else { return None };
        let (mut below, mut area) = (0.0, 0.0);
        for (negative, positive) in negative.iter().zip(positive) {
            area += positive * (below + negative / 2.0);
            below += negative;
        }
        let pairs = below * positive.iter().sum::<f64>();
        Some(area / pairs).filter(|auc| auc.is_finite())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{ByClass, Confusion};
    use proptest::prelude::*;

    fn array(shape: &[u64], numbers: &[f64]) -> SumArray {
        SumArray { shape: shape.to_vec(), numbers: numbers.to_vec() }
    }

    #[test]
    fn macro_f1_is_that_of_built_in_models() {
        // scikit-learn's example: y_true = [0, 1, 2, 0, 1, 2], y_pred = [0, 2, 1, 0, 0, 1].
        let matrix = array(&[3, 3], &[2.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 2.0, 0.0]);
        assert!((matrix.macro_f1().unwrap() - 0.266_666_666_666_666_7).abs() < 1e-15);
        // The mean of 6/7 and 4/5; the third class is neither a label nor predicted.
        let matrix = array(&[3, 3], &[3.0, 1.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0]);
        assert!((matrix.macro_f1().unwrap() - (6.0 / 7.0 + 0.8) / 2.0).abs() < 1e-15);
    }

    #[test]
    fn auc_is_the_ratio_of_pairs_in_the_right_order() {
        // Negative rows at 0, 1, 1; positive ones at 1, 2. Of six pairs four are right and two are tied.
        let scores = array(&[2, 3], &[1.0, 2.0, 0.0, 0.0, 1.0, 1.0]);
        assert_eq!(scores.auc(), Some(5.0 / 6.0));
        // scikit-learn's example: y_true = [0, 0, 1, 1], y_score = [0.1, 0.4, 0.35, 0.8].
        let example = array(&[2, 4], &[1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0]);
        assert_eq!(example.auc(), Some(0.75));
        assert_eq!(array(&[2, 1], &[3.0, 5.0]).auc(), Some(0.5), "one bin says nothing");
        assert_eq!(array(&[2, 2], &[0.0, 4.0, 4.0, 0.0]).auc(), Some(0.0), "all are wrong");
        assert_eq!(array(&[2, 2], &[1.0, 1.0, 0.0, 0.0]).auc(), None, "no positive row");
    }

    #[test]
    fn arrays_that_are_none_have_no_values() {
        for wrong in [
            array(&[2, 2], &[1.0, 2.0, 3.0]),
            array(&[2, 2], &[1.0, 2.0, 3.0, -1.0]),
            array(&[2, 2], &[1.0, 2.0, 3.0, f64::NAN]),
            array(&[4], &[1.0, 2.0, 3.0, 4.0]),
            array(&[0, 0], &[]),
            array(&[u64::MAX, 2], &[]),
            array(&[2, 2], &[0.0; 4]),
        ] {
            assert_eq!((wrong.macro_f1(), wrong.auc()), (None, None), "{wrong:?}");
        }
    }

    #[test]
    fn shapes_are_bounded_together() {
        let check = |shapes: &[(&str, &[u64])]| {
            let shapes = shapes.iter().map(|(name, shape)| ((*name).to_owned(), shape.to_vec()));
            check_array_shapes(&shapes.collect(), |name| name != "other").map_err(|(_, why)| why)
        };
        assert_eq!(check(&[("a", &[256, 255]), ("b", &[256])]), Ok(()));
        for (wrong, why) in [
            (&[("a", &[256, 255][..]), ("b", &[257][..])][..], "too large"),
            (&[("a", &[u64::MAX, u64::MAX])], "too large"),
            (&[("other", &[1])], "is no sum"),
            (&[("loss", &[1])], "one number"),
            (&[("accuracy", &[1])], "one number"),
            (&[("a", &[])], "no array"),
            (&[("a", &[1, 0])], "no array"),
            (&[("a", &[1; 17])], "no array"),
        ] {
            let said = check(wrong).unwrap_err();
            assert!(said.contains(why), "{wrong:?}: {said}");
        }
    }

    proptest! {
        /// Scores that lie on bins lose nothing: the histogram's area is that of all pairs.
        #[test]
        fn auc_of_scores_on_bins_is_exact(rows in prop::collection::vec((0usize..7, any::<bool>()), 0..60)) {
            let mut scores = array(&[2, 7], &[0.0; 14]);
            for (bin, is_positive) in &rows {
                scores.numbers[usize::from(*is_positive) * 7 + bin] += 1.0;
            }
            let of = |kind| rows.iter().filter(move |(_, is_positive)| *is_positive == kind);
            let pairs = of(true).flat_map(|(p, _)| of(false).map(move |(n, _)| p.cmp(n)));
            let twice: Vec<i32> = pairs.map(|order| order as i32 + 1).collect();
            let exact = f64::from(twice.iter().sum::<i32>()) / 2.0 / f64::from(u32::try_from(twice.len()).unwrap());
            prop_assert_eq!(scores.auc(), Some(exact).filter(|exact| exact.is_finite()));
        }

        /// Whole counts give the very value of the built-in matrix.
        #[test]
        fn macro_f1_is_the_built_in_one_to_the_last_bit(counts in prop::collection::vec(0u16..500, 9)) {
            let numbers: Vec<f64> = counts.iter().map(|count| f64::from(*count)).collect();
            let lines = counts.chunks(3).map(|line| line.iter().map(|count| u64::from(*count)).collect());
            let built_in = ByClass::Confusion(Confusion(lines.collect())).macro_f1();
            let own = array(&[3, 3], &numbers).macro_f1();
            prop_assert_eq!(own.map(f64::to_bits), Some(built_in).filter(|f1| f1.is_finite()).map(f64::to_bits));
        }
    }
}
