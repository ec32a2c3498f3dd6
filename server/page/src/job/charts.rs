//! The places of a job's charts, with what their script draws them from.

use super::space;
use crate::words;
use maud::{Markup, html};
use sojourn_protocol::view::JobDetail;

/// The charts of a job's trials, which their script draws from what is at an address, or in the element that a `#` names.
pub(crate) fn charts(job: &JobDetail, trials: &str) -> Markup {
    html! {
        section aria-labelledby="curves-title" { h2 #curves-title { "Learning curves" } (curves(job, trials, "tall")) }
        section aria-labelledby="settings-title" {
            h2 #settings-title { "Settings" }
            (chart(job, trials, "settings", "tall"))
            (chart(job, trials, "scatter", "tall"))
        }
    }
}

/// The learning curves alone.
pub(crate) fn curves(job: &JobDetail, trials: &str, height: &str) -> Markup {
    chart(job, trials, "curves", height)
}

fn chart(job: &JobDetail, trials: &str, kind: &str, height: &str) -> Markup {
    let (shards, begun) = (job.data.train.len(), job.summary.submitted_at.0);
    // A space that can't be written has no bounds: charts then go by the values of trials.
    let space = serde_json::to_string(&space::scales(job)).unwrap_or_default();
    html! {
        div.chart id=(kind) data-chart=(kind) data-from=(trials) data-metric=(job.summary.metric) data-height=(height)
            data-goal=(words::goal(job.spec.search.goal)) data-shards=(shards) data-begun=(begun) data-space=(space) { }
    }
}
