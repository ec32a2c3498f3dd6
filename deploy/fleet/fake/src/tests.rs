//! The made-up cloud: orders, tokens, quotas, ends and the bill.

use super::{
    CapacityConfig, CloudConfig, FakeCloud, Faults, Happens, InterruptionConfig, PoolConfig,
    Prices, Walk, World, WorldConfig,
};
use proptest::prelude::*;
use sojourn_fleet::cloud::{CloudError, InstanceType, MachineState, NewMachine, Order, Pool};
use sojourn_protocol::{
    machines::{MachineEnd, Market},
    money::MicroUsd,
    time::{Millis, UnixMillis},
};
use std::sync::Arc;

pub(super) fn pool(n: u32) -> Pool {
    let zone = format!("eu-west-1{}", char::from_u32(97 + n).unwrap());
    Pool { region: "eu-west-1".into(), zone, instance_type: "c6i.xlarge".into() }
}

pub(super) fn world_config(length: Millis) -> WorldConfig {
    let of = InstanceType {
        name: "c6i.xlarge".into(),
        vcpus: 4,
        memory: 8 << 30,
        gpus: 0,
        gpu_memory: 0,
    };
    let pools = (0..2).map(|n| PoolConfig {
        pool: pool(n),
        on_demand: MicroUsd(200_000),
        prices: Prices::Walk(Walk {
            mean: 0.33,
            reversion: 0.1,
            deviation: 0.2,
            jumps: 0.02,
            jump: 0.3,
            least: 0.1,
            most: 1.0,
        }),
        capacity: CapacityConfig {
            machines: 3,
            shortages: 0.0,
            shortage: Millis::from_secs(3600),
            on_demand: 2,
        },
        interruptions: InterruptionConfig {
            per_hour: 0.1,
            in_shortage: 1.0,
            noticed: 0.5,
            notice: Millis::from_secs(120),
        },
    });
    WorldConfig {
        types: [(of.name.clone(), of)].into(),
        pools: pools.collect(),
        from: UnixMillis(0),
        length,
        step: Millis::from_secs(300),
    }
}

fn cloud(config: CloudConfig) -> FakeCloud {
    FakeCloud::new(Arc::new(World::new(&world_config(Millis::from_secs(86_400)), 1)), config, 1)
}

fn order(names: std::ops::Range<u32>, market: Market, pools: &[u32]) -> Order {
    let machine =
        |n| NewMachine { name: format!("m-{n}").parse().unwrap(), enrolment_token: String::new() };
    Order {
        machines: names.map(machine).collect(),
        market,
        pools: pools.iter().map(|n| pool(*n)).collect(),
        price_limit: MicroUsd(1_000_000),
    }
}

const AT: UnixMillis = UnixMillis(1000);

#[test]
fn an_order_is_filled_as_far_as_there_is_capacity() {
    let mut cloud = cloud(CloudConfig::default());
    let filled = cloud.buy(AT, &order(0..8, Market::Spot, &[1, 0])).unwrap();
    let zones: Vec<u32> = filled.bought.iter().map(|of| u32::from(of.pool != pool(0))).collect();
    assert_eq!(zones, [1, 1, 1, 0, 0, 0], "the first pool first");
    assert!(matches!(filled.failure, Some(CloudError::NoCapacity { pools }) if pools.len() == 2));
    let dear = Order { price_limit: MicroUsd(10), ..order(9..10, Market::OnDemand, &[0]) };
    assert!(cloud.buy(AT, &dear).unwrap().bought.is_empty());
}

#[test]
fn the_same_order_buys_nothing_twice_and_another_is_refused() {
    let mut cloud = cloud(CloudConfig::default());
    let first = cloud.buy(AT, &order(0..2, Market::Spot, &[0])).unwrap();
    assert_eq!(cloud.buy(AT, &order(0..2, Market::Spot, &[0])), Ok(first.clone()));
    for other in [order(1..3, Market::Spot, &[1]), order(0..1, Market::OnDemand, &[0])] {
        assert_eq!(cloud.buy(AT, &other), Err(CloudError::TokenReused));
    }
    assert_eq!(cloud.alive(), 2);
    // It stands for the same machine also when that has ended.
    cloud.end(AT, &[first.bought[0].instance.clone()]).unwrap();
    assert_eq!(cloud.buy(AT, &order(0..2, Market::Spot, &[0])), Ok(first));
    assert_eq!(cloud.alive(), 1);
}

#[test]
fn a_lost_answer_has_bought_all_the_same() {
    let faults = Faults { lost: 1.0, ..Faults::default() };
    let mut cloud = cloud(CloudConfig { faults, ..CloudConfig::default() });
    let answer = cloud.buy(AT, &order(0..2, Market::Spot, &[0]));
    assert!(matches!(answer, Err(CloudError::Away(_))), "{answer:?}");
    assert_eq!(cloud.alive(), 2);
}

#[test]
fn a_quota_holds_for_a_region_and_a_market() {
    let quotas = [(("eu-west-1".to_owned(), Market::Spot), 8)].into();
    let mut cloud = cloud(CloudConfig { quotas, ..CloudConfig::default() });
    let filled = cloud.buy(AT, &order(0..4, Market::Spot, &[0, 1])).unwrap();
    assert_eq!(filled.bought.len(), 2);
    assert!(matches!(filled.failure, Some(CloudError::Quota { market: Market::Spot, .. })));
    assert_eq!(cloud.buy(AT, &order(5..6, Market::OnDemand, &[0])).unwrap().bought.len(), 1);
}

#[test]
fn machines_are_listed_after_a_while_and_start_later() {
    let listed_after = Millis::from_secs(20);
    let mut cloud = cloud(CloudConfig { listed_after, ..CloudConfig::default() });
    cloud.buy(AT, &order(0..2, Market::OnDemand, &[0])).unwrap();
    assert!(cloud.machines(AT).unwrap().is_empty());
    let listed = cloud.machines(AT + listed_after).unwrap();
    assert!(listed.len() == 2 && listed.iter().all(|of| of.state == MachineState::Pending));
    let boot = CloudConfig::default().boot;
    let events = cloud.step(AT + boot.1);
    assert!(events.iter().all(|event| event.happens == Happens::Starts) && events.len() == 2);
    assert!(events.iter().all(|event| event.at >= AT + boot.0));
    let listed = cloud.machines(AT + boot.1).unwrap();
    assert!(listed.iter().all(|of| of.state == MachineState::Running), "{listed:?}");
}

#[test]
fn what_is_told_of_an_interruption_comes_before_it() {
    let mut cloud = cloud(CloudConfig::default());
    let (mut told, mut taken) = (0, 0);
    for hour in 0..20 {
        let at = UnixMillis(hour * 3_600_000);
        let names = 10 * u32::try_from(hour).unwrap();
        cloud.buy(at, &order(names..names + 6, Market::Spot, &[0, 1])).unwrap();
        for event in cloud.step(at + Millis(3_599_999)) {
            match event.happens {
                Happens::Noticed(left) => {
                    told += 1;
                    assert!(left <= Millis::from_secs(120) && left > Millis(0));
                }
                Happens::Ends(end) => {
                    taken += 1;
                    assert_eq!(end, MachineEnd::Interrupted);
                }
                Happens::Starts => {}
            }
        }
    }
    assert!(taken > 5 && told > 0 && told < taken, "{told} of {taken}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The bill is the sum over machines of price at launch times life, and time never goes back in what is told.
    #[test]
    fn the_bill_is_the_sum_over_machines(seed in 0..1000u64, orders in proptest::collection::vec((0..4u32, 0..3u32, 1..7200u64), 1..20)) {
        let world = Arc::new(World::new(&world_config(Millis::from_secs(86_400)), seed));
        let faults = Faults { throttled: 0.1, away: 0.1, lost: 0.2, partial: 0.3 };
        let listed_after = Millis::from_secs(30);
        let mut cloud = FakeCloud::new(world, CloudConfig { faults, listed_after, ..CloudConfig::default() }, seed);
        let (mut now, mut names, mut last) = (UnixMillis(0), 0, UnixMillis(0));
        for (count, what, wait) in orders {
            now = now + Millis::from_secs(wait);
            match what {
                0 => drop(cloud.buy(now, &order(names..names + count, Market::Spot, &[0, 1]))),
                1 => drop(cloud.buy(now, &order(names..names + count, Market::OnDemand, &[0, 1]))),
                _ => {
                    let alive: Vec<String> =
                        cloud.machines(now).unwrap_or_default().into_iter().map(|of| of.instance).take(2).collect();
                    drop(cloud.end(now, &alive));
                }
            }
            names += count;
            for event in cloud.step(now) {
                prop_assert!(last <= event.at && event.at <= now);
                last = event.at;
            }
        }
        let bill = cloud.bill();
        let alive = bill.iter().filter(|of| of.ended_at.is_none()).count();
        prop_assert_eq!(alive, cloud.alive());
        let sum: MicroUsd = bill.iter().map(|of| of.price.for_time(of.ended_at.unwrap_or(now) - of.launched_at)).sum();
        prop_assert_eq!(sum, cloud.cost(now));
        let names: std::collections::BTreeSet<_> = bill.iter().map(|of| of.name.clone()).collect();
        prop_assert_eq!(names.len(), bill.len(), "no name is bought twice");
    }
}
