//! The leader board: trials sorted and filtered, with a column for each setting that the search varies.

use super::configurations::over_replicates;
use crate::{Viewer, words};
use maud::{Markup, html};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use sojourn_protocol::{
    digest::BlobRef,
    figures,
    ids::JobId,
    spec::{Goal, SearchMethod, SearchSpec},
    trial_name,
    unit::Origin,
    view::{JobState, JobView, TrialPhase, TrialState, TrialView},
};
use std::{cmp::Ordering, collections::BTreeSet};

/// Trials on one page of the board.
const ROWS: usize = 50;

/// The part of a leader board that is shown, and the order of it. It is the query of its address.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Board {
    /// The column that sorts it: `trial`, `name`, `epoch`, `state` or a setting; by the metric where it is empty.
    pub sort: String,
    /// From the highest to the lowest.
    pub down: bool,
    /// Only trials with all of these words in their name, settings or state.
    pub filter: String,
    /// Trials before the first that is shown.
    pub from: usize,
}

impl Board {
    /// As the query of an address.
    #[must_use]
    pub fn query(&self) -> String {
        let Self { sort, down, filter, from } = self;
        let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        format!("sort={}&down={down}&filter={}&from={from}", encoded(sort), encoded(filter))
    }

    /// The board that a click on a column's head leads to.
    fn sorted_by(&self, column: &str) -> Self {
        let down = self.sort == column && !self.down;
        Self { sort: column.to_owned(), down, from: 0, ..self.clone() }
    }

    fn shows(&self, trial: &TrialView) -> bool {
        let text = format!("{} {} {}", trial.trial, trial.name, trial.state.name()).to_lowercase();
        self.filter.split_whitespace().all(|word| text.contains(&word.to_lowercase()))
    }

    fn order(&self, goal: Goal, a: &TrialView, b: &TrialView) -> Ordering {
        let order = match self.sort.as_str() {
            "" => TrialView::leader_board(goal, a, b),
            "trial" => a.trial.cmp(&b.trial),
            "name" => a.name.cmp(&b.name),
            "epoch" => a.epoch.cmp(&b.epoch),
            "state" => a.state.name().cmp(b.state.name()),
            setting => {
                let of = |trial: &TrialView| trial.choices.get(setting).cloned();
                match (of(a), of(b)) {
                    (Some(a), Some(b)) => match (a.as_f64(), b.as_f64()) {
                        (Some(a), Some(b)) => a.total_cmp(&b),
                        _ => a.to_string().cmp(&b.to_string()),
                    },
                    (a, b) => b.is_some().cmp(&a.is_some()),
                }
            }
        };
        let order = if self.down { order.reverse() } else { order };
        order.then(a.trial.cmp(&b.trial))
    }
}

/// The field that filters a board. Without a script it loads the page anew.
pub(crate) fn controls(board: &Board) -> Markup {
    html! {
        form.filter method="get" role="search" {
            label { "Filter " input name="filter" type="search" value=(board.filter) placeholder="words of a name or a state"; }
            input type="hidden" name="sort" value=(board.sort);
            input type="hidden" name="down" value=(board.down);
            button { "Show" }
        }
    }
}

/// The board.
#[must_use]
pub fn leaders(
    job: &JobView,
    search: &SearchSpec,
    trials: &[TrialView],
    board: &Board,
    viewer: Viewer,
) -> Markup {
    let goal = search.goal;
    let settings = settings(trials);
    let mut shown: Vec<&TrialView> = trials.iter().filter(|trial| board.shows(trial)).collect();
    shown.sort_by(|a, b| board.order(goal, a, b));
    // Of a page beyond the last one, as when a filter shows fewer, the last one is shown.
    let last = shown.len().saturating_sub(1);
    let board = &Board { from: board.from.min(last - last % ROWS), ..board.clone() };
    let rows = shown.iter().skip(board.from).take(ROWS).copied();
    let heads = html! {
        @for (column, text) in columns(&job.metric, &settings) {
            @match column {
                Some(column) => (head(board, column, text)),
                None => th scope="col" { (text) },
            }
        }
        @if viewer.may_download() { th scope="col" { "Checkpoint" } }
        @if viewer.may_change(job) { th scope="col" { "Change" } }
    };
    let more = |trial: &TrialView| {
        html! {
            @if viewer.may_download() { td { (checkpoints(job.job, trial)) } }
            @if viewer.may_change(job) { td { (changes(job, search, trial)) } }
        }
    };
    html! {
        (over_replicates(job, goal, trials))
        p.hint { (shown.len()) " of " (trials.len()) " trials" }
        (table(&heads, rows, &settings, more))
        (pages(board, shown.len()))
    }
}

/// All trials, the best first, without links and buttons.
#[must_use]
pub(crate) fn printed(metric: &str, goal: Goal, trials: &[TrialView]) -> Markup {
    let settings = settings(trials);
    let mut rows: Vec<&TrialView> = trials.iter().collect();
    rows.sort_by(|a, b| TrialView::leader_board(goal, a, b));
    let heads = html! {
        @for (column, text) in columns(metric, &settings) { th scope="col" title=[column] { (text) } }
    };
    table(&heads, rows.into_iter(), &settings, |_| Markup::default())
}

/// The settings that differ between trials.
fn settings(trials: &[TrialView]) -> BTreeSet<&str> {
    trials.iter().flat_map(|trial| trial.choices.keys().map(String::as_str)).collect()
}

/// The columns: the word that sorts by it, and its title.
fn columns<'a>(
    metric: &'a str,
    settings: &BTreeSet<&'a str>,
) -> impl Iterator<Item = (Option<&'a str>, &'a str)> {
    let settings = settings.iter().map(|setting| (Some(*setting), trial_name::last_word(setting)));
    let first = [
        (Some("trial"), "Trial"),
        (Some(""), metric),
        (Some("epoch"), "Epoch"),
        (Some("state"), "State"),
        (None, "Model"),
    ];
    first.into_iter().chain(settings)
}

/// A table of trials. `more`: what follows in each row.
fn table<'a>(
    heads: &Markup,
    rows: impl Iterator<Item = &'a TrialView>,
    settings: &BTreeSet<&str>,
    more: impl Fn(&TrialView) -> Markup,
) -> Markup {
    html! {
        div.wide tabindex="0" role="region" aria-label="Trials" {
            table {
                thead { tr { (heads) } }
                tbody {
                    @for trial in rows {
                        tr #{ "trial-" (trial.trial) } data-trial=(trial.trial) {
                            th.number scope="row" { (trial.trial) }
                            td.number { strong { (words::metric(trial.best.as_ref().map(|best| best.value))) } }
                            td.number { (trial.epoch) "/" (trial.epochs) }
                            td { (state(trial)) }
                            td { (trial.arch) @if let Some(origin) = &trial.origin { " " span.hint { (clone_of(origin)) } } }
                            @for setting in settings { td { (setting_of(trial, setting)) } }
                            (more(trial))
                        }
                    }
                }
            }
        }
    }
}

/// `clone of trial 3 after 2 epochs`.
fn clone_of(origin: &Origin) -> String {
    let epochs = figures::counted(u64::from(origin.epochs), "epoch");
    format!("clone of trial {} after {epochs}", origin.trial)
}

/// The head of a column. Its address is relative to the page's: the page of guests has the board too.
fn head(board: &Board, column: &str, text: &str) -> Markup {
    let sorted =
        (board.sort == column).then_some(if board.down { "descending" } else { "ascending" });
    let to = format!("?{}#board", board.sorted_by(column).query());
    html! { th scope="col" aria-sort=[sorted] { a href=(to) title=(column) { (text) } } }
}

fn pages(board: &Board, all: usize) -> Markup {
    let to = |from: usize| format!("?{}#board", Board { from, ..board.clone() }.query());
    html! {
        @if all > ROWS {
            nav.pages aria-label="Pages of trials" {
                @if board.from > 0 { a href=(to(board.from.saturating_sub(ROWS))) { "Before" } }
                " " (board.from + 1) " to " ((board.from + ROWS).min(all)) " "
                @if board.from + ROWS < all { a href=(to(board.from + ROWS)) { "After" } }
            }
        }
    }
}

fn state(trial: &TrialView) -> Markup {
    let why = match &trial.state {
        TrialState::Failed { error } => Some(error),
        TrialState::Running => trial.waiting.as_ref(),
        TrialState::Finished | TrialState::Cancelled => trial.stopped.as_ref(),
    };
    let phase = trial.phase.map_or_else(|| trial.state.name(), TrialPhase::words);
    let unverified = (trial.unverified > 0)
        .then(|| format!("{} unverified", figures::counted(trial.unverified, "result")));
    html! {
        (words::state_as(trial.state.name(), phase))
        @if let Some(rung) = trial.rung { " " span.hint { "rung " (rung) } }
        @if let Some(why) = why { " " span.hint { (why) } }
        @if let Some(unverified) = unverified { " " strong.error { (unverified) } }
    }
}

fn setting_of(trial: &TrialView, key: &str) -> String {
    let value = trial.choices.get(key).map(words::setting);
    value.unwrap_or_default()
}

/// A trial's checkpoints that can be downloaded.
fn checkpoints(job: JobId, trial: &TrialView) -> Markup {
    let link = |blob: &BlobRef, text: &str| {
        let name = format!("job-{job}-trial-{}-{text}.safetensors", trial.trial);
        let label = format!("Download the {text} checkpoint of trial {}", trial.trial);
        html! { a href={ "/v1/blobs/" (blob.sha256) } download=(name) title=(figures::bytes(blob.bytes)) aria-label=(label) { (text) } }
    };
    let (best, last) = (trial.best.as_ref().map(|best| best.checkpoint), trial.checkpoint);
    html! {
        @if let Some(best) = &best { (link(best, "best")) " " }
        @if let Some(last) = last.filter(|last| Some(*last) != best) { (link(&last, "last")) }
    }
}

/// May a failed trial be run again? In a cancelled job or a population none is, nor is the one with the job's best model.
fn may_begin_anew(job: &JobView, search: &SearchSpec, trial: &TrialView) -> bool {
    let is_population = matches!(search.method, SearchMethod::Pbt(_));
    let has_best = job.best.as_ref().is_some_and(|best| best.trial == trial.trial);
    job.state != JobState::Cancelled && !is_population && !has_best
}

/// The buttons of a trial.
fn changes(job: &JobView, search: &SearchSpec, trial: &TrialView) -> Markup {
    let address = format!("/jobs/{}", job.job);
    let action = match trial.state {
        TrialState::Running => Some(("stop", "Stop")),
        TrialState::Finished | TrialState::Failed { .. } if trial.stopped.is_some() => {
            Some(("revive", "Go on"))
        }
        TrialState::Failed { .. } if may_begin_anew(job, search, trial) => {
            Some(("retry", "Run again"))
        }
        TrialState::Finished | TrialState::Failed { .. } | TrialState::Cancelled => None,
    };
    html! {
        @if let Some((action, text)) = action {
            form method="post" action=(address) {
                input type="hidden" name="action" value=(action);
                input type="hidden" name="trial" value=(trial.trial);
                button.plain aria-label={ (text) " trial " (trial.trial) } { (text) }
            }
        }
        @if trial.checkpoint.is_some() {
            details id={ "clone-" (trial.trial) } {
                summary aria-label={ "Clone trial " (trial.trial) } { "Clone" }
                form method="post" action=(address) {
                    input type="hidden" name="action" value="clone";
                    input type="hidden" name="trial" value=(trial.trial);
                    label { "Settings " input name="set" placeholder="lr=1e-4"; }
                    button { "Clone" }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_protocol::{
        ids::{Epoch, TrialId, Version},
        spec::{Metric, Pbt},
        tokens::Rights,
    };

    fn trial(number: u32, lr: f64) -> TrialView {
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
        let text = include_str!("../../tests/job.json");
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
        let failed =
            TrialView { state: TrialState::Failed { error: "NaN".into() }, ..trial(1, 0.1) };
        let of = |job: &JobView, trial: &TrialView| changes(job, &search(), trial).into_string();
        assert!(of(&job(), &failed).contains("Run again"));
        let late = TrialView { stopped: Some("stopped after 2h".into()), ..failed.clone() };
        let late = of(&job(), &late);
        assert!(late.contains("Go on") && !late.contains("Run again"), "{late}");
        let cancelled = JobView { state: JobState::Cancelled, ..job() };
        assert!(!of(&cancelled, &failed).contains("Run again"));
        let pbt = Pbt { trials: 4, interval: 1, quantile: 0.25, resample: 0.25 };
        let population = SearchSpec { method: SearchMethod::Pbt(pbt), ..search() };
        let in_population = changes(&job(), &population, &failed).into_string();
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
}
