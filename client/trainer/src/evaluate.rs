//! One checkpoint over a shard: sums of loss and hits, and what else is asked for.

use crate::{
    data::Dataset,
    error::TrainError,
    model::Model,
    objective::{Measure, add_rows, no_sums, seed_chance},
    tally::Tally,
};
use sojourn_model::TrialModel;
use sojourn_protocol::report::Sums;

/// Numbers that the largest layer may put out at once.
const NUMBERS: u64 = 1 << 22;
/// Rows that are enough to keep the machine busy.
const MAX_ROWS: u64 = 1024;

/// Evaluates the model over all rows of a shard; `tally` gets what is counted over all shards, and `progress` hears how many
/// rows are done, after each chunk.
pub(crate) fn evaluate(
    model: &Model,
    measure: Measure,
    data: &Dataset,
    tally: &mut Tally,
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
            add_rows(model, measure, &batch, &mut sums, tally)?;
            start += count;
            progress(sums.rows);
        }
        if !sums.loss.is_finite() {
            let text = format!("the loss of the evaluation is {}", sums.loss);
            return Err(TrainError::NonFinite(text));
        }
        match sums.named.iter().find(|(_, sum)| !sum.is_finite()) {
            None => Ok(sums),
            Some((name, sum)) => {
                let text = format!("the sum `{name}` of the evaluation is {sum}");
                Err(TrainError::NonFinite(text))
            }
        }
    })
}

/// Rows that go through a model at once: enough to keep the machine busy, in bounded memory.
pub(crate) fn rows_at_once(model: &TrialModel) -> Result<i64, TrainError> {
    let at_once = NUMBERS / model.widest().max(1);
    Ok(i64::try_from(at_once.clamp(1, MAX_ROWS))?)
}
