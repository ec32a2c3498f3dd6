//! `[placement]`.

use super::*;
use crate::{
    quantity::Micros,
    spec::{
        Apply, CpuSharePolicy, First, FlowCon, Growth, Listing, Order, Rebalancing,
        ResidencyPolicy, Scope, SpeCon, Threshold, Verify, VerifyChoice,
    },
};

#[test]
fn a_job_says_how_it_stands_to_others() {
    let text =
        format!("{SMALL}[placement]\nreplicas = 3\npriority = -5\nshare = 4\nmax_hosts = 2\n");
    let placement = parse(&text).unwrap().placement;
    assert_eq!(placement.replicas, Replicas::Fixed(3));
    assert_eq!((placement.priority, placement.slot_share), (-5, 4));
    assert_eq!(placement.max_hosts, Some(2));
    let plain = parse(&format!("{SMALL}[placement]\nreplicas = \"demand\"\n")).unwrap();
    assert_eq!(plain, parse(SMALL).unwrap(), "which is what holds anyway");
}

#[test]
fn what_no_placement_can_be_is_refused() {
    let placement =
        |line: &str| errors_with("epochs = 2", &format!("epochs = 2\n[placement]\n{line}"));
    assert_eq!(
        placement("replicas = \"demnad\""),
        "11: `placement.replicas` is `\"demnad\"`; did you mean `demand`? one of `demand` is wanted"
    );
    assert_eq!(
        placement("priority = 101"),
        "11: `placement.priority` is 101; at most 100 is possible"
    );
    assert_eq!(
        placement("max_hosts = 0"),
        "11: `placement.max_hosts` is 0; a whole number from 1 to 10000000 is wanted"
    );
}

#[test]
fn a_job_has_its_results_checked() {
    let verify = |text: &str| {
        let text = format!("{SMALL}[placement]\nverify = {text}\n");
        parse(&text).unwrap().placement.verify
    };
    let of = |quorum, rate| Some(VerifyChoice::All(Verify { quorum, rate }));
    assert_eq!(verify("\"none\""), Some(VerifyChoice::NONE));
    assert_eq!(verify("\"strangers\""), Some(VerifyChoice::STRANGERS));
    assert_eq!(verify("{}"), of(2, 100));
    assert_eq!(verify("{ quorum = 3, rate = 1 }"), of(3, 1000));
    assert_eq!(parse(SMALL).unwrap().placement.verify, None);
    let placement =
        |line: &str| errors_with("epochs = 2", &format!("epochs = 2\n[placement]\n{line}"));
    assert_eq!(
        placement("verify = { quorum = 1 }"),
        "11: `placement.verify.quorum` is 1; a whole number from 2 to 5 is wanted"
    );
    assert_eq!(
        placement("verify = { rate = 0 }"),
        "11: `placement.verify.rate` is 0; at least 0.001 is wanted"
    );
    assert_eq!(
        placement("verify = {}\nreproducible = false"),
        "11: `placement.verify` needs `reproducible = true`: other arithmetic comes to other results"
    );
    assert_eq!(
        placement("verify = \"strangers\"\nreproducible = false"),
        "11: `placement.verify` needs `reproducible = true`: other arithmetic comes to other results"
    );
    assert_eq!(
        placement("verify = \"all\""),
        "11: `placement.verify` is `\"all\"`; one of `strangers`, `none` is wanted"
    );
    let none = parse(&format!("{SMALL}[placement]\nverify = \"none\"\nreproducible = false\n"));
    assert_eq!(none.unwrap().placement.verify, Some(VerifyChoice::NONE));
}

/// The choices of a job file, and JSON as stored and sent.
#[test]
fn each_choice_of_verification_is_read_as_it_was_written() {
    let read = |json: &str| serde_json::from_str::<VerifyChoice>(json).unwrap();
    let all = VerifyChoice::All(Verify { quorum: 2, rate: 100 });
    for (choice, json) in [
        (VerifyChoice::NONE, "\"none\""),
        (VerifyChoice::STRANGERS, "\"strangers\""),
        (all, "{\"quorum\":2,\"rate\":100}"),
    ] {
        assert_eq!((read(json), serde_json::to_string(&choice).unwrap().as_str()), (choice, json));
    }
    assert!(serde_json::from_str::<VerifyChoice>("{\"quorum\":2,\"rate\":1,\"of\":1}").is_err());
}

#[test]
fn visits_are_fixed_or_free_and_left_open_otherwise() {
    let visits = |text: &str| parse(&format!("{SMALL}[placement]\n{text}\n")).unwrap().placement;
    let fixed = visits("visits = \"fixed\"");
    assert!(fixed.has_fixed_visits() && !fixed.may_merge());
    let free = visits("visits = \"free\"");
    assert!(!free.has_fixed_visits() && free.may_merge());
    assert_eq!(parse(SMALL).unwrap().placement.visits, None);
    let written = serde_json::to_string(&parse(SMALL).unwrap()).unwrap();
    assert!(!written.contains("visits"), "jobs of before stay what they are: {written}");
    let placement =
        |line: &str| errors_with("epochs = 2", &format!("epochs = 2\n[placement]\n{line}"));
    assert_eq!(
        placement("visits = \"fxed\""),
        "11: `placement.visits` is `\"fxed\"`; did you mean `fixed`? one of `fixed`, `free` is wanted"
    );
    assert_eq!(
        placement("order = \"merge\"\nvisits = \"fixed\""),
        "12: `placement.visits` doesn't go with `order = \"merge\"`: results are merged in the order in which they \
         arrive"
    );
}

#[test]
fn trials_on_one_host_have_equal_cpu_shares_or_a_policy() {
    let cpu_shares = |text: &str| {
        let text = format!("{SMALL}[placement]\nhost_shares = {text}\n");
        parse(&text).unwrap().placement.cpu_shares
    };
    assert_eq!(cpu_shares("\"equal\""), CpuSharePolicy::Equal);
    assert_eq!(cpu_shares("\"flowcon\""), CpuSharePolicy::FlowCon(FlowCon::default()));
    let thesis = "{ policy = \"flowcon\", alpha = 0.05, threshold = \"per-second\", absolute = true, apply = \"cap\" }";
    assert_eq!(cpu_shares(thesis), CpuSharePolicy::FlowCon(FlowCon::thesis()));
    let (threshold, apply) = (Threshold::PerTrial, Apply::Weight);
    let interval = Micros::from_secs(900);
    assert_eq!(
        cpu_shares("{ policy = \"flowcon\", interval = \"15m\", beta = 4 }"),
        CpuSharePolicy::FlowCon(FlowCon {
            interval,
            beta: 4.0,
            longest_interval: interval,
            threshold,
            apply,
            ..FlowCon::default()
        })
    );
    let first = First::new(Order::LeastAttained);
    assert_eq!(cpu_shares("\"las\""), CpuSharePolicy::First(first));
    assert_eq!(
        cpu_shares("{ policy = \"srpt\", interval = \"10s\", least = 0.1 }"),
        CpuSharePolicy::First(First {
            order: Order::ShortestRemaining,
            interval: Micros::from_secs(10),
            least: 0.1
        })
    );
    let written = serde_json::to_string(&parse(SMALL).unwrap()).unwrap();
    assert!(!written.contains("host_shares"), "jobs of before stay what they are: {written}");
    let refused = |text: &str| {
        errors_with("epochs = 2", &format!("epochs = 2\n[placement]\nhost_shares = {text}"))
    };
    for (text, said) in [
        (
            "\"flow\"",
            "`placement.host_shares` is `\"flow\"`; did you mean `flowcon`? one of `equal`, `flowcon`, `srpt`, `las` is wanted",
        ),
        (
            "{ alpha = 1 }",
            "`placement.host_shares.policy` is missing: a policy such as `\"flowcon\"`",
        ),
        (
            "{ policy = \"equal\", alpha = 1 }",
            "`placement.host_shares.alpha` is no key of `equal`, which has no parameters",
        ),
        (
            "{ policy = \"las\", alpha = 1 }",
            "`placement.host_shares.alpha` is no key of `las`, which has `interval`, `least`",
        ),
        (
            "{ policy = \"las\", least = 0 }",
            "`placement.host_shares.least` has to be from 0.001 to 1",
        ),
        (
            "{ policy = \"flowcon\", interval = \"2h\" }",
            "`placement.host_shares.interval` has to be from 1s to 1h",
        ),
        (
            "{ policy = \"flowcon\", alpha = -1 }",
            "`placement.host_shares.alpha` has to be from 0 to 1000",
        ),
        (
            "{ policy = \"flowcon\", beta = 0.5 }",
            "`placement.host_shares.beta` has to be from 1 to 1000",
        ),
        (
            "{ policy = \"flowcon\", longest_interval = \"1s\" }",
            "`placement.host_shares.longest_interval` has to be from `interval` to 1d",
        ),
    ] {
        assert_eq!(refused(text), format!("11: {said}"));
    }
}

#[test]
fn trials_stay_nowhere_or_by_a_policy() {
    let residency = |text: &str| {
        let text = format!("{SMALL}[placement]\nresidency = {text}\n");
        parse(&text).unwrap().placement.residency
    };
    assert_eq!(residency("\"none\""), ResidencyPolicy::None);
    assert_eq!(residency("\"least-loaded\""), ResidencyPolicy::LeastLoaded);
    assert_eq!(residency("\"specon\""), ResidencyPolicy::SpeCon(SpeCon::default()));
    let interval = Micros::from_secs(20);
    assert_eq!(
        residency("{ policy = \"srpt\", interval = \"20s\" }"),
        ResidencyPolicy::ShortestRemaining(Rebalancing { interval })
    );
    let printed = SpeCon { listing: Listing::Printed, ..SpeCon::thesis() };
    assert_eq!(
        residency("{ policy = \"specon\", reproduction = true }"),
        ResidencyPolicy::SpeCon(printed)
    );
    let all = "{ policy = \"specon\", reproduction = true, listing = \"thesis\", alpha = 0.05, growth = \"per-trial\", \
               interval = \"20s\", least_batches = 5, confirm = 0, scope = \"cluster\", margin = 0.5, absolute = false }";
    assert_eq!(
        residency(all),
        ResidencyPolicy::SpeCon(SpeCon {
            alpha: 0.05,
            growth: Growth::PerTrial,
            interval,
            least_batches: 5,
            confirm: 0,
            scope: Scope::Cluster,
            margin: 0.5,
            absolute: false,
            listing: Listing::Thesis
        })
    );
    let written = serde_json::to_string(&parse(SMALL).unwrap()).unwrap();
    assert!(!written.contains("residency"), "jobs of before stay what they are: {written}");
}

#[test]
fn trials_that_stay_on_hosts_go_with_no_merging_no_replicas_and_no_chosen_hosts() {
    let refused =
        |text: &str| errors_with("epochs = 2", &format!("epochs = 2\n[placement]\n{text}"));
    for (text, said) in [
        (
            "residency = \"spekon\"",
            "11: `placement.residency` is `\"spekon\"`; did you mean `specon`? one of `none`, `least-loaded`, `specon`, `srpt` is wanted",
        ),
        (
            "residency = { policy = \"srpt\", alpha = 1 }",
            "11: `placement.residency.alpha` is no key of `srpt`, which has `interval`",
        ),
        (
            "residency = { policy = \"specon\", interval = \"2h\" }",
            "11: `placement.residency.interval` has to be from 1s to 1h",
        ),
        (
            "residency = { policy = \"specon\", margin = -1 }",
            "11: `placement.residency.margin` has to be from 0 to 1000",
        ),
        (
            "residency = \"specon\"\norder = \"merge\"",
            "11: `placement.residency` doesn't go with `order = \"merge\"`: a trial that several hosts train stays on none",
        ),
        (
            "residency = \"specon\"\nreplicas = 2",
            "11: `placement.residency` doesn't go with `replicas`: a trial that stays on a host needs all shards there",
        ),
        (
            "residency = \"srpt\"\nmax_hosts = 2",
            "11: `placement.residency` doesn't go with `max_hosts`: no plan is made, which would choose the hosts",
        ),
    ] {
        assert_eq!(refused(text), said);
    }
    // With the default order results are merged where few trials are there; trials that stay aren't.
    let stays = parse(&format!("{SMALL}[placement]\nresidency = \"specon\"\n")).unwrap();
    assert!(!stays.placement.may_merge() && parse(SMALL).unwrap().placement.may_merge());
}
