//! Bounds that are kept before an operator is called: no value beyond the format's limit, no zero where libtorch divides.
//!
//! Most operators give no more than what their arguments broadcast to. Those that may give more say here how much.

use super::{
    bounds::{elements, few, length, length_as_whole, numel, positive, product, within},
    call::Call,
    windows,
};
use crate::error::TrainError;
use sojourn_graph::{Kind, MAX_VALUE_ELEMENTS, Operator};
use std::collections::BTreeMap;
use tch::Tensor;

/// Refuses a call that would make too much.
pub(super) type Check = fn(&Call<'_>) -> Result<(), TrainError>;

/// The most layers of a recurrent network.
const MAX_LAYERS: i64 = 1024;

/// The check of an operator; none where it can't give more than it takes.
pub(super) fn check_of(operator: &Operator) -> Option<Check> {
    let name = operator.name.strip_prefix("aten.").unwrap_or(&operator.name);
    Some(match name {
        "zeros.default" | "ones.default" | "full.default" | "rand.default" | "randn.default" => {
            |c| within(elements(&c.wholes(0)?))
        }
        "new_zeros.default" | "new_ones.default" | "new_full.default" => {
            |c| within(elements(&c.wholes(1)?))
        }
        "eye.default" => |c| within(elements(&[c.whole(0)?; 2])),
        "arange.default" => |c| range(0.0, c.real(0)?, 1.0),
        "arange.start" => |c| range(c.real(0)?, c.real(1)?, 1.0),
        "arange.start_step" => |c| {
            let whole =
                c.kind(3)?.is_some_and(|kind| kind == tch::Kind::Int64 || kind == tch::Kind::Int);
            let step = c.real(2)?;
            range(c.real(0)?, c.real(1)?, if whole { step.trunc() } else { step })
        },
        "randperm.default" => |c| within(elements(&[c.whole(0)?])),
        "lstm_cell.default" => cell,
        "_weight_norm.default" => weight_norm,
        "expand.default" | "broadcast_to.default" => {
            |c| within(product(numel(c.tensor(0)?), &c.wholes(1)?))
        }
        "repeat.default" => |c| within(product(numel(c.tensor(0)?), &c.wholes(1)?)),
        "repeat_interleave.self_int" => |c| within(product(numel(c.tensor(0)?), &[c.whole(1)?])),
        "cat.default" | "concat.default" | "stack.default" => |c| {
            let sizes = c.tensors(0)?;
            within(sizes.into_iter().map(numel).fold(0, u64::saturating_add))
        },
        "linear.default" => linear,
        "matmul.default" | "vdot.default" | "mm.default" | "bmm.default" | "mv.default"
        | "dot.default" => |c| matrices(c.tensor(0)?, c.tensor(1)?),
        "addmm.default" | "baddbmm.default" => |c| matrices(c.tensor(1)?, c.tensor(2)?),
        "outer.default" => |c| within(numel(c.tensor(0)?).saturating_mul(numel(c.tensor(1)?))),
        "einsum.default" => einsum,
        "conv1d.default" | "conv2d.default" => windows::convolution,
        "conv1d.padding" | "conv2d.padding" => windows::convolution_by_word,
        "conv_transpose1d.default" | "conv_transpose2d.input" => windows::transposed_convolution,
        "max_pool1d.default" => |c| windows::max_pool(c, 1),
        "max_pool2d.default" => |c| windows::max_pool(c, 2),
        "avg_pool1d.default" => |c| windows::pool(c, 1),
        "avg_pool2d.default" => |c| windows::pool(c, 2),
        "adaptive_avg_pool1d.default"
        | "adaptive_avg_pool2d.default"
        | "adaptive_max_pool2d.default" => |c| resized(c.tensor(0)?, &c.wholes(1)?),
        "upsample_nearest1d.vec" | "upsample_nearest2d.vec" => |c| upsampled(c, 2),
        "upsample_bilinear2d.vec" => |c| upsampled(c, 3),
        "pad.default" | "constant_pad_nd.default" => padded,
        "pixel_shuffle.default" => |c| positive(&[c.whole(1)?]),
        "group_norm.default" => |c| positive(&[c.whole(1)?]),
        "embedding.default" => |c| {
            let width = c.tensor(0)?.size().last().copied().unwrap_or(1);
            within(product(numel(c.tensor(1)?), &[width]))
        },
        "index_select.default" => |c| {
            let (of, dimension) = (c.tensor(0)?, c.whole(1)?);
            let rest = numel(of) / length(of, dimension).max(1);
            within(rest.saturating_mul(numel(c.tensor(2)?)))
        },
        "gather.default" => |c| within(numel(c.tensor(2)?)),
        "index.Tensor" => indexed,
        "one_hot.default" => |c| {
            // A number of classes that follows from the labels would be a shape that depends on numbers.
            positive(&[c.whole(1)?])?;
            within(product(numel(c.tensor(0)?), &[c.whole(1)?]))
        },
        "scaled_dot_product_attention.default" => attention,
        "lstm.input" => |c| recurrent(c, &c.tensors(1)?, 2, 4),
        "gru.input" => |c| recurrent(c, &[c.tensor(1)?], 1, 3),
        "rnn_tanh.input" | "rnn_relu.input" => |c| recurrent(c, &[c.tensor(1)?], 1, 1),
        "split.Tensor" => |c| {
            positive(&[c.whole(1)?])?;
            few(length_as_whole(c.tensor(0)?, c.whole(2)?)? / c.whole(1)?)
        },
        "split_with_sizes.default" => |c| few(i64::try_from(c.wholes(1)?.len())?),
        "chunk.default" => |c| {
            positive(&[c.whole(1)?])?;
            few(c.whole(1)?)
        },
        "unbind.int" => |c| few(length_as_whole(c.tensor(0)?, c.whole(1)?)?),
        // Their tensors don't broadcast against each other.
        "batch_norm.default"
        | "instance_norm.default"
        | "layer_norm.default"
        | "rms_norm.default"
        | "prelu.default"
        | "nll_loss.default"
        | "nll_loss2d.default"
        | "nll_loss_nd.default"
        | "cross_entropy_loss.default"
        | "scatter.src"
        | "scatter.value"
        | "scatter_.value"
        | "scatter_add.default"
        | "view_as.default"
        | "type_as.default"
        | "to.other"
        | "copy_.default" => return None,
        _ => return several_tensors(operator).then_some(broadcast),
    })
}

/// Do several tensors go in, so that the result may be larger than each?
fn several_tensors(operator: &Operator) -> bool {
    operator.parameters.iter().filter(|parameter| parameter.kind == Kind::Tensor).count() > 1
}

/// Checks the size that all tensors that go in broadcast to.
fn broadcast(c: &Call<'_>) -> Result<(), TrainError> {
    let mut sizes: Vec<i64> = Vec::new();
    for at in 0..c.len() {
        let Ok(Some(tensor)) = c.optional(at) else { continue };
        join(&mut sizes, &tensor.size());
    }
    within(elements(&sizes))
}

/// The larger of each two lengths, from the last dimension on.
fn join(sizes: &mut Vec<i64>, other: &[i64]) {
    while sizes.len() < other.len() {
        sizes.insert(0, 1);
    }
    for (size, other) in sizes.iter_mut().rev().zip(other.iter().rev()) {
        *size = (*size).max(*other);
    }
}

#[expect(clippy::cast_precision_loss, reason = "a bound")]
fn range(start: f64, end: f64, step: f64) -> Result<(), TrainError> {
    let count = (end - start) / step;
    if count.is_finite() && count <= MAX_VALUE_ELEMENTS as f64 {
        return Ok(());
    }
    Err(TrainError::Unit(format!("it can't count from {start} to {end} by {step}")))
}

fn linear(c: &Call<'_>) -> Result<(), TrainError> {
    let (input, weight) = (c.tensor(0)?, c.tensor(1)?);
    let rows = numel(input) / length(input, -1).max(1);
    within(product(rows, &[length_as_whole(weight, 0)?]))
}

/// Have all states and weights of a recurrent layer the sizes that the first state says? libtorch looks at few of them.
fn fits_recurrence(
    c: &Call<'_>,
    states: &[&Tensor],
    weights: &[&Tensor],
    gates: u64,
) -> Result<(), TrainError> {
    let input = c.tensor(0)?;
    let (layers, both, batch_first) = (c.whole(4)?, c.flag(7)?, c.flag(8)?);
    let directions = if both { 2 } else { 1 };
    let sizes = input.size();
    let [first, second, features] = *sizes.as_slice() else {
        return Err(TrainError::Unit(format!("a sequence has three dimensions, not {sizes:?}")));
    };
    let batch = if batch_first { first } else { second };
    let hidden = states.first().and_then(|state| state.size().last().copied()).unwrap_or(0);
    let gated = i64::try_from(gates)?.saturating_mul(hidden);
    let state = [layers * directions, batch, hidden];
    let per_layer = if c.flag(3)? { 4 } else { 2 };
    let kind = input.f_kind()?;
    let fits = |tensor: &Tensor, size: &[i64]| {
        tensor.size() == size && tensor.f_kind().is_ok_and(|found| found == kind)
    };
    let weight = |(at, weight): (usize, &&Tensor)| {
        let is_first = at / per_layer < usize::try_from(directions).unwrap_or(1);
        let from = if is_first { features } else { hidden.saturating_mul(directions) };
        match at % per_layer {
            0 => fits(weight, &[gated, from]),
            1 => fits(weight, &[gated, hidden]),
            _ => fits(weight, &[gated]),
        }
    };
    if hidden > 0
        && states.iter().all(|found| fits(found, &state))
        && weights.iter().enumerate().all(weight)
    {
        return Ok(());
    }
    let states: Vec<Vec<i64>> = states.iter().map(|state| state.size()).collect();
    Err(TrainError::Unit(format!(
        "its weights don't go with an input of {sizes:?} and states of {states:?}"
    )))
}

/// A product of matrices, or of stacks of them that broadcast.
fn matrices(a: &Tensor, b: &Tensor) -> Result<(), TrainError> {
    let (mut a, mut b) = (a.size(), b.size());
    if a.len() < 2 {
        a.insert(0, 1);
    }
    if b.len() < 2 {
        b.push(1);
    }
    let (_, rows) = (a.pop(), a.pop().unwrap_or(1));
    let (columns, _) = (b.pop().unwrap_or(1), b.pop());
    join(&mut a, &b);
    within(product(elements(&a), &[rows, columns]))
}

/// One element for each choice of the output's indices. More than two tensors may meet in between with all indices.
fn einsum(c: &Call<'_>) -> Result<(), TrainError> {
    let (equation, tensors) = (c.text(0)?, c.tensors(1)?);
    let (inputs, output) = equation.split_once("->").unwrap_or((equation, ""));
    let (mut lengths, mut rest) = (BTreeMap::new(), Vec::new());
    for (input, tensor) in inputs.split(',').zip(&tensors) {
        let mut sizes = tensor.size();
        let (before, after) = input.split_once("...").unwrap_or((input, ""));
        let letters = |part: &str| part.chars().filter(|c| c.is_alphabetic()).collect::<Vec<_>>();
        let mut note = |letter: char, size: i64| {
            let longest = lengths.entry(letter).or_insert(size);
            *longest = size.max(*longest);
        };
        for letter in letters(after).into_iter().rev() {
            note(letter, sizes.pop().unwrap_or(1));
        }
        let before = letters(before);
        let taken = before.len().min(sizes.len());
        before.into_iter().zip(sizes.drain(..taken)).for_each(|(letter, size)| note(letter, size));
        join(&mut rest, &sizes);
    }
    let chosen: Vec<i64> = if equation.contains("->") && tensors.len() < 3 {
        output.chars().filter_map(|letter| lengths.get(&letter).copied()).collect()
    } else {
        lengths.into_values().collect()
    };
    within(product(elements(&rest), &chosen))
}

/// Images, or lines, of another size.
fn resized(input: &Tensor, size: &[i64]) -> Result<(), TrainError> {
    let sizes = input.size();
    let leading = sizes.len().saturating_sub(size.len());
    within(product(elements(sizes.get(..leading).unwrap_or_default()), size))
}

fn upsampled(c: &Call<'_>, factors: usize) -> Result<(), TrainError> {
    let input = c.tensor(0)?;
    if let Some(size) = c.optional_wholes(1)? {
        return resized(input, &size);
    }
    let by: f64 = c.reals(factors)?.iter().product();
    #[expect(clippy::cast_precision_loss, reason = "a bound")]
    let (count, most) = (numel(input) as f64 * by, MAX_VALUE_ELEMENTS as f64);
    if (0.0..=most).contains(&count) {
        return Ok(());
    }
    Err(TrainError::Unit(format!("it can't be larger by {by}")))
}

fn padded(c: &Call<'_>) -> Result<(), TrainError> {
    let (mut sizes, pad) = (c.tensor(0)?.size(), c.wholes(1)?);
    for (size, around) in sizes.iter_mut().rev().zip(pad.chunks(2)) {
        *size = around.iter().fold(*size, |size, pad| size.saturating_add(*pad));
    }
    within(elements(&sizes))
}

fn indexed(c: &Call<'_>) -> Result<(), TrainError> {
    let (mut rest, mut chosen) = (c.tensor(0)?.size(), Vec::new());
    let indices = c.optional_tensors(1)?;
    for (size, index) in rest.iter_mut().zip(&indices) {
        if let Some(index) = index {
            *size = 1;
            join(&mut chosen, &index.size());
        }
    }
    within(elements(&rest).saturating_mul(elements(&chosen)))
}

/// The scores of all pairs of places.
/// Keys and values are of the same places and heads; libtorch's fused kernels read behind those that aren't.
fn attention(c: &Call<'_>) -> Result<(), TrainError> {
    let (query, key, value) = (c.tensor(0)?, c.tensor(1)?, c.tensor(2)?);
    let (q, k, v) = (query.size(), key.size(), value.size());
    let (places, heads) = (k.len().saturating_sub(1), k.len().saturating_sub(2));
    let mut of_keys = k.get(..heads).unwrap_or_default().to_vec();
    if c.flag(7)? {
        // Each head of keys serves several of queries.
        let asked = q.get(heads.saturating_sub(1)).copied().unwrap_or(0);
        let there = of_keys.last().copied().unwrap_or(0);
        if q.len() > 2
            && there > 0
            && asked % there == 0
            && let Some(heads) = of_keys.last_mut()
        {
            *heads = asked;
        }
    }
    let fits = k.len() >= 2
        && k.get(..places) == v.get(..places)
        && q.len() == k.len()
        && v.len() == k.len()
        && q.get(..heads) == Some(of_keys.as_slice())
        && q.last() == k.last()
        && k.iter().all(|side| *side > 0);
    if !fits {
        let text = format!("queries of {q:?}, keys of {k:?} and values of {v:?} don't go together");
        return Err(TrainError::Unit(text));
    }
    let queries = numel(query) / length(query, -1).max(1);
    within(queries.saturating_mul(length(key, -2)).max(numel(query)).max(numel(c.tensor(2)?)))
}

/// One length for each place of a dimension; libtorch looks at none of this.
fn weight_norm(c: &Call<'_>) -> Result<(), TrainError> {
    let (v, g, dimension) = (c.tensor(0)?, c.tensor(1)?, c.whole(2)?);
    let mut sizes = vec![1; v.dim()];
    let at = usize::try_from(dimension).ok();
    let place = at.and_then(|at| sizes.get_mut(at));
    let fits = place.is_some_and(|place| {
        *place = at.and_then(|at| v.size().get(at).copied()).unwrap_or(1);
        true
    });
    if fits && g.size() == sizes && v.f_kind()? == g.f_kind()? && v.numel() > 0 {
        return Ok(());
    }
    let (v, g) = (v.size(), g.size());
    Err(TrainError::Unit(format!("{g:?} are no lengths of {v:?} along {dimension}")))
}

/// A cell has two states, and its gates are products of matrices.
fn cell(c: &Call<'_>) -> Result<(), TrainError> {
    let states = c.tensors(1)?.len();
    if states != 2 {
        return Err(TrainError::Unit(format!("a cell has two states, not {states}")));
    }
    matrices(c.tensor(0)?, c.tensor(2)?)
}

/// Recurrent layers: as many states and weights as layers and directions need, and the gates of all steps.
fn recurrent(c: &Call<'_>, states: &[&Tensor], kinds: usize, gates: u64) -> Result<(), TrainError> {
    let (input, weights) = (c.tensor(0)?, c.tensors(2)?);
    let (layers, both) = (c.whole(4)?, c.flag(7)?);
    if !(1..=MAX_LAYERS).contains(&layers) {
        return Err(TrainError::Unit(format!("it can't have {layers} layers")));
    }
    let directions = if both { 2 } else { 1 };
    let each = if c.flag(3)? { 4 } else { 2 };
    if states.len() != kinds || i64::try_from(weights.len())? != layers * directions * each {
        let text = format!("{layers} layers have no {} weights", weights.len());
        return Err(TrainError::Unit(text));
    }
    fits_recurrence(c, states, &weights, gates)?;
    let width = states.first().map_or(1, |state| length(state, -1));
    let steps = numel(input) / length(input, -1).max(1);
    within(steps.saturating_mul(width).saturating_mul(gates).saturating_mul(2))
}
