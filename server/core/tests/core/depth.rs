//! Searches in depth: trials that have begun come first, and a slot keeps to its trial.

use crate::{
    searches,
    searching::by_trial,
    support::{Bench, HOST, JOB, OTHER, data, done, request},
};
use sojourn_core::{Command, Event, ReplyTo};
use sojourn_protocol::{
    api::HeldState,
    ids::{TrialId, Version},
    unit::{Lease, Unit},
};

/// Six trials of three epochs, on two hosts of one slot.
fn bench(spread: &str) -> Bench {
    Bench::with_job_on(data(), 6, 3, &format!("[search]\nspread = \"{spread}\"\n"))
}

/// The most trials that have begun and have something left to train, while there were others that hadn't begun.
fn most_under_way(bench: &mut Bench) -> usize {
    let mut most = 0;
    while bench.core.state().jobs[&JOB].end.is_none() {
        bench.work_once(&[HOST, OTHER]);
        let trials = &bench.core.state().jobs[&JOB].trials;
        let new = trials.iter().filter(|trial| trial.version == Version(0)).count();
        if new > 0 {
            let left = trials.iter().filter(|trial| !trial.chain.is_done()).count();
            most = most.max(left - new);
        }
    }
    most
}

#[test]
fn in_depth_a_trial_that_has_begun_comes_before_those_that_have_not() {
    // These hosts train in turn, so the only trial that has begun is free whenever one asks.
    assert_eq!(most_under_way(&mut bench("depth")), 1);
    // In breadth those that have not begun come first, two in each round.
    assert_eq!(most_under_way(&mut bench("breadth")), 4);
}

#[test]
fn in_depth_a_slot_keeps_to_its_trial_and_has_no_other_ones_hop_ahead() {
    let leases = |spread| bench(spread).ask(HOST, request(2, Vec::new())).leases.len();
    assert_eq!((leases("depth"), leases("breadth")), (1, 2));

    let mut bench = bench("depth");
    let mut trained = Vec::new();
    while bench.core.state().jobs[&JOB].trials[1].version == Version(0) {
        let lease = bench.lease(HOST);
        match &lease.unit {
            Unit::Train(hop) => {
                trained.push(hop.trial.0);
                bench.finish(HOST, &lease);
            }
            Unit::Evaluate(_) => drop(bench.report(HOST, done(&lease)).unwrap()),
        }
    }
    // Three epochs of two shards, and then the next trial.
    assert_eq!(trained, [0, 0, 0, 0, 0, 0, 1]);
}

/// The trial that a lease trains; none where it evaluates one.
fn trains(lease: &Lease) -> Option<u32> {
    match &lease.unit {
        Unit::Train(hop) => Some(hop.trial.0),
        Unit::Evaluate(_) => None,
    }
}

#[test]
fn in_depth_an_epoch_is_evaluated_where_it_was_trained_before_its_trial_goes_on() {
    for (spread, next) in [("depth", None), ("breadth", Some(1))] {
        let mut bench = bench(spread);
        while bench.core.state().jobs[&JOB].open.evaluations().len() == 0 {
            let lease = bench.lease(HOST);
            bench.finish(HOST, &lease);
        }
        let lease = bench.lease(HOST);
        if next.is_some() {
            assert!(trains(&lease).is_some(), "in breadth hops come first");
            continue;
        }
        assert_eq!(trains(&lease), next);
        bench.report(HOST, done(&lease)).unwrap();
        let lease = bench.lease(HOST);
        assert_eq!(trains(&lease), Some(0));
    }
}

#[test]
fn in_depth_a_slot_waits_for_the_result_of_its_trial_and_not_for_long() {
    let mut bench = bench("depth");
    let own = bench.lease(HOST);
    let other = bench.lease(OTHER);
    assert_eq!((trains(&own), trains(&other)), (Some(0), Some(1)));
    // Another trial has begun and waits, while the result of this slot's is on its way.
    bench.finish(OTHER, &other);
    bench.now += 100;
    let on_its_way = || request(1, vec![(own.id, HeldState::Finished)]);
    assert_eq!(bench.ask(HOST, on_its_way()).leases, []);
    bench.now += 1_000;
    let leases = bench.ask(HOST, on_its_way()).leases;
    assert_eq!(leases.iter().map(trains).collect::<Vec<_>>(), [Some(1)]);

    // With its result there it goes on, though the other one is as far.
    let mut bench = self::bench("depth");
    let (own, other) = (bench.lease(HOST), bench.lease(OTHER));
    bench.finish(OTHER, &other);
    bench.finish(HOST, &own);
    assert_eq!(trains(&bench.lease(OTHER)), Some(1), "its own");
    assert_eq!(trains(&bench.lease(HOST)), Some(0), "its own");
}

#[test]
fn in_depth_no_trial_begins_so_late_that_it_would_end_last() {
    let mut bench = Bench::with_job_on(data(), 3, 4, "[search]\nspread = \"depth\"\n");
    let mut whys = Vec::new();
    while bench.core.state().jobs[&JOB].trials[2].version == Version(0) {
        for host in [HOST, OTHER] {
            let request = request(1, Vec::new());
            let events = bench.events(Command::Ask { to: ReplyTo(1), host, request });
            let granted = events.iter().find_map(|event| match event {
                Event::LeaseGranted { why, lease, .. } => Some((why.clone(), *lease)),
                _ => None,
            });
            let Some((why, lease)) = granted else { continue };
            whys.push(why);
            bench.now += 100;
            let lease = bench.resent(host, lease);
            match lease.unit {
                Unit::Train(_) => drop(bench.finish(host, &lease)),
                Unit::Evaluate(_) => drop(bench.report(host, done(&lease)).unwrap()),
            }
        }
    }
    let trials = &bench.core.state().jobs[&JOB].trials;
    assert!(!trials[1].chain.is_done(), "the last one begins beside it: {whys:?}");
    assert!(whys.iter().any(|why| why.starts_with("depth: the longest")), "{whys:?}");
}

#[test]
fn in_depth_a_combination_is_suggested_when_a_slot_is_free_for_it() {
    let most = |spread: &str| {
        let search = "method = { name = \"tpe\", startup = 2 }\ntrials = 12\n";
        let mut bench = searches::searching(2, &format!("{search}spread = \"{spread}\"\n"));
        let mut most = 0;
        while bench.core.state().jobs[&JOB].end.is_none() {
            crate::searching::work(&mut bench, HOST, &by_trial);
            crate::searching::work(&mut bench, OTHER, &by_trial);
            let trials = &bench.core.state().jobs[&JOB].trials;
            most = most.max(trials.iter().filter(|trial| trial.end.is_none()).count());
        }
        assert!(bench.core.state().trial(JOB, TrialId(11)).is_some());
        most
    };
    assert_eq!((most("depth"), most("breadth")), (2, 4));
}

#[test]
fn the_journal_says_why_a_trial_came_first() {
    let mut bench = bench("depth");
    let mut whys = Vec::new();
    for _ in 0..3 {
        let request = request(1, Vec::new());
        let events = bench.events(Command::Ask { to: ReplyTo(1), host: HOST, request });
        let granted = events.iter().find_map(|event| match event {
            Event::LeaseGranted { why, .. } => Some(why.clone()),
            _ => None,
        });
        whys.extend(granted);
        bench.now += 100;
        let held: Vec<_> = bench.core.state().hosts[&HOST].live.iter().copied().collect();
        let lease = bench.resent(HOST, held[0]);
        bench.finish(HOST, &lease);
    }
    assert!(whys[0].starts_with("depth: no trial that has begun waits"), "{whys:?}");
    assert!(whys[1].starts_with("depth: of the trials that have begun"), "{whys:?}");
}
