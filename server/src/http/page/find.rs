//! Finding jobs, trials, hosts and settings.

use super::{answer, answer::PageError};
use crate::http::{App, auth::UserViewer};
use actix_web::{HttpResponse, web::Query};
use sojourn_core::request;
use sojourn_page::find::{self as find_page, Found, MAX_SEARCHED, Searched};

/// `?q=WORDS`: what was found, or the page of the one thing that was.
pub(in crate::http) async fn find(
    app: App,
    _: UserViewer,
    Query(query): Query<find_page::Query>,
) -> Result<HttpResponse, PageError> {
    let jobs = app.shell.request(request::GetJobs {}).await?;
    let hosts = app.shell.request(request::GetHosts {}).await?;
    let mut details = Vec::new();
    for job in jobs.iter().rev().take(MAX_SEARCHED) {
        // A job may have been deleted since.
        if let Ok(detail) = app.shell.request(request::GetJob { job: job.job }).await {
            details.push(detail);
        }
    }
    let trial = match query.trial() {
        Some((job, trial)) => {
            let step = request::GetTrials { job, from: trial, limit: 1 };
            let found = app.shell.request(step).await.unwrap_or_default();
            found.iter().any(|found| found.trial == trial).then_some((job, trial))
        }
        None => None,
    };
    let searched = Searched { jobs: &jobs, details: &details, hosts: &hosts, trial };
    let found = Found::of(&query, searched);
    Ok(match found.only() {
        Some(address) => answer::go_to(&address),
        None => answer::html(find_page::page(&query, &found)),
    })
}
