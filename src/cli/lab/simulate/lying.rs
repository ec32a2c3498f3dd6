//! Corrupted results of simulated adversaries: other values in a file that is otherwise valid.

use sojourn_codec::{CodecError, Dtype, Tensor, TensorView, decode, encode};
use sojourn_protocol::{error::error_chain, seeds};
use sojourn_sim::Corruption;

/// The prefix of the optimiser's tensors, which adversaries leave alone.
const OPTIMIZER: &str = "optimizer.";
/// By how much more than it was the change is said to be.
const SCALE: f32 = 10.0;

/// The checkpoints that a lie is made of.
pub(super) struct Truth<'a> {
    /// The checkpoint that the hop began from.
    pub(super) base: &'a [u8],
    /// The checkpoint that it trained.
    pub(super) result: &'a [u8],
    /// The trial's first result, where it isn't this one.
    pub(super) first: Option<&'a [u8]>,
    /// The result of another trial, where there is one.
    pub(super) other: Option<&'a [u8]>,
}

/// The checkpoint that is reported instead.
///
/// # Errors
/// A checkpoint that can't be read.
pub(super) fn corrupted(lie: Corruption, truth: &Truth<'_>, seed: u64) -> Result<Vec<u8>, String> {
    made(lie, truth, seed).map_err(|error| error_chain(&error))
}

fn made(lie: Corruption, truth: &Truth<'_>, seed: u64) -> Result<Vec<u8>, CodecError> {
    let (base, result) = (decode(truth.base)?, decode(truth.result)?);
    let instead = match lie {
        Corruption::Old => decode(truth.first.unwrap_or(truth.base))?,
        Corruption::Foreign => decode(truth.other.unwrap_or(truth.base))?,
        Corruption::Nan | Corruption::SignFlip | Corruption::Scaled | Corruption::Noise => {
            Vec::new()
        }
    };
    let mut noise = Noise { seed, tensors: 0 };
    let tensors = result.iter().map(|tensor| {
        let own = tensor.to_tensor();
        if tensor.dtype != Dtype::F32 || tensor.name.starts_with(OPTIMIZER) {
            return Ok(own);
        }
        let (now, before) = (values(&result, tensor)?, values(&base, tensor)?);
        let changed = |by: f32| -> Vec<f32> {
            now.iter().zip(&before).map(|(now, before)| before + by * (now - before)).collect()
        };
        let said = match lie {
            Corruption::Nan => now.iter().map(|_| f32::NAN).collect(),
            Corruption::SignFlip => changed(-1.0),
            Corruption::Scaled => changed(SCALE),
            Corruption::Old | Corruption::Foreign => values(&instead, tensor)?,
            Corruption::Noise => noise.instead(&now, &before),
        };
        Ok(Tensor::f32(own.name, own.shape, &said))
    });
    encode(&tensors.collect::<Result<Vec<_>, CodecError>>()?)
}

/// The values of the tensor of this name in a file.
fn values(of: &[TensorView<'_>], like: &TensorView<'_>) -> Result<Vec<f32>, CodecError> {
    let named = of.iter().find(|tensor| tensor.name == like.name);
    Ok(named.unwrap_or(like).f32s()?.collect())
}

/// Changes by chance.
struct Noise {
    seed: u64,
    tensors: u64,
}

impl Noise {
    /// As far from `before` as `now` is, in another direction.
    fn instead(&mut self, now: &[f32], before: &[f32]) -> Vec<f32> {
        self.tensors += 1;
        let mut chance = seeds::stream("lie", &[self.seed, self.tensors]);
        let noise: Vec<f64> = now.iter().map(|_| seeds::unit_f64(&mut chance) - 0.5).collect();
        let change = now.iter().zip(before).map(|(now, before)| f64::from(now - before));
        let scale = norm(change) / norm(noise.iter().copied()).max(f64::MIN_POSITIVE);
        let moved = |(before, noise): (&f32, f64)| narrow(f64::from(*before) + scale * noise);
        before.iter().zip(noise).map(moved).collect()
    }
}

fn norm(values: impl Iterator<Item = f64>) -> f64 {
    values.map(|value| value * value).sum::<f64>().sqrt()
}

#[expect(clippy::cast_possible_truncation, reason = "the nearest value is what is meant")]
fn narrow(value: f64) -> f32 {
    value as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(values: &[f32]) -> Vec<u8> {
        let weight = Tensor::f32("layers.0.weight", [3u64], values);
        let momentum = Tensor::f32("optimizer.momentum_buffer.layers.0.weight", [3u64], values);
        encode(&[weight, momentum]).unwrap()
    }

    /// The corrupted result of a hop from 1, 2, 3 to 2, 2, 5; the first result was 9, 9, 9, another trial's 7, 7, 7.
    fn said(lie: Corruption) -> Vec<f32> {
        let (base, result) = (file(&[1.0, 2.0, 3.0]), file(&[2.0, 2.0, 5.0]));
        let (first, other) = (file(&[9.0; 3]), file(&[7.0; 3]));
        let truth =
            Truth { base: &base, result: &result, first: Some(&first), other: Some(&other) };
        let corrupted = corrupted(lie, &truth, 1).unwrap();
        let tensors = decode(&corrupted).unwrap();
        let of = |n: usize| tensors[n].f32s().unwrap().collect::<Vec<f32>>();
        assert_eq!(of(1), [2.0, 2.0, 5.0], "nobody lies about the optimiser");
        of(0)
    }

    #[test]
    fn each_corruption_does_what_its_name_says() {
        assert!(said(Corruption::Nan).iter().any(|value| value.is_nan()));
        assert_eq!(said(Corruption::SignFlip), [0.0, 2.0, 1.0]);
        assert_eq!(said(Corruption::Scaled), [11.0, 2.0, 23.0]);
        assert_eq!(said(Corruption::Old), [9.0; 3]);
        assert_eq!(said(Corruption::Foreign), [7.0; 3]);
    }

    #[test]
    fn noise_is_as_long_as_the_change_that_it_replaces() {
        let said = said(Corruption::Noise);
        assert_ne!(said, [2.0, 2.0, 5.0]);
        let change =
            said.iter().zip([1.0, 2.0, 3.0]).map(|(said, before)| f64::from(said - before));
        assert!((norm(change) - 5f64.sqrt()).abs() < 1e-5, "{said:?}");
    }
}
