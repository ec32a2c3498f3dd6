//! Tests of what is told, and what is not.

use super::*;
use serde_json::from_value;
use sojourn_protocol::ids::{Epoch, TrialId};

/// The state that a test changes, with a clock.
struct World {
    now: u64,
    jobs: Vec<JobView>,
    hosts: Vec<HostView>,
    costs: Vec<JobCost>,
    is_settled: bool,
    known: Known,
}

impl World {
    /// With a running job 1, whose metric is to be low, and a host 7 that is live.
    fn new() -> Self {
        let mut world = Self {
            now: 1_000_000,
            jobs: vec![job(1)],
            hosts: vec![host(7)],
            costs: Vec::new(),
            is_settled: true,
            known: Known::default(),
        };
        world.known = world.seen(Known::first);
        world
    }

    fn seen<T>(&self, look: impl FnOnce(Seen<'_>) -> T) -> T {
        let costs = CostsView {
            at: UnixMillis(self.now),
            cost: MicroUsd(0),
            on_demand_cost: MicroUsd(0),
            unused: MicroUsd(0),
            deleted: MicroUsd(0),
            jobs: self.costs.clone(),
            machines: Vec::new(),
        };
        let goals = self.jobs.iter().map(|job| (job.job, Goal::Min)).collect();
        let Self { jobs, hosts, is_settled, .. } = self;
        look(Seen { jobs, hosts, costs: &costs, goals: &goals, is_settled: *is_settled })
    }

    /// The notifications of a look a second later. The known state goes through the file.
    fn look(&mut self) -> Vec<Notification> {
        self.now += 1_000;
        let mut known: Known = from_value(serde_json::to_value(&self.known).unwrap()).unwrap();
        let thresholds =
            Thresholds { stalled_after: Millis::from_secs(60), ..Thresholds::default() };
        let found = self.seen(|seen| known.look(seen, thresholds));
        self.known = known;
        found
    }

    fn kinds(&mut self) -> Vec<Kind> {
        self.look().into_iter().map(|found| found.kind).collect()
    }

    /// Progress, so that nothing counts as stalled.
    fn trains(&mut self) {
        self.jobs[0].hops += 1;
    }

    fn best(&mut self, trial: u32, value: f64) {
        let checkpoint = sojourn_protocol::digest::BlobRef { sha256: Digest::of(b""), bytes: 1 };
        let (trial, name) = (TrialId(trial), String::new());
        let (epoch, unverified) = (Epoch(2), 0);
        self.jobs[0].best = Some(BestView { trial, name, epoch, value, checkpoint, unverified });
    }
}

fn job(id: u64) -> JobView {
    let mut job: JobView = serde_json::from_str(include_str!("../../page/tests/job.json")).unwrap();
    (job.job, job.state, job.ended_at, job.best) = (JobId(id), JobState::Running, None, None);
    job
}

fn host(id: u64) -> HostView {
    from_value(json!({
        "host": id, "name": "lab", "state": "live", "seen_at": 900_000, "slots": 1, "devices": [], "cached": 0,
        "leases": [{"lease": 3, "job": 1, "trial": 2, "unit": "train", "running": true, "age": 5}],
        "used": 0, "expired": 0, "failures": 0, "last_error": null, "train_micros": 0,
    }))
    .unwrap()
}

fn data(found: &Notification) -> Value {
    let body: Value = serde_json::from_str(&found.body).unwrap();
    assert_eq!(body["type"], found.kind.name());
    body["data"].clone()
}

#[test]
fn what_was_there_at_the_first_look_is_told_nobody() {
    let mut world = World::new();
    (world.jobs[0].state, world.hosts[0].state) = (JobState::Finished, HostState::Away);
    world.best(1, 0.5);
    let known = world.seen(Known::first);
    world.known = known;
    assert_eq!(world.look(), []);
}

#[test]
fn a_job_is_done_once_and_again_after_it_has_gone_on() {
    let mut world = World::new();
    assert_eq!(world.look(), []);
    let end = |world: &mut World, at| {
        (world.jobs[0].state, world.jobs[0].ended_at) = (JobState::Finished, Some(UnixMillis(at)));
        world.look()
    };
    let first = end(&mut world, 1_500_000);
    assert_eq!(first.len(), 1);
    assert_eq!(data(&first[0])["state"], "finished");
    assert_eq!(data(&first[0])["name"], "digits");
    assert_eq!(world.look(), [], "once");
    (world.jobs[0].state, world.jobs[0].ended_at) = (JobState::Running, None);
    assert_eq!(world.look(), []);
    let second = end(&mut world, 1_700_000);
    assert_eq!(second[0].kind, Kind::JobDone);
    assert_ne!(first[0].id, second[0].id, "it is another end");
}

#[test]
fn a_job_that_came_and_went_between_two_looks_is_told() {
    let mut world = World::new();
    world.jobs.push(JobView { state: JobState::Failed, ..job(2) });
    let found = world.look();
    assert_eq!((found.len(), &data(&found[0])["job"]), (1, &json!(2)));
    world.jobs.clear();
    assert_eq!(world.look(), [], "a job that is deleted isn't told");
}

#[test]
fn only_a_better_value_is_a_new_best() {
    let mut world = World::new();
    world.best(1, 0.5);
    let found = world.look();
    assert_eq!(
        (&data(&found[0])["best"]["value"], &data(&found[0])["before"]),
        (&json!(0.5), &json!(null))
    );
    assert_eq!(world.look(), []);
    world.best(2, 0.4);
    assert_eq!(data(&world.look()[0])["before"], 0.5);
    // It was taken back.
    world.best(1, 0.5);
    assert_eq!(world.look(), []);
    world.best(2, 0.45);
    assert_eq!(world.kinds(), [Kind::NewBest]);
}

#[test]
fn goals_are_asked_for_only_where_a_value_is_new() {
    let mut world = World::new();
    world.jobs.insert(0, job(2));
    assert_eq!(world.known.unknown_goals(&world.jobs), [], "it has no value yet");
    world.best(1, 0.5);
    assert_eq!(world.known.unknown_goals(&world.jobs), [JobId(2)]);
    world.look();
    world.best(1, 0.4);
    assert_eq!(world.known.unknown_goals(&world.jobs), [], "it is known by now");
}

#[test]
fn a_budget_is_near_once_and_again_after_it_was_raised() {
    let mut world = World::new();
    let cost = |cost, budget| {
        let (job, name, trials) = (JobId(1), String::new(), Vec::new());
        let (cost, budget) = (MicroUsd(cost), Some(MicroUsd(budget)));
        vec![JobCost { job, name, cost, on_demand_cost: cost, budget, trials }]
    };
    for (spent, budget, told) in [
        (790_000, 1_000_000, false),
        (800_000, 1_000_000, true),
        (900_000, 1_000_000, false),
        (900_000, 2_000_000, false),
        (1_700_000, 2_000_000, true),
        (1_700_000, 0, false),
    ] {
        world.trains();
        world.costs = cost(spent, budget);
        let found = world.look();
        assert_eq!(!found.is_empty(), told, "{spent} of {budget}: {found:?}");
        assert!(found.iter().all(|found| found.kind == Kind::BudgetNear));
    }
}

#[test]
fn a_job_is_stalled_once_until_it_moves() {
    let mut world = World::new();
    world.trains();
    assert_eq!(world.look(), []);
    world.jobs[0].waiting = Some("no host".to_owned());
    for _ in 0..59 {
        assert_eq!(world.look(), []);
    }
    let found = world.look();
    assert_eq!((found[0].kind, &data(&found[0])["waiting"]), (Kind::Stalled, &json!("no host")));
    assert_eq!(world.look(), []);
    world.trains();
    assert_eq!(world.look(), []);
    world.now += 100_000;
    // A pause is no stall, and the time starts anew after it.
    world.jobs[0].state = JobState::Paused;
    assert_eq!(world.look(), []);
    world.jobs[0].state = JobState::Running;
    assert_eq!(world.look(), []);
    world.now += 59_000;
    assert_eq!(world.kinds(), [Kind::Stalled]);
}

#[test]
fn a_host_is_lost_where_it_goes_without_a_word() {
    let mut world = World::new();
    let state = |world: &mut World, state, stopped| {
        world.trains();
        (world.hosts[0].state, world.hosts[0].stopped) = (state, stopped);
        world.look()
    };
    let found = state(&mut world, HostState::Away, false);
    assert_eq!(found[0].kind, Kind::HostLost);
    assert_eq!(data(&found[0])["leases"], json!([{"job": 1, "trial": 2}]));
    assert_eq!(state(&mut world, HostState::Away, false), [], "once");
    assert_eq!(state(&mut world, HostState::Live, false), []);
    assert_eq!(state(&mut world, HostState::Away, true), [], "it has said that it ends");
    assert_eq!(state(&mut world, HostState::Live, false), []);
    assert_eq!(state(&mut world, HostState::Revoked, false), [], "its owner knows");
}

#[test]
fn after_a_restart_hosts_have_time_to_come_back() {
    let mut world = World::new();
    (world.hosts[0].state, world.hosts[0].seen_at, world.is_settled) =
        (HostState::Away, None, false);
    assert_eq!(world.look(), []);
    let away = world.hosts[0].clone();
    world.hosts[0] = host(7);
    assert_eq!(world.look(), [], "it is back");
    (world.hosts[0], world.is_settled) = (away, true);
    assert_eq!(world.kinds(), [Kind::HostLost], "it isn't");
}
