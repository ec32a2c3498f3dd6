//! A merge by spans is the merge of the whole files.

use crate::{
    support::{flushes, rules},
    trial::{checkpoint, file, layout, lineage, lineage_of, position, update},
};
use proptest::prelude::*;
use sojourn_model::CheckpointLayout;
use sojourn_protocol::{
    ids::Version,
    spec::{MergeSpec, OptimizerMerge, RuleSpec},
};
use sojourn_rules::{Arrival, ByteSpan, Made, MergeError, Merged, Merger, Pieces, Update};
use std::ops::Range;

fn optimizers() -> impl Strategy<Value = OptimizerMerge> {
    prop_oneof![
        Just(OptimizerMerge::Average),
        Just(OptimizerMerge::Reset),
        Just(OptimizerMerge::Last),
        Just(OptimizerMerge::Discount),
    ]
}

fn merger(rule: RuleSpec, optimizer: OptimizerMerge, layout: &CheckpointLayout) -> Merger {
    Merger::new(&MergeSpec { rule, optimizer, canary: None }, layout.clone()).unwrap()
}

fn cut<'a>(file: &'a [u8], place: &Range<u64>) -> &'a [u8] {
    // Of another model's file as much as there is.
    &file[place.start as usize..file.len().min(place.end as usize)]
}

/// A merge by spans of at least so many bytes, the last span first.
fn by_spans(merger: &Merger, update: &Update<'_>, least: u64) -> Result<Merged, MergeError> {
    let spans = merger.spans(least);
    let squares = |span: &ByteSpan| {
        let of = |file| cut(file, &span.place);
        merger.sums(span, of(update.base), of(update.current), of(update.returned))
    };
    let squares: Vec<Vec<f64>> = spans.iter().map(squares).collect::<Result<_, _>>()?;
    let whole = update.whole(lineage_of(update.returned));
    // Of the state nothing but its beginning is needed.
    let head = whole.state.map(|(state, bytes)| (cut(state, &merger.state_head()), bytes));
    let whole = sojourn_rules::Whole { state: head, ..whole };
    let decided = merger.decide(&squares.concat(), &whole)?;
    let mut state = decided.state_head.clone();
    state.resize(merger.state_bytes() as usize, 0xaa);
    let mut checkpoint = vec![0xaa; update.current.len()];
    for span in spans.iter().rev() {
        let of = |file| cut(file, &span.place);
        let kept = update.state.map(|state| {
            span.slots.iter().flat_map(|place| cut(state, place).to_vec()).collect::<Vec<_>>()
        });
        let pieces = Pieces {
            base: of(update.base),
            current: of(update.current),
            returned: of(update.returned),
            slots: kept.as_deref().unwrap_or_default(),
        };
        let made = merger.merge_span(&decided.decision, update.arrival, span, &pieces)?;
        let place = span.place.start as usize..span.place.end as usize;
        checkpoint[place].copy_from_slice(&made.checkpoint);
        let mut rest = made.slots.as_slice();
        for place in &span.slots {
            let (slot, later) = rest.split_at((place.end - place.start) as usize);
            state[place.start as usize..place.end as usize].copy_from_slice(slot);
            rest = later;
        }
        assert!(rest.is_empty());
    }
    let made = Made { version: decided.version, checkpoint, state };
    Ok(Merged { made, norm: decided.norm, scale: decided.decision.scale })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn spans_put_together_are_the_whole(
        rule in rules(),
        optimizer in optimizers(),
        // A matrix of one block exactly, of several, and of less than one.
        hidden in prop_oneof![3 => 1u32..9, 1 => Just(8192), 1 => 8190u32..20_000],
        least in prop_oneof![Just(0), 1u64..2_000, 60_000u64..300_000, Just(u64::MAX)],
        steps in prop::collection::vec((any::<u64>(), any::<bool>(), flushes()), 1..4),
    ) {
        let layout = layout(hidden);
        let merger = merger(rule, optimizer, &layout);
        let mut made = Made {
            version: Version(0),
            checkpoint: checkpoint(&layout, 1, 1.0),
            state: Vec::new(),
        };
        let base = made.checkpoint.clone();
        for (step, (seed, long, flush)) in steps.into_iter().enumerate() {
            let returned = checkpoint(&layout, seed, if long { 1e9 } else { 1.0 });
            let arrival = Arrival { staleness: step as u64, epoch: 1, in_flight: 3, flush };
            let update = Update {
                base: &base,
                current: &made.checkpoint,
                returned: &returned,
                state: (!made.state.is_empty()).then_some(&made.state),
                version: made.version,
                arrival,
                position: position(seed),
            };
            let merged = merger.merge(&update).unwrap();
            let by_spans = by_spans(&merger, &update, least).unwrap();
            prop_assert_eq!(by_spans.norm.to_bits(), merged.norm.to_bits());
            prop_assert!(by_spans == merged, "of {} bytes", least);
            made = merged.made;
        }
    }

    #[test]
    fn spans_cover_a_file_and_its_state_once(hidden in 1u32..40_000, least in any::<u32>()) {
        let least = u64::from(least >> 12);
        let layout = layout(hidden);
        for rule in RuleSpec::ALL {
            let merger = merger(rule, OptimizerMerge::Average, &layout);
            let spans = merger.spans(least);
            let mut places: Vec<Range<u64>> = spans.iter().map(|s| s.place.clone()).collect();
            prop_assert!(places.iter().rev().skip(1).all(|p| p.end - p.start >= least.max(1)));
            prop_assert!(places.iter().all(|p| p.end - p.start <= least.max(1 << 16) + (1 << 16)));
            let mut of_state: Vec<Range<u64>> =
                spans.into_iter().flat_map(|s| s.slots).filter(|p| !p.is_empty()).collect();
            of_state.sort_unstable_by_key(|place| place.start);
            of_state.insert(0, merger.state_head());
            for (places, bytes) in [
                (&mut places, merger.checkpoint_bytes()),
                (&mut of_state, merger.state_bytes()),
            ] {
                prop_assert_eq!(places[0].start, 0);
                prop_assert_eq!(places.last().unwrap().end, bytes);
                prop_assert!(places.windows(2).all(|pair| pair[0].end == pair[1].start));
            }
        }
    }
}

/// Sums come from assimilators: what can't be the sums of a span isn't decided on.
#[test]
fn sums_that_are_not_a_spans_are_told_from_those_that_are() {
    // The first matrix has 18,000 numbers, which is more than a block.
    let layout = layout(9000);
    let [base, current, returned] = [1, 2, 3].map(|seed| checkpoint(&layout, seed, 1.0));
    for rule in RuleSpec::ALL {
        let merger = merger(rule, OptimizerMerge::Average, &layout);
        for span in merger.spans(u64::MAX).iter().chain(&merger.spans(60_000)) {
            let of = |file| cut(file, &span.place);
            let sums = merger.sums(span, of(&base), of(&current), of(&returned)).unwrap();
            assert!(merger.are_sums(span, &sums), "{rule:?}");
            let more = [sums.as_slice(), &[1.0]].concat();
            assert!(!merger.are_sums(span, &more), "{rule:?}: one too many");
            for at in 0..sums.len() {
                let with = |number: f64| {
                    let mut changed = sums.clone();
                    changed[at] = number;
                    merger.are_sums(span, &changed)
                };
                assert!(!merger.are_sums(span, &sums[..at]), "{rule:?}: {at} alone");
                assert!(!with(f64::NAN) && !with(f64::INFINITY), "{rule:?}: not finite at {at}");
                // Changes may be opposed: of three products the second may be negative.
                let signed = merger.needs_overlap() && at % 3 == 1;
                assert_eq!(with(-1.0), signed, "{rule:?}: negative at {at}");
            }
        }
    }
}

#[test]
fn what_is_refused_whole_is_refused_by_spans() {
    let small = layout(3);
    let merger = merger(RuleSpec::DELAYED_NESTEROV, OptimizerMerge::Average, &small);
    let [base, current, returned] = [1, 2, 3].map(|seed| checkpoint(&small, seed, 1.0));
    let [zero, vast, nan] =
        [0.0, f32::MAX, f32::NAN].map(|n| file(&small, lineage(1), |_, count| vec![n; count]));
    let first = merger.merge(&update(&base, &current, &returned)).unwrap().made;
    let good = Update {
        state: Some(&first.state),
        version: first.version,
        ..update(&base, &current, &returned)
    };
    assert_eq!(by_spans(&merger, &good, 1), merger.merge(&good));
    let other = self::merger(RuleSpec::FEDBUFF, OptimizerMerge::Average, &small);
    let of_other = other.merge(&update(&base, &current, &returned)).unwrap().made.state;
    for refused in [
        Update { version: Version(9), ..good },
        Update { state: Some(&of_other), ..good },
        Update { base: &zero, returned: &vast, ..good },
    ] {
        let error = merger.merge(&refused).unwrap_err();
        assert_eq!(by_spans(&merger, &refused, 1).unwrap_err(), error);
    }
    let refused = by_spans(&merger, &Update { returned: &nan, ..good }, 1).unwrap_err();
    assert!(matches!(refused, MergeError::Norm(norm) if norm.is_nan()), "{refused}");

    // Bytes of another place, or of another model.
    let span = merger.spans(u64::MAX).remove(0);
    let wide = checkpoint(&layout(4), 1, 1.0);
    for (wrong, says) in [
        (&base[1..], "the base can't be used: not a safetensors file"),
        (&base[..base.len() - 1], "the base can't be used: the file has"),
        (&wide, "the base can't be used: the file has"),
    ] {
        let error = merger.sums(&span, wrong, &current, &returned).unwrap_err().to_string();
        assert!(error.starts_with(says), "{error}");
    }
    let whole = update(&base, &current, &returned).whole(lineage(3));
    let decided = merger.decide(&[1.0], &whole).unwrap();
    let pieces =
        Pieces { base: &base, current: &current, returned: &returned, slots: &first.state };
    let merged = merger.merge_span(&decided.decision, whole.arrival, &span, &pieces);
    let error = merged.unwrap_err().to_string();
    assert!(error.starts_with("the merge state can't be used: the file has"), "{error}");
}
