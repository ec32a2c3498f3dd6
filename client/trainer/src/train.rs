//! One hop: a shard's batches, forward, backward, update.

use crate::{
    augment::Augmenter,
    batch::{Batch, X, Y},
    data::Dataset,
    error::TrainError,
    model::Model,
    objective::Objective,
    optimizer::Update,
    schedule,
    sums::{BatchSums, Place},
    targets::{loss_unit, scaled},
};
use sojourn_protocol::{
    quantity::{SaturatingFrom as _, to_usize},
    report::Sums,
    seeds,
    spec::Sampling,
    unit::{ShardSegment, TrialContext},
};
use std::ops::{ControlFlow, Range};
use tch::{Device, Kind, Tensor};

/// Bytes of rows that are put in order at once; batches are then slices without a copy.
const ORDERED_BYTES: usize = 16 << 20;

/// The state of a hop after a batch.
pub(crate) struct BatchEnd<'a> {
    /// The next batch.
    pub(crate) end: u32,
    pub(crate) model: &'a Model,
    pub(crate) sums: &'a mut BatchSums,
}

/// Called after each batch; it may stop the hop.
pub(crate) type OnBatch<'a> = dyn FnMut(BatchEnd<'_>) -> Result<ControlFlow<()>, TrainError> + 'a;

/// Trains `model` on the batches of `hop` before `until`, or to where `on_batch` breaks it off. Returns the
/// sums, and the batch before which it stopped.
///
/// The same arithmetic gives the same bytes wherever a hop is cut in two: nothing is carried over
/// but the model, and batch `b` depends on the hop's seed and `b` alone. So it does where another hop
/// follows on the model at once.
pub(crate) fn train(
    context: &TrialContext,
    hop: &ShardSegment,
    until: u32,
    model: &mut Model,
    data: &Dataset,
    on_batch: &mut OnBatch<'_>,
) -> Result<(Sums, u32), TrainError> {
    let config = &context.config.training;
    let mut update = Update::new(config.optimizer, config.clip_norm, model)?;
    let scaling = context.targets.scaling();
    let device = data.device();
    let objective = Objective::of(context, device)?;
    let order = order(config.sampling, hop, data)?;
    let targets = match (data.labels(), scaling) {
        (Some(labels), Some(_)) => Some(scaled(labels, scaling)?),
        _ => None,
    };
    let mut rows = Rows::new(&order, config.batch_size, data, targets)?;
    let augmenter = Augmenter::of(context)?;
    let counts_hits = objective.counts_hits(model);
    let mut sums = BatchSums::new(counts_hits, loss_unit(scaling), device);
    let mut end = hop.start.batch;
    for batch in hop.start.batch..until {
        let seed = seeds::batch(hop.seed, batch);
        tch::manual_seed(seed);
        let mut taken = rows.batch(batch)?;
        if let Some(augmenter) = &augmenter {
            let x = augmenter.apply(taken.x()?, seed.cast_unsigned())?;
            taken = taken.with(X, x);
        }
        let step = hop.step_at(batch);
        let factor = schedule::factor(&config.schedule, step, context.total_steps);
        for stage in 0..model.stages.len() {
            let loss = objective.loss(model, stage, &taken)?;
            model.backward(stage, &loss.mean)?;
            update.step(model, stage, step + 1, factor)?;
            model.round()?;
            sums.add_stage(loss)?;
        }
        sums.add(Place { step, batch }, &taken)?;
        end = batch + 1;
        if on_batch(BatchEnd { end, model, sums: &mut sums })?.is_break() {
            break;
        }
    }
    let sums = sums.so_far()?;
    model.check_finite()?;
    Ok((sums, end))
}

/// The rows of a hop's batches, one after another.
fn order(sampling: Sampling, hop: &ShardSegment, data: &Dataset) -> Result<Vec<i64>, TrainError> {
    let rows = match sampling {
        Sampling::Shuffled => seeds::row_order(hop.seed, hop.shard.rows),
        Sampling::Balanced => match data.labels() {
            Some(labels) if labels.f_kind()? == Kind::Int64 => {
                let labels = Vec::<i64>::try_from(&labels.f_to_device(Device::Cpu)?)?;
                seeds::balanced_rows(hop.seed, &labels)
            }
            _ => return Err(TrainError::Unit("balanced sampling takes classes".into())),
        },
    };
    Ok(rows.into_iter().map(i64::from).collect())
}

/// A shard's rows in the order of a hop.
struct Rows<'a> {
    data: &'a Dataset,
    /// The scaled labels that are trained on in place of the labels, `[rows]`; `None` where labels aren't scaled.
    targets: Option<Tensor>,
    order: Tensor,
    batch_size: i64,
    /// Batches in one ordered stretch.
    stretch: u32,
    /// The batches of the stretch that is in order.
    held: Range<u32>,
    ordered: Option<Batch>,
}

impl<'a> Rows<'a> {
    fn new(
        order: &[i64],
        batch_size: u32,
        data: &'a Dataset,
        targets: Option<Tensor>,
    ) -> Result<Self, TrainError> {
        let batch_bytes = data.row_bytes().saturating_mul(to_usize(batch_size));
        let batch_size = i64::from(batch_size);
        let stretch = u32::saturating_from(ORDERED_BYTES / batch_bytes.max(1)).max(1);
        Ok(Self {
            data,
            targets,
            order: Tensor::f_from_slice(order)?.f_to_device(data.device())?,
            batch_size,
            stretch,
            held: 0..0,
            ordered: None,
        })
    }

    fn batch(&mut self, batch: u32) -> Result<Batch, TrainError> {
        let held = self.ordered.take().filter(|_| self.held.contains(&batch));
        let ordered = match held {
            Some(ordered) => ordered,
            None => self.order(batch)?,
        };
        let start = i64::from(batch - self.held.start) * self.batch_size;
        let count = (ordered.rows() - start).min(self.batch_size);
        let taken = ordered.narrow(start, count)?;
        self.ordered = Some(ordered);
        Ok(taken)
    }

    /// Puts the stretch in order that begins with this batch.
    fn order(&mut self, batch: u32) -> Result<Batch, TrainError> {
        let until = batch.saturating_add(self.stretch);
        let start = i64::from(batch).saturating_mul(self.batch_size);
        let end = i64::from(until).saturating_mul(self.batch_size).min(self.data.rows());
        let order = self.order.f_narrow(0, start, end - start)?;
        self.held = batch..until;
        let ordered = self.data.select(&order)?;
        Ok(match &self.targets {
            Some(targets) => ordered.with(Y, targets.f_index_select(0, &order)?),
            None => ordered,
        })
    }
}

#[cfg(test)]
#[path = "train_tests.rs"]
mod tests;
