//! A job: how far it is, which trial leads, how its trials learn.
//!
//! | file | holds |
//! |---|---|
//! | `tab.rs` | the tabs and their addresses |
//! | `header.rs` | state, progress, end, cost, best trial, and the buttons for the job; on each tab |
//! | `overview.rs` | the first tab: curves, the best trials, the pace, what comes next, all figures |
//! | `leaders.rs`, `trial_buttons.rs` | the leader board, and the buttons of a trial |
//! | `configurations.rs` | configurations with several seeds or folds |
//! | `charts.rs`, `space.rs` | the places of charts, and the scales that the job file declares |
//! | `matrix.rs` | running trials by shards |
//! | `gantt.rs` | leases by hosts and time |
//! | `trial.rs`, `trial_curves.rs` | a trial |

mod charts;
mod configurations;
mod gantt;
mod header;
mod leaders;
mod matrix;
pub mod overview;
mod space;
mod tab;
pub mod trial;
mod trial_buttons;
mod trial_curves;

pub(crate) use charts::charts;
pub use gantt::{LeaseBar, LeaseBarEnd, Timeline, gantt};
pub use header::{Cost, head};
pub use leaders::{Board, leaders};
pub(crate) use leaders::{controls, printed};
pub use matrix::matrix;
pub use tab::Tab;
pub use trial_curves::TrialCurves;

use crate::{Viewer, address::part_of_job, frame};
use maud::{Markup, html};
use sojourn_protocol::view::{HopMatrixView, JobDetail, TrialView};

/// The names of the settings that a job's search varies, as its trials have them.
pub(crate) fn searched_settings(job: &JobDetail) -> Vec<String> {
    space::scales(job).into_keys().collect()
}

/// The page of a job at one of its tabs.
#[must_use]
pub fn page(
    job: &JobDetail,
    cost: Option<Cost>,
    tab: Tab,
    content: &Markup,
    viewer: Viewer,
) -> Markup {
    let id = job.summary.job;
    let content = html! {
        h1 { (job.summary.name) " " span.hint { "job " (id) } }
        section #head data-live=(part_of_job(job.summary.job, "head")) { (head(&job.summary, cost, viewer)) }
        @if !job.summary.state.has_ended() {
            // The script shows it where the browser can.
            p #notify hidden data-job=(id) data-name=(job.summary.name) { button.plain type="button" { "Tell me when it ends" } }
        }
        (tab::tabs(id, tab))
        (content)
    };
    frame::page(&job.summary.name, "", &content)
}

/// The leader board.
#[must_use]
pub fn trials_tab(job: &JobDetail, trials: &[TrialView], board: &Board, viewer: Viewer) -> Markup {
    html! {
        section aria-label="Trials" {
            (controls(board))
            div #board data-live={ (part_of_job(job.summary.job, "board")) "&" (board.query()) } {
                (leaders(&job.summary, &job.spec.search, trials, board, viewer))
            }
        }
    }
}

/// Learning curves, and settings against the metric.
#[must_use]
pub fn charts_tab(job: &JobDetail) -> Markup {
    charts(job, &format!("/v1/jobs/{}/search", job.summary.job))
}

/// Hops and leases.
#[must_use]
pub fn machines_tab(job: &JobDetail, hops: &HopMatrixView, timeline: &Timeline) -> Markup {
    html! {
        section aria-labelledby="matrix-title" {
            h2 #matrix-title { "Hops" }
            div #matrix data-live=(part_of_job(job.summary.job, "matrix")) { (matrix(hops)) }
        }
        section aria-labelledby="gantt-title" {
            h2 #gantt-title { "Leases" }
            div #gantt data-live=(part_of_job(job.summary.job, "gantt")) { (gantt(timeline)) }
        }
    }
}

/// The job as submitted, in JSON; and the space of its search, where that was changed since.
#[must_use]
pub fn file_tab(job: &JobDetail, spec: &str, changed: Option<&str>) -> Markup {
    html! {
        p.hint { "Verified: " (job.spec.placement.verified_hosts()) "." }
        section aria-labelledby="spec-title" {
            h2 #spec-title { "Job as submitted" }
            pre #spec .whole tabindex="0" { (spec) }
        }
        div #space data-live=(part_of_job(job.summary.job, "space")) { (space(changed)) }
    }
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
