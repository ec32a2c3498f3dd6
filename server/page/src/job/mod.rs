//! A job: how far it is, which trial leads, how its trials learn.
//!
//! | part | says |
//! |---|---|
//! | head | state, progress, best trial, what it waits for, and the buttons for it |
//! | hops | its running trials by its shards (`matrix.rs`) |
//! | leases | its leases by hosts and time (`gantt.rs`) |
//! | leader board | configurations with several seeds or folds (`configurations.rs`), and its trials (`leaders.rs`) |
//! | events | what happened last |

mod configurations;
mod gantt;
mod leaders;
mod matrix;

pub use gantt::{LeaseBar, LeaseBarEnd, Timeline, gantt};
pub use leaders::{Board, leaders};
pub(crate) use leaders::{controls, printed};
pub use matrix::matrix;

use crate::{Viewer, events, frame, page_link, words};
use maud::{Markup, html};
use sojourn_protocol::{
    figures,
    tokens::TokenView,
    view::{EventView, HopMatrixView, JobDetail, JobState, JobView, TimeLeft, TrialView},
};

/// The parts of a job's page beside the job.
#[derive(Debug)]
pub struct Parts {
    /// The job as submitted, in JSON.
    pub spec: String,
    /// The space of its search in JSON, where that was changed since.
    pub space: Option<String>,
    /// All its trials.
    pub trials: Vec<TrialView>,
    /// The job's running trials by its shards.
    pub hops: HopMatrixView,
    /// The job's leases.
    pub timeline: Timeline,
    /// The job's last events.
    pub events: Vec<EventView>,
    /// The links to its page; `None` for whoever may make none.
    pub page_links: Option<Vec<TokenView>>,
}

/// A whole page.
#[must_use]
pub fn page(job: &JobDetail, parts: &Parts, board: &Board, viewer: Viewer) -> Markup {
    let id = job.summary.job;
    let trials = format!("/v1/jobs/{id}/search");
    let content = html! {
        h1 { (job.summary.name) " " span.hint { "job " (id) } }
        section #head data-live={ "/jobs/" (id) "?part=head" } { (head(&job.summary, viewer)) }
        p.hint { "Verified: " (job.spec.placement.verified_hosts()) "." }
        div #shares data-live={ "/jobs/" (id) "?part=shares" } { (page_link::links(id, parts.page_links.as_deref())) }
        (charts(job, &trials))
        section aria-labelledby="matrix-title" {
            h2 #matrix-title { "Hops" }
            div #matrix data-live={ "/jobs/" (id) "?part=matrix" } { (matrix(&parts.hops)) }
        }
        section aria-labelledby="gantt-title" {
            h2 #gantt-title { "Leases" }
            div #gantt data-live={ "/jobs/" (id) "?part=gantt" } { (gantt(&parts.timeline)) }
        }
        section aria-labelledby="board-title" {
            h2 #board-title { "Trials" }
            (controls(board))
            div #board data-live={ "/jobs/" (id) "?part=board&" (board.query()) } {
                (leaders(&job.summary, &job.spec.search, &parts.trials, board, viewer))
            }
        }
        section aria-labelledby="events-title" {
            h2 #events-title { "Events" }
            div #events data-live={ "/jobs/" (id) "?part=events" } { (events::list(&parts.events)) }
        }
        details { summary { "Job as submitted" } pre #spec { (parts.spec) } }
        div #space data-live={ "/jobs/" (id) "?part=space" } { (space(parts.space.as_deref())) }
    };
    frame::page(&job.summary.name, "", &content)
}

/// The space of a job's search in JSON, where that was changed.
#[must_use]
pub fn space(changed: Option<&str>) -> Markup {
    html! {
        @if let Some(space) = changed {
            details {
                summary { "Space as changed since" }
                p { "Combinations were taken from this space from the change on." }
                pre { (space) }
            }
        }
    }
}

/// The charts of a job's trials, which their script draws from what is at an address, or in the element that a `#` names.
pub(crate) fn charts(job: &JobDetail, trials: &str) -> Markup {
    let (shards, begun) = (job.data.train.len(), job.summary.submitted_at.0);
    let chart = |kind: &str| {
        html! {
            div.chart id=(kind) data-chart=(kind) data-from=(trials) data-metric=(job.summary.metric)
                data-goal=(words::goal(job.spec.search.goal)) data-shards=(shards) data-begun=(begun) { }
        }
    };
    html! {
        section aria-labelledby="curves-title" { h2 #curves-title { "Learning curves" } (chart("curves")) }
        section aria-labelledby="settings-title" { h2 #settings-title { "Settings" } (chart("settings")) (chart("scatter")) }
    }
}

/// How far a job is, and the buttons for it.
#[must_use]
pub fn head(job: &JobView, viewer: Viewer) -> Markup {
    html! {
        p {
            (words::state(job.state.name())) " "
            @if let Some(why) = &job.waiting { span.hint { (why) } }
        }
        @if let Some(why) = &job.search_ended { p.hint { "The search tries no more combinations: " (why) } }
        @for doubt in &job.doubts { p.error { (doubt) } }
        @if !job.note.is_empty() { p.note { (job.note) } }
        dl.figures {
            div { dt { "Hops" } dd { (words::progress("", job.hops, job.hops_expected)) } }
            div { dt { "Evaluations" } dd { (words::progress("", job.evaluations, job.evaluations_expected)) } }
            div {
                dt { "Trials" }
                dd {
                    (figures::count(job.trials.into())) ", " (figures::count(job.trials_finished.into())) " finished"
                    @if job.trials_failed > 0 { ", " strong.error { (figures::count(job.trials_failed.into())) " failed" } }
                }
            }
            div {
                dt { "Best " (job.metric) }
                dd {
                    @match &job.best {
                        Some(best) => { strong { (words::metric(Some(best.value))) } " of trial " (best.trial) ", epoch " (best.epoch.0 + 1) }
                        None => { "none yet" }
                    }
                }
            }
            @if let Some(owner) = job.owner.as_ref().filter(|_| viewer.sees_owners()) { div { dt { "Owner" } dd { (owner) } } }
            @if let Some(left) = job.time_left { div { dt { "Time left" } dd { (time_left(left)) } } }
            @if let Some(standing) = &job.deadline { div { dt { "Deadline" } dd { (standing) } } }
            div { dt { "Submitted" } dd { (words::time(job.submitted_at)) } }
            @if let Some(at) = job.ended_at { div { dt { "Ended" } dd { (words::time(at)) } } }
            div { dt { "Trained" } dd { (figures::duration(job.train_micros / 1000)) " of slots" } }
            div {
                dt { "Leases" }
                dd { (job.leases_live) " live, " (job.leases_expired) " ran out, " (job.rejected) " results refused" }
            }
            @if job.unverified > 0 {
                div { dt { "Unverified" } dd { strong.error { (figures::counted(job.unverified, "result")) " that nobody confirmed" } } }
            }
            div { dt { "In the store" } dd { (figures::bytes(job.disk_bytes)) } }
        }
        @if viewer.may_change(job) { (buttons(job)) }
        @else if viewer.may_submit() { div.buttons { (over(job)) } }
    }
}

/// `12 min expected, 9.5 min at least`.
fn time_left(left: TimeLeft) -> Markup {
    html! {
        @if let Some(expected) = left.expected { (figures::duration(expected.0)) " expected, " }
        span title="No schedule is shorter on the machines that are there" { (figures::duration(left.at_least.0)) " at least" }
    }
}

/// The way to another job over the data of this one, which every submitter has.
fn over(job: &JobView) -> Markup {
    html! { a.button href={ "/jobs/new?over=" (job.job) } { "New job over this data" } }
}

/// The buttons of a job.
fn buttons(job: &JobView) -> Markup {
    let address = format!("/jobs/{}", job.job);
    let button = |action: &str, text: &str| {
        html! { form method="post" action=(address) { input type="hidden" name="action" value=(action); button { (text) } } }
    };
    html! {
        div.buttons {
            @match job.state {
                JobState::Running => (button("pause", "Pause")),
                JobState::Paused => (button("resume", "Resume")),
                JobState::Finished | JobState::Failed | JobState::Cancelled => {}
            }
            @if !job.state.has_ended() {
                details #cancel { summary { "Cancel" } p { "Its trials end with what they have." } (button("cancel", "Cancel this job")) }
            }
            (over(job))
            @let is_cancelled = job.state == JobState::Cancelled;
            details #extend {
                summary { @if is_cancelled { "Go on" } @else { "Add epochs" } }
                @if is_cancelled { p { "Its trials go on from what they had when the job was cancelled." } }
                form method="post" action=(address) {
                    input type="hidden" name="action" value="extend";
                    input type="hidden" name="reopen" value=(is_cancelled);
                    label { "Epochs in all " input name="epochs" type="number" min="1" required; }
                    button { @if is_cancelled { "Go on" } @else { "Extend" } }
                }
            }
        }
    }
}
