//! The update rules against numbers worked out by hand, and against libtorch's own optimisers.

use super::*;
use crate::{fixture, moves::Part};
use sojourn_model::{Lineage, initial_checkpoint};
use sojourn_protocol::{
    spec::{Architecture, Ratio},
    unit::TrialContext,
};
use tch::nn::{self, OptimizerConfig};

const SGD: Optimizer = Optimizer::new(OptimizerName::Sgd, 0.1);
const ADAM: Optimizer = Optimizer { name: OptimizerName::Adam, ..SGD };

fn context(optimizer: Optimizer) -> TrialContext {
    let mut context = fixture::context(Architecture::mlp([5]));
    context.config.training.optimizer = optimizer;
    context
}

fn model(optimizer: Optimizer) -> Model {
    let context = context(optimizer);
    let checkpoint = initial_checkpoint(&context, 3, Lineage::initial(3)).unwrap();
    Model::load(&context, &checkpoint, None, tch::Device::Cpu).unwrap()
}

/// Sets the first weight and its gradients over the steps, and gives that weight after each.
fn follow(optimizer: Optimizer, clip: Option<f64>, start: f64, gradients: &[f64]) -> Vec<f64> {
    let mut model = model(optimizer);
    let _ = model.weights.narrow(0, 0, 1).fill_(start);
    let mut update = Update::new(optimizer, clip, &model).unwrap();
    let mut weights = Vec::new();
    for (step, gradient) in (1..).zip(gradients) {
        let _ = model.gradient.zero_();
        let _ = model.gradient.narrow(0, 0, 1).fill_(*gradient);
        update.step(&mut model, 0, step, 1.0).unwrap();
        weights.push(model.weights.double_value(&[0]));
    }
    weights
}

fn close(actual: &[f64], expected: &[f64]) {
    assert_eq!(actual.len(), expected.len());
    for (a, b) in actual.iter().zip(expected) {
        assert!((a - b).abs() < 1e-6, "{actual:?} is not {expected:?}");
    }
}

#[test]
fn sgd_by_hand() {
    close(&follow(SGD, None, 1.0, &[0.5, -2.0]), &[0.95, 1.15]);
    let momentum = Optimizer { momentum: 0.9, ..SGD };
    // b: 0.5, then 0.9 * 0.5 - 2 = -1.55
    close(&follow(momentum, None, 1.0, &[0.5, -2.0]), &[0.95, 1.105]);
    let decay = Optimizer { weight_decay: 0.1, ..SGD };
    // g: 0.5 + 0.1 * 1 = 0.6, then -2 + 0.1 * 0.94 = -1.906
    close(&follow(decay, None, 1.0, &[0.5, -2.0]), &[0.94, 1.1306]);
}

#[test]
fn gradients_are_clipped_to_the_norm() {
    close(&follow(SGD, Some(0.5), 1.0, &[2.0, 0.1]), &[0.95, 0.94]);
}

#[test]
fn adam_by_hand() {
    // Whatever the gradient's size, the first step is lr along its sign.
    close(&follow(ADAM, None, 1.0, &[0.5]), &[0.9]);
    // Second: m = 0.9*0.05 + 0.1*(-2) = -0.155, v = 0.999*0.00025 + 0.001*4 = 0.00424975;
    // m / 0.19 = -0.81578947, sqrt(v / 0.001999) = 1.45806..., so + 0.1 * 0.5595
    let (m, v): (f64, f64) = (-0.155 / 0.19, 0.004_249_75 / 0.001_999);
    close(&follow(ADAM, None, 1.0, &[0.5, -2.0]), &[0.9, 0.9 - 0.1 * m / v.sqrt()]);
    let l2 = Optimizer { weight_decay: 0.1, ..ADAM };
    close(&follow(l2, None, 1.0, &[0.5]), &[0.9]);
    let decoupled = Optimizer { name: OptimizerName::Adamw, ..l2 };
    close(&follow(decoupled, None, 1.0, &[0.5]), &[1.0 - 0.1 * 0.1 - 0.1]);
}

/// The numbers of a vector: bytes of single precision, in hex.
fn numbers(text: &serde_json::Value) -> Vec<f32> {
    let digits = text.as_str().unwrap().as_bytes().chunks_exact(8);
    let bits = digits.map(|digits| u32::from_str_radix(str::from_utf8(digits).unwrap(), 16));
    bits.map(|bits| f32::from_bits(bits.unwrap().swap_bytes())).collect()
}

#[test]
fn steps_are_those_of_the_vectors() {
    let known = include_str!("../../../protocol/vectors/optimizers.json");
    let known: serde_json::Value = serde_json::from_str(known).unwrap();
    let tolerance = known["tolerance"].as_f64().unwrap();
    for case in known["cases"].as_array().unwrap() {
        let optimizer: Optimizer = serde_json::from_value(case["optimizer"].clone()).unwrap();
        let mut model = model(optimizer);
        // The model has more weights. Their gradients are 0, so they change nothing of the first ones.
        let put = |flat: &Tensor, numbers: &[f32]| {
            flat.narrow(0, 0, 4).copy_(&Tensor::from_slice(numbers));
        };
        put(&model.weights, &numbers(&case["weights"]));
        let mut update = Update::new(optimizer, case["clip_norm"].as_f64(), &model).unwrap();
        for step in case["steps"].as_array().unwrap() {
            let _ = model.gradient.zero_();
            put(&model.gradient, &numbers(&step["gradient"]));
            let (count, factor) =
                (step["step"].as_u64().unwrap(), step["factor"].as_f64().unwrap());
            update.step(&mut model, 0, count, factor).unwrap();
            let state = step["state"].as_array().unwrap();
            assert_eq!(state.len(), model.state.len());
            let flats = std::iter::once(&model.weights).chain(&model.state);
            for (flat, expected) in flats.zip(std::iter::once(&step["weights"]).chain(state)) {
                let expected = numbers(expected);
                let found = Vec::<f32>::try_from(&flat.narrow(0, 0, 4)).unwrap();
                let largest = expected.iter().fold(0f32, |most, number| most.max(number.abs()));
                for (found, expected) in found.iter().zip(&expected) {
                    let off = f64::from((found - expected).abs());
                    assert!(off <= tolerance * f64::from(largest), "{optimizer:?} {step}");
                }
                // Rounding doesn't add up from step to step.
                put(flat, &expected);
            }
        }
    }
}

#[test]
fn a_rate_of_zero_moves_nothing_and_breaks_nothing() {
    let mut model = model(ADAM);
    let before = model.weights.copy();
    let _ = model.gradient.narrow(0, 0, 3).fill_(1.0);
    Update::new(ADAM, None, &model).unwrap().step(&mut model, 0, 1, 0.0).unwrap();
    assert_eq!(model.weights, before);
    assert!(model.state[0].double_value(&[0]) > 0.0);
}

#[test]
fn hyperparameters_that_make_no_sense_are_refused() {
    let model = model(ADAM);
    for bad in [
        Optimizer { lr: 0.0, ..ADAM },
        Optimizer { lr: f64::NAN, ..ADAM },
        Optimizer { beta2: 1.0, ..ADAM },
        Optimizer { eps: 0.0, ..ADAM },
        Optimizer { momentum: -0.1, ..SGD },
        Optimizer { weight_decay: f64::INFINITY, ..SGD },
    ] {
        assert!(Update::new(bad, None, &model).is_err(), "{bad:?}");
    }
    assert!(Update::new(SGD, Some(0.0), &model).is_err());
}

/// A model whose parameters have one, two and four dimensions, with a gradient that is the same whenever it is asked for.
fn mixed(optimizer: Optimizer) -> Model {
    let mut context = fixture::context(fixture::deep(Ratio(0.0))[1].clone());
    context.config.training.optimizer = optimizer;
    let checkpoint = initial_checkpoint(&context, 3, Lineage::initial(3)).unwrap();
    let mut model = Model::load(&context, &checkpoint, None, tch::Device::Cpu).unwrap();
    // Biases begin at 0, which nothing can shrink.
    for leaf in &model.leaves {
        let _ = leaf.detach().sin_().f_add_scalar_(0.5).unwrap();
    }
    ask(&mut model, 1);
    model
}

/// Sets the gradient of a step.
fn ask(model: &mut Model, step: u64) {
    for gradient in &model.stages[0].gradients {
        let count = i64::try_from(gradient.numel()).unwrap();
        let numbers = Tensor::arange(count, (Kind::Float, tch::Device::Cpu));
        gradient.shallow_clone().copy_(&(numbers * (0.3 * step as f64)).cos().view_as(gradient));
    }
}

fn elements(tensor: &Tensor) -> Vec<f64> {
    Vec::try_from(tensor.detach().to_kind(Kind::Double).flatten(0, -1)).unwrap()
}

/// Two steps of one number by the rules as they are written in papers, in double precision.
fn two_steps(optimizer: Optimizer, decay: f64, mut weight: f64, gradients: [f64; 2]) -> f64 {
    let Optimizer { name, lr, momentum, beta1, beta2, eps, .. } = optimizer;
    let (mut first, mut second) = (0.0, 0.0);
    for (step, gradient) in (1..).zip(gradients) {
        let penalty = if name == OptimizerName::Adamw { 0.0 } else { decay * weight };
        let gradient = gradient + penalty;
        if name == OptimizerName::Sgd {
            first = momentum * first + gradient;
            weight -= lr * first;
            continue;
        }
        if name == OptimizerName::Adamw {
            weight -= lr * decay * weight;
        }
        first = beta1 * first + (1.0 - beta1) * gradient;
        second = beta2 * second + (1.0 - beta2) * gradient * gradient;
        let (m, v) = (first / (1.0 - beta1.powi(step)), second / (1.0 - beta2.powi(step)));
        weight -= lr * m / (v.sqrt() + eps);
    }
    weight
}

/// All rules with a decay of matrices alone.
fn rules() -> [Optimizer; 4] {
    let sgd = Optimizer { weight_decay: 0.2, decay: DecayScope::Matrices, ..SGD };
    let adam = Optimizer { name: OptimizerName::Adam, eps: 1e-3, ..sgd };
    [
        sgd,
        Optimizer { momentum: 0.9, ..sgd },
        adam,
        Optimizer { name: OptimizerName::Adamw, ..adam },
    ]
}

#[test]
fn decay_of_matrices_shrinks_no_tensor_of_one_dimension() {
    for optimizer in rules() {
        let mut model = mixed(optimizer);
        let before: Vec<Vec<f64>> = model.leaves.iter().map(elements).collect();
        let mut gradients = Vec::new();
        let mut update = Update::new(optimizer, None, &model).unwrap();
        for step in 1..=2 {
            ask(&mut model, step);
            gradients.push(model.stages[0].gradients.iter().map(elements).collect::<Vec<_>>());
            update.step(&mut model, 0, step, 1.0).unwrap();
        }
        let mut dimensions = std::collections::BTreeSet::new();
        for (n, leaf) in model.leaves.iter().enumerate() {
            dimensions.insert(leaf.dim());
            let decay = if leaf.dim() >= 2 { optimizer.weight_decay } else { 0.0 };
            let weights = before[n].iter().zip(&gradients[0][n]).zip(&gradients[1][n]);
            let expected: Vec<f64> =
                weights.map(|((w, a), b)| two_steps(optimizer, decay, *w, [*a, *b])).collect();
            close(&elements(leaf), &expected);
        }
        assert_eq!(dimensions, [1, 2, 4].into());
    }
}

/// Matrices move as where all decays, and the rest as where nothing does: to the bit, with AdamW's factor rounded once.
#[test]
fn each_tensor_moves_as_under_a_decay_of_all_or_of_none() {
    for optimizer in rules() {
        let of = |optimizer: Optimizer| {
            let mut model = mixed(optimizer);
            Update::new(optimizer, None, &model).unwrap().step(&mut model, 0, 1, 0.7).unwrap();
            model.leaves.iter().map(|leaf| (leaf.dim(), elements(leaf))).collect::<Vec<_>>()
        };
        let all = of(Optimizer { decay: DecayScope::All, ..optimizer });
        let none = of(Optimizer { weight_decay: 0.0, ..optimizer });
        for ((is, all), none) in of(optimizer).into_iter().zip(all).zip(none) {
            assert_ne!(all, none);
            assert_eq!(is, if is.0 >= 2 { all } else { none }, "{optimizer:?}");
        }
    }
}

#[test]
fn parts_that_are_cut_anywhere_move_to_the_same_bytes() {
    for optimizer in rules() {
        let mut whole = mixed(optimizer);
        let mut cut = mixed(optimizer);
        let [part] = cut.stages[0].parts.as_slice() else { panic!("one part") };
        let len = part.weights.size1().unwrap();
        let pieces = (0..len).step_by(48).map(|start| {
            let narrow = |tensor: &Tensor| tensor.narrow(0, start, (len - start).min(48));
            let (weights, gradient) = (narrow(&part.weights), narrow(&part.gradient));
            Part { start, weights, gradient, state: part.state.iter().map(narrow).collect() }
        });
        cut.stages[0].parts = pieces.collect();
        for model in [&mut whole, &mut cut] {
            let mut update = Update::new(optimizer, Some(1.0), model).unwrap();
            for step in 1..=3 {
                ask(model, step);
                update.step(model, 0, step, 0.9).unwrap();
            }
        }
        assert_eq!(whole.weights, cut.weights);
        assert_eq!(whole.state, cut.state);
    }
}

/// Ten steps on the same gradients, against libtorch's own implementation of the same rule.
#[test]
fn ten_steps_agree_with_libtorch() {
    let decay = 0.01;
    let sgd = Optimizer { momentum: 0.9, weight_decay: decay, ..SGD };
    let adam = Optimizer { weight_decay: decay, ..ADAM };
    let adamw = Optimizer { name: OptimizerName::Adamw, ..adam };
    for optimizer in [sgd, adam, adamw] {
        let mut model = model(optimizer);
        let mut update = Update::new(optimizer, None, &model).unwrap();
        let store = nn::VarStore::new(tch::Device::Cpu);
        let start = model.weights.copy();
        let weights = store.root().var_copy("w", &start);
        let mut theirs = match optimizer.name {
            OptimizerName::Sgd => {
                nn::Sgd { momentum: 0.9, wd: decay, ..nn::Sgd::default() }.build(&store, 0.1)
            }
            OptimizerName::Adam => nn::Adam { wd: decay, ..nn::Adam::default() }.build(&store, 0.1),
            OptimizerName::Adamw => {
                nn::AdamW { wd: decay, ..nn::AdamW::default() }.build(&store, 0.1)
            }
        }
        .unwrap();
        for step in 1..=10u64 {
            let gradient = (start.shallow_clone() * (step as f64)).sin();
            model.gradient.copy_(&gradient);
            update.step(&mut model, 0, step, 1.0).unwrap();
            theirs.zero_grad();
            (&weights * &gradient).sum(tch::Kind::Float).backward();
            theirs.step();
        }
        let distance = (&model.weights - &weights).abs().max().double_value(&[]);
        assert!(distance < 2e-6, "{:?} is {distance} away", optimizer.name);
    }
}
