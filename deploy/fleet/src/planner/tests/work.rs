//! How many machines are bought for the work that there is, of which types, and when they are given back.

use super::*;
use crate::planner::Note;

#[test]
fn nothing_is_bought_before_the_fleet_was_seen_twice() {
    let mut world = World::new();
    world.memory = Memory::default();
    world.job(1, 3);
    let plan = world.round();
    assert!(plan.actions.is_empty());
    assert_eq!(plan.notes, [Note::Settling]);
    let plan = world.round();
    assert_eq!(purchases(&plan)[0].machines.len(), 3);
}

#[test]
fn a_machine_is_bought_for_each_slot_that_is_of_use() {
    let mut world = World::new();
    world.job(1, 5);
    let plan = world.round();
    let bought = purchases(&plan);
    assert_eq!(bought.len(), 1);
    assert_eq!((bought[0].machines.len(), bought[0].market), (5, Market::Spot));
    assert_eq!(bought[0].pools, [pool("c.xlarge", "eu-1a")]);
    assert_eq!(bought[0].price_limit, usd("0.036 usd"));
    let reason = PurchaseReason::Work { job: "job-1".into(), slots: 5 };
    assert_eq!(bought[0].reason, reason);
    assert_eq!(reason.to_string(), "job `job-1` has work for 5 more slots");
    // What was ordered isn't ordered again, whether or not it is seen.
    let purchase = bought[0].clone();
    assert!(world.round().actions.is_empty());
    world.buy(&purchase);
    assert!(world.round().actions.is_empty());
}

#[test]
fn slots_of_others_and_of_machines_on_their_way_are_taken_off() {
    let mut world = World::new();
    world.job(1, 6);
    world.demand.other_slots = 2;
    world.works("m-a", "c.xlarge", Market::Spot, 1);
    world.workload().running = 1;
    world.workload().runnable = 5;
    let plan = world.round();
    assert_eq!(purchases(&plan)[0].machines.len(), 3);
}

#[test]
fn no_more_hosts_work_for_a_job_than_may() {
    let mut world = World::new();
    world.job(1, 6).max_hosts = Some(2);
    world.job(2, 1);
    let plan = world.round();
    let counts: Vec<_> = purchases(&plan).iter().map(|p| (p.job, p.machines.len())).collect();
    assert_eq!(counts, [(JobId(1), 2), (JobId(2), 1)]);
}

#[test]
fn many_slots_in_one_machine_are_only_worth_it_where_all_are_of_use() {
    let mut world = World::new();
    world.settings.types.vcpus_per_slot = Some(4);
    // Eight slots for less than eight times the price of one.
    world.sell("c.8xlarge", "eu-1a", 32, Some("0.20 usd"), "0.80 usd");
    world.job(1, 8);
    let plan = world.round();
    assert_eq!(purchases(&plan)[0].pools[0].instance_type, "c.8xlarge");
    assert_eq!(purchases(&plan)[0].machines.len(), 1);

    world.demand.jobs.clear();
    world.memory = Memory::default();
    world.settle();
    world.job(1, 2);
    let plan = world.round();
    assert_eq!(purchases(&plan)[0].pools[0].instance_type, "c.xlarge");
    assert_eq!(purchases(&plan)[0].machines.len(), 2);
}

#[test]
fn a_type_needs_the_memory() {
    let mut world = World::new();
    world.job(1, 1);
    world.workload().memory = 20 << 30;
    let plan = world.round();
    assert!(plan.actions.is_empty());
    assert!(matches!(&plan.notes[..], [Note::NoType { .. }]), "{:?}", plan.notes);
    world.sell("r.4xlarge", "eu-1a", 16, Some("0.30 usd"), "0.90 usd");
    assert_eq!(purchases(&world.round())[0].pools, [pool("r.4xlarge", "eu-1a")]);
}

#[test]
fn measured_speeds_decide_between_types() {
    let mut world = World::new();
    world.sell("d.xlarge", "eu-1a", 4, Some("0.035 usd"), "0.11 usd");
    world.job(1, 4);
    assert_eq!(purchases(&world.plan_at_next())[0].pools[0].instance_type, "c.xlarge");
    let measured = |instance_type: &str, nanos_per_row| MeasuredSpeed {
        instance_type: instance_type.into(),
        slots: 1,
        nanos_per_row,
        machines: 1,
    };
    world.workload().measured =
        vec![measured("c.xlarge", 1_500_000), measured("d.xlarge", 1_000_000)];
    assert_eq!(purchases(&world.round())[0].pools[0].instance_type, "d.xlarge");
}

#[test]
fn an_unmeasured_type_is_tried_on_two_machines_only() {
    let mut world = World::new();
    world.sell("d.xlarge", "eu-1a", 4, Some("0.01 usd"), "0.11 usd");
    world.job(1, 8);
    world.workload().measured = vec![MeasuredSpeed {
        instance_type: "c.xlarge".into(),
        slots: 1,
        nanos_per_row: 1_000_000,
        machines: 1,
    }];
    let plan = world.round();
    let bought: Vec<_> = purchases(&plan)
        .iter()
        .map(|p| (p.pools[0].instance_type.as_str(), p.machines.len()))
        .collect();
    assert_eq!(bought, [("d.xlarge", 2), ("c.xlarge", 6)]);
}

#[test]
fn ten_types_and_all_their_zones_are_in_one_order() {
    let mut world = World::new();
    for index in 0..14 {
        for zone in ["eu-1a", "eu-1b"] {
            let (spot, list) = (format!("0.{:03} usd", 40 + 5 * index), "0.30 usd");
            world.sell(&format!("t{index:02}.xlarge"), zone, 4, Some(&spot), list);
        }
    }
    world.sell("c.xlarge", "us-1a", 4, Some("0.031 usd"), "0.10 usd");
    world.job(1, 20);
    let plan = world.round();
    let pools = &purchases(&plan)[0].pools;
    assert_eq!(pools[0], pool("c.xlarge", "eu-1a"));
    assert!(pools.iter().all(|pool| pool.region == "eu-1"), "one region: {pools:?}");
    let types: std::collections::BTreeSet<_> =
        pools.iter().map(|pool| pool.instance_type.as_str()).collect();
    assert_eq!((types.len(), pools.len()), (10, 19));
}

#[test]
fn idle_machines_are_drained_first_and_then_the_dearest() {
    let mut world = World::new();
    world.sell("e.xlarge", "eu-1a", 4, Some("0.06 usd"), "0.10 usd");
    world.settings.markets.replace_percent = 0;
    world.job(1, 4);
    world.workload().running = 3;
    world.workload().runnable = 0;
    world.workload().parallel = 4;
    for (name, kind, held) in [
        ("m-a", "c.xlarge", 1),
        ("m-b", "e.xlarge", 1),
        ("m-c", "c.xlarge", 0),
        ("m-d", "c.xlarge", 1),
    ] {
        world.works(name, kind, Market::Spot, held);
    }
    assert!(world.round().actions.is_empty(), "the fourth trial may come soon");
    // One trial ends, and another.
    world.workload().parallel = 2;
    world.workload().running = 2;
    world.load("m-a").held = 0;
    world.load("m-a").idle_since = Some(world.now);
    world.round();
    let plan = world.round();
    let ended: Vec<_> = ends(&plan);
    assert_eq!(ended, [("m-a", "drain", EndReason::Idle), ("m-c", "drain", EndReason::Idle)]);
    // And one more, whose machine is of use to nobody: the dear one goes, after a while.
    world.workload().parallel = 1;
    world.workload().running = 1;
    let plan = world.rounds(Millis::from_secs(60));
    assert!(plan.actions.is_empty());
    let plan = world.rounds(Millis::from_secs(90));
    assert_eq!(ends(&plan), [("m-b", "drain", EndReason::Surplus)]);
}

#[test]
fn an_idle_machine_waits_for_work_that_comes_soon_but_not_for_ever() {
    let mut world = World::new();
    world.job(1, 2);
    world.workload().runnable = 0;
    world.workload().running = 1;
    world.workload().soon = 1;
    world.works("m-a", "c.xlarge", Market::Spot, 1);
    world.works("m-b", "c.xlarge", Market::Spot, 0);
    let idle = world.settings.times.idle;
    let plan = world.rounds(Millis(idle.0 - ROUND.0));
    assert!(plan.actions.is_empty());
    let plan = world.rounds(Millis(ROUND.0 * 2));
    assert_eq!(ends(&plan), [("m-b", "drain", EndReason::IdleTooLong { since: idle })]);
    // No new one is bought for what may come.
    assert!(world.round().actions.is_empty());
}

#[test]
fn all_machines_go_when_the_work_has_ended() {
    let mut world = World::new();
    world.works("m-a", "c.xlarge", Market::Spot, 0);
    let name: MachineName = "m-b".parse().unwrap();
    world.launch(&name, pool("c.xlarge", "eu-1a"), Market::Spot);
    world.round();
    let plan = world.round();
    assert_eq!(ends(&plan), [("m-a", "drain", EndReason::Idle)]);
    let plan = world.rounds(world.settings.times.settle);
    // It has never enrolled, so it has nothing to give back.
    assert_eq!(ends(&plan), [("m-b", "end", EndReason::Surplus)]);
}

impl World {
    /// The next plan, of which nothing is kept.
    fn plan_at_next(&self) -> Plan {
        self.clone().round()
    }
}

#[test]
fn what_was_not_done_is_planned_again() {
    let mut world = World::new();
    world.works("m-a", "c.xlarge", Market::Spot, 0);
    world.round();
    let plan = world.round();
    assert_eq!(ends(&plan), [("m-a", "drain", EndReason::Idle)]);
    world.memory.not_done(&plan.actions[0]);
    assert_eq!(ends(&world.round()), [("m-a", "drain", EndReason::Idle)]);
    world.job(1, 3);
    let plan = world.round();
    world.memory.not_done(&plan.actions[0]);
    assert_eq!(purchases(&world.round())[0].machines.len(), 3);
}
