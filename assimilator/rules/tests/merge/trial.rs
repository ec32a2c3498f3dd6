//! A trial of a small model with batch norm: its checkpoints, and words for results.

use crate::support::arrival;
use sojourn_codec::{Dtype, Tensor, decode, encode};
use sojourn_model::{CheckpointLayout, LINEAGE, Lineage};
use sojourn_protocol::{
    ids::{Epoch, ShardId, TrialId, Version},
    manifest::{Scaling, Targets},
    position::Position,
    spec::{
        Architecture, Loss, MergeSpec, Mlp, Optimizer, OptimizerMerge, OptimizerName, Ratio,
        RuleSpec, TrainingConfig, TrialConfig,
    },
    unit::TrialContext,
};
use sojourn_rules::{Merger, Update};
use std::collections::BTreeMap;

/// Tensors by name.
pub(crate) type Tensors = BTreeMap<String, Vec<f32>>;

pub(crate) fn layout(hidden: u32) -> CheckpointLayout {
    let model = Mlp { hidden: vec![hidden], batch_norm: true, dropout: Ratio(0.0) };
    let optimizer = Optimizer::new(OptimizerName::Adam, 0.1);
    let training = TrainingConfig::new(2, 4, Loss::CrossEntropy, optimizer);
    let context = TrialContext {
        config: TrialConfig { model: Architecture::Mlp(model), training },
        columns: Vec::new(),
        shape: vec![2],
        outputs: 2,
        scaling: Scaling::None,
        targets: Targets::Plain,
        total_steps: 12,
        pinned_threads: None,
    };
    CheckpointLayout::of(&context).unwrap()
}

pub(crate) fn merger(rule: RuleSpec, optimizer: OptimizerMerge) -> Merger {
    Merger::new(&MergeSpec { rule, optimizer, canary: None }, layout(3)).unwrap()
}

pub(crate) fn position(step: u64) -> Position {
    Position { epoch: Epoch(1), shard: ShardId(2), batch: 3, step }
}

pub(crate) fn lineage(seed: u64) -> Lineage {
    Lineage { hop_seed: seed, trial: TrialId(4), position: position(6) }
}

/// May these be negative?
pub(crate) fn is_square(name: &str) -> bool {
    name.starts_with("optimizer.exp_avg_sq.") || name.ends_with("running_var")
}

/// A checkpoint of numbers up to `size`, drawn from the seed that its lineage says.
pub(crate) fn checkpoint(layout: &CheckpointLayout, seed: u64, size: f32) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let mut number = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        size * ((state >> 40) as f32 / (1u32 << 23) as f32 - 1.0)
    };
    file(layout, lineage(seed), |name, count| {
        let numbers = (0..count).map(|_| number());
        numbers.map(|n| if is_square(name) { n.abs() } else { n }).collect()
    })
}

/// A checkpoint of these numbers.
pub(crate) fn file(
    layout: &CheckpointLayout,
    lineage: Lineage,
    mut numbers: impl FnMut(&str, usize) -> Vec<f32>,
) -> Vec<u8> {
    let tensors = layout.tensors().iter().map(|spec| {
        if spec.name == LINEAGE {
            return Tensor::i64(LINEAGE, [Lineage::LENGTH], &lineage.to_numbers());
        }
        let count = usize::try_from(spec.elements().unwrap()).unwrap();
        Tensor::f32(spec.name.clone(), spec.shape.clone(), &numbers(&spec.name, count))
    });
    encode(&tensors.collect::<Vec<_>>()).unwrap()
}

/// All tensors of single-precision numbers.
pub(crate) fn tensors(file: &[u8]) -> Tensors {
    let views = decode(file).unwrap();
    let numbers = views.iter().filter(|view| view.dtype == Dtype::F32);
    numbers.map(|view| (view.name.clone(), view.f32s().unwrap().collect())).collect()
}

/// One tensor of integers.
pub(crate) fn integers(file: &[u8], name: &str) -> Vec<i64> {
    let views = decode(file).unwrap();
    views.iter().find(|view| view.name == name).unwrap().i64s().unwrap().collect()
}

pub(crate) fn lineage_of(file: &[u8]) -> Lineage {
    Lineage::from_numbers(&integers(file, LINEAGE)).unwrap()
}

/// A result with an empty history.
pub(crate) fn update<'a>(base: &'a [u8], current: &'a [u8], returned: &'a [u8]) -> Update<'a> {
    let (version, arrival, position) = (Version(7), arrival(1), position(40));
    Update { base, current, returned, state: None, version, arrival, position }
}
