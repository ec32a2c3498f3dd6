//! Rows shared out among shards by their labels, so that each shard has mostly few of them.
//!
//! After Hsu, Qi and Brown, "Measuring the Effects of Non-Identical Data Distribution for Federated Visual
//! Classification" (2019), section 3: each shard draws its own shares of the labels from a Dirichlet distribution,
//! and then its rows by these among what is left. Shards are of equal sizes, whatever the skew is.

use super::job::{count, index};
use rand_chacha::ChaCha8Rng;
use sojourn_protocol::{quantity::SaturatingFrom as _, seeds};
use sojourn_workgen::shards::rows_by_weight;
use std::collections::BTreeMap;

/// The rows of each shard, as indices into `labels`; all rows, each once. `skew`: the concentration of the Dirichlet
/// distribution, above 0; the less it is, the fewer labels a shard has.
#[must_use]
pub fn shared_out(labels: &[i64], shards: u32, skew: f64, seed: u64) -> Vec<Vec<usize>> {
    let mut chance = seeds::stream("sim-skew", &[seed]);
    let mut left: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
    for (row, label) in labels.iter().enumerate() {
        left.entry(*label).or_default().push(row);
    }
    let mut left: Vec<Vec<usize>> = left.into_values().collect();
    let sizes = rows_by_weight(count(labels.len()), &vec![1; index(shards)]);
    let fill = |size: &u64| {
        let weights: Vec<f64> = left.iter().map(|_| gamma(&mut chance, skew)).collect();
        let rows = (0..*size).filter_map(|_| {
            let label = drawn(&mut chance, &weights, &left)?;
            take(&mut chance, left.get_mut(label)?)
        });
        rows.collect()
    };
    sizes.iter().map(fill).collect()
}

/// A label of which rows are left, with a chance in proportion to its weight.
fn drawn(chance: &mut ChaCha8Rng, weights: &[f64], left: &[Vec<usize>]) -> Option<usize> {
    let there = || weights.iter().zip(left).enumerate().filter(|(_, (_, rows))| !rows.is_empty());
    let all: f64 = there().map(|(_, (weight, _))| weight).sum();
    let mut place = seeds::unit_f64(chance) * all;
    for (label, (weight, _)) in there() {
        place -= weight;
        if place < 0.0 {
            return Some(label);
        }
    }
    // Rounding, or none that is left has any weight.
    there().next_back().map(|(label, _)| label)
}

fn take(chance: &mut ChaCha8Rng, rows: &mut Vec<usize>) -> Option<usize> {
    let bound = u32::saturating_from(rows.len());
    (bound > 0).then(|| rows.swap_remove(index(seeds::below(chance, bound))))
}

/// A number of the gamma distribution of this shape and scale 1 (Marsaglia and Tsang, 2000).
fn gamma(chance: &mut ChaCha8Rng, shape: f64) -> f64 {
    if shape < 1.0 {
        let factor = libm::pow(1.0 - seeds::unit_f64(chance), 1.0 / shape);
        return gamma(chance, shape + 1.0) * factor;
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / libm::sqrt(9.0 * d);
    loop {
        let (a, b) = (1.0 - seeds::unit_f64(chance), seeds::unit_f64(chance));
        // Box and Muller, 1958.
        let x = libm::sqrt(-2.0 * libm::log(a)) * libm::cos(2.0 * std::f64::consts::PI * b);
        let v = (1.0 + c * x) * (1.0 + c * x) * (1.0 + c * x);
        let u = 1.0 - seeds::unit_f64(chance);
        if v > 0.0 && libm::log(u) < 0.5 * x * x + d - d * v + d * libm::log(v) {
            return d * v;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Of all shards, the mean share of the commonest label.
    fn purity(skew: f64) -> f64 {
        let labels: Vec<i64> = (0..2000).map(|row| row % 10).collect();
        let shards = shared_out(&labels, 40, skew, 3);
        let of = |rows: &Vec<usize>| {
            let commonest =
                (0..10).map(|label| rows.iter().filter(|row| labels[**row] == label).count()).max();
            commonest.unwrap() as f64 / rows.len() as f64
        };
        shards.iter().map(of).sum::<f64>() / shards.len() as f64
    }

    proptest! {
        #[test]
        fn every_row_is_in_one_shard_and_shards_are_of_equal_sizes(
            labels in prop::collection::vec(0i64..5, 1..300), shards in 1u32..12, skew in 0.01f64..50.0, seed: u64,
        ) {
            let shared = shared_out(&labels, shards, skew, seed);
            let sizes: Vec<usize> = shared.iter().map(Vec::len).collect();
            prop_assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1);
            let mut rows = shared.concat();
            rows.sort_unstable();
            prop_assert_eq!(rows, (0..labels.len()).collect::<Vec<_>>());
            prop_assert_eq!(shared_out(&labels, shards, skew, seed), shared_out(&labels, shards, skew, seed));
        }
    }

    #[test]
    fn the_less_the_number_the_fewer_labels_a_shard_has() {
        let [least, middle, most] = [0.05, 0.3, 100.0].map(purity);
        assert!(
            least > 0.7 && most < 0.25 && (most + 0.1..least - 0.1).contains(&middle),
            "{least} {middle} {most}"
        );
    }

    #[test]
    fn gammas_have_their_mean() {
        for shape in [0.3, 1.0, 4.5] {
            let mut chance = seeds::stream("test", &[1]);
            let mean = (0..20_000).map(|_| gamma(&mut chance, shape)).sum::<f64>() / 20_000.0;
            assert!((mean / shape - 1.0).abs() < 0.05, "{shape}: {mean}");
        }
    }
}
