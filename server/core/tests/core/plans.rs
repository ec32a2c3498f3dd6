//! Plans: asked for once there is a fleet, followed when they come, and done without when they don't.

use crate::support::{
    Bench, HOST, JOB, OTHER, data_of_four, hop, inventory, request, trained_after,
};
use sojourn_core::{Answer, Command, Effect, Event, ReplyTo, UnitKey};
use sojourn_protocol::{
    api::{HeartbeatRequest, Held, HeldState, WorkRequest},
    ids::{JobId, LeaseId},
    inventory::Inventory,
    report::{Outcome, Report},
    time::Millis,
};
use sojourn_workgen::{
    PolicyName,
    plan::{Iterations, PACE_ONE, Planner as _, Problem, Rollout, Schedule, Step},
};

const TO: ReplyTo = ReplyTo(1);

/// The plan that was asked for.
fn asked(effects: &[Effect]) -> Option<(u64, Problem, u64)> {
    asked_for(JOB, effects)
}

fn asked_for(of: JobId, effects: &[Effect]) -> Option<(u64, Problem, u64)> {
    effects.iter().find_map(|effect| match effect {
        Effect::Plan { job, version, problem, seed, .. } if *job == of => {
            Some((*version, problem.as_ref().clone(), *seed))
        }
        _ => None,
    })
}

/// An ask that waits.
fn waiting() -> WorkRequest {
    WorkRequest { wait: Millis(5_000), ..request(1, Vec::new()) }
}

fn ready(version: u64, schedule: Schedule) -> Command {
    Command::PlanReady { job: JOB, version, schedule: Some(Box::new(schedule)) }
}

/// Two hosts wait for a job's first plan.
fn with_plan(bench: &mut Bench) -> (u64, Schedule) {
    let mut all = bench.apply(Command::Ask { to: TO, host: HOST, request: waiting() });
    all.extend(bench.apply(Command::Ask { to: TO, host: OTHER, request: waiting() }));
    let begun = all.iter().any(|effect| matches!(effect, Effect::Reply { .. }));
    assert!(!begun, "nothing is handed out before the first plan: {all:?}");
    // The hosts had shown themselves before the job came.
    bench.now += 1;
    let (version, problem, seed) = asked(&bench.plans).expect("a plan");
    assert_eq!((problem.trials.len(), problem.machines.len()), (4, 2));
    let schedule = Rollout.plan(&problem, seed, &mut Iterations::new(10)).unwrap();
    schedule.check(&problem).unwrap();
    (version, schedule)
}

fn bench() -> Bench {
    Bench::with_policy(PolicyName::Rollout, 1, 4, 2, "")
}

#[test]
fn a_plan_is_followed_in_its_order() {
    let mut bench = bench();
    let (version, schedule) = with_plan(&mut bench);
    let first = |machine: u32| *schedule.steps.iter().find(|step| step.machine == machine).unwrap();
    let effects = bench.apply(ready(version, schedule.clone()));
    let granted = effects.iter().filter_map(|effect| {
        let Effect::Persist(record) = effect else { return None };
        let Event::LeaseGranted { host, unit, why, .. } = &record.event else { return None };
        let UnitKey::Train { trial, shard, .. } = unit else { return None };
        Some((host.0, trial.0, shard.0, why.clone()))
    });
    let granted: Vec<(u64, u32, u32, String)> = granted.collect();
    assert_eq!(granted.len(), 2, "{effects:?}");
    for (place, (host, trial, shard, why)) in (0u32..).zip(granted) {
        let planned = first(place);
        assert_eq!((host, trial, shard), (u64::from(place) + 1, planned.trial, planned.shard));
        assert!(why.starts_with("rollout: step "), "{why}");
    }
}

#[test]
fn who_waits_for_a_plan_that_never_comes_is_served_without_one() {
    let mut bench = bench();
    with_plan(&mut bench);
    bench.now += 1_100;
    let effects = bench.apply(Command::Tick);
    let granted = effects.iter().filter(|effect| matches!(effect, Effect::Reply { .. })).count();
    assert_eq!(granted, 2, "{effects:?}");
}

#[test]
fn an_older_plan_and_one_of_nothing_change_nothing() {
    let mut bench = bench();
    let (version, schedule) = with_plan(&mut bench);
    assert!(bench.apply(ready(version + 1, schedule.clone())).is_empty());
    assert!(bench.apply(ready(version - 1, schedule)).is_empty());
    let none = Command::PlanReady { job: JOB, version, schedule: None };
    let effects = bench.apply(none);
    let granted = effects.iter().filter(|effect| matches!(effect, Effect::Reply { .. })).count();
    assert_eq!(granted, 2, "the policy decides: {effects:?}");
}

#[test]
fn another_plan_is_requested_when_a_host_has_left() {
    let mut bench = bench();
    let (version, schedule) = with_plan(&mut bench);
    bench.apply(ready(version, schedule));
    bench.now += 2_000;
    let effects = bench.apply(Command::RevokeHost { to: TO, host: OTHER });
    let (next, problem, _) = asked(&effects).expect("another plan");
    assert!(next > version);
    assert_eq!(problem.machines.len(), 1);
    let lease = bench.core.state().hosts[&HOST].live.first().copied().unwrap();
    let held = bench.core.state().leases[&lease].clone();
    let busy = problem.trials.iter().filter(|trial| trial.open.len() == 3).count();
    assert_eq!(busy, 1, "the hop of {held:?} is not planned again");
}

#[test]
fn a_longer_plan_is_followed_when_a_result_is_of_a_part_of_its_hops() {
    let mut bench = Bench::with_policy(PolicyName::Rollout, 4, 4, 2, "");
    let (version, _) = with_plan(&mut bench);
    // Each host trains two trials, one after the other.
    let steps = (0..32).map(|n: u32| {
        let (trial, epoch, shard) = (n / 8, n % 8 / 4, n % 4);
        let start = u64::from(trial / 2 * 8 + n % 8) * 1_000_000;
        Step { trial, epoch, shard, machine: trial % 2, start, end: start + 1_000_000 }
    });
    let schedule = Schedule::new(steps.collect());
    bench.apply(ready(version, schedule.clone()));
    bench.now += 2_000;
    bench.apply(Command::Tick);
    let (version, ..) = asked(&bench.plans[bench.plans.len() - 1..]).unwrap();
    bench.apply(ready(version, schedule));
    let lease = bench.core.state().hosts[&HOST].live.first().copied().unwrap();
    let lease = bench.resent(HOST, lease);
    assert!(!hop(&lease).then.is_empty(), "of several hops");
    let before = bench.plans.len();
    let outcome = Outcome::Trained(trained_after(&lease, 1));
    bench.report(HOST, Report { lease: lease.id, outcome }).unwrap();
    bench.assimilate();
    bench.now += 2_000;
    bench.apply(Command::Tick);
    let rest = (0..4).map(|shard: u32| {
        let start = u64::from(shard) * 60_000_000;
        Step { trial: 0, epoch: 0, shard, machine: 0, start, end: start + 60_000_000 }
    });
    let rest = Schedule::new(rest.collect());
    // The first of these plans was asked for before the result was taken in.
    let mut answered = before;
    while let Some((version, ..)) = asked(&bench.plans[answered..]) {
        answered = bench.plans.len();
        bench.apply(ready(version, rest.clone()));
    }
    let ask = Command::Ask { to: TO, host: HOST, request: request(1, Vec::new()) };
    let granted = bench.events(ask);
    let [(_, _, _, why)] = hops(&granted)[..] else { panic!("{granted:?}") };
    assert!(why.contains(" of the plan's 4,"), "{why}");
}

#[test]
fn what_was_done_before_a_host_first_said_so_is_not_taken_for_what_it_did_since() {
    let mut bench = Bench::with_policy(PolicyName::Rollout, 4, 4, 2, "");
    let (version, schedule) = with_plan(&mut bench);
    bench.apply(ready(version, schedule));
    let lease = bench.core.state().hosts[&HOST].live.first().copied().unwrap();
    // A batch in the first eight seconds, of which nothing is heard; then one in two seconds.
    for (seconds, done) in [(8, 1), (2, 2)] {
        bench.now += seconds * 1000;
        let holding = vec![Held::new(lease, HeldState::Running { done, of: 3 })];
        bench.apply(Command::Heartbeat {
            to: TO,
            host: HOST,
            request: HeartbeatRequest::new(holding, Vec::new()),
        });
    }
    bench.apply(Command::RevokeHost { to: TO, host: OTHER });
    let plan = bench.plans.pop().expect("another plan");
    let (_, problem, _) = asked(&[plan]).unwrap();
    assert_eq!(problem.machines.len(), 1, "of now");
    assert_eq!(problem.machines[0].free_at, 2_000_000, "one more of two seconds");
}

#[test]
fn a_job_is_done_by_its_plans() {
    let mut bench = bench();
    let (version, schedule) = with_plan(&mut bench);
    for effect in bench.apply(ready(version, schedule)) {
        if let Effect::Reply { answer: Ok(answer), .. } = effect
            && let Answer::Work(work) = *answer
        {
            for lease in work.leases {
                let host = bench.core.state().leases[&lease.id].host;
                bench.finish(host, &lease);
            }
        }
    }
    bench.work_to_the_end(&[HOST, OTHER]);
    assert!(bench.core.state().jobs[&JOB].end.is_some());
}

/// The trials and shards of the hops that were granted, with their leases and why.
fn hops(events: &[Event]) -> Vec<(LeaseId, u32, u32, &str)> {
    let granted = events.iter().filter_map(|event| match event {
        Event::LeaseGranted { lease, unit: UnitKey::Train { trial, shard, .. }, why, .. } => {
            Some((*lease, trial.0, shard.0, why.as_str()))
        }
        _ => None,
    });
    granted.collect()
}

#[test]
fn a_device_that_takes_another_shard_exchanges_it_with_the_planned_one() {
    let mut bench = bench();
    let cached = vec![data_of_four().train[1].blob.sha256];
    let holds = Inventory { cached, ..inventory("class") };
    let holder = WorkRequest { inventory: Some(holds), ..waiting() };
    bench.apply(Command::Ask { to: TO, host: HOST, request: holder });
    let effects = bench.apply(Command::Ask { to: ReplyTo(2), host: OTHER, request: waiting() });
    let (version, ..) = asked(&effects).or_else(|| asked(&bench.plans)).expect("a plan");
    let steps = (0..4).zip([0, 1, 1, 1]).map(|(shard, machine)| {
        let start = u64::from(shard) * 60_000_000;
        Step { trial: 0, epoch: 0, shard, machine, start, end: start + 60_000_000 }
    });
    let effects = bench.apply(ready(version, Schedule::new(steps.collect())));
    let lease = effects.iter().find_map(|effect| match effect {
        Effect::Reply { to: TO, answer: Ok(answer), .. } => match answer.as_ref() {
            Answer::Work(work) => work.leases.first().cloned(),
            _ => None,
        },
        _ => None,
    });
    let granted = crate::support::events(effects);
    assert!(matches!(hops(&granted)[..], [(_, 0, 1, _)]), "what it holds: {granted:?}");
    let granted = bench.finish(HOST, &lease.unwrap());
    let [(_, 0, 0, why)] = hops(&granted)[..] else { panic!("{granted:?}") };
    assert!(why.starts_with("rollout: step 2 of the plan's 4"), "{why}");
}

/// How much slower hosts are for a second job, with this in its job file, where the first has planned all at one of
/// them.
fn paces_beside(more: &str) -> Vec<u64> {
    let mut bench = bench();
    let (version, mut schedule) = with_plan(&mut bench);
    let plan = |n: usize| Step {
        machine: 0,
        start: n as u64,
        end: n as u64 + 1_000_000,
        ..schedule.steps[n]
    };
    schedule = Schedule::new((0..schedule.steps.len()).map(plan).collect());
    bench.apply(ready(version, schedule));
    bench.now += 2_000;
    let before = bench.plans.len();
    bench.submit_with(4, 1, true, more).unwrap();
    let plans = &bench.plans[before..];
    assert!(asked(plans).is_some_and(|(next, ..)| next > version), "the first is planned anew");
    let (_, problem, _) = asked_for(JobId(2), plans).expect("a plan of the second");
    problem.trials[0].pace.clone()
}

#[test]
fn a_device_is_slower_for_a_job_by_the_hops_that_others_have_planned_there() {
    assert_eq!(paces_beside(""), [2 * PACE_ONE, PACE_ONE]);
    assert_eq!(paces_beside("[placement]\nshare = 2"), [PACE_ONE * 3 / 2, PACE_ONE]);
    assert_eq!(paces_beside("[placement]\npriority = 1"), [PACE_ONE, PACE_ONE]);
    assert!(paces_beside("[placement]\npriority = -1")[0] > 8 * PACE_ONE, "it comes after");
}

#[test]
fn jobs_that_come_at_once_are_planned_anew_when_each_others_plans_are_known() {
    let mut bench = bench();
    let (version, schedule) = with_plan(&mut bench);
    let second = JobId(2);
    bench.submit_with(4, 1, true, "").unwrap();
    let (of_second, problem, _) = asked_for(second, &bench.plans).expect("a plan of the second");
    assert_eq!(problem.trials[0].pace, [PACE_ONE, PACE_ONE], "nobody has planned anything");
    bench.apply(ready(version, schedule.clone()));
    let schedule = Some(Box::new(schedule));
    bench.apply(Command::PlanReady { job: second, version: of_second, schedule });
    let before = bench.plans.len();
    bench.now += 2_000;
    bench.apply(Command::Tick);
    let (_, problem, _) = asked_for(second, &bench.plans[before..]).expect("another");
    assert!(problem.trials[0].pace.iter().any(|pace| *pace > PACE_ONE), "{problem:?}");
}

#[test]
fn nothing_is_due_of_a_plan_that_nobody_could_follow() {
    let mut bench = bench();
    let (version, schedule) = with_plan(&mut bench);
    bench.apply(ready(version, schedule));
    bench.apply(Command::Pause { to: TO, job: JOB, now: false });
    bench.apply(Command::RevokeHost { to: TO, host: OTHER });
    bench.now += 2_000;
    bench.apply(Command::Tick);
    let next = bench.core.next_deadline().unwrap();
    assert!(next.0 > bench.now, "what is due now is done now");
    let effects = bench.apply(Command::Resume { to: TO, job: JOB });
    assert!(asked(&effects).is_some(), "{effects:?}");
}
