//! Limits and budgets: nothing is bought past them, and machines end in time.

use super::*;
use crate::{
    cloud::{Bought, Filled},
    limits::Limit,
    planner::Note,
};

fn bought(plan: &Plan) -> usize {
    purchases(plan).iter().map(|purchase| purchase.machines.len()).sum()
}

#[test]
fn each_limit_holds() {
    let limits = [
        (Limits { machines: 3, ..World::new().settings.limits }, Limit::Machines, 3),
        (Limits { vcpus: Some(17), ..World::new().settings.limits }, Limit::Vcpus, 4),
        (
            Limits { hourly: Some(usd("0.19 usd")), ..World::new().settings.limits },
            Limit::Hourly,
            6,
        ),
    ];
    for (limits, limit, machines) in limits {
        let mut world = World::new();
        world.settings.limits = limits;
        world.job(1, 9);
        let plan = world.round();
        assert_eq!(bought(&plan), machines, "{limit:?}");
        let said = plan
            .notes
            .iter()
            .any(|note| matches!(note, Note::LimitReached { limit: other, .. } if *other == limit));
        assert!(said, "{:?}", plan.notes);
    }
}

#[test]
fn orders_without_an_answer_count_until_their_machines_would_be_seen() {
    let mut world = World::new();
    world.settings.limits.machines = 3;
    world.job(1, 9);
    let purchase = purchases(&world.round())[0].clone();
    world.answer(&purchase, &Err(CloudError::Away("timed out".into())));
    let plan = world.rounds(Millis(world.settings.times.visible.0 - 2 * ROUND.0));
    assert!(plan.actions.is_empty());
    assert_eq!(plan.outlook.ordered, 3);
    // Two of them were bought after all.
    for name in &purchase.machines[..2] {
        world.launch(name, purchase.pools[0].clone(), Market::Spot);
    }
    assert!(world.round().actions.is_empty());
    let plan = world.rounds(world.settings.times.visible);
    assert_eq!(bought(&plan), 1);
}

#[test]
fn of_an_order_with_half_an_answer_the_rest_may_have_been_bought_too() {
    let mut world = World::new();
    world.settings.limits.machines = 3;
    world.job(1, 9);
    let purchase = purchases(&world.round())[0].clone();
    let bought = Bought {
        name: purchase.machines[0].clone(),
        instance: "i-first".into(),
        pool: purchase.pools[0].clone(),
    };
    let failure = Some(CloudError::Away("timed out".into()));
    world.answer(&purchase, &Ok(Filled { bought: vec![bought], failure }));
    world.launch(&purchase.machines[0], purchase.pools[0].clone(), Market::Spot);
    let plan = world.rounds(Millis(world.settings.times.visible.0 - 2 * ROUND.0));
    assert!(plan.actions.is_empty());
    assert_eq!(plan.outlook.ordered, 2);
    let plan = world.rounds(world.settings.times.visible);
    assert_eq!(self::bought(&plan), 2, "they never came");
}

#[test]
fn money_that_machines_need_for_their_end_buys_no_others() {
    let mut world = World::new();
    world.settings.markets.replace_percent = 0;
    world.job(1, 4);
    world.workload().running = 4;
    world.workload().runnable = 0;
    for name in ["m-a", "m-b", "m-c", "m-d"] {
        world.works(name, "c.xlarge", Market::Spot, 1);
    }
    world.settings.limits.total = Some(usd("1 usd"));
    let rest = usd("0.12 usd").for_time(world.settings.times.stop());
    world.demand.spent = MicroUsd(1_000_000 - rest.0 + 1000);
    world.demand.jobs[0].spent = world.demand.spent;
    let plan = world.round();
    assert!(ends(&plan).iter().all(|end| end.2 == EndReason::Money { limit: Limit::Total }));
    assert_eq!((ends(&plan).len(), plan.actions.len()), (4, 4), "{:?}", plan.actions);
}

#[test]
fn a_job_does_not_pay_for_machines_of_one_that_has_ended() {
    let mut world = World::new();
    world.settings.markets.replace_percent = 0;
    world.job(1, 3);
    world.workload().running = 3;
    world.workload().runnable = 0;
    for name in ["m-a", "m-b", "m-c"] {
        world.works(name, "c.xlarge", Market::Spot, 1);
    }
    assert!(world.round().actions.is_empty());
    // The first job has ended, and its machines go. The second has little money: enough for its own one.
    world.demand.jobs.clear();
    world.job(2, 1).budget = Some(usd("0.05 usd"));
    world.workload().running = 1;
    world.workload().runnable = 0;
    let life = world.settings.times.settle;
    let plans: Vec<Plan> = (0..life.0 / ROUND.0 + 2).map(|_| world.round()).collect();
    let ended: Vec<_> = plans.iter().flat_map(ends).collect();
    assert!(ended.len() >= 2, "{ended:?}");
    assert!(
        ended.iter().all(|end| !matches!(end.2, EndReason::Money { .. })),
        "there is money for its machine: {ended:?}"
    );
}

#[test]
fn a_small_budget_buys_few_machines() {
    let mut world = World::new();
    world.job(1, 64).budget = Some(usd("0.10 usd"));
    let plan = world.round();
    // Each costs 3 cents an hour and is there for 27 minutes at least: boot, use, and end.
    let life = world.settings.times.min_life();
    let each = usd("0.03 usd").for_time(life);
    assert_eq!(bought(&plan), usize::try_from(100_000 / each.0).unwrap());
    assert!(matches!(plan.notes[0], Note::LimitReached { limit: Limit::Job, .. }));
}

#[test]
fn the_limit_of_each_job_and_of_all_holds_like_a_budget() {
    for (job, total, limit) in
        [(Some("0.02 usd"), None, Limit::Job), (None, Some("0.02 usd"), Limit::Total)]
    {
        let mut world = World::new();
        world.settings.limits.job = job.map(usd);
        world.settings.limits.total = total.map(usd);
        world.job(1, 64).budget = Some(usd("10 usd"));
        let plan = world.round();
        assert_eq!(bought(&plan), 1);
        assert!(matches!(plan.notes[0], Note::LimitReached { limit: other, .. } if other == limit));
    }
}

#[test]
fn machines_are_drained_before_the_money_ends() {
    for of_job in [true, false] {
        let mut world = World::new();
        world.settings.markets.replace_percent = 0;
        world.job(1, 2);
        world.workload().running = 2;
        world.workload().runnable = 0;
        world.works("m-a", "c.xlarge", Market::Spot, 1);
        world.works("m-b", "c.xlarge", Market::Spot, 1);
        let limit = if of_job {
            world.demand.jobs[0].budget = Some(usd("1 usd"));
            Limit::Job
        } else {
            world.settings.limits.total = Some(usd("1 usd"));
            Limit::Total
        };
        let stop = world.settings.times.stop();
        let rest = usd("0.06 usd").for_time(stop);
        let spend = |world: &mut World, spent: MicroUsd| {
            world.demand.spent = spent;
            world.demand.jobs[0].spent = spent;
        };
        // The machines are new, so what they have cost so far may not be in it.
        spend(&mut world, MicroUsd(1_000_000 - rest.0 - 5000));
        assert!(world.round().actions.is_empty());
        spend(&mut world, MicroUsd(1_000_000 - rest.0 + 1000));
        let plan = world.round();
        let ended = ends(&plan);
        assert_eq!(ended.len(), 2, "{of_job}: {ended:?}");
        assert!(ended.iter().all(|end| end.1 == "drain" && end.2 == EndReason::Money { limit }));
        assert!(world.round().actions.is_empty(), "nothing is bought in their place");
    }
}

#[test]
fn a_lowered_limit_takes_the_dearest() {
    let mut world = World::new();
    world.sell("e.xlarge", "eu-1a", 4, Some("0.06 usd"), "0.10 usd");
    world.settings.markets.replace_percent = 0;
    world.settings.limits.machines = 2;
    world.job(1, 3);
    world.workload().running = 3;
    world.workload().runnable = 0;
    for (name, kind) in [("m-a", "e.xlarge"), ("m-b", "c.xlarge"), ("m-c", "c.xlarge")] {
        world.works(name, kind, Market::Spot, 1);
    }
    let plan = world.round();
    assert_eq!(ends(&plan), [("m-a", "drain", EndReason::Over { limit: Limit::Machines })]);
    assert!(world.round().actions.is_empty());
}

#[test]
fn nothing_is_bought_beside_a_machine_of_unknown_price() {
    let mut world = World::new();
    world.job(1, 3);
    let name: MachineName = "m-a".parse().unwrap();
    world.launch(&name, pool("c.xlarge", "eu-1a"), Market::Spot);
    assert_eq!(world.round().notes, [Note::PriceUnknown { machine: name.clone() }]);
    world.memory.set_price(&name, usd("0.03 usd"));
    assert_eq!(bought(&world.round()), 2);
}
