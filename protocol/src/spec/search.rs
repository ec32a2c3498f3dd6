//! The metric that a search compares trials by, and the counts that its evaluations need for it.

use super::{
    CombinationRule, DEFAULT_TOP_K, Goal, Loss, MAX_SUM_NAME, Metric, MetricRule, OwnMetric,
    SearchMethod, SearchSpec, Spread, Stopping, is_sum_name,
};
use crate::{
    manifest::Labels,
    metrics::{ClassDetail, Counting, MAX_COUNTED_CLASSES},
    money::MicroUsd,
    quantity::SaturatingFrom as _,
    sums::MAX_NAMED_SUMS,
    time::Millis,
};
use std::collections::BTreeMap;

impl SearchSpec {
    /// A search with the defaults for all else: it ends when all trials have trained all epochs.
    #[must_use]
    pub fn new(method: SearchMethod, metric: Metric) -> Self {
        let goal = metric.goal().unwrap_or(Goal::Min);
        let (metrics, spread) = (BTreeMap::new(), Spread::Breadth);
        let constraints = Vec::new();
        let (top_k, target, wall_time, stopping) = (None, None, None, None);
        Self {
            method,
            combinations: CombinationRule::All,
            folds: None,
            refit: false,
            constraints,
            metric,
            goal,
            metrics,
            top_k,
            target,
            wall_time,
            total_epochs: None,
            total_cost: None,
            history: None,
            spread,
            stopping,
        }
    }

    /// Can a procedure go with a rule of early stopping?
    ///
    /// # Errors
    /// Why not.
    pub fn check_combination(method: &SearchMethod, rule: &Stopping) -> Result<(), String> {
        let (method, rule) = (method, rule.name());
        match method {
            SearchMethod::Pbt(_) | SearchMethod::Epochs { .. } => Err(format!(
                "is `\"{rule}\"`, and `method = \"{}\"` says itself which trials go on",
                method.name()
            )),
            _ => Ok(()),
        }
    }

    /// Random combinations before the first suggestion: fewer where an earlier job's count.
    #[must_use]
    pub fn startup(&self) -> u32 {
        let SearchMethod::Tpe(tpe) = self.method else { return 0 };
        let known = self.history.as_ref().map_or(0, |history| history.trials.len());
        tpe.startup.saturating_sub(u32::saturating_from(known)).min(tpe.trials)
    }

    /// Is a value of the metric as good as the target?
    #[must_use]
    pub fn reaches_target(&self, value: f64) -> bool {
        self.target.is_some_and(|target| match self.goal {
            Goal::Min => value <= target,
            Goal::Max => value >= target,
        })
    }

    /// Can trials on data with these labels be compared by its metric?
    ///
    /// # Errors
    /// A metric that doesn't suit the labels.
    pub fn check(&self, labels: &Labels) -> Result<(), String> {
        let (loss, wanted) = match labels {
            Labels::Classes(_) => (Loss::CrossEntropy, "numbers"),
            Labels::Number => (Loss::Mse, "classes"),
            Labels::None => (Loss::Own, "known as such"),
        };
        self.check_metrics()?;
        let name = self.metric.name();
        if self.metric.rule_of(&self.metrics) == Some(MetricRule::Confusion) {
            return Err(format!("metric `{name}` is a matrix, and no number to compare by"));
        }
        if self.own().is_none() && !self.metric.suits(loss) {
            return Err(format!("metric `{name}` needs labels that are {wanted}"));
        }
        let classes = labels.outputs();
        match (self.top_k, labels) {
            (Some(_), Labels::Number | Labels::None) => {
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
        if let Some(target) = self.target {
            let check = self.metric.check_target(target, &self.metrics);
            check.map_err(|why| format!("`search.target` {why}"))?;
        }
        if self.total_epochs == Some(0) {
            return Err("`search.total_epochs` is 0: nothing would be trained".into());
        }
        if self.total_cost == Some(MicroUsd(0)) {
            return Err("`search.total_cost` is nothing: no bought machine would train".into());
        }
        if self.history.is_some() && !matches!(self.method, SearchMethod::Tpe(_)) {
            return Err(
                "`search.history` goes with `method = \"tpe\"`, which learns from it".into()
            );
        }
        if self.wall_time == Some(Millis(0)) {
            return Err("`search.wall_time` is 0: nothing would be trained".into());
        }
        match &self.metric {
            _ if self.own().is_some() => Ok(()),
            Metric::TopK if self.k(labels).is_none() => Err(format!(
                "metric `{name}` with k = {DEFAULT_TOP_K} says nothing about {classes} classes: give a smaller `search.top_k`"
            )),
            Metric::F1 if classes > MAX_COUNTED_CLASSES => Err(format!(
                "metric `{name}` takes at most {MAX_COUNTED_CLASSES} classes, not {classes}"
            )),
            _ => Ok(()),
        }
    }

    /// Can there be these `[metrics]`?
    fn check_metrics(&self) -> Result<(), String> {
        if self.metrics.len() > MAX_NAMED_SUMS {
            return Err(format!("more than {MAX_NAMED_SUMS} `metrics`"));
        }
        for (name, metric) in &self.metrics {
            if let Some(wrong) = [name, &metric.of].into_iter().find(|name| !is_sum_name(name)) {
                let wrong: String = wrong.chars().take(MAX_SUM_NAME).collect();
                return Err(format!("`{wrong}` can't be the name of a metric or of a sum"));
            }
        }
        Ok(())
    }

    /// The name of its metric, where that is a user's own.
    #[must_use]
    pub fn own(&self) -> Option<&str> {
        self.metric.own_of(&self.metrics)
    }

    /// The sum of a user's own model that its metric is computed from.
    #[must_use]
    pub fn own_sum(&self) -> Option<&str> {
        let name = self.own()?;
        Some(self.metrics.get(name).map_or(name, |metric| metric.of.as_str()))
    }

    /// k of top-k accuracy; none where it would say nothing.
    #[must_use]
    pub fn k(&self, labels: &Labels) -> Option<u32> {
        match labels {
            Labels::Classes(_) => {
                self.top_k.or((labels.outputs() > DEFAULT_TOP_K).then_some(DEFAULT_TOP_K))
            }
            Labels::Number | Labels::None => None,
        }
    }

    /// The counts of the search's own evaluations: those that its metric needs.
    #[must_use]
    pub fn counting(&self, labels: &Labels) -> Counting {
        match &self.metric {
            Metric::TopK => Counting { top_k: self.k(labels), ..Counting::default() },
            Metric::F1 => Counting { by_class: ClassDetail::Totals, ..Counting::default() },
            Metric::Accuracy | Metric::Loss | Metric::Rmse | Metric::Own(_) => Counting::default(),
        }
    }

    /// The counts of evaluations outside the search: all that there are.
    #[must_use]
    pub fn full_counting(&self, labels: &Labels) -> Counting {
        let by_class = match labels {
            Labels::Classes(_) => ClassDetail::fullest(labels.outputs()),
            Labels::Number | Labels::None => ClassDetail::Nothing,
        };
        Counting { top_k: self.k(labels), by_class }
    }
}

impl Metric {
    /// Could it ever have this value? `metrics`: `[metrics]`.
    pub(crate) fn check_target(
        &self,
        target: f64,
        metrics: &BTreeMap<String, OwnMetric>,
    ) -> Result<(), String> {
        let finite = (target.is_finite(), "a finite number");
        let ratio = ((0.0..=1.0).contains(&target), "a number from 0 to 1");
        let (can, wanted) = match (self, self.rule_of(metrics)) {
            (_, Some(MetricRule::MacroF1 | MetricRule::Auc)) => ratio,
            (_, Some(_)) | (Metric::Own(_), None) => finite,
            (Metric::Accuracy | Metric::TopK | Metric::F1, None) => ratio,
            (Metric::Loss | Metric::Rmse, None) => {
                (target.is_finite() && target >= 0.0, "a number from 0 up")
            }
        };
        let name = self.name();
        if can { Ok(()) } else { Err(format!("is {target}; of `{name}` {wanted} is wanted")) }
    }
}
