//! A small training loop, so that there are checkpoints with the statistics of real ones: the demo's
//! convolutional network (3x3 convolutions of 16 and 32 channels, each with ReLU and 2x2 max pooling,
//! then a linear layer) on the digits, in batches of 32. The figures are what it is for, not the model.

use crate::{Checkpoint, size};
use sojourn_codec::{Tensor, encode};

pub(crate) const SHARDS: usize = 4;
const BATCH: usize = 32;
const CLASSES: usize = 10;
const PIXELS: usize = 64;

/// A convolution with ReLU and pooling: input channels, output channels, side of the image.
type Shape = (usize, usize, usize);
const FIRST: Shape = (1, 16, 8);
const SECOND: Shape = (16, 32, 4);
const FLAT: usize = 32 * 2 * 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Optimizer {
    Momentum,
    Adam,
    Adamw,
}

impl Optimizer {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Momentum => "sgd with momentum",
            Self::Adam => "adam",
            Self::Adamw => "adamw",
        }
    }

    const fn rate(self) -> f32 {
        if matches!(self, Self::Momentum) { 3e-2 } else { 3e-3 }
    }

    /// The names of its state's tensors.
    const fn slots(self) -> &'static [&'static str] {
        match self {
            Self::Momentum => &["momentum_buffer"],
            Self::Adam | Self::Adamw => &["exp_avg", "exp_avg_sq"],
        }
    }
}

/// A parameter, its gradient, and its optimiser's state.
struct Parameter {
    name: &'static str,
    shape: Vec<u64>,
    weights: Vec<f32>,
    gradient: Vec<f32>,
    state: [Vec<f32>; 2],
}

/// The checkpoint of each shard of each epoch, in the order of training.
pub(crate) fn train(optimizer: Optimizer, epochs: usize) -> Vec<Checkpoint> {
    let rows = digits();
    let mut model = model();
    let mut checkpoints = Vec::new();
    let mut step = 0;
    let mut random = Random(7);
    for epoch in 0..epochs {
        for shard in 0..SHARDS {
            let mut order: Vec<usize> =
                (shard..size::of(rows.len(), 256)).step_by(SHARDS).collect();
            for last in (1..order.len()).rev() {
                order.swap(last, random.below(last + 1));
            }
            for batch in order.chunks(BATCH) {
                for row in batch {
                    let (pixels, label) = &rows[*row];
                    learn(&mut model, pixels, *label, 1.0 / batch.len() as f32);
                }
                step += 1;
                for parameter in &mut model {
                    update(parameter, optimizer, step);
                }
            }
            checkpoints.push((format!("epoch {}", epoch + 1), checkpoint(&model, optimizer)));
        }
    }
    checkpoints
}

/// The digits, each feature of mean 0 and deviation 1, and their labels.
fn digits() -> Vec<(Vec<f32>, usize)> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/digits/digits.csv");
    let text = std::fs::read_to_string(path).unwrap();
    let mut rows: Vec<(Vec<f32>, usize)> = text
        .lines()
        .skip(1)
        .map(|line| {
            let mut numbers: Vec<f32> =
                line.split(',').map(|field| field.parse().unwrap()).collect();
            let label = numbers.pop().unwrap();
            (numbers, (0..CLASSES).find(|class| *class as f32 == label).unwrap())
        })
        .collect();
    let count = rows.len() as f32;
    for pixel in 0..PIXELS {
        let mean = rows.iter().map(|(row, _)| row[pixel]).sum::<f32>() / count;
        let square = rows.iter().map(|(row, _)| (row[pixel] - mean).powi(2)).sum::<f32>() / count;
        let deviation = if square > 0.0 { square.sqrt() } else { 1.0 };
        for (row, _) in &mut rows {
            row[pixel] = (row[pixel] - mean) / deviation;
        }
    }
    rows
}

/// Uniform within 1 / sqrt(inputs), as PyTorch begins.
fn model() -> Vec<Parameter> {
    let mut random = Random(1);
    let mut parameter = |name, shape: &[usize], inputs: usize| {
        let count = shape.iter().product();
        let bound = 1.0 / (inputs as f32).sqrt();
        Parameter {
            name,
            shape: shape.iter().map(|side| *side as u64).collect(),
            weights: (0..count).map(|_| bound * random.signed()).collect(),
            gradient: vec![0.0; count],
            state: [vec![0.0; count], vec![0.0; count]],
        }
    };
    vec![
        parameter("layers.0.bias", &[16], 9),
        parameter("layers.0.weight", &[16, 1, 3, 3], 9),
        parameter("layers.1.bias", &[32], 144),
        parameter("layers.1.weight", &[32, 16, 3, 3], 144),
        parameter("layers.2.bias", &[CLASSES], FLAT),
        parameter("layers.2.weight", &[CLASSES, FLAT], FLAT),
    ]
}

/// Adds the gradient of one row's cross-entropy, times `factor`.
fn learn(model: &mut [Parameter], pixels: &[f32], label: usize, factor: f32) {
    let [bias0, weight0, bias1, weight1, bias2, weight2] = model else { unreachable!("six") };
    let (out0, chosen0) = convolve(FIRST, pixels, &weight0.weights, &bias0.weights);
    let (out1, chosen1) = convolve(SECOND, &out0, &weight1.weights, &bias1.weights);
    let mut scores: Vec<f32> = weight2
        .weights
        .chunks(FLAT)
        .zip(&bias2.weights)
        .map(|(row, bias)| row.iter().zip(&out1).map(|(w, x)| w * x).sum::<f32>() + bias)
        .collect();
    let most = scores.iter().copied().fold(f32::MIN, f32::max);
    scores.iter_mut().for_each(|score| *score = (*score - most).exp());
    let total: f32 = scores.iter().sum();
    let mut back1 = vec![0.0; FLAT];
    for (class, score) in scores.iter().enumerate() {
        let wrong = factor * (score / total - f32::from(u8::from(class == label)));
        bias2.gradient[class] += wrong;
        for at in 0..FLAT {
            weight2.gradient[class * FLAT + at] += wrong * out1[at];
            back1[at] += wrong * weight2.weights[class * FLAT + at];
        }
    }
    let back0 = back(SECOND, &out0, &back1, &chosen1, weight1, bias1);
    back(FIRST, pixels, &back0, &chosen0, weight0, bias0);
}

/// The pooled output, and for each of its values the place before pooling that it came from; none
/// where ReLU made it 0.
fn convolve(
    (inputs, outputs, side): Shape,
    x: &[f32],
    weights: &[f32],
    biases: &[f32],
) -> (Vec<f32>, Vec<Option<usize>>) {
    let half = side / 2;
    let mut pooled = vec![0.0; outputs * half * half];
    let mut chosen = vec![None; pooled.len()];
    for output in 0..outputs {
        let mut plane = vec![biases[output]; side * side];
        for input in 0..inputs {
            for tap in 0..9 {
                let weight = weights[(output * inputs + input) * 9 + tap];
                for (at, from) in covered(side, tap) {
                    plane[at] += weight * x[input * side * side + from];
                }
            }
        }
        for (at, value) in plane.iter().enumerate() {
            let place = output * half * half + at / side / 2 * half + at % side / 2;
            if *value > pooled[place] {
                pooled[place] = *value;
                chosen[place] = Some(at);
            }
        }
    }
    (pooled, chosen)
}

/// Adds the gradients of a convolution's parameters, and gives that of its input.
fn back(
    (inputs, outputs, side): Shape,
    x: &[f32],
    pooled: &[f32],
    chosen: &[Option<usize>],
    weight: &mut Parameter,
    bias: &mut Parameter,
) -> Vec<f32> {
    let mut gradient = vec![0.0; x.len()];
    let quarter = side * side / 4;
    for output in 0..outputs {
        for place in output * quarter..(output + 1) * quarter {
            let (Some(at), wrong) = (chosen[place], pooled[place]) else { continue };
            bias.gradient[output] += wrong;
            for tap in 0..9 {
                let Some(from) = tapped(side, tap, at) else { continue };
                for input in 0..inputs {
                    let index = (output * inputs + input) * 9 + tap;
                    let from = input * side * side + from;
                    weight.gradient[index] += wrong * x[from];
                    gradient[from] += wrong * weight.weights[index];
                }
            }
        }
    }
    gradient
}

/// The places that a tap of the 3x3 window reaches from, and those it reaches.
fn covered(side: usize, tap: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..side * side).filter_map(move |at| Some((at, tapped(side, tap, at)?)))
}

/// The place that a tap reaches from `at`; none beyond the image's edge.
fn tapped(side: usize, tap: usize, at: usize) -> Option<usize> {
    let row = (at / side + tap / 3).checked_sub(1).filter(|row| *row < side)?;
    let column = (at % side + tap % 3).checked_sub(1).filter(|column| *column < side)?;
    Some(row * side + column)
}

/// One step of PyTorch's SGD, Adam or AdamW; the gradient is used up.
fn update(parameter: &mut Parameter, optimizer: Optimizer, step: i32) {
    let rate = optimizer.rate();
    let correction = [1.0 - 0.9f32.powi(step), (1.0 - 0.999f32.powi(step)).sqrt()];
    let [first, second] = &mut parameter.state;
    for (at, weight) in parameter.weights.iter_mut().enumerate() {
        let gradient = std::mem::take(&mut parameter.gradient[at]);
        if optimizer == Optimizer::Momentum {
            first[at] = 0.9 * first[at] + gradient;
            *weight -= rate * first[at];
            continue;
        }
        if optimizer == Optimizer::Adamw {
            *weight *= 1.0 - rate * 0.01;
        }
        first[at] += 0.1 * (gradient - first[at]);
        second[at] += 0.001 * (gradient * gradient - second[at]);
        let deviation = second[at].sqrt() / correction[1] + 1e-8;
        *weight -= rate / correction[0] * first[at] / deviation;
    }
}

fn checkpoint(model: &[Parameter], optimizer: Optimizer) -> Vec<u8> {
    let mut tensors = Vec::new();
    for Parameter { name, shape, weights, state, .. } in model {
        tensors.push(Tensor::f32(*name, shape.clone(), weights));
        for (slot, state) in optimizer.slots().iter().zip(state) {
            tensors.push(Tensor::f32(format!("optimizer.{slot}.{name}"), shape.clone(), state));
        }
    }
    encode(&tensors).unwrap()
}

/// The random number generator xorshift64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 32) as u32
    }

    fn below(&mut self, bound: usize) -> usize {
        self.next() as usize % bound
    }

    /// Between -1 and 1.
    fn signed(&mut self) -> f32 {
        self.next() as f32 / (u32::MAX / 2) as f32 - 1.0
    }
}
