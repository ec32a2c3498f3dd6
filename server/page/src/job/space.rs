//! The declared space of a job's search, by which charts scale their axes.

use serde::Serialize;
use serde_json::Value;
use sojourn_protocol::{
    spec::dimension::{Chooser, Normal, Range},
    view::JobDetail,
};
use std::collections::BTreeMap;

/// Values of a choice that are named on an axis at most.
const MAX_VALUES: usize = 64;

/// The scale of a dimension.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub(super) enum Scale {
    /// Numbers between two bounds.
    Range {
        low: f64,
        high: f64,
        /// Evenly in the logarithm?
        log: bool,
    },
    /// Some values, in the order in which the job file names them.
    Choice { values: Vec<Value> },
}

/// The scales of all dimensions, by the names that trials' settings have.
#[derive(Debug, Default)]
struct Scales(BTreeMap<String, Scale>);

impl Chooser for Scales {
    fn index(&mut self, _: &str, _: usize) -> usize {
        0
    }

    fn one_of(&mut self, name: &str, values: &mut dyn ExactSizeIterator<Item = Value>) -> usize {
        // Models may have a dimension of the same name with other values.
        let values: Vec<Value> = values.take(MAX_VALUES + 1).collect();
        if (2..=MAX_VALUES).contains(&values.len()) {
            self.0.insert(name.to_owned(), Scale::Choice { values });
        }
        0
    }

    fn number(&mut self, name: &str, range: &Range) -> f64 {
        let Range { low, high, spread, .. } = *range;
        let log = spread.is_logarithmic();
        self.0.insert(name.to_owned(), Scale::Range { low, high, log });
        low
    }

    fn normal(&mut self, name: &str, normal: &Normal) -> f64 {
        // Without bounds the values of trials are the scale.
        if let Some([low, high]) = normal.truncate {
            self.0.insert(name.to_owned(), Scale::Range { low, high, log: false });
        }
        normal.mean
    }

    fn takes_absent(&self) -> bool {
        true
    }

    fn chosen(&mut self, _: &str, _: Value) {}
}

/// The scales of a job's dimensions, of its space as it is now.
pub(super) fn scales(job: &JobDetail) -> BTreeMap<String, Scale> {
    let mut spec = job.spec.clone();
    if let Some(space) = &job.space {
        spec.models.clone_from(&space.models);
        spec.training.clone_from(&space.training);
    }
    let mut scales = Scales::default();
    for model in 0..spec.models.len() {
        // Without a combination of the first values, the dimensions that were asked for are known all the same.
        drop(spec.close(model, &mut scales));
    }
    scales.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use sojourn_protocol::spec::{Dimension, dimension::Spread};

    #[test]
    fn axes_have_the_scales_that_the_job_file_declares() {
        let mut job: JobDetail =
            serde_json::from_str(include_str!("../../tests/detail.json")).unwrap();
        let optimizer = &mut job.spec.training.optimizer;
        optimizer.lr = Dimension::Range(Range::new(Spread::LogUniform, 1e-4, 0.1));
        optimizer.momentum = Dimension::Range(Range::new(Spread::Uniform, 0.001, 0.9));
        let shown = serde_json::to_value(scales(&job)).unwrap();
        let expected = json!({
            "model[0].hidden": { "values": [[64], [128, 64]] },
            "training.optimizer.lr": { "low": 1e-4, "high": 0.1, "log": true },
            // The values span a factor of 900, and the scale is even all the same.
            "training.optimizer.momentum": { "low": 0.001, "high": 0.9, "log": false },
        });
        assert_eq!(shown, expected);
    }
}
