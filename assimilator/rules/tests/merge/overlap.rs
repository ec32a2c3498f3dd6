//! How a change lies to what others have changed, written out number by number.

use proptest::prelude::*;
use sojourn_protocol::spec::RuleSpec;
use sojourn_rules::{Overlap, Products, products, rule_of};

/// Small whole numbers: their squares and sums are exact, in whatever order they are added.
fn whole(count: usize) -> impl Strategy<Value = Vec<f32>> {
    prop::collection::vec((-64i8..64).prop_map(f32::from), count)
}

fn dot(one: &[f32], other: &[f32]) -> f64 {
    one.iter().zip(other).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

fn minus(to: &[f32], from: &[f32]) -> Vec<f32> {
    to.iter().zip(from).map(|(to, from)| to - from).collect()
}

proptest! {
    #[test]
    fn products_are_those_of_the_two_changes(
        (base, current, returned) in (0usize..40).prop_flat_map(|n| (whole(n), whole(n), whole(n))),
    ) {
        let (change, others) = (minus(&returned, &base), minus(&current, &base));
        let expected = Products {
            change: dot(&change, &change),
            both: dot(&change, &others),
            others: dot(&others, &others),
        };
        prop_assert_eq!(products(&base, &current, &returned), expected);
    }

    /// Several blocks, of which the last isn't full.
    #[test]
    fn products_of_a_long_model_are_the_sums_of_its_parts(
        [base, current, returned] in [whole(100), whole(100), whole(100)],
        times in 300usize..400,
    ) {
        let one = products(&base, &current, &returned);
        let [base, current, returned] = [base, current, returned].map(|part| part.repeat(times));
        let all = |sum: f64| sum * times as f64;
        let expected =
            Products { change: all(one.change), both: all(one.both), others: all(one.others) };
        prop_assert_eq!(products(&base, &current, &returned), expected);
    }

    #[test]
    fn the_overlap_of_a_clipped_change_is_that_of_the_shorter_change(
        change in 1u16..1000,
        both in -1000i16..1000,
        others in 1u16..1000,
        halvings in 0i32..4,
    ) {
        let (change, both, others) = (f64::from(change), f64::from(both), f64::from(others));
        let scale = 0.5f64.powi(halvings);
        let overlap = Overlap::of(Products { change, both, others }, scale);
        // `<kD, M> = k <D, M>` and `<kD, kD> = k^2 <D, D>`; halves are exact.
        let (change, both) = (scale * scale * change, scale * both);
        let expected = Overlap { of_change: both / change, of_others: both / others };
        prop_assert_eq!(overlap, expected);
    }
}

#[test]
fn where_either_change_is_zero_they_have_nothing_in_common() {
    let some = Products { change: 4.0, both: 2.0, others: 8.0 };
    assert_eq!(Overlap::of(some, 1.0), Overlap { of_change: 0.5, of_others: 0.25 });
    for (products, scale) in [
        (Products { change: 0.0, both: 0.0, ..some }, 1.0),
        (Products { others: 0.0, both: 0.0, ..some }, 1.0),
        // Products of tiny numbers vanish one by one.
        (Products { change: 0.0, ..some }, 1.0),
        (Products { others: 0.0, ..some }, 1.0),
        (Products { both: 0.0, ..some }, 1.0),
        (some, 0.0),
    ] {
        assert_eq!(Overlap::of(products, scale), Overlap::default(), "{products:?} {scale}");
    }
}

/// Where no rule asks for it, the first round of a merge by spans doesn't fetch the current version.
#[test]
fn adasum_alone_looks_at_what_others_have_changed() {
    for rule in RuleSpec::ALL {
        let asks = rule_of(&rule).needs_overlap();
        assert_eq!(asks, matches!(rule, RuleSpec::Adasum { .. }), "{rule:?}");
    }
}
