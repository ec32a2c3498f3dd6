//! Merge rules as JSON, and the values that are refused.

use super::*;
use crate::spec::{OrderChoice, PlacementSpec};

#[test]
fn defaults_are_the_designs_and_are_written_so() {
    let texts = [
        r#"{"rule":"adasum","staleness":{"polynomial":{"a":1.0}}}"#,
        r#"{"rule":"vc-asgd","alpha":{"constant":0.95},"staleness":"constant"}"#,
        r#"{"rule":"delta","staleness":{"polynomial":{"a":0.5}}}"#,
        r#"{"rule":"fedbuff","outer":{"sgd":{"rate":1.0}},"staleness":{"polynomial":{"a":0.5}}}"#,
        r#"{"rule":"delayed-nesterov","rate":0.7,"momentum":0.9}"#,
        r#"{"rule":"easgd"}"#,
        r#"{"rule":"downpour","rate":1.0}"#,
        r#"{"rule":"dc-asgd","lambda":2.0,"decay":0.95}"#,
    ];
    for (rule, text) in RuleSpec::ALL.into_iter().zip(texts) {
        assert_eq!(serde_json::to_string(&rule).unwrap(), text);
        assert_eq!(serde_json::from_str::<RuleSpec>(text).unwrap(), rule);
        assert!(text.contains(rule.name()));
        assert_eq!(rule.check(), Ok(()));
    }
    let spec = MergeSpec { rule: RuleSpec::DELTA, optimizer: OptimizerMerge::Reset, canary: None };
    let text = serde_json::to_string(&spec).unwrap();
    assert_eq!(text, format!(r#"{{"rule":{}}}"#, texts[2]));
    assert_eq!(serde_json::from_str::<MergeSpec>(&text).unwrap(), spec);
    let last = MergeSpec { optimizer: OptimizerMerge::Last, ..spec };
    let text = serde_json::to_string(&last).unwrap();
    assert!(text.ends_with(r#""optimizer":"last"}"#), "{text}");
    assert_eq!(serde_json::from_str::<MergeSpec>(&text).unwrap(), last);
}

#[test]
fn a_stored_job_that_names_nothing_means_what_it_meant_when_it_was_submitted() {
    let mut placement = PlacementSpec::new(OrderChoice::Auto, true, 1);
    let before = MergeSpec {
        rule: RuleSpec::DELAYED_NESTEROV,
        optimizer: OptimizerMerge::Reset,
        canary: None,
    };
    assert_eq!(placement.merging(), before);
    placement.name_merging();
    assert_eq!(placement.merging(), MergeSpec::default());
    let mut hop = PlacementSpec::new(OrderChoice::Hop, true, 1);
    hop.name_merging();
    assert_eq!(hop.merge, None);
}

#[test]
fn what_no_rule_has_is_refused() {
    for text in [
        r#"{"rule":"delta","staleness":"constant","gian":1.0}"#,
        r#"{"rule":"delta","staleness":{"hinge":{"a":1.0,"b":2,"c":3}}}"#,
        r#"{"rule":"replace"}"#,
        r#"{"rule":"vc-asgd","alpha":{"constant":0.95}}"#,
    ] {
        assert!(serde_json::from_str::<RuleSpec>(text).is_err(), "{text}");
    }
}

#[test]
fn every_range_is_kept_with_a_reason() {
    let vc = |alpha| RuleSpec::VcAsgd { alpha, staleness: Staleness::Constant };
    let stale = |staleness| RuleSpec::Delta { gain: None, staleness };
    let delta = |gain| RuleSpec::Delta { gain: Some(gain), staleness: Staleness::Constant };
    let buffer =
        |arrivals, outer| RuleSpec::Fedbuff { arrivals, outer, staleness: Staleness::Constant };
    let nesterov = |period, rate, momentum| RuleSpec::DelayedNesterov { period, rate, momentum };
    let good = [
        vc(Alpha::Constant(0.0)),
        vc(Alpha::Constant(1.0)),
        vc(Alpha::Epochs),
        stale(Staleness::Polynomial { a: 0.0 }),
        stale(Staleness::Hinge { a: 10.0, b: 0 }),
        delta(MAX_RATE),
        buffer(Some(1), Outer::Nesterov { rate: 0.7, momentum: 0.0 }),
        nesterov(Some(MAX_ARRIVALS), 1e-9, 0.999),
        RuleSpec::Easgd { moving_rate: Some(1.0) },
        RuleSpec::DcAsgd { lambda: 0.0, decay: 0.0 },
    ];
    for rule in good {
        assert_eq!(rule.check(), Ok(()), "{rule:?}");
    }
    let bad = [
        (vc(Alpha::Constant(1.25)), "alpha"),
        (vc(Alpha::Constant(f64::NAN)), "alpha"),
        (stale(Staleness::Polynomial { a: -0.5 }), "staleness.a"),
        (stale(Staleness::Polynomial { a: f64::INFINITY }), "staleness.a"),
        (stale(Staleness::Hinge { a: 0.0, b: 4 }), "staleness.a"),
        (delta(0.0), "gain"),
        (delta(f64::NAN), "gain"),
        (delta(1000.5), "gain"),
        (buffer(Some(0), Outer::SGD), "arrivals"),
        (buffer(None, Outer::Sgd { rate: -1.0 }), "outer.rate"),
        (buffer(None, Outer::Nesterov { rate: 1.0, momentum: 1.0 }), "outer.momentum"),
        (nesterov(Some(0), 0.7, 0.9), "period"),
        (nesterov(None, f64::INFINITY, 0.9), "rate"),
        (nesterov(None, 0.7, -0.1), "momentum"),
        (RuleSpec::Easgd { moving_rate: Some(0.0) }, "moving_rate"),
        (RuleSpec::Easgd { moving_rate: Some(1.1) }, "moving_rate"),
        (RuleSpec::Downpour { rate: 0.0 }, "rate"),
        (RuleSpec::DcAsgd { lambda: -1.0, decay: 0.95 }, "lambda"),
        (RuleSpec::DcAsgd { lambda: f64::NAN, decay: 0.95 }, "lambda"),
        (RuleSpec::DcAsgd { lambda: 2.0, decay: 1.0 }, "decay"),
    ];
    for (rule, key) in bad {
        assert_eq!(rule.check().unwrap_err().key, key, "{rule:?}");
    }
    let message = vc(Alpha::Constant(1.25)).check().unwrap_err().to_string();
    assert_eq!(message, "`alpha` is 1.25; the share that stays has to be from 0 to 1");
    let message = buffer(Some(0), Outer::SGD).check().unwrap_err().to_string();
    assert_eq!(message, "`arrivals` is 0; it has to be from 1 to 1000000");
}

#[test]
fn the_bound_is_sixteen_or_four_times_the_units_in_flight() {
    for (in_flight, bound) in [(0, 16), (1, 16), (4, 16), (5, 20), (u32::MAX, 17_179_869_180)] {
        assert_eq!(StalenessBound::of(in_flight), StalenessBound(bound));
        assert!(StalenessBound(bound).allows(bound - 1) && !StalenessBound(bound).allows(bound));
    }
}
