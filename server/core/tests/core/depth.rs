//! Searches in depth: trials that have begun come first, and a slot keeps to its trial.

use crate::support::{Bench, HOST, JOB, OTHER, data, done, request};
use sojourn_core::{Command, Event, ReplyTo};
use sojourn_protocol::{ids::Version, unit::Unit};

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
