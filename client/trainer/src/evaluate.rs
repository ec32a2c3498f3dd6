//! One checkpoint over a shard: sums of loss and hits.

use crate::{
    data::Dataset,
    error::TrainError,
    forward::{Mode, forward, loss},
    model::Model,
    train::{classes, count_correct},
};
use sojourn_model::Network;
use sojourn_protocol::{report::Sums, spec::Loss};
use tch::{Kind, Reduction};

/// Numbers that the largest layer may put out at once.
const NUMBERS: u64 = 1 << 22;
/// Rows that are enough to keep the machine busy.
const MAX_ROWS: u64 = 1024;

/// Evaluates the model over all rows of a shard; `progress` hears how many are done, after each chunk.
pub(crate) fn evaluate(
    model: &Model,
    kind: Loss,
    data: &Dataset,
    progress: &mut dyn FnMut(u64),
) -> Result<Sums, TrainError> {
    let (rows, _) = data.x.size2()?;
    let at_once = rows_at_once(model.network())?;
    let mut sums = Sums { correct: classes(kind).then_some(0), ..Sums::default() };
    tch::no_grad(|| {
        let mut start = 0;
        while start < rows {
            let count = at_once.min(rows - start);
            let (x, y) = (data.x.f_narrow(0, start, count)?, data.y.f_narrow(0, start, count)?);
            let outputs = forward(model, &x, Mode::Evaluate)?;
            let losses = loss(kind, &outputs, &y, Reduction::None)?;
            sums.rows += u64::try_from(count)?;
            sums.loss += losses.f_sum(Kind::Double)?.f_double_value(&[])?;
            if let Some(correct) = &mut sums.correct {
                *correct += count_correct(&outputs, &y)?;
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

/// Rows that go through a network at once: enough to keep the machine busy, in bounded memory.
pub(crate) fn rows_at_once(network: &Network) -> Result<i64, TrainError> {
    let at_once = NUMBERS / network.widest().max(1);
    Ok(i64::try_from(at_once.clamp(1, MAX_ROWS))?)
}
