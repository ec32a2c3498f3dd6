//! Deltas as a whole: they come back, they are smaller, and no bytes make them panic.

use super::*;
use crate::{Tensor, encode as file_of};
use proptest::prelude::*;
use sha2::{Digest as _, Sha256};

fn named(bytes: &[u8]) -> Named<'_> {
    Named { digest: Sha256::digest(bytes).into(), bytes }
}

fn delta_of(base: &[u8], new: &[u8]) -> Vec<u8> {
    encode(named(base), named(new)).unwrap()
}

/// Numbers between -1 and 1: splitmix64.
pub(super) fn noise(seed: u64, count: usize) -> Vec<f32> {
    let mut state = seed << 32;
    let next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        f32::from_bits(0x4000_0000 | u32::try_from(mixed >> 41).unwrap()) - 3.0
    };
    std::iter::repeat_with(next).take(count).collect()
}

/// A checkpoint of weights, their momentum, and the averages of their squares.
fn checkpoint(weights: &[f32], momentum: &[f32], squares: &[f32], lineage: i64) -> Vec<u8> {
    let shape = |floats: &[f32]| [floats.len() as u64];
    file_of(&[
        Tensor::f32("layers.0.weight", shape(weights), weights),
        Tensor::i64("lineage", [1u64], &[lineage]),
        Tensor::f32("optimizer.exp_avg.layers.0.weight", shape(momentum), momentum),
        Tensor::f32("optimizer.exp_avg_sq.layers.0.weight", shape(squares), squares),
    ])
    .unwrap()
}

/// One and the next, as an optimiser leaves them.
fn pair(count: usize) -> (Vec<u8>, Vec<u8>) {
    let weights = noise(1, count);
    let squares: Vec<f32> = noise(2, count).iter().map(|number| number * number / 1e3).collect();
    let moved = |all: &[f32], seed, by: f32| -> Vec<f32> {
        all.iter().zip(noise(seed, count)).map(|(number, step)| number + step * by).collect()
    };
    let shrunk: Vec<f32> =
        squares.iter().zip(noise(4, count)).map(|(n, step)| n * (0.97 + 0.01 * step)).collect();
    let base = checkpoint(&weights, &noise(5, count), &squares, 1);
    (base, checkpoint(&moved(&weights, 3, 1e-3), &noise(6, count), &shrunk, -2))
}

#[test]
fn a_checkpoint_comes_back_from_its_delta_and_is_smaller() {
    for count in [0, 1, 7, 5000, 300_000] {
        let (base, new) = pair(count);
        let delta = delta_of(&base, &new);
        let head = Head::read(&delta[..Head::BYTES]).unwrap();
        assert_eq!(head.base, named(&base).digest);
        assert_eq!(head.result, named(&new).digest);
        assert_eq!(head.bytes, new.len() as u64);
        assert!(decode(named(&base), &delta, head.bytes).unwrap() == new, "{count} weights");
        if count > 1000 {
            assert!(delta.len() * 4 < new.len() * 3, "{} of {}", delta.len(), new.len());
        }
    }
}

#[test]
fn nothing_changed_is_next_to_nothing() {
    let (base, _) = pair(100_000);
    let delta = delta_of(&base, &base);
    assert!(delta.len() < 600, "{} bytes", delta.len());
    assert_eq!(decode(named(&base), &delta, u64::MAX).unwrap(), base);
}

#[test]
fn the_smaller_is_chosen() {
    let (base, new) = pair(5000);
    let delta = choose(Some(named(&base)), named(&new)).unwrap();
    assert_eq!(delta, Encoded::Delta(delta_of(&base, &new)));
    let whole = choose(None, named(&new)).unwrap();
    assert!(delta.bytes().len() < whole.bytes().len());
    let Encoded::Whole(frame) = whole else { panic!("a delta without a base") };
    assert_eq!(zstd::bulk::decompress(&frame, new.len()).unwrap(), new);
    // Other tensors: nothing to compare with.
    let (other, _) = pair(4999);
    assert!(matches!(choose(Some(named(&other)), named(&new)).unwrap(), Encoded::Whole(_)));
    // Noise became zeros, which zstd packs to less than a delta's head.
    let zeros = checkpoint(&[0.0; 10], &[0.0; 10], &[0.0; 10], 0);
    let noisy = checkpoint(&noise(1, 10), &noise(2, 10), &noise(3, 10), 0);
    let chosen = choose(Some(named(&noisy)), named(&zeros)).unwrap();
    let delta = delta_of(&noisy, &zeros);
    assert!(chosen.bytes().len() <= delta.len());
}

#[test]
fn a_delta_of_another_base_or_result_is_refused() {
    let (base, new) = pair(100);
    let (other, _) = pair(99);
    assert!(matches!(encode(named(&other), named(&new)), Err(DeltaError::OtherTensors)));
    assert!(matches!(encode(named(b"{}"), named(&new)), Err(DeltaError::Base(_))));
    assert!(matches!(encode(named(&base[..99]), named(&new)), Err(DeltaError::Base(_))));
    let long = [base.clone(), vec![0]].concat();
    assert!(matches!(encode(named(&long), named(&long)), Err(DeltaError::Base(_))));

    let delta = delta_of(&base, &new);
    assert!(matches!(decode(named(&new), &delta, u64::MAX), Err(DeltaError::OtherBase)));
    let limit = new.len() as u64 - 1;
    let refused = decode(named(&base), &delta, limit);
    assert!(matches!(refused, Err(DeltaError::Length { allowed, .. }) if allowed == limit));
    // Under the right name, but other bytes.
    let lie = Named { digest: named(&base).digest, bytes: &new };
    assert!(matches!(
        decode(lie, &delta, u64::MAX),
        Err(DeltaError::OtherResult | DeltaError::Damaged(_))
    ));
}

#[test]
fn other_versions_and_other_formats_are_told_apart() {
    let (base, new) = pair(10);
    let mut delta = delta_of(&base, &new);
    delta[7] = 2;
    assert!(matches!(Head::read(&delta), Err(DeltaError::Version(2))));
    assert!(matches!(Head::read(&base), Err(DeltaError::NotADelta)));
    assert!(matches!(Head::read(b""), Err(DeltaError::NotADelta)));
    assert!(matches!(Head::read(b"SJDELTA\x01short"), Err(DeltaError::Damaged(_))));
}

/// A delta of version 1 as it was written once: what is stored must be read for ever.
#[test]
fn a_delta_of_version_1_is_read() {
    let base = checkpoint(&[1.0, -2.0], &[0.5, 0.0], &[0.25, 1e-9], 1);
    let new = checkpoint(&[1.001, -2.0], &[-3.0, 0.0], &[0.24, 0.9e-9], 2);
    let body = "8a1100007478060028b52ffd20042100008000080028b52ffd2002110000005328b52ffd2002110000\
                8200006e0000026001008fc2f5ff08000000000000000d000000000000000b00000000000000\
                0b00000000000000";
    let byte = |at| u8::from_str_radix(&body[at..at + 2], 16).unwrap();
    let mut delta = delta_of(&base, &new);
    delta.truncate(Head::BYTES);
    delta.extend((0..body.len()).step_by(2).map(byte));
    assert_eq!(decode(named(&base), &delta, u64::MAX).unwrap(), new);
}

/// A frame of a kilobyte that unpacks to many megabytes, where 62 symbols belong.
#[test]
fn a_stream_unpacks_to_no_more_than_its_symbols() {
    let (base, new) = pair(20);
    let head = delta_of(&base, &new)[..Head::BYTES].to_vec();
    let stream = |symbols: usize| zstd::bulk::compress(&vec![0; symbols], 1).unwrap();
    for symbols in [32 << 20, 61, 63, 62] {
        let stream = stream(symbols);
        let sizes = [0, stream.len() as u64, 0, 0].map(u64::to_le_bytes);
        // Four tensors of steps.
        let delta = [&head, &stream, &[0; 8][..], sizes.as_flattened()].concat();
        let refused = decode(named(&base), &delta, u64::MAX).unwrap_err();
        // Of the right size it is read, and only the digest tells that it says something else.
        let right = symbols == 62;
        assert_eq!(matches!(refused, DeltaError::OtherResult), right, "{symbols}: {refused}");
        assert_eq!(matches!(refused, DeltaError::Damaged(_)), !right, "{symbols}: {refused}");
    }
}

#[test]
fn every_cut_and_every_changed_byte_is_refused() {
    let (base, new) = pair(40);
    let delta = delta_of(&base, &new);
    for end in 0..delta.len() {
        assert!(decode(named(&base), &delta[..end], u64::MAX).is_err(), "{end} bytes");
    }
    let long = [delta.as_slice(), &[0]].concat();
    assert!(matches!(decode(named(&base), &long, u64::MAX), Err(DeltaError::Damaged(_))));
    for at in 0..delta.len() {
        for bit in 0..8 {
            let mut changed = delta.clone();
            changed[at] ^= 1 << bit;
            // A change that no number depends on gives the same checkpoint; none gives another.
            if let Ok(result) = decode(named(&base), &changed, u64::MAX) {
                assert!(result == new, "bit {bit} of byte {at}");
            }
        }
    }
}

#[test]
fn files_of_bytes_are_no_base() {
    let shard = file_of(&[Tensor::u8("x", [3u64, 1], &[1, 2, 3])]).unwrap();
    let refused = encode(named(&shard), named(&shard)).unwrap_err();
    assert!(matches!(refused, DeltaError::Base(CodecError::WrongDtype { .. })), "{refused}");
}

fn floats() -> impl Strategy<Value = Vec<u32>> {
    let special = [f32::NAN, f32::INFINITY, -0.0, f32::MIN_POSITIVE, 1e-45].map(f32::to_bits);
    let near = (-1.0f32..1.0).prop_map(f32::to_bits);
    prop::collection::vec(
        prop_oneof![any::<u32>(), near, Just(0), prop::sample::select(special.to_vec())],
        0..200,
    )
}

fn of_bits(floats: &[u32], integers: &[i64]) -> Vec<u8> {
    let data = floats.iter().flat_map(|bits| bits.to_le_bytes()).collect();
    let shape = vec![floats.len() as u64];
    let dtype = crate::Dtype::F32;
    file_of(&[
        Tensor { name: "a".into(), dtype, shape, data },
        Tensor::i64("b", [integers.len() as u64], integers),
    ])
    .unwrap()
}

proptest! {
    #[test]
    fn any_two_checkpoints_round_trip(
        numbers in floats().prop_flat_map(|base| {
            let count = base.len();
            (Just(base), prop::collection::vec(any::<u32>(), count))
        }),
        near in any::<bool>(),
        integers in any::<[[i64; 2]; 2]>(),
    ) {
        let (base, mut new) = numbers;
        if near {
            new = base.iter().zip(&new).map(|(base, step)| base.wrapping_add(step & 0xff)).collect();
        }
        let (base, new) = (of_bits(&base, &integers[0]), of_bits(&new, &integers[1]));
        let delta = delta_of(&base, &new);
        prop_assert!(decode(named(&base), &delta, new.len() as u64).unwrap() == new);
    }

    #[test]
    fn any_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let (base, _) = pair(20);
        prop_assert!(decode(named(&base), &bytes, u64::MAX).is_err());
        // Behind a good head.
        let (base, new) = pair(20);
        let mut delta = delta_of(&base, &new);
        delta.truncate(Head::BYTES);
        delta.extend_from_slice(&bytes);
        prop_assert!(decode(named(&base), &delta, u64::MAX).is_err());
    }
}
