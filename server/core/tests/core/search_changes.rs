//! Changes of a search by hand: contradictions and doubles in one request, and any requests at any time.

use crate::{
    early_stopping,
    searches::{searching, spec},
    searching::{by_trial, evaluate, to_the_end, trained, work},
    support::{Bench, HOST, JOB, OTHER, done, request},
};
use proptest::prelude::*;
use serde_json::json;
use sojourn_core::{Answer, By, Command, Core, Event, Query, ReplyTo};
use sojourn_protocol::{
    api::{
        GoOn, NewTrial, Retry, RollbackRequest, SearchAnswer, SearchRequest, Space, TrialPriority,
    },
    error::{ApiError, ErrorKind},
    ids::{HostId, TrialId},
    manifest::DataSplit,
    spec::{Choices, Dimension, JobSpec},
    unit::{Lease, Unit},
    view::JobState,
};

pub(crate) fn change(request: SearchRequest) -> Command {
    let (request, by) = (Box::new(request), By::Server);
    Command::ChangeSearch { to: ReplyTo(1), job: JOB, request, by }
}

fn ask(bench: &mut Bench, request: SearchRequest) -> Result<SearchAnswer, ApiError> {
    bench.answer(change(request)).map(|answer| match answer {
        Answer::SearchChanged(answer) => *answer,
        other => panic!("{other:?}"),
    })
}

fn refused(bench: &mut Bench, request: SearchRequest) -> (ErrorKind, String) {
    let before = bench.core.state().position;
    let error = ask(bench, request).unwrap_err();
    assert_eq!(bench.core.state().position, before, "nothing happens");
    (error.kind, error.message)
}

fn go_on(of: &[(u32, u32)]) -> SearchRequest {
    let go_on = of.iter().map(|(trial, epochs)| GoOn { trial: TrialId(*trial), epochs: *epochs });
    SearchRequest { go_on: go_on.collect(), ..SearchRequest::default() }
}

fn stop(trials: &[u32]) -> SearchRequest {
    let stop = trials.iter().copied().map(TrialId).collect();
    SearchRequest { stop, ..SearchRequest::default() }
}

fn clone_of(trial: u32) -> SearchRequest {
    let values = Choices::from([("lr".to_owned(), json!(0.5))]);
    let add = vec![NewTrial { values, from: Some(TrialId(trial)) }];
    SearchRequest { add, ..SearchRequest::default() }
}

fn priorities(of: &[(u32, i32)]) -> SearchRequest {
    let of = of
        .iter()
        .map(|(trial, priority)| TrialPriority { trial: TrialId(*trial), priority: *priority });
    SearchRequest { priorities: of.collect(), ..SearchRequest::default() }
}

#[test]
fn a_trial_that_is_named_twice_is_stopped_or_goes_on_once() {
    let mut bench = searching(3, "method = \"random\"\ntrials = 3\n");
    let events = bench.events(change(stop(&[1, 1])));
    let stops = events.iter().filter(|event| matches!(event, Event::TrialStopped { .. }));
    assert_eq!(stops.count(), 1);
    let events = bench.events(change(go_on(&[(1, 3), (1, 3)])));
    let extended = events.iter().filter(|event| matches!(event, Event::JobExtended { .. }));
    assert_eq!(extended.count(), 1);
    let events = bench.events(change(priorities(&[(1, 3), (1, 3)])));
    assert_eq!(events.len(), 1);

    // One that its rule holds back.
    let mut bench = searching(9, "method = \"random\"\ntrials = 6\nstopping = \"asha\"\n");
    let held = bench.core.state().jobs[&JOB].trials.iter().rposition(|of| of.chain.epochs() == 0);
    let held = u32::try_from(held.unwrap()).unwrap();
    let events = bench.events(change(go_on(&[(held, 9), (held, 9)])));
    let continued = events.iter().filter(|event| matches!(event, Event::TrialContinued { .. }));
    assert_eq!(continued.count(), 1);
}

#[test]
fn contradictions_in_one_request_are_refused() {
    let mut bench = searching(3, "method = \"random\"\ntrials = 3\n");
    for (request, told) in [
        (go_on(&[(1, 4), (1, 5)]), "trial 1 is to go on up to 4 epochs and up to 5"),
        (priorities(&[(1, 3), (1, 4)]), "trial 1 is given the priorities 3 and 4"),
        (
            SearchRequest { stop: vec![TrialId(1)], ..go_on(&[(1, 4)]) },
            "trial 1 can't be stopped and go on at once",
        ),
    ] {
        assert_eq!(refused(&mut bench, request), (ErrorKind::Invalid, told.to_owned()));
    }
}

#[test]
fn nothing_of_a_request_happens_where_a_part_of_it_is_refused() {
    let mut bench = searching(3, "method = \"random\"\ntrials = 3\n");
    ask(&mut bench, stop(&[0])).unwrap();
    let request = SearchRequest { stop: vec![TrialId(1)], ..go_on(&[(0, 2)]) };
    assert_eq!(
        refused(&mut bench, request),
        (
            ErrorKind::Invalid,
            "trial 0 of job 1 trains for 3 epochs already: 2 in all are fewer".to_owned()
        )
    );
}

#[test]
fn a_trial_that_goes_on_by_hand_is_ended_by_no_rule() {
    for rule in ["{ rule = \"median\", min_trials = 1 }", "{ rule = \"patience\", epochs = 1 }"] {
        let search = format!("method = \"random\"\ntrials = 3\nstopping = {rule}\n");
        let mut bench = searching(6, &search);
        to_the_end(&mut bench, &by_trial);
        let before = trained(&bench);
        assert!(before[2] < 6, "{rule}: {before:?}");
        ask(&mut bench, go_on(&[(2, 6)])).unwrap();
        to_the_end(&mut bench, &by_trial);
        assert_eq!(trained(&bench), [before[0], before[1], 6], "{rule}");
        let extend = Command::Extend {
            to: ReplyTo(1),
            job: JOB,
            epochs: 8,
            trial: Some(TrialId(2)),
            reopen: false,
        };
        bench.answer(extend).unwrap();
        to_the_end(&mut bench, &by_trial);
        assert_eq!(trained(&bench), [before[0], before[1], 8], "{rule}");
    }
}

#[test]
fn a_clone_is_judged_by_its_own_epochs() {
    let search =
        "method = \"random\"\ntrials = 1\nstopping = { rule = \"patience\", epochs = 2 }\n";
    let mut bench = searching(200, search);
    to_the_end(&mut bench, &by_trial);
    assert_eq!(trained(&bench).len(), 1);
    let from = bench.core.state().jobs[&JOB].clonable_after(TrialId(0)).unwrap();
    assert!(from <= 100, "{from}");
    ask(&mut bench, clone_of(0)).unwrap();
    to_the_end(&mut bench, &by_trial);
    // Its first own value is its best, and two more are no better.
    assert!(trained(&bench)[1] >= from + 3, "{:?} from {from}", trained(&bench));
    let stopped = bench.trials()[1].stopped.clone().unwrap();
    assert!(stopped.contains("no better than 1.000000 for "), "{stopped}");
}

#[test]
fn what_has_nothing_left_to_do_does_not_go_on_nor_come_first() {
    let mut bench = searching(2, "method = \"random\"\ntrials = 2\n");
    ask(&mut bench, stop(&[1])).unwrap();
    to_the_end(&mut bench, &by_trial);
    assert_eq!(
        refused(&mut bench, go_on(&[(0, 2)])),
        (ErrorKind::Conflict, "trial 0 of job 1 may train 2 epochs already".to_owned())
    );
    assert_eq!(
        refused(&mut bench, priorities(&[(0, 2)])),
        (ErrorKind::Conflict, "trial 0 of job 1 has ended already".to_owned())
    );
    let request = SearchRequest { go_on: go_on(&[(1, 2)]).go_on, ..priorities(&[(1, 2)]) };
    ask(&mut bench, request).unwrap();
    to_the_end(&mut bench, &by_trial);
    assert_eq!(trained(&bench), [2, 2]);
}

/// Trials of a program that decides after each epoch, of which all wait.
fn waiting(trials: u32) -> Bench {
    let mut bench = searching(3, &format!("method = \"epochs\"\ntrials = {trials}\n"));
    let add = [0.01, 0.02].map(new);
    ask(&mut bench, SearchRequest { add: add.to_vec(), ..SearchRequest::default() }).unwrap();
    work_until_all_wait(&mut bench);
    bench
}

fn work_until_all_wait(bench: &mut Bench) {
    let busy = |bench: &Bench| bench.core.state().jobs[&JOB].trials.iter().any(|of| of.is_busy());
    while busy(bench) {
        work(bench, HOST, &by_trial);
        assert!(bench.now < 1_000_000);
    }
}

fn new(lr: f64) -> NewTrial {
    let values = Choices::from([("lr".to_owned(), json!(lr)), ("batch_size".to_owned(), json!(8))]);
    NewTrial { values, from: None }
}

#[test]
fn trials_that_wait_for_a_program_end_when_it_ends_the_search() {
    // Also where all combinations that it may suggest are suggested.
    for trials in [2, 9] {
        let mut bench = waiting(trials);
        let (end, why) = (true, Some("good enough".to_owned()));
        ask(&mut bench, SearchRequest { end, why, ..go_on(&[(0, 2)]) }).unwrap();
        to_the_end(&mut bench, &by_trial);
        assert_eq!((bench.job().state, trained(&bench)), (JobState::Finished, vec![2, 1]));
        assert_eq!(
            bench.trials()[0].stopped.as_deref(),
            Some("stopped after 2 epochs: the search has ended: good enough")
        );
        // No program waits for a clone that a person adds: it trains all its epochs.
        ask(&mut bench, clone_of(1)).unwrap();
        to_the_end(&mut bench, &by_trial);
        assert_eq!(trained(&bench), [2, 1, 3]);
    }
}

#[test]
fn a_trial_that_waits_for_a_program_goes_on_beyond_its_epochs_at_once() {
    let mut bench = waiting(9);
    assert_eq!(
        bench.trials()[0].waiting.as_deref(),
        Some("it waits for the program that decides after each epoch")
    );
    ask(&mut bench, go_on(&[(0, 5)])).unwrap();
    work_until_all_wait(&mut bench);
    assert_eq!(trained(&bench), [5, 1]);
}

#[test]
fn a_used_up_budget_is_there_once_more_for_what_goes_on_and_for_nothing_else() {
    let search = "method = { name = \"tpe\", startup = 2 }\ntrials = 9\ntotal_epochs = 3\n";
    let mut bench = searching(2, search);
    to_the_end(&mut bench, &by_trial);
    assert_eq!(trained(&bench).iter().sum::<u32>(), 3);
    let (trials, short) =
        (trained(&bench).len(), trained(&bench).iter().position(|epochs| *epochs == 1).unwrap());
    let short = u32::try_from(short).unwrap();
    ask(&mut bench, go_on(&[(short, 2)])).unwrap();
    to_the_end(&mut bench, &by_trial);
    assert_eq!(trained(&bench).iter().sum::<u32>(), 4);
    assert_eq!(trained(&bench).len(), trials, "no other trial begins");
    // A clone that is added has a budget as well.
    ask(&mut bench, go_on(&[(short, 9)])).unwrap();
    to_the_end(&mut bench, &by_trial);
    // More combinations have the budget too.
    ask(&mut bench, SearchRequest { trials: Some(12), ..SearchRequest::default() }).unwrap();
    assert_eq!(bench.job().state, JobState::Running);
    let before = trained(&bench).iter().sum::<u32>();
    to_the_end(&mut bench, &by_trial);
    assert!(trained(&bench).len() > trials);
    assert!(trained(&bench).iter().sum::<u32>() > before);
}

#[test]
fn a_clone_of_a_job_whose_time_is_up_has_its_time_once_more() {
    let mut bench = searching(3, "method = \"random\"\ntrials = 2\ntotal_epochs = 2\n");
    to_the_end(&mut bench, &by_trial);
    let first = trained(&bench).iter().position(|epochs| *epochs > 0).unwrap();
    let before: u32 = trained(&bench).iter().sum();
    ask(&mut bench, clone_of(u32::try_from(first).unwrap())).unwrap();
    to_the_end(&mut bench, &by_trial);
    assert_eq!(before, 2);
    assert_eq!(trained(&bench).last(), Some(&3), "{:?}", bench.trials());
}

#[test]
fn a_search_that_has_found_nothing_tries_no_more() {
    let mut bench = searching(1, "method = { name = \"tpe\", startup = 1 }\ntrials = 9\n");
    for _ in 0..200 {
        bench.now += 100;
        for host in [HOST, OTHER] {
            for lease in bench.ask(host, request(1, Vec::new())).leases {
                let kind = sojourn_protocol::report::FailureKind::NonFinite;
                crate::support::fail(&mut bench, host, lease.id, kind, "the loss is NaN");
            }
        }
    }
    assert_eq!(bench.job().state, JobState::Failed);
    let (kind, why) =
        refused(&mut bench, SearchRequest { trials: Some(12), ..SearchRequest::default() });
    assert_eq!(kind, ErrorKind::Conflict);
    assert!(why.starts_with("the search of job 1 tries no more combinations: the first "), "{why}");
}

/// A trial that was stopped and cloned while its last epoch was still to be evaluated.
fn cloned_before_its_evaluation() -> Bench {
    let mut bench = searching(3, "method = \"random\"\ntrials = 1\n");
    while trained(&bench) == [0] {
        for lease in bench.ask(HOST, request(1, Vec::new())).leases {
            bench.finish(HOST, &lease);
        }
    }
    // The next epoch is under way, and the last one is to be evaluated.
    for lease in bench.ask(HOST, request(2, Vec::new())).leases {
        if matches!(lease.unit, Unit::Train(_)) {
            bench.finish(HOST, &lease);
        }
    }
    assert!(!bench.core.state().jobs[&JOB].trials[0].evaluations.is_empty());
    let request = SearchRequest { stop: vec![TrialId(0)], ..clone_of(0) };
    assert_eq!(ask(&mut bench, request).unwrap().added, [TrialId(1)]);
    bench
}

#[test]
fn a_trial_that_is_stopped_is_cloned_by_the_same_request_from_an_epoch_that_is_not_evaluated_yet() {
    assert_eq!(trained(&cloned_before_its_evaluation()), [1, 1]);
}

#[test]
fn no_more_combinations_are_added_than_the_same_request_leaves() {
    let mut bench = searching(1, "method = \"ask-tell\"\ntrials = 9\n");
    let add = vec![new(0.01), new(0.02), new(0.03)];
    let request = SearchRequest { add: add.clone(), trials: Some(2), ..SearchRequest::default() };
    assert_eq!(
        refused(&mut bench, request).1,
        "the search of job 1 is to try 2 combinations, and has tried 0"
    );
    let request = SearchRequest { add, trials: Some(3), ..SearchRequest::default() };
    assert_eq!(ask(&mut bench, request).unwrap().added.len(), 3);
}

#[test]
fn another_space_says_what_is_other_and_why_and_the_submitted_job_is_still_known() {
    let mut bench = searching(1, "method = \"random\"\ntrials = 2\n");
    let before = bench.core.state().jobs[&JOB].spec.clone();
    let (models, mut training) = (before.models.clone(), before.training.clone());
    training.optimizer.lr = Dimension::Choice(vec![0.3, 0.7]);
    let space = Space { models, training };
    let request = SearchRequest {
        space: Some(Box::new(space.clone())),
        why: Some("the best was at the edge".into()),
        ..SearchRequest::default()
    };
    let events = bench.events(change(request));
    let [Event::SpaceChanged { changed, why, .. }] = events.as_slice() else {
        panic!("{events:?}")
    };
    assert_eq!(changed, &["/training/optimizer/lr"]);
    assert_eq!(why.as_deref(), Some("the best was at the edge"));
    let query = Query::Job { job: JOB };
    let Ok(Answer::Job(detail)) = bench.answer(Command::Query { to: ReplyTo(1), query }) else {
        panic!("a job")
    };
    assert_eq!((detail.spec, detail.space.as_deref()), (before, Some(&space)));
}

#[test]
fn a_search_that_is_to_try_no_more_than_it_has_tried_ends() {
    let mut bench = searching(1, "method = \"ask-tell\"\ntrials = 9\n");
    let add = SearchRequest { add: vec![new(0.01)], ..SearchRequest::default() };
    ask(&mut bench, add).unwrap();
    while bench.core.state().jobs[&JOB].trials[0].is_running() {
        work(&mut bench, HOST, &by_trial);
    }
    assert_eq!(bench.job().state, JobState::Running, "it waits for more");
    ask(&mut bench, SearchRequest { trials: Some(1), ..SearchRequest::default() }).unwrap();
    assert_eq!(bench.job().state, JobState::Finished);
    // It is open again, and ends again.
    ask(&mut bench, SearchRequest { trials: Some(2), ..SearchRequest::default() }).unwrap();
    assert_eq!(bench.job().state, JobState::Running);
    let add = SearchRequest { add: vec![new(0.02)], ..SearchRequest::default() };
    ask(&mut bench, add).unwrap();
    to_the_end(&mut bench, &by_trial);
}

#[test]
fn the_epoch_that_a_clone_goes_on_from_is_evaluated_where_it_is_its_best() {
    let mut bench = cloned_before_its_evaluation();
    to_the_end(&mut bench, &|_, epoch| f64::from(epoch));
    let best = bench.trials()[1].best.clone().unwrap();
    assert_eq!(best.epoch.0, 0, "that of the other trial");
    let (to, trial, split) = (ReplyTo(1), TrialId(1), DataSplit::Valid);
    bench.answer(Command::Evaluate { to, job: JOB, trial, split }).unwrap();
    let lease = bench.lease(HOST);
    assert!(matches!(&lease.unit, Unit::Evaluate(unit) if unit.checkpoint == best.checkpoint));
    evaluate(&mut bench, HOST, &lease, &by_trial);
    assert_eq!(bench.core.check_invariants(), Ok(()));
}

#[test]
fn trials_that_went_on_end_although_a_clone_takes_their_place() {
    for rule in ["\"sha\"", "\"hyperband\"", "\"asha\""] {
        let mut bench = early_stopping::searching(6, 9, rule);
        let allowed = |bench: &Bench| -> Vec<u32> {
            bench.core.state().jobs[&JOB].trials.iter().map(|of| of.chain.epochs()).collect()
        };
        while !allowed(&bench).contains(&3) {
            work(&mut bench, HOST, &by_trial);
        }
        // Its first epoch is as good as that of the best, and better than that of any other.
        let add = vec![NewTrial { values: Choices::new(), from: Some(TrialId(0)) }];
        ask(&mut bench, SearchRequest { add, ..SearchRequest::default() }).unwrap();
        to_the_end(&mut bench, &by_trial);
        assert_eq!(bench.core.check_invariants(), Ok(()));
    }
}

#[test]
fn trials_that_are_let_go_on_to_between_rungs_end() {
    for rule in ["\"sha\"", "\"hyperband\"", "\"asha\""] {
        for epochs in [2, 5, 8] {
            let mut bench = early_stopping::searching(6, 9, rule);
            while !bench.core.state().jobs[&JOB].trials.iter().any(|of| of.chain.epochs() == 1) {
                work(&mut bench, HOST, &by_trial);
            }
            let trials = &bench.core.state().jobs[&JOB].trials;
            let one = trials.iter().rfind(|of| of.is_running() && of.chain.epochs() == 1);
            let one = one.unwrap().id.0;
            ask(&mut bench, go_on(&[(one, epochs)])).unwrap();
            to_the_end(&mut bench, &by_trial);
        }
    }
}

#[test]
fn a_trial_that_is_let_go_on_beyond_the_last_rung_goes_on_to_its_end() {
    let mut bench = early_stopping::searching(3, 9, "\"sha\"");
    bench.apply(Command::Extend {
        to: ReplyTo(1),
        job: JOB,
        epochs: 27,
        trial: None,
        reopen: false,
    });
    ask(&mut bench, go_on(&[(2, 12)])).unwrap();
    to_the_end(&mut bench, &by_trial);
    assert_eq!(trained(&bench)[2], 27);
}

/// One thing that may happen; numbers pick among what there is.
#[derive(Debug, Clone)]
enum Step {
    /// A host does what it gets; or trains and evaluates nothing; or keeps what it gets.
    Work {
        other: bool,
        how: u8,
    },
    /// A result that was kept is reported.
    Report {
        which: usize,
    },
    Assimilate,
    Change(Box<SearchRequest>),
    Extend {
        epochs: u32,
        trial: Option<u32>,
    },
    Rollback {
        trial: u32,
        epochs: u32,
    },
    Pause,
    Resume,
    Pass {
        millis: u64,
    },
    Lose {
        which: usize,
    },
    Restart,
}

fn requests() -> impl Strategy<Value = SearchRequest> {
    let trial = || (0u32..7).prop_map(TrialId);
    let twice = |trials: Vec<TrialId>, double: bool| match trials.first() {
        Some(first) if double => [&[*first], trials.as_slice()].concat(),
        _ => trials,
    };
    let stop = (prop::collection::vec(trial(), 0..3), any::<bool>())
        .prop_map(move |(trials, double)| twice(trials, double));
    let go_on = (trial(), 0u32..8).prop_map(|(trial, epochs)| GoOn { trial, epochs });
    let retry = (trial(), prop::option::weighted(0.3, prop::sample::select(vec![0.002, 0.5])));
    let retry = retry.prop_map(|(trial, lr)| {
        let values = lr.map(|lr| ("lr".to_owned(), json!(lr)));
        Retry { trial, values: values.into_iter().collect() }
    });
    let priority =
        (trial(), -101i32..102).prop_map(|(trial, priority)| TrialPriority { trial, priority });
    let add = (prop::option::of(trial()), prop::sample::select(vec![0.002, 0.05, 0.5]), 0u8..3);
    let add = add.prop_map(|(from, lr, more)| {
        let mut values = Choices::from([("lr".to_owned(), json!(lr))]);
        if from.is_none() || more == 0 {
            values.insert("batch_size".to_owned(), json!(8));
        }
        NewTrial { values, from }
    });
    let space = prop::sample::select(vec![0.002, 0.3]).prop_map(|lr| {
        let JobSpec { models, mut training, .. } = spec(4, "method = \"random\"\ntrials = 1\n");
        training.optimizer.lr = Dimension::Choice(vec![lr, 0.01]);
        Box::new(Space { models, training })
    });
    (
        prop::collection::vec(add, 0..3),
        prop::collection::vec(go_on, 0..3),
        stop,
        prop::collection::vec(priority, 0..2),
        prop::collection::vec(retry, 0..3),
        prop::option::weighted(0.2, 0u32..9),
        prop::option::weighted(0.2, space),
        prop::bool::weighted(0.1),
        prop::option::weighted(0.2, prop::sample::select(vec!["a", "b"])),
    )
        .prop_map(|(add, go_on, stop, priorities, retry, trials, space, end, nonce)| {
            let nonce = nonce.map(str::to_owned);
            SearchRequest {
                add,
                go_on,
                stop,
                retry,
                priorities,
                trials,
                space,
                end,
                why: None,
                nonce,
            }
        })
}

/// Parts of requests alone: most of several parts are refused for one of them.
fn one_part(all: SearchRequest, which: u8) -> SearchRequest {
    let none = SearchRequest::default();
    match which {
        0 => SearchRequest { add: all.add, ..none },
        1 => SearchRequest { go_on: all.go_on, ..none },
        2 => SearchRequest { stop: all.stop, ..none },
        3 => SearchRequest { stop: all.stop, add: all.add, ..none },
        4 => SearchRequest { stop: all.stop, go_on: all.go_on, ..none },
        6 => SearchRequest { retry: all.retry, ..none },
        5 => SearchRequest { trials: all.trials, space: all.space, end: all.end, ..none },
        _ => all,
    }
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        10 => (any::<bool>(), 0u8..8).prop_map(|(other, how)| Step::Work { other, how }),
        3 => any::<usize>().prop_map(|which| Step::Report { which }),
        2 => Just(Step::Assimilate),
        6 => (requests(), 0u8..9)
            .prop_map(|(all, which)| Step::Change(Box::new(one_part(all, which)))),
        1 => (1u32..8, prop::option::of(0u32..6))
            .prop_map(|(epochs, trial)| Step::Extend { epochs, trial }),
        1 => (0u32..6, 0u32..4).prop_map(|(trial, epochs)| Step::Rollback { trial, epochs }),
        1 => Just(Step::Pause),
        2 => Just(Step::Resume),
        2 => (0u64..20_000).prop_map(|millis| Step::Pass { millis }),
        1 => any::<usize>().prop_map(|which| Step::Lose { which }),
        1 => Just(Step::Restart),
    ]
}

struct Run {
    bench: Bench,
    kept: Vec<(HostId, Lease)>,
}

impl Run {
    fn step(&mut self, step: &Step) {
        let (to, bench) = (ReplyTo(1), &mut self.bench);
        bench.now += 7;
        match step {
            Step::Work { other, how } => {
                let host = if *other { OTHER } else { HOST };
                match how {
                    0..5 => drop(work(bench, host, &by_trial)),
                    5 => {
                        let leases = bench.ask(host, request(2, Vec::new())).leases;
                        self.kept.extend(leases.into_iter().map(|lease| (host, lease)));
                    }
                    _ => {
                        for lease in bench.ask(host, request(1, Vec::new())).leases {
                            match lease.unit {
                                Unit::Train(_) => drop(bench.finish(host, &lease)),
                                Unit::Evaluate(_) => self.kept.push((host, lease)),
                            }
                        }
                    }
                }
            }
            Step::Report { which } => {
                let Some(at) = which.checked_rem(self.kept.len()) else { return };
                let (host, lease) = self.kept.swap_remove(at);
                match lease.unit {
                    Unit::Train(_) => drop(bench.report(host, done(&lease))),
                    Unit::Evaluate(_) => drop(evaluate(bench, host, &lease, &by_trial)),
                }
            }
            Step::Assimilate => drop(bench.assimilate()),
            Step::Change(request) => drop(bench.answer(change((**request).clone()))),
            Step::Extend { epochs, trial } => {
                let (epochs, trial) = (*epochs, trial.map(TrialId));
                drop(bench.answer(Command::Extend { to, job: JOB, epochs, trial, reopen: false }));
            }
            Step::Rollback { trial, epochs } => {
                let request = RollbackRequest::Trial {
                    trial: TrialId(*trial),
                    epochs: *epochs,
                    options: Default::default(),
                };
                drop(bench.answer(Command::Rollback { to, job: JOB, request }));
            }
            Step::Pause => drop(bench.answer(Command::Pause { to, job: JOB, now: false })),
            Step::Resume => drop(bench.answer(Command::Resume { to, job: JOB })),
            Step::Pass { millis } => {
                bench.now += millis;
                drop(bench.apply(Command::Tick));
            }
            Step::Lose { which } => {
                let blobs = &bench.core.state().blobs;
                let known: Vec<_> = blobs.referenced().map(|(blob, _)| blob).collect();
                if let Some(at) = which.checked_rem(known.len()) {
                    drop(bench.apply(Command::Lost { blob: known[at] }));
                }
            }
            Step::Restart => {
                let snapshot = bench.core.snapshot().unwrap();
                bench.core = Core::from_snapshot(&snapshot, *bench.core.config()).unwrap();
                drop(bench.apply(Command::Started));
            }
        }
    }
}

const METHODS: [&str; 8] = [
    "\"random\"\ntrials = 4\n",
    "\"sobol\"\ntrials = 3\n",
    "{ name = \"tpe\", startup = 2 }\ntrials = 6\n",
    "{ name = \"tpe\", startup = 2, batch = 2 }\ntrials = 6\n",
    "\"ask-tell\"\ntrials = 6\n",
    "\"epochs\"\ntrials = 6\n",
    "{ name = \"pbt\", interval = 2, quantile = 0.5 }\ntrials = 4\n",
    "\"random\"\ntrials = 1\n",
];

const RULES: [&str; 6] = [
    "",
    "stopping = { rule = \"asha\", reduction = 2 }\n",
    "stopping = { rule = \"sha\", reduction = 2 }\n",
    "stopping = { rule = \"hyperband\", reduction = 2 }\n",
    "stopping = { rule = \"median\", min_trials = 1 }\n",
    "stopping = { rule = \"patience\", epochs = 1 }\n",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    /// A request either happens or is refused; none makes an event that doesn't fit the state.
    #[test]
    fn any_changes_of_a_search_keep_the_invariants(
        method in prop::sample::select(METHODS.to_vec()),
        rule in prop::sample::select(RULES.to_vec()),
        total_epochs in prop::option::of(1u32..12),
        wall_time in prop::option::weighted(0.2, 1u32..60),
        placement in prop::sample::select(vec!["", "[placement]\norder = \"merge\"\n"]),
        steps in prop::collection::vec(step(), 1..100),
    ) {
        let rule = if method.contains("epochs") || method.contains("pbt") { "" } else { rule };
        let total = total_epochs.map_or_else(String::new, |n| format!("total_epochs = {n}\n"));
        let wall = wall_time.map_or_else(String::new, |n| format!("wall_time = \"{n}s\"\n"));
        let bench = searching(4, &format!("method = {method}{rule}{total}{wall}{placement}"));
        let mut run = Run { bench, kept: Vec::new() };
        for step in &steps {
            run.step(step);
        }
    }
}
