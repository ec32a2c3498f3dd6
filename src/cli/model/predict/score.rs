//! Predictions against labels.

use crate::cli::render::text;
use serde::Serialize;
use sojourn_protocol::{classes::ClassIndex, manifest::Labels};

/// Sums over the rows whose label the model could have said.
pub(super) struct Score<'a> {
    /// Index by name; none where labels are numbers.
    classes: Option<ClassIndex<'a>>,
    rows: u64,
    unknown: u64,
    loss: f64,
    correct: u64,
}

/// The scores so far.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Scored {
    /// Rows with a label that the model could have said.
    labelled: u64,
    /// Rows with another.
    unknown: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    accuracy: Option<f64>,
    /// Mean cross-entropy.
    #[serde(skip_serializing_if = "Option::is_none")]
    loss: Option<f64>,
    /// Root of the mean squared error.
    #[serde(skip_serializing_if = "Option::is_none")]
    rmse: Option<f64>,
}

impl<'a> Score<'a> {
    pub(super) fn new(labels: &'a Labels) -> Self {
        let classes = match labels {
            Labels::Classes(names) => Some(ClassIndex::new(names)),
            Labels::Number | Labels::None => None,
        };
        Self { classes, rows: 0, unknown: 0, loss: 0.0, correct: 0 }
    }

    /// Takes a row's outputs and its label.
    pub(super) fn add(&mut self, outputs: &[f32], label: &str) {
        let label = label.trim();
        let Some(classes) = &self.classes else {
            let (Some(output), Ok(label)) = (outputs.first(), label.parse::<f64>()) else {
                self.unknown += 1;
                return;
            };
            self.rows += 1;
            self.loss += (f64::from(*output) - label).powi(2);
            return;
        };
        let Some(class) = classes.place(label) else {
            self.unknown += 1;
            return;
        };
        self.rows += 1;
        self.correct += u64::from(best(outputs) == class);
        self.loss += log_sum(outputs) - outputs.get(class).copied().map_or(f64::NAN, f64::from);
    }

    /// `None` where no row had a label.
    pub(super) fn finish(self) -> Option<Scored> {
        if self.rows + self.unknown == 0 {
            return None;
        }
        #[expect(clippy::cast_precision_loss, reason = "row counts are far below 2^53")]
        let ratio = |sum: f64| (self.rows > 0).then(|| sum / self.rows as f64);
        let (accuracy, loss, rmse) = match self.classes {
            #[expect(clippy::cast_precision_loss, reason = "row counts are far below 2^53")]
            Some(_) => (ratio(self.correct as f64), ratio(self.loss), None),
            None => (None, None, ratio(self.loss).map(f64::sqrt)),
        };
        Some(Scored { labelled: self.rows, unknown: self.unknown, accuracy, loss, rmse })
    }
}

impl Scored {
    pub(super) fn text(&self) -> String {
        let values = [("accuracy", self.accuracy), ("loss", self.loss), ("RMSE", self.rmse)];
        let values = values.into_iter().filter_map(|(name, value)| {
            value.map(|value| format!("{name} {}", text::metric(value)))
        });
        let values = values.collect::<Vec<_>>().join(", ");
        let rows = text::counted(self.labelled, "labelled row");
        let known = if self.labelled == 0 { rows.clone() } else { format!("{values} over {rows}") };
        match self.unknown {
            0 => known,
            unknown => {
                let rows = text::counted(unknown, "row");
                format!("{known}; {rows} with labels that the model doesn't know")
            }
        }
    }
}

/// The place of the largest output, the first of equals.
pub(super) fn best(outputs: &[f32]) -> usize {
    let mut best = (0, f32::NEG_INFINITY);
    for (index, output) in outputs.iter().enumerate() {
        if *output > best.1 {
            best = (index, *output);
        }
    }
    best.0
}

/// The outputs as ratios that sum to 1.
pub(super) fn softmax(outputs: &[f32]) -> Vec<f64> {
    let sum = log_sum(outputs);
    outputs.iter().map(|output| (f64::from(*output) - sum).exp()).collect()
}

/// The logarithm of the sum of the outputs' exponentials, which don't overflow on the way.
fn log_sum(outputs: &[f32]) -> f64 {
    let top = outputs.iter().copied().map(f64::from).fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = outputs.iter().map(|output| (f64::from(*output) - top).exp()).sum();
    top + sum.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_sum_to_one_however_large_the_outputs() {
        for outputs in [[1.0, 2.0, 3.0], [1e30, -1e30, 0.0], [0.0; 3]] {
            let sum: f64 = softmax(&outputs).iter().sum();
            assert!((sum - 1.0).abs() < 1e-12, "{outputs:?}");
        }
        assert_eq!(softmax(&[0.0, 0.0]), [0.5, 0.5]);
        assert_eq!((best(&[1.0, 3.0, 3.0]), best(&[]), best(&[f32::NAN, -1.0])), (1, 0, 1));
    }

    #[test]
    fn classes_are_counted_where_the_model_knows_them() {
        let labels = Labels::Classes(vec!["a".into(), "b".into()]);
        let mut score = Score::new(&labels);
        score.add(&[2.0, 0.0], "a");
        score.add(&[2.0, 0.0], " b ");
        score.add(&[2.0, 0.0], "z");
        let scored = score.finish().unwrap();
        let sure = (2f64.exp() / (2f64.exp() + 1.0)).ln();
        assert_eq!((scored.labelled, scored.unknown, scored.accuracy), (2, 1, Some(0.5)));
        assert!((scored.loss.unwrap() - (2.0 - 2.0 * sure) / 2.0).abs() < 1e-12, "{scored:?}");
        assert_eq!(
            scored.text(),
            "accuracy 0.5000, loss 1.1269 over 2 labelled rows; 1 row with labels that the model doesn't know"
        );
        assert_eq!(Score::new(&labels).finish(), None);
        let mut score = Score::new(&labels);
        score.add(&[0.0, 0.0], "");
        let text = score.finish().unwrap().text();
        assert_eq!(text, "0 labelled rows; 1 row with labels that the model doesn't know");
    }

    #[test]
    fn numbers_have_a_root_mean_squared_error() {
        let mut score = Score::new(&Labels::Number);
        score.add(&[1.0], "4");
        score.add(&[1.0], "-3");
        score.add(&[1.0], "n/a");
        let scored = score.finish().unwrap();
        assert_eq!((scored.labelled, scored.unknown, scored.rmse), (2, 1, Some(12.5f64.sqrt())));
        assert_eq!(scored.accuracy, None);
    }
}
