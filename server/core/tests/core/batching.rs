//! Leases of several hops in a row: granted, ended on any of their shards, late, stopped, resumed.

use crate::support::{
    Bench, HOST, JOB, OTHER, done, hop, request, trained, trained_after, version,
};
use sojourn_core::{Answer, Command, Core, Event, LeaseEnd, Query, ReplyTo};
use sojourn_protocol::{
    api::{HeldState, ReportAnswer},
    ids::{Epoch, ShardId, TrialId},
    position::Position,
    report::{Outcome, Report, ReportEnd, ReportState, Trained},
    seeds,
    unit::Lease,
    view::TrialHistory,
};

const TO: ReplyTo = ReplyTo(1);

fn shards(lease: &Lease) -> Vec<u32> {
    hop(lease).segments().map(|stretch| stretch.start.shard.0).collect()
}

fn history(bench: &mut Bench) -> TrialHistory {
    let query = Query::History { job: JOB, trial: TrialId(0) };
    match bench.answer(Command::Query { to: TO, query }) {
        Ok(Answer::History(history)) => *history,
        other => panic!("{other:?}"),
    }
}

fn report(bench: &mut Bench, lease: &Lease, trained: Trained) -> ReportState {
    let report = Report { lease: lease.id, outcome: Outcome::Trained(trained) };
    match bench.report(HOST, report) {
        Ok(Answer::Report(ReportAnswer { state, .. })) => state,
        other => panic!("{other:?}"),
    }
}

/// Where the trial's chain stands: batches left of each shard.
fn left(bench: &Bench) -> Vec<u32> {
    let chain = &bench.core.state().jobs[&JOB].trials[0].chain;
    (0..4).map(|shard| chain.remaining_in(ShardId(shard))).collect()
}

#[test]
fn several_hops_go_in_one_lease_and_make_one_version() {
    let mut bench = Bench::with_long_leases(3, 1, 1);
    let events = bench.events(Command::Ask { to: TO, host: HOST, request: request(1, Vec::new()) });
    let [Event::LeaseGranted { then, .. }] = &events[..] else { panic!("{events:?}") };
    assert_eq!(then[..], [ShardId(1), ShardId(2)]);
    // The same again, as to a host that has lost it.
    let lease = bench.lease(HOST);
    assert_eq!(shards(&lease), [0, 1, 2]);
    let way = hop(&lease);
    // Batches of 8: 3, 2 and 2 in the shards of 20, 12 and 9 rows.
    assert_eq!((way.to_train(), way.then[1].shard.rows), (7, 9));
    assert_eq!(way.then[0].seed, seeds::hop(7, TrialId(0), Epoch(0), ShardId(1)));
    assert!(bench.core.state().hosts[&HOST].live.contains(&lease.id));
    bench.finish(HOST, &lease);
    let job = bench.job();
    assert_eq!((job.hops, bench.trials()[0].version), (3, version(1)));
    assert_eq!(bench.core.state().jobs[&JOB].load, [0, 0, 0, 1]);
    let history = history(&mut bench);
    let [record] = &history.hops[..] else { panic!("{history:?}") };
    assert_eq!(record.then, [ShardId(1), ShardId(2)]);
    let end = Position { epoch: Epoch(0), shard: ShardId(2), batch: 2, step: 7 };
    assert_eq!((record.start.step, record.end), (0, end));
    assert_eq!(history.hop_of(record, way.base).as_ref(), Some(way), "all that a replay needs");
    // One hop is left of the epoch; the epoch ends with it.
    let last = bench.lease(OTHER);
    assert_eq!((shards(&last), hop(&last).start.step), (vec![3], 7));
    bench.finish(OTHER, &last);
    assert!(bench.core.state().jobs[&JOB].trials[0].chain.is_done());
    assert_eq!(bench.job().hops, 4);
    let all = bench.core.state().jobs[&JOB].trials[0].evaluations[&Epoch(0)].train.clone();
    assert_eq!(all.rows, 20 + 12 + 9 + 3);
}

#[test]
fn a_lease_never_leads_into_the_next_epoch() {
    let mut bench = Bench::with_long_leases(9, 1, 2);
    let first = bench.lease(HOST);
    assert_eq!(shards(&first), [0, 1, 2, 3]);
    bench.finish(HOST, &first);
    assert_eq!((bench.job().hops, left(&bench)), (4, vec![3, 2, 2, 1]));
    assert!(bench.core.state().jobs[&JOB].trials[0].evaluations.contains_key(&Epoch(0)));
    let next = bench.lease(HOST);
    assert_eq!(hop(&next).start.epoch, Epoch(1));
}

#[test]
fn a_part_may_end_on_any_shard_and_the_rest_goes_on_from_there() {
    for (batches, left_after) in [
        (1, [2, 2, 2, 1]),
        (3, [0, 2, 2, 1]),
        (4, [0, 1, 2, 1]),
        (5, [0, 0, 2, 1]),
        (7, [0, 0, 0, 1]),
    ] {
        let mut bench = Bench::with_long_leases(4, 1, 1);
        let lease = bench.lease(HOST);
        let part = trained_after(&lease, batches);
        assert_eq!(report(&mut bench, &lease, part), ReportState::Acknowledged);
        bench.assimilate();
        assert_eq!(left(&bench), left_after);
        let load: Vec<u64> = left_after.iter().map(|left| u64::from(*left > 0)).collect();
        assert_eq!(bench.core.state().jobs[&JOB].load, load);
        let mut rest = 8 - batches;
        while rest > 0 {
            let lease = bench.lease(OTHER);
            assert_eq!(hop(&lease).start.step, u64::from(8 - rest));
            rest -= hop(&lease).to_train();
            bench.finish(OTHER, &lease);
        }
        assert_eq!(bench.job().hops, 4);
    }
}

#[test]
fn what_was_begun_goes_on_first_or_not_under_that_lease() {
    let mut bench = Bench::with_long_leases(4, 1, 1);
    let lease = bench.lease(HOST);
    let part = trained_after(&lease, 1);
    report(&mut bench, &lease, part);
    bench.assimilate();
    let next = bench.lease(HOST);
    let begun = hop(&next).segments().filter(|stretch| stretch.start.shard == ShardId(0));
    let starts: Vec<u32> = begun.map(|stretch| stretch.start.batch).collect();
    assert!(starts.iter().all(|batch| *batch == 1), "{next:?}");
}

#[test]
fn what_does_not_lie_on_the_way_is_refused() {
    type Spoil = fn(&mut Trained);
    let wrong: [(Spoil, &str); 5] = [
        (|t| t.end.shard = ShardId(3), "does not follow"),
        (|t| t.end.shard = ShardId(0), "does not follow"),
        (|t| t.end.step -= 1, "does not follow"),
        (|t| t.end.batch += 1, "does not follow"),
        (|t| t.sums.rows = 9, "9 rows were trained instead of 41"),
    ];
    for (spoil, why) in wrong {
        let mut bench = Bench::with_long_leases(3, 1, 1);
        let lease = bench.lease(HOST);
        let mut trained = trained_after(&lease, 7);
        spoil(&mut trained);
        match report(&mut bench, &lease, trained) {
            ReportState::Ended(ReportEnd::Rejected { reason }) => {
                assert!(reason.contains(why), "{reason}");
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(left(&bench), [3, 2, 2, 1], "nothing of it is taken");
    }
}

#[test]
fn a_late_part_does_not_end_another_hosts_attempt_and_a_late_whole_does() {
    for (batches, used) in [(7, true), (6, false), (3, false)] {
        let mut bench = Bench::with_long_leases(3, 1, 1);
        let late = bench.lease(HOST);
        bench.now += 10_000;
        bench.apply(Command::Tick);
        let second = bench.lease(OTHER);
        assert_eq!(shards(&second), [0, 1, 2]);
        let trained = trained_after(&late, batches);
        let state = report(&mut bench, &late, trained);
        let events = bench.assimilate();
        let revoked = Event::LeaseEnded { lease: second.id, end: LeaseEnd::Revoked };
        assert_eq!(events.contains(&revoked), used, "{batches} batches");
        assert_eq!(state == ReportState::Ended(ReportEnd::Superseded), !used);
    }
}

#[test]
fn a_pause_at_once_ends_it_on_the_shard_that_it_is_at() {
    let mut bench = Bench::with_long_leases(3, 1, 1);
    let lease = bench.lease(HOST);
    let running = |done| HeldState::Running { done, of: 7 };
    bench.ask(HOST, request(0, vec![(lease.id, running(4))]));
    bench.apply(Command::Pause { to: TO, job: JOB, now: true });
    let answer = bench.ask(HOST, request(0, vec![(lease.id, running(4))]));
    assert_eq!(answer.stop, [lease.id]);
    let part = trained_after(&lease, 4);
    report(&mut bench, &lease, part);
    bench.assimilate();
    bench.apply(Command::Resume { to: TO, job: JOB });
    assert_eq!((bench.job().hops, left(&bench)), (1, vec![0, 1, 2, 1]));
}

#[test]
fn its_time_is_that_of_all_its_hops() {
    // When a unit is given up that runs and comes no further.
    let term = |most_hops| {
        let mut bench = Bench::with_long_leases(most_hops, 1, 1);
        let lease = bench.lease(HOST);
        let mut trained = trained(&lease, 3);
        trained.train_micros = 80_000_000;
        for _ in 0..16 {
            bench.now += 5_000;
            bench.ask(HOST, request(0, vec![(lease.id, HeldState::Finished)]));
        }
        report(&mut bench, &lease, trained);
        bench.assimilate();
        let lease = bench.lease(HOST);
        let mut until = 0;
        // Silent only about progress: it runs out when it is due.
        let state = HeldState::Running { done: 0, of: hop(&lease).to_train() };
        while bench.job().leases_expired == 0 {
            bench.ask(HOST, request(0, vec![(lease.id, state)]));
            bench.now += 5_000;
            until += 5;
        }
        (hop(&lease).rows_to(hop(&lease).position_after(99)).unwrap(), until)
    };
    let (rows, one) = term(1);
    let (more_rows, several) = term(3);
    assert!(more_rows > rows && several > one, "{rows} rows {one} s, {more_rows} rows {several} s");
}

#[test]
fn a_start_keeps_it() {
    let mut bench = Bench::with_long_leases(3, 1, 1);
    let lease = bench.lease(HOST);
    bench.core =
        Core::from_snapshot(&bench.core.snapshot().unwrap(), *bench.core.config()).unwrap();
    bench.apply(Command::Started);
    bench.ask(HOST, request(0, vec![(lease.id, HeldState::Waiting)]));
    let again = bench.lease(HOST);
    assert_eq!((again.id, hop(&again)), (lease.id, hop(&lease)));
    bench.report(HOST, done(&again)).unwrap();
    bench.assimilate();
    assert_eq!(bench.job().hops, 3);
}
