//! Command in, exact effects out: the life of units, leases and reports.

use crate::support::{
    Bench, HOST, JOB, OTHER, data, demand, done, evaluation, events, fail, hop, inventory, request,
    trained, version,
};
use sojourn_core::{
    Answer, Command, Effect, Event, JournalPosition, LeaseEnd, Query, ReplyTo, UnitKey,
};
use sojourn_protocol::{
    api::{HeartbeatRequest, HeldState, ReportAnswer, WorkAnswer, WorkRequest},
    digest::Digest,
    error::ErrorKind,
    ids::{Epoch, HostId, LeaseId, ShardId, TrialId, Version},
    inventory::{CPU, Inventory},
    jobfile,
    manifest::DataManifest,
    reason::ReleaseReason,
    report::{Failure, FailureKind, Outcome, Report, ReportEnd, ReportState},
    time::{Millis, UnixMillis},
    view::{HostState, HostView, JobState, TrialState},
};

#[test]
fn a_grant_is_journalled_before_it_is_answered() {
    let mut bench = Bench::with_job(1, 1);
    let before = bench.core.position();
    let effects =
        bench.apply(Command::Ask { to: ReplyTo(9), host: HOST, request: request(1, Vec::new()) });
    let [Effect::Persist(record), Effect::Reply { to, after, answer }] = &effects[..] else {
        panic!("{effects:?}");
    };
    assert_eq!(record.position, JournalPosition(before.0 + 1));
    let unit =
        UnitKey::Train { job: JOB, trial: TrialId(0), epoch: Epoch(0), shard: ShardId(0), from: 0 };
    let Event::LeaseGranted {
        lease,
        host,
        device,
        unit: granted,
        then,
        until: None,
        base,
        class,
        speculative_for,
        why,
    } = &record.event
    else {
        panic!("{record:?}");
    };
    assert_eq!((*lease, *host, *granted, *base), (LeaseId(1), HOST, unit, version(0)));
    assert!(then.is_empty() && speculative_for.is_none(), "{record:?}");
    assert_eq!(device, CPU);
    assert_eq!(*class, Some(Digest::of(b"class")));
    let words = "of work left here, the most of those open; a shard to fetch, visits to come: 1; should take ";
    assert!(why.starts_with("ltrp: ") && why.contains(words), "every decision says why: {why}");
    assert_eq!((*to, *after), (ReplyTo(9), record.position));
    let Ok(Answer::Work(work)) = answer.as_ref().map(|answer| &**answer) else {
        panic!("{answer:?}");
    };
    let WorkAnswer { leases, .. } = &**work;
    assert_eq!(leases[0].id, LeaseId(1));
    assert_eq!(
        hop(&leases[0]).seed,
        sojourn_protocol::seeds::hop(7, TrialId(0), Epoch(0), ShardId(0))
    );
}

#[test]
fn a_trial_hops_over_every_shard_and_is_evaluated_after_each_epoch() {
    let mut bench = Bench::with_job(1, 2);
    for epoch in 0..2 {
        let first = bench.lease(HOST);
        if epoch == 0 {
            let other = bench.ask(OTHER, request(1, Vec::new())).leases;
            assert!(other.is_empty(), "H2: one hop at a time");
        }
        bench.finish(HOST, &first);
        let second = bench.lease(OTHER);
        assert_ne!(hop(&first).start.shard, hop(&second).start.shard);
        assert_eq!(hop(&second).base.version(), version(epoch * 2 + 1));
        bench.finish(OTHER, &second);
    }
    // Evaluations didn't hold the trial up; they are left.
    for epoch in 0..2 {
        let lease = bench.lease(HOST);
        assert_eq!(evaluation(&lease).epoch, Epoch(epoch));
        bench.finish(HOST, &lease);
    }
    let job = bench.job();
    assert_eq!((job.state, job.hops, job.hops_expected), (JobState::Finished, 4, 4));
    assert_eq!((job.evaluations, job.superseded, job.leases_expired), (2, 0, 0));
    let best = job.best.unwrap();
    assert_eq!((best.trial, best.epoch), (TrialId(0), Epoch(0)), "ties go to the earlier epoch");
    assert!((best.value - 13.0 / 15.0).abs() < 1e-12, "shards combine by rows: {}", best.value);
}

#[test]
fn the_same_report_twice_gets_the_first_answer_and_changes_nothing() {
    let mut bench = Bench::with_job(1, 1);
    let lease = bench.lease(HOST);
    let answer = bench.report(HOST, done(&lease)).unwrap();
    let acknowledged = ReportAnswer { lease: lease.id, state: ReportState::Acknowledged };
    assert_eq!(answer, Answer::Report(acknowledged.clone()));
    let position = bench.core.position();
    assert_eq!(bench.report(HOST, done(&lease)).unwrap(), Answer::Report(acknowledged));
    assert_eq!(bench.core.position(), position);
    bench.assimilate();
    let end = ReportEnd::Assimilated { version: version(1) };
    let ended = ReportAnswer { lease: lease.id, state: ReportState::Ended(end) };
    let position = bench.core.position();
    assert_eq!(bench.report(HOST, done(&lease)).unwrap(), Answer::Report(ended));
    assert_eq!(bench.core.position(), position);
}

#[test]
fn a_report_for_anothers_lease_is_refused() {
    let mut bench = Bench::with_job(1, 1);
    let lease = bench.lease(HOST);
    let position = bench.core.position();
    assert_eq!(bench.report(OTHER, done(&lease)).unwrap_err().kind, ErrorKind::Forbidden);
    let mut unknown = done(&lease);
    unknown.lease = LeaseId(99);
    assert_eq!(bench.report(HOST, unknown).unwrap_err().kind, ErrorKind::NotFound);
    assert_eq!(bench.core.position(), position, "nothing changed");
}

#[test]
fn a_result_that_can_not_be_is_rejected_and_the_unit_is_free_again() {
    for (change, reason) in [
        (0, "trained on version 1 instead of 0"),
        (1, "the part ends at"),
        (2, "bytes instead of"),
        (3, "a loss can't be NaN"),
    ] {
        let mut bench = Bench::with_job(1, 1);
        let lease = bench.lease(HOST);
        let mut report = done(&lease);
        let Outcome::Trained(trained) = &mut report.outcome else { panic!() };
        match change {
            0 => trained.base = version(1),
            1 => trained.end.step += 1,
            2 => trained.checkpoint.bytes += 1,
            _ => trained.sums.loss = f64::NAN,
        }
        let Ok(Answer::Report(ReportAnswer { state, .. })) = bench.report(HOST, report) else {
            panic!();
        };
        let ReportState::Ended(ReportEnd::Rejected { reason: said }) = state else {
            panic!("{state:?}");
        };
        assert!(said.contains(reason), "{said}");
        assert_eq!(bench.job().rejected, 1);
        assert_eq!(bench.trials()[0].version, version(0));
        assert_eq!(hop(&bench.lease(OTHER)).base.version(), version(0));
    }
}

#[test]
fn a_report_without_its_upload_is_not_acknowledged() {
    let mut bench = Bench::with_job(1, 1);
    let lease = bench.lease(HOST);
    let (to, report) = (ReplyTo(1), done(&lease));
    let position = bench.core.position();
    let refused = bench.answer(Command::Report { to, host: HOST, report, uploaded: None });
    assert_eq!(refused.unwrap_err().kind, ErrorKind::Conflict);
    assert_eq!(bench.core.position(), position);
}

#[test]
fn a_silent_host_loses_its_lease_and_its_late_result_is_used_if_it_still_can_be() {
    let mut bench = Bench::with_job(1, 1);
    let lease = bench.lease(HOST);
    bench.now += 10_000;
    let ended = Event::LeaseEnded { lease: lease.id, end: LeaseEnd::Silent };
    assert_eq!(bench.events(Command::Tick), [ended]);
    assert_eq!(bench.job().leases_expired, 1);
    // Nobody else has it yet: the late result is as good as any.
    bench.report(HOST, done(&lease)).unwrap();
    bench.assimilate();
    assert_eq!((bench.job().hops, bench.job().superseded), (1, 0));
}

#[test]
fn the_first_of_two_results_settles_the_unit_and_the_other_is_superseded() {
    let mut bench = Bench::with_job(1, 1);
    let late = bench.lease(HOST);
    bench.now += 10_000;
    bench.apply(Command::Tick);
    let second = bench.lease(OTHER);
    bench.report(HOST, done(&late)).unwrap();
    let settled = bench.assimilate();
    let revoked = Event::LeaseEnded { lease: second.id, end: LeaseEnd::Revoked };
    assert!(settled.contains(&revoked), "{settled:?}");
    let running = HeldState::Running { done: 0, of: 3 };
    let answer = bench.ask(OTHER, request(0, vec![(second.id, running)]));
    assert_eq!(answer.drop, [second.id], "its host is told to stop");
    let Ok(Answer::Report(answer)) = bench.report(OTHER, done(&second)) else { panic!() };
    assert_eq!(answer.state, ReportState::Ended(ReportEnd::Superseded));
    assert_eq!((bench.job().hops, bench.job().superseded), (1, 1));
}

#[test]
fn two_acknowledged_results_of_one_unit_end_one_assimilated_one_superseded() {
    let mut bench = Bench::with_job(1, 1);
    let first = bench.lease(HOST);
    bench.now += 10_000;
    bench.apply(Command::Tick);
    let second = bench.lease(OTHER);
    bench.report(OTHER, done(&second)).unwrap();
    bench.report(HOST, done(&first)).unwrap();
    let settled = bench.assimilate();
    assert!(matches!(settled[1], Event::Assimilated { lease, .. } if lease == second.id));
    assert!(settled.contains(&Event::Superseded { lease: first.id }), "{settled:?}");
}

#[test]
fn a_finished_result_that_never_comes_does_not_hold_its_unit() {
    let mut bench = Bench::with_job(1, 1);
    let lease = bench.lease(HOST);
    let beat = |bench: &mut Bench, state| {
        bench.ask(HOST, request(0, vec![(lease.id, state)]));
        bench.now += 9_000;
    };
    beat(&mut bench, HeldState::Running { done: 3, of: 3 });
    let grace = bench.core.config().start_grace.0;
    let begun = bench.now;
    while bench.job().leases_expired == 0 {
        assert!(bench.now < begun + 2 * grace, "it is held for ever");
        beat(&mut bench, HeldState::Finished);
    }
    assert!(bench.now > begun + grace, "a slow line has its time");
    // Another host has it, and should the first one come after all, it is as good as any.
    let again = bench.lease(OTHER);
    assert_eq!(hop(&again).start, hop(&lease).start);
    bench.report(HOST, done(&lease)).unwrap();
    bench.assimilate();
    assert_eq!(bench.job().hops, 1);
}

#[test]
fn a_job_that_has_ended_can_not_be_cancelled() {
    let mut bench = Bench::with_job(1, 1);
    while bench.job().state == JobState::Running {
        let lease = bench.lease(HOST);
        bench.finish(HOST, &lease);
    }
    let refused = bench.answer(Command::Cancel { to: ReplyTo(1), job: JOB }).unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Conflict);
    assert_eq!(bench.job().state, JobState::Finished);
}

#[test]
fn what_nobody_reads_is_cut() {
    let mut bench = Bench::with_job(1, 1);
    let lease = bench.lease(HOST);
    let error = format!("\u{1b}[31m{}", "x".repeat(1 << 20));
    let failure = Failure { kind: FailureKind::Trainer, message: error };
    let report = Report { lease: lease.id, outcome: Outcome::Failed(failure) };
    let (to, uploaded) = (ReplyTo(1), None);
    let events = bench.events(Command::Report { to, host: HOST, report, uploaded });
    let Event::ReportAcknowledged { report, .. } = &events[0] else { panic!("{events:?}") };
    let Outcome::Failed(failure) = &report.outcome else { panic!("{report:?}") };
    assert_eq!(failure.message.len(), 8_000);
    assert!(failure.message.starts_with("[31mx"), "terminals have nothing to obey");
}

#[test]
fn a_host_that_lets_leases_lie_gets_the_next_ones_later() {
    let mut bench = Bench::with_job(8, 1);
    let mut greedy = request(8, Vec::new());
    greedy.demand = vec![demand(8, 8, 8)];
    let held = bench.ask(HOST, greedy.clone()).leases;
    assert_eq!(held.len(), 8);
    let waiting = || held.iter().map(|lease| (lease.id, HeldState::Waiting)).collect();
    let begun = bench.now;
    while bench.job().leases_expired == 0 {
        assert!(
            bench.now < begun + 2 * bench.core.config().start_grace.0,
            "they are held for ever"
        );
        bench.ask(HOST, request(0, waiting()));
        bench.now += 9_000;
    }
    assert_eq!(bench.job().leases_expired, 8);
    assert!(bench.ask(HOST, greedy).leases.is_empty(), "it rests");
    bench.lease(OTHER);
}

#[test]
fn a_result_whose_upload_was_dropped_meanwhile_is_not_used() {
    let mut bench = Bench::with_job(1, 1);
    let lease = bench.lease(HOST);
    // Its request is on the way: the upload was seen, and then the job was paused.
    bench.events(Command::Pause { to: ReplyTo(1), job: JOB, now: true });
    bench.events(Command::Resume { to: ReplyTo(1), job: JOB });
    let Ok(Answer::Report(answer)) = bench.report(HOST, done(&lease)) else { panic!() };
    assert_eq!(answer.state, ReportState::Ended(ReportEnd::Superseded));
    // Or it was told to drop what hung.
    let hung = bench.lease(HOST);
    let run = |done| request(0, vec![(hung.id, HeldState::Running { done, of: 3 })]);
    bench.ask(HOST, run(1));
    while bench.ask(HOST, run(1)).drop.is_empty() {
        bench.now += 9_000;
    }
    let Ok(Answer::Report(answer)) = bench.report(HOST, done(&hung)) else { panic!() };
    assert_eq!(answer.state, ReportState::Ended(ReportEnd::Superseded));
}

#[test]
fn a_lease_that_waits_behind_nothing_runs_out() {
    let mut bench = Bench::with_job(1, 1);
    let lease = bench.lease(HOST);
    let begun = bench.now;
    while bench.job().leases_expired == 0 {
        assert!(bench.now < begun + 2 * bench.core.config().start_grace.0, "it is held for ever");
        bench.ask(HOST, request(0, vec![(lease.id, HeldState::Waiting)]));
        bench.now += 9_000;
    }
}

#[test]
fn heartbeats_keep_a_lease_and_only_progress_moves_due() {
    let mut bench = Bench::with_job(1, 1);
    let lease = bench.lease(HOST);
    let beat =
        |done| vec![sojourn_protocol::api::Held::new(lease.id, HeldState::Running { done, of: 3 })];
    let command = |done| Command::Heartbeat {
        to: ReplyTo(1),
        host: HOST,
        request: HeartbeatRequest::new(beat(done), Vec::new()),
    };
    // Alive and hung: renewed again and again, overdue all the same.
    let mut ended = Vec::new();
    for _ in 0..10 {
        bench.now += 5_000;
        ended.extend(bench.events(command(1)));
    }
    assert_eq!(ended, [Event::LeaseEnded { lease: lease.id, end: LeaseEnd::Overdue }]);
    let running = HeldState::Running { done: 1, of: 3 };
    let answer = bench.ask(HOST, request(0, vec![(lease.id, running)]));
    assert_eq!(answer.drop, [lease.id], "what hangs is to be stopped");
}

#[test]
fn what_a_host_should_hold_and_lacks_is_sent_again() {
    let mut bench = Bench::with_job(2, 1);
    let lease = bench.lease(HOST);
    let again = bench.ask(HOST, request(1, Vec::new()));
    assert_eq!(again.leases.len(), 1);
    assert_eq!(again.leases[0].id, lease.id);
    let unknown = bench.ask(
        HOST,
        request(0, vec![(lease.id, HeldState::Waiting), (LeaseId(77), HeldState::Waiting)]),
    );
    assert_eq!(unknown.drop, [LeaseId(77)]);
}

#[test]
fn a_partial_checkpoint_makes_a_version_and_the_rest_is_granted_from_there() {
    let mut bench = Bench::with_job(1, 1);
    let lease = bench.lease(HOST);
    assert_eq!(hop(&lease).batches(), 3);
    let mut report = done(&lease);
    report.outcome = Outcome::Trained(trained(&lease, 1));
    bench.report(HOST, report).unwrap();
    bench.assimilate();
    assert_eq!(bench.job().hops, 0);
    let shard = hop(&lease).start.shard;
    let mut rest = bench.lease(OTHER);
    if hop(&rest).start.shard != shard {
        bench.finish(OTHER, &rest);
        rest = bench.lease(OTHER);
    }
    assert_eq!((hop(&rest).start.shard, hop(&rest).start.batch), (shard, 1));
    assert_eq!(hop(&rest).seed, hop(&lease).seed, "one hop, one seed, however many parts");
}

#[test]
fn a_late_part_does_not_end_the_attempt_of_another_host() {
    for (again, used) in [(OTHER, 0), (HOST, 1)] {
        let mut bench = Bench::with_job(1, 1);
        let late = bench.lease(HOST);
        bench.now += 10_000;
        bench.apply(Command::Tick);
        let second = bench.lease(again);
        assert_eq!(hop(&second).start, hop(&late).start);
        let mut part = done(&late);
        part.outcome = Outcome::Trained(trained(&late, 1));
        bench.report(HOST, part).unwrap();
        bench.assimilate();
        assert_eq!(bench.trials()[0].version, Version(used), "again at {again}");
        let running = HeldState::Running { done: 1, of: 3 };
        let answer = bench.ask(again, request(0, vec![(second.id, running)]));
        assert_eq!(answer.drop.is_empty(), used == 0, "its own attempt starts from the part");
    }
}

#[test]
fn three_errors_on_three_hosts_end_the_trial_with_the_last() {
    let mut bench = Bench::with_job_on(data(), 1, 1, "[placement]\norder = \"hop\"\n");
    let token_sha256 = Digest::of(b"c");
    bench.events(Command::Enrol { to: ReplyTo(1), name: "c".into(), token_sha256 });
    let third = sojourn_protocol::ids::HostId(3);
    bench.ask(third, request(0, Vec::new()));
    for (host, error) in [(HOST, "first"), (OTHER, "second"), (third, "last")] {
        let lease = bench.lease(host);
        fail(&mut bench, host, lease.id, sojourn_protocol::report::FailureKind::Trainer, error);
        if host != third {
            let retry = bench.ask(host, request(1, Vec::new()));
            assert!(retry.leases.is_empty(), "another host goes first");
        }
    }
    assert_eq!(bench.trials()[0].state, TrialState::Failed { error: "last".into() });
    assert_eq!(bench.job().state, JobState::Failed);
}

#[test]
fn three_errors_on_one_host_alone_are_the_hosts() {
    let mut bench = Bench::with_job(1, 1);
    bench.apply(Command::RevokeHost { to: ReplyTo(1), host: OTHER });
    for _ in 0..3 {
        let lease = bench.lease(HOST);
        fail(&mut bench, HOST, lease.id, sojourn_protocol::report::FailureKind::Died, "crash");
    }
    assert_eq!(bench.trials()[0].state, TrialState::Running);
    assert!(bench.ask(HOST, request(1, Vec::new())).leases.is_empty(), "it rests");
    assert!(bench.job().waiting.is_some_and(|why| why.contains("crash")));
    bench.now += 10_000;
    bench.apply(Command::Tick);
    assert_eq!(bench.ask(HOST, request(1, Vec::new())).leases.len(), 1, "and tries again");
}

#[test]
fn a_non_finite_loss_is_confirmed_by_a_second_host() {
    use sojourn_protocol::report::FailureKind::NonFinite;
    let mut bench = Bench::with_job(1, 1);
    let lease = bench.lease(HOST);
    fail(&mut bench, HOST, lease.id, NonFinite, "loss is NaN");
    assert_eq!(bench.trials()[0].state, TrialState::Running);
    let lease = bench.lease(OTHER);
    fail(&mut bench, OTHER, lease.id, NonFinite, "loss is NaN");
    assert_eq!(bench.trials()[0].state, TrialState::Failed { error: "loss is NaN".into() });

    let mut alone = Bench::with_job(1, 1);
    alone.apply(Command::RevokeHost { to: ReplyTo(1), host: OTHER });
    let lease = alone.lease(HOST);
    fail(&mut alone, HOST, lease.id, NonFinite, "loss is NaN");
    assert_eq!(alone.trials()[0].state, TrialState::Failed { error: "loss is NaN".into() });
}

#[test]
fn errors_that_were_the_jobs_put_no_host_to_rest() {
    use sojourn_protocol::report::FailureKind::{NonFinite, Trainer};
    let mut bench = Bench::with_job(8, 1);
    for _ in 0..4 {
        for host in [HOST, OTHER] {
            let lease = bench.lease(host);
            fail(&mut bench, host, lease.id, NonFinite, "the loss is NaN");
        }
    }
    let lease = bench.lease(HOST);
    fail(&mut bench, HOST, lease.id, Trainer, "odd");
    assert_eq!(bench.ask(HOST, request(1, Vec::new())).leases.len(), 1, "it goes on");
}

#[test]
fn errors_at_an_evaluation_that_were_the_jobs_end_a_hosts_rest_too() {
    use sojourn_protocol::report::FailureKind::{Died, Trainer};
    let mut bench = Bench::with_job(1, 1);
    for _ in 0..2 {
        let lease = bench.lease(HOST);
        bench.finish(HOST, &lease);
    }
    // Alone, its trainer dies three times over the evaluation, and it is put to rest.
    bench.now += 10_001;
    for _ in 0..3 {
        let lease = bench.lease(HOST);
        evaluation(&lease);
        fail(&mut bench, HOST, lease.id, Died, "odd");
    }
    assert!(bench.ask(HOST, request(1, Vec::new())).leases.is_empty(), "it rests");
    // Two others fail it as well: it was the job's fault.
    let token_sha256 = Digest::of(b"c");
    bench.events(Command::Enrol { to: ReplyTo(1), name: "c".into(), token_sha256 });
    for host in [OTHER, sojourn_protocol::ids::HostId(3)] {
        let lease = bench.lease(host);
        fail(&mut bench, host, lease.id, Trainer, "odd");
    }
    assert_eq!(bench.job().state, JobState::Failed);
    bench.submit(2, 1, false).unwrap();
    assert_eq!(bench.ask(HOST, request(1, Vec::new())).leases.len(), 1, "it works again");
}

#[test]
fn numbers_that_can_not_be_are_not_believed() {
    for change in 0..3 {
        let mut bench = Bench::with_job(1, 1);
        let lease = bench.lease(HOST);
        let mut report = done(&lease);
        let Outcome::Trained(trained) = &mut report.outcome else { panic!() };
        match change {
            0 => trained.sums.rows += 1,
            1 => trained.sums.correct = Some(trained.sums.rows + 1),
            _ => trained.sums.loss = 1e308,
        }
        let Ok(Answer::Report(answer)) = bench.report(HOST, report) else { panic!() };
        assert!(
            matches!(answer.state, ReportState::Ended(ReportEnd::Rejected { .. })),
            "{answer:?}"
        );
    }
}

/// Shards of 400 MB.
fn heavy() -> DataManifest {
    let mut data = data();
    data.train.iter_mut().for_each(|shard| shard.blob.bytes = 400 << 20);
    data
}

#[test]
fn a_slow_download_keeps_its_lease_while_bytes_come() {
    let mut bench = Bench::with_job_on(heavy(), 1, 1, "");
    let lease = bench.lease(HOST);
    let beat = |bench: &mut Bench, fetched| {
        bench.now += 5_000;
        let state = HeldState::Fetching { fetched };
        let holding = vec![sojourn_protocol::api::Held::new(lease.id, state)];
        let reported = Vec::new();
        bench.events(Command::Heartbeat {
            to: ReplyTo(1),
            host: HOST,
            request: HeartbeatRequest::new(holding, reported),
        })
    };
    for megabytes in 1..200 {
        assert!(beat(&mut bench, megabytes << 20).is_empty());
    }
    let ended = (0..100).flat_map(|_| beat(&mut bench, 199 << 20)).collect::<Vec<_>>();
    assert_eq!(ended, [Event::LeaseEnded { lease: lease.id, end: LeaseEnd::Overdue }]);
}

#[test]
fn a_unit_that_waits_for_a_shard_keeps_its_lease_while_bytes_come() {
    let mut bench = Bench::with_job_on(heavy(), 1, 1, "");
    let lease = bench.lease(HOST);
    let beat = |bench: &mut Bench, fetched| {
        bench.now += 5_000;
        let state = HeldState::Awaiting { done: 1, of: 3, fetched };
        let holding = vec![sojourn_protocol::api::Held::new(lease.id, state)];
        let reported = Vec::new();
        bench.events(Command::Heartbeat {
            to: ReplyTo(1),
            host: HOST,
            request: HeartbeatRequest::new(holding, reported),
        })
    };
    for megabytes in 1..400 {
        assert!(beat(&mut bench, megabytes << 20).is_empty());
    }
    let ended = (0..100).flat_map(|_| beat(&mut bench, 399 << 20)).collect::<Vec<_>>();
    assert_eq!(ended, [Event::LeaseEnded { lease: lease.id, end: LeaseEnd::Overdue }]);
}

#[test]
fn a_slow_upload_keeps_its_lease_while_bytes_go() {
    // Of 28 MB, at 10 kB/s.
    let text = "name = \"t\"\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\n[[model]]\narch = \"mlp\"\n\
                hidden = [1000000]\n[training]\nepochs = 1\noptimizer = \"sgd\"\n";
    let mut bench = Bench::new();
    bench.begin_with(data(), jobfile::parse(text).unwrap());
    let lease = bench.lease(HOST);
    let beat = |bench: &mut Bench, sent| {
        bench.now += 5_000;
        let state = HeldState::Sending { sent };
        let holding = vec![sojourn_protocol::api::Held::new(lease.id, state)];
        let reported = Vec::new();
        bench.events(Command::Heartbeat {
            to: ReplyTo(1),
            host: HOST,
            request: HeartbeatRequest::new(holding, reported),
        })
    };
    for sent in 1..400 {
        assert!(beat(&mut bench, sent * 50_000).is_empty());
    }
    // Sent again and again, but never further.
    let ended = (0..150).flat_map(|sent| beat(&mut bench, sent)).collect::<Vec<_>>();
    assert_eq!(ended, [Event::LeaseEnded { lease: lease.id, end: LeaseEnd::Overdue }]);
}

#[test]
fn a_reproducible_trial_stays_in_its_class_and_says_that_it_waits() {
    let mut bench = Bench::with_job(1, 1);
    let lease = bench.lease(HOST);
    bench.finish(HOST, &lease);
    let mut foreign = request(1, Vec::new());
    foreign.inventory = Some(inventory("another class"));
    assert!(bench.ask(OTHER, foreign).leases.is_empty());
    bench.apply(Command::RevokeHost { to: ReplyTo(1), host: HOST });
    let why = bench.trials()[0].waiting.clone().unwrap();
    assert!(why.contains("no host of numeric class"), "{why}");
    assert!(bench.job().waiting.is_some());
}

#[test]
fn work_for_an_idle_slot_is_not_handed_out_ahead_to_a_busy_one() {
    let mut bench = Bench::with_job(2, 1);
    let mut waits = request(1, Vec::new());
    waits.wait = Millis::from_secs(20);
    let first = bench.lease(HOST);
    let second = bench.lease(OTHER);
    // The busy host asks ahead and is told to wait; the idle one asks and waits.
    let mut ahead = request(1, vec![(first.id, HeldState::Waiting)]);
    ahead.demand[0].idle = 0;
    ahead.wait = waits.wait;
    bench.apply(Command::Ask { to: ReplyTo(5), host: HOST, request: ahead });
    bench.report(OTHER, done(&second)).unwrap();
    bench.apply(Command::Ask { to: ReplyTo(6), host: OTHER, request: waits });
    let answer = bench.answer(Command::TakeAssimilation { to: ReplyTo(1), losses: true });
    let Ok(Answer::Assimilation(Some(unit))) = answer else { panic!("{answer:?}") };
    let effects = bench.apply(Command::OfferAssimilated {
        to: ReplyTo(1),
        lease: unit.lease,
        version: unit.version,
        checkpoint: unit.trained.checkpoint,
        merged: None,
    });
    let woken: Vec<ReplyTo> = effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Reply { to, .. } if *to != ReplyTo(1) => Some(*to),
            _ => None,
        })
        .collect();
    assert_eq!(woken, [ReplyTo(6)], "{effects:?}");
}

#[test]
fn an_ask_is_held_open_until_there_is_work_or_its_time_is_up() {
    let mut bench = Bench::new();
    let mut waits = request(1, Vec::new());
    waits.wait = Millis(5_000);
    let ask = |to, request| Command::Ask { to: ReplyTo(to), host: HOST, request };
    assert!(bench.apply(ask(5, waits.clone())).is_empty());
    // A newer ask takes the older one's place.
    let effects = bench.apply(ask(6, waits.clone()));
    assert!(matches!(effects[..], [Effect::Reply { to: ReplyTo(5), .. }]), "{effects:?}");
    bench.now += 5_000;
    assert_eq!(bench.core.next_deadline(), Some(UnixMillis(bench.now)));
    let effects = bench.apply(Command::Tick);
    assert!(matches!(effects[..], [Effect::Reply { to: ReplyTo(6), .. }]), "{effects:?}");
    bench.apply(ask(7, waits));
    bench.apply(Command::Hangup { to: ReplyTo(7) });
    for blob in crate::support::data().blobs() {
        bench.apply(Command::Published { to: ReplyTo(1), blob });
    }
    bench.submit(1, 1, false).unwrap();
    assert_eq!(bench.job().leases_live, 0, "nothing for one who has hung up");
}

#[test]
fn a_cancelled_job_takes_its_leases_and_results_with_it() {
    let mut bench = Bench::with_job(2, 1);
    let waiting = bench.lease(HOST);
    bench.report(HOST, done(&waiting)).unwrap();
    let live = bench.lease(OTHER);
    let ended = bench.events(Command::Cancel { to: ReplyTo(1), job: JOB });
    assert_eq!(
        ended,
        [
            Event::JobCancelled { job: JOB },
            Event::Superseded { lease: waiting.id },
            Event::LeaseEnded { lease: live.id, end: LeaseEnd::Revoked },
        ]
    );
    assert!(bench.assimilate().is_empty());
    assert_eq!(bench.job().state, JobState::Cancelled);
    let again = bench.events(Command::Cancel { to: ReplyTo(1), job: JOB });
    assert!(again.is_empty(), "cancelled once");
}

#[test]
fn a_released_lease_is_free_at_once() {
    let mut bench = Bench::with_job(1, 1);
    let lease = bench.lease(HOST);
    let (to, reason) = (ReplyTo(1), ReleaseReason::from("going down"));
    let leases = vec![lease.id, LeaseId(50)];
    let stranger =
        Command::Release { to, host: OTHER, leases: leases.clone(), reason: reason.clone() };
    assert!(bench.events(stranger).is_empty());
    let own = bench.events(Command::Release { to, host: HOST, leases, reason: reason.clone() });
    let reason = reason.to_string();
    assert_eq!(own, [Event::LeaseEnded { lease: lease.id, end: LeaseEnd::GivenBack { reason } }]);
    assert_eq!(hop(&bench.lease(OTHER)).start, hop(&lease).start);
}

#[test]
fn a_host_that_ends_well_has_no_error_and_one_that_rests_has_a_reason() {
    let mut bench = Bench::with_job(1, 1);
    let mut give_back = |reason: ReleaseReason| {
        let lease = bench.ask(HOST, request(1, Vec::new())).leases.pop().unwrap();
        let leases = vec![lease.id];
        bench.apply(Command::Release { to: ReplyTo(1), host: HOST, leases, reason });
        let query = Query::Hosts;
        let Ok(Answer::Hosts(hosts)) = bench.answer(Command::Query { to: ReplyTo(1), query })
        else {
            panic!("no hosts");
        };
        let host = hosts.into_iter().find(|view| view.host == HOST).unwrap();
        (host.last_error, bench.job().waiting)
    };
    assert_eq!(give_back(ReleaseReason::Stopping).0, None);
    assert_eq!(give_back("the disk is full".into()).0.unwrap(), "gave work back: the disk is full");
    assert_eq!(give_back(ReleaseReason::Paused).0, None, "it says what was last");
    let (_, waiting) = give_back("the disk is full".into());
    let waiting = waiting.unwrap();
    let why =
        "is given no work for a while, as it has given back unit after unit: the disk is full";
    assert!(waiting.starts_with("host 1 (`") && waiting.ends_with(why), "{waiting}");
}

fn host_view(bench: &mut Bench, host: HostId) -> HostView {
    let query = Query::Hosts;
    let Ok(Answer::Hosts(hosts)) = bench.answer(Command::Query { to: ReplyTo(1), query }) else {
        panic!("no hosts");
    };
    hosts.into_iter().find(|view| view.host == host).unwrap()
}

#[test]
fn a_host_that_was_stopped_is_away_at_once_and_the_job_says_that_it_waits() {
    let mut bench = Bench::with_job(1, 1);
    let lease = bench.lease(HOST);
    assert_eq!(host_view(&mut bench, HOST).state, HostState::Live);
    assert_eq!(bench.job().waiting, None);
    let (to, reason) = (ReplyTo(1), ReleaseReason::Stopping);
    bench.apply(Command::Release { to, host: HOST, leases: vec![lease.id], reason });
    // The last request of a client that ends wants nothing.
    for host in [OTHER, HOST] {
        bench.ask(host, WorkRequest { demand: Vec::new(), ..request(0, Vec::new()) });
    }
    let gone = host_view(&mut bench, HOST);
    assert_eq!((gone.state, gone.stopped), (HostState::Away, true));
    let waiting = bench.job().waiting.unwrap();
    assert_eq!(waiting, "no host is in contact; start one with `sojourn client`");
    // It is started again.
    bench.lease(HOST);
    let back = host_view(&mut bench, HOST);
    assert_eq!((back.state, back.stopped), (HostState::Live, false));
    assert_eq!(bench.job().waiting, None);
}

#[test]
fn a_host_that_lends_too_little_disk_hears_why_it_is_given_nothing() {
    let mut bench = Bench::with_job(1, 1);
    let lends = |cache| {
        let inventory = Inventory { cache: Some(cache), ..inventory("class") };
        WorkRequest { inventory: Some(inventory), ..request(1, Vec::new()) }
    };
    for cache in [0, 100] {
        let answer = bench.ask(HOST, lends(cache));
        let reason = answer.waiting.unwrap();
        assert!(reason.contains("lends too little disk for any unit"), "{reason}");
        assert_eq!(host_view(&mut bench, HOST).waiting, Some(reason));
    }
    let answer = bench.ask(HOST, lends(1_000_000));
    assert_eq!((answer.leases.len(), answer.waiting), (1, None));
    assert_eq!(host_view(&mut bench, HOST).waiting, None);
}

#[test]
fn a_trial_that_diverges_is_no_error_of_its_host() {
    let mut bench = Bench::with_job(2, 1);
    let lease = bench.lease(HOST);
    fail(&mut bench, HOST, lease.id, FailureKind::NonFinite, "the loss is NaN");
    let view = host_view(&mut bench, HOST);
    assert_eq!((view.failures, view.last_error), (1, None));
    let lease = bench.lease(HOST);
    fail(&mut bench, HOST, lease.id, FailureKind::Trainer, "no such operator");
    let error = host_view(&mut bench, HOST).last_error;
    assert_eq!(error.as_deref(), Some("no such operator"));
}

#[test]
fn a_clock_that_jumps_back_harms_nothing() {
    let mut bench = Bench::with_job(1, 1);
    let lease = bench.lease(HOST);
    bench.now = 1;
    bench.apply(Command::Tick);
    assert_eq!(bench.job().leases_live, 1);
    let finished = events(bench.apply(Command::Report {
        to: ReplyTo(1),
        host: HOST,
        report: done(&lease),
        uploaded: Some(trained(&lease, 3).checkpoint),
    }));
    assert_eq!(finished.len(), 1);
    bench.assimilate();
    assert_eq!(bench.job().hops, 1);
}
