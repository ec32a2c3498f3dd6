//! Spot and on demand: pools without capacity, prices, the floor, the fallback, and the way back.

use super::*;
use crate::planner::Note;

fn no_capacity(pools: &[Pool]) -> Result<Filled, CloudError> {
    let failure = Some(CloudError::NoCapacity { pools: pools.to_vec() });
    Ok(Filled { bought: Vec::new(), failure })
}

#[test]
fn a_pool_without_capacity_is_left_alone_for_longer_and_longer() {
    let mut world = World::new();
    world.settings.markets.fallback = false;
    world.job(1, 1);
    let mut pauses = Vec::new();
    for _ in 0..3 {
        let purchase = purchases(&world.rounds(Millis::from_secs(7200)))[0].clone();
        world.answer(&purchase, &no_capacity(&purchase.pools));
        let from = world.now;
        let plan = world.round();
        assert_eq!(plan.notes, [Note::NoOffer { job: "job-1".into(), slots: 1 }]);
        let mut other = world.clone();
        other.rounds(Millis::from_secs(7200));
        pauses.push((other.now - from).0);
    }
    assert!(pauses[0] <= 180_000 + ROUND.0 && pauses[0] >= 90_000, "{pauses:?}");
    assert!(pauses[1] >= 180_000 && pauses[2] >= 360_000, "{pauses:?}");
}

#[test]
fn another_pool_is_asked_meanwhile() {
    let mut world = World::new();
    world.sell("d.xlarge", "eu-1b", 4, Some("0.05 usd"), "0.10 usd");
    world.job(1, 1);
    let purchase = purchases(&world.round())[0].clone();
    assert_eq!(purchase.pools.len(), 2);
    world.answer(&purchase, &no_capacity(&purchase.pools[..1]));
    let plan = world.round();
    assert_eq!(purchases(&plan)[0].pools, [pool("d.xlarge", "eu-1b")]);
}

#[test]
fn after_an_interruption_other_pools_come_first() {
    let mut world = World::new();
    world.sell("c.xlarge", "eu-1b", 4, Some("0.035 usd"), "0.10 usd");
    world.job(1, 1);
    world.works("m-a", "c.xlarge", Market::Spot, 1);
    world.workload().running = 1;
    world.workload().runnable = 0;
    assert!(world.round().actions.is_empty());
    world.ends("m-a", MachineEnd::Interrupted);
    world.workload().running = 0;
    world.workload().runnable = 1;
    let plan = world.round();
    assert_eq!(purchases(&plan)[0].pools[0], pool("c.xlarge", "eu-1b"));
    assert_eq!(world.memory.interruptions(), 1);
}

#[test]
fn where_spot_has_no_capacity_machines_are_bought_on_demand_after_a_while() {
    let mut world = World::new();
    world.job(1, 2);
    let purchase = purchases(&world.round())[0].clone();
    world.answer(&purchase, &no_capacity(&purchase.pools));
    let mut fallback = None;
    for _ in 0..20 {
        let plan = world.round();
        for purchase in purchases(&plan) {
            match purchase.market {
                Market::Spot => world.answer(purchase, &no_capacity(&purchase.pools)),
                Market::OnDemand => fallback = Some(purchase.clone()),
            }
        }
        if fallback.is_some() {
            break;
        }
    }
    let fallback = fallback.unwrap();
    assert!(matches!(fallback.reason, PurchaseReason::Fallback { slots: 2, .. }));
    assert_eq!(fallback.price_limit, usd("0.10 usd"));
}

#[test]
fn a_quota_or_a_price_near_the_list_price_counts_as_no_capacity() {
    let mut world = World::new();
    world.settings.markets.fallback_after = Millis(0);
    world.job(1, 1);
    let purchase = purchases(&world.round())[0].clone();
    let quota = CloudError::Quota {
        region: "eu-1".into(),
        market: Market::Spot,
        message: "MaxSpotInstanceCountExceeded".into(),
    };
    world.answer(&purchase, &Err(quota));
    assert_eq!(purchases(&world.round())[0].market, Market::OnDemand);

    let mut world = World::new();
    world.settings.markets.fallback_after = Millis(0);
    world.sell("c.xlarge", "eu-1a", 4, Some("0.095 usd"), "0.10 usd");
    world.job(1, 1);
    assert_eq!(purchases(&world.round())[0].market, Market::OnDemand);
}

#[test]
fn the_floor_is_on_demand_while_there_is_work() {
    let mut world = World::new();
    world.settings.markets.floor = 2;
    assert!(world.round().actions.is_empty());
    world.job(1, 5);
    let plan = world.round();
    let bought: Vec<_> = purchases(&plan).iter().map(|p| (p.market, p.machines.len())).collect();
    assert_eq!(bought, [(Market::OnDemand, 2), (Market::Spot, 3)]);
    assert_eq!(purchases(&plan)[0].reason, PurchaseReason::Floor { floor: 2 });
}

#[test]
fn spot_machines_replace_those_on_demand_once_they_can_be_had_again() {
    let mut world = World::new();
    world.job(1, 1);
    world.works("m-a", "c.xlarge", Market::OnDemand, 1);
    world.workload().running = 1;
    world.workload().runnable = 0;
    world.workload().rows *= 10;
    world.workload().longest *= 10;
    world.sell("c.xlarge", "eu-1a", 4, None, "0.10 usd");
    assert!(world.rounds(Millis::from_secs(3600)).actions.is_empty());
    world.sell("c.xlarge", "eu-1a", 4, Some("0.03 usd"), "0.10 usd");
    let from = world.now;
    let purchase = purchases(&world.rounds(Millis::from_secs(3600)))[0].clone();
    assert!(world.now - from >= world.settings.markets.return_after);
    assert!(
        matches!(&purchase.reason, PurchaseReason::Replacement { of, market: Market::OnDemand, .. }
            if of.as_str() == "m-a"),
        "{:?}",
        purchase.reason
    );
    world.buy(&purchase);
    // The old one goes once the new one has enrolled, and not before.
    assert!(world.round().actions.is_empty());
    let new = purchase.machines[0].clone();
    world.enrol(&new, 0);
    let plan = world.round();
    assert_eq!(ends(&plan), [("m-a", "drain", EndReason::Replaced { by: new.clone() })]);
    world.load("m-a").draining = true;
    world.load("m-a").stopped = true;
    let plan = world.round();
    assert_eq!(ends(&plan), [("m-a", "end", EndReason::Stopped)]);
    world.ends("m-a", MachineEnd::Released);
    world.load(new.as_str()).held = 1;
    world.load(new.as_str()).idle_since = None;
    assert!(world.rounds(Millis::from_secs(1200)).actions.is_empty());
}

#[test]
fn a_machine_is_only_replaced_where_that_pays() {
    let mut world = World::new();
    world.job(1, 1);
    world.works("m-a", "c.xlarge", Market::Spot, 1);
    world.workload().running = 1;
    world.workload().runnable = 0;
    world.workload().longest *= 10;
    world.workload().rows *= 10;
    world.round();
    world.memory.set_price(&"m-a".parse().unwrap(), usd("0.09 usd"));
    assert_eq!(purchases(&world.clone().round()).len(), 1, "it has ten hours to go");
    world.workload().longest /= 60;
    world.workload().rows /= 60;
    assert!(world.round().actions.is_empty(), "it has ten minutes to go");
}

#[test]
fn on_demand_machines_alone_where_the_owner_wants_no_spot() {
    let mut world = World::new();
    world.settings.markets.spot = false;
    world.job(1, 3);
    let plan = world.round();
    assert_eq!(
        (purchases(&plan)[0].market, purchases(&plan)[0].machines.len()),
        (Market::OnDemand, 3)
    );
}

#[test]
fn a_refusal_pauses_all_purchases() {
    let mut world = World::new();
    world.job(1, 1);
    let purchase = purchases(&world.round())[0].clone();
    world.answer(&purchase, &Err(CloudError::Refused("no such image".into())));
    let mut now = world.clone();
    now.now = UnixMillis(world.now.0 + 1000);
    let plan = now.plan();
    assert!(matches!(plan.notes[..], [Note::Paused { .. }]), "{:?}", plan.notes);
    assert_eq!(purchases(&world.rounds(Millis::from_secs(60))).len(), 1);
}
