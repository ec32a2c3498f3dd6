//! Fixed visits: a trial visits the shards of an epoch in the order that follows from its job alone.

use crate::support::{Bench, HOST, JOB, OTHER, hop, inventory, request, trained_after};
use sojourn_core::{Answer, Command, Core, Effect, Event, Query, ReplyTo, UnitKey};
use sojourn_protocol::{
    api::{RollbackOptions, RollbackRequest, WorkRequest},
    error::ErrorKind,
    ids::{Epoch, ShardId, TrialId},
    inventory::Inventory,
    report::{Outcome, Report},
    seeds,
    spec::{OrderChoice, PlacementSpec, Visits},
    time::Millis,
};
use sojourn_workgen::{
    PolicyName,
    plan::{Iterations, Planner as _, Problem, Rollout},
};

const TO: ReplyTo = ReplyTo(1);
const FIXED: &str = "[placement]\norder = \"hop\"\nvisits = \"fixed\"\n";

/// The order of a trial's visits in an epoch of the job of these tests.
fn order(trial: u32, epoch: u32) -> Vec<ShardId> {
    seeds::visit_order(7, TrialId(trial), Epoch(epoch), 4)
}

/// The shards that were granted, by trial and epoch, in the order of the grants.
fn visits(events: &[Event]) -> Vec<(TrialId, Epoch, Vec<ShardId>)> {
    let granted = events.iter().filter_map(|event| match event {
        Event::LeaseGranted { unit: UnitKey::Train { trial, epoch, shard, .. }, then, .. } => {
            let all = std::iter::once(*shard).chain(then.iter().copied());
            Some((*trial, *epoch, all.collect()))
        }
        _ => None,
    });
    granted.collect()
}

/// The visits of a trial's history, each shard once.
fn visited(bench: &mut Bench, trial: u32) -> Vec<(Epoch, ShardId)> {
    let query = Query::History { job: JOB, trial: TrialId(trial) };
    let Ok(Answer::History(history)) = bench.answer(Command::Query { to: TO, query }) else {
        panic!("no history")
    };
    let hops = history.hops.iter();
    let mut visits: Vec<_> =
        hops.flat_map(|hop| hop.shards().map(|shard| (hop.epoch(), shard))).collect();
    // A hop in parts.
    visits.dedup();
    visits
}

fn expected(trial: u32, epochs: u32) -> Vec<(Epoch, ShardId)> {
    let of = |epoch: u32| order(trial, epoch).into_iter().map(move |shard| (Epoch(epoch), shard));
    (0..epochs).flat_map(of).collect()
}

#[test]
fn every_policy_and_any_number_of_hosts_visit_in_the_order_of_the_job() {
    for policy in PolicyName::ALL {
        for hosts in [&[HOST][..], &[HOST, OTHER]] {
            for most_hops in [1, 3] {
                let mut bench = Bench::with_policy(policy, most_hops, 3, 2, FIXED);
                bench.work_to_the_end(hosts);
                for trial in 0..3 {
                    let visits = visited(&mut bench, trial);
                    assert_eq!(visits, expected(trial, 2), "{policy:?}, {hosts:?}, trial {trial}");
                }
            }
        }
    }
}

#[test]
fn held_shards_do_not_change_the_order_and_the_reason_says_it() {
    let mut bench = Bench::with_policy(PolicyName::Ltrp, 1, 1, 1, FIXED);
    let first = order(0, 0)[0];
    let data = bench.core.state().jobs[&JOB].data.train.clone();
    let others = data.iter().enumerate().filter(|(n, _)| *n != first.0 as usize);
    let cached = others.map(|(_, shard)| shard.blob.sha256).collect();
    let inventory = Some(Inventory { cached, ..inventory("class") });
    let request = WorkRequest { inventory, ..request(1, Vec::new()) };
    let events = bench.events(Command::Ask { to: TO, host: HOST, request });
    assert_eq!(visits(&events), [(TrialId(0), Epoch(0), vec![first])]);
    let Event::LeaseGranted { why, .. } = &events[0] else { panic!("{events:?}") };
    assert!(
        why.contains("; a shard to fetch, the next by the fixed order of its visits;"),
        "{why}"
    );
}

#[test]
fn a_lease_of_several_hops_and_its_rest_follow_the_order() {
    let mut bench = Bench::with_policy(PolicyName::Ltrp, 3, 1, 1, FIXED);
    let lease = bench.lease(HOST);
    let shards: Vec<ShardId> = hop(&lease).segments().map(|of| of.start.shard).collect();
    assert_eq!(shards, order(0, 0)[..3]);
    // Cut within the second of them: that one goes on first.
    let size = |shard: ShardId| [3, 2, 2, 1][shard.0 as usize];
    let outcome = Outcome::Trained(trained_after(&lease, size(shards[0]) + 1));
    bench.report(HOST, Report { lease: lease.id, outcome }).unwrap();
    bench.assimilate();
    let rest = bench.lease(OTHER);
    let start = hop(&rest).start;
    let (next, batch) = if size(shards[1]) > 1 { (shards[1], 1) } else { (shards[2], 0) };
    assert_eq!((start.shard, start.batch), (next, batch));
    bench.work_to_the_end(&[HOST, OTHER]);
    assert_eq!(visited(&mut bench, 0), expected(0, 1));
}

#[test]
fn a_trial_that_is_rolled_back_visits_in_the_same_order_again() {
    let mut bench = Bench::with_policy(PolicyName::Ltrp, 1, 1, 3, FIXED);
    while bench.core.state().jobs[&JOB].trials[0].chain.epoch() < Epoch(2) {
        bench.work_once(&[HOST]);
    }
    let request = RollbackRequest::Trial {
        trial: TrialId(0),
        epochs: 0,
        options: RollbackOptions::default(),
    };
    bench.answer(Command::Rollback { to: TO, job: JOB, request }).unwrap();
    let chain = &bench.core.state().jobs[&JOB].trials[0].chain;
    assert_eq!((chain.epoch(), chain.open().collect::<Vec<_>>()), (Epoch(0), order(0, 0)));
    bench.work_to_the_end(&[HOST]);
    assert_eq!(visited(&mut bench, 0), expected(0, 3));
}

#[test]
fn automatic_merging_does_not_begin_and_merging_always_is_refused() {
    let auto = |visits| PlacementSpec {
        visits,
        merge_below: 1000,
        ..PlacementSpec::new(OrderChoice::Auto, true, 1)
    };
    let merges = |visits| {
        let mut bench = Bench::with_order(&auto(visits), 1, 1);
        bench.ask(HOST, request(1, Vec::new()));
        bench.ask(OTHER, request(1, Vec::new()));
        bench.core.state().jobs[&JOB].trials[0].merging.is_some()
    };
    assert!(!merges(Some(Visits::Fixed)));
    assert!(merges(None), "two slots, one trial");
    let fixed = PlacementSpec {
        visits: Some(Visits::Fixed),
        ..PlacementSpec::new(OrderChoice::Merge, true, 1)
    };
    let message = fixed.check().unwrap_err();
    assert!(message.contains("`order = \"merge\"`"), "{message}");
    let refused = Bench::new().submit_placed(&fixed).unwrap_err();
    assert_eq!((refused.kind, refused.message), (ErrorKind::Invalid, message));
}

#[test]
fn a_plan_has_the_order_of_each_epoch() {
    let mut bench = Bench::with_policy(PolicyName::Rollout, 1, 4, 2, FIXED);
    let waiting = || WorkRequest { wait: Millis(5_000), ..request(1, Vec::new()) };
    bench.apply(Command::Ask { to: TO, host: HOST, request: waiting() });
    bench.apply(Command::Ask { to: TO, host: OTHER, request: waiting() });
    let problem = |effects: &[Effect]| -> Option<Problem> {
        effects.iter().rev().find_map(|effect| match effect {
            Effect::Plan { problem, .. } => Some(problem.as_ref().clone()),
            _ => None,
        })
    };
    let problem = problem(&bench.plans).expect("a plan is asked for");
    problem.check().unwrap();
    for (n, trial) in (0..).zip(&problem.trials) {
        let all: Vec<u32> = expected(n, 2).into_iter().map(|(_, shard)| shard.0).collect();
        assert_eq!(trial.order, all);
    }
    let schedule = Rollout.plan(&problem, 1, &mut Iterations::new(20)).unwrap();
    assert_eq!(schedule.check(&problem), Ok(()));
}

#[test]
fn a_server_that_reads_its_snapshot_goes_on_in_the_order() {
    let mut bench = Bench::with_policy(PolicyName::Ltrp, 1, 2, 2, FIXED);
    let lease = bench.lease(HOST);
    bench.finish(HOST, &lease);
    let snapshot = bench.core.snapshot().unwrap();
    bench.core = Core::from_snapshot(&snapshot, *bench.core.config()).unwrap();
    bench.apply(Command::Started);
    bench.work_to_the_end(&[HOST, OTHER]);
    for trial in 0..2 {
        assert_eq!(visited(&mut bench, trial), expected(trial, 2));
    }
}
