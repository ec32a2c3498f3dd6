//! Properties of the rules over slices.

use crate::{
    plain::{Plain, bits},
    support::{Model, arrival, flushes, rules},
};
use half::bf16;
use proptest::prelude::*;
use sojourn_protocol::{
    spec::{Alpha, Outer, RuleSpec, Staleness},
    unit::Flush,
};
use sojourn_rules::Arrival;

fn vc(alpha: f64, staleness: Staleness) -> RuleSpec {
    RuleSpec::VcAsgd { alpha: Alpha::Constant(alpha), staleness }
}

/// Whole numbers over 8: sums and halves of a few of them are exact in `f32`.
fn dyadic(count: usize) -> impl Strategy<Value = Vec<f32>> {
    prop::collection::vec((-512i16..512).prop_map(|n| f32::from(n) / 8.0), count)
}

fn real(count: usize) -> impl Strategy<Value = Vec<f32>> {
    prop::collection::vec(-4.0f32..4.0, count)
}

/// Any finite number, zeros of both signs and subnormals among them.
fn finite(count: usize) -> impl Strategy<Value = Vec<f32>> {
    let any = any::<u32>().prop_map(f32::from_bits).prop_filter("finite", |n| n.is_finite());
    let number =
        prop_oneof![8 => any, 1 => Just(0.0), 1 => Just(-0.0), 1 => Just(f32::from_bits(1))];
    prop::collection::vec(number, count)
}

const WIDTH: usize = 11;

/// Equation (2) of the VC-ASGD paper, `W_n = a^n W_0 + (1 - a) sum_j a^(n - j) W_j`, in `f64`.
fn equation_2(alpha: f64, first: f32, returned: impl Iterator<Item = f32>) -> f64 {
    let returned: Vec<f64> = returned.map(f64::from).collect();
    let n = returned.len();
    let power = |exponent: usize| alpha.powi(i32::try_from(exponent).unwrap());
    let sum: f64 = (1..=n).map(|j| power(n - j) * returned[j - 1]).sum();
    power(n) * f64::from(first) + (1.0 - alpha) * sum
}

proptest! {
    #[test]
    fn vc_asgd_is_the_papers_equation_2(
        first in real(WIDTH),
        results in prop::collection::vec(real(WIDTH), 1..30),
        alpha in 0.0..=1.0f64,
    ) {
        let mut model = Model::new(vc(alpha, Staleness::Constant), first.clone());
        for (n, returned) in results.iter().enumerate() {
            // Base and staleness are nothing to the paper's rule.
            model.arrive(&first, returned, arrival(n as u64), 1.0);
        }
        for at in 0..WIDTH {
            let expected = equation_2(alpha, first[at], results.iter().map(|w| w[at]));
            // Each merge rounds both shares and three operations, on numbers of at most 4.
            let allowed = 4.0 * 5.0 * results.len() as f64 * f64::from(f32::EPSILON);
            prop_assert!((f64::from(model.w[at]) - expected).abs() <= allowed);
        }
    }

    #[test]
    fn equation_2_is_exact_where_f32_is(
        first in dyadic(WIDTH),
        results in prop::collection::vec(dyadic(WIDTH), 1..8),
    ) {
        // 10 bits, and one more for each of up to 7 halvings.
        let mut model = Model::new(vc(0.5, Staleness::Constant), first.clone());
        results.iter().for_each(|returned| model.arrive(&first, returned, arrival(0), 1.0));
        for at in 0..WIDTH {
            let expected = equation_2(0.5, first[at], results.iter().map(|w| w[at]));
            prop_assert_eq!(f64::from(model.w[at]), expected);
        }
    }

    #[test]
    fn alpha_0_and_1_are_exact(w in finite(WIDTH), base in finite(WIDTH), returned in finite(WIDTH)) {
        let merged = |alpha| {
            let mut model = Model::new(vc(alpha, Staleness::Constant), w.clone());
            model.arrive(&base, &returned, arrival(3), 1.0);
            bits(&model.w)
        };
        prop_assert_eq!(merged(1.0), bits(&w));
        prop_assert_eq!(merged(0.0), bits(&returned));
    }

    #[test]
    fn fedasync_without_a_weight_is_vc_asgd(
        w in real(WIDTH),
        returned in real(WIDTH),
        alpha in 0.0..=1.0f64,
        age in 0u32..50,
    ) {
        let merged = |staleness| {
            let mut model = Model::new(vc(alpha, staleness), w.clone());
            model.arrive(&w, &returned, arrival(u64::from(age)), 1.0);
            bits(&model.w)
        };
        let plain = merged(Staleness::Constant);
        prop_assert_eq!(merged(Staleness::Polynomial { a: 0.0 }), plain.clone());
        prop_assert_eq!(merged(Staleness::Hinge { a: 3.0, b: age }), plain.clone());
        let (keep, take) = (alpha as f32, (1.0 - alpha) as f32);
        let written_out: Vec<f32> =
            w.iter().zip(&returned).map(|(w, c)| keep * w + take * c).collect();
        prop_assume!(alpha > 0.0 && alpha < 1.0 && (1.0 - (1.0 - alpha)) as f32 == keep);
        prop_assert_eq!(plain, bits(&written_out));
    }

    #[test]
    fn fedbuff_does_not_depend_on_the_order_in_a_buffer(
        w in dyadic(WIDTH),
        results in prop::collection::vec((dyadic(WIDTH), dyadic(WIDTH), 0u64..3), 1..=8),
        order: prop::sample::Index,
        nesterov: bool,
        noise in real(WIDTH),
    ) {
        // Weights of 1 or 1/2, so that all sums are exact: the order can't matter, to the bit.
        let staleness = Staleness::Hinge { a: 1.0, b: 1 };
        let outer = if nesterov { Outer::Nesterov { rate: 0.7, momentum: 0.9 } } else { Outer::SGD };
        let arrivals = Some(u32::try_from(results.len()).unwrap());
        let rule = RuleSpec::Fedbuff { arrivals, outer, staleness };
        let merged = |results: &[(Vec<f32>, Vec<f32>, u64)], w: &[f32]| {
            let mut model = Model::new(rule, w.to_vec());
            for (n, (base, returned, age)) in results.iter().enumerate() {
                // Each version that fills the buffer makes whoever comes later older by one.
                model.arrive(base, returned, arrival(age + n as u64), 1.0);
            }
            assert_eq!(model.counters.gathered(), 0);
            model
        };
        let one = merged(&results, &w);
        let mut turned = results.clone();
        turned.rotate_left(order.index(results.len()));
        turned.reverse();
        let other = merged(&turned, &w);
        prop_assert_eq!(bits(&one.w), bits(&other.w));
        prop_assert_eq!(bits(&one.m), bits(&other.m));

        // With other numbers the sums are equal within their rounding.
        let shift = |results: &[(Vec<f32>, Vec<f32>, u64)]| {
            let add = |to: &[f32]| to.iter().zip(&noise).map(|(a, b)| a + b * b).collect();
            let moved = |(base, returned, age): &(Vec<f32>, Vec<f32>, u64)| (base.clone(), add(returned), *age);
            results.iter().map(moved).collect::<Vec<_>>()
        };
        let (one, other) = (merged(&shift(&results), &w), merged(&shift(&turned), &w));
        for (a, b) in one.w.iter().zip(&other.w) {
            prop_assert!((a - b).abs() <= 64.0 * 144.0 * f32::EPSILON, "{a} {b}");
        }
    }

    #[test]
    fn delayed_nesterov_with_a_period_of_1_is_nesterov(
        w in real(WIDTH),
        results in prop::collection::vec((real(WIDTH), real(WIDTH)), 1..20),
        rate in 0.1..1.5f64,
        momentum in 0.0..0.99f64,
    ) {
        let delayed = RuleSpec::DelayedNesterov { period: Some(1), rate, momentum };
        let outer = Outer::Nesterov { rate, momentum };
        let buffered =
            RuleSpec::Fedbuff { arrivals: Some(1), outer, staleness: Staleness::Constant };
        let [mut one, mut other] = [delayed, buffered].map(|rule| Model::new(rule, w.clone()));
        let (mut nesterov, mut m) = (w, vec![0.0; WIDTH]);
        let (e, b, lead) = (rate as f32, momentum as f32, (rate * momentum) as f32);
        for (base, returned) in &results {
            one.arrive(base, returned, arrival(2), 1.0);
            other.arrive(base, returned, arrival(2), 1.0);
            for at in 0..WIDTH {
                let d = returned[at] - base[at];
                m[at] = b * m[at] + d;
                nesterov[at] = nesterov[at] + e * d + lead * m[at];
            }
            prop_assert_eq!(bits(&one.w), bits(&nesterov));
            prop_assert_eq!(bits(&one.m), bits(&m));
            prop_assert_eq!(bits(&other.w), bits(&nesterov));
        }
    }

    /// A whole period adds what buffered Nesterov adds at once.
    #[test]
    fn delayed_nesterov_ends_a_period_where_buffered_nesterov_does(
        w in real(WIDTH),
        results in prop::collection::vec((real(WIDTH), real(WIDTH)), 2..20),
    ) {
        let count = u32::try_from(results.len()).unwrap();
        let outer = Outer::Nesterov { rate: 0.7, momentum: 0.9 };
        let delayed = RuleSpec::DelayedNesterov { period: Some(count), rate: 0.7, momentum: 0.9 };
        let buffered =
            RuleSpec::Fedbuff { arrivals: Some(count), outer, staleness: Staleness::Constant };
        let [mut one, mut other] = [delayed, buffered].map(|rule| Model::new(rule, w.clone()));
        for (base, returned) in &results {
            one.arrive(base, returned, arrival(2), 1.0);
            other.arrive(base, returned, arrival(2), 1.0);
        }
        for (a, b) in one.w.iter().zip(&other.w) {
            prop_assert!((a - b).abs() <= 64.0 * 40.0 * f32::EPSILON, "{a} {b}");
        }
        prop_assert_eq!(bits(&one.m), bits(&other.m));
    }

    #[test]
    fn a_flush_is_a_buffer_that_is_full_early(
        w in real(WIDTH),
        results in prop::collection::vec((real(WIDTH), real(WIDTH)), 1..8),
        momentum in prop::option::of(0.0..0.99f64),
    ) {
        let outer = momentum.map_or(Outer::SGD, |momentum| Outer::Nesterov { rate: 0.7, momentum });
        let rule = |arrivals| RuleSpec::Fedbuff { arrivals, outer, staleness: Staleness::ROOT };
        let count = u32::try_from(results.len()).unwrap();
        let [mut full, mut flushed] =
            [Some(count), Some(1000)].map(|arrivals| Model::new(rule(arrivals), w.clone()));
        for (n, (base, returned)) in (1..).zip(&results) {
            full.arrive(base, returned, arrival(2), 1.0);
            let flush = if n == count { Flush::Now } else { Flush::ByRule };
            flushed.arrive(base, returned, Arrival { flush, ..arrival(2) }, 1.0);
        }
        prop_assert_eq!(bits(&full.w), bits(&flushed.w));
        prop_assert_eq!(bits(&full.m), bits(&flushed.m));
        prop_assert_eq!((flushed.counters.gathered(), flushed.sum), (0, vec![0.0; WIDTH]));
    }

    /// `W - n (g + l / sqrt(v) g^2 (W - W_b))` for gradients `g` at a learning rate `n`, in `f64` (Zheng et al., 2017, equations 10 and 14).
    #[test]
    fn dc_asgd_is_the_papers_whatever_the_learning_rate(
        w in real(WIDTH),
        gradients in prop::collection::vec((real(WIDTH), real(WIDTH)), 1..10),
        rate in 0.001..0.01f64,
        lambda in 0.0..2.0f64,
    ) {
        let decay = 0.95;
        let mut model = Model::new(RuleSpec::DcAsgd { lambda, decay }, w.clone());
        let mut expected: Vec<(f64, f64)> = w.iter().map(|w| (f64::from(*w), 0.0)).collect();
        for (base, gradient) in &gradients {
            let returned: Vec<f32> =
                base.iter().zip(gradient).map(|(b, g)| (f64::from(*b) - rate * f64::from(*g)) as f32).collect();
            model.arrive(base, &returned, arrival(1), 1.0);
            for (((w, v), b), c) in expected.iter_mut().zip(base).zip(&returned) {
                // The gradient that the host's rounded numbers say.
                let (base, g) = (f64::from(*b), (f64::from(*b) - f64::from(*c)) / rate);
                *v = decay * *v + (1.0 - decay) * g * g;
                let adaptive = if *v > 0.0 { lambda / v.sqrt() } else { 0.0 };
                *w -= rate * (g + adaptive * g * g * (*w - base));
            }
        }
        for (at, (expected, _)) in expected.into_iter().enumerate() {
            prop_assert!((f64::from(model.w[at]) - expected).abs() < 1e-4, "{} {}", model.w[at], expected);
        }
    }

    /// Nothing is taken back where nobody else has changed the model, nor more than others have changed.
    #[test]
    fn dc_asgd_adds_a_fresh_change_and_never_takes_back_more_than_others_made(
        base in dyadic(WIDTH),
        current in dyadic(WIDTH),
        returned in dyadic(WIDTH),
        lambda in 0.0..1000.0f64,
    ) {
        let rule = RuleSpec::DcAsgd { lambda, decay: 0.95 };
        let mut fresh = Model::new(rule, base.clone());
        fresh.arrive(&base, &returned, arrival(0), 1.0);
        prop_assert_eq!(&fresh.w, &returned);
        let mut late = Model::new(rule, current.clone());
        late.arrive(&base, &returned, arrival(3), 1.0);
        for at in 0..WIDTH {
            let change = returned[at] - base[at];
            let (all, none) = (current[at] + change, base[at] + change);
            let slack = 1e-3;
            prop_assert!(late.w[at] >= all.min(none) - slack && late.w[at] <= all.max(none) + slack);
            prop_assert!(change != 0.0 || late.w[at] == current[at]);
        }
    }

    #[test]
    fn downpour_is_delta_with_a_constant_gain_and_easgd_is_vc_asgd_with_a_constant_alpha(
        w in real(WIDTH),
        results in prop::collection::vec((real(WIDTH), real(WIDTH), 0u64..6), 1..10),
    ) {
        let delta = RuleSpec::Delta { gain: Some(1.0), staleness: Staleness::Constant };
        let vc_asgd = vc(0.999, Staleness::Constant);
        let easgd = RuleSpec::Easgd { moving_rate: Some(1.0 - 0.999) };
        for (one, other) in [(RuleSpec::DOWNPOUR, delta), (easgd, vc_asgd)] {
            let [mut one, mut other] = [one, other].map(|rule| Model::new(rule, w.clone()));
            for (base, returned, staleness) in &results {
                one.arrive(base, returned, arrival(*staleness), 1.0);
                other.arrive(base, returned, arrival(*staleness), 1.0);
            }
            prop_assert_eq!(bits(&one.w), bits(&other.w));
        }
    }

    #[test]
    fn every_rule_is_what_is_written_out(
        rule in rules(),
        w in real(WIDTH),
        results in prop::collection::vec(
            (real(WIDTH), real(WIDTH), 0u64..6, 1u32..4, 1u32..6, prop::bool::weighted(0.2), flushes()),
            1..30,
        ),
    ) {
        let mut plain = Plain::new(rule, w.clone());
        let mut files = Model::new(rule, w.iter().map(|w| w.to_le_bytes()).collect());
        let mut model = Model::new(rule, w);
        for (base, returned, staleness, epoch, in_flight, clipped, flush) in results {
            let arrival = Arrival { staleness, epoch, in_flight, flush };
            let scale = if clipped { 0.375 } else { 1.0 };
            plain.arrive(&base, &returned, arrival, scale);
            model.arrive(&base, &returned, arrival, scale);
            let [base, returned] =
                [base, returned].map(|n| n.iter().map(|n| n.to_le_bytes()).collect::<Vec<_>>());
            files.arrive(&base, &returned, arrival, scale);
            prop_assert_eq!(bits(&model.w), bits(&plain.w));
            prop_assert_eq!(bits(&model.sum), bits(&plain.sum));
            prop_assert_eq!(bits(&model.m), bits(&plain.m));
            prop_assert_eq!(bits(&model.v), bits(&plain.v));
            prop_assert_eq!(model.counters.gathered(), plain.gathered);
            let values: Vec<f32> = files.w.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
            prop_assert_eq!(bits(&values), bits(&plain.w));
        }
    }

    /// Numbers of half the size are widened, computed with in `f32`, and rounded once.
    #[test]
    fn bf16_is_rounded_once(
        rule in rules(),
        numbers in prop::collection::vec((real(WIDTH), real(WIDTH), real(WIDTH)), 1),
        age in 0u64..4,
    ) {
        let (w, base, returned) = &numbers[0];
        let narrow = |numbers: &[f32]| numbers.iter().map(|n| bf16::from_f32(*n)).collect::<Vec<_>>();
        let [w, base, returned] = [w, base, returned].map(|n| narrow(n));
        let wide = |numbers: &[bf16]| numbers.iter().map(|n| n.to_f32()).collect::<Vec<_>>();
        let mut plain = Plain::new(rule, wide(&w));
        plain.arrive(&wide(&base), &wide(&returned), arrival(age), 1.0);
        let mut model = Model::new(rule, w.clone());
        model.arrive(&base, &returned, arrival(age), 1.0);
        prop_assert_eq!(&model.w, &narrow(&plain.w));
        prop_assert_eq!(bits(&model.sum), bits(&plain.sum));
        let bytes = |numbers: &[bf16]| numbers.iter().map(|n| n.to_le_bytes()).collect::<Vec<_>>();
        let mut stored = Model::new(rule, bytes(&w));
        stored.arrive(&bytes(&base), &bytes(&returned), arrival(age), 1.0);
        prop_assert_eq!(stored.w, bytes(&model.w));
    }
}
