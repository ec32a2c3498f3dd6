//! The leader board: its order, its pages, and the buttons of its trials.

use super::*;
use sojourn_protocol::{
    ids::{Epoch, Version},
    spec::{Metric, Pbt, SearchMethod},
    tokens::Rights,
    view::JobState,
};

pub(crate) fn trial(number: u32, lr: f64) -> TrialView {
    TrialView {
        trial: TrialId(number),
        name: format!("mlp lr={lr}"),
        state: TrialState::Running,
        phase: None,
        arch: "mlp".into(),
        choices: [("training.optimizer.lr".to_owned(), lr.into())].into(),
        origin: None,
        priority: 0,
        epoch: Epoch(number),
        epochs: 9,
        hops: 0,
        version: Version(0),
        checkpoint: None,
        numeric_class: None,
        refit: None,
        curve: Vec::new(),
        stopped: None,
        rung: None,
        best: None,
        test: None,
        unverified: 0,
        waiting: None,
        residence: None,
    }
}

#[test]
fn a_trial_says_how_many_results_of_it_are_unverified() {
    let text = |unverified| state(&TrialView { unverified, ..trial(1, 0.1) }).into_string();
    assert!(text(2).contains("2 results unverified"), "{}", text(2));
    assert!(!text(0).contains("unverified"));
}

fn job() -> JobView {
    let text = include_str!("../../../tests/job.json");
    serde_json::from_str(text).unwrap()
}

fn search() -> SearchSpec {
    SearchSpec::new(SearchMethod::Grid, Metric::Loss)
}

/// The numbers of the trials of a board, in its order.
fn shown(board: &Board, trials: &[TrialView]) -> Vec<u32> {
    let viewer = Viewer::of(Rights::Read);
    let text = leaders(&job(), &search(), trials, board, viewer).into_string();
    let rows = text.split("data-trial=\"").skip(1);
    rows.map(|row| row.split('"').next().unwrap().parse().unwrap()).collect()
}

#[test]
fn a_board_is_sorted_by_a_setting_as_numbers() {
    let trials = [trial(0, 0.5), trial(1, 0.01), trial(2, 10.0)];
    let board = Board { sort: "training.optimizer.lr".into(), ..Board::default() };
    assert_eq!(shown(&board, &trials), [1, 0, 2]);
    assert_eq!(shown(&Board { down: true, ..board.clone() }, &trials), [2, 0, 1]);
    let by_trial = Board { sort: "trial".into(), down: true, ..Board::default() };
    assert_eq!(shown(&by_trial, &trials), [2, 1, 0]);
    assert_eq!(shown(&Board { filter: "lr=0.01 RUNNING".into(), ..board }, &trials), [1]);
}

#[test]
fn a_large_board_has_pages() {
    let trials: Vec<TrialView> = (0..120).map(|number| trial(number, 0.1)).collect();
    let board = Board { from: 100, ..Board::default() };
    let last: Vec<_> = (100..120).collect();
    assert_eq!(shown(&board, &trials), last);
    for beyond in [120, 1000, usize::MAX] {
        let board = Board { from: beyond, ..Board::default() };
        assert_eq!(shown(&board, &trials), last, "the last page");
        assert_eq!(shown(&board, &[]), [0_u32; 0]);
    }
}

#[test]
fn names_are_text_and_no_markup() {
    let mut evil = trial(0, 0.1);
    evil.choices.insert("k".into(), "<script>alert(1)</script>".into());
    let viewer = Viewer::of(Rights::Submit);
    let board = Board { sort: "\"><script>".into(), ..Board::default() };
    let text = leaders(&job(), &search(), &[evil], &board, viewer).into_string();
    assert!(!text.contains("<script"), "{text}");
    assert!(text.contains("&lt;script&gt;alert(1)"), "{text}");
}

#[test]
fn a_failed_trial_has_the_button_that_helps_it() {
    let failed = TrialView { state: TrialState::Failed { error: "NaN".into() }, ..trial(1, 0.1) };
    let of = |job: &JobView, trial: &TrialView| {
        changes(job, &search(), trial, Back::Board).into_string()
    };
    assert!(of(&job(), &failed).contains("Run again"));
    let late = TrialView { stopped: Some("stopped after 2h".into()), ..failed.clone() };
    let late = of(&job(), &late);
    assert!(late.contains("Go on") && !late.contains("Run again"), "{late}");
    let cancelled = JobView { state: JobState::Cancelled, ..job() };
    assert!(!of(&cancelled, &failed).contains("Run again"));
    let pbt = Pbt { trials: 4, interval: 1, quantile: 0.25, resample: 0.25 };
    let population = SearchSpec { method: SearchMethod::Pbt(pbt), ..search() };
    let in_population = changes(&job(), &population, &failed, Back::Board).into_string();
    assert!(!in_population.contains("Run again"), "{in_population}");
    let best = TrialView { trial: TrialId(0), ..failed };
    assert_eq!(job().best.unwrap().trial, best.trial);
    assert!(!of(&job(), &best).contains("Run again"), "the job's best model would be lost");
}

#[test]
fn who_may_only_read_has_no_buttons() {
    let of = |rights| {
        let board = Board::default();
        leaders(&job(), &search(), &[trial(0, 0.1)], &board, Viewer::of(rights)).into_string()
    };
    assert!(!of(Rights::Read).contains("<button"));
    assert!(of(Rights::Submit).contains("<button"));
}

#[test]
fn a_clone_is_offered_where_it_would_be_taken() {
    let checkpoint = job().best.map(|best| best.checkpoint);
    let begun = TrialView { checkpoint, ..trial(3, 0.1) };
    let of = |job: &JobView, search: &SearchSpec, trial: &TrialView| {
        changes(job, search, trial, Back::Trial).into_string().contains("Clone")
    };
    assert!(of(&job(), &search(), &begun));
    let cancelled = JobView { state: JobState::Cancelled, ..job() };
    assert!(!of(&cancelled, &search(), &begun));
    assert!(!of(&job(), &SearchSpec { folds: Some(5), ..search() }, &begun));
    let in_first_epoch = TrialView { epoch: Epoch(0), ..begun.clone() };
    assert!(!of(&job(), &search(), &in_first_epoch), "no epoch has ended");
    let at_its_end = TrialView { epoch: Epoch(9), ..begun };
    assert!(!of(&job(), &search(), &at_its_end), "no epoch is left");
}

#[test]
fn the_best_trial_is_marked_and_one_that_never_began_is_not_red() {
    let failed = TrialState::Failed { error: "its time was up".into() };
    let never = TrialView { phase: Some(TrialPhase::NotStarted), state: failed, ..trial(1, 0.1) };
    let viewer = Viewer::of(Rights::Read);
    let board = leaders(&job(), &search(), &[trial(0, 0.1), never], &Board::default(), viewer);
    let text = board.into_string();
    assert_eq!(text.matches("★").count(), 1, "{text}");
    assert!(text.contains("state idle\">not started") && !text.contains("state failed"), "{text}");
    assert!(text.contains("href=\"/jobs/1/trials/1\""), "{text}");
    let guest = leaders(&job(), &search(), &[trial(0, 0.1)], &Board::default(), Viewer::GUEST);
    assert!(!guest.into_string().contains("/jobs/"));
}

#[test]
fn the_final_model_says_that_it_has_all_folds() {
    let text = |refit| state(&TrialView { refit, ..trial(4, 0.1) }).into_string();
    assert!(text(Some(TrialId(0))).contains("trained on all folds"), "{}", text(None));
    assert!(!text(None).contains("folds"));
}
