//! One checkpoint over a shard: sums of loss and hits, and what else is asked for.

use crate::{
    data::Dataset,
    error::TrainError,
    model::Model,
    objective::{Measure, add_rows, no_sums, seed_chance},
    tally::ClassTally,
};
use sojourn_model::TrialModel;
use sojourn_protocol::report::Sums;

/// Numbers that the largest layer may put out at once.
const NUMBERS: u64 = 1 << 22;
/// Rows that are enough to keep the machine busy.
const MAX_ROWS: u64 = 1024;

/// Evaluates the model over all rows of a shard; `by_class` gets what is counted by class, and
/// `progress` hears how many rows are done, after each chunk.
pub(crate) fn evaluate(
    model: &Model,
    measure: Measure,
    data: &Dataset,
    by_class: &mut ClassTally,
    progress: &mut dyn FnMut(u64),
) -> Result<Sums, TrainError> {
    let rows = data.rows();
    let at_once = rows_at_once(model.trial_model())?;
    let mut sums = no_sums(model, measure);
    seed_chance(model);
    tch::no_grad(|| {
        let mut start = 0;
        while start < rows {
            let count = at_once.min(rows - start);
            let batch = data.range(start, count)?;
            add_rows(model, measure, &batch, &mut sums, by_class)?;
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
