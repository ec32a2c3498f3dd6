//! What a search compares trials by, and what its evaluations have to count for that.

use super::{DEFAULT_TOP_K, Loss, Metric, SearchSpec};
use crate::{
    manifest::Labels,
    metrics::{ClassDetail, Counting, MOST_COUNTED},
};

impl SearchSpec {
    /// Can trials on data with these labels be compared by its metric?
    ///
    /// # Errors
    /// What doesn't go with the labels.
    pub fn check(&self, labels: &Labels) -> Result<(), String> {
        let (loss, wanted) = match labels {
            Labels::Classes(_) => (Loss::CrossEntropy, "numbers"),
            Labels::Number => (Loss::Mse, "classes"),
        };
        let name = self.metric.name();
        if !self.metric.suits(loss) {
            return Err(format!("metric `{name}` needs labels that are {wanted}"));
        }
        let classes = labels.outputs();
        match (self.top_k, labels) {
            (Some(_), Labels::Number) => {
                return Err("`search.top_k` needs labels that are classes".into());
            }
            (Some(k), Labels::Classes(_)) if k == 0 || k >= classes => {
                return Err(format!(
                    "`search.top_k` is {k}; of {classes} classes, 1 to {} is wanted",
                    classes.saturating_sub(1)
                ));
            }
            _ => {}
        }
        match self.metric {
            Metric::TopK if self.k(labels).is_none() => Err(format!(
                "metric `{name}` with k = {DEFAULT_TOP_K} says nothing about {classes} classes: give a smaller `search.top_k`"
            )),
            Metric::F1 if classes > MOST_COUNTED => {
                Err(format!("metric `{name}` takes at most {MOST_COUNTED} classes, not {classes}"))
            }
            _ => Ok(()),
        }
    }

    /// k of top-k accuracy; none where it would say nothing.
    #[must_use]
    pub fn k(&self, labels: &Labels) -> Option<u32> {
        match labels {
            Labels::Classes(_) => {
                self.top_k.or((labels.outputs() > DEFAULT_TOP_K).then_some(DEFAULT_TOP_K))
            }
            Labels::Number => None,
        }
    }

    /// What the search's own evaluations count: what its metric needs.
    #[must_use]
    pub fn counting(&self, labels: &Labels) -> Counting {
        match self.metric {
            Metric::TopK => Counting { top_k: self.k(labels), ..Counting::default() },
            Metric::F1 => Counting { by_class: ClassDetail::Totals, ..Counting::default() },
            Metric::Accuracy | Metric::Loss | Metric::Rmse => Counting::default(),
        }
    }

    /// What evaluations outside the search count: all that there is.
    #[must_use]
    pub fn full_counting(&self, labels: &Labels) -> Counting {
        let by_class = match labels {
            Labels::Classes(_) => ClassDetail::fullest(labels.outputs()),
            Labels::Number => ClassDetail::Nothing,
        };
        Counting { top_k: self.k(labels), by_class }
    }
}
