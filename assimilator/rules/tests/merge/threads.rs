//! Results don't depend on the number of threads.

use crate::{
    plain::bits,
    support::{Model, arrival, in_pool},
};
use sojourn_protocol::spec::RuleSpec;
use sojourn_rules::{Arrival, norm};

#[test]
fn no_rule_depends_on_the_number_of_threads() {
    let count = 100_003;
    let numbers = |factor: usize| -> Vec<f32> {
        (0..count).map(|n| ((n * factor) % 1009) as f32 / 37.0 - 13.0).collect()
    };
    let (w, base, returned) = (numbers(17), numbers(29), numbers(31));
    for rule in RuleSpec::ALL {
        let merged = |threads| {
            in_pool(threads, || {
                let mut model = Model::new(rule, w.clone());
                let scale = norm(&base, &returned) / 1e4;
                for _ in 0..5 {
                    model.arrive(&base, &returned, Arrival { in_flight: 4, ..arrival(1) }, scale);
                }
                (bits(&model.w), bits(&model.sum), bits(&model.m), scale.to_bits())
            })
        };
        let one = merged(1);
        assert_eq!(merged(2), one, "{rule:?}");
        assert_eq!(merged(7), one, "{rule:?}");
    }
}

/// Squares of all sizes, in many blocks: added up in another order they make another sum.
#[test]
fn the_norm_does_not_depend_on_the_number_of_threads() {
    let numbers = |seed: u32| -> Vec<f32> {
        let one = |n: u32| n.wrapping_mul(2_654_435_761).wrapping_add(seed) >> 8;
        (0..1_000_000).map(|n| one(n) as f32 * (0.01f32).powi(n as i32 >> 17)).collect()
    };
    let (base, returned) = (numbers(1), numbers(77_777_777));
    let one = in_pool(1, || norm(&base, &returned));
    for threads in [2, 3, 7] {
        assert_eq!(in_pool(threads, || norm(&base, &returned)).to_bits(), one.to_bits());
    }
    // One after the other a million roundings may add up to a million halves of a unit.
    let squares = base.iter().zip(&returned).map(|(b, c)| (f64::from(*c) - f64::from(*b)).powi(2));
    let plain = squares.sum::<f64>().sqrt();
    assert!((one / plain - 1.0).abs() < 1e6 * f64::EPSILON, "{one:e} {plain:e}");
}
