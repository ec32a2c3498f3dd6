//! Mean and standard deviation of each feature, and of labels that are numbers, and the rows of each class, over the
//! training rows.

use crate::shards::Target;
use sojourn_codec::{CodecError, Tensor, encode};
use sojourn_protocol::{manifest::LabelScaling, quantity::to_u64};

/// Sums over the training rows.
pub(crate) struct TrainingSums {
    pub(crate) features: Moments,
    labels: Moments,
    /// Rows of each class.
    class_rows: Vec<u64>,
}

impl TrainingSums {
    pub(crate) fn new(features: usize, classes: usize) -> Self {
        let class_rows = vec![0; classes];
        Self { features: Moments::new(features), labels: Moments::new(1), class_rows }
    }

    /// Takes a row and its label.
    pub(crate) fn add(&mut self, row: &[f32], label: Target) {
        self.features.add(row);
        match label {
            Target::Number(label) => self.labels.add(&[label]),
            Target::Class(class) => {
                let class = usize::try_from(class).ok();
                if let Some(rows) = class.and_then(|class| self.class_rows.get_mut(class)) {
                    *rows += 1;
                }
            }
        }
    }

    /// Rows of each class, in index order.
    pub(crate) fn class_rows(&self) -> &[u64] {
        &self.class_rows
    }

    /// The scaling of labels that are numbers.
    pub(crate) fn label_scaling(&self) -> LabelScaling {
        let (mean, std) = self
            .labels
            .features
            .first()
            .map_or((0.0, 0.0), |labels| labels.mean_and_deviation(self.labels.rows));
        // Labels that don't vary become 0.
        LabelScaling { mean, std: if std > 0.0 { std } else { 1.0 } }
    }
}

/// Sums per feature, in the order of rows; so the same rows give the same bits.
///
/// Sums are of differences from the first row's value. Otherwise the sums of squares would lose precision if a feature
/// varies little around a large number (Chan, Golub and LeVeque, The American Statistician
/// 37(3), 1983: "shifted data").
#[derive(Debug, Clone)]
pub(crate) struct Moments {
    rows: u64,
    features: Vec<Feature>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Feature {
    first: f64,
    sum: f64,
    squares: f64,
}

impl Moments {
    pub(crate) fn new(features: usize) -> Self {
        Self { rows: 0, features: vec![Feature::default(); features] }
    }

    /// Takes a row.
    pub(crate) fn add(&mut self, row: &[f32]) {
        if self.rows == 0 {
            for (feature, value) in self.features.iter_mut().zip(row) {
                feature.first = f64::from(*value);
            }
        }
        self.rows += 1;
        for (feature, value) in self.features.iter_mut().zip(row) {
            let distance = f64::from(*value) - feature.first;
            feature.sum += distance;
            feature.squares += distance * distance;
        }
    }

    /// The scaling blob: `mean` and `std`, both `F32 [features]`.
    pub(crate) fn encode(&self) -> Result<Vec<u8>, CodecError> {
        let (mean, std): (Vec<f32>, Vec<f32>) =
            self.features.iter().map(|feature| feature.scaling(self.rows)).unzip();
        let shape = [to_u64(mean.len())];
        encode(&[Tensor::f32("mean", shape, &mean), Tensor::f32("std", shape, &std)])
    }
}

/// Mean of each feature over the rows that have it, in the order of rows; a missing one is NaN.
///
/// Sums are of differences from the first value, as in [`Moments`].
#[derive(Debug, Clone)]
pub(crate) struct Means(Vec<Mean>);

#[derive(Debug, Clone, Copy, Default)]
struct Mean {
    count: u64,
    first: f64,
    sum: f64,
}

impl Means {
    pub(crate) fn new(features: usize) -> Self {
        Self(vec![Mean::default(); features])
    }

    /// Takes a row.
    pub(crate) fn add(&mut self, row: &[f32]) {
        for (mean, value) in self.0.iter_mut().zip(row).filter(|(_, value)| !value.is_nan()) {
            let value = f64::from(*value);
            if mean.count == 0 {
                mean.first = value;
            }
            mean.count += 1;
            mean.sum += value - mean.first;
        }
    }

    /// The means.
    ///
    /// # Errors
    /// The index of a feature that no row has.
    pub(crate) fn found(&self) -> Result<Vec<f32>, usize> {
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            reason = "counts are far below 2^53; the result is meant to be single precision"
        )]
        let mean = |(index, mean): (usize, &Mean)| match mean.count {
            0 => Err(index),
            count => Ok((mean.first + mean.sum / count as f64) as f32),
        };
        self.0.iter().enumerate().map(mean).collect()
    }
}

impl Feature {
    #[expect(clippy::cast_precision_loss, reason = "row counts are far below 2^53")]
    fn mean_and_deviation(&self, rows: u64) -> (f64, f64) {
        let rows = rows.max(1) as f64;
        let offset = self.sum / rows;
        let variance = (self.squares / rows - offset * offset).max(0.0);
        (self.first + offset, variance.sqrt())
    }

    #[expect(clippy::cast_possible_truncation, reason = "meant to be single precision")]
    fn scaling(&self, rows: u64) -> (f32, f32) {
        let (mean, std) = self.mean_and_deviation(rows);
        let std = std as f32;
        // A feature that doesn't vary becomes 0 after scaling, not a division by 0.
        (mean as f32, if std > 0.0 { std } else { 1.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scaling(values: &[f32]) -> (f32, f32) {
        let mut moments = Moments::new(1);
        values.iter().for_each(|value| moments.add(&[*value]));
        moments.features[0].scaling(moments.rows)
    }

    #[test]
    fn mean_and_population_deviation() {
        assert_eq!(scaling(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]), (5.0, 2.0));
    }

    #[test]
    fn labels_are_scaled_as_features_are_but_in_double_precision() {
        let scaling = |labels: &[f32]| {
            let mut sums = TrainingSums::new(1, 0);
            labels.iter().for_each(|label| sums.add(&[0.0], Target::Number(*label)));
            sums.label_scaling()
        };
        let found = scaling(&[150.0, 100.0, 200.0, 151.0]);
        assert_eq!(found.mean, 150.25);
        assert_eq!(found.std, (5000.75f64 / 4.0).sqrt());
        assert_eq!(scaling(&[0.1, 0.1]), LabelScaling { mean: f64::from(0.1f32), std: 1.0 });
    }

    #[test]
    fn a_feature_that_does_not_vary_is_left_alone() {
        assert_eq!(scaling(&[0.1, 0.1, 0.1]), (0.1, 1.0));
        assert_eq!(scaling(&[3.5]), (3.5, 1.0));
    }

    #[test]
    fn a_small_deviation_around_a_large_mean_is_kept() {
        let (mean, std) = scaling(&[1e7, 1e7 + 1.0, 1e7 + 2.0, 1e7 + 1.0]);
        assert_eq!(mean, 1e7 + 1.0);
        assert!((std - 0.5f32.sqrt()).abs() < 1e-6, "{std}");
    }
}
