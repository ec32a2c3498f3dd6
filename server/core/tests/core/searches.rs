//! Searches that go on while trials train: combinations that are suggested, and what users and programs change.

use crate::{
    searching::{by_trial, to_the_end, trained, work},
    support::{Bench, HOST, JOB, data, request},
};
use serde_json::json;
use sojourn_core::{Answer, By, Command, Core, Event, Query, ReplyTo};
use sojourn_protocol::{
    api::{
        GoOn, NewTrial, SearchAnswer, SearchRequest, SearchTrialState, SearchView, Space,
        TrialPriority,
    },
    error::{ApiError, ErrorKind},
    ids::TrialId,
    jobfile,
    report::Outcome,
    spec::{Choices, Goal, JobSpec, SearchBudget},
    unit::{Base, Unit},
    view::{JobState, TrialState, TrialView},
};
use std::collections::BTreeSet;

/// A job over learning rates and batch sizes, compared by its loss.
pub(crate) fn spec(epochs: u32, search: &str) -> JobSpec {
    let text = format!(
        "name = \"t\"\nseed = 7\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\n[[model]]\narch = \"mlp\"\nhidden = [4]\n[training]\nepochs = {epochs}\nbatch_size = {{ choice = [4, 8] }}\noptimizer = {{ name = \"sgd\", lr = {{ log_uniform = [1e-3, 1e-1] }} }}\n[search]\nmetric = \"valid/loss\"\n{search}"
    );
    jobfile::parse(&text).unwrap()
}

pub(crate) fn searching(epochs: u32, search: &str) -> Bench {
    let mut bench = Bench::new();
    bench.begin_with(data(), spec(epochs, search));
    bench
}

fn ask(bench: &mut Bench, request: SearchRequest) -> Result<SearchAnswer, ApiError> {
    let (request, by) = (Box::new(request), By::Server);
    let command = Command::ChangeSearch { to: ReplyTo(1), job: JOB, request, by };
    bench.answer(command).map(|answer| match answer {
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

fn view(bench: &mut Bench) -> SearchView {
    match bench.answer(Command::Query { to: ReplyTo(1), query: Query::Search { job: JOB } }) {
        Ok(Answer::Search(search)) => *search,
        other => panic!("{other:?}"),
    }
}

fn values(lr: f64, batch_size: u32) -> Choices {
    Choices::from([("lr".to_owned(), json!(lr)), ("batch_size".to_owned(), json!(batch_size))])
}

fn suggesting(lr: f64) -> SearchRequest {
    SearchRequest {
        add: vec![NewTrial { values: values(lr, 8), from: None }],
        ..SearchRequest::default()
    }
}

fn clone_of(trial: u32, lr: f64) -> SearchRequest {
    let values = Choices::from([("lr".to_owned(), json!(lr))]);
    let add = vec![NewTrial { values, from: Some(TrialId(trial)) }];
    SearchRequest { add, ..SearchRequest::default() }
}

fn rate(bench: &Bench, trial: usize) -> f64 {
    bench.core.state().jobs[&JOB].trials[trial].context.config.training.optimizer.lr
}

#[test]
fn tpe_begins_with_random_trials_and_suggests_as_slots_have_room() {
    let mut bench = searching(1, "method = { name = \"tpe\", startup = 5 }\ntrials = 12\n");
    assert_eq!(bench.trials().len(), 5);
    let first = view(&mut bench);
    assert_eq!((first.suggested, first.wanted, first.open, first.room), (5, 12, true, 0));
    let mut most = 0;
    let mut added = Vec::new();
    while bench.job().state == JobState::Running {
        let events = work(&mut bench, HOST, &by_trial);
        let running = bench.trials().iter().filter(|of| of.state == TrialState::Running).count();
        most = most.max(running);
        added.extend(events.into_iter().filter_map(|event| match event {
            Event::TrialsAdded { trials, suggested, why, by, .. } => {
                Some((trials.len(), suggested, why, by))
            }
            _ => None,
        }));
        assert!(bench.now < 1_000_000);
    }
    assert_eq!(trained(&bench), [1; 12]);
    assert_eq!(most, 5, "those that it began with are more than slots");
    assert_eq!(added.len(), 7);
    assert_eq!(added[0], (1, 1, "suggested by the results of 4 trials".to_owned(), None));
    assert!(!view(&mut bench).open);
}

#[test]
fn tpe_in_batches_suggests_when_all_before_have_ended_and_the_same_on_any_hosts() {
    let run = |hosts: u64| {
        let mut bench =
            searching(1, "method = { name = \"tpe\", startup = 4, batch = 3 }\ntrials = 10\n");
        let mut sizes = vec![bench.trials().len()];
        while bench.job().state == JobState::Running {
            for host in (1..=hosts).rev() {
                work(&mut bench, sojourn_protocol::ids::HostId(host), &by_trial);
            }
            let trials = bench.trials();
            if trials.len() > *sizes.last().unwrap() {
                let before = &trials[..*sizes.last().unwrap()];
                assert!(before.iter().all(|of| of.state == TrialState::Finished));
                sizes.push(trials.len());
            }
            assert!(bench.now < 1_000_000);
        }
        assert_eq!(sizes, [4, 7, 10]);
        (0..10).map(|trial| rate(&bench, trial)).collect::<Vec<f64>>()
    };
    assert_eq!(run(1), run(2));
}

#[test]
fn a_server_that_starts_again_suggests_what_it_would_have_suggested() {
    for rule in ["", "stopping = \"asha\"\n"] {
        let search = format!("method = {{ name = \"tpe\", startup = 3 }}\ntrials = 9\n{rule}");
        let run = |restarts: bool| {
            let mut bench = searching(3, &search);
            while bench.job().state == JobState::Running {
                work(&mut bench, HOST, &by_trial);
                if restarts {
                    let snapshot = bench.core.snapshot().unwrap();
                    bench.core = Core::from_snapshot(&snapshot, *bench.core.config()).unwrap();
                    bench.apply(Command::Started);
                }
                assert!(bench.now < 1_000_000);
            }
            assert_eq!(bench.trials().len(), 9);
            (0..9).map(|trial| rate(&bench, trial)).collect::<Vec<f64>>()
        };
        assert_eq!(run(true), run(true));
        assert_eq!(run(false).len(), 9);
    }
}

#[test]
fn a_search_whose_first_trials_all_fail_ends() {
    let mut bench = searching(1, "method = { name = \"tpe\", startup = 2 }\ntrials = 1_000\n");
    let mut ended = None;
    for _ in 0..200 {
        bench.now += 100;
        for host in [HOST, crate::support::OTHER] {
            for lease in bench.ask(host, request(1, Vec::new())).leases {
                let failure = sojourn_protocol::report::Failure {
                    kind: sojourn_protocol::report::FailureKind::NonFinite,
                    message: "the loss is NaN".into(),
                };
                let outcome = Outcome::Failed(failure);
                let report = sojourn_protocol::report::Report { lease: lease.id, outcome };
                let events =
                    bench.events(Command::Report { to: ReplyTo(1), host, report, uploaded: None });
                ended = ended.or(events.into_iter().find_map(|event| match event {
                    Event::SearchEnded { why, .. } => Some(why),
                    _ => None,
                }));
            }
        }
    }
    assert_eq!(ended.as_deref(), Some("the first 2 trials have all failed"));
    assert_eq!(bench.job().state, JobState::Failed);
}

#[test]
fn a_program_suggests_trials_and_ends_the_search() {
    let mut bench = searching(2, "method = \"ask-tell\"\ntrials = 3\n");
    assert_eq!((bench.job().state, bench.trials().len()), (JobState::Running, 0));
    let first = view(&mut bench);
    assert_eq!((first.method.as_str(), first.open, first.room), ("ask-tell", true, 4));
    let request = SearchRequest { nonce: Some("a".into()), ..suggesting(0.01) };
    assert_eq!(ask(&mut bench, request.clone()).unwrap().added, [TrialId(0)]);
    assert_eq!(ask(&mut bench, request).unwrap().added, [TrialId(0)], "the same call");
    assert_eq!(rate(&bench, 0), 0.01);
    assert_eq!(view(&mut bench).room, 3);
    ask(&mut bench, suggesting(0.05)).unwrap();
    while view(&mut bench).trials.iter().any(|of| of.state == SearchTrialState::Running) {
        work(&mut bench, HOST, &by_trial);
        assert!(bench.now < 1_000_000);
    }
    assert_eq!(bench.job().state, JobState::Running, "it waits for more");
    let after = view(&mut bench);
    assert_eq!(after.trials[1].values, [Some(1.0), Some(1.0)]);
    assert_eq!((after.trials[1].best, after.trials[1].epochs), (Some(1.0), 2));
    // A trial is stopped while it trains.
    ask(&mut bench, suggesting(0.02)).unwrap();
    let stop = SearchRequest {
        stop: vec![TrialId(2)],
        why: Some("pruned".into()),
        end: true,
        ..SearchRequest::default()
    };
    assert_eq!(refused(&mut bench, stop.clone()).0, ErrorKind::Conflict, "three are all");
    ask(&mut bench, SearchRequest { end: false, ..stop }).unwrap();
    assert_eq!(bench.trials()[2].stopped.as_deref(), Some("stopped after 0 epochs: pruned"));
    assert_eq!(bench.job().state, JobState::Finished);

    // Of one that isn't full the program says that it has ended.
    let mut bench = searching(1, "method = \"ask-tell\"\n");
    ask(&mut bench, suggesting(0.01)).unwrap();
    ask(&mut bench, SearchRequest { end: true, ..SearchRequest::default() }).unwrap();
    let (kind, why) = refused(&mut bench, suggesting(0.01));
    assert_eq!(
        (kind, why.as_str()),
        (ErrorKind::Conflict, "the search of job 1 has ended: no trial is added")
    );
    to_the_end(&mut bench, &by_trial);
    assert_eq!(view(&mut bench).over.as_deref(), Some("by hand"));
}

#[test]
fn what_a_program_suggests_must_be_of_the_space() {
    let mut bench =
        searching(2, "method = \"ask-tell\"\nconstraints = [\"lr * batch_size < 0.5\"]\n");
    let with = |values: Choices| SearchRequest {
        add: vec![NewTrial { values, from: None }],
        ..SearchRequest::default()
    };
    for (values, told) in [
        (values(0.5, 8), "trial 0: `0.5` is no value of `training.optimizer.lr`"),
        (values(0.01, 5), "`5` is no value of `training.batch_size`"),
        (values(0.08, 8), "break the constraint `lr * batch_size < 0.5`"),
        (Choices::from([("lr".into(), json!(0.01))]), "no value for `training.batch_size`"),
        (
            Choices::from([("lr".into(), json!("x")), ("batch_size".into(), json!(8))]),
            "`\"x\"` is no value of `training.optimizer.lr`",
        ),
        (
            values(0.01, 8).into_iter().chain([("depth".to_owned(), json!(1))]).collect(),
            "`depth` is no dimension",
        ),
    ] {
        let (kind, why) = refused(&mut bench, with(values));
        assert!(kind == ErrorKind::Invalid && why.contains(told), "{why}");
    }
    let by_full_names = Choices::from([
        ("training.optimizer.lr".to_owned(), json!(0.01)),
        ("training.batch_size".to_owned(), json!(8.0)),
    ]);
    ask(&mut bench, with(by_full_names)).unwrap();
}

#[test]
fn a_program_decides_epoch_by_epoch() {
    let mut bench = searching(3, "method = \"epochs\"\ntrials = 4\n");
    let add = [0.01, 0.02, 0.03].map(|lr| NewTrial { values: values(lr, 8), from: None });
    ask(&mut bench, SearchRequest { add: add.to_vec(), ..SearchRequest::default() }).unwrap();
    let wait = |bench: &mut Bench| {
        while view(bench).trials.iter().any(|of| of.state == SearchTrialState::Running) {
            work(bench, HOST, &by_trial);
            assert!(bench.now < 1_000_000);
        }
    };
    wait(&mut bench);
    assert_eq!(trained(&bench), [1, 1, 1]);
    let states: Vec<SearchTrialState> = view(&mut bench).trials.iter().map(|of| of.state).collect();
    assert_eq!(states, [SearchTrialState::Waiting; 3]);
    let next = SearchRequest {
        go_on: vec![GoOn { trial: TrialId(0), epochs: 2 }],
        stop: vec![TrialId(2)],
        add: vec![NewTrial { values: values(0.05, 4), from: None }],
        ..SearchRequest::default()
    };
    ask(&mut bench, next).unwrap();
    wait(&mut bench);
    assert_eq!(trained(&bench), [2, 1, 1, 1]);
    let again = SearchRequest {
        go_on: vec![GoOn { trial: TrialId(0), epochs: 2 }],
        ..SearchRequest::default()
    };
    let (_, why) = refused(&mut bench, again);
    assert_eq!(why, "trial 0 of job 1 may train 2 epochs already");
    // A clone waits after its next epoch, as the others do.
    assert_eq!(ask(&mut bench, clone_of(1, 0.04)).unwrap().added, [TrialId(4)]);
    wait(&mut bench);
    assert_eq!(trained(&bench), [2, 1, 1, 1, 2]);
    assert_eq!(view(&mut bench).trials[4].state, SearchTrialState::Waiting);
    let last = SearchRequest {
        go_on: vec![GoOn { trial: TrialId(0), epochs: 3 }],
        stop: vec![TrialId(1), TrialId(3), TrialId(4)],
        ..SearchRequest::default()
    };
    ask(&mut bench, last).unwrap();
    to_the_end(&mut bench, &by_trial);
    assert_eq!(trained(&bench), [3, 1, 1, 1, 2]);
    assert_eq!(bench.job().state, JobState::Finished);
}

#[test]
fn more_trials_and_another_space_reopen_a_search() {
    let mut bench = searching(1, "method = \"random\"\ntrials = 3\n");
    to_the_end(&mut bench, &by_trial);
    let fixed: Vec<f64> = (0..3).map(|trial| rate(&bench, trial)).collect();
    let wide = spec(1, "method = \"random\"\ntrials = 3\n");
    let mut training = wide.training.clone();
    training.optimizer.lr = sojourn_protocol::spec::Dimension::Choice(vec![0.7]);
    let space = Some(Box::new(Space { models: wide.models, training }));
    let request = SearchRequest { trials: Some(5), space, ..SearchRequest::default() };
    ask(&mut bench, request).unwrap();
    assert_eq!(bench.job().state, JobState::Running);
    to_the_end(&mut bench, &by_trial);
    assert_eq!(trained(&bench), [1; 5]);
    let rates: Vec<f64> = (0..5).map(|trial| rate(&bench, trial)).collect();
    assert_eq!(rates, [fixed[0], fixed[1], fixed[2], 0.7, 0.7]);
    let fewer = SearchRequest { trials: Some(4), ..SearchRequest::default() };
    assert_eq!(refused(&mut bench, fewer).1, "job 1 has tried 5 combinations already");

    // The trials are those that the job would have begun with.
    let mut longer = searching(1, "method = \"random\"\ntrials = 3\n");
    ask(&mut longer, SearchRequest { trials: Some(6), ..SearchRequest::default() }).unwrap();
    let whole = searching(1, "method = \"random\"\ntrials = 6\n");
    let of = |bench: &Bench| (0..6).map(|trial| rate(bench, trial)).collect::<Vec<f64>>();
    assert_eq!(of(&longer), of(&whole));
}

#[test]
fn a_clone_goes_on_from_the_others_checkpoint_with_other_settings() {
    let mut bench = searching(3, "method = \"random\"\ntrials = 1\n");
    assert_eq!(
        refused(&mut bench, clone_of(0, 0.5)).1,
        "trial 0 of job 1 can't be cloned now: no checkpoint of the end of an epoch is there"
    );
    while trained(&bench) == [0] {
        work(&mut bench, HOST, &by_trial);
    }
    let parent = bench.core.state().jobs[&JOB].trials[0].clone();
    let added = ask(&mut bench, clone_of(0, 0.5)).unwrap().added;
    assert_eq!(added, [TrialId(1)]);
    let clone = bench.core.state().jobs[&JOB].trials[1].clone();
    assert_eq!(rate(&bench, 1), 0.5, "also beyond the space, where a user says so");
    assert_eq!((clone.chain.epoch().0, clone.chain.step()), (1, parent.chain.step()));
    let base = Base::Checkpoint {
        version: sojourn_protocol::ids::Version(0),
        blob: parent.checkpoint.unwrap(),
    };
    assert_eq!(clone.base(), base);
    assert_eq!(
        clone.name(),
        format!("mlp batch_size={} lr=0.5", parent.context.config.training.batch_size)
    );
    // It trains the rest, and nothing of what the other has trained.
    let mut hops = Vec::new();
    for _ in 0..200 {
        bench.now += 100;
        for lease in bench.ask(HOST, request(1, Vec::new())).leases {
            match &lease.unit {
                Unit::Train(hop) => {
                    hops.push((hop.trial, hop.start.epoch.0));
                    bench.finish(HOST, &lease);
                }
                Unit::Evaluate(_) => {
                    drop(bench.report(HOST, crate::support::done(&lease)).unwrap());
                }
            }
        }
    }
    assert_eq!(bench.job().state, JobState::Finished);
    let of_clone: Vec<u32> =
        hops.iter().filter(|(trial, _)| *trial == TrialId(1)).map(|(_, epoch)| *epoch).collect();
    assert_eq!(of_clone, [1, 1, 2, 2]);
    assert_eq!(trained(&bench), [3, 3]);
    assert_eq!(bench.trials()[1].curve.len(), 3, "the first point is the other's");
    // One that changes the shape of the checkpoint can't go on from it.
    let values = Choices::from([("hidden".to_owned(), json!([8]))]);
    let add = vec![NewTrial { values, from: Some(TrialId(0)) }];
    let (_, why) = refused(&mut bench, SearchRequest { add, ..SearchRequest::default() });
    assert!(why.contains("its checkpoint has other tensors"), "{why}");
    let (_, why) = refused(&mut bench, clone_of(0, 0.5));
    assert!(why.contains("has trained all of its 3 epochs"), "{why}");
}

#[test]
fn trials_are_stopped_revived_and_put_first_by_hand() {
    let mut bench = searching(2, "method = \"random\"\ntrials = 4\n");
    let first = SearchRequest {
        priorities: vec![TrialPriority { trial: TrialId(3), priority: 5 }],
        stop: vec![TrialId(1)],
        why: Some("too slow".into()),
        ..SearchRequest::default()
    };
    let (request_of, by) = (Box::new(first), By::Token(sojourn_protocol::ids::TokenId(4)));
    let events =
        bench.events(Command::ChangeSearch { to: ReplyTo(1), job: JOB, request: request_of, by });
    assert!(events.contains(&Event::TrialStopped {
        job: JOB,
        trial: TrialId(1),
        why: "too slow".into(),
        by: Some(by),
    }));
    let lease = bench.lease(HOST);
    let Unit::Train(hop) = &lease.unit else { panic!("{lease:?}") };
    assert_eq!(hop.trial, TrialId(3), "it comes first");
    bench.finish(HOST, &lease);
    to_the_end(&mut bench, &by_trial);
    assert_eq!(trained(&bench), [2, 0, 2, 2]);
    let again = SearchRequest { stop: vec![TrialId(1)], ..SearchRequest::default() };
    assert_eq!(refused(&mut bench, again).1, "trial 1 of job 1 has ended already");
    let revive = SearchRequest {
        go_on: vec![GoOn { trial: TrialId(1), epochs: 2 }],
        ..SearchRequest::default()
    };
    ask(&mut bench, revive).unwrap();
    to_the_end(&mut bench, &by_trial);
    assert_eq!(trained(&bench), [2, 2, 2, 2]);
}

#[test]
fn all_trials_together_train_no_more_epochs_than_their_search_may() {
    let mut bench = searching(4, "method = \"random\"\ntrials = 6\ntotal_epochs = 7\n");
    let events = to_the_end(&mut bench, &by_trial);
    assert!(events.iter().any(|event| {
        matches!(event, Event::JobTrainingOver { used_up: Some(SearchBudget::Epochs(7)), .. })
    }));
    assert_eq!(trained(&bench).iter().sum::<u32>(), 7, "two hosts don't begin an epoch too many");
    assert_eq!(bench.job().state, JobState::Finished);
    let why: Vec<String> = bench.trials().iter().filter_map(|of| of.stopped.clone()).collect();
    assert!(why.iter().all(|why| why == "stopped when all trials together had trained 7 epochs"));
    assert!(!why.is_empty());
    // Who extends the job gives it as many epochs once more.
    for all in [14, 21, 24] {
        let extend =
            Command::Extend { to: ReplyTo(1), job: JOB, epochs: 4, trial: None, reopen: false };
        bench.answer(extend).unwrap();
        to_the_end(&mut bench, &by_trial);
        assert_eq!(trained(&bench).iter().sum::<u32>(), all);
        let why: BTreeSet<String> =
            bench.trials().iter().filter_map(|of| of.stopped.clone()).collect();
        let expected = format!("stopped when all trials together had trained {all} epochs");
        assert_eq!(why, BTreeSet::from_iter((all < 24).then_some(expected)));
    }

    // A search that suggests ends with what it has, and nothing is suggested after.
    let mut bench =
        searching(1, "method = { name = \"tpe\", startup = 2 }\ntrials = 90\ntotal_epochs = 5\n");
    to_the_end(&mut bench, &by_trial);
    assert_eq!(trained(&bench).iter().sum::<u32>(), 5);
    assert_eq!(view(&mut bench).over.as_deref(), Some("stopped after 5 epochs"));
}

#[test]
fn what_an_earlier_job_found_out_counts_as_tried() {
    use sojourn_protocol::spec::{PastJob, PastTrial};
    let mut spec =
        spec(1, "method = { name = \"tpe\", startup = 4 }\ntrials = 6\nhistory = \"earlier\"\n");
    let past = |n: u32| PastTrial {
        model: 0,
        choices: Choices::from([
            // The good ones are near the low end, the others all over the rest.
            ("training.optimizer.lr".to_owned(), json!(0.001 * f64::powf(1.25, f64::from(n)))),
            ("training.batch_size".to_owned(), json!(8)),
        ]),
        epochs: 9,
        value: if n < 3 { 0.1 } else { 5.0 },
    };
    let trials = (0..20).map(past).collect();
    spec.search.history = Some(Box::new(PastJob { job: "earlier".into(), trials }));
    let mut bench = Bench::new();
    bench.begin_with(data(), spec);
    assert_eq!(
        view(&mut bench).suggested,
        2,
        "there is room for a trial a slot, and none is random"
    );
    to_the_end(&mut bench, &by_trial);
    assert_eq!(trained(&bench), [1; 6]);
    let near = (0..6).filter(|trial| rate(&bench, *trial) < 0.01).count();
    assert!(near >= 4, "most are near what was good before: {near}");
}

#[test]
fn the_leading_trials_are_those_at_the_top_of_the_leader_board() {
    let mut bench = searching(1, "method = \"random\"\ntrials = 6\n");
    let leading = |bench: &mut Bench, limit| {
        let query = Query::LeadingTrials { job: JOB, limit };
        match bench.answer(Command::Query { to: ReplyTo(1), query }) {
            Ok(Answer::Trials(trials)) => trials,
            other => panic!("{other:?}"),
        }
    };
    let ids = |trials: &[TrialView]| trials.iter().map(|trial| trial.trial.0).collect::<Vec<_>>();
    assert_eq!(ids(&leading(&mut bench, 3)), [0, 1, 2], "none has a value");
    while bench.trials().iter().filter(|trial| trial.best.is_some()).count() < 4 {
        work(&mut bench, HOST, &|trial, _| 9.0 - f64::from(trial));
    }
    let mut all = bench.trials();
    all.sort_by(|a, b| TrialView::leader_board(Goal::Min, a, b));
    assert!(all[0].trial.0 > all[1].trial.0, "the later one is better");
    assert_eq!(leading(&mut bench, 6), all);
    assert_eq!(leading(&mut bench, 2), all[..2]);
    assert_eq!(leading(&mut bench, 0), []);
    assert_eq!(leading(&mut bench, u32::MAX).len(), 6);
}
