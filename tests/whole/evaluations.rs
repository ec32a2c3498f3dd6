//! Evaluations outside the search: how they are asked for, waited for and shown.

use crate::{
    reading::{World, printed, words},
    site::Site,
    support::{Answer, FakeServer, sojourn},
};
use serde_json::{Value, json};
use sojourn_protocol::{
    ids::{Epoch, TrialId},
    manifest::DataSplit,
    metrics::{ByClass, Confusion, Metrics},
    report::Sums,
    spec::{Loss, Metric, SearchMethod, SearchSpec},
    time::UnixMillis,
    view::{EvaluationResult, EvaluationState, EvaluationView},
};
use std::{
    fs,
    sync::atomic::{AtomicUsize, Ordering},
};

/// The test of trial 1 in this state.
fn test(world: &World, state: EvaluationState) -> EvaluationView {
    let checkpoint = world.trials[1].checkpoint.unwrap();
    EvaluationView { trial: TrialId(1), split: DataSplit::Test, epoch: Epoch(0), checkpoint, state }
}

fn done() -> EvaluationState {
    let sums = Sums { rows: 10, loss: 5.0, correct: Some(8), ..Sums::default() };
    let by_class = ByClass::Confusion(Confusion(vec![vec![4, 0, 0], vec![0, 4, 0], vec![1, 1, 0]]));
    let search = SearchSpec::new(SearchMethod::Grid, Metric::Accuracy);
    let metrics =
        Metrics::of(Loss::CrossEntropy, &search, &sums, Some(&by_class), None, &[].into());
    let (at, by_class) = (UnixMillis(0), Some(by_class));
    EvaluationState::Done(EvaluationResult {
        at,
        metrics,
        by_class,
        arrays: [].into(),
        verified: None,
    })
}

/// A server whose evaluation is in these states, one look after the other.
fn serve(states: Vec<EvaluationState>) -> FakeServer {
    let world = World::new();
    let looks = AtomicUsize::new(0);
    FakeServer::start(move |request| {
        let path = request.line.split_once(' ').unwrap().1;
        let look = || {
            let at = looks.fetch_add(1, Ordering::SeqCst).min(states.len() - 1);
            test(&world, states[at].clone())
        };
        match path {
            "/v1/jobs/1/trials/1/evaluate" => Answer::json(200, json!(look()).to_string()),
            "/v1/jobs/1/trials/1/evaluations" => Answer::json(200, json!([look()]).to_string()),
            path => world.answer(path),
        }
    })
}

#[test]
fn an_evaluation_prints_its_metrics_and_its_confusion_matrix() {
    let reason = Some("no host is in contact".to_owned());
    let waiting = EvaluationState::Waiting { reason };
    let server = serve(vec![waiting, EvaluationState::Running, done()]);
    let output = sojourn(&["evaluate", "1", "--split", "test", "--wait", "--server", &server.url])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Vec<&str>> = text.lines().map(words).collect();
    assert_eq!(text.lines().next(), Some("trial 1 of job 1 after epoch 1 on the test data"));
    for line in [["accuracy", "0.8000"], ["loss", "0.5000"]] {
        assert!(lines.contains(&line.to_vec()), "{text}");
    }
    // F1 of the classes: 8/9, 8/9, 0.
    assert!(lines.contains(&vec!["macro", "F1", "0.5926"]), "{text}");
    assert_eq!(lines[lines.len() - 4..][0], ["LABEL", "0", "1", "2"]);
    assert_eq!(lines[lines.len() - 1], ["2", "1", "1", "0"]);
    let asked: Value = serde_json::from_slice(&server.requests.lock().unwrap()[1].body).unwrap();
    assert_eq!(asked, json!({ "split": "test" }));
}

#[test]
fn json_has_the_whole_evaluation_and_its_progress_without_waiting() {
    let server = serve(vec![done()]);
    let text = printed(&server, &["evaluate", "1", "--split", "test", "--trial", "1", "--json"]);
    let told: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (&told["job"], &told["trial"], &told["split"]),
        (&json!(1), &json!(1), &json!("test"))
    );
    assert_eq!(told["classes"], json!(["0", "1", "2"]));
    assert_eq!(told["state"]["done"]["metrics"]["accuracy"], 0.8);
    assert_eq!(told["state"]["done"]["by_class"]["confusion"][2], json!([1, 1, 0]));
    let server = serve(vec![EvaluationState::Waiting { reason: None }]);
    let text = printed(&server, &["evaluate", "1", "--best", "--split", "valid"]);
    assert!(text.contains("waits for a machine") && text.contains("`--wait`"), "{text}");
}

#[test]
fn an_evaluation_that_fails_fails_the_command() {
    let server = serve(vec![EvaluationState::Failed { error: "it crashed".into() }]);
    let output =
        sojourn(&["evaluate", "1", "--split", "test", "--server", &server.url]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "error: trial 1 of job 1 could not be evaluated: it crashed\n"
    );
}

#[test]
fn a_test_evaluation_is_shown_apart_from_the_leader_board() {
    let mut world = World::new();
    let view = test(&world, done());
    world.trials[1].test = Some(view.clone().brief());
    world.detail.summary.test = Some(view);
    let server = world.serve();
    let status = printed(&server, &["status", "1"]);
    let line = "test         accuracy 0.8000, macro F1 0.5926, loss 0.5000 (trial 1, epoch 1; not used by the search)";
    assert!(status.lines().any(|told| told == line), "{status}");
    assert!(status.lines().any(|told| words(told) == ["2", "1", "1", "0"]), "{status}");
    let trials = printed(&server, &["trials", "1"]);
    let lines: Vec<&str> = trials.lines().collect();
    assert_eq!(words(lines[1])[0], "1", "the board is in the order of the search");
    assert_eq!(lines[4], "on the test data");
    assert!(lines[5].starts_with("accuracy 0.8000") && lines[5].contains("trial 1"), "{trials}");
}

#[test]
fn the_best_trial_is_tested_and_others_on_request() {
    let site = Site::start();
    let client = site.client("client-1");
    site.submit(4, 1);
    let path = site.path().join("job.toml");
    let job = fs::read_to_string(&path).unwrap();
    fs::write(&path, job.replace("valid = 0.2", "valid = 0.2\ntest = 0.1")).unwrap();
    let output = site.run(&["submit", "job.toml", "--wait"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    let line = text.lines().last().unwrap();
    assert!(line.starts_with("test data: accuracy 0.") && line.contains("not used"), "{text}");
    let job = "2";
    let view = site.job(job);
    let best = view["best"]["trial"].as_u64().unwrap();
    assert_eq!(view["test"]["trial"].as_u64(), Some(best));
    assert!(view["test"]["state"]["done"]["metrics"]["top_k"]["k"] == 5, "{view}");
    let other = ((best + 1) % 4).to_string();
    let told = site.json(&["evaluate", job, "--trial", &other, "--wait"]);
    let result = &told["state"]["done"];
    let matrix = result["by_class"]["confusion"].as_array().unwrap();
    let cells = matrix.iter().flat_map(|line| line.as_array().unwrap());
    let rows: u64 = cells.map(|cell| cell.as_u64().unwrap()).sum();
    assert_eq!((Some(rows), matrix.len()), (result["metrics"]["rows"].as_u64(), 10));
    drop(client);
    let valid = site.json(&["evaluate", job, "--trial", &other, "--split", "valid"]);
    assert!(valid["state"]["waiting"].is_object(), "{valid}");
    let known = site.run(&["evaluate", "1", "--split", "test"]);
    assert_eq!(known.status.code(), Some(2));
    let error = String::from_utf8_lossy(&known.stderr);
    assert_eq!(error, "error: job 1 has no test data; `--split valid` takes the validation data\n");
    // The job of the first steps has none either.
    let known = site.run(&["evaluate", "1"]);
    let (text, said) =
        (String::from_utf8_lossy(&known.stdout), String::from_utf8_lossy(&known.stderr));
    assert!(known.status.success(), "{said}");
    assert!(text.contains("on the validation data"), "{text}");
    assert!(said.contains("job 1 has no test data; this is `--split valid`"), "{said}");
}
