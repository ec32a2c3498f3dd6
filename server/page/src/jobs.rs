//! The list of jobs.

use crate::{frame, words};
use maud::{Markup, html};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use sojourn_protocol::{
    figures,
    view::{JobOwner, JobView},
};
use std::collections::BTreeSet;

/// `?owner=NAME`: the owner whose jobs are listed. Without a name all are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Filter {
    owner: String,
}

impl Filter {
    fn shows(&self, job: &JobView) -> bool {
        self.owner.is_empty()
            || job.owner.as_ref().is_some_and(|owner| owner.is_called(&self.owner))
    }
}

/// All jobs, or those of one owner, the newest first.
#[must_use]
pub fn page(jobs: &[JobView], filter: &Filter) -> Markup {
    let live = match filter.owner.as_str() {
        "" => "/?part=jobs".to_owned(),
        owner => format!("/?part=jobs&owner={}", utf8_percent_encode(owner, NON_ALPHANUMERIC)),
    };
    let content = html! {
        h1 { "Jobs" }
        (owners(jobs, filter))
        form method="get" action="/compare" {
            section #jobs data-live=(live) { (list(jobs, filter)) }
            @if jobs.len() > 1 { p { button { "Compare those that are ticked" } } }
        }
    };
    frame::page("Jobs", "/", &content)
}

/// The choice of an owner, where there are several.
fn owners(jobs: &[JobView], filter: &Filter) -> Markup {
    if !has_owners(jobs) && filter.owner.is_empty() {
        return Markup::default();
    }
    let names: BTreeSet<String> =
        jobs.iter().filter_map(|job| job.owner.as_ref()).map(JobOwner::to_string).collect();
    html! {
        form.filter method="get" action="/" {
            label {
                "Owner "
                select name="owner" {
                    option value="" { "all" }
                    @for name in &names { option value=(name) selected[*name == filter.owner] { (name) } }
                }
            }
            " " button { "Show" }
        }
    }
}

/// Are there jobs of several owners?
fn has_owners(jobs: &[JobView]) -> bool {
    let mut owners = jobs.iter().map(|job| &job.owner);
    owners.next().is_some_and(|first| owners.any(|owner| owner != first))
}

/// The part of the page that changes.
#[must_use]
pub fn list(jobs: &[JobView], filter: &Filter) -> Markup {
    let with_owners = has_owners(jobs);
    let jobs: Vec<&JobView> = jobs.iter().filter(|job| filter.shows(job)).collect();
    if jobs.is_empty() && !filter.owner.is_empty() {
        return html! { p.hint { "No jobs of " (filter.owner) "." } };
    }
    if jobs.is_empty() {
        return html! { p.hint { "No jobs yet: " code { "sojourn submit job.toml" } " starts one." } };
    }
    html! {
        div.wide tabindex="0" role="region" aria-label="Jobs" {
            table {
                thead {
                    tr {
                        td { }
                        th.number scope="col" { "Job" }
                        th scope="col" { "Name" }
                        @if with_owners { th scope="col" { "Owner" } }
                        th scope="col" { "State" }
                        th scope="col" { "Trials" }
                        th scope="col" { "Hops" }
                        th scope="col" { "Best" }
                        th scope="col" { "Submitted" }
                        th.number scope="col" { "Trained" }
                    }
                }
                tbody {
                    @for job in jobs.iter().rev() {
                        tr #{ "job-" (job.job) } {
                            td { input type="checkbox" name="job" value=(job.job) aria-label={ "Compare job " (job.job) }; }
                            td.number { (job.job) }
                            th scope="row" { a.named href={ "/jobs/" (job.job) } title=(job.name) { (job.name) } }
                            @if with_owners { td { @if let Some(owner) = &job.owner { (owner) } } }
                            td { (words::state(job.state.name())) @if let Some(why) = &job.waiting { " " span.hint { (why) } } }
                            td { (ended(job)) }
                            td { (words::progress("", job.hops, job.hops_expected)) }
                            td {
                                @if let Some(best) = &job.best {
                                    (job.metric) " " strong { (words::metric(Some(best.value))) } " of trial " (best.trial)
                                }
                            }
                            td { (words::time(job.submitted_at)) }
                            td.number { (figures::duration(job.train_micros / 1000)) }
                        }
                    }
                }
            }
        }
    }
}

/// Trials that have ended, of all.
fn ended(job: &JobView) -> String {
    let ended = job.trials_finished + job.trials_failed;
    match job.trials_failed {
        0 => format!("{ended} of {}", job.trials),
        failed => format!("{ended} of {}, {failed} failed", job.trials),
    }
}
