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
    minibatches::{Minibatches, PassBatch},
    quantity::{SaturatingFrom as _, to_usize},
    report::Sums,
    seeds,
    spec::{Sampling, TrainingConfig},
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
    let targets = match (data.labels(), scaling) {
        (Some(labels), Some(_)) => Some(scaled(labels, scaling)?),
        _ => None,
    };
    let mut rows = Rows::new(config, hop, data, targets);
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

/// The rows of one of a hop's passes, one batch after another.
fn order(
    sampling: Sampling,
    pass_seed: u64,
    rows: u32,
    data: &Dataset,
) -> Result<Tensor, TrainError> {
    let rows = match sampling {
        Sampling::Shuffled => seeds::row_order(pass_seed, rows),
        Sampling::Balanced => match data.labels() {
            Some(labels) if labels.f_kind()? == Kind::Int64 => {
                let labels = Vec::<i64>::try_from(&labels.f_to_device(Device::Cpu)?)?;
                seeds::balanced_rows(pass_seed, &labels)
            }
            _ => return Err(TrainError::Unit("balanced sampling takes classes".into())),
        },
    };
    let rows: Vec<i64> = rows.into_iter().map(i64::from).collect();
    Ok(Tensor::f_from_slice(&rows)?.f_to_device(data.device())?)
}

/// A shard's rows in the order of a hop.
struct Rows<'a> {
    data: &'a Dataset,
    /// The scaled labels that are trained on in place of the labels, `[rows]`; `None` where labels aren't scaled.
    targets: Option<Tensor>,
    sampling: Sampling,
    minibatches: Minibatches,
    hop: ShardSegment,
    /// The order of a pass, and which one that is.
    pass: Option<(u32, Tensor)>,
    /// Batches in one ordered stretch.
    stretch: u32,
    /// The batches of the stretch that is in order.
    held: Range<u32>,
    ordered: Option<Batch>,
}

impl<'a> Rows<'a> {
    fn new(
        config: &TrainingConfig,
        hop: &ShardSegment,
        data: &'a Dataset,
        targets: Option<Tensor>,
    ) -> Self {
        let minibatches = config.minibatches();
        let batch_bytes = data.row_bytes().saturating_mul(to_usize(minibatches.batch_size()));
        let stretch = u32::saturating_from(ORDERED_BYTES / batch_bytes.max(1)).max(1);
        Self {
            data,
            targets,
            sampling: config.sampling,
            minibatches,
            hop: *hop,
            pass: None,
            stretch,
            held: 0..0,
            ordered: None,
        }
    }

    fn batch(&mut self, batch: u32) -> Result<Batch, TrainError> {
        let held = self.ordered.take().filter(|_| self.held.contains(&batch));
        let ordered = match held {
            Some(ordered) => ordered,
            None => self.order(batch)?,
        };
        let size = i64::from(self.minibatches.batch_size());
        let start = i64::from(batch - self.held.start) * size;
        let count = (ordered.rows() - start).min(size);
        let taken = ordered.narrow(start, count)?;
        self.ordered = Some(ordered);
        Ok(taken)
    }

    /// Puts the stretch in order that begins with this batch, and ends with its pass at the latest.
    fn order(&mut self, batch: u32) -> Result<Batch, TrainError> {
        let rows = self.hop.shard.rows;
        let PassBatch { pass, batch: first } = self.minibatches.place(rows, batch);
        let of_pass = match self.pass.take().filter(|(held, _)| *held == pass) {
            Some((_, order)) => order,
            None => order(self.sampling, seeds::pass(self.hop.seed, pass), rows, self.data)?,
        };
        let size = i64::from(self.minibatches.batch_size());
        let left = self.minibatches.of_pass(rows).saturating_sub(first);
        let batches = self.stretch.min(left);
        let start = i64::from(first).saturating_mul(size);
        let end = (start + i64::from(batches).saturating_mul(size)).min(self.data.rows());
        let order = of_pass.f_narrow(0, start, end - start)?;
        self.pass = Some((pass, of_pass));
        self.held = batch..batch.saturating_add(batches);
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
