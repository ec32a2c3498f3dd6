//! Orders, against answers that `moto` can't give: part fills, no capacity, quotas, throttling, used tokens, lost answers.

use crate::{
    support::{
        SECRET, ec2, items, launched, machine_of, order, pool, pool_error, pools, region_answer,
        small, tag_of,
    },
    wire::{Answer, Form, Wire},
};
use proptest::prelude::*;
use sojourn_fleet::cloud::{Cloud as _, CloudError, Order};
use sojourn_protocol::{machines::Market, money::MicroUsd};
use std::collections::BTreeSet;

/// EC2 that answers `CreateFleet` so, and what else is asked as it should.
fn answering(mut answer: impl FnMut(&Form) -> Answer + Send + 'static) -> Wire {
    Wire::scripted(move |form| match form["Action"].as_str() {
        "CreateFleet" => answer(form),
        _ => region_answer(form),
    })
}

fn failed(errors: &[&str]) -> Answer {
    Answer::Done(items("errorSet", errors))
}

/// Every machine is bought.
fn generous() -> Wire {
    answering(|form| {
        Answer::Done(launched(&format!("i-{}", machine_of(form)), "subnet-b", "c5.xlarge"))
    })
}

#[tokio::test(start_paused = true)]
async fn an_order_says_all_that_ec2_is_to_do() {
    let wire = generous();
    let filled = ec2(&wire, small()).buy(&order(2, Market::Spot, pools())).await.unwrap();
    assert_eq!(filled.failure, None);
    let bought: Vec<_> =
        filled.bought.iter().map(|b| (b.name.as_str(), b.instance.as_str())).collect();
    assert_eq!(bought, [("m-0", "i-m-0"), ("m-1", "i-m-1")]);
    assert_eq!(filled.bought[0].pool, pool("eu-west-1b", "c5.xlarge"));

    let sent = wire.of("CreateFleet");
    assert_eq!(sent.len(), 2, "each machine has a request of its own");
    let form = &sent[0];
    for (key, expected) in [
        ("Type", "instant"),
        ("TargetCapacitySpecification.TotalTargetCapacity", "1"),
        ("TargetCapacitySpecification.DefaultTargetCapacityType", "spot"),
        ("SpotOptions.AllocationStrategy", "price-capacity-optimized"),
        ("SpotOptions.InstanceInterruptionBehavior", "terminate"),
        ("LaunchTemplateConfigs.1.Overrides.1.InstanceType", "c5.xlarge"),
        ("LaunchTemplateConfigs.1.Overrides.1.SubnetId", "subnet-a"),
        ("LaunchTemplateConfigs.1.Overrides.1.MaxPrice", "0.123000"),
        ("LaunchTemplateConfigs.1.Overrides.3.InstanceType", "m5.xlarge"),
        ("LaunchTemplateConfigs.1.LaunchTemplateSpecification.Version", "$Default"),
    ] {
        assert_eq!(form.get(key).map(String::as_str), Some(expected), "{key} of {form:?}");
    }
    assert_eq!(tag_of(form, "sojourn:fleet").as_deref(), Some("tests"));
    assert_eq!(tag_of(form, "team").as_deref(), Some("vision"));
    let tagged: BTreeSet<&str> = form
        .iter()
        .filter(|(key, _)| key.ends_with("ResourceType"))
        .map(|(_, value)| value.as_str())
        .collect();
    assert_eq!(tagged, ["fleet", "instance", "network-interface", "volume"].into());

    let template = wire.of("CreateLaunchTemplate");
    assert_eq!(template.len(), 1, "a template serves all orders");
    let template = &template[0];
    assert_eq!(template["LaunchTemplateData.InstanceInitiatedShutdownBehavior"], "terminate");
    assert_eq!(template["LaunchTemplateData.MetadataOptions.HttpTokens"], "required");
    assert_eq!(template["LaunchTemplateData.BlockDeviceMapping.1.Ebs.Encrypted"], "true");
    assert!(!template.keys().any(|key| key.contains("UserData")), "a template has no token");
    assert_eq!(
        template["LaunchTemplateName"],
        form["LaunchTemplateConfigs.1.LaunchTemplateSpecification.LaunchTemplateName"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_template_that_was_deleted_is_made_again() {
    // EC2 makes nothing where it knows the token, also of a template that is gone.
    let token = async || {
        let wire = generous();
        ec2(&wire, small()).buy(&order(1, Market::Spot, pools())).await.unwrap();
        wire.of("CreateLaunchTemplate")[0]["ClientToken"].clone()
    };
    assert_ne!(token().await, token().await);
}

#[tokio::test(start_paused = true)]
async fn on_demand_takes_the_best_pool_first_and_keeps_the_limit() {
    let wire = generous();
    ec2(&wire, small()).buy(&order(1, Market::OnDemand, pools())).await.unwrap();
    let form = &wire.of("CreateFleet")[0];
    for (key, expected) in [
        ("TargetCapacitySpecification.DefaultTargetCapacityType", "on-demand"),
        ("OnDemandOptions.AllocationStrategy", "prioritized"),
        ("OnDemandOptions.MaxTotalPrice", "0.123000"),
        ("LaunchTemplateConfigs.1.Overrides.1.Priority", "0"),
        ("LaunchTemplateConfigs.1.Overrides.2.Priority", "1"),
    ] {
        let sent = form.get(key).map(|value| value.trim_end_matches(".0"));
        assert_eq!(sent, Some(expected), "{key} of {form:?}");
    }
    assert!(!form.keys().any(|key| key.ends_with("MaxPrice")));
}

#[tokio::test(start_paused = true)]
async fn a_part_filled_order_says_what_was_bought_and_which_pools_are_empty() {
    let wire = answering(|form| match machine_of(form).as_str() {
        name @ ("m-0" | "m-2") => Answer::Done(launched(name, "subnet-a", "m5.xlarge")),
        "m-1" => failed(&[&pool_error("InsufficientInstanceCapacity", "subnet-a", "c5.xlarge")]),
        _ => failed(&[
            &pool_error("InsufficientInstanceCapacity", "subnet-a", "c5.xlarge"),
            &pool_error("UnfulfillableCapacity", "subnet-b", "c5.xlarge"),
        ]),
    });
    let filled = ec2(&wire, small()).buy(&order(9, Market::Spot, pools())).await.unwrap();
    let bought: Vec<_> = filled.bought.iter().map(|b| b.name.as_str()).collect();
    assert_eq!(bought, ["m-0", "m-2"]);
    let pools = vec![pool("eu-west-1a", "c5.xlarge"), pool("eu-west-1b", "c5.xlarge")];
    assert_eq!(filled.failure, Some(CloudError::NoCapacity { pools }));
    assert_eq!(wire.of("CreateFleet").len(), 4, "after a failure no more is asked for");
}

#[tokio::test(start_paused = true)]
async fn a_pool_without_capacity_is_no_failure_where_another_has_a_machine() {
    let wire = answering(|_| {
        let error = pool_error("InsufficientInstanceCapacity", "subnet-a", "c5.xlarge");
        let launched = launched("i-1", "subnet-b", "c5.xlarge");
        Answer::Done(format!("{}{launched}", items("errorSet", &[&error])))
    });
    let filled = ec2(&wire, small()).buy(&order(1, Market::Spot, pools())).await.unwrap();
    assert_eq!((filled.bought.len(), filled.failure), (1, None));
}

#[tokio::test(start_paused = true)]
async fn answers_without_a_machine_say_why() {
    let quota = CloudError::Quota {
        region: "eu-west-1".into(),
        market: Market::Spot,
        message: "CreateFleet: MaxSpotInstanceCountExceeded: so it is".into(),
    };
    let vcpus = CloudError::Quota {
        region: "eu-west-1".into(),
        market: Market::Spot,
        message: "CreateFleet: VcpuLimitExceeded: so it is".into(),
    };
    let refused = |code| CloudError::Refused(format!("CreateFleet: {code}: so it is"));
    let one = vec![pool("eu-west-1a", "c5.xlarge")];
    for (codes, expected) in [
        (vec!["InsufficientInstanceCapacity"], CloudError::NoCapacity { pools: one.clone() }),
        (vec!["SpotMaxPriceTooLow"], CloudError::NoCapacity { pools: one.clone() }),
        (vec!["MaxSpotInstanceCountExceeded"], quota.clone()),
        (vec!["InsufficientInstanceCapacity", "MaxSpotInstanceCountExceeded"], quota.clone()),
        (vec!["MaxSpotInstanceCountExceeded", "InvalidFleetConfiguration"], quota),
        (vec!["VcpuLimitExceeded"], vcpus),
        (vec!["UnauthorizedOperation"], refused("UnauthorizedOperation")),
        (vec!["InvalidFleetConfiguration"], refused("InvalidFleetConfiguration")),
        // Types that can't be bought there don't keep others from being tried later.
        (
            vec!["InvalidFleetConfiguration", "InsufficientInstanceCapacity"],
            CloudError::NoCapacity { pools: one.clone() },
        ),
        (vec!["RequestLimitExceeded"], CloudError::Throttled),
        // EC2 names no pool: all may be meant.
        (vec![], CloudError::NoCapacity { pools: pools() }),
    ] {
        let told = codes.clone();
        let wire = answering(move |_| {
            let errors: Vec<_> =
                told.iter().map(|code| pool_error(code, "subnet-a", "c5.xlarge")).collect();
            failed(&errors.iter().map(String::as_str).collect::<Vec<_>>())
        });
        let filled = ec2(&wire, small()).buy(&order(1, Market::Spot, pools())).await.unwrap();
        assert_eq!((filled.bought.len(), filled.failure), (0, Some(expected)), "{codes:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn refused_requests_say_why() {
    for (status, code, expected, attempts) in [
        (503, "RequestLimitExceeded", CloudError::Throttled, 4),
        (400, "IdempotentParameterMismatch", CloudError::TokenReused, 1),
        (
            403,
            "UnauthorizedOperation",
            CloudError::Refused("CreateFleet: UnauthorizedOperation: no".into()),
            1,
        ),
        (400, "InsufficientInstanceCapacity", CloudError::NoCapacity { pools: pools() }, 1),
        (
            400,
            "VcpuLimitExceeded",
            CloudError::Quota {
                region: "eu-west-1".into(),
                market: Market::Spot,
                message: "CreateFleet: VcpuLimitExceeded: no".into(),
            },
            1,
        ),
    ] {
        let wire = answering(move |_| Answer::Error(status, code));
        let filled = ec2(&wire, small()).buy(&order(1, Market::Spot, pools())).await.unwrap();
        assert_eq!(filled.failure, Some(expected), "{code}");
        assert_eq!(wire.of("CreateFleet").len(), attempts, "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_asked_for_again_with_the_same_token() {
    let mut lost = false;
    let wire = answering(move |form| {
        if !std::mem::replace(&mut lost, true) {
            return Answer::Lost;
        }
        Answer::Done(launched(&machine_of(form), "subnet-a", "c5.xlarge"))
    });
    let filled = ec2(&wire, small()).buy(&order(1, Market::Spot, pools())).await.unwrap();
    assert_eq!((filled.bought.len(), filled.failure), (1, None));
    let sent = wire.of("CreateFleet");
    assert_eq!(sent.len(), 2);
    assert_eq!(sent[0], sent[1], "the same request, its token too");
    assert_eq!(sent[0]["ClientToken"].len(), 64);
}

#[tokio::test(start_paused = true)]
async fn where_no_answer_comes_nothing_is_known() {
    let wire = answering(|_| Answer::Lost);
    let answer = ec2(&wire, small()).buy(&order(1, Market::Spot, pools())).await;
    assert!(matches!(answer, Err(CloudError::Away(_))), "{answer:?}");
    assert_eq!(wire.of("CreateFleet").len(), 4);

    // Of some it is known.
    let wire = answering(|form| match machine_of(form).as_str() {
        name @ "m-0" => Answer::Done(launched(name, "subnet-a", "c5.xlarge")),
        "m-1" => failed(&[&pool_error("InsufficientInstanceCapacity", "subnet-a", "c5.xlarge")]),
        _ => Answer::Error(500, "InternalError"),
    });
    let filled = ec2(&wire, small()).buy(&order(3, Market::Spot, pools())).await.unwrap();
    assert_eq!(filled.bought.len(), 1);
    assert!(matches!(filled.failure, Some(CloudError::Away(_))), "{:?}", filled.failure);
}

#[tokio::test(start_paused = true)]
async fn a_template_that_somebody_deleted_is_made_again() {
    let mut gone = false;
    let wire = answering(move |form| {
        if !std::mem::replace(&mut gone, true) {
            return Answer::Error(400, "InvalidLaunchTemplateName.NotFoundException");
        }
        Answer::Done(launched(&machine_of(form), "subnet-a", "c5.xlarge"))
    });
    let filled = ec2(&wire, small()).buy(&order(1, Market::Spot, pools())).await.unwrap();
    assert_eq!((filled.bought.len(), filled.failure), (1, None));
    assert_eq!(wire.of("CreateLaunchTemplate").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn orders_that_cannot_be_are_refused_before_anything_is_bought() {
    let wire = generous();
    let ec2 = ec2(&wire, small());
    let mut elsewhere = pool("us-east-1a", "c5.xlarge");
    elsewhere.region = "us-east-1".into();
    for pools in [
        vec![],
        vec![pool("eu-west-1a", "c5.xlarge"), elsewhere.clone()],
        vec![elsewhere],
        vec![pool("eu-west-1c", "c5.xlarge")],
    ] {
        let filled = ec2.buy(&order(1, Market::Spot, pools.clone())).await.unwrap();
        assert!(matches!(filled.failure, Some(CloudError::Refused(_))), "{pools:?}");
    }
    let mut unsafe_token = order(1, Market::Spot, pools());
    unsafe_token.machines[0].enrolment_token = "x\"; rm -rf /".into();
    let filled = ec2.buy(&unsafe_token).await.unwrap();
    assert!(matches!(filled.failure, Some(CloudError::Refused(_))));
    assert!(wire.of("CreateFleet").is_empty());
    let none = ec2.buy(&order(0, Market::Spot, pools())).await.unwrap();
    assert_eq!((none.bought.len(), none.failure), (0, None));
}

#[tokio::test(start_paused = true)]
async fn no_more_pools_are_sent_than_ec2_takes() {
    let wire = generous();
    let many = (0..400).map(|at| pool("eu-west-1a", &format!("c5.{at}xlarge"))).collect();
    ec2(&wire, small()).buy(&order(1, Market::Spot, many)).await.unwrap();
    let form = &wire.of("CreateFleet")[0];
    let sent = form.keys().filter(|key| key.ends_with(".SubnetId")).count();
    assert_eq!(sent, sojourn_ec2::MAX_POOLS);
}

/// The token with which the first machine of an order is bought.
async fn token(order: &Order) -> String {
    let wire = generous();
    ec2(&wire, small()).buy(order).await.unwrap();
    wire.of("CreateFleet")[0]["ClientToken"].clone()
}

fn any_order() -> impl Strategy<Value = Order> {
    let zones = prop::collection::vec((0..2_usize, 0..3_usize), 2..5);
    (0..2_u8, any::<bool>(), zones).prop_map(|(name, spot, zones)| {
        let zone = |at| ["eu-west-1a", "eu-west-1b"][at];
        let kind = |at| ["c5.xlarge", "c5.2xlarge", "m5.xlarge"][at];
        let pools = zones.into_iter().map(|(z, t)| pool(zone(z), kind(t))).collect();
        let mut order = order(1, if spot { Market::Spot } else { Market::OnDemand }, pools);
        order.machines[0].name = format!("m-{name}").parse().unwrap();
        order
    })
}

/// The order with one change.
fn changed(mut order: Order, change: u8) -> Order {
    match change {
        0 => order.machines[0].name = "m-other".parse().unwrap(),
        1 if order.market == Market::Spot => order.market = Market::OnDemand,
        1 => order.market = Market::Spot,
        2 => drop(order.pools.pop()),
        3 => order.pools[0].instance_type = "r5.xlarge".into(),
        4 => order.pools.reverse(),
        5 => order.price_limit = MicroUsd(1),
        _ => order.machines[0].enrolment_token = "another".into(),
    }
    order
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn an_order_that_was_changed_has_another_token(one in any_order(), change in 0..7_u8) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let other = changed(one.clone(), change);
        // Neither the limit nor the enrolment token makes it another order: it would be bought twice.
        let same = (&one.machines[0].name, one.market, &one.pools)
            == (&other.machines[0].name, other.market, &other.pools);
        prop_assert_eq!(same, change > 4 || (change == 4 && one.pools == other.pools));
        let (first, second) = runtime.block_on(async { (token(&one).await, token(&other).await) });
        prop_assert_eq!(first == second, same);
        prop_assert!(first.len() == 64 && !first.contains(SECRET));
    }
}
