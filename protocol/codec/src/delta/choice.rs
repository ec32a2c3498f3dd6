//! Which coding a tensor gets: the one that a sample of its numbers would cost least in.

use super::coding::{Coding, Kind, difference};
use sojourn_protocol::quantity::SaturatingFrom as _;

/// Of a tensor's numbers an eighth is looked at, and about so many of a large one's; in runs of [`RUN`].
const SAMPLE: usize = 1024;
const RUN: usize = 32;
/// The class in the middle of the symbols.
const MIDDLE: u32 = 32;

/// The coding that promises the fewest bits.
pub(super) fn cheapest(base: &[[u8; 4]], new: &[[u8; 4]]) -> Coding {
    let runs = base.chunks(RUN).zip(new.chunks(RUN)).step_by((base.len() / SAMPLE).max(8));
    let pairs: Vec<(u32, u32)> = runs
        .flat_map(|(base, new)| base.iter().zip(new))
        .map(|(base, new)| (u32::from_le_bytes(*base), u32::from_le_bytes(*new)))
        .collect();
    let differences =
        pairs.iter().map(|(base, new)| difference(*base, *new).cast_signed()).collect();
    let bias = median::<i32>(differences).cast_unsigned();
    let mut best = outlook(Kind::Plain, &pairs);
    for kind in [Kind::Ratio { bias }, Kind::Step] {
        let outlook = outlook(kind, &pairs);
        if outlook.0 <= best.0 {
            best = outlook;
        }
    }
    best.1
}

/// Bits that these numbers take, the entropy of their symbols and the bits behind, with the offset that
/// puts their median into the middle.
fn outlook(kind: Kind, pairs: &[(u32, u32)]) -> (f64, Coding) {
    let mut counts = [0u32; 256];
    let mut tops = Vec::with_capacity(pairs.len());
    let mut bits = 0;
    for (base, new) in pairs {
        if let Some((top, _, width)) = kind.parts(*base, *new) {
            tops.push(top);
            bits += width;
            // Tops that are 256 apart hardly meet in one tensor.
            if let Some(count) = counts.get_mut(usize::from(top.to_le_bytes()[0])) {
                *count += 1;
            }
        }
    }
    let equal = u32::saturating_from(pairs.len() - tops.len());
    let all = f64::from(counts.iter().sum::<u32>() + equal);
    let entropy = |count: &u32| f64::from(*count) * (all / f64::from(*count)).log2();
    let counts = counts.iter().chain([&equal]).filter(|count| **count > 0);
    let cost = f64::from(bits) + counts.map(entropy).sum::<f64>();
    let class = median(tops) / 4;
    let offset = u8::saturating_from(class.saturating_sub(MIDDLE));
    (cost, Coding { kind, offset })
}

/// The median; nothing of nothing.
fn median<T: Ord + Copy + Default>(mut values: Vec<T>) -> T {
    let middle = values.len() / 2;
    if values.is_empty() { T::default() } else { *values.select_nth_unstable(middle).1 }
}

#[cfg(test)]
mod tests {
    use super::{super::tests::noise, *};

    fn bytes(floats: impl Iterator<Item = f32>) -> Vec<[u8; 4]> {
        floats.map(f32::to_le_bytes).collect()
    }

    #[test]
    fn each_kind_of_state_gets_its_coding() {
        let weights = noise(1, 9000);
        let squares: Vec<f32> = weights.iter().map(|weight| weight * weight).collect();
        let by = |base: &[f32], change: fn(f32, f32) -> f32| {
            let pairs = base.iter().zip(noise(2, 9000));
            let new = bytes(pairs.map(|(base, step)| change(*base, step)));
            cheapest(&bytes(base.iter().copied()), &new).kind
        };
        assert_eq!(by(&weights, |weight, step| weight + step / 1e3), Kind::Step);
        let Kind::Ratio { bias } = by(&squares, |square, step| square * (0.95 + step / 1e3)) else {
            panic!("squares of another kind")
        };
        assert!(bias.cast_signed() < 0, "{bias}");
        assert_eq!(by(&weights, |_, other| other), Kind::Plain);
    }

    #[test]
    fn a_tensor_without_numbers_has_a_coding() {
        cheapest(&[], &[]);
    }
}
