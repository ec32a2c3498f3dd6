//! Population-based training: the worst of a generation are replaced by clones of the best, the same ones whatever happens.

use crate::{
    searching::{evaluate, to_the_end, trained, work},
    support::{Bench, HOST, JOB, OTHER, data, fail, hop, request},
};
use serde_json::json;
use sojourn_core::{
    Answer, By, Command, Core, Event, JournalPosition, Record, ReplyTo,
    state::{Trial, TrialEnd},
};
use sojourn_protocol::{
    api::{GoOn, NewTrial, RollbackOptions, RollbackRequest, SearchRequest, TrialPriority},
    ids::{HostId, TrialId},
    jobfile,
    report::FailureKind,
    spec::{Choices, JobSpec, Verify},
    time::UnixMillis,
    unit::{Lease, Unit},
    view::{JobState, TrialState},
};

fn spec(epochs: u32, trials: u32, pbt: &str) -> JobSpec {
    let text = format!(
        "name = \"t\"\nseed = 7\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\n[[model]]\narch = \"mlp\"\nhidden = {{ choice = [[4], [6]] }}\ndropout = {{ uniform = [0.0, 0.5] }}\n[training]\nepochs = {epochs}\nbatch_size = {{ choice = [4, 8] }}\noptimizer = {{ name = \"sgd\", lr = {{ log_uniform = [1e-3, 1e-1] }} }}\n[search]\nmetric = \"valid/loss\"\nmethod = {{ name = \"pbt\"{pbt} }}\ntrials = {trials}\n"
    );
    jobfile::parse(&text).unwrap()
}

fn training(epochs: u32, trials: u32, pbt: &str) -> Bench {
    let mut bench = Bench::new();
    bench.begin_with(data(), spec(epochs, trials, pbt));
    bench
}

/// Which trial is how good changes from epoch to epoch.
fn mixed(trial: u32, epoch: u32) -> f64 {
    f64::from(1 + (trial * 31 + epoch * 17) % 23)
}

/// Of each trial: whose place it has taken, where it goes on from, its settings, how long it was trained and evaluated.
fn lineage(bench: &Bench) -> Vec<String> {
    let trials = bench.core.state().jobs[&JOB].trials.iter();
    trials
        .map(|of| {
            let origin = of.origin.map(|origin| (origin.trial, origin.epochs, origin.version));
            // What a trial that fails has evaluated by then may be any of it.
            let has_failed = matches!(of.end, Some(TrialEnd::Failed(_)));
            let points = (!has_failed).then_some(of.curve.len());
            let (choices, epochs) = (json!(of.choices), of.chain.epoch());
            format!("{:?} {origin:?} {choices} {epochs} {points:?}", of.replaces)
        })
        .collect()
}

fn change(bench: &mut Bench, request: SearchRequest) {
    let (request, by) = (Box::new(request), By::Server);
    bench.answer(Command::ChangeSearch { to: ReplyTo(1), job: JOB, request, by }).unwrap();
}

fn restarted(bench: &Bench) -> Bench {
    let snapshot = bench.core.snapshot().unwrap();
    let core = Core::from_snapshot(&snapshot, *bench.core.config()).unwrap();
    let mut again = Bench { core, now: bench.now, plans: Vec::new(), journal: Vec::new() };
    again.apply(Command::Started);
    again
}

#[test]
fn the_worst_of_a_generation_go_on_from_the_best_with_other_settings() {
    let mut bench = training(4, 5, ", interval = 2");
    let all = bench.job();
    assert_eq!((all.hops_expected, all.evaluations_expected), (5 * 4 * 2, 5 * 4));
    assert!(bench.core.state().jobs[&JOB].trials.iter().all(|of| of.chain.epochs() == 2));
    let loss = |trial: u32, _: u32| f64::from(trial);
    let events = to_the_end(&mut bench, &loss);
    let job = bench.job();
    assert_eq!((job.state, job.trials, job.trials_finished), (JobState::Finished, 6, 6));
    assert_eq!((job.hops, job.evaluations), (all.hops_expected, all.evaluations_expected));
    assert_eq!((job.hops_expected, job.evaluations_expected), (job.hops, job.evaluations));
    assert_eq!(trained(&bench), [4, 4, 4, 4, 2, 4]);
    let trials = bench.core.state().jobs[&JOB].trials.clone();
    let (parent, clone) = (&trials[0], &trials[5]);
    let origin = clone.origin.unwrap();
    assert_eq!((clone.replaces, origin.trial), (Some(TrialId(4)), TrialId(0)));
    assert_eq!((origin.epochs, origin.checkpoint), (2, parent.history[3].checkpoint));
    let hidden = "model[0].hidden";
    assert_eq!(parent.choices[hidden], clone.choices[hidden], "the checkpoint has its tensors");
    let rate = |of: &Trial| of.context.config.training.optimizer.lr;
    assert_ne!(rate(parent), rate(clone));
    let dropout = "model[0].dropout";
    assert_ne!(parent.choices[dropout], clone.choices[dropout]);
    assert_eq!(clone.curve[..2], parent.curve[..2], "it has the other's curve");
    let stopped = bench.trials()[4].stopped.clone();
    assert_eq!(
        stopped.as_deref(),
        Some(
            "stopped after 2 epochs: place 5 of 5 after 2 epochs: trial 5 goes on from trial 0 in its place"
        )
    );
    let why = events.iter().find_map(|event| match event {
        Event::TrialsAdded { why, suggested: 0, by: None, .. } => Some(why.as_str()),
        _ => None,
    });
    assert_eq!(why, Some("after 2 epochs 1 trial is replaced: the worst of 5 go on from the best"));
    assert_eq!(bench.core.state().jobs[&JOB].load, [0, 0]);
    assert!(trials.iter().all(|trial| trial.kept.is_empty()), "no generation is to come");
}

#[test]
fn who_may_be_replaced_waits_for_the_others_and_says_so() {
    let mut bench = training(6, 4, ", interval = 2, quantile = 0.25");
    let loss = |trial: u32, _: u32| f64::from(9 - trial);
    // Trial 0 is the worst, and with a host that takes its time.
    let first = TrialPriority { trial: TrialId(0), priority: 5 };
    let first = SearchRequest { priorities: vec![first], ..SearchRequest::default() };
    change(&mut bench, first);
    let slow = bench.lease(OTHER);
    assert_eq!(hop(&slow).trial, TrialId(0));
    loop {
        bench.now += 10;
        let Some(lease) = bench.ask(HOST, request(1, Vec::new())).leases.pop() else { break };
        match &lease.unit {
            Unit::Train(_) => drop(bench.finish(HOST, &lease)),
            Unit::Evaluate(_) => drop(evaluate(&mut bench, HOST, &lease, &loss)),
        }
        let trials = &bench.core.state().jobs[&JOB].trials;
        let most = trials.iter().map(|of| of.kept.len()).max();
        assert!(most <= Some(2), "two ends are enough: {trials:?}");
    }
    let trials = &bench.core.state().jobs[&JOB].trials;
    let ahead = trials.iter().map(|of| of.chain.epochs()).max().unwrap();
    assert_eq!(ahead, 4, "nobody is more than a generation ahead");
    assert_eq!(trained(&bench), [0, 2, 4, 4]);
    let waiting = bench.trials()[1].waiting.clone();
    assert_eq!(waiting.as_deref(), Some("it waits for the others of its generation"));
    // 2 and 3 have moved on: their checkpoints of then are kept.
    bench.finish(OTHER, &slow);
    to_the_end(&mut bench, &loss);
    let clone = &bench.core.state().jobs[&JOB].trials[4];
    assert_eq!((clone.replaces, clone.origin.unwrap().trial), (Some(TrialId(0)), TrialId(3)));
    assert_eq!(bench.core.check_invariants(), Ok(()));
}

/// Works with so many hosts, and restarts in between where that is wanted; trial 2's second epoch fails everywhere.
fn course(hosts: u64, restarts: bool) -> Vec<String> {
    let mut bench = training(9, 6, ", interval = 2, quantile = 0.34");
    for round in 0.. {
        if bench.core.state().jobs[&JOB].end.is_some() {
            break;
        }
        assert!(round < 3_000, "{:?}", bench.trials());
        bench.now += 100;
        for host in (1..=hosts).rev().map(HostId) {
            for lease in bench.ask(host, request(1, Vec::new())).leases {
                do_or_fail(&mut bench, host, &lease);
            }
        }
        if restarts && round % 7 == 0 {
            // A host whose trainer failed is given nothing for a while.
            bench = restarted(&bench);
            bench.now += 100_000;
        }
    }
    lineage(&bench)
}

fn do_or_fail(bench: &mut Bench, host: HostId, lease: &Lease) {
    match &lease.unit {
        Unit::Train(hop) if hop.trial == TrialId(2) && hop.start.epoch.0 == 1 => {
            fail(bench, host, lease.id, FailureKind::NonFinite, "NaN");
        }
        Unit::Train(_) => drop(bench.finish(host, lease)),
        Unit::Evaluate(_) => drop(evaluate(bench, host, lease, &mixed)),
    }
}

#[test]
fn any_hosts_and_restarts_give_the_same_lineage() {
    let alone = course(1, false);
    // After generations of 2, 4, 6 and 8 epochs two of six are replaced.
    assert_eq!(alone.len(), 6 + 4 * 2, "{alone:?}");
    assert_eq!(alone, course(2, false));
    assert_eq!(alone, course(1, true));
    assert_eq!(alone, course(2, true));
}

#[test]
fn a_trial_that_fails_is_replaced_and_not_stopped() {
    let mut bench = training(4, 4, ", interval = 2");
    while bench.job().state == JobState::Running {
        bench.now += 100;
        for lease in bench.ask(HOST, request(1, Vec::new())).leases {
            do_or_fail(&mut bench, HOST, &lease);
        }
        bench.now += 100;
        for lease in bench.ask(OTHER, request(1, Vec::new())).leases {
            do_or_fail(&mut bench, OTHER, &lease);
        }
        assert!(bench.now < 1_000_000);
    }
    let trials = bench.trials();
    assert!(matches!(trials[2].state, TrialState::Failed { .. }), "{:?}", trials[2]);
    assert_eq!(bench.core.state().jobs[&JOB].trials[4].replaces, Some(TrialId(2)));
    assert_eq!(trained(&bench), [4, 4, 1, 4, 4]);
    let job = bench.job();
    assert_eq!(
        (job.state, job.trials_failed, job.hops),
        (JobState::Finished, 1, job.hops_expected)
    );
}

#[test]
fn a_server_that_ends_after_any_event_of_a_decision_decides_the_rest() {
    let whole = course_without_faults(training(6, 6, ", interval = 2, quantile = 0.34"));
    let mut bench = training(6, 6, ", interval = 2, quantile = 0.34");
    let mut cuts = 0;
    while bench.core.state().jobs[&JOB].end.is_none() {
        bench.now += 100;
        for lease in bench.ask(HOST, request(1, Vec::new())).leases {
            if let Unit::Train(_) = &lease.unit {
                bench.finish(HOST, &lease);
                continue;
            }
            let (snapshot, first) = (bench.core.snapshot().unwrap(), bench.core.state().position);
            let events = evaluate(&mut bench, HOST, &lease, &mixed);
            let is_decision = |event: &&Event| {
                matches!(event, Event::TrialsAdded { .. } | Event::TrialContinued { .. })
            };
            let decided = events.iter().position(|event| is_decision(&event));
            for cut in decided.unwrap_or(events.len())..events.len() {
                let mut core = Core::from_snapshot(&snapshot, *bench.core.config()).unwrap();
                for (n, event) in (1..).zip(&events[..cut]) {
                    let position = JournalPosition(first.0 + n);
                    let at = UnixMillis(bench.now);
                    core.fold(&Record { position, at, event: event.clone() }).unwrap();
                }
                let mut again =
                    Bench { core, now: bench.now, plans: Vec::new(), journal: Vec::new() };
                again.apply(Command::Started);
                assert_eq!(course_without_faults(again), whole, "after {:?}", &events[..cut]);
                cuts += 1;
            }
        }
    }
    assert_eq!(lineage(&bench), whole);
    assert!(cuts > 10, "{cuts}");
}

fn course_without_faults(mut bench: Bench) -> Vec<String> {
    to_the_end(&mut bench, &mixed);
    assert_eq!(bench.core.check_invariants(), Ok(()));
    lineage(&bench)
}

fn extend(epochs: u32, trial: Option<u32>) -> Command {
    Command::Extend { to: ReplyTo(1), job: JOB, epochs, trial: trial.map(TrialId), reopen: false }
}

#[test]
fn a_job_that_is_extended_goes_on_generation_by_generation() {
    let mut bench = training(4, 5, ", interval = 2");
    to_the_end(&mut bench, &mixed);
    assert_eq!(bench.trials().len(), 6);
    bench.answer(extend(8, None)).unwrap();
    to_the_end(&mut bench, &mixed);
    let replaced: Vec<u32> = bench.core.state().jobs[&JOB].trials[6..]
        .iter()
        .map(|of| of.origin.unwrap().epochs)
        .collect();
    assert_eq!(replaced, [6], "the last generation of before has ended with all of it");
    let running = bench.trials().into_iter().filter(|of| of.stopped.is_none());
    assert!(running.map(|of| of.epoch.0).eq([8; 5]));
    // One that is extended by name trains all of it.
    bench.answer(extend(12, Some(0))).unwrap();
    to_the_end(&mut bench, &mixed);
    assert_eq!(trained(&bench)[0], 12);
    // So does one that was replaced.
    let trials = bench.trials();
    let replaced = trials.iter().find(|of| of.stopped.is_some()).unwrap().trial.0;
    bench.answer(extend(12, Some(replaced))).unwrap();
    to_the_end(&mut bench, &mixed);
    assert_eq!(trained(&bench)[replaced as usize], 12);
}

#[test]
fn trials_that_a_user_adds_or_lets_go_on_are_not_replaced() {
    let mut bench = training(4, 5, "");
    let loss = |trial: u32, _: u32| f64::from(trial);
    let values = json!({ "hidden": [4], "dropout": 0.1, "batch_size": 8, "lr": 0.01 });
    let values: Choices = serde_json::from_value(values).unwrap();
    let request = SearchRequest {
        add: vec![NewTrial { values, from: None }],
        go_on: vec![GoOn { trial: TrialId(4), epochs: 4 }],
        ..SearchRequest::default()
    };
    change(&mut bench, request);
    to_the_end(&mut bench, &loss);
    let trials = &bench.core.state().jobs[&JOB].trials;
    // 4 is the worst of each generation, and has gone on already.
    assert_eq!((trials.len(), trained(&bench)), (6, vec![4; 6]));
}

#[test]
fn a_trial_that_is_taken_back_changes_no_generation_that_is_over() {
    for trial in 0..7 {
        let mut bench = training(6, 5, ", interval = 2");
        while bench.core.state().jobs[&JOB].trials.len() < 7 {
            work(&mut bench, HOST, &mixed);
            assert!(bench.now < 1_000_000);
        }
        let before = lineage(&bench);
        let options = RollbackOptions::default();
        let request = RollbackRequest::Trial { trial: TrialId(trial), epochs: 0, options };
        bench.answer(Command::Rollback { to: ReplyTo(1), job: JOB, request }).unwrap();
        // It is good now, and would not be replaced.
        let loss = |of: u32, epoch: u32| if of == trial { 0.0 } else { mixed(of, epoch) };
        to_the_end(&mut bench, &loss);
        let replaced = |all: &[String]| -> Vec<String> {
            all.iter().map(|of| of.split('}').next().unwrap().to_owned()).collect()
        };
        assert_eq!(replaced(&lineage(&bench)), replaced(&before), "{trial}");
        assert_eq!(bench.job().state, JobState::Finished);
    }
}

/// A clone has no state of its own to go back to, where it goes on from a result that nobody believes any more.
#[test]
fn a_clone_of_a_refuted_result_ends_and_leads_no_more() {
    let mut spec = spec(4, 5, ", interval = 2");
    spec.placement.verify = Some(Verify { quorum: 2, rate: 1 }.into());
    let mut bench = Bench::new();
    bench.begin_with(data(), spec);
    let loss = |trial: u32, _: u32| if trial == 5 { 0.0 } else { f64::from(trial) };
    let clone = TrialId(5);
    for _ in 0..500 {
        let trial = bench.core.state().trial(JOB, clone);
        if trial.is_some_and(|trial| !trial.history.is_empty()) {
            break;
        }
        for host in [HOST, OTHER] {
            work(&mut bench, host, &loss);
        }
    }
    let job = bench.core.state().jobs[&JOB].clone();
    let first = &job.trials[0].history[0];
    assert_eq!(job.trials[5].origin.unwrap().trial, TrialId(0));
    let mut hops = job.trials.iter().flat_map(|trial| &trial.history);
    let right = hops.find(|hop| hop.host != first.host).expect("two hosts work").lease;
    let event = Event::Verified { confirmed: vec![right], refuted: vec![first.lease] };
    let (position, at) = (JournalPosition(bench.core.position().0 + 1), UnixMillis(bench.now));
    bench.core.fold(&Record { position, at, event }).unwrap();
    let options = RollbackOptions::default();
    let request = RollbackRequest::Host { host: first.host, options };
    let Ok(Answer::RolledBack(back)) =
        bench.answer(Command::Rollback { to: ReplyTo(1), job: JOB, request })
    else {
        panic!("refused")
    };
    let ended: Vec<TrialId> = back.iter().filter(|of| of.ends).map(|of| of.trial).collect();
    assert_eq!(ended, [clone], "{back:?}");
    let trial = bench.core.state().trial(JOB, clone).unwrap();
    assert!(matches!(trial.end, Some(TrialEnd::Failed(_))), "{:?}", trial.end);
    assert_eq!((trial.best, trial.history.len()), (None, 0));
    let again = bench.core.state().trial(JOB, TrialId(0)).unwrap();
    assert_eq!((again.history.len(), again.chain.epoch().0), (0, 0), "it begins anew");
}
