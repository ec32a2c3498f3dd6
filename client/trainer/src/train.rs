//! One hop: a shard's batches, forward, backward, update.

use crate::{
    augment::Augmenter,
    data::Dataset,
    error::TrainError,
    forward::{Mode, forward, loss},
    model::Model,
    optimizer::Update,
    schedule,
    tally::{count_hits, predict},
};
use sojourn_protocol::{report::Sums, seeds, spec::Loss, unit::Hop};
use std::ops::Range;
use tch::{Reduction, Tensor};

/// Bytes of rows that are put in order at once; batches are then slices without a copy.
const ORDERED_BYTES: usize = 16 << 20;

/// Trains `model` on the batches from `hop.start.batch` to `until`, telling `progress` how many are
/// done after each.
///
/// The same arithmetic gives the same bytes wherever a hop is cut in two: nothing is carried over
/// but the model, and batch `b` depends on the hop's seed and `b` alone.
pub(crate) fn train(
    hop: &Hop,
    until: u32,
    model: &mut Model,
    data: &Dataset,
    progress: &mut dyn FnMut(u32),
) -> Result<Sums, TrainError> {
    let config = &hop.context.config.training;
    let mut update = Update::new(config.optimizer, config.clip_norm, model)?;
    let mut rows = Rows::new(hop, data)?;
    let augmenter = Augmenter::of(&hop.context)?;
    let mut sums = Sums { correct: classes(config.loss).then_some(0), ..Sums::default() };
    for batch in hop.start.batch..until {
        let seed = seeds::batch(hop.seed, batch);
        tch::manual_seed(seed);
        let (mut x, y) = rows.batch(batch)?;
        if let Some(augmenter) = &augmenter {
            x = augmenter.apply(&x, seed.cast_unsigned())?;
        }
        let outputs = forward(model, &x, Mode::Train)?;
        let mean = loss(config.loss, &outputs, &y, Reduction::Mean)?;
        model.backward(&mean)?;
        let step = hop.position_at(batch).step;
        let factor = schedule::factor(&config.schedule, step, hop.context.total_steps);
        update.step(model, step + 1, factor)?;
        model.round()?;

        // On a CPU there is no queue of work that reading a number would wait for.
        let mean = mean.f_double_value(&[])?;
        if !mean.is_finite() {
            let text = format!("the loss of step {step} (batch {batch} of the shard) is {mean}");
            return Err(TrainError::NonFinite(text));
        }
        let count = y.size1()?;
        sums.rows += u64::try_from(count)?;
        #[expect(clippy::cast_precision_loss, reason = "a batch has fewer than 2^53 rows")]
        let weight = count as f64;
        sums.loss += mean * weight;
        if let Some(correct) = &mut sums.correct {
            *correct += count_correct(&outputs, &y)?;
        }
        progress(batch + 1 - hop.start.batch);
    }
    model.check_finite()?;
    Ok(sums)
}

/// Is the largest output a class?
pub(crate) fn classes(loss: Loss) -> bool {
    matches!(loss, Loss::CrossEntropy)
}

/// Rows whose largest output is the label's.
pub(crate) fn count_correct(outputs: &Tensor, y: &Tensor) -> Result<u64, TrainError> {
    tch::no_grad(|| count_hits(&predict(outputs)?, y))
}

/// A shard's rows in the order of a hop.
struct Rows<'a> {
    data: &'a Dataset,
    order: Tensor,
    batch_size: i64,
    rows: i64,
    /// Batches in one ordered stretch.
    stretch: u32,
    held: Range<u32>,
    x: Tensor,
    y: Tensor,
}

impl<'a> Rows<'a> {
    fn new(hop: &Hop, data: &'a Dataset) -> Result<Self, TrainError> {
        let order: Vec<i64> =
            seeds::row_order(hop.seed, hop.shard.rows).into_iter().map(i64::from).collect();
        let (rows, features) = data.x.size2()?;
        let batch_size = i64::from(hop.context.config.training.batch_size);
        let batch_bytes = usize::try_from(features.saturating_mul(4).saturating_mul(batch_size))?;
        let stretch = u32::try_from(ORDERED_BYTES / batch_bytes.max(1)).unwrap_or(u32::MAX).max(1);
        Ok(Self {
            data,
            order: Tensor::f_from_slice(&order)?,
            batch_size,
            rows,
            stretch,
            held: 0..0,
            x: Tensor::new(),
            y: Tensor::new(),
        })
    }

    fn batch(&mut self, batch: u32) -> Result<(Tensor, Tensor), TrainError> {
        if !self.held.contains(&batch) {
            let until = batch.saturating_add(self.stretch);
            let start = i64::from(batch).saturating_mul(self.batch_size);
            let end = i64::from(until).saturating_mul(self.batch_size).min(self.rows);
            let order = self.order.f_narrow(0, start, end - start)?;
            self.x = self.data.x.f_index_select(0, &order)?;
            self.y = self.data.y.f_index_select(0, &order)?;
            self.held = batch..until;
        }
        let start = i64::from(batch - self.held.start) * self.batch_size;
        let left = self.y.size1()? - start;
        let count = left.min(self.batch_size);
        Ok((self.x.f_narrow(0, start, count)?, self.y.f_narrow(0, start, count)?))
    }
}

#[cfg(test)]
#[path = "train_tests.rs"]
mod tests;
