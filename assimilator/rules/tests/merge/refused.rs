//! Updates that aren't merged, and the reasons.

use crate::trial::{checkpoint, file, layout, lineage, merger, update};
use sojourn_codec::Tensor;
use sojourn_protocol::{
    ids::Version,
    spec::{Alpha, MergeSpec, OptimizerMerge, Outer, RuleSpec, Staleness},
};
use sojourn_rules::{MergeError, Merger, StateError, Update};

/// The files of one result.
fn files() -> [Vec<u8>; 3] {
    [1, 2, 3].map(|seed| checkpoint(&layout(3), seed, 1.0))
}

/// The error of a second merge whose state is what `change` makes of the first one's.
fn with_state(rule: RuleSpec, by: RuleSpec, change: impl FnOnce(Vec<u8>) -> Vec<u8>) -> MergeError {
    let [base, current, returned] = files();
    let first = update(&base, &current, &returned);
    let made = merger(by, OptimizerMerge::Average).merge(&first).unwrap().made;
    let state = change(made.state);
    let next = Update { state: Some(&state), version: made.version, ..first };
    merger(rule, OptimizerMerge::Average).merge(&next).unwrap_err()
}

#[test]
fn a_state_of_another_rule_is_refused() {
    let error = with_state(RuleSpec::DELAYED_NESTEROV, RuleSpec::FEDBUFF, |state| state);
    let expected = StateError::Rule { expected: "delayed-nesterov", actual: "fedbuff" };
    assert_eq!(error, MergeError::State(expected));
    assert_eq!(
        error.to_string(),
        "the merge state can't be used: it is of the rule `fedbuff`, the trial's is `delayed-nesterov`"
    );
    let error = with_state(RuleSpec::VC_ASGD, RuleSpec::DELTA, |state| state);
    assert!(error.to_string().contains("`delta`"), "no slots, but another rule: {error}");
    let outer = Outer::Nesterov { rate: 1.0, momentum: 0.5 };
    let staleness = Staleness::Constant;
    let nesterov = RuleSpec::Fedbuff { arrivals: None, outer, staleness };
    let error = with_state(nesterov, RuleSpec::FEDBUFF, |state| state).to_string();
    assert!(error.contains("tensor `merge.momentum.layers.0.weight` is missing"), "{error}");
}

#[test]
fn a_state_of_another_version_or_model_is_refused() {
    let [base, current, returned] = files();
    let merger = merger(RuleSpec::DELTA, OptimizerMerge::Average);
    let made = merger.merge(&update(&base, &current, &returned)).unwrap().made;
    let stale = Update { state: Some(&made.state), ..update(&base, &current, &returned) };
    let error = merger.merge(&stale).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the merge state can't be used: it belongs to version 8, the model is version 7"
    );

    let wide = layout(4);
    let spec =
        MergeSpec { rule: RuleSpec::FEDBUFF, optimizer: OptimizerMerge::Average, canary: None };
    let other = Merger::new(&spec, wide.clone()).unwrap();
    let [from, now, to] = [1, 2, 3].map(|seed| checkpoint(&wide, seed, 1.0));
    let made = other.merge(&update(&from, &now, &to)).unwrap().made;
    let narrow = self::merger(RuleSpec::FEDBUFF, OptimizerMerge::Average);
    let state = Some(made.state.as_slice());
    let next = Update { state, version: Version(8), ..update(&base, &current, &returned) };
    let error = narrow.merge(&next).unwrap_err().to_string();
    assert!(error.contains("the merge state can't be used: tensor"), "{error}");
    assert!(error.contains("has the shape"), "{error}");
}

#[test]
fn what_is_no_state_is_refused() {
    let rule = RuleSpec::DELAYED_NESTEROV;
    let short = |mut state: Vec<u8>| {
        state.pop();
        state
    };
    assert!(matches!(with_state(rule, rule, short), MergeError::File { file: "merge state", .. }));
    let other = |_| sojourn_codec::encode(&[Tensor::f32("a", [1u64], &[0.0])]).unwrap();
    assert_eq!(with_state(rule, rule, other), MergeError::State(StateError::Format));
    let checkpoint = |_| files()[0].clone();
    assert_eq!(with_state(rule, rule, checkpoint), MergeError::State(StateError::Format));
}

#[test]
fn files_of_another_model_are_refused_by_name() {
    let [base, current, returned] = files();
    let wide = checkpoint(&layout(4), 1, 1.0);
    let merger = merger(RuleSpec::VC_ASGD, OptimizerMerge::Average);
    let error = |update| merger.merge(&update).unwrap_err().to_string();
    let text = error(update(&wide, &current, &returned));
    assert!(text.starts_with("the base can't be used: tensor `layers.0.weight` has"), "{text}");
    let text = error(update(&base, &wide, &returned));
    assert!(text.starts_with("the current version can't be used: tensor"), "{text}");
    let text = error(update(&base, &current, &returned[..returned.len() - 1]));
    assert!(text.starts_with("the result can't be used: the file has"), "{text}");
    let text = error(update(&base, &current, b"PNG and so on"));
    assert!(text.starts_with("the result can't be used: not a safetensors file"), "{text}");
}

#[test]
fn a_change_beyond_all_measure_is_refused() {
    let layout = layout(3);
    let of = |value: f32| file(&layout, lineage(1), |_, count| vec![value; count]);
    let [zero, vast, endless, nan] = [0.0, f32::MAX, f32::INFINITY, f32::NAN].map(of);
    let merger = merger(RuleSpec::DELTA, OptimizerMerge::Average);
    for returned in [vast, endless, nan] {
        let error = merger.merge(&update(&zero, &zero, &returned)).unwrap_err();
        assert!(matches!(error, MergeError::Norm(_)), "{error}");
        assert!(error.to_string().contains("no training changes a model so much"));
    }
}

#[test]
fn a_rule_out_of_its_range_makes_no_merger() {
    let rule = RuleSpec::VcAsgd { alpha: Alpha::Constant(1.5), staleness: Staleness::Constant };
    let spec = MergeSpec { rule, optimizer: OptimizerMerge::Average, canary: None };
    let error = Merger::new(&spec, layout(3)).unwrap_err();
    assert_eq!(error.to_string(), "`alpha` is 1.5; the share that stays has to be from 0 to 1");
}
