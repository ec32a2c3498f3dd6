//! Second copies of running hops: when they are given, who wins, and how much may be done twice.

use crate::support::{Bench, HOST, JOB, OTHER, demand, done, inventory, request, trained_after};
use sojourn_core::{Answer, Command, Effect, Event, LeaseEnd, ReplyTo};
use sojourn_protocol::{
    api::{HeartbeatRequest, Held, HeldState, WorkRequest},
    ids::{HostId, LeaseId, TrialId, Version},
    inventory::{Inventory, Links, Measured, Workload},
    report::{Outcome, Report, ReportEnd, ReportState},
    time::Millis,
    unit::Lease,
};

/// An ask that is held open.
const PARKED: ReplyTo = ReplyTo(7);

fn waiting() -> WorkRequest {
    // It has said what it has.
    WorkRequest { wait: Millis(60_000), inventory: None, ..request(1, Vec::new()) }
}

/// A job of one trial with hops of 10 and 6 s, half of which copies may repeat; the first host has the first.
fn bench() -> (Bench, Lease) {
    bench_of(50, "")
}

fn bench_of(most_copied: u32, more: &str) -> (Bench, Lease) {
    let mut bench = Bench::with_copies(most_copied, 1, 2, more);
    let lease = bench.lease(HOST);
    for host in [HOST, OTHER] {
        let holding = if host == HOST { vec![(lease.id, HeldState::Waiting)] } else { Vec::new() };
        let inventory = Some(measured(&lease, "class"));
        bench.ask(host, WorkRequest { inventory, ..request(0, holding) });
    }
    (bench, lease)
}

/// Of a host that has measured half a second for each row.
fn measured(lease: &Lease, class: &str) -> Inventory {
    let mut inventory = inventory(class);
    inventory.devices[0].measured = vec![Measured {
        workload: Workload::of(lease.unit.context()),
        nanos_per_row: Some(500_000_000),
        peak_memory: None,
        out_of_memory: false,
    }];
    inventory
}

fn runs(bench: &mut Bench, host: HostId, lease: LeaseId, done: u32) {
    let state = HeldState::Running { done, of: 3 };
    let holding = vec![Held::new(lease, state)];
    bench.apply(Command::Heartbeat {
        to: ReplyTo(1),
        host,
        request: HeartbeatRequest::new(holding, Vec::new()),
    });
}

/// The lease in the answer to the host that waits.
fn given(effects: &[Effect]) -> Option<Lease> {
    effects.iter().find_map(|effect| match effect {
        Effect::Reply { to: PARKED, answer: Ok(answer), .. } => match answer.as_ref() {
            Answer::Work(work) => work.leases.first().cloned(),
            _ => None,
        },
        _ => None,
    })
}

/// The other host waits; then time passes second by second until it is given something.
fn wait_for_speculation(bench: &mut Bench, seconds: u64) -> Option<(Lease, u64)> {
    let mut effects = bench.apply(Command::Ask { to: PARKED, host: OTHER, request: waiting() });
    for passed in 0..=seconds {
        if let Some(lease) = given(&effects) {
            return Some((lease, passed));
        }
        bench.now += 1_000;
        effects = bench.apply(Command::Tick);
    }
    None
}

/// Two hosts at one hop.
fn twice() -> (Bench, Lease, Lease) {
    let (mut bench, first) = bench();
    runs(&mut bench, HOST, first.id, 1);
    let (copy, _) = wait_for_speculation(&mut bench, 9).expect("a copy");
    (bench, first, copy)
}

fn end_of(bench: &mut Bench, host: HostId, lease: &Lease) -> ReportState {
    match bench.report(host, done(lease)) {
        Ok(Answer::Report(answer)) => answer.state,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_hop_whose_host_falls_silent_is_done_by_another_before_its_lease_runs_out() {
    let (mut bench, first) = bench();
    runs(&mut bench, HOST, first.id, 1);
    let (copy, passed) = wait_for_speculation(&mut bench, 9).expect("a copy");
    assert!((6..9).contains(&passed), "{passed}: the term is 10 s");
    assert_eq!(copy.unit, first.unit);
    let state = bench.core.state();
    assert_eq!(state.leases[&copy.id].speculative_for, Some(first.id));
    assert_eq!(state.jobs[&JOB].counters.speculative_leases, 1);
}

#[test]
fn a_speculative_grant_says_so_and_why() {
    let (mut bench, first) = bench();
    runs(&mut bench, HOST, first.id, 1);
    bench.apply(Command::Ask { to: PARKED, host: OTHER, request: waiting() });
    bench.now += 8_000;
    let events = bench.events(Command::Tick);
    let [Event::LeaseGranted { speculative_for, why, .. }] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(*speculative_for, Some(first.id));
    let words =
        "second copy of lease 1, for which its trial waits: host 1 hasn't been heard of for 8.0 s";
    assert!(why.starts_with(words), "{why}");
}

#[test]
fn the_first_result_wins_and_the_other_host_is_told_to_drop_it() {
    for copy_wins in [true, false] {
        let (mut bench, first, copy) = twice();
        let (winner, loser) = match copy_wins {
            true => ((OTHER, copy), (HOST, first)),
            false => ((HOST, first), (OTHER, copy)),
        };
        let events = bench.finish(winner.0, &winner.1);
        let lost = Event::LeaseEnded { lease: loser.1.id, end: LeaseEnd::Revoked };
        assert!(events.contains(&lost), "{events:?}");
        let holding = vec![(loser.1.id, HeldState::Running { done: 1, of: 3 })];
        assert_eq!(bench.ask(loser.0, request(0, holding)).drop, [loser.1.id]);
        let late = end_of(&mut bench, loser.0, &loser.1);
        assert_eq!(late, ReportState::Ended(ReportEnd::Superseded));
        bench.work_to_the_end(&[HOST, OTHER]);
    }
}

#[test]
fn both_results_that_come_before_one_is_taken_in_end_as_one_version() {
    let (mut bench, first, copy) = twice();
    assert_eq!(end_of(&mut bench, OTHER, &copy), ReportState::Acknowledged);
    assert_eq!(end_of(&mut bench, HOST, &first), ReportState::Acknowledged);
    let events = bench.assimilate();
    assert!(events.contains(&Event::Superseded { lease: first.id }), "{events:?}");
    assert_eq!(bench.trials()[0].hops, 1);
}

#[test]
fn a_speculative_lease_stays_when_the_first_attempt_is_lost_and_repeats_nothing_then() {
    let (mut bench, first, copy) = twice();
    assert!(bench.core.state().jobs[&JOB].counters.speculative_work > 0);
    runs(&mut bench, OTHER, copy.id, 1);
    bench.now += 5_000;
    let ended = Event::LeaseEnded { lease: first.id, end: LeaseEnd::Silent };
    assert_eq!(bench.events(Command::Tick), [ended]);
    let state = bench.core.state();
    assert_eq!(state.leases[&copy.id].speculative_for, None);
    assert_eq!(state.jobs[&JOB].counters.speculative_work, 0);
    bench.finish(OTHER, &copy);
    assert_eq!(bench.trials()[0].hops, 1);
}

#[test]
fn a_part_is_taken_unless_the_other_host_is_further() {
    for (further, hops_done) in [(true, false), (false, true)] {
        let (mut bench, first, copy) = twice();
        runs(&mut bench, OTHER, copy.id, if further { 2 } else { 0 });
        let part = Report { lease: first.id, outcome: Outcome::Trained(trained_after(&first, 2)) };
        bench.report(HOST, part).unwrap();
        let events = bench.assimilate();
        let taken = events.iter().any(|event| matches!(event, Event::Assimilated { .. }));
        assert_eq!(taken, hops_done, "further: {further}, {events:?}");
        let live = bench.core.state().leases.contains_key(&copy.id);
        assert_eq!(live, further, "the other goes on, or is told to stop");
    }
}

#[test]
fn no_more_than_the_ratio_is_done_twice() {
    // A hop of 3 batches of 10 in all.
    for (percent, copied) in [(0, false), (20, false), (30, true)] {
        let (mut bench, lease) = bench_of(percent, "");
        runs(&mut bench, HOST, lease.id, 1);
        assert_eq!(wait_for_speculation(&mut bench, 9).is_some(), copied, "{percent} %");
    }
}

#[test]
fn another_numeric_class_gets_no_speculative_lease_of_a_reproducible_job() {
    for (reproducible, copied) in [(true, false), (false, true)] {
        let more = format!("[placement]\nreproducible = {reproducible}\n");
        let (mut bench, lease) = bench_of(50, &more);
        runs(&mut bench, HOST, lease.id, 1);
        let inventory = Some(measured(&lease, "another"));
        let request = WorkRequest { inventory, ..waiting() };
        bench.apply(Command::Ask { to: PARKED, host: OTHER, request });
        bench.now += 8_000;
        let effects = bench.apply(Command::Tick);
        assert_eq!(given(&effects).is_some(), copied, "reproducible: {reproducible}");
    }
}

#[test]
fn a_fast_idle_host_takes_over_from_one_that_is_slow() {
    let (mut bench, lease) = bench();
    runs(&mut bench, HOST, lease.id, 0);
    bench.now += 9_000;
    runs(&mut bench, HOST, lease.id, 1);
    let effects = bench.apply(Command::Ask { to: PARKED, host: OTHER, request: waiting() });
    let copy = given(&effects).expect("by its first batch 18 s are left there");
    assert_eq!(copy.unit, lease.unit);
}

#[test]
fn a_trial_that_others_outlast_gets_no_speculative_lease_before_its_last_hops() {
    let (to, job) = (ReplyTo(1), JOB);
    let mut bench = Bench::with_copies(50, 2, 2, "");
    bench.apply(Command::Extend { to, job, epochs: 40, trial: Some(TrialId(1)), reopen: false });
    let wanted = WorkRequest { demand: vec![demand(2, 2, 2)], ..request(2, Vec::new()) };
    let leases = bench.ask(HOST, wanted).leases;
    let inventory = Some(measured(&leases[0], "class"));
    let holding = leases.iter().map(|lease| Held::new(lease.id, HeldState::Waiting));
    let (holding, demand) = (holding.collect(), vec![demand(2, 0, 0)]);
    bench.ask(
        HOST,
        WorkRequest { inventory: inventory.clone(), demand, holding, ..request(0, Vec::new()) },
    );
    let two = vec![crate::support::demand(2, 2, 2)];
    let request = WorkRequest { inventory, demand: two, ..waiting() };
    bench.apply(Command::Ask { to: PARKED, host: OTHER, request });
    bench.now += 8_000;
    let copied: Vec<TrialId> = bench
        .events(Command::Tick)
        .iter()
        .filter_map(|event| match event {
            Event::LeaseGranted { unit, .. } => Some(unit.trial()),
            _ => None,
        })
        .collect();
    assert_eq!(copied, [TrialId(1)]);
}

#[test]
fn hosts_without_an_idle_slot_get_no_speculative_leases() {
    let (mut bench, first) = bench();
    runs(&mut bench, HOST, first.id, 1);
    let request = WorkRequest { demand: vec![demand(1, 0, 1)], ..waiting() };
    bench.apply(Command::Ask { to: PARKED, host: OTHER, request });
    bench.now += 8_000;
    assert_eq!(given(&bench.apply(Command::Tick)), None);
}

/// One trial whose results are merged; the first host is at the last shard of its epoch.
fn last_of_an_epoch() -> (Bench, Lease) {
    let (mut bench, lease) = bench_of(50, "\n[placement]\norder = \"merge\"");
    runs(&mut bench, HOST, lease.id, 1);
    let other = bench.lease(OTHER);
    bench.finish(OTHER, &other);
    runs(&mut bench, HOST, lease.id, 1);
    (bench, lease)
}

#[test]
fn the_last_shard_of_an_epoch_is_trained_twice_where_its_host_falls_silent() {
    let (mut bench, first) = last_of_an_epoch();
    let (copy, passed) = wait_for_speculation(&mut bench, 9).expect("a copy");
    assert!((6..9).contains(&passed), "{passed}: the term is 10 s");
    assert_eq!(copy.unit, first.unit, "of the same shard, from the same version");
    assert_eq!(bench.core.state().leases[&copy.id].speculative_for, Some(first.id));

    let events = bench.finish(OTHER, &copy);
    let lost = Event::LeaseEnded { lease: first.id, end: LeaseEnd::Revoked };
    assert!(events.contains(&lost), "{events:?}");
    let trial = &bench.core.state().jobs[&JOB].trials[0];
    assert_eq!((trial.version, trial.chain.epoch().0), (Version(2), 1), "the next epoch begins");
}

#[test]
fn while_shards_are_left_none_is_trained_twice() {
    let (mut bench, first) = bench_of(50, "\n[placement]\norder = \"merge\"");
    runs(&mut bench, HOST, first.id, 1);
    let (other, _) = wait_for_speculation(&mut bench, 9).expect("the other shard");
    assert_eq!(bench.core.state().leases[&other.id].speculative_for, None);
}

/// The same, over a line that takes so many bytes a second.
fn on_a_line(lease: &Lease, upload: u64) -> Inventory {
    let links = Links { download: Some(1_000_000), upload: Some(upload) };
    Inventory { links, ..measured(lease, "class") }
}

/// A job of so many trials; the first host has trained a hop, and sends it over a line on which that takes minutes.
fn sending(trials: u32) -> (Bench, Lease) {
    let mut bench = Bench::with_copies(50, trials, 2, "");
    let lease = bench.lease(HOST);
    let bytes = bench.core.state().jobs[&JOB].trials[0].checkpoint_bytes;
    let slow = (bytes / 300).max(1);
    for (host, upload) in [(HOST, slow), (OTHER, 1_000_000)] {
        let holding = if host == HOST { vec![(lease.id, HeldState::Waiting)] } else { Vec::new() };
        let inventory = Some(on_a_line(&lease, upload));
        bench.ask(host, WorkRequest { inventory, ..request(0, holding) });
    }
    runs(&mut bench, HOST, lease.id, 1);
    bench.now += 5_000;
    sends(&mut bench, lease.id, 0);
    (bench, lease)
}

fn sends(bench: &mut Bench, lease: LeaseId, sent: u64) {
    let holding = vec![Held::new(lease, HeldState::Sending { sent })];
    let request = HeartbeatRequest::new(holding, Vec::new());
    bench.apply(Command::Heartbeat { to: ReplyTo(1), host: HOST, request });
}

#[test]
fn a_hop_whose_result_is_on_a_slow_line_is_trained_again_where_that_is_sooner() {
    let (mut bench, first) = sending(1);
    let effects = bench.apply(Command::Ask { to: PARKED, host: OTHER, request: waiting() });
    let copy = given(&effects).expect("five minutes are left there, and a hop takes ten seconds");
    assert_eq!(copy.unit, first.unit);
    assert_eq!(bench.core.state().leases[&copy.id].speculative_for, Some(first.id));
}

#[test]
fn a_hop_whose_result_has_nearly_arrived_is_not_trained_again() {
    let (mut bench, first) = sending(1);
    let bytes = bench.core.state().jobs[&JOB].trials[0].checkpoint_bytes;
    bench.now += 2_000;
    sends(&mut bench, first.id, bytes - 1);
    let effects = bench.apply(Command::Ask { to: PARKED, host: OTHER, request: waiting() });
    assert!(given(&effects).is_none());
}

#[test]
fn the_next_host_that_asks_takes_over_a_hop_by_which_the_job_would_end_later() {
    let (mut bench, first) = sending(2);
    let copy = bench.lease(OTHER);
    assert_eq!(copy.unit, first.unit, "the other trial has an open hop, and can wait");
    bench.finish(OTHER, &copy);
    let next = bench.lease(OTHER);
    assert_eq!(bench.core.state().leases[&next.id].speculative_for, None);
}
