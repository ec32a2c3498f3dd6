//! The page of a job for whoever has a link to it: without buttons, other jobs, events, the job file, and all that names hosts. Texts
//! that hosts send (errors) and those about hosts (why something waits) are left out.

use crate::{
    Viewer, assets, frame,
    job::{self, Board, Timeline},
};
use maud::{Markup, html};
use sojourn_protocol::view::{HopMatrixView, JobDetail, JobView, TrialState, TrialView};
use std::collections::BTreeMap;

/// Such a page has no buttons.
const VIEWER: Viewer = Viewer::GUEST;

/// The parts of the page beside the job.
#[derive(Debug)]
pub struct Parts {
    /// All its trials.
    pub trials: Vec<TrialView>,
    /// The job's running trials by its shards.
    pub hops: HopMatrixView,
    /// The job's leases.
    pub timeline: Timeline,
}

/// The page that a link leads to: its script sends what is behind the `#` of the address. `why`: what was wrong with the last link.
#[must_use]
pub fn open(why: Option<&str>) -> Markup {
    let content = html! {
        h1 { "Sojourn" }
        form #open .stack method="post" action="/share" {
            label for="secret" { "Link, or what is behind its #" }
            input #secret name="secret" type="password" required autocomplete="off";
            @if let Some(why) = why { p.error role="alert" { (why) } }
            button { "Open" }
        }
        script defer src=(assets::url("share.js")) { }
    };
    frame::bare("Shared job", &content)
}

/// The whole page.
#[must_use]
pub fn page(job: &JobDetail, parts: Parts, board: &Board) -> Markup {
    let id = job.summary.job;
    let at = format!("/share/{id}");
    let part = |name: &str| format!("{at}?part={name}");
    let content = html! {
        h1 { (job.summary.name) " " span.hint { "job " (id) } }
        section #head data-live=(part("head")) { (head(&job.summary)) }
        (job::charts(job, &format!("{at}/search")))
        section aria-labelledby="figures-title" {
            h2 #figures-title { "Figures" }
            div #figures data-live=(part("figures")) { (figures(&job.summary, &parts.trials)) }
        }
        section aria-labelledby="matrix-title" {
            h2 #matrix-title { "Hops" }
            div #matrix data-live=(part("matrix")) { (matrix(parts.hops)) }
        }
        section aria-labelledby="gantt-title" {
            h2 #gantt-title { "Leases" }
            div #gantt data-live=(part("gantt")) { (gantt(parts.timeline)) }
        }
        section aria-labelledby="board-title" {
            h2 #board-title { "Trials" }
            (job::controls(board))
            div #board data-live={ (part("board")) "&" (board.query()) } { (leaders(job, parts.trials, board)) }
        }
    };
    frame::shared(&job.summary.name, &at, &content)
}

/// How far the job is.
#[must_use]
pub fn head(job: &JobView) -> Markup {
    job::head(&JobView { waiting: None, ..job.clone() }, None, VIEWER)
}

/// The job's counts.
#[must_use]
pub fn figures(job: &JobView, trials: &[TrialView]) -> Markup {
    job::overview::figures_of(job, trials, VIEWER)
}

/// The job's running trials by its shards.
#[must_use]
pub fn matrix(mut hops: HopMatrixView) -> Markup {
    for row in &mut hops.trials {
        row.waiting = None;
    }
    job::matrix(&hops)
}

/// The job's leases in time: hosts by their numbers.
#[must_use]
pub fn gantt(timeline: Timeline) -> Markup {
    job::gantt(&Timeline { names: BTreeMap::new(), ..timeline })
}

/// The job's trials.
#[must_use]
pub fn leaders(job: &JobDetail, mut trials: Vec<TrialView>, board: &Board) -> Markup {
    for trial in &mut trials {
        trial.waiting = None;
        if let TrialState::Failed { error } = &mut trial.state {
            error.clear();
        }
    }
    job::leaders(&job.summary, &job.spec.search, &trials, board, VIEWER)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use sojourn_protocol::{ids::HostId, view::HopRow};

    fn job() -> JobView {
        serde_json::from_str(include_str!("../tests/job.json")).unwrap()
    }

    #[test]
    fn what_hosts_say_and_what_is_said_of_them_is_left_out() {
        let job = JobView { waiting: Some("host 3 (`lab-7`) is given no work".into()), ..job() };
        let text = head(&job).into_string();
        assert!(text.contains("finished") && !text.contains("lab-7"), "{text}");
        let row: HopRow = serde_json::from_value(json!({
            "trial": 4, "epoch": 1, "evaluating": false, "waiting": "host 3 (`lab-7`)", "cells": ["open"],
        }))
        .unwrap();
        let hops = HopMatrixView { job: job.job, shards: 1, running: 1, trials: vec![row] };
        let text = matrix(hops).into_string();
        assert!(text.contains("hops-4") && !text.contains("lab-7"), "{text}");
        let timeline = Timeline {
            from: job.submitted_at,
            until: job.submitted_at,
            ended: true,
            names: [(HostId(3), "lab-7".to_owned())].into(),
            leases: vec![job::LeaseBar {
                lease: sojourn_protocol::ids::LeaseId(1),
                host: HostId(3),
                trial: sojourn_protocol::ids::TrialId(0),
                unit: "train epoch 1, shard 0".to_owned(),
                from: job.submitted_at,
                to: job.submitted_at,
                end: job::LeaseBarEnd::Live,
                cpu_share: None,
                moved: None,
            }],
        };
        let text = gantt(timeline).into_string();
        assert!(text.contains("host 3") && !text.contains("lab-7"), "{text}");
    }

    #[test]
    fn the_page_of_a_link_loads_the_script_that_opens_it() {
        let text = open(Some("<b>gone")).into_string();
        assert!(text.contains("/assets/share.js?") && text.contains("&lt;b&gt;gone"), "{text}");
        assert!(!text.contains("live.js"), "{text}");
    }
}
