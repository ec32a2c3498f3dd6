//! Metrics of a model over rows and classes, each computed here and nowhere else.
//!
//! Hosts report counts and sums, which combine by addition; the values follow from them.
//!
//! | metric | is |
//! |---|---|
//! | loss | mean of the training loss over rows |
//! | accuracy | share of rows whose largest output is the label's; of equal outputs the first counts |
//! | top-k accuracy | share of rows whose label is among the k largest outputs, the first of equals first |
//! | macro F1 | mean of `2 TP / (2 TP + FP + FN)` over classes ([`ByClass::macro_f1`]) |
//! | RMSE | root of the mean squared error, for labels that are numbers |
//!
//! Metrics of users' own models follow from sums by [`MetricRule`], and from [arrays](crate::sum_array).

use crate::{
    f1::mean_f1,
    quantity::to_usize,
    spec::{Loss, Metric, MetricRule, OwnMetric, SearchSpec},
    sum_array::SumArray,
    sums::Sums,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Classes up to which the whole confusion matrix is counted.
pub const MAX_CONFUSION_CLASSES: u32 = 256;
/// Classes up to which anything is counted by class.
pub const MAX_COUNTED_CLASSES: u32 = 16_384;

/// How much an evaluation counts class by class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ClassDetail {
    /// The evaluation counts nothing class by class.
    #[default]
    Nothing,
    /// [`ClassTotals`].
    Totals,
    /// [`Confusion`].
    Confusion,
}

impl ClassDetail {
    /// As much as is counted for so many classes.
    #[must_use]
    pub const fn fullest(classes: u32) -> Self {
        if classes <= MAX_CONFUSION_CLASSES {
            ClassDetail::Confusion
        } else if classes <= MAX_COUNTED_CLASSES {
            ClassDetail::Totals
        } else {
            ClassDetail::Nothing
        }
    }
}

/// The counts of an evaluation beside the loss and the rows whose largest output is the label's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Counting {
    /// Rows whose label is among this many largest outputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_k: Option<u32>,
    /// Rows by class.
    #[serde(default, skip_serializing_if = "is_default")]
    pub by_class: ClassDetail,
}

/// Is it what a missing field means?
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Rows by their label's class and the class that the model took them for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ByClass {
    /// Three numbers for each class.
    Totals(ClassTotals),
    /// A number for each pair of classes.
    Confusion(Confusion),
}

/// Rows of each class, in index order.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ClassTotals {
    /// Rows with this label: TP + FN.
    pub labelled: Vec<u64>,
    /// Rows that the model took for it: TP + FP.
    pub predicted: Vec<u64>,
    /// Rows of both: TP.
    pub correct: Vec<u64>,
}

/// The confusion matrix: a line for each class of labels, in it a number for each predicted class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(transparent)]
pub struct Confusion(pub Vec<Vec<u64>>);

impl Confusion {
    /// The sums of its lines, its columns and the diagonal.
    #[must_use]
    pub fn totals(&self) -> ClassTotals {
        let add = |sum: u64, count: &u64| sum.saturating_add(*count);
        let labelled = self.0.iter().map(|line| line.iter().fold(0, add)).collect();
        let mut predicted = vec![0; self.0.len()];
        for line in &self.0 {
            for (sum, count) in predicted.iter_mut().zip(line) {
                *sum = add(*sum, count);
            }
        }
        let diagonal = self.0.iter().enumerate();
        let correct = diagonal.map(|(class, line)| line.get(class).copied().unwrap_or(0)).collect();
        ClassTotals { labelled, predicted, correct }
    }
}

impl ByClass {
    /// How much it says.
    #[must_use]
    pub const fn detail(&self) -> ClassDetail {
        match self {
            ByClass::Totals(_) => ClassDetail::Totals,
            ByClass::Confusion(_) => ClassDetail::Confusion,
        }
    }

    /// Why it can't be what was counted over `sums` and so many classes.
    #[must_use]
    pub fn fault(&self, classes: u32, sums: &Sums) -> Option<String> {
        let classes = to_usize(classes);
        let (totals, shaped) = match self {
            ByClass::Totals(totals) => {
                let ClassTotals { labelled, predicted, correct } = totals;
                let shaped = [labelled, predicted, correct].iter().all(|of| of.len() == classes);
                (totals.clone(), shaped)
            }
            ByClass::Confusion(matrix) => {
                let square = matrix.0.iter().all(|line| line.len() == classes);
                (matrix.totals(), square && matrix.0.len() == classes)
            }
        };
        if !shaped {
            return Some(format!("rows aren't counted for {classes} classes"));
        }
        let sum = |of: &[u64]| of.iter().try_fold(0u64, |sum, count| sum.checked_add(*count));
        let both = totals.labelled.iter().zip(&totals.predicted).zip(&totals.correct);
        let within = both
            .clone()
            .all(|((labelled, predicted), correct)| correct <= labelled && correct <= predicted);
        let whole = sum(&totals.labelled) == Some(sums.rows)
            && sum(&totals.predicted) == Some(sums.rows)
            && sum(&totals.correct) == sums.correct;
        (!whole || !within).then(|| "the rows of the classes aren't those of the sums".into())
    }

    /// Macro F1: the mean over classes of `2 TP / (2 TP + FP + FN)`.
    ///
    /// A class that is neither a label nor predicted is left out of the mean, as scikit-learn's
    /// `f1_score(average="macro")` does when it isn't told of other labels. (Opitz and Burst, "Macro F1
    /// and Macro F1", 2019: this is the mean of F1 values, not the F1 of mean precision and recall.)
    /// NaN where there are no rows.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "row counts are far below 2^53")]
    pub fn macro_f1(&self) -> f64 {
        let totals = match self {
            ByClass::Totals(totals) => totals.clone(),
            ByClass::Confusion(matrix) => matrix.totals(),
        };
        let both = totals.labelled.iter().zip(&totals.predicted).zip(&totals.correct);
        mean_f1(both.map(|((labelled, predicted), correct)| {
            (*labelled as f64, *predicted as f64, *correct as f64)
        }))
    }
}

/// The values of all metrics that an evaluation gives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Metrics {
    /// Rows that were evaluated.
    pub rows: u64,
    /// Mean loss.
    pub loss: f64,
    /// Accuracy; for classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<f64>,
    /// Top-k accuracy; for more than k classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_k: Option<TopK>,
    /// Macro F1; for classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub f1: Option<f64>,
    /// RMSE; for numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rmse: Option<f64>,
    /// A user's own: the mean of each of the model's sums, and those of `[metrics]`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub own: BTreeMap<String, f64>,
}

/// Top-k accuracy.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TopK {
    /// How many outputs may be the label's.
    pub k: u32,
    /// The share of rows where one of them is.
    pub accuracy: f64,
}

impl Metrics {
    /// All that follows from what was counted. `k`: what [`Sums::top_k`] was counted with. `arrays`: what a user's own model
    /// gives beside sums, by name.
    #[must_use]
    pub fn of(
        loss: Loss,
        search: &SearchSpec,
        sums: &Sums,
        by_class: Option<&ByClass>,
        k: Option<u32>,
        arrays: &BTreeMap<String, SumArray>,
    ) -> Self {
        let top_k = k.zip(sums.top_k_accuracy());
        Self {
            rows: sums.rows,
            loss: sums.mean_loss(),
            accuracy: sums.accuracy(),
            top_k: top_k.map(|(k, accuracy)| TopK { k, accuracy }),
            f1: by_class.map(ByClass::macro_f1),
            rmse: (loss == Loss::Mse).then(|| root_mean(sums)),
            own: search.own_values(sums, arrays),
        }
    }
}

/// The root of the mean loss; where the loss is the squared error, RMSE.
fn root_mean(sums: &Sums) -> f64 {
    sums.mean_loss().sqrt()
}

impl SearchSpec {
    /// The value of its metric; NaN where what that needs wasn't counted. `f1`: [`ByClass::macro_f1`]. `of_arrays`:
    /// [`Self::of_arrays`].
    #[must_use]
    pub fn value(&self, sums: &Sums, f1: Option<f64>, of_arrays: &BTreeMap<String, f64>) -> f64 {
        if let Some(name) = self.own() {
            return self.own_value(name, sums, of_arrays).unwrap_or(f64::NAN);
        }
        match &self.metric {
            Metric::Accuracy => sums.accuracy().unwrap_or(f64::NAN),
            Metric::TopK => sums.top_k_accuracy().unwrap_or(f64::NAN),
            Metric::F1 => f1.unwrap_or(f64::NAN),
            Metric::Loss => sums.mean_loss(),
            Metric::Rmse => root_mean(sums),
            Metric::Own(_) => f64::NAN,
        }
    }

    /// The values of the metrics of users' own models that are made of arrays, as far as these arrays give them.
    #[must_use]
    pub fn of_arrays(&self, arrays: &BTreeMap<String, SumArray>) -> BTreeMap<String, f64> {
        let value = |(name, metric): (&String, &OwnMetric)| {
            Some((name.clone(), metric.rule.of_array(arrays.get(&metric.of)?)?))
        };
        self.metrics.iter().filter_map(value).collect()
    }

    /// The values of all metrics of users' own models that these sums and arrays give.
    fn own_values(
        &self,
        sums: &Sums,
        arrays: &BTreeMap<String, SumArray>,
    ) -> BTreeMap<String, f64> {
        let is_shown =
            |name: &&String| name.as_str() == "accuracy" || self.metrics.contains_key(*name);
        let means = sums.named.keys().filter(|name| !is_shown(name));
        let means = means.map(|name| (name, MetricRule::Mean.value(sums, name)));
        let ruled = self.metrics.iter();
        let ruled = ruled.map(|(name, metric)| (name, metric.rule.value(sums, &metric.of)));
        let known = means.chain(ruled).filter_map(|(name, value)| Some((name.clone(), value?)));
        known.chain(self.of_arrays(arrays)).collect()
    }

    /// The value of a user's own metric.
    fn own_value(&self, name: &str, sums: &Sums, of_arrays: &BTreeMap<String, f64>) -> Option<f64> {
        match self.metrics.get(name) {
            Some(metric) if metric.rule.takes_array() => of_arrays.get(name).copied(),
            Some(metric) => metric.rule.value(sums, &metric.of),
            None => MetricRule::Mean.value(sums, name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::SearchMethod;

    fn confusion(lines: &[&[u64]]) -> ByClass {
        ByClass::Confusion(Confusion(lines.iter().map(|line| line.to_vec()).collect()))
    }

    fn totals(matrix: &ByClass) -> ByClass {
        match matrix {
            ByClass::Confusion(matrix) => ByClass::Totals(matrix.totals()),
            ByClass::Totals(_) => matrix.clone(),
        }
    }

    fn sums(rows: u64, correct: u64) -> Sums {
        Sums { rows, correct: Some(correct), ..Sums::default() }
    }

    #[test]
    fn macro_f1_is_scikit_learns() {
        // Its documentation's example: y_true = [0, 1, 2, 0, 1, 2], y_pred = [0, 2, 1, 0, 0, 1].
        let example = confusion(&[&[2, 0, 0], &[1, 0, 1], &[0, 2, 0]]);
        assert!((example.macro_f1() - 0.266_666_666_666_666_7).abs() < 1e-15);
        // F1 of the classes: 6/7, 4/5, 0; the last is a label that was never predicted.
        let uneven = confusion(&[&[3, 0, 0], &[0, 2, 0], &[1, 1, 0]]);
        assert!((uneven.macro_f1() - (6.0 / 7.0 + 0.8) / 3.0).abs() < 1e-15);
        // A fourth class that nobody has or predicts changes nothing.
        let absent = confusion(&[&[3, 0, 0, 0], &[0, 2, 0, 0], &[1, 1, 0, 0], &[0, 0, 0, 0]]);
        assert_eq!(absent.macro_f1().to_bits(), uneven.macro_f1().to_bits());
        for matrix in [example, uneven, absent] {
            assert_eq!(totals(&matrix).macro_f1().to_bits(), matrix.macro_f1().to_bits());
        }
        assert!(confusion(&[&[0, 0], &[0, 0]]).macro_f1().is_nan(), "no rows, no value");
    }

    #[test]
    fn counts_that_can_not_be_are_told_from_those_that_can() {
        let good = confusion(&[&[3, 1], &[0, 2]]);
        let totals = totals(&good);
        for counts in [&good, &totals] {
            assert_eq!(counts.fault(2, &sums(6, 5)), None);
            assert!(counts.fault(3, &sums(6, 5)).unwrap().contains("3 classes"));
            assert!(counts.fault(2, &sums(7, 5)).is_some(), "a row is missing");
            assert!(counts.fault(2, &sums(6, 4)).is_some(), "another number of hits");
        }
        assert!(confusion(&[&[3, 1], &[2]]).fault(2, &sums(6, 3)).is_some(), "not square");
        let vast = confusion(&[&[u64::MAX, 7], &[0, 0]]);
        assert!(vast.fault(2, &sums(6, 5)).is_some(), "sums don't wrap around");
        let mut more =
            ClassTotals { labelled: vec![2, 4], predicted: vec![3, 3], correct: vec![2, 3] };
        assert_eq!(ByClass::Totals(more.clone()).fault(2, &sums(6, 5)), None);
        more.correct = vec![3, 2];
        assert!(ByClass::Totals(more).fault(2, &sums(6, 5)).is_some(), "3 hits of 2 rows");
    }

    #[test]
    fn all_values_follow_from_the_counts() {
        let search = |metric| SearchSpec::new(SearchMethod::Grid, metric);
        let any = search(Metric::Loss);
        let of = |loss, search, sums, by_class, k| {
            Metrics::of(loss, search, sums, by_class, k, &BTreeMap::new())
        };
        let counted =
            Sums { rows: 8, loss: 2.0, correct: Some(4), top_k: Some(6), ..Sums::default() };
        let matrix = confusion(&[&[2, 2], &[2, 2]]);
        let metrics = of(Loss::CrossEntropy, &any, &counted, Some(&matrix), Some(5));
        let top_k = Some(TopK { k: 5, accuracy: 0.75 });
        let (accuracy, f1) = (Some(0.5), Some(0.5));
        assert_eq!(
            metrics,
            Metrics { rows: 8, loss: 0.25, accuracy, top_k, f1, rmse: None, own: BTreeMap::new() }
        );
        let squares = Sums { rows: 8, loss: 2.0, ..Sums::default() };
        let metrics = of(Loss::Mse, &any, &squares, None, None);
        assert_eq!((metrics.accuracy, metrics.top_k, metrics.f1), (None, None, None));
        assert_eq!(metrics.rmse, Some(0.5));
        let value =
            |metric: Metric, sums: &Sums| search(metric).value(sums, Some(0.5), &BTreeMap::new());
        assert_eq!(value(Metric::Rmse, &squares), 0.5);
        assert_eq!(value(Metric::TopK, &counted), 0.75);
        assert_eq!(value(Metric::F1, &counted), 0.5);
        assert!(value(Metric::TopK, &squares).is_nan());
        assert!(search(Metric::F1).value(&counted, None, &BTreeMap::new()).is_nan());
    }

    #[test]
    fn own_metrics_follow_from_the_sums_by_their_rules() {
        let mut search = SearchSpec::new(SearchMethod::Grid, Metric::Own("valid/ppl".into()));
        let rule = MetricRule::ExpMean;
        search.metrics.insert("ppl".into(), OwnMetric { of: "loss".into(), rule });
        let named = [("bits".to_owned(), 6.0)].into();
        let sums = Sums { rows: 2, loss: 4.0, named, ..Sums::default() };
        let none = BTreeMap::new();
        let value = |search: &SearchSpec| search.value(&sums, None, &none);
        assert_eq!(value(&search), 2f64.exp());
        let own = Metrics::of(Loss::CrossEntropy, &search, &sums, None, None, &BTreeMap::new()).own;
        assert_eq!(own, [("bits".to_owned(), 3.0), ("ppl".to_owned(), 2f64.exp())].into());
        search.metric = Metric::Own("valid/bits".into());
        assert_eq!(value(&search), 3.0);
        search.metric = Metric::Own("valid/other".into());
        assert!(value(&search).is_nan());
    }

    #[test]
    fn own_metrics_of_arrays_follow_from_these_also_under_the_names_of_built_in_ones() {
        let mut search = SearchSpec::new(SearchMethod::Grid, Metric::F1);
        for (name, of, rule) in [
            ("f1", "confusion", MetricRule::MacroF1),
            ("confusion", "confusion", MetricRule::Confusion),
            ("auc", "scores", MetricRule::Auc),
            ("other", "none", MetricRule::Auc),
        ] {
            search.metrics.insert(name.into(), OwnMetric { of: of.into(), rule });
        }
        let array = |numbers: [f64; 4]| SumArray { shape: vec![2, 2], numbers: numbers.to_vec() };
        let arrays = [
            ("confusion".to_owned(), array([3.0, 0.0, 1.0, 0.0])),
            ("scores".to_owned(), array([1.0, 1.0, 0.0, 2.0])),
        ];
        let arrays = arrays.into();
        let of_arrays = search.of_arrays(&arrays);
        let f1 = 3.0 / 7.0;
        assert_eq!(of_arrays, [("auc".to_owned(), 0.75), ("f1".to_owned(), f1)].into());
        let sums = Sums { rows: 4, loss: 4.0, ..Sums::default() };
        assert_eq!(search.value(&sums, None, &of_arrays), f1);
        search.metric = Metric::Own("valid/auc".into());
        assert_eq!(search.value(&sums, None, &of_arrays), 0.75);
        assert!(search.value(&sums, None, &BTreeMap::new()).is_nan());
        let metrics = Metrics::of(Loss::CrossEntropy, &search, &sums, None, None, &arrays);
        assert_eq!((metrics.f1, metrics.own), (None, of_arrays));
    }

    #[test]
    fn what_is_counted_is_bounded_by_the_number_of_classes() {
        assert_eq!(ClassDetail::fullest(256), ClassDetail::Confusion);
        assert_eq!(ClassDetail::fullest(257), ClassDetail::Totals);
        assert_eq!(ClassDetail::fullest(16_385), ClassDetail::Nothing);
    }
}
