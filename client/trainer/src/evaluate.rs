//! One checkpoint over a shard: sums of loss and hits, and what else is asked for.

use crate::{
    data::Dataset,
    error::TrainError,
    forward::{Mode, forward, loss},
    model::Model,
    tally::{ClassTally, count_hits, count_top_k, predict, predicts_classes},
    targets::unscaled,
};
use sojourn_model::TrialModel;
use sojourn_protocol::{manifest::LabelScaling, metrics::Counting, report::Sums, spec::Loss};
use tch::{Kind, Reduction};

/// Numbers that the largest layer may put out at once.
const NUMBERS: u64 = 1 << 22;
/// Rows that are enough to keep the machine busy.
const MAX_ROWS: u64 = 1024;

/// The quantities to compute.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measure {
    /// The loss; it says what labels are.
    pub(crate) loss: Loss,
    /// How labels are scaled; the loss is in their own units.
    pub(crate) scaling: Option<LabelScaling>,
    /// Counts beside it.
    pub(crate) counting: Counting,
}

/// Evaluates the model over all rows of a shard; `by_class` gets what is counted by class, and
/// `progress` hears how many rows are done, after each chunk.
pub(crate) fn evaluate(
    model: &Model,
    measure: Measure,
    data: &Dataset,
    by_class: &mut ClassTally,
    progress: &mut dyn FnMut(u64),
) -> Result<Sums, TrainError> {
    let (rows, _) = data.size()?;
    let at_once = rows_at_once(model.trial_model())?;
    let correct = predicts_classes(measure.loss).then_some(0);
    let top_k = correct.and(measure.counting.top_k).map(|_| 0);
    let mut sums = Sums { correct, top_k, ..Sums::default() };
    tch::no_grad(|| {
        let mut start = 0;
        while start < rows {
            let count = at_once.min(rows - start);
            let (x, y) = data.range(start, count)?;
            let outputs = unscaled(forward(model, &x, Mode::Evaluate)?, measure.scaling)?;
            let losses = loss(measure.loss, &outputs, &y, None, Reduction::None)?;
            sums.rows += u64::try_from(count)?;
            sums.loss += losses.f_sum(Kind::Double)?.f_double_value(&[])?;
            if let Some(correct) = &mut sums.correct {
                let predicted = predict(&outputs)?;
                *correct += count_hits(&predicted, &y)?;
                by_class.take(&predicted, &y)?;
            }
            if let (Some(hits), Some(k)) = (&mut sums.top_k, measure.counting.top_k) {
                *hits += count_top_k(&outputs, &y, k)?;
            }
            start += count;
            progress(sums.rows);
        }
        if sums.loss.is_finite() {
            return Ok(sums);
        }
        Err(TrainError::NonFinite(format!("the loss of the evaluation is {}", sums.loss)))
    })
}

/// Rows that go through a model at once: enough to keep the machine busy, in bounded memory.
pub(crate) fn rows_at_once(model: &TrialModel) -> Result<i64, TrainError> {
    let at_once = NUMBERS / model.widest().max(1);
    Ok(i64::try_from(at_once.clamp(1, MAX_ROWS))?)
}
