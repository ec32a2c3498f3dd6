//! The list of jobs.

use crate::{frame, words};
use maud::{Markup, html};
use sojourn_protocol::{figures, view::JobView};

/// All jobs, the newest first.
#[must_use]
pub fn page(jobs: &[JobView]) -> Markup {
    let content = html! {
        h1 { "Jobs" }
        form method="get" action="/compare" {
            section #jobs data-live="/?part=jobs" { (list(jobs)) }
            @if jobs.len() > 1 { p { button { "Compare those that are ticked" } } }
        }
    };
    frame::page("Jobs", "/", &content)
}

/// The part of the page that changes.
#[must_use]
pub fn list(jobs: &[JobView]) -> Markup {
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
                            th scope="row" { a href={ "/jobs/" (job.job) } { (job.name) } }
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
