//! The update rules, step by step, in single precision with each operation rounded.

use crate::file::{compare, hex_of};
use serde_json::{Value, json};
use sojourn_protocol::spec::{Optimizer, OptimizerName};

/// Weights and state before the first step are these and 0.
const WEIGHTS: [f32; 4] = [0.5, -1.25, 0.0, 3.0];
/// A gradient for each step.
const GRADIENTS: [[f32; 4]; 3] =
    [[0.1, -0.2, 0.3, 0.0], [1.5, 0.25, -0.125, 2.0], [-1e-3, 1e-5, 0.0, -4.0]];
/// The schedule's factor in each step.
const FACTORS: [f64; 3] = [0.5, 1.0, 0.0];

#[test]
fn steps_are_those_of_the_file() {
    let sgd = Optimizer::new(OptimizerName::Sgd, 0.1);
    let momentum = Optimizer { momentum: 0.9, ..sgd };
    let adam = Optimizer::new(OptimizerName::Adam, 0.01);
    let adamw = Optimizer { name: OptimizerName::Adamw, ..adam };
    let decay = |optimizer| Optimizer { weight_decay: 0.01, ..optimizer };
    let cases = [
        (sgd, None),
        (momentum, None),
        (adam, None),
        (adamw, None),
        (decay(sgd), Some(1.0)),
        (decay(momentum), Some(1.0)),
        (decay(adam), Some(1.0)),
        (decay(adamw), Some(1.0)),
    ];
    let cases = cases.map(|(optimizer, clip_norm)| follow(optimizer, clip_norm));
    // A trainer's own arithmetic may fuse or reorder: it is right within this share of the largest number of a tensor.
    compare("optimizers.json", &json!({"tolerance": 1e-6, "cases": cases}));
}

fn follow(optimizer: Optimizer, clip_norm: Option<f64>) -> Value {
    let slots = match optimizer.name {
        OptimizerName::Sgd => usize::from(optimizer.momentum != 0.0),
        OptimizerName::Adam | OptimizerName::Adamw => 2,
    };
    let mut weights = WEIGHTS.to_vec();
    let mut state = vec![vec![0.0f32; WEIGHTS.len()]; slots];
    let mut steps = Vec::new();
    for (count, (gradient, factor)) in (1..).zip(GRADIENTS.iter().zip(FACTORS)) {
        let mut clipped = gradient.to_vec();
        if let Some(limit) = clip_norm {
            clip(&mut clipped, limit);
        }
        let lr = optimizer.lr * factor;
        match state.as_mut_slice() {
            [first, second] => {
                adam(&optimizer, count, lr, &mut weights, &mut clipped, first, second);
            }
            state => sgd(&optimizer, lr, &mut weights, &mut clipped, state.first_mut()),
        }
        let state: Vec<String> = state.iter().map(|slot| hex_of(slot)).collect();
        steps.push(json!({
            "step": count,
            "factor": factor,
            "gradient": hex_of(gradient),
            "weights": hex_of(&weights),
            "state": state,
        }));
    }
    json!({"optimizer": optimizer, "clip_norm": clip_norm, "weights": hex_of(&WEIGHTS), "steps": steps})
}

/// Times `min(1, limit / (norm + 1e-6))`.
fn clip(gradient: &mut [f32], limit: f64) {
    let squares: f64 = gradient.iter().map(|g| f64::from(*g) * f64::from(*g)).sum();
    let norm = single(squares.sqrt());
    let coefficient = (1.0 / (norm + 1e-6) * single(limit)).min(1.0);
    gradient.iter_mut().for_each(|g| *g *= coefficient);
}

/// `g += decay w`; with momentum `b = momentum b + g`, else `b = g`; `w -= lr b`.
fn sgd(
    optimizer: &Optimizer,
    lr: f64,
    weights: &mut [f32],
    gradient: &mut [f32],
    mut buffer: Option<&mut Vec<f32>>,
) {
    let (decay, momentum) = (single(optimizer.weight_decay), single(optimizer.momentum));
    for (index, (w, g)) in weights.iter_mut().zip(gradient).enumerate() {
        if decay != 0.0 {
            *g += *w * decay;
        }
        let moved = match &mut buffer {
            Some(buffer) => {
                buffer[index] = buffer[index] * momentum + *g;
                buffer[index]
            }
            None => *g,
        };
        *w += moved * single(-lr);
    }
}

/// As `sojourn-trainer` has it: `w += m / (sqrt(v) scale + shift)`, whose factors are computed in double precision.
fn adam(
    optimizer: &Optimizer,
    count: u32,
    lr: f64,
    weights: &mut [f32],
    gradient: &mut [f32],
    first: &mut [f32],
    second: &mut [f32],
) {
    let Optimizer { name, beta1, beta2, eps, weight_decay, .. } = *optimizer;
    let lerp = |from: f32, to: f32, ratio: f64| from + single(ratio) * (to - from);
    let correction1 = 1.0 - libm::pow(beta1, f64::from(count));
    let correction2 = 1.0 - libm::pow(beta2, f64::from(count));
    let scale = -correction1 / (lr * libm::sqrt(correction2));
    let shift = -eps * correction1 / lr;
    let moves = scale.abs() <= f64::from(f32::MAX);
    let numbers = weights.iter_mut().zip(gradient).zip(first.iter_mut().zip(second));
    for ((w, g), (m, v)) in numbers {
        if weight_decay != 0.0 {
            match name {
                OptimizerName::Adamw => *w *= single(1.0 - lr * weight_decay),
                _ => *g += *w * single(weight_decay),
            }
        }
        *m = lerp(*m, *g, 1.0 - beta1);
        *v = lerp(*v, *g * *g, 1.0 - beta2);
        // A rate this small, or 0, moves no weight.
        if moves {
            *w += *m / (v.sqrt() * single(scale) + single(shift));
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "rounding to single precision")]
const fn single(value: f64) -> f32 {
    value as f32
}
