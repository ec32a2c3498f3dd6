//! `[training]`: epochs, batches, loss, optimiser, schedule.

use super::{
    dimension,
    element::{Bounds, Element, OPTIMIZERS},
    method::Method,
    reader::JobFileNode,
};
use crate::spec::{
    AugmentSpace, ClassWeights, DEFAULT_BATCH_SIZE, DecayScope, Dimension, Loss, MAX_EPOCHS,
    MAX_LOCAL_EPOCHS, OptimizerName, OptimizerSpace, Precision, Sampling, ScheduleName,
    ScheduleSpace, TrainingSpace,
};
use sojourn_forms::{Node, Table};
use std::collections::BTreeMap;

/// Reads `[training]`.
/// `shape` is the shape of a row, where `[data]` could be read.
pub(super) fn read(
    section: &Table<'_>,
    method: Option<Method>,
    shape: Option<Option<&[u32]>>,
) -> Option<TrainingSpace> {
    let epochs = section
        .required("epochs", "how often to pass over the training data")
        .and_then(|node| node.integer(1, MAX_EPOCHS));
    let local_epochs =
        section.optional("local_epochs").map_or(Some(1), |node| node.integer(1, MAX_LOCAL_EPOCHS));
    let batch_size = number(section, "batch_size", Bounds::AtLeastOne, method, DEFAULT_BATCH_SIZE);
    let loss = section.optional("loss").map_or(Some(Loss::CrossEntropy), |node| {
        node.word(&[("cross-entropy", Loss::CrossEntropy), ("mse", Loss::Mse)])
    });
    let optimizer = section.optional("optimizer").map_or_else(
        || Some(OptimizerSpace::new(OptimizerName::Adam.into())),
        |node| optimizer(&node, method),
    );
    let schedule = section
        .optional("schedule")
        .map_or_else(|| Some(ScheduleSpace::default()), |node| schedule(&node, method));
    let clip_norm = number(section, "clip_norm", Bounds::NotNegative, method, 0.0);
    let augment = section
        .optional("augment")
        .map_or_else(|| Some(AugmentSpace::default()), |node| augment(&node, method, shape));
    let precision = number(section, "precision", Bounds::NotNegative, method, Precision::F32);
    let class_weights = section
        .optional("class_weights")
        .map_or(Some(ClassWeights::None), |node| class_weights(&node, loss));
    let sampling = sampling(section, method, loss);
    let label_smoothing = label_smoothing(section, method, loss);
    Some(TrainingSpace {
        epochs: epochs?,
        local_epochs: local_epochs?,
        batch_size: batch_size?,
        loss: loss?,
        optimizer: optimizer?,
        schedule: schedule?,
        clip_norm: clip_norm?,
        augment: augment?,
        precision: precision?,
        class_weights: class_weights?,
        sampling: sampling?,
        label_smoothing: label_smoothing?,
    })
}

/// Bounds of a weight: losses times it, and their sums over a batch, stay finite in single precision.
const MIN_WEIGHT: f64 = 1e-6;
const MAX_WEIGHT: f64 = 1e6;

const NEEDS_CLASSES: &str = "needs labels that are classes; `training.loss` is `\"mse\"`";

/// Reads `class_weights`. Whether the data has the classes is seen where it is read.
fn class_weights(node: &Node<'_>, loss: Option<Loss>) -> Option<ClassWeights> {
    let weights = if node.is_string() {
        let balanced = node.word(&[("balanced", true), ("none", false)])?;
        if balanced { ClassWeights::Balanced } else { ClassWeights::None }
    } else if let Some(table) = node.peek() {
        let weights = table.entries().map(|(name, weight)| {
            let value = weight.number()?;
            match value {
                _ if (MIN_WEIGHT..=MAX_WEIGHT).contains(&value) => Some((name.to_owned(), value)),
                _ if value > 0.0 => weight.refuse(format!(
                    "is {value:e}; a weight from {MIN_WEIGHT:e} to {MAX_WEIGHT:e} is wanted"
                )),
                _ => weight.refuse(format!("is {value}; a weight above 0 is wanted")),
            }
        });
        // Every entry is looked at, so that every problem is reported.
        let weights: Vec<Option<(String, f64)>> = weights.collect();
        let weights: BTreeMap<String, f64> = weights.into_iter().collect::<Option<_>>()?;
        if weights.is_empty() {
            return node.refuse("is empty; a weight for each class that hasn't 1 is wanted");
        }
        ClassWeights::Table(weights)
    } else {
        return node.refuse(format!(
            "is {}; `\"balanced\"`, or a table of weights by class, is wanted",
            node.describe()
        ));
    };
    if !weights.is_none() && loss == Some(Loss::Mse) {
        return node.refuse(NEEDS_CLASSES);
    }
    Some(weights)
}

fn sampling(
    section: &Table<'_>,
    method: Option<Method>,
    loss: Option<Loss>,
) -> Option<Dimension<Sampling>> {
    let sampling = number(section, "sampling", Bounds::NotNegative, method, Sampling::Shuffled)?;
    if loss == Some(Loss::Mse) && sampling.values().contains(&&Sampling::Balanced) {
        return section.refuse("sampling", format!("is `\"balanced\"`, which {NEEDS_CLASSES}"));
    }
    Some(sampling)
}

fn label_smoothing(
    section: &Table<'_>,
    method: Option<Method>,
    loss: Option<Loss>,
) -> Option<Dimension<f64>> {
    let smoothing = number(section, "label_smoothing", Bounds::ZeroToBelowOne, method, 0.0)?;
    if loss == Some(Loss::Mse) && !smoothing.is_zero() {
        return section.refuse("label_smoothing", NEEDS_CLASSES);
    }
    Some(smoothing)
}

fn augment(
    node: &Node<'_>,
    method: Option<Method>,
    shape: Option<Option<&[u32]>>,
) -> Option<AugmentSpace> {
    let section = node.section()?;
    let crop = number(&section, "crop", Bounds::NotNegative, method, 0);
    let flip = number(&section, "flip", Bounds::NotNegative, method, false);
    let space = AugmentSpace { crop: crop?, flip: flip? };
    let image = match shape {
        Some(Some([_, height, width])) => Some(height.min(width)),
        Some(_) => {
            return node.refuse("takes images: `data.shape = [channels, height, width]` is wanted");
        }
        None => None,
    };
    let written = space.crop.values().into_iter().max().map_or(0.0, |crop| f64::from(*crop));
    let most = space.crop.range().map_or(written, |range| range.high.max(written));
    if let Some(side) = image.filter(|side| most > f64::from(**side)) {
        let text = format!("goes up to {most}, more than the images' shorter side, {side}");
        return section.refuse("crop", text);
    }
    Some(space)
}

fn number<T: Element>(
    section: &Table<'_>,
    key: &str,
    bounds: Bounds,
    method: Option<Method>,
    default: impl Into<Dimension<T>>,
) -> Option<Dimension<T>> {
    match section.optional(key) {
        None => Some(default.into()),
        Some(node) => {
            let default = default.into();
            dimension::read(&node, bounds, method, default.values().first().copied())
        }
    }
}

fn optimizer(node: &Node<'_>, method: Option<Method>) -> Option<OptimizerSpace> {
    if node.is_string() {
        return node.word(OPTIMIZERS).map(|name| OptimizerSpace::new(name.into()));
    }
    let section = node.section()?;
    let name: Dimension<OptimizerName> = dimension::read(
        &section.required("name", "`sgd`, `adam` or `adamw`")?,
        Bounds::NotNegative,
        method,
        None,
    )?;
    let others: &[&str] = match name {
        Dimension::Fixed(OptimizerName::Sgd) => &["beta1", "beta2", "eps"],
        Dimension::Fixed(OptimizerName::Adam | OptimizerName::Adamw) => &["momentum"],
        Dimension::Choice(_)
        | Dimension::Range(_)
        | Dimension::Normal(_)
        | Dimension::Conditional(_)
        | Dimension::Tied(_) => &[],
    };
    let mut mine = Some(());
    for node in others.iter().filter_map(|key| section.optional(key)) {
        mine = node.refuse("is no key of this optimiser");
    }
    let base = OptimizerSpace::new(name);
    let decays = !base.weight_decay.is_zero() || section.optional("weight_decay").is_some();
    let lr = number(&section, "lr", Bounds::Positive, method, base.lr);
    let momentum = number(&section, "momentum", Bounds::ZeroToBelowOne, method, base.momentum);
    let beta1 = number(&section, "beta1", Bounds::ZeroToBelowOne, method, base.beta1);
    let beta2 = number(&section, "beta2", Bounds::ZeroToBelowOne, method, base.beta2);
    let eps = number(&section, "eps", Bounds::Positive, method, base.eps);
    let weight_decay =
        number(&section, "weight_decay", Bounds::NotNegative, method, base.weight_decay);
    let decay =
        section.optional("decay").map_or(Some(base.decay), |node| decay_scope(&node, decays));
    mine?;
    Some(OptimizerSpace {
        name: base.name,
        lr: lr?,
        momentum: momentum?,
        beta1: beta1?,
        beta2: beta2?,
        eps: eps?,
        weight_decay: weight_decay?,
        decay: decay?,
    })
}

/// `decays` says whether there is a `weight_decay`.
fn decay_scope(node: &Node<'_>, decays: bool) -> Option<DecayScope> {
    match node.word(&[("all", DecayScope::All), ("matrices", DecayScope::Matrices)])? {
        DecayScope::Matrices if !decays => {
            node.refuse("says what `weight_decay` shrinks, which is 0 where it is left out")
        }
        scope => Some(scope),
    }
}

const SCHEDULES: &[(&str, ScheduleName)] = &[
    ("constant", ScheduleName::Constant),
    ("step", ScheduleName::Step),
    ("cosine", ScheduleName::Cosine),
];

fn schedule(node: &Node<'_>, method: Option<Method>) -> Option<ScheduleSpace> {
    let base = ScheduleSpace::default();
    if node.is_string() {
        return node.word(SCHEDULES).map(|name| ScheduleSpace { name, ..base });
    }
    let section = node.section()?;
    let name = section.required("name", "`constant`, `step` or `cosine`")?.word(SCHEDULES)?;
    let others: &[(&str, &str)] = match name {
        ScheduleName::Constant => &[("every", "step"), ("gamma", "step"), ("floor", "cosine")],
        ScheduleName::Step => &[("floor", "cosine")],
        ScheduleName::Cosine => &[("every", "step"), ("gamma", "step")],
    };
    let mut mine = Some(());
    for (key, of) in others {
        if let Some(node) = section.optional(key) {
            mine = node.refuse(format!("is a key of the schedule `{of}`"));
        }
    }
    let warmup = number(&section, "warmup", Bounds::NotNegative, method, base.warmup);
    let every = number(&section, "every", Bounds::AtLeastOne, method, base.every);
    let gamma = number(&section, "gamma", Bounds::AboveZeroToOne, method, base.gamma);
    let floor = number(&section, "floor", Bounds::ZeroToOne, method, base.floor);
    mine?;
    Some(ScheduleSpace { name, warmup: warmup?, every: every?, gamma: gamma?, floor: floor? })
}
