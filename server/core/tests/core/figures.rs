//! The figures for monitoring: what is there, and what is counted since the core began.

use crate::support::{Bench, HOST, JOB, OTHER, demand, done, fail, inventory, request};
use sojourn_core::{
    Answer, Command, Core, CoreConfig, Figures, Query, ReplyTo,
    figures::{
        Counts, HostStatus, JobStatus, LeaseEndReason, LeaseStage, NoWorkReason, ResultEnd,
        TrialStatus, UnitKind,
    },
};
use sojourn_protocol::{
    api::{HeldState, PlacementRequest, WorkRequest},
    inventory::Inventory,
    money::MicroUsd,
    report::{FailureKind, Report},
    time::Millis,
};

fn figures(bench: &mut Bench) -> Figures {
    match bench.answer(Command::Query { to: ReplyTo(1), query: Query::Figures }) {
        Ok(Answer::Figures(figures)) => *figures,
        other => panic!("{other:?}"),
    }
}

/// These labels, and no others.
fn counts<L: Ord, const N: usize>(of: [(L, u64); N]) -> Counts<L> {
    let mut counts = Counts::default();
    of.into_iter().for_each(|(label, count)| counts.add_all(label, count));
    counts
}

#[test]
fn a_server_without_a_job_has_its_hosts_and_nothing_else() {
    let figures = figures(&mut Bench::new());
    assert_eq!(figures.hosts, counts([(HostStatus::Live, 2)]));
    assert_eq!((figures.slots.busy, figures.slots.idle), (0, 2));
    assert!(figures.slots.flops > 0, "two devices of 1 GFLOPS");
    assert_eq!(figures.without_work, counts([]));
    assert_eq!((figures.jobs.sum(), figures.trials.sum(), figures.leases.sum()), (0, 0, 0));
    assert_eq!(figures.position.0, 2, "two enrolments");
    assert_eq!((figures.ready_units, figures.blobs), (0, 0));
}

#[test]
fn leases_are_counted_by_kind_and_by_how_far_they_are() {
    let mut bench = Bench::with_job(3, 1);
    assert_eq!(figures(&mut bench).ready_units, 3);
    let lease = bench.lease(HOST);
    let at = |stage| counts([((UnitKind::Train, stage), 1)]);
    let now = figures(&mut bench);
    assert_eq!((now.leases, now.slots.busy, now.slots.idle), (at(LeaseStage::Waiting), 0, 2));
    assert_eq!(now.ready_units, 2);
    assert_eq!(now.running_jobs[0].leases, 1);
    bench.ask(HOST, request(0, vec![(lease.id, HeldState::Running { done: 1, of: 3 })]));
    let now = figures(&mut bench);
    assert_eq!((now.leases, now.slots.busy, now.slots.idle), (at(LeaseStage::Running), 1, 1));
    let finished = HeldState::Finished;
    bench.ask(HOST, request(0, vec![(lease.id, finished)]));
    let now = figures(&mut bench);
    assert_eq!((now.leases, now.slots.busy), (at(LeaseStage::Uploading), 0));
    bench.report(HOST, done(&lease)).unwrap();
    let now = figures(&mut bench);
    assert_eq!((now.leases.sum(), now.assimilation.waiting), (0, 1));
}

#[test]
fn what_was_granted_and_taken_in_is_counted_to_the_end_of_a_job() {
    let mut bench = Bench::with_job(2, 2);
    bench.work_to_the_end(&[HOST, OTHER]);
    let now = figures(&mut bench);
    assert_eq!(now.jobs, counts([(JobStatus::Finished, 1)]));
    assert_eq!(now.trials, counts([(TrialStatus::Finished, 2)]));
    assert_eq!(now.running_jobs, []);
    // Two trials, two epochs of two shards and one evaluation each.
    assert_eq!(now.totals.granted, counts([(UnitKind::Train, 8), (UnitKind::Evaluate, 4)]));
    assert_eq!(now.totals.results, counts([(ResultEnd::Taken, 12)]));
    assert_eq!((now.totals.reports, now.totals.ended.sum()), (12, 0));
    assert_eq!(now.totals.trained_rows, 2 * 2 * 32);
    assert_eq!(now.totals.slot_micros, 8 * 1_000 + 4 * 10);
    // They aren't durable, unlike what is there.
    let snapshot = bench.core.snapshot().unwrap();
    bench.core = Core::from_snapshot(&snapshot, CoreConfig::default()).unwrap();
    bench.apply(Command::Started);
    let after = figures(&mut bench);
    assert_eq!((after.totals.reports, after.jobs), (0, now.jobs));
    assert_eq!(after.hosts, counts([(HostStatus::Away, 2)]), "none was heard of yet");
}

#[test]
fn leases_that_end_without_a_report_are_counted_by_why() {
    let mut bench = Bench::with_job(3, 1);
    let lease = bench.lease(HOST);
    let reason = "no room".to_owned();
    let release = sojourn_protocol::reason::ReleaseReason::Fault(reason);
    bench.events(Command::Release {
        to: ReplyTo(1),
        host: HOST,
        leases: vec![lease.id],
        reason: release,
    });
    bench.lease(OTHER);
    bench.now += 60_000;
    bench.events(Command::Tick);
    let now = figures(&mut bench);
    let ended = [(LeaseEndReason::Returned, 1), (LeaseEndReason::Silent, 1)];
    assert_eq!(now.totals.ended, counts(ended));
    assert_eq!(now.hosts, counts([(HostStatus::Away, 2)]));
    assert_eq!((now.slots.busy, now.slots.idle), (0, 0), "nobody offers slots");
}

#[test]
fn hosts_that_get_nothing_are_counted_by_why() {
    let mut bench = Bench::with_job(3, 1);
    // What another host can do counts against the one that can't.
    let lease = bench.lease(OTHER);
    bench.finish(OTHER, &lease);
    for _ in 0..10 {
        let leases = bench.ask(HOST, request(1, Vec::new())).leases;
        let Some(lease) = leases.first() else { break };
        fail(&mut bench, HOST, lease.id, FailureKind::Trainer, "out of luck");
        bench.now += 10;
    }
    let full = Inventory { disk_is_low: true, ..inventory("class") };
    let ask =
        WorkRequest { demand: vec![demand(0, 0, 0)], inventory: Some(full), ..request(0, vec![]) };
    bench.ask(OTHER, ask);
    let now = figures(&mut bench);
    assert_eq!(now.hosts, counts([(HostStatus::Live, 1), (HostStatus::Cooldown, 1)]));
    let reasons = [(NoWorkReason::Failures, 1), (NoWorkReason::DiskIsLow, 1)];
    assert_eq!(now.without_work, counts(reasons));
    assert!(now.totals.results.of(&ResultEnd::Failed) > 0);
}

#[test]
fn jobs_that_run_have_figures_of_their_own_and_paused_ones_offer_no_units() {
    let mut bench = Bench::with_job(2, 1);
    let budget = MicroUsd(5_000_000);
    let placement = PlacementRequest { budget: Some(budget), ..PlacementRequest::default() };
    bench.answer(Command::Place { to: ReplyTo(1), job: JOB, placement }).unwrap();
    let lease = bench.lease(HOST);
    bench.finish(HOST, &lease);
    let now = figures(&mut bench);
    let [job] = &now.running_jobs[..] else { panic!("{now:?}") };
    assert_eq!((job.job, job.budget, job.spent), (JOB, Some(budget), MicroUsd(0)));
    assert_eq!((job.hops, job.expected_hops), (1, 4));
    assert_eq!((now.jobs, now.ready_units), (counts([(JobStatus::Running, 1)]), 2));
    bench.answer(Command::Pause { to: ReplyTo(1), job: JOB, now: false }).unwrap();
    let now = figures(&mut bench);
    assert_eq!((now.jobs, now.ready_units), (counts([(JobStatus::Paused, 1)]), 0));
    assert_eq!(now.running_jobs, []);
}

#[test]
fn plans_are_counted_as_they_are_requested_and_come() {
    let mut bench = Bench::with_policy(sojourn_workgen::PolicyName::Rollout, 1, 4, 2, "");
    for host in [HOST, OTHER] {
        let request = WorkRequest { wait: Millis(5_000), ..request(1, Vec::new()) };
        bench.apply(Command::Ask { to: ReplyTo(1), host, request });
    }
    let now = figures(&mut bench);
    assert!(now.plans.requested > 0, "{:?}", now.plans);
    assert_eq!((now.plans.followed, now.plans.dropped), (0, 0));
    // Nobody has asked for this one.
    bench.apply(Command::PlanReady { job: JOB, version: 99, schedule: None });
    assert_eq!(figures(&mut bench).plans.dropped, 1);
}

#[test]
fn a_report_that_nobody_waits_for_is_counted_as_such() {
    let mut bench = Bench::with_job(1, 1);
    let lease = bench.lease(HOST);
    bench.answer(Command::Cancel { to: ReplyTo(1), job: JOB }).unwrap();
    let Report { lease, outcome } = done(&lease);
    bench.report(HOST, Report { lease, outcome }).unwrap();
    let now = figures(&mut bench);
    assert_eq!(now.totals.results, counts([(ResultEnd::Superseded, 1)]));
    assert_eq!(now.totals.ended, counts([(LeaseEndReason::Revoked, 1)]));
    assert_eq!(now.trials, counts([(TrialStatus::Cancelled, 1)]));
}
