//! `merge` of `[placement]`, and what goes with it.

use super::*;
use crate::spec::{
    Alpha, LocalSteps, MergeSpec, OptimizerMerge, Outer, PlacementSpec, RuleSpec, Staleness, Verify,
};

fn with(line: &str) -> String {
    format!("{SMALL}[placement]\n{line}\n")
}

fn merge(value: &str) -> MergeSpec {
    let text = with(&format!("merge = {value}"));
    parse(&text).unwrap_or_else(|error| panic!("{value}: {error}")).placement.merge.unwrap()
}

/// The error message for a bad `merge`, with its path below `placement`.
fn refused(value: &str) -> String {
    let errors = errors_of(&with(&format!("merge = {value}")));
    errors.replace("11: `placement.", "`")
}

#[test]
fn a_rule_is_a_word_or_a_table() {
    for (word, rule) in [
        ("adasum", RuleSpec::ADASUM),
        ("vc-asgd", RuleSpec::VC_ASGD),
        ("delta", RuleSpec::DELTA),
        ("fedbuff", RuleSpec::FEDBUFF),
        ("delayed-nesterov", RuleSpec::DELAYED_NESTEROV),
        ("easgd", RuleSpec::EASGD),
        ("downpour", RuleSpec::DOWNPOUR),
        ("dc-asgd", RuleSpec::DC_ASGD),
    ] {
        assert_eq!(rule.name(), word);
        let optimizer = match word {
            "adasum" | "easgd" | "downpour" | "dc-asgd" => OptimizerMerge::Discount,
            _ => OptimizerMerge::Reset,
        };
        let spec = MergeSpec { rule, optimizer, canary: None };
        assert_eq!(merge(&format!("\"{word}\"")), spec);
        assert_eq!(merge(&format!("{{ rule = \"{word}\" }}")), spec);
    }
    assert_eq!(merge("{}"), MergeSpec::default());
    for (word, optimizer) in [
        ("average", OptimizerMerge::Average),
        ("reset", OptimizerMerge::Reset),
        ("last", OptimizerMerge::Last),
        ("discount", OptimizerMerge::Discount),
    ] {
        let spec = MergeSpec { optimizer, ..MergeSpec::default() };
        assert_eq!(merge(&format!("{{ optimizer = \"{word}\" }}")), spec);
    }
}

#[test]
fn losses_are_looked_at_where_a_job_asks_for_it() {
    assert_eq!(merge("\"delta\"").canary, None);
    let spec = MergeSpec { canary: Some(2.5), ..MergeSpec::default() };
    assert_eq!(merge("{ canary = 2.5 }"), spec);
    assert_eq!(merge("{ rule = \"vc-asgd\", canary = 1 }").canary, Some(1.0));
    for bad in ["0.9", "1001"] {
        let errors = refused(&format!("{{ canary = {bad} }}"));
        let wanted = format!(
            "`merge.canary` is {bad}: so many times the current version's loss, from 1 to 1000, is wanted"
        );
        assert!(errors.contains(&wanted), "{errors}");
    }
}

#[test]
fn each_rule_has_its_parameters() {
    let root = Staleness::ROOT;
    for (text, rule) in [
        (
            "{ rule = \"vc-asgd\", alpha = 0.7, staleness = \"hinge\" }",
            RuleSpec::VcAsgd {
                alpha: Alpha::Constant(0.7),
                staleness: Staleness::Hinge { a: 10.0, b: 4 },
            },
        ),
        (
            "{ rule = \"vc-asgd\", alpha = \"e/(e+1)\", staleness = { hinge = { b = 0 } } }",
            RuleSpec::VcAsgd {
                alpha: Alpha::Epochs,
                staleness: Staleness::Hinge { a: 10.0, b: 0 },
            },
        ),
        (
            "{ rule = \"delta\", gain = 1, staleness = \"constant\" }",
            RuleSpec::Delta { gain: Some(1.0), staleness: Staleness::Constant },
        ),
        (
            "{ rule = \"delta\", staleness = { polynomial = 2 } }",
            RuleSpec::Delta { gain: None, staleness: Staleness::Polynomial { a: 2.0 } },
        ),
        ("{ rule = \"easgd\", moving_rate = 0.001 }", RuleSpec::Easgd { moving_rate: Some(0.001) }),
        ("{ rule = \"downpour\", rate = 0.5 }", RuleSpec::Downpour { rate: 0.5 }),
        ("{ rule = \"dc-asgd\", lambda = 0.04 }", RuleSpec::DcAsgd { lambda: 0.04, decay: 0.95 }),
        (
            "{ rule = \"fedbuff\", arrivals = 4, outer = \"nesterov\" }",
            RuleSpec::Fedbuff { arrivals: Some(4), outer: Outer::NESTEROV, staleness: root },
        ),
        (
            "{ rule = \"fedbuff\", outer = { name = \"sgd\", rate = 0.5 } }",
            RuleSpec::Fedbuff { arrivals: None, outer: Outer::Sgd { rate: 0.5 }, staleness: root },
        ),
        (
            "{ rule = \"fedbuff\", outer = { name = \"nesterov\", momentum = 0.5 } }",
            RuleSpec::Fedbuff {
                arrivals: None,
                outer: Outer::Nesterov { rate: 0.7, momentum: 0.5 },
                staleness: root,
            },
        ),
        (
            "{ rule = \"delayed-nesterov\", period = 3, rate = 0.5, momentum = 0 }",
            RuleSpec::DelayedNesterov { period: Some(3), rate: 0.5, momentum: 0.0 },
        ),
        (
            "{ rule = \"delayed-nesterov\", momentum = 0.8 }",
            RuleSpec::DelayedNesterov { period: None, rate: 0.7, momentum: 0.8 },
        ),
    ] {
        assert_eq!(merge(text).rule, rule, "{text}");
    }
}

#[test]
fn when_and_how_much_is_said_beside_it() {
    let text = with("order = \"merge\"\nmerge_below = 0.25\nlocal_steps = \"by-speed\"");
    let placement = parse(&text).unwrap().placement;
    assert_eq!((placement.order, placement.merge), (OrderChoice::Merge, None));
    assert_eq!((placement.merge_below, placement.local_steps), (250, LocalSteps::BySpeed));
    assert_eq!(placement.merge_in_flight, None);
    let few = parse(&with("merge_in_flight = 6")).unwrap().placement;
    assert_eq!(few.merge_in_flight, Some(6));
    let errors = errors_of(&with("merge_in_flight = 1"));
    assert!(errors.contains("`placement.merge_in_flight`"), "{errors}");
    assert_eq!(parse(&with("merge_below = 1")).unwrap().placement.merge_below, 1000);
    let usual = "order = \"auto\"\nmerge_below = 0.5\nlocal_steps = \"shard\"";
    let (usual, small) = (parse(&with(usual)).unwrap(), parse(SMALL).unwrap());
    let written = |job| serde_json::to_string(&job).unwrap();
    assert_eq!(written(usual), written(small), "as jobs of before were");
}

#[test]
fn what_is_no_rule_is_refused_with_the_nearest_word() {
    let rules = "one of `adasum`, `vc-asgd`, `delta`, `fedbuff`, `delayed-nesterov`, `easgd`, `downpour`, `dc-asgd` is wanted";
    assert_eq!(
        refused("\"vcasgd\""),
        format!("`merge` is `\"vcasgd\"`; did you mean `vc-asgd`? {rules}")
    );
    assert_eq!(
        refused("{ rule = \"replace\" }"),
        format!("`merge.rule` is `\"replace\"`; {rules}")
    );
    assert_eq!(refused("3"), "`merge` is a whole number (`3`); a table is wanted");
    assert_eq!(
        refused("{ rul = \"delta\" }"),
        "`merge.rul` is no known key; did you mean `rule`?",
        "nor does anything else follow from it"
    );
    assert_eq!(
        refused("{ optimizer = \"mean\" }"),
        "`merge.optimizer` is `\"mean\"`; one of `average`, `reset`, `last`, `discount` is wanted"
    );
    assert_eq!(
        refused("{ rule = \"vc-asgd\", alpha = \"e/e+1\" }"),
        "`merge.alpha` is `\"e/e+1\"`; did you mean `e/(e+1)`? one of `e/(e+1)` is wanted"
    );
    assert_eq!(
        refused("{ rule = \"delta\", staleness = \"hing\" }"),
        "`merge.staleness` is `\"hing\"`; did you mean `hinge`? one of `constant`, `polynomial`, `hinge` is wanted"
    );
    assert_eq!(
        refused("{ rule = \"fedbuff\", outer = \"adam\" }"),
        "`merge.outer` is `\"adam\"`; one of `sgd`, `nesterov` is wanted"
    );
    assert_eq!(
        errors_with("epochs = 2", "epochs = 2\n[placement]\norder = \"merg\""),
        "11: `placement.order` is `\"merg\"`; did you mean `merge`? one of `auto`, `hop`, `merge` is wanted"
    );
    assert_eq!(
        errors_with("epochs = 2", "epochs = 2\n[placement]\nlocal_steps = \"speed\""),
        "11: `placement.local_steps` is `\"speed\"`; did you mean `by-speed`? one of `shard`, `by-speed` is wanted"
    );
}

#[test]
fn keys_of_other_rules_are_refused() {
    assert_eq!(
        refused("{ rule = \"vc-asgd\", momentum = 0.9, gain = 1 }"),
        "`merge.gain` is no key of `vc-asgd`, which has `alpha`, `staleness`\n\
         `merge.momentum` is no key of `vc-asgd`, which has `alpha`, `staleness`"
    );
    assert_eq!(
        refused("{ alpha = 0.9 }"),
        "`merge.alpha` is no key of `adasum`, which has `staleness`"
    );
    assert_eq!(
        refused("{ rule = \"fedbuff\", outer = { name = \"sgd\", momentum = 0.9 } }"),
        "`merge.outer.momentum` is no key of `sgd`, which has `rate`"
    );
    assert_eq!(
        refused("{ rule = \"fedbuff\", outer = { rate = 1 } }"),
        "`merge.outer.name` is missing: `sgd` or `nesterov`"
    );
    assert_eq!(
        refused("{ rule = \"delta\", staleness = {} }"),
        "`merge.staleness` has neither `polynomial` nor `hinge`; one of them is wanted"
    );
    assert_eq!(
        refused("{ rule = \"delta\", staleness = { hinge = {}, polynomial = 1 } }"),
        "`merge.staleness` has both `polynomial` and `hinge`; one of them is wanted"
    );
    assert_eq!(
        refused("{ rule = \"delta\", staleness = { hing = {} } }").lines().next(),
        Some("`merge.staleness.hing` is no known key; did you mean `hinge`?")
    );
}

#[test]
fn parameters_out_of_range_are_refused_where_they_are() {
    for (text, expected) in [
        (
            "{ rule = \"vc-asgd\", alpha = 1.5 }",
            "`merge.alpha` is 1.5; the share that stays has to be from 0 to 1",
        ),
        (
            "{ rule = \"delta\", gain = 0 }",
            "`merge.gain` is 0; it has to be above 0 and at most 1000",
        ),
        (
            "{ rule = \"delta\", staleness = { polynomial = -1 } }",
            "`merge.staleness.polynomial` is -1; the exponent has to be a number from 0 up",
        ),
        (
            "{ rule = \"delta\", staleness = { hinge = { a = 0 } } }",
            "`merge.staleness.hinge.a` is 0; the slope has to be a number above 0",
        ),
        (
            "{ rule = \"delta\", staleness = { hinge = { b = 1.5 } } }",
            "`merge.staleness.hinge.b` is a number (`1.5`); a whole number, at least 0, is wanted",
        ),
        (
            "{ rule = \"fedbuff\", arrivals = 0 }",
            "`merge.arrivals` is 0; a whole number from 1 to 1000000 is wanted",
        ),
        (
            "{ rule = \"fedbuff\", outer = { name = \"nesterov\", rate = -1 } }",
            "`merge.outer.rate` is -1; it has to be above 0 and at most 1000",
        ),
        (
            "{ rule = \"fedbuff\", outer = { name = \"nesterov\", momentum = 1 } }",
            "`merge.outer.momentum` is 1; it has to be from 0 to 0.9999",
        ),
        (
            "{ rule = \"delayed-nesterov\", period = 1.5 }",
            "`merge.period` is a number (`1.5`); a whole number from 1 to 1000000 is wanted",
        ),
        (
            "{ rule = \"delayed-nesterov\", rate = true }",
            "`merge.rate` is a boolean (`true`); a number is wanted",
        ),
        (
            "{ rule = \"delayed-nesterov\", momentum = 2 }",
            "`merge.momentum` is 2; it has to be from 0 to 0.9999",
        ),
    ] {
        assert_eq!(refused(text), expected, "{text}");
    }
    assert_eq!(
        errors_of(&with("merge_below = 50")),
        "11: `placement.merge_below` is 50; a number from 0 to 1 is wanted"
    );
    // In a table of its own each key has its own line.
    assert_eq!(
        errors_of(&format!("{SMALL}[placement.merge]\nrule = \"vc-asgd\"\nalpha = -1\n")),
        "12: `placement.merge.alpha` is -1; the share that stays has to be from 0 to 1"
    );
}

#[test]
fn what_comes_past_the_reader_is_checked_too() {
    let placement = parse(SMALL).unwrap().placement;
    assert_eq!(placement.check(), Ok(()));
    let refused = |change: fn(&mut PlacementSpec)| {
        let mut changed = placement.clone();
        change(&mut changed);
        changed.check().unwrap_err()
    };
    assert_eq!(
        refused(|placement| placement.merge_below = 1001),
        "`placement.merge_below` is 1001 thousandths; it has to be from 0 to 1000"
    );
    assert_eq!(
        refused(|placement| {
            let staleness = Staleness::Polynomial { a: -1.0 };
            let rule = RuleSpec::Delta { gain: None, staleness };
            placement.merge = Some(MergeSpec { rule, ..MergeSpec::default() });
        }),
        "`placement.merge.staleness.a` is -1; the exponent has to be a number from 0 up"
    );
    assert_eq!(
        refused(|placement| placement.threads = 4_000_000_000),
        "`placement.threads` is 4000000000; it has to be from 1 to 1024"
    );
    assert_eq!(
        refused(|placement| placement.max_hosts = Some(0)),
        "`placement.max_hosts` is 0; it has to be from 1 to 10000000"
    );
    assert_eq!(
        refused(|placement| placement.priority = 101),
        "`placement.priority` is 101; it has to be from -100 to 100"
    );
    assert_eq!(
        refused(|placement| placement.slot_share = 0),
        "`placement.share` is 0; it has to be from 1 to 1000"
    );
    assert_eq!(
        refused(|placement| placement.verify = Some(Verify { quorum: 6, rate: 100 }.into())),
        "`placement.verify.quorum` is 6; it has to be from 2 to 5"
    );
    assert_eq!(
        refused(|placement| {
            placement.reproducible = false;
            placement.verify = Some(Verify { quorum: 2, rate: 100 }.into());
        }),
        "`placement.verify` needs `reproducible`: other arithmetic comes to other results"
    );
}
