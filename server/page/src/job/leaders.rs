//! The leader board: trials sorted and filtered, with a column for each setting that the search varies.

use super::{
    configurations::over_replicates,
    trial_buttons::{Back, changes, checkpoints},
};
use crate::{Viewer, address::of_trial, words};
use maud::{Markup, html};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use sojourn_protocol::{
    figures,
    ids::{JobId, TrialId},
    spec::{Goal, SearchSpec},
    trial_name,
    unit::Origin,
    view::{JobView, TrialPhase, TrialState, TrialView},
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
            @if viewer.may_change(job) { td { (changes(job, search, trial, Back::Board)) } }
        }
    };
    html! {
        (over_replicates(job, goal, trials))
        p.hint { (shown.len()) " of " (trials.len()) " trials" }
        @let best = job.best.as_ref().map(|best| best.trial);
        (table(&heads, rows, &settings, best, viewer.sees_trials().then_some(job.job), more))
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
    table(&heads, rows.into_iter(), &settings, None, None, |_| Markup::default())
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

/// A table of trials. `best`: the job's best trial, which is marked; `of`: the job whose trials have pages for the viewer; `more`: the rest of each row.
fn table<'a>(
    heads: &Markup,
    rows: impl Iterator<Item = &'a TrialView>,
    settings: &BTreeSet<&str>,
    best: Option<TrialId>,
    of: Option<JobId>,
    more: impl Fn(&TrialView) -> Markup,
) -> Markup {
    html! {
        div.wide tabindex="0" role="region" aria-label="Trials" {
            table {
                thead { tr { (heads) } }
                tbody {
                    @for trial in rows {
                        tr #{ "trial-" (trial.trial) } .leads[best == Some(trial.trial)] data-trial=(trial.trial) {
                            th.number scope="row" {
                                @if best == Some(trial.trial) { span.mark title="The best trial" { "★" span.spoken { " the best trial, " } } " " }
                                @match of {
                                    Some(job) => { a href=(of_trial(job, trial.trial)) { (trial.trial) } }
                                    None => { (trial.trial) }
                                }
                            }
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
pub(super) fn clone_of(origin: &Origin) -> String {
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

/// A trial's state, and why it is so. One that never began hasn't failed, whatever ended it.
pub(super) fn state(trial: &TrialView) -> Markup {
    let why = match &trial.state {
        TrialState::Failed { error } => Some(error),
        TrialState::Running => trial.waiting.as_ref(),
        TrialState::Finished | TrialState::Cancelled => trial.stopped.as_ref(),
    };
    let phase = trial.phase.map_or_else(|| trial.state.name(), TrialPhase::words);
    let class = match trial.phase {
        Some(TrialPhase::NotStarted) => "idle",
        Some(TrialPhase::Pruned) => "pruned",
        _ => trial.state.name(),
    };
    let unverified = (trial.unverified > 0)
        .then(|| format!("{} unverified", figures::counted(trial.unverified, "result")));
    html! {
        (words::state_as(class, phase))
        @if let Some(rung) = trial.rung { " " span.hint { "rung " (rung) } }
        @if let Some(why) = why { " " span.hint { (why) } }
        @if trial.refit.is_some() { " " span.hint { "trained on all folds" } }
        @if let Some(unverified) = unverified { " " strong.error { (unverified) } }
    }
}

fn setting_of(trial: &TrialView, key: &str) -> String {
    let value = trial.choices.get(key).map(words::setting);
    value.unwrap_or_default()
}

#[cfg(test)]
pub(super) mod tests;
