//! Trials whose results are merged (see `docs/internals/merging.md`).

use crate::support::{
    Bench, HOST, JOB, OTHER, demand, done, evaluated, hop, inventory, offer, request, trained,
};
use sojourn_core::{Answer, By, Command, Core, Event, LeaseEnd, MergeFault, MergeMode, ReplyTo};
use sojourn_protocol::{
    api::{HeartbeatRequest, Held, HeldState, NewTrial, SearchRequest, WorkRequest},
    digest::Digest,
    ids::{HostId, JobId, LeaseId, TrialId, Version},
    inventory::{CPU, Device, Inventory},
    report::{Outcome, Report},
    spec::{
        Choices, DEFAULT_MERGE_IN_FLIGHT, LocalSteps, MergeSpec, OrderChoice, PlacementSpec,
        RuleSpec,
    },
    unit::{Base, Canary, Flush, Lease, Unit},
    view::MergeRecord,
};

fn merging() -> PlacementSpec {
    PlacementSpec::new(OrderChoice::Merge, true, 1)
}

/// Where the server chooses; merged by a rule that gathers nothing.
fn auto() -> PlacementSpec {
    let merge = Some(MergeSpec { rule: RuleSpec::VC_ASGD, ..MergeSpec::default() });
    PlacementSpec { merge, merge_below: 900, ..PlacementSpec::new(OrderChoice::Auto, true, 1) }
}

fn ask(bench: &mut Bench, host: HostId, slots: u32, idle: u32) -> Vec<Lease> {
    let live = bench.core.state().hosts[&host].live.iter();
    let holding = live.map(|lease| Held::new(*lease, HeldState::Running { done: 0, of: 3 }));
    let (demand, holding) = (vec![demand(slots, idle, idle)], holding.collect());
    bench.ask(host, WorkRequest { demand, holding, ..request(0, Vec::new()) }).leases
}

fn report(bench: &mut Bench, host: HostId, lease: &Lease) -> Vec<Event> {
    let report = done(lease);
    let Outcome::Trained(trained) = &report.outcome else { panic!("{report:?}") };
    let uploaded = Some(trained.checkpoint);
    bench.events(Command::Report { to: ReplyTo(1), host, report, uploaded })
}

fn merged(events: &[Event]) -> Vec<(LeaseId, Version, MergeRecord)> {
    let merged = events.iter().filter_map(|event| match event {
        Event::Assimilated { lease, version, merged: Some(merged), .. } => {
            Some((*lease, *version, *merged))
        }
        _ => None,
    });
    merged.collect()
}

fn orders(events: &[Event]) -> Vec<MergeMode> {
    let orders = events.iter().filter_map(|event| match event {
        Event::TrialOrdered { order, .. } => Some(*order),
        _ => None,
    });
    orders.collect()
}

#[test]
fn shards_of_one_epoch_train_at_once_and_results_merge_as_they_arrive() {
    let mut bench = Bench::with_order(&merging(), 1, 1);
    let mut leases = ask(&mut bench, HOST, 3, 3);
    leases.extend(ask(&mut bench, OTHER, 3, 3));
    assert_eq!(leases.len(), 4, "one for each shard");
    let mut shards: Vec<u32> = leases.iter().map(|lease| hop(lease).start.shard.0).collect();
    shards.sort_unstable();
    assert_eq!(shards, [0, 1, 2, 3]);
    assert!(leases.iter().all(|lease| matches!(hop(lease).base, Base::Initial { .. })));
    for (n, lease) in (0u32..).zip(&leases) {
        let host = if n < 3 { HOST } else { OTHER };
        let mut events = report(&mut bench, host, lease);
        events.extend(bench.assimilate());
        let all = merged(&events);
        let [(of, version, record)] = all[..] else { panic!("{events:?}") };
        assert_eq!((of, version), (lease.id, Version(n + 1)));
        assert_eq!((record.base, record.staleness), (Version(0), u64::from(n)));
        assert_eq!(record.in_flight, 4);
        assert_eq!(record.flush, if n == 3 { Flush::Now } else { Flush::ByRule }, "{n}");
        assert_eq!(record.from.is_some(), n > 0);
    }
    let trial = &bench.core.state().jobs[&JOB].trials[0];
    assert!(trial.chain.is_done());
    // 20, 12, 9 and 3 rows in batches of 8.
    assert_eq!(trial.chain.step(), 3 + 2 + 2 + 1);
    assert_eq!(trial.history.last().unwrap().end.step, 8);
    assert_eq!(trial.evaluations.len(), 1);
}

#[test]
fn results_that_come_together_are_merged_one_after_the_other() {
    let mut bench = Bench::with_order(&merging(), 1, 1);
    let leases = ask(&mut bench, HOST, 4, 4);
    for lease in leases.iter().rev() {
        report(&mut bench, HOST, lease);
    }
    let mut order = Vec::new();
    for _ in 0..4 {
        order.extend(merged(&bench.assimilate()).into_iter().map(|(lease, _, _)| lease));
    }
    let reported: Vec<LeaseId> = leases.iter().rev().map(|lease| lease.id).collect();
    assert_eq!(order, reported);
}

#[test]
fn a_result_that_comes_late_is_merged_if_it_is_the_first_of_its_shard() {
    let mut bench = Bench::with_order(&merging(), 1, 1);
    let late = ask(&mut bench, HOST, 1, 1).remove(0);
    let too_late = ask(&mut bench, OTHER, 1, 1).remove(0);
    bench.now += 30_000;
    let events = bench.events(Command::Tick);
    let ended = |event: &&Event| matches!(event, Event::LeaseEnded { end: LeaseEnd::Silent, .. });
    assert_eq!(events.iter().filter(ended).count(), 2, "{events:?}");
    // Both shards go to somebody else, who hasn't ended when the first one's result comes.
    let again = ask(&mut bench, HostId(2), 4, 4);
    let other = |late: &Lease| {
        let of = |lease: &&Lease| hop(lease).start.shard == hop(late).start.shard;
        again.iter().find(of).unwrap().clone()
    };
    assert_eq!(merged(&bench.finish(OTHER, &other(&too_late))).len(), 1);
    let events = bench.finish(HOST, &late);
    let all = merged(&events);
    let [(lease, version, record)] = all[..] else { panic!("{events:?}") };
    assert_eq!(
        (lease, version, record.base, record.staleness),
        (late.id, Version(2), Version(0), 1)
    );
    let revoked = Event::LeaseEnded { lease: other(&late).id, end: LeaseEnd::Revoked };
    assert!(events.contains(&revoked), "{events:?}");
    let events = bench.finish(HOST, &too_late);
    assert_eq!(merged(&events), []);
}

#[test]
fn of_two_results_of_a_shard_the_second_is_superseded() {
    let mut bench = Bench::with_order(&merging(), 1, 1);
    let late = ask(&mut bench, HOST, 1, 1).remove(0);
    bench.now += 30_000;
    bench.events(Command::Tick);
    let again = ask(&mut bench, OTHER, 4, 4);
    let again = again.iter().find(|again| hop(again).start.shard == hop(&late).start.shard);
    let again = again.unwrap();
    report(&mut bench, HOST, &late);
    report(&mut bench, OTHER, again);
    let events = bench.assimilate();
    assert_eq!(merged(&events)[0].0, late.id);
    assert!(events.contains(&Event::Superseded { lease: again.id }), "{events:?}");
}

#[test]
fn a_part_of_a_shard_is_merged_and_the_rest_goes_on_from_there() {
    let mut bench = Bench::with_order(&merging(), 1, 1);
    let leases = ask(&mut bench, HOST, 4, 4);
    let long = leases.iter().find(|lease| hop(lease).start.shard.0 == 0).unwrap();
    let outcome = Outcome::Trained(trained(long, 2));
    bench.report(HOST, Report { lease: long.id, outcome }).unwrap();
    let all = merged(&bench.assimilate());
    assert_eq!(all[0].2.flush, Flush::ByRule);
    let rest = ask(&mut bench, OTHER, 1, 1).remove(0);
    let start = hop(&rest).start;
    assert_eq!((start.shard.0, start.batch, start.step), (0, 2, 2));
    assert_eq!(hop(&rest).base.version(), Version(1));
}

#[test]
fn the_version_that_a_lease_began_from_is_kept_as_long_as_it_may_be_used() {
    let mut bench = Bench::with_order(&merging(), 1, 2);
    for lease in ask(&mut bench, HOST, 4, 4) {
        bench.finish(HOST, &lease);
    }
    let work = ask(&mut bench, OTHER, 8, 8);
    let hops: Vec<&Lease> = work.iter().filter(|of| matches!(of.unit, Unit::Train(_))).collect();
    let [first, others @ ..] = &hops[..] else { panic!("{work:?}") };
    let base = hop(first).base.blob().unwrap().sha256;
    assert_eq!(others.len(), 3);
    for lease in others {
        assert_eq!(merged(&bench.finish(OTHER, lease)).len(), 1);
    }
    let trial = bench.core.state().trial(JOB, TrialId(0)).unwrap();
    assert!(trial.version.0 > 5 && trial.checkpoint.unwrap().sha256 != base);
    assert!(bench.core.state().blobs.references(&base) > 0, "a lease refers to it");
    bench.finish(OTHER, first);
    // The best epoch isn't known yet: what is to be evaluated refers to the same one.
    let trial = bench.core.state().trial(JOB, TrialId(0)).unwrap();
    assert!(trial.merging.as_ref().unwrap().bases.is_empty());
}

#[test]
fn hosts_of_another_numeric_class_wait_from_the_first_lease_on() {
    let mut bench = Bench::with_order(&merging(), 1, 1);
    let lease = ask(&mut bench, HOST, 1, 1).remove(0);
    let inventory = Some(inventory("other class"));
    let mut of_other = WorkRequest { inventory, ..request(1, Vec::new()) };
    assert_eq!(bench.ask(OTHER, of_other.clone()).leases, []);
    let release =
        Command::Release { to: ReplyTo(1), host: HOST, leases: vec![lease.id], reason: "x".into() };
    bench.events(release);
    of_other.inventory = None;
    assert_eq!(bench.ask(OTHER, of_other).leases.len(), 1, "nothing was trained in the first one");
}

fn running(lease: &Lease) -> Vec<Held> {
    vec![Held::new(lease.id, HeldState::Running { done: 0, of: 3 })]
}

#[test]
fn too_few_trials_merge_and_go_back_to_hop_order_when_hosts_leave() {
    let mut bench = Bench::with_order(&auto(), 1, 3);
    let to = ReplyTo(1);
    let is_merging = |bench: &Bench| {
        let trial = bench.core.state().trial(JOB, TrialId(0)).unwrap();
        trial.merging.as_ref().map(|merging| merging.draining)
    };
    assert_eq!(is_merging(&bench), Some(false), "one trial is too few for two slots");
    let first = ask(&mut bench, HOST, 1, 1).remove(0);
    let second = ask(&mut bench, OTHER, 1, 1).remove(0);
    assert_ne!(hop(&first).start.shard, hop(&second).start.shard);
    // OTHER falls silent, and with it half of the slots; what HOST is at is settled first.
    let mut events = Vec::new();
    for _ in 0..4 {
        bench.now += 6_000;
        let holding = running(&first);
        events.extend(bench.events(Command::Heartbeat {
            to,
            host: HOST,
            request: HeartbeatRequest::new(holding, vec![]),
        }));
    }
    assert_eq!(orders(&events), [MergeMode::Draining], "{events:?}");
    assert_eq!(ask(&mut bench, HOST, 1, 1), [], "it hands out nothing");
    let mut events = report(&mut bench, HOST, &first);
    events.extend(bench.assimilate());
    assert_eq!(merged(&events)[0].2.flush, Flush::Now);
    assert_eq!(orders(&events), [MergeMode::Hop], "{events:?}");
    assert_eq!(is_merging(&bench), None);
    bench.work_to_the_end(&[HOST]);
}

#[test]
fn a_host_that_comes_has_a_running_hop_merged_beside_its_own() {
    let mut bench = Bench::with_order(&auto(), 1, 2);
    // Long after the start, when it is known who is there.
    bench.now += 12_000;
    bench.events(Command::RevokeHost { to: ReplyTo(1), host: OTHER });
    let first = ask(&mut bench, HOST, 1, 1).remove(0);
    let slots = vec![demand(3, 2, 2)];
    let holding = running(&first);
    let request = WorkRequest { demand: slots, holding, ..request(0, Vec::new()) };
    let events = bench.events(Command::Ask { to: ReplyTo(1), host: HOST, request });
    assert_eq!(orders(&events), [MergeMode::Merging], "{events:?}");
    let more = ask(&mut bench, HOST, 3, 2);
    assert_eq!(more.len(), 2);
    let mut all = Vec::new();
    for lease in more.iter().chain([&first]) {
        all.extend(merged(&bench.finish(HOST, lease)));
    }
    let ages: Vec<u64> = all.iter().map(|(_, _, merged)| merged.staleness).collect();
    assert_eq!(ages, [0, 1, 2], "all began from one version");
}

#[test]
fn with_enough_trials_nothing_merges() {
    let placement = PlacementSpec { merge_below: 500, ..auto() };
    let mut bench = Bench::with_order(&placement, 2, 1);
    bench.work_to_the_end(&[HOST, OTHER]);
    let trials = &bench.core.state().jobs[&JOB].trials;
    let mut hops = trials.iter().flat_map(|trial| &trial.history);
    assert!(hops.all(|hop| hop.merged.is_none()));
}

#[test]
fn what_is_merged_is_the_same_after_a_restart() {
    let mut bench = Bench::with_order(&merging(), 1, 2);
    let leases = ask(&mut bench, HOST, 3, 3);
    bench.finish(HOST, &leases[0]);
    report(&mut bench, HOST, &leases[1]);
    let config = *bench.core.config();
    let again = Core::from_snapshot(&bench.core.snapshot().unwrap(), config).unwrap();
    assert_eq!(again.state(), bench.core.state());
    bench.core = again;
    bench.events(Command::Started);
    assert_eq!(merged(&bench.assimilate())[0].0, leases[1].id);
    bench.work_to_the_end(&[HOST, OTHER]);
}

#[test]
fn with_local_steps_by_speed_a_slow_host_trains_a_part_and_another_the_rest() {
    let placement = PlacementSpec { local_steps: LocalSteps::BySpeed, ..merging() };
    let mut bench = Bench::with_order(&placement, 1, 1);
    let fast = vec![Device::new(CPU, Digest::of(b"class"), 3e9)];
    let inventory = Some(Inventory { devices: fast, ..inventory("class") });
    bench.ask(OTHER, WorkRequest { inventory, ..request(0, Vec::new()) });
    // It has left them to the fast one for long enough.
    bench.now += 1_000;
    let slow = ask(&mut bench, HOST, 4, 4);
    let part = slow.iter().find(|lease| hop(lease).start.shard.0 == 0).unwrap();
    // A third of three batches.
    assert_eq!((hop(part).until, hop(part).to_train()), (Some(1), 1));
    let refused = Report { lease: part.id, outcome: Outcome::Trained(trained(part, 1)) };
    let mut too_far = refused.clone();
    let Outcome::Trained(result) = &mut too_far.outcome else { panic!("{too_far:?}") };
    (result.end.batch, result.end.step, result.sums.rows) = (2, 2, 16);
    let uploaded = Some(result.checkpoint);
    let report = Command::Report { to: ReplyTo(1), host: HOST, report: too_far, uploaded };
    let events = bench.events(report);
    let reason = "it was to end before batch 1 of shard 0";
    let refused =
        |event: &Event| matches!(event, Event::Rejected { reason: of, .. } if of == reason);
    assert!(events.iter().any(refused), "{events:?}");
    let again = ask(&mut bench, HOST, 4, 4);
    assert_eq!(merged(&bench.finish(HOST, &again[0])).len(), 1);
    let rest = ask(&mut bench, OTHER, 1, 1).remove(0);
    assert_eq!((hop(&rest).start.batch, hop(&rest).until), (1, None));
    bench.work_to_the_end(&[HOST, OTHER]);
}

#[test]
fn a_merge_is_remembered_as_it_was_asked_for_though_more_is_in_flight_when_it_is_offered() {
    let mut bench = Bench::with_order(&merging(), 1, 1);
    let lease = ask(&mut bench, HOST, 1, 1).remove(0);
    report(&mut bench, HOST, &lease);
    let answer = bench.answer(Command::TakeAssimilation { to: ReplyTo(1), losses: true });
    let Ok(Answer::Assimilation(Some(unit))) = answer else { panic!("{answer:?}") };
    assert_eq!(ask(&mut bench, OTHER, 3, 3).len(), 3);
    let events = bench.events(offer(&unit));
    assert_eq!(merged(&events)[0].2.in_flight, unit.merge.unwrap().in_flight);
}

#[test]
fn the_first_validation_shard_is_looked_at_where_a_job_asks_for_it() {
    for canary in [None, Some(2.5)] {
        let merge = Some(MergeSpec { canary, ..MergeSpec::default() });
        let mut bench = Bench::with_order(&PlacementSpec { merge, ..merging() }, 1, 1);
        let lease = ask(&mut bench, HOST, 1, 1).remove(0);
        report(&mut bench, HOST, &lease);
        let take = |losses| Command::TakeAssimilation { to: ReplyTo(1), losses };
        if canary.is_some() {
            assert_eq!(bench.answer(take(false)), Ok(Answer::Assimilation(None)));
        }
        let answer = bench.answer(take(canary.is_some()));
        let Ok(Answer::Assimilation(Some(unit))) = answer else { panic!("{answer:?}") };
        let shard = bench.core.state().jobs[&JOB].data.valid[0];
        let wanted = canary.map(|most| Canary { shard, most });
        assert_eq!(unit.merge.unwrap().canary, wanted);
    }
}

#[test]
fn no_more_units_of_a_trial_are_in_flight_than_the_job_allows() {
    let placement = PlacementSpec { merge_in_flight: Some(2), ..merging() };
    let mut bench = Bench::with_order(&placement, 1, 1);
    let first = ask(&mut bench, HOST, 4, 4);
    assert_eq!(first.len(), 2);
    assert_eq!(ask(&mut bench, OTHER, 4, 4), []);
    assert_eq!(merged(&bench.finish(HOST, &first[0])).len(), 1);
    let next = ask(&mut bench, OTHER, 4, 4);
    assert_eq!(next.len(), 1, "one has been merged");
    // A speculative lease would be no help: another shard waits.
    assert_eq!(bench.core.state().jobs[&JOB].trials[0].alone().count(), 0);
    bench.work_to_the_end(&[HOST, OTHER]);
    // Where the server chooses, submission writes a limit down.
    let mut bench = Bench::with_order(&auto(), 1, 1);
    let limit = bench.core.state().jobs[&JOB].spec.placement.merge_in_flight;
    assert_eq!(limit, Some(DEFAULT_MERGE_IN_FLIGHT));
    bench.work_to_the_end(&[HOST]);
}

/// Has one host train and another one evaluate what the epoch before ended with, until the trial has ended; with this loss
/// for each row after each epoch.
fn train_with_losses(bench: &mut Bench, losses: &[f64]) -> Vec<Event> {
    let mut events = Vec::new();
    let mut evaluations = losses.iter();
    // Long after the start, when it is known who is there.
    bench.now += 12_000;
    for _ in 0..40 {
        if bench.core.state().jobs[&JOB].trials[0].end.is_some() {
            return events;
        }
        let hops = ask(bench, HOST, 4, 4);
        for lease in ask(bench, OTHER, 1, 1).iter().chain(&hops) {
            let host = if hops.contains(lease) { HOST } else { OTHER };
            let Unit::Evaluate(evaluation) = &lease.unit else {
                events.extend(bench.finish(host, lease));
                continue;
            };
            let mut result = evaluated(evaluation, 1);
            let loss = evaluations.next().unwrap();
            for sums in &mut result.shards {
                sums.loss = loss * sums.rows as f64;
            }
            let report = Report { lease: lease.id, outcome: Outcome::Evaluated(result) };
            events.extend(bench.events(Command::Report {
                to: ReplyTo(1),
                host,
                report,
                uploaded: None,
            }));
        }
    }
    panic!("the trial goes on: {events:?}");
}

#[test]
fn a_trial_whose_validation_loss_rises_too_far_goes_back_to_hop_order() {
    let mut bench = Bench::with_order(&auto(), 1, 4);
    let events = train_with_losses(&mut bench, &[1.0, 1.4, 0.8, 1.0]);
    assert_eq!(orders(&events), [], "it merges to the end");
    let mut bench = Bench::with_order(&auto(), 1, 4);
    let events = train_with_losses(&mut bench, &[1.0, 1.6, 1.0, 1.0]);
    assert_eq!(orders(&events), [MergeMode::Draining, MergeMode::Hop], "{events:?}");
    let drained = Event::TrialOrdered {
        job: JOB,
        trial: TrialId(0),
        order: MergeMode::Draining,
        reason: Some(MergeFault::LossRose { epoch: 2, loss: 1.6, best: 1.0 }),
    };
    assert!(events.contains(&drained), "{events:?}");
    // A job that asks for merging is merged whatever comes of it.
    let mut bench = Bench::with_order(&merging(), 1, 4);
    let events = train_with_losses(&mut bench, &[1.0, 1.6, 1.0, 1.0]);
    assert_eq!(orders(&events), []);
}

#[test]
fn a_late_result_that_nobody_sends_is_forgotten_with_its_lease() {
    let mut bench = Bench::with_order(&merging(), 1, 2);
    ask(&mut bench, HOST, 1, 1);
    // Its lease runs out, and nothing is merged for longer than leases are remembered.
    let silent = bench.core.config().lease_term.0 * 20;
    bench.now += silent;
    bench.events(Command::Tick);
    let trial = bench.core.state().trial(JOB, TrialId(0)).unwrap();
    let merging = trial.merging.as_ref().unwrap();
    assert_eq!(merging.units.values().map(|unit| unit.late.len()).sum::<usize>(), 1);
    bench.now += bench.core.config().remember_leases.0 + 1;
    bench.submit(1, 1, true).unwrap();
    bench.submit(1, 2, true).unwrap();
    assert_eq!(bench.core.check_invariants(), Ok(()));
    let snapshot = bench.core.snapshot().unwrap();
    let again = Core::from_snapshot(&snapshot, *bench.core.config()).unwrap();
    assert_eq!(again.check_invariants(), Ok(()));
    let trial = bench.core.state().trial(JOB, TrialId(0)).unwrap();
    assert!(trial.merging.as_ref().unwrap().bases.is_empty(), "its base is kept for nobody");
}

#[test]
fn a_job_that_is_paused_leaves_its_slots_to_merges_of_others() {
    let mut bench = Bench::with_order(&auto(), 1, 2);
    // Long after the start, when it is known who is there.
    bench.now += 12_000;
    for host in [HOST, OTHER] {
        ask(&mut bench, host, 1, 0);
    }
    bench.submit(4, 1, true).unwrap();
    let other = JobId(2);
    let merges = |bench: &Bench| {
        let merging = bench.core.state().trial(JOB, TrialId(0)).unwrap().merging.as_ref();
        merging.is_some_and(|merging| !merging.draining)
    };
    assert!(!merges(&bench), "there are enough trials for all slots");
    let events = bench.events(Command::Pause { to: ReplyTo(1), job: other, now: true });
    assert_eq!(orders(&events), [MergeMode::Merging], "{events:?}");
    let events = bench.events(Command::Resume { to: ReplyTo(1), job: other });
    assert_eq!(orders(&events), [MergeMode::Hop], "{events:?}");
}

#[test]
fn a_clone_whose_results_are_merged_stays_in_the_class_of_the_other() {
    let mut bench = Bench::with_order(&merging(), 1, 9);
    while bench.core.state().trial(JOB, TrialId(0)).unwrap().best.is_none() {
        bench.work_once(&[HOST]);
    }
    let add = vec![NewTrial { values: Choices::new(), from: Some(TrialId(0)) }];
    let request = SearchRequest { add, stop: vec![TrialId(0)], ..SearchRequest::default() };
    let (request, by) = (Box::new(request), By::Server);
    let change = Command::ChangeSearch { to: ReplyTo(1), job: JOB, request, by };
    bench.answer(change).unwrap();
    let class = |bench: &Bench| {
        let trial = bench.core.state().trial(JOB, TrialId(1)).unwrap();
        (trial.class, trial.mixed)
    };
    let before = class(&bench);
    assert!(before.0.is_some() && !before.1, "{before:?}");
    // Its first result is the only one in flight.
    let lease = bench.lease(HOST);
    bench.finish(HOST, &lease);
    assert_eq!(class(&bench), before);
}
