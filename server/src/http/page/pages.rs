//! The pages. `?part=NAME` asks for a part of one, as its script does.

use super::{answer, answer::PageError, recent_events::LastEvents, timeline};
use crate::http::{App, auth::UserViewer, error::HttpError, events, trials};
use actix_web::{
    HttpRequest, HttpResponse,
    http::header::{CACHE_CONTROL, CONTENT_TYPE},
    web::{Path, Query},
};
use serde::Deserialize;
use sojourn_core::request;
use sojourn_page::{
    Viewer, assets, compare as compare_page, events as event_page, hosts as host_page,
    job as job_page, jobs as jobs_page, page_link as link_page,
};
use sojourn_protocol::{
    decimal,
    error::ErrorKind,
    ids::JobId,
    spec::CpuSharePolicy,
    tokens::TokenView,
    view::{EventView, JobDetail, JobView},
};

/// Events of a job on its page.
const EVENTS: usize = 30;

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

/// A job.
pub(in crate::http) async fn job(
    app: App,
    UserViewer(viewer): UserViewer,
    request: HttpRequest,
    job: Path<JobId>,
    Query(part): Query<Part>,
    Query(board): Query<job_page::Board>,
) -> Result<HttpResponse, PageError> {
    let job = *job;
    let detail = async || app.shell.request(request::GetJob { job }).await;
    let part = match part.name() {
        None => {
            let detail = detail().await?;
            let spec = decimal::as_text(|| serde_json::to_string_pretty(&detail.spec));
            let last = app.recent_events.of(&app.shell, job).await?;
            let parts = job_page::Parts {
                spec: spec.map_err(|error| HttpError::fault(&error))?,
                space: changed_space(&detail)?,
                trials: trials::all(&app, job).await?,
                hops: app.shell.request(request::GetHops { job }).await?,
                timeline: timeline::collect(&app, &detail.summary, &last).await?,
                events: latest(&last)?,
                page_links: page_links_for(&app, &detail.summary, viewer).await?,
            };
            return Ok(answer::html(job_page::page(&detail, &parts, &board, viewer)));
        }
        Some("head") => job_page::head(&detail().await?.summary, viewer),
        Some("matrix") => job_page::matrix(&app.shell.request(request::GetHops { job }).await?),
        Some("gantt") => {
            let detail = detail().await?;
            let last = app.recent_events.of(&app.shell, job).await?;
            job_page::gantt(&timeline::collect(&app, &detail.summary, &last).await?)
        }
        Some("board") => {
            let detail = detail().await?;
            let trials = trials::all(&app, job).await?;
            job_page::leaders(&detail.summary, &detail.spec.search, &trials, &board, viewer)
        }
        Some("space") => job_page::space(changed_space(&detail().await?)?.as_deref()),
        Some("shares") => {
            let page_links = page_links_for(&app, &detail().await?.summary, viewer).await?;
            link_page::links(job, page_links.as_deref())
        }
        Some("events") => {
            detail().await?;
            event_page::list(&latest(&app.recent_events.of(&app.shell, job).await?)?)
        }
        Some(other) => {
            let message = format!("a job's page has no part `{other}`");
            return Err(HttpError::new(ErrorKind::NotFound, message).into());
        }
    };
    Ok(answer::part(&request, part))
}

/// The space of a job's search, where that was changed.
fn changed_space(job: &JobDetail) -> Result<Option<String>, HttpError> {
    let text = |space| decimal::as_text(|| serde_json::to_string_pretty(space));
    job.space.as_ref().map(text).transpose().map_err(|error| HttpError::fault(&error))
}

/// The links to a job's page, for whoever may make some.
async fn page_links_for(
    app: &App,
    job: &JobView,
    viewer: Viewer,
) -> Result<Option<Vec<TokenView>>, HttpError> {
    if !viewer.may_change(job) {
        return Ok(None);
    }
    Ok(Some(app.shell.request(request::GetLinks { job: job.job }).await?))
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

/// The last of a job's events, as its page shows them.
fn latest(last: &LastEvents) -> Result<Vec<EventView>, HttpError> {
    let skipped = last.records.len().saturating_sub(EVENTS);
    last.records
        .iter()
        .skip(skipped)
        .map(|record| events::view(record, CpuSharePolicy::Equal))
        .collect()
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
