//! The pages of all jobs and hosts. `?part=NAME` asks for a part of one, as its script does.

use super::{answer, answer::PageError};
use crate::http::{App, auth::UserViewer, error::HttpError, trials};
use actix_web::{
    HttpRequest, HttpResponse,
    http::header::{CACHE_CONTROL, CONTENT_TYPE},
    web::{Path, Query},
};
use serde::Deserialize;
use sojourn_core::request;
use sojourn_page::{assets, compare as compare_page, hosts as host_page, jobs as jobs_page};
use sojourn_protocol::{error::ErrorKind, ids::JobId};

/// `?part=NAME`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(in crate::http) struct Part {
    part: Option<String>,
}

impl Part {
    /// The part's name, where a part is asked for.
    pub(super) fn name(&self) -> Option<&str> {
        self.part.as_deref()
    }
}

/// The list of jobs.
pub(in crate::http) async fn jobs(
    app: App,
    _: UserViewer,
    request: HttpRequest,
    Query(part): Query<Part>,
    Query(filter): Query<jobs_page::Filter>,
) -> Result<HttpResponse, PageError> {
    let jobs = app.shell.request(request::GetJobs {}).await?;
    Ok(match part.part {
        None => answer::html(jobs_page::page(&jobs, &filter)),
        Some(_) => answer::part(&request, jobs_page::list(&jobs, &filter)),
    })
}

/// All hosts.
pub(in crate::http) async fn hosts(
    app: App,
    _: UserViewer,
    request: HttpRequest,
    Query(part): Query<Part>,
) -> Result<HttpResponse, PageError> {
    let hosts = app.shell.request(request::GetHosts {}).await?;
    Ok(match part.part {
        None => answer::html(host_page::page(&hosts)),
        Some(_) => answer::part(&request, host_page::list(&hosts)),
    })
}

/// Jobs side by side: `?job=1&job=2`.
pub(in crate::http) async fn compare(
    app: App,
    _: UserViewer,
    request: HttpRequest,
    Query(part): Query<Part>,
) -> Result<HttpResponse, PageError> {
    let named = request.query_string().split('&').filter_map(|word| word.strip_prefix("job="));
    let mut jobs = Vec::new();
    for job in named.filter(|job| !job.is_empty()) {
        let wrong = || HttpError::new(ErrorKind::Invalid, format!("`{job}` is no job's number"));
        jobs.push(JobId(job.parse().map_err(|_| wrong())?));
    }
    jobs.dedup();
    if jobs.is_empty() || jobs.len() > compare_page::MAX_JOBS {
        let message = format!("tick 2 to {} jobs to see them side by side", compare_page::MAX_JOBS);
        return Err(HttpError::new(ErrorKind::Invalid, message).into());
    }
    let mut compared = Vec::new();
    for job in jobs {
        let detail = app.shell.request(request::GetJob { job }).await?;
        compared
            .push(compare_page::Compared { job: detail, trials: trials::all(&app, job).await? });
    }
    Ok(match part.part {
        None => answer::html(compare_page::page(&compared)),
        Some(_) => answer::part(&request, compare_page::tables(&compared)),
    })
}

/// A script or a style.
pub(in crate::http) async fn asset(name: Path<String>) -> Result<HttpResponse, HttpError> {
    let Some(asset) = assets::find(&name) else {
        return Err(HttpError::new(ErrorKind::NotFound, "there is nothing at this address"));
    };
    Ok(HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, asset.media_type))
        // Another content has another address.
        .insert_header((CACHE_CONTROL, "public, max-age=31536000, immutable"))
        .body(asset.content))
}
