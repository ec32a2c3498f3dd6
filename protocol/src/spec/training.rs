//! How a trial is trained: loss, optimiser, schedule.

use super::{
    augment::{Augment, AugmentSpace},
    class_weights::ClassWeights,
    combination_rule::Usage,
    dimension::{Chooser, Dimension, Value, is_default},
};
use crate::minibatches::Minibatches;
use serde::{Deserialize, Serialize};

/// The most epochs that a trial may train for.
pub const MAX_EPOCHS: u32 = 1_000_000;

/// The most passes over a shard in one visit.
pub const MAX_LOCAL_EPOCHS: u32 = 1000;

/// Rows in a batch, where the job file says nothing.
pub const DEFAULT_BATCH_SIZE: u32 = 32;

/// The loss that is minimised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// Softmax cross-entropy over classes, mean over rows.
    CrossEntropy,
    /// Mean squared error of one output against a numeric label.
    Mse,
    /// The loss of users' own models, where the data has columns by name: there is no label.
    Own,
}

/// The numbers that a model computes in. Parameters, buffers, optimiser state and checkpoints are
/// `f32` whatever this is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Precision {
    /// Single precision.
    #[default]
    F32,
    /// As PyTorch's autocast to `bfloat16`: fully connected layers and convolutions take rounded
    /// inputs and weights and give rounded outputs; what follows them takes what it gets. Batch norm's
    /// parameters and statistics, the loss and the update stay `f32`. Training and evaluation alike.
    Bf16,
}

impl Value for Precision {
    fn from_number(_: f64) -> Option<Self> {
        None
    }
}

/// The rows that a hop trains on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Sampling {
    /// Each row of the shard once, in random order ([`crate::seeds::row_order`]).
    #[default]
    Shuffled,
    /// As many rows as the shard has, drawn with replacement so that its classes are equally likely
    /// ([`crate::seeds::balanced_rows`]).
    Balanced,
}

impl Value for Sampling {
    fn from_number(_: f64) -> Option<Self> {
        None
    }
}

/// The optimisers, with the update rules of PyTorch 2.11's classes of the same names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum OptimizerName {
    /// Stochastic gradient descent; state: one momentum buffer where `momentum` isn't 0.
    Sgd,
    /// Adam with L2 penalty (Kingma and Ba, 2015).
    Adam,
    /// Adam with decoupled weight decay (Loshchilov and Hutter, 2019).
    Adamw,
}

impl OptimizerName {
    /// The word for it in job files.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Sgd => "sgd",
            Self::Adam => "adam",
            Self::Adamw => "adamw",
        }
    }
}

impl Value for OptimizerName {
    fn from_number(_: f64) -> Option<Self> {
        None
    }
}

/// The parameters that `weight_decay` shrinks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum DecayScope {
    /// All parameters.
    #[default]
    All,
    /// Parameters with at least two dimensions: neither biases nor the parameters of norms.
    Matrices,
}

/// A concrete optimiser. `momentum` is for SGD; `beta1`, `beta2`, `eps` are for Adam and AdamW.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Optimizer {
    /// Which one.
    pub name: OptimizerName,
    /// Learning rate before the schedule, above 0.
    pub lr: f64,
    /// Momentum in `[0, 1)`.
    pub momentum: f64,
    /// Decay of the first moment, in `[0, 1)`.
    pub beta1: f64,
    /// Decay of the second moment, in `[0, 1)`.
    pub beta2: f64,
    /// Added to the denominator, above 0.
    pub eps: f64,
    /// L2 penalty (SGD, Adam) or decoupled decay (AdamW), at least 0.
    pub weight_decay: f64,
    /// The parameters that `weight_decay` shrinks.
    #[serde(default, skip_serializing_if = "is_default")]
    pub decay: DecayScope,
}

impl Optimizer {
    /// An optimiser with PyTorch's defaults and no momentum.
    #[must_use]
    pub const fn new(name: OptimizerName, lr: f64) -> Self {
        let (beta1, beta2, eps) = (0.9, 0.999, 1e-8);
        let (weight_decay, decay) = (0.0, DecayScope::All);
        Self { name, lr, momentum: 0.0, beta1, beta2, eps, weight_decay, decay }
    }
}

/// How the learning rate moves over the trial's own steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ScheduleName {
    /// Stays at `lr`.
    Constant,
    /// Times `gamma` every `every` steps.
    Step,
    /// Half a cosine from `lr` to `floor * lr` over the trial's steps.
    Cosine,
}

/// A concrete schedule. Its factor for step `k` (from 0) is: during warm-up `(k + 1) / warmup`; after
/// it, with `j = k - warmup`, `1`, `gamma ^ floor(j / every)` or
/// `floor + (1 - floor) * (1 + cos(pi * j / (total - warmup))) / 2`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// Which one.
    pub name: ScheduleName,
    /// Steps of linear warm-up.
    pub warmup: u32,
    /// Steps between two drops, at least 1 (`step`).
    pub every: u32,
    /// Factor of each drop, in `(0, 1]` (`step`).
    pub gamma: f64,
    /// Share of `lr` at the end, in `[0, 1]` (`cosine`).
    pub floor: f64,
}

impl Schedule {
    /// No schedule: the learning rate stays.
    pub const CONSTANT: Self =
        Self { name: ScheduleName::Constant, warmup: 0, every: 1, gamma: 1.0, floor: 0.0 };
}

/// `[training]`, closed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct TrainingConfig {
    /// Visits of every shard, at least 1.
    pub epochs: u32,
    /// Passes over a shard in one visit, in `1..=MAX_LOCAL_EPOCHS`.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub local_epochs: u32,
    /// Rows in a batch, at least 1.
    pub batch_size: u32,
    /// The loss that is minimised.
    pub loss: Loss,
    /// The optimiser.
    pub optimizer: Optimizer,
    /// The learning rate's schedule.
    pub schedule: Schedule,
    /// Gradients are scaled down to this global L2 norm, above 0, where given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clip_norm: Option<f64>,
    /// Random changes to training images, where there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub augment: Option<Augment>,
    /// The numbers that the model computes in.
    #[serde(default, skip_serializing_if = "is_default")]
    pub precision: Precision,
    /// The rows of a shard that are trained on.
    #[serde(default, skip_serializing_if = "is_default")]
    pub sampling: Sampling,
    /// The share of each row's target that is spread evenly over all classes in training, in `[0, 1)`:
    /// PyTorch's `cross_entropy(..., label_smoothing)`. Evaluations count the plain loss.
    #[serde(default, skip_serializing_if = "is_default")]
    pub label_smoothing: f64,
}

impl TrainingConfig {
    /// Training at a constant rate, with nothing that may be left out.
    #[must_use]
    pub const fn new(epochs: u32, batch_size: u32, loss: Loss, optimizer: Optimizer) -> Self {
        Self {
            epochs,
            local_epochs: 1,
            batch_size,
            loss,
            optimizer,
            schedule: Schedule::CONSTANT,
            clip_norm: None,
            augment: None,
            precision: Precision::F32,
            sampling: Sampling::Shuffled,
            label_smoothing: 0.0,
        }
    }

    /// The batches that a hop cuts its shard into.
    #[must_use]
    pub fn minibatches(&self) -> Minibatches {
        Minibatches::new(self.batch_size, self.local_epochs)
    }
}

fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_one(number: &u32) -> bool {
    *number == 1
}

/// `[training]` with open dimensions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct TrainingSpace {
    /// Visits of every shard; the same for all trials.
    pub epochs: u32,
    /// Passes over a shard in one visit; the same for all trials.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub local_epochs: u32,
    /// Rows in a batch.
    pub batch_size: Dimension<u32>,
    /// The loss that is minimised; the same for all trials.
    pub loss: Loss,
    /// The optimiser.
    pub optimizer: OptimizerSpace,
    /// The schedule.
    pub schedule: ScheduleSpace,
    /// Largest gradient norm; 0 switches clipping off.
    pub clip_norm: Dimension<f64>,
    /// Random changes to training images.
    #[serde(default, skip_serializing_if = "is_default")]
    pub augment: AugmentSpace,
    /// The numbers that models compute in.
    #[serde(default, skip_serializing_if = "is_default")]
    pub precision: Dimension<Precision>,
    /// How much the rows of each class count; the same for all trials.
    #[serde(default, skip_serializing_if = "ClassWeights::is_none")]
    pub class_weights: ClassWeights,
    /// The rows of a shard that are trained on.
    #[serde(default, skip_serializing_if = "is_default")]
    pub sampling: Dimension<Sampling>,
    /// The share of each row's target that is spread evenly over all classes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub label_smoothing: Dimension<f64>,
}

/// `optimizer` with open dimensions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "see the fields of `Optimizer`")]
pub struct OptimizerSpace {
    pub name: Dimension<OptimizerName>,
    pub lr: Dimension<f64>,
    pub momentum: Dimension<f64>,
    pub beta1: Dimension<f64>,
    pub beta2: Dimension<f64>,
    pub eps: Dimension<f64>,
    pub weight_decay: Dimension<f64>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub decay: DecayScope,
}

impl OptimizerSpace {
    /// An optimiser with a rate of 0.001, no momentum, and PyTorch's other defaults: a decay of 0.01 for AdamW
    /// alone.
    #[must_use]
    pub fn new(name: Dimension<OptimizerName>) -> Self {
        let is_adamw = name == Dimension::Fixed(OptimizerName::Adamw);
        Self {
            name,
            lr: 1e-3.into(),
            momentum: 0.0.into(),
            beta1: 0.9.into(),
            beta2: 0.999.into(),
            eps: 1e-8.into(),
            weight_decay: if is_adamw { 0.01 } else { 0.0 }.into(),
            decay: DecayScope::All,
        }
    }
}

/// `schedule` with open dimensions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "see the fields of `Schedule`")]
pub struct ScheduleSpace {
    pub name: ScheduleName,
    pub warmup: Dimension<u32>,
    pub every: Dimension<u32>,
    pub gamma: Dimension<f64>,
    pub floor: Dimension<f64>,
}

impl Default for ScheduleSpace {
    fn default() -> Self {
        Self {
            name: ScheduleName::Constant,
            warmup: 0.into(),
            every: 1000.into(),
            gamma: 0.1.into(),
            floor: 0.0.into(),
        }
    }
}

impl TrainingSpace {
    /// The concrete configuration that `chooser` takes.
    pub fn close(&self, chooser: &mut dyn Chooser) -> Option<TrainingConfig> {
        let batch_size = self.batch_size.close("training.batch_size", chooser)?;
        let optimizer = self.optimizer.close(chooser)?;
        let schedule = self.schedule.close(chooser)?;
        let clip_norm = self.clip_norm.close("training.clip_norm", chooser)?;
        let augment = self.augment.close(chooser)?;
        let precision = self.precision.close("training.precision", chooser)?;
        let sampling = self.sampling.close("training.sampling", chooser)?;
        let label_smoothing = self.label_smoothing.close("training.label_smoothing", chooser)?;
        Some(TrainingConfig {
            epochs: self.epochs,
            local_epochs: self.local_epochs,
            batch_size,
            loss: self.loss,
            optimizer,
            schedule,
            clip_norm: (clip_norm > 0.0).then_some(clip_norm),
            augment,
            precision,
            sampling,
            label_smoothing,
        })
    }
}

impl OptimizerSpace {
    fn close(&self, chooser: &mut dyn Chooser) -> Option<Optimizer> {
        let name = self.name.close("training.optimizer.name", chooser)?;
        let Optimizer { momentum, beta1, beta2, eps, .. } = Optimizer::new(name, 0.0);
        let lr = self.lr.close("training.optimizer.lr", chooser)?;
        let mut of = |key: &str, dimension: &Dimension<f64>, is_used: bool, unused: f64| {
            let key = format!("training.optimizer.{key}");
            let decider = "training.optimizer.name";
            dimension.close_used(&key, chooser, Usage { decider, is_used, unused })
        };
        let has_moments = name.has_moments();
        Some(Optimizer {
            name,
            lr,
            momentum: of("momentum", &self.momentum, name.has_momentum(), momentum)?,
            beta1: of("beta1", &self.beta1, has_moments, beta1)?,
            beta2: of("beta2", &self.beta2, has_moments, beta2)?,
            eps: of("eps", &self.eps, has_moments, eps)?,
            weight_decay: self.weight_decay.close("training.optimizer.weight_decay", chooser)?,
            decay: self.decay,
        })
    }
}

impl ScheduleSpace {
    fn close(&self, chooser: &mut dyn Chooser) -> Option<Schedule> {
        let name = self.name;
        let decider = "training.schedule.name";
        let Schedule { every, gamma, floor, .. } = Schedule::CONSTANT;
        let every = Usage { decider, is_used: name.has_drops(), unused: every };
        let gamma = Usage { decider, is_used: name.has_drops(), unused: gamma };
        let floor = Usage { decider, is_used: name.has_floor(), unused: floor };
        Some(Schedule {
            name,
            warmup: self.warmup.close("training.schedule.warmup", chooser)?,
            every: self.every.close_used("training.schedule.every", chooser, every)?,
            gamma: self.gamma.close_used("training.schedule.gamma", chooser, gamma)?,
            floor: self.floor.close_used("training.schedule.floor", chooser, floor)?,
        })
    }
}
