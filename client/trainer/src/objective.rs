//! The results that a model makes of rows: a loss to train on, sums of an evaluation, predictions. The one place where built-in
//! networks and users' graphs are told apart.

use crate::{
    batch::Batch,
    error::TrainError,
    forward::{CrossEntropyOptions, Mode, forward, loss},
    model::Model,
    tally::{Tally, count_hits, count_top_k, predict, predicts_classes},
    targets::{class_weights, label_smoothing, unscaled},
};
use sojourn_protocol::{
    manifest::LabelScaling, metrics::Counting, report::Sums, spec::Loss, unit::TrialContext,
};
use std::collections::BTreeMap;
use tch::{Device, Kind, Reduction, Tensor};

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

/// The objective of training.
#[derive(Debug)]
pub(crate) struct Objective {
    /// The loss of a built-in network; a graph brings its own.
    loss: Loss,
    /// The weight of each class, where rows don't count alike.
    weights: Option<Tensor>,
    /// The share of each row's target that is spread over all classes.
    label_smoothing: f64,
}

/// The loss of a batch.
#[derive(Debug)]
pub(crate) struct BatchLoss {
    /// The mean of the loss over the rows.
    pub(crate) mean: Tensor,
    /// The outputs, `[rows, outputs]`, where hits are counted in them.
    pub(crate) outputs: Option<Tensor>,
}

impl Objective {
    /// The objective of a trial.
    pub(crate) fn of(context: &TrialContext, device: Device) -> Result<Self, TrainError> {
        let loss = context.config.training.loss;
        let (weights, label_smoothing) =
            (class_weights(context, device)?, label_smoothing(context)?);
        Ok(Self { loss, weights, label_smoothing })
    }

    /// Does a batch's loss come with outputs in which hits are counted?
    pub(crate) fn counts_hits(&self, model: &Model) -> bool {
        model.program().is_none() && predicts_classes(self.loss)
    }

    /// The loss of a stage of a training step.
    pub(crate) fn loss(
        &self,
        model: &Model,
        stage: usize,
        batch: &Batch,
    ) -> Result<BatchLoss, TrainError> {
        if let Some(program) = model.program() {
            let mean = program.loss(stage, model.tensors(), batch)?;
            return Ok(BatchLoss { mean, outputs: None });
        }
        let outputs = forward(model, batch.x()?, Mode::Train)?;
        let (weights, label_smoothing) = (self.weights.as_ref(), self.label_smoothing);
        let options = CrossEntropyOptions { weights, label_smoothing };
        let mean = loss(self.loss, &outputs, batch.y()?, options, Reduction::Mean)?;
        Ok(BatchLoss { mean, outputs: Some(outputs) })
    }
}

/// The seed of all chance that a graph has in an evaluation or a prediction.
const SEED: i64 = 0;

/// To be called before the rows of an evaluation's shard, or of a prediction: the same rows are to give the same again.
pub(crate) fn seed_chance(model: &Model) {
    if model.program().is_some() {
        tch::manual_seed(SEED);
    }
}

/// Sums of an evaluation in which nothing has been counted.
pub(crate) fn no_sums(model: &Model, measure: Measure) -> Sums {
    if model.program().is_some() {
        return Sums::default();
    }
    let correct = predicts_classes(measure.loss).then_some(0);
    let top_k = correct.and(measure.counting.top_k).map(|_| 0);
    Sums { correct, top_k, ..Sums::default() }
}

/// Adds rows to the sums of an evaluation, and to what is counted over all shards. To be called without gradients.
pub(crate) fn add_rows(
    model: &Model,
    measure: Measure,
    batch: &Batch,
    sums: &mut Sums,
    tally: &mut Tally,
) -> Result<(), TrainError> {
    sums.rows += u64::try_from(batch.rows())?;
    if let Some(program) = model.program() {
        let of_rows = program.sums(model.tensors(), batch)?;
        add_named(sums, of_rows.numbers);
        tally.arrays.add(&of_rows.arrays);
        return Ok(());
    }
    let (x, y) = (batch.x()?, batch.y()?);
    let outputs = unscaled(forward(model, x, Mode::Evaluate)?, measure.scaling)?;
    let losses = loss(measure.loss, &outputs, y, CrossEntropyOptions::default(), Reduction::None)?;
    sums.loss += losses.f_sum(Kind::Double)?.f_double_value(&[])?;
    if let Some(correct) = &mut sums.correct {
        let predicted = predict(&outputs)?;
        *correct += count_hits(&predicted, y)?;
        tally.by_class.take(&predicted, y)?;
    }
    if let (Some(hits), Some(k)) = (&mut sums.top_k, measure.counting.top_k) {
        *hits += count_top_k(&outputs, y, k)?;
    }
    Ok(())
}

/// The sum of a graph's evaluation that all models have.
const LOSS: &str = "loss";

/// Adds what a graph computed of some rows.
fn add_named(sums: &mut Sums, named: BTreeMap<String, f64>) {
    for (name, value) in named {
        if name == LOSS {
            sums.loss += value;
        } else {
            *sums.named.entry(name).or_default() += value;
        }
    }
}

/// The predictions `[rows, outputs]` in single precision, in the labels' units. To be called without gradients.
pub(crate) fn predictions(
    model: &Model,
    batch: &Batch,
    scaling: Option<LabelScaling>,
) -> Result<Tensor, TrainError> {
    let Some(program) = model.program() else {
        return unscaled(forward(model, batch.x()?, Mode::Evaluate)?, scaling);
    };
    let outputs = program.outputs(model.tensors(), batch)?.f_to_kind(Kind::Float)?;
    Ok(outputs.f_reshape([batch.rows(), -1])?)
}
