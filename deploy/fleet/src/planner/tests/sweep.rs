//! Machines that nobody knows, that failed, or whose time is over.

use super::*;

fn long(world: &World) -> Millis {
    Millis(world.settings.times.enrol.0 + 2 * ROUND.0)
}

/// A machine works at the only trial.
fn one_at_work() -> World {
    let mut world = World::new();
    world.job(1, 1);
    world.works("m-a", "c.xlarge", Market::Spot, 1);
    world.workload().running = 1;
    world.workload().runnable = 0;
    world.round();
    world
}

#[test]
fn a_machine_without_a_name_is_ended() {
    let mut world = World::new();
    world.launch(&"m-a".parse().unwrap(), pool("c.xlarge", "eu-1a"), Market::Spot);
    world.machines[0].name = None;
    assert!(world.round().actions.is_empty(), "its tag may be seen later");
    let plan = world.rounds(long(&world));
    assert_eq!(ends(&plan), [("", "end", EndReason::Nameless)]);
    let Action::End { machine, .. } = &plan.actions[0] else { panic!() };
    assert_eq!(machine.instance, "i-m-a");
}

#[test]
fn of_two_machines_with_a_name_the_first_stays() {
    let mut world = one_at_work();
    let mut second = world.machines[0].clone();
    second.instance = "i-second".into();
    second.launched_at = world.now;
    world.machines.insert(0, second);
    let plan = world.rounds(long(&world));
    assert_eq!(ends(&plan), [("m-a", "end", EndReason::NameTaken)]);
    let Action::End { machine, .. } = &plan.actions[0] else { panic!() };
    assert_eq!(machine.instance, "i-second");
}

#[test]
fn a_machine_that_never_enrols_is_ended_and_purchases_pause() {
    let mut world = World::new();
    world.job(1, 1);
    let purchase = purchases(&world.round())[0].clone();
    world.buy(&purchase);
    let plan = world.rounds(long(&world));
    let within = world.settings.times.enrol;
    let name = purchase.machines[0].as_str();
    assert_eq!(ends(&plan), [(name, "end", EndReason::NeverEnrolled { within })]);
    world.ends(name, MachineEnd::Failed);
    let plan = world.round();
    assert!(matches!(plan.notes[..], [crate::planner::Note::Paused { .. }]), "{:?}", plan.notes);
}

/// Are purchases paused by this plan?
fn is_paused(plan: &Plan) -> bool {
    matches!(plan.notes[..], [crate::planner::Note::Paused { .. }]) && plan.actions.is_empty()
}

#[test]
fn purchases_pause_after_a_machine_that_ended_before_it_enrolled() {
    for (end, seen) in
        [(MachineEnd::Itself, true), (MachineEnd::Failed, true), (MachineEnd::Itself, false)]
    {
        let mut world = World::new();
        world.job(1, 1);
        let purchase = purchases(&world.round())[0].clone();
        world.buy(&purchase);
        if seen {
            assert!(world.rounds(ROUND).actions.is_empty());
        }
        world.ends(purchase.machines[0].as_str(), end);
        let plan = world.round();
        assert!(is_paused(&plan), "{end:?}, seen {seen}: {:?} {:?}", plan.actions, plan.notes);
        assert_eq!(plan.memory.interruptions(), 0);
        let times = &world.settings.times;
        let mut records = plan.memory.pools.values();
        assert!(!records.any(|record| record.is_avoided(world.now, times)), "it wasn't taken back");
    }
    // One that was taken back says nothing of the image.
    let mut world = World::new();
    world.job(1, 1);
    let purchase = purchases(&world.round())[0].clone();
    world.buy(&purchase);
    world.round();
    world.ends(purchase.machines[0].as_str(), MachineEnd::Interrupted);
    assert_eq!(purchases(&world.round()).len(), 1);
}

#[test]
fn a_machine_that_enrols_ends_the_pauses_of_machines_that_failed_before_it() {
    let mut world = World::new();
    world.job(1, 1);
    let mut pauses = Vec::new();
    for _ in 0..8 {
        let purchase = purchases(&world.rounds(Millis::from_secs(4000)))[0].clone();
        world.buy(&purchase);
        world.round();
        world.ends(purchase.machines[0].as_str(), MachineEnd::Itself);
        world.round();
        pauses.push(world.memory.pause(world.now).unwrap());
        let purchase = purchases(&world.rounds(Millis::from_secs(4000)))[0].clone();
        world.buy(&purchase);
        world.enrol(&purchase.machines[0], 1);
        world.round();
        world.ends(purchase.machines[0].as_str(), MachineEnd::Interrupted);
    }
    let first = Millis::from_secs(120);
    assert!(pauses.iter().all(|pause| *pause <= first), "{pauses:?}");
}

#[test]
fn a_machine_that_was_launched_before_a_failure_doesnt_end_its_pause() {
    let mut world = World::new();
    world.job(1, 2);
    let purchase = purchases(&world.round())[0].clone();
    world.buy(&purchase);
    let [failing, working] = &purchase.machines[..] else { panic!("{purchase:?}") };
    world.round();
    world.ends(failing.as_str(), MachineEnd::Itself);
    world.enrol(working, 1);
    world.workload().running = 1;
    world.workload().runnable = 1;
    assert!(is_paused(&world.round()));
}

#[test]
fn a_server_that_doesnt_answer_makes_no_machine_a_failed_one() {
    let mut world = World::new();
    world.job(1, 2);
    world.works("m-a", "c.xlarge", Market::Spot, 1);
    world.workload().running = 1;
    world.workload().runnable = 1;
    let purchase = purchases(&world.round())[0].clone();
    world.buy(&purchase);
    world.round();
    world.is_old = true;
    let silent = world.settings.times.silent;
    assert!(world.rounds(Millis(6 * silent.0)).actions.is_empty());
    // It has just started, and has heard of nobody.
    world.is_old = false;
    world.enrol(&purchase.machines[0], 0);
    for load in &mut world.demand.machines {
        load.seen_at = None;
    }
    assert!(world.round().actions.is_empty());
    assert_eq!(world.memory.pause(world.now), None);
}

#[test]
fn clocks_that_differ_make_no_machine_a_silent_one() {
    let mut world = one_at_work();
    let behind = Millis(2 * world.settings.times.silent.0);
    world.demand.at = UnixMillis(world.now.0 - behind.0);
    world.load("m-a").seen_at = Some(world.demand.at);
    assert!(world.plan().actions.is_empty());
}

#[test]
fn what_the_server_forgets_or_doesnt_hear_of_is_ended() {
    let mut world = World::new();
    world.job(1, 2);
    world.workload().running = 2;
    world.workload().runnable = 0;
    world.works("m-a", "c.xlarge", Market::Spot, 1);
    world.works("m-b", "c.xlarge", Market::Spot, 1);
    assert!(world.round().actions.is_empty());
    // A server that has just started has heard of nobody yet.
    for load in &mut world.demand.machines {
        load.seen_at = None;
    }
    assert!(world.round().actions.is_empty());
    world.load("m-a").seen_at = Some(world.now);
    world.load("m-b").seen_at = Some(world.now);
    world.demand.machines.remove(0);
    world.workload().running = 1;
    let plan = world.rounds(long(&world));
    assert_eq!(ends(&plan), [("m-a", "end", EndReason::HostEnded)]);
    world.ends("m-a", MachineEnd::Released);
    let silent = world.settings.times.silent;
    world.now = world.now + silent;
    world.demand.at = world.now;
    world.demand.machines[0].seen_at = Some(UnixMillis(world.now.0 - silent.0));
    assert_eq!(ends(&world.plan()), [("m-b", "end", EndReason::Silent { since: silent })]);
}

#[test]
fn a_drain_ends_with_the_machines_word_or_its_time() {
    for stops in [true, false] {
        let mut world = World::new();
        world.works("m-a", "c.xlarge", Market::Spot, 0);
        let plan = world.rounds(Millis::from_secs(600));
        assert_eq!(ends(&plan), [("m-a", "drain", EndReason::Idle)]);
        assert!(world.round().actions.is_empty());
        let reason = if stops {
            world.load("m-a").stopped = true;
            EndReason::Stopped
        } else {
            EndReason::DrainOver
        };
        let plan = world.rounds(world.settings.times.drain);
        assert_eq!(ends(&plan), [("m-a", "end", reason)]);
        // The cloud is asked once more where that came to nothing.
        let plan = world.rounds(Millis::from_secs(120));
        assert_eq!(ends(&plan), [("m-a", "end", EndReason::StillThere)]);
    }
}
