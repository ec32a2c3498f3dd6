//! Deadlines: on time with few machines where there is time, with all and on demand where there isn't.

use super::*;
use crate::planner::Note;

#[test]
fn with_time_to_spare_fewer_machines_are_bought() {
    let mut world = World::new();
    world.job(1, 64);
    assert_eq!(purchases(&world.clone().round())[0].machines.len(), 64);
    let in_a_day = world.now + Millis::from_secs(24 * 3600);
    world.demand.jobs[0].deadline = Some(in_a_day);
    let few = purchases(&world.clone().round())[0].machines.len();
    assert!((3..=6).contains(&few), "{few} machines for 64 hours of work in a day");
    world.demand.jobs[0].deadline = Some(world.now + Millis::from_secs(2 * 3600));
    let many = purchases(&world.clone().round()).iter().map(|p| p.machines.len()).sum::<usize>();
    assert_eq!(many, 64);
}

#[test]
fn a_job_that_would_be_late_doesnt_wait_for_spot() {
    let mut world = World::new();
    world.sell("c.xlarge", "eu-1a", 4, None, "0.10 usd");
    world.job(1, 4);
    let note = Note::NoOffer { job: "job-1".into(), slots: 4 };
    assert_eq!(world.clone().round().notes, [note]);
    world.demand.jobs[0].deadline = Some(world.now + Millis::from_secs(4000));
    let plan = world.round();
    assert_eq!(purchases(&plan)[0].market, Market::OnDemand);
    assert!(matches!(purchases(&plan)[0].reason, PurchaseReason::Deadline { slots: 4, .. }));
}

#[test]
fn a_deadline_that_cant_be_held_is_said() {
    let mut world = World::new();
    world.job(1, 1).deadline = Some(UnixMillis(0));
    let plan = world.round();
    assert_eq!(purchases(&plan).len(), 1);
    assert!(matches!(&plan.notes[..], [Note::Late { by, .. }] if by.0 >= 3_600_000));
}
