//! Failed trials that are run again: from their beginning, beside the others, and after the end of their job too.

use crate::{
    searches::{searching, spec},
    searching::{by_trial, evaluate, to_the_end, trained, work},
    support::{Bench, HOST, JOB, OTHER, data, fail, hop, request},
};
use sojourn_core::{Answer, By, Command, Core, CoreConfig, Event, ReplyTo};
use sojourn_protocol::{
    api::{
        GoOn, NewTrial, Retry, RollbackOptions, RollbackRequest, SearchAnswer, SearchRequest,
        TrialPriority,
    },
    error::{ApiError, ErrorKind},
    ids::{Epoch, TrialId},
    report::FailureKind,
    spec::Choices,
    unit::{Base, Unit},
    view::{JobState, TrialState},
};

const GRID: &str = "method = \"random\"\ntrials = 3\n";

fn ask(bench: &mut Bench, request: SearchRequest) -> Result<SearchAnswer, ApiError> {
    let (to, request, by) = (ReplyTo(1), Box::new(request), By::Server);
    bench.answer(Command::ChangeSearch { to, job: JOB, request, by }).map(|answer| match answer {
        Answer::SearchChanged(answer) => *answer,
        other => panic!("{other:?}"),
    })
}

fn again(trial: u32, values: &[(&str, f64)]) -> SearchRequest {
    let values = values.iter().map(|(name, value)| ((*name).to_owned(), (*value).into()));
    let values: Choices = values.collect();
    let retry = vec![Retry { trial: TrialId(trial), values }];
    SearchRequest { retry, why: Some("the machine was bad".into()), ..SearchRequest::default() }
}

fn refused(bench: &mut Bench, request: SearchRequest) -> (ErrorKind, String) {
    let before = bench.core.state().position;
    let error = ask(bench, request).unwrap_err();
    assert_eq!(bench.core.state().position, before, "nothing happens");
    (error.kind, error.message)
}

/// Losses of trials of which the first is the worst.
fn first_is_worst(trial: u32, _: u32) -> f64 {
    if trial == 0 { 9.0 } else { f64::from(trial) }
}

/// Trial 0 trains an epoch, and then diverges at both hosts.
fn diverge(bench: &mut Bench) {
    while trained(bench)[0] < 1 {
        work(bench, HOST, &first_is_worst);
    }
    fail_at_both_hosts(bench, 0, &first_is_worst);
    // Another trial has the job's best model.
    while bench.job().best.is_none_or(|best| best.trial == TrialId(0)) {
        work(bench, HOST, &first_is_worst);
        assert!(bench.now < 1_000_000);
    }
}

/// A trial's loss isn't finite at either host.
fn fail_at_both_hosts(bench: &mut Bench, trial: usize, loss: &dyn Fn(u32, u32) -> f64) {
    let failing = TrialId(u32::try_from(trial).unwrap());
    let mut left = vec![HOST, OTHER];
    for _ in 0..200 {
        let Some(host) = left.last().copied() else { break };
        let lease = bench.lease(host);
        if matches!(lease.unit, Unit::Train(_)) && lease.unit.trial() == failing {
            fail(bench, host, lease.id, FailureKind::NonFinite, "NaN");
            left.pop();
        } else {
            match lease.unit {
                Unit::Train(_) => _ = bench.finish(host, &lease),
                Unit::Evaluate(_) => {
                    evaluate(bench, host, &lease, loss);
                }
            }
        }
    }
    assert!(
        matches!(bench.trials()[trial].state, TrialState::Failed { .. }),
        "{:?}",
        bench.trials()[trial]
    );
}

#[test]
fn a_failed_trial_begins_anew_after_the_end_of_its_job() {
    let mut bench = searching(3, GRID);
    diverge(&mut bench);
    to_the_end(&mut bench, &by_trial);
    let before = bench.core.state().jobs[&JOB].clone();
    assert_eq!((bench.job().state, bench.job().trials_failed), (JobState::Finished, 1));
    assert!(before.trials[0].chain.epoch() == Epoch(1), "it had trained");

    assert_eq!(ask(&mut bench, again(0, &[])).unwrap().added, [], "the trial itself");
    let job = &bench.core.state().jobs[&JOB];
    let trial = &job.trials[0];
    assert!(trial.is_running() && job.is_running());
    assert_eq!((trial.history.len(), trial.curve.len(), trial.best), (0, 0, None));
    assert_eq!(job.counters.train_micros, before.counters.train_micros, "what was done is counted");
    assert_eq!(job.trials[1..], before.trials[1..], "the others stay as they are");
    let lease = bench.lease(HOST);
    let (first, of) = (Base::first(trial_seed(&bench), None), hop(&lease));
    assert_eq!((lease.unit.trial(), of.base), (TrialId(0), first), "from its initial weights");
    bench.finish(HOST, &lease);
    to_the_end(&mut bench, &by_trial);
    let job = bench.job();
    assert_eq!((job.state, job.trials_failed, job.trials_finished), (JobState::Finished, 0, 3));
    assert_eq!(trained(&bench), [3, 3, 3]);
    let best = job.best.unwrap();
    assert_eq!(best.trial, TrialId(0), "it is compared with the others");
}

fn trial_seed(bench: &Bench) -> u64 {
    bench.core.state().jobs[&JOB].trials[0].initial_seed
}

#[test]
fn a_failed_trial_begins_anew_while_others_train_and_trains_each_shard_once() {
    let mut bench = searching(2, GRID);
    diverge(&mut bench);
    let events = bench.events(Command::ChangeSearch {
        to: ReplyTo(1),
        job: JOB,
        request: Box::new(again(0, &[])),
        by: By::Server,
    });
    let why = "the machine was bad".to_owned();
    let retried = Event::TrialRetried { job: JOB, trial: TrialId(0), why, by: By::Server };
    assert_eq!(events, [retried]);
    let said = events[0].sentence().unwrap();
    assert!(said.starts_with("trial 0 begins anew after its failure"), "{said}");
    to_the_end(&mut bench, &by_trial);
    let trial = &bench.core.state().jobs[&JOB].trials[0];
    let mut hops: Vec<_> = trial.history.iter().map(|of| (of.epoch(), of.start.shard)).collect();
    hops.sort_unstable();
    let all = (0..2).flat_map(|epoch| (0..2).map(move |shard| (epoch, shard)));
    let all: Vec<_> =
        all.map(|(epoch, shard)| (Epoch(epoch), sojourn_protocol::ids::ShardId(shard))).collect();
    assert_eq!(hops, all, "each shard once in each epoch");
}

#[test]
fn other_settings_make_a_new_trial() {
    let mut bench = searching(2, GRID);
    diverge(&mut bench);
    let added = ask(&mut bench, again(0, &[("lr", 0.5)])).unwrap().added;
    assert_eq!(added, [TrialId(3)]);
    let (of, new) = (&bench.trials()[0].clone(), &bench.trials()[3].clone());
    assert!(matches!(of.state, TrialState::Failed { .. }), "it stays as it is");
    assert_eq!((new.choices["training.optimizer.lr"].as_f64(), new.origin), (Some(0.5), None));
    assert_eq!(new.choices["training.batch_size"], of.choices["training.batch_size"]);
    to_the_end(&mut bench, &by_trial);
    assert_eq!((bench.job().trials_finished, bench.job().trials_failed), (3, 1));
    let wrong = refused(&mut bench, again(0, &[("lrr", 0.5)])).1;
    assert!(wrong.contains("there is no setting `lrr`; did you mean `lr`?"), "{wrong}");
}

#[test]
fn only_failed_trials_are_run_again() {
    let mut bench = searching(2, GRID);
    let told = "trial 1 of job 1 hasn't failed: only a failed trial is run again".to_owned();
    assert_eq!(refused(&mut bench, again(1, &[])), (ErrorKind::Conflict, told.clone()));
    let unknown = (ErrorKind::NotFound, "job 1 has no trial 9".to_owned());
    assert_eq!(refused(&mut bench, again(9, &[])), unknown);
    to_the_end(&mut bench, &by_trial);
    assert_eq!(refused(&mut bench, again(1, &[])), (ErrorKind::Conflict, told));
}

#[test]
fn no_rule_of_early_stopping_ends_a_trial_that_is_run_again() {
    let mut bench = Bench::new();
    bench.begin_with(data(), spec(3, &format!("{GRID}stopping = \"sha\"\n")));
    // Before it waits at the first rung.
    fail_at_both_hosts(&mut bench, 0, &first_is_worst);
    to_the_end(&mut bench, &by_trial);
    ask(&mut bench, again(0, &[])).unwrap();
    // The worst of all now.
    to_the_end(&mut bench, &|trial, _| if trial == 0 { 9.0 } else { f64::from(trial) });
    assert_eq!(trained(&bench)[0], 3, "up to its last epoch");
    assert_eq!(bench.trials()[0].state, TrialState::Finished);
}

#[test]
fn a_journal_with_a_trial_that_was_run_again_leads_to_the_same_state() {
    let mut bench = searching(2, GRID);
    diverge(&mut bench);
    ask(&mut bench, again(0, &[])).unwrap();
    to_the_end(&mut bench, &by_trial);
    let snapshot = bench.core.snapshot().unwrap();
    let restored = Core::from_snapshot(&snapshot, CoreConfig::default()).unwrap();
    assert_eq!(restored.state().jobs[&JOB], bench.core.state().jobs[&JOB]);
}

#[test]
fn a_trial_that_ended_for_want_of_time_goes_on_and_does_not_begin_anew() {
    let mut bench = searching(3, "method = \"random\"\ntrials = 1\nwall_time = \"5s\"\n");
    let lease = bench.lease(HOST);
    bench.finish(HOST, &lease);
    for _ in 0..100 {
        let Some(due) = bench.core.next_deadline() else { break };
        bench.now = due.0.max(bench.now);
        bench.apply(Command::Tick);
        if bench.core.state().jobs[&JOB].end.is_some() {
            break;
        }
    }
    let trial = bench.trials().remove(0);
    assert!(matches!(trial.state, TrialState::Failed { .. }), "{trial:?}");
    assert_eq!(trial.stopped.as_deref(), Some("stopped after 5s"));
    let before = bench.core.state().jobs[&JOB].trials[0].history.clone();
    assert_eq!(before.len(), 1, "it has trained");

    let told = "trial 0 of job 1 ended for want of time: `sojourn extend 1 --trial 0 --epochs 3` goes on with what it has trained";
    assert_eq!(refused(&mut bench, again(0, &[])), (ErrorKind::Conflict, told.to_owned()));
    let (to, trial) = (ReplyTo(1), Some(TrialId(0)));
    bench.answer(Command::Extend { to, job: JOB, epochs: 3, trial, reopen: false }).unwrap();
    to_the_end(&mut bench, &by_trial);
    assert_eq!(trained(&bench), [3], "the advice is good");
    assert_eq!(bench.core.state().jobs[&JOB].trials[0].history[0], before[0]);
}

#[test]
fn the_best_model_of_a_job_is_not_lost_by_running_its_trial_again() {
    let mut bench = searching(2, GRID);
    while bench.trials()[0].best.is_none() {
        work(&mut bench, HOST, &by_trial);
    }
    fail_at_both_hosts(&mut bench, 0, &by_trial);
    let best = bench.job().best.unwrap();
    assert_eq!(best.trial, TrialId(0));
    let batch_size = bench.core.state().jobs[&JOB].trials[0].context.config.training.batch_size;
    let told = format!(
        "trial 0 of job 1 has the job's best model, which would be lost: `sojourn trials 1 --retry 0 --set batch_size={batch_size}` runs a new trial with the same settings, and leaves it as it is"
    );
    assert_eq!(refused(&mut bench, again(0, &[])), (ErrorKind::Conflict, told));
    let values: Choices = [("batch_size".to_owned(), batch_size.into())].into();
    let retry = vec![Retry { trial: TrialId(0), values }];
    let added = ask(&mut bench, SearchRequest { retry, ..SearchRequest::default() }).unwrap().added;
    assert_eq!(added, [TrialId(3)]);
    let trials = &bench.core.state().jobs[&JOB].trials;
    assert_eq!(trials[3].context.config, trials[0].context.config, "the advice is good");
    to_the_end(&mut bench, &by_trial);
    assert_eq!(bench.job().best, Some(best));
}

#[test]
fn a_clone_of_a_state_that_was_taken_back_is_not_run_again() {
    for is_taken_back in [false, true] {
        let mut bench = searching(3, "method = \"random\"\ntrials = 1\n");
        while bench.trials()[0].curve.is_empty() {
            work(&mut bench, HOST, &by_trial);
        }
        let values: Choices = [("lr".to_owned(), 0.5.into())].into();
        let add = vec![NewTrial { values, from: Some(TrialId(0)) }];
        ask(&mut bench, SearchRequest { add, ..SearchRequest::default() }).unwrap();
        fail_at_both_hosts(&mut bench, 1, &by_trial);
        if !is_taken_back {
            ask(&mut bench, again(1, &[])).unwrap();
            to_the_end(&mut bench, &by_trial);
            assert_eq!(trained(&bench), [3, 3]);
            continue;
        }
        let options = RollbackOptions { reopen: true, ..RollbackOptions::default() };
        let request = RollbackRequest::Trial { trial: TrialId(0), epochs: 0, options };
        bench.answer(Command::Rollback { to: ReplyTo(1), job: JOB, request }).unwrap();
        let (kind, told) = refused(&mut bench, again(1, &[]));
        assert_eq!(kind, ErrorKind::Conflict);
        let why = "trial 1 of job 1 went on from a state of trial 0 that was taken back";
        assert!(told.starts_with(why), "{told}");
    }
}

#[test]
fn a_trial_begins_anew_or_goes_on_and_may_come_first_then() {
    let mut bench = searching(2, GRID);
    diverge(&mut bench);
    let go_on = vec![GoOn { trial: TrialId(0), epochs: 3 }];
    let both = SearchRequest { go_on, ..again(0, &[]) };
    let told = "trial 0 can't begin anew and go on at once".to_owned();
    assert_eq!(refused(&mut bench, both), (ErrorKind::Invalid, told));
    let first = vec![TrialPriority { trial: TrialId(0), priority: 5 }];
    ask(&mut bench, SearchRequest { priorities: first, ..again(0, &[]) }).unwrap();
    assert_eq!(bench.trials()[0].priority, 5);
    to_the_end(&mut bench, &by_trial);
    assert_eq!(trained(&bench), [2, 2, 2]);
}

#[test]
fn a_trial_that_begins_anew_stays_no_longer_on_the_host_where_it_failed() {
    let placement = "[placement]\norder = \"hop\"\nresidency = \"least-loaded\"\n";
    let mut bench = searching(2, &format!("{GRID}{placement}"));
    let of_first = |bench: &Bench| bench.core.state().jobs[&JOB].trials[0].clone();
    for _ in 0..400 {
        if !of_first(&bench).is_running() {
            break;
        }
        bench.now += 100;
        for host in [HOST, OTHER] {
            for lease in bench.ask(host, request(1, Vec::new())).leases {
                match lease.unit {
                    Unit::Train(_) if lease.unit.trial() == TrialId(0) => {
                        fail(&mut bench, host, lease.id, FailureKind::NonFinite, "NaN");
                    }
                    Unit::Train(_) => _ = bench.finish(host, &lease),
                    Unit::Evaluate(_) => _ = evaluate(&mut bench, host, &lease, &by_trial),
                }
            }
        }
    }
    let failed = of_first(&bench);
    assert!(!failed.is_running() && failed.home().is_some(), "{failed:?}");
    ask(&mut bench, again(0, &[])).unwrap();
    assert_eq!(of_first(&bench).home(), None);
}
