//! Properties of merges from files to files.

use crate::{
    plain::{Plain, bits, blend},
    support::{arrival, flushes, in_pool, rules},
    trial::{
        Tensors, checkpoint, file, integers, is_square, layout, lineage, lineage_of, merger,
        position, tensors, update,
    },
};
use proptest::prelude::*;
use sojourn_codec::decode;
use sojourn_model::{CheckpointLayout, Lineage};
use sojourn_protocol::{
    ids::Version,
    spec::{Alpha, MergeSpec, OptimizerMerge, RuleSpec, Staleness},
    unit::Flush,
};
use sojourn_rules::{Arrival, COUNTERS, Made, Merger, Norms, Slot, Spare, Update};

/// The numbers of all parameters, in name order.
fn parameters(layout: &CheckpointLayout, of: &Tensors) -> Vec<f32> {
    let mut names: Vec<&str> = layout.parameters().iter().map(|spec| spec.name.as_str()).collect();
    names.sort_unstable();
    names.into_iter().flat_map(|name| of[name].clone()).collect()
}

/// The numbers that a state keeps in a slot, in name order.
fn slot(state: &[u8], slot: Slot) -> Vec<f32> {
    let kept = tensors(state).into_iter().filter(|(name, _)| name.starts_with(slot.prefix()));
    kept.flat_map(|(_, numbers)| numbers).collect()
}

fn is_first_moment(name: &str) -> bool {
    ["optimizer.momentum_buffer.", "optimizer.exp_avg."].iter().any(|slot| name.starts_with(slot))
}

fn optimizers() -> impl Strategy<Value = OptimizerMerge> {
    prop_oneof![
        Just(OptimizerMerge::Average),
        Just(OptimizerMerge::Reset),
        Just(OptimizerMerge::Last),
        Just(OptimizerMerge::Discount),
    ]
}

proptest! {
    /// Nothing is kept between two merges but the two files, so a crash between any two of them changes
    /// nothing: the rule written out goes through all of them in memory, and every step is made twice, the
    /// second time in used memory.
    #[test]
    fn a_run_over_files_is_the_run_in_memory(
        rule in rules(),
        optimizer in optimizers(),
        steps in prop::collection::vec(
            (any::<u64>(), 0usize..5, 1u32..4, 1u32..6, prop::bool::weighted(0.15), flushes()),
            1..25,
        ),
    ) {
        let layout = layout(3);
        let merger = merger(rule, optimizer);
        let first = checkpoint(&layout, 1, 1.0);
        let mut versions = vec![first.clone()];
        let mut plain = Plain::new(rule, parameters(&layout, &tensors(&first)));
        let mut others = tensors(&first);
        let mut norms = Norms::default();
        let mut made = Made { version: Version(0), checkpoint: first, state: Vec::new() };
        for (seed, staleness, epoch, in_flight, long, flush) in steps {
            let staleness = staleness.min(versions.len() - 1);
            let base = &versions[versions.len() - 1 - staleness];
            let returned = checkpoint(&layout, seed, if long { 50.0 } else { 1.0 });
            let arrival = Arrival { staleness: staleness as u64, epoch, in_flight, flush };
            let update = Update {
                base,
                current: &made.checkpoint,
                returned: &returned,
                state: (!made.state.is_empty()).then_some(&made.state),
                version: made.version,
                arrival,
                position: position(seed),
            };
            let merged = merger.merge(&update).unwrap();
            let used = |bytes: &[u8]| vec![0xaa; bytes.len()];
            let spare = Spare {
                checkpoint: used(&merged.made.checkpoint),
                state: used(&merged.made.state),
            };
            prop_assert_eq!(&merger.merge_over(&update, spare).unwrap(), &merged);

            let (from, to) = (tensors(base), tensors(&returned));
            let (from_all, to_all) = (parameters(&layout, &from), parameters(&layout, &to));
            let squares = from_all.iter().zip(&to_all).map(|(b, c)| (f64::from(*c) - f64::from(*b)).powi(2));
            let norm = squares.sum::<f64>().sqrt();
            prop_assert!((merged.norm / norm - 1.0).abs() < 1e-12);
            prop_assert_eq!(merged.scale, norms.scale(merged.norm));
            norms.extend([merged.norm]);
            let share = plain.share(arrival) * merged.scale;
            plain.arrive(&from_all, &to_all, arrival, merged.scale);
            for (name, numbers) in &mut others {
                let returned = &to[name];
                *numbers = match optimizer {
                    OptimizerMerge::Reset if name.starts_with("optimizer.") => vec![0.0; numbers.len()],
                    OptimizerMerge::Discount if is_first_moment(name) => {
                        let factor = (1.0 / (1.0 + staleness as f64)) as f32;
                        returned.iter().map(|number| number * factor).collect()
                    }
                    OptimizerMerge::Last if name.starts_with("optimizer.") => returned.clone(),
                    _ => blend(numbers, &[], returned, share, 1.0),
                };
            }
            let says = lineage_of(&merged.made.checkpoint);
            prop_assert_eq!(says.hop_seed, seed);
            prop_assert_eq!(says.position, position(seed));
            prop_assert_eq!(merged.made.version, made.version.next());
            made = merged.made;
            versions.push(made.checkpoint.clone());

            let is = tensors(&made.checkpoint);
            prop_assert_eq!(bits(&parameters(&layout, &is)), bits(&plain.w));
            let names = layout.tensors().iter().map(|spec| spec.name.as_str());
            let trained = |name: &str| layout.parameters().iter().any(|spec| spec.name == name);
            for name in names.filter(|name| is.contains_key(*name) && !trained(name)) {
                prop_assert_eq!(bits(&is[name]), bits(&others[name]), "{}", name);
                prop_assert!(!is_square(name) || is[name].iter().all(|n| *n >= 0.0));
            }
            let own = [&plain.v, &plain.m, &plain.sum];
            for (kept, expected) in [Slot::MeanSquare, Slot::Momentum, Slot::Sum].into_iter().zip(own) {
                let kept = slot(&made.state, kept);
                prop_assert!(kept.is_empty() || bits(&kept) == bits(expected));
            }
            prop_assert_eq!(integers(&made.state, COUNTERS)[3], i64::from(plain.gathered));
        }
    }
}

/// Version 0 is made from a seed, and knows no trial.
#[test]
fn a_version_made_from_version_0_says_its_trial() {
    let layout = layout(3);
    let first = file(&layout, Lineage::initial(9), |_, count| vec![0.5; count]);
    let returned = checkpoint(&layout, 3, 1.0);
    let merger = merger(RuleSpec::DELTA, OptimizerMerge::Average);
    let made = merger.merge(&update(&first, &first, &returned)).unwrap().made;
    let expected = Lineage { position: position(40), ..lineage_of(&returned) };
    assert_eq!(lineage_of(&made.checkpoint), expected);
}

#[test]
fn a_state_is_a_file_like_any_other() {
    let layout = layout(3);
    let [base, current, returned] = [1, 2, 3].map(|seed| checkpoint(&layout, seed, 1.0));
    for (rule, slots) in [
        (RuleSpec::VC_ASGD, &[][..]),
        (RuleSpec::DELTA, &[]),
        (RuleSpec::FEDBUFF, &["merge.sum."]),
        (RuleSpec::DELAYED_NESTEROV, &["merge.momentum.", "merge.sum."]),
        (RuleSpec::EASGD, &[]),
        (RuleSpec::DOWNPOUR, &[]),
        (RuleSpec::DC_ASGD, &["merge.mean_square."]),
    ] {
        let merger = merger(rule, OptimizerMerge::Average);
        let made = merger.merge(&update(&base, &current, &returned)).unwrap().made;
        let mut names: Vec<String> = layout.parameters().iter().map(|s| s.name.clone()).collect();
        names.sort();
        let kept =
            slots.iter().flat_map(|slot| names.iter().map(move |name| format!("{slot}{name}")));
        let expected: Vec<String> = std::iter::once(COUNTERS.to_owned()).chain(kept).collect();
        let views = decode(&made.state).unwrap();
        assert_eq!(views.iter().map(|view| view.name.clone()).collect::<Vec<_>>(), expected);
        assert_eq!(made.state.len() as u64, merger.state_bytes());
        assert_eq!(made.version, Version(8));
    }
}

#[test]
fn alpha_0_and_1_are_exact_in_files_too() {
    let layout = layout(3);
    let [base, current, returned] = [1, 2, 3].map(|seed| checkpoint(&layout, seed, 1.0));
    for (alpha, same) in [(0.0, &returned), (1.0, &current)] {
        let rule =
            RuleSpec::VcAsgd { alpha: Alpha::Constant(alpha), staleness: Staleness::Constant };
        let merger = merger(rule, OptimizerMerge::Average);
        let made = merger.merge(&update(&base, &current, &returned)).unwrap().made;
        assert_eq!(tensors(&made.checkpoint), tensors(same), "alpha {alpha}");
    }
}

/// The file of zeros but for parameters, which are all `value`.
fn flat(layout: &CheckpointLayout, value: f32) -> Vec<u8> {
    file(layout, lineage(1), |name, count| {
        let trained = layout.parameters().iter().any(|spec| spec.name == name);
        vec![if trained { value } else { 0.0 }; count]
    })
}

#[test]
fn a_change_of_a_thousand_medians_is_scaled_to_two() {
    let layout = layout(3);
    let gain = RuleSpec::Delta { gain: Some(1.0), staleness: Staleness::Constant };
    let merger = merger(gain, OptimizerMerge::Average);
    let [zero, one, thousand] = [0.0, 1.0, 1000.0].map(|value| flat(&layout, value));
    let mut made = merger.merge(&update(&zero, &zero, &one)).unwrap().made;
    let next = |made: &Made, returned: &[u8]| {
        let current = Update {
            state: Some(&made.state),
            version: made.version,
            ..update(&zero, &made.checkpoint, returned)
        };
        merger.merge(&current).unwrap()
    };
    let early = next(&made, &thousand);
    assert_eq!(early.scale, 1.0, "too few norms are known");
    for _ in 0..4 {
        made = next(&made, &one).made;
    }
    let merged = next(&made, &thousand);
    assert_eq!(merged.scale, 0.002);
    let [before, after] = [&made, &merged.made].map(|made| tensors(&made.checkpoint));
    let (before, after) = (parameters(&layout, &before), parameters(&layout, &after));
    assert_eq!(before[0], 5.0);
    assert_eq!(after[0], 7.0);
    assert_eq!(after, vec![7.0; after.len()]);
}

#[test]
fn files_may_lie_anywhere_and_be_merged_by_any_number_of_threads() {
    let layout = layout(9000);
    let spec = |rule| MergeSpec { rule, optimizer: OptimizerMerge::Average, canary: None };
    let [base, current, returned] = [1, 2, 3].map(|seed| checkpoint(&layout, seed, 1.0));
    for rule in RuleSpec::ALL {
        let merger = Merger::new(&spec(rule), layout.clone()).unwrap();
        let one = in_pool(1, || merger.merge(&update(&base, &current, &returned)).unwrap());
        for threads in [2, 7] {
            let many =
                in_pool(threads, || merger.merge(&update(&base, &current, &returned)).unwrap());
            assert!(many == one, "{rule:?} with {threads} threads");
        }
        for shift in 1..4 {
            let moved = |file: &[u8]| [&vec![0; shift], file].concat();
            let [base, current, returned] = [&base, &current, &returned].map(|file| moved(file));
            let update = update(&base[shift..], &current[shift..], &returned[shift..]);
            assert!(merger.merge(&update).unwrap() == one, "{rule:?} at {shift}");
        }
        let again = Update {
            state: Some(&one.made.state),
            version: one.made.version,
            arrival: Arrival { in_flight: 2, ..arrival(0) },
            ..update(&base, &one.made.checkpoint, &returned)
        };
        let two = in_pool(1, || merger.merge(&again).unwrap());
        assert!(in_pool(7, || merger.merge(&again).unwrap()) == two, "{rule:?}, the second");
    }
}

#[test]
fn with_one_unit_in_flight_adasum_makes_the_returned_checkpoint() {
    let layout = layout(3);
    let merger = merger(RuleSpec::ADASUM, OptimizerMerge::Discount);
    let base = checkpoint(&layout, 1, 1.0);
    let returned = checkpoint(&layout, 2, 1.0);
    let merged = merger.merge(&Update {
        base: &base,
        current: &base,
        returned: &returned,
        state: None,
        version: Version(0),
        arrival: Arrival { staleness: 0, epoch: 1, in_flight: 1, flush: Flush::ByRule },
        position: lineage_of(&returned).position,
    });
    assert!(merged.unwrap().made.checkpoint == returned, "as in hop order, byte for byte");
}
