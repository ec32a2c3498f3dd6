//! The metrics by which trials are compared.

use super::{Goal, Loss};
use crate::{sum_array::SumArray, sums::Sums, text::MAX_NAME_CHARS};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A validation metric.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Metric {
    /// Share of rows whose largest output is the label's; for classes only.
    Accuracy,
    /// Share of rows whose label is among the k largest outputs; for classes only.
    TopK,
    /// Macro F1; for classes only.
    F1,
    /// Mean loss over rows.
    Loss,
    /// Root of the mean squared error; for numbers only.
    Rmse,
    /// One that a user's own model gives: its whole name, `valid/perplexity`.
    Own(String),
}

/// The prefix of the names of all metrics of a search.
const VALID: &str = "valid/";
/// The most bytes in the name of a user's own sum or metric.
pub const MAX_SUM_NAME: usize = 64;

/// Can a user's own sum or metric have this name: letters, digits, `_`, `-` and `.`?
#[must_use]
pub fn is_sum_name(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    !name.is_empty() && name.len() <= MAX_SUM_NAME && name.chars().all(is_part)
}

impl Metric {
    /// The metrics that aren't users' own, in the order in which texts name them.
    pub const ALL: [Metric; 5] =
        [Metric::Accuracy, Metric::TopK, Metric::F1, Metric::Loss, Metric::Rmse];

    /// The name that job files and tables use.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Metric::Accuracy => "valid/accuracy",
            Metric::TopK => "valid/top-k",
            Metric::F1 => "valid/f1",
            Metric::Loss => "valid/loss",
            Metric::Rmse => "valid/rmse",
            Metric::Own(name) => name,
        }
    }

    /// The metric of this name, [`Metric::Own`] included.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        if let Some(metric) = Self::ALL.into_iter().find(|metric| metric.name() == name) {
            return Some(metric);
        }
        let own = name.strip_prefix(VALID).filter(|own| is_sum_name(own));
        own.map(|_| Metric::Own(name.to_owned()))
    }

    /// The direction in which it gets better; `None` where only its user knows.
    #[must_use]
    pub const fn goal(&self) -> Option<Goal> {
        match self {
            Metric::Accuracy | Metric::TopK | Metric::F1 => Some(Goal::Max),
            Metric::Loss | Metric::Rmse => Some(Goal::Min),
            Metric::Own(_) => None,
        }
    }

    /// Can it be computed for models that are trained with this loss? Whether a user's own model gives its own metrics is
    /// seen where that is exported.
    #[must_use]
    pub const fn suits(&self, loss: Loss) -> bool {
        match (self, loss) {
            (Metric::Loss | Metric::Own(_), _)
            | (Metric::Accuracy | Metric::TopK | Metric::F1, Loss::CrossEntropy)
            | (Metric::Rmse, Loss::Mse) => true,
            // A sum of that name.
            (Metric::Accuracy, Loss::Own) => true,
            (Metric::Accuracy | Metric::TopK | Metric::F1, Loss::Mse)
            | (Metric::TopK | Metric::F1, Loss::Own)
            | (Metric::Rmse, Loss::CrossEntropy | Loss::Own) => false,
        }
    }

    /// The name of a user's own metric, as `metrics`, which is `[metrics]`, and the model's `evaluate` have it. Those that
    /// only built-in models have give way to one of `[metrics]`.
    #[must_use]
    pub fn own_of(&self, metrics: &BTreeMap<String, OwnMetric>) -> Option<&str> {
        let name = self.name().strip_prefix(VALID);
        match self {
            Metric::Own(_) => name,
            Metric::TopK | Metric::F1 | Metric::Rmse => {
                name.filter(|name| metrics.contains_key(*name))
            }
            Metric::Accuracy | Metric::Loss => None,
        }
    }

    /// The direction in which it gets better, where its name or its rule in `metrics` says so.
    #[must_use]
    pub fn goal_of(&self, metrics: &BTreeMap<String, OwnMetric>) -> Option<Goal> {
        self.rule_of(metrics).and_then(MetricRule::goal).or_else(|| self.goal())
    }

    /// The rule that `metrics` has for it.
    #[must_use]
    pub fn rule_of(&self, metrics: &BTreeMap<String, OwnMetric>) -> Option<MetricRule> {
        Some(metrics.get(self.own_of(metrics)?)?.rule)
    }
}

impl From<Metric> for String {
    fn from(metric: Metric) -> Self {
        metric.name().to_owned()
    }
}

impl TryFrom<String> for Metric {
    type Error = String;
    fn try_from(name: String) -> Result<Self, String> {
        if name.len() > MAX_NAME_CHARS {
            let most = MAX_NAME_CHARS;
            return Err(format!("a metric's name isn't one line of at most {most} characters"));
        }
        Self::parse(&name).ok_or_else(|| format!("`{name}` can't be a metric's name"))
    }
}

/// How a metric follows from a sum that the evaluation of a user's own model gives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct OwnMetric {
    /// The sum's name.
    pub of: String,
    /// The rule.
    #[serde(rename = "as")]
    pub rule: MetricRule,
}

/// How a value follows from a sum over rows, or from an array of such sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum MetricRule {
    /// The mean over rows.
    #[default]
    Mean,
    /// The square root of the mean: of squared errors the RMSE.
    RootMean,
    /// The exponential of the mean: of a cross-entropy the perplexity.
    ExpMean,
    /// Macro F1 of a confusion matrix `[classes, classes]`.
    MacroF1,
    /// The confusion matrix itself, which is shown and is no value.
    Confusion,
    /// The area under the ROC curve of `[2, bins]` scores: [`SumArray::auc`].
    Auc,
}

impl MetricRule {
    /// Is it one of arrays, and not of numbers?
    #[must_use]
    pub const fn takes_array(self) -> bool {
        match self {
            MetricRule::MacroF1 | MetricRule::Confusion | MetricRule::Auc => true,
            MetricRule::Mean | MetricRule::RootMean | MetricRule::ExpMean => false,
        }
    }

    /// The direction in which its values get better, where that is the same for all sums.
    #[must_use]
    pub const fn goal(self) -> Option<Goal> {
        match self {
            MetricRule::MacroF1 | MetricRule::Auc => Some(Goal::Max),
            MetricRule::Mean
            | MetricRule::RootMean
            | MetricRule::ExpMean
            | MetricRule::Confusion => None,
        }
    }

    /// Why it says nothing of a sum of this shape; `None`, if the sum is a number.
    #[must_use]
    pub fn fault_of(self, shape: Option<&[u64]>) -> Option<&'static str> {
        match (self, shape) {
            (MetricRule::Mean | MetricRule::RootMean | MetricRule::ExpMean, Some(_)) => {
                Some("takes a number, and no array")
            }
            (MetricRule::MacroF1 | MetricRule::Confusion, Some([a, b])) if a == b => None,
            (MetricRule::MacroF1 | MetricRule::Confusion, _) => {
                Some("takes an array of shape [classes, classes]")
            }
            (MetricRule::Auc, Some([2, _])) => None,
            (MetricRule::Auc, _) => Some("takes an array of shape [2, bins]"),
            (MetricRule::Mean | MetricRule::RootMean | MetricRule::ExpMean, None) => None,
        }
    }

    /// The value for an array; `None` where the array has none, or the rule is none of arrays.
    #[must_use]
    pub fn of_array(self, array: &SumArray) -> Option<f64> {
        match self {
            MetricRule::MacroF1 => array.macro_f1(),
            MetricRule::Auc => array.auc(),
            MetricRule::Mean
            | MetricRule::RootMean
            | MetricRule::ExpMean
            | MetricRule::Confusion => None,
        }
    }

    /// The value for the sum `name`; `None` where the model doesn't give that, or the rule is one of arrays.
    #[must_use]
    pub fn value(self, sums: &Sums, name: &str) -> Option<f64> {
        let mean = match name {
            "loss" => Some(sums.mean_loss()),
            "accuracy" => sums.accuracy(),
            _ => sums.mean_of(name),
        };
        match self {
            MetricRule::Mean => mean,
            MetricRule::RootMean => mean.map(f64::sqrt),
            MetricRule::ExpMean => mean.map(f64::exp),
            MetricRule::MacroF1 | MetricRule::Confusion | MetricRule::Auc => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_metrics_have_plain_names() {
        let parse = Metric::parse;
        assert_eq!(parse("valid/loss"), Some(Metric::Loss));
        let own = parse("valid/bits_per.byte-2").unwrap();
        let none = BTreeMap::new();
        assert_eq!(
            (own.own_of(&none), own.name()),
            (Some("bits_per.byte-2"), "valid/bits_per.byte-2")
        );
        let long = format!("valid/{}", "n".repeat(65));
        for wrong in ["perplexity", "valid/", "valid/a b", "test/a", "valid/a/b", long.as_str()] {
            assert_eq!(parse(wrong), None, "{wrong}");
            assert!(serde_json::from_value::<Metric>(wrong.into()).is_err());
        }
        for metric in Metric::ALL.into_iter().chain([own]) {
            let json = serde_json::to_value(&metric).unwrap();
            assert_eq!(json, metric.name());
            assert_eq!(serde_json::from_value::<Metric>(json).unwrap(), metric);
        }
    }

    #[test]
    fn rules_go_by_the_mean_over_rows() {
        let named = [("squares".to_owned(), 36.0)].into();
        let sums = Sums { rows: 4, loss: 8.0, correct: Some(1), named, ..Sums::default() };
        let value = |rule: MetricRule, name| rule.value(&sums, name);
        assert_eq!(value(MetricRule::Mean, "squares"), Some(9.0));
        assert_eq!(value(MetricRule::RootMean, "squares"), Some(3.0));
        assert_eq!(value(MetricRule::ExpMean, "loss"), Some(2f64.exp()));
        assert_eq!(value(MetricRule::Mean, "accuracy"), Some(0.25));
        assert_eq!(value(MetricRule::Mean, "other"), None);
        assert_eq!(value(MetricRule::Auc, "loss"), None);
    }

    #[test]
    fn own_metrics_may_have_the_names_of_built_in_ones_that_graphs_lack() {
        let metric = |rule| OwnMetric { of: "a".into(), rule };
        let metrics = ["f1", "loss", "rmse"].map(|name| (name.to_owned(), metric(MetricRule::Auc)));
        let metrics = metrics.into();
        assert_eq!(Metric::F1.own_of(&metrics), Some("f1"));
        assert_eq!(Metric::TopK.own_of(&metrics), None);
        assert_eq!(Metric::Loss.own_of(&metrics), None);
        assert_eq!(Metric::Rmse.goal_of(&metrics), Some(Goal::Max), "the rule's, not the name's");
        let own = Metric::Own("valid/a".into());
        assert_eq!((own.own_of(&metrics), own.goal_of(&metrics)), (Some("a"), None));
    }

    #[test]
    fn rules_of_arrays_go_by_the_shape() {
        let fault = |rule: MetricRule, shape: Option<&[u64]>| rule.fault_of(shape).is_some();
        for rule in [MetricRule::MacroF1, MetricRule::Confusion] {
            assert!(!fault(rule, Some(&[3, 3])));
            assert!(fault(rule, Some(&[2, 3])) && fault(rule, Some(&[3])) && fault(rule, None));
        }
        assert!(!fault(MetricRule::Auc, Some(&[2, 100])));
        assert!(fault(MetricRule::Auc, Some(&[3, 100])) && fault(MetricRule::Auc, None));
        assert!(!fault(MetricRule::Mean, None) && fault(MetricRule::ExpMean, Some(&[1])));
    }
}
