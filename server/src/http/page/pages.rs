//! The pages. `?part=NAME` asks for a part of one, as its script does.

use super::{answer, answer::PageError, timeline};
use crate::http::{App, auth::UserRights, error::HttpError, events, trials};
use actix_web::{
    HttpRequest, HttpResponse,
    http::header::{CACHE_CONTROL, CONTENT_TYPE},
    web::{Path, Query},
};
use serde::Deserialize;
use sojourn_core::request;
use sojourn_page::{
    Viewer, assets, events as event_page, hosts as host_page, job as job_page, jobs as jobs_page,
};
use sojourn_protocol::{error::ErrorKind, ids::JobId};

/// Events of a job on its page.
const EVENTS: usize = 30;

/// `?part=NAME`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(in crate::http) struct Part {
    part: Option<String>,
}

/// The list of jobs.
pub(in crate::http) async fn jobs(
    app: App,
    _: UserRights,
    request: HttpRequest,
    Query(part): Query<Part>,
) -> Result<HttpResponse, PageError> {
    let jobs = app.shell.request(request::GetJobs {}).await?;
    Ok(match part.part {
        None => answer::html(jobs_page::page(&jobs)),
        Some(_) => answer::part(&request, jobs_page::list(&jobs)),
    })
}

/// All hosts.
pub(in crate::http) async fn hosts(
    app: App,
    _: UserRights,
    request: HttpRequest,
    Query(part): Query<Part>,
) -> Result<HttpResponse, PageError> {
    let hosts = app.shell.request(request::GetHosts {}).await?;
    Ok(match part.part {
        None => answer::html(host_page::page(&hosts)),
        Some(_) => answer::part(&request, host_page::list(&hosts)),
    })
}

/// A job.
pub(in crate::http) async fn job(
    app: App,
    UserRights(rights): UserRights,
    request: HttpRequest,
    job: Path<JobId>,
    Query(part): Query<Part>,
    Query(board): Query<job_page::Board>,
) -> Result<HttpResponse, PageError> {
    let (job, viewer) = (*job, Viewer { rights });
    let detail = async || app.shell.request(request::GetJob { job }).await;
    let part = match part.part.as_deref() {
        None => {
            let detail = detail().await?;
            let spec = serde_json::to_string_pretty(&detail.spec);
            let parts = job_page::Parts {
                spec: spec.map_err(|error| HttpError::fault(&error))?,
                trials: trials::all(&app, job).await?,
                hops: app.shell.request(request::GetHops { job }).await?,
                timeline: timeline::collect(&app, &detail.summary).await?,
                events: events::latest(&app, job, EVENTS).await?,
            };
            return Ok(answer::html(job_page::page(&detail, &parts, &board, viewer)));
        }
        Some("head") => job_page::head(&detail().await?.summary, viewer),
        Some("matrix") => job_page::matrix(&app.shell.request(request::GetHops { job }).await?),
        Some("gantt") => job_page::gantt(&timeline::collect(&app, &detail().await?.summary).await?),
        Some("board") => {
            let detail = detail().await?;
            let trials = trials::all(&app, job).await?;
            job_page::leaders(&detail.summary, detail.spec.search.goal, &trials, &board, viewer)
        }
        Some("events") => event_page::list(&events::latest(&app, job, EVENTS).await?),
        Some(other) => {
            let message = format!("a job's page has no part `{other}`");
            return Err(HttpError::new(ErrorKind::NotFound, message).into());
        }
    };
    Ok(answer::part(&request, part))
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
