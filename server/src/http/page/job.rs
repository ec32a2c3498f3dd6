//! The pages of a job: one for each tab, and one for each trial. `?part=NAME` asks for a part of one, as its script does.

use super::{answer, answer::PageError, job_events, pages::Part, timeline};
use crate::http::{App, auth::UserViewer, error::HttpError, failures as counted, trials};
use actix_web::{
    HttpRequest, HttpResponse,
    web::{Path, Query},
};
use sojourn_core::request;
use sojourn_page::{
    Markup, Viewer, events as event_page,
    job::{
        self as job_page, Board, Cost, Tab, Timeline, TrialCurves, overview, trial as trial_page,
    },
    page_link as link_page,
};
use sojourn_protocol::{
    decimal,
    error::ErrorKind,
    ids::{JobId, TrialId},
    spec::CpuSharePolicy,
    tokens::TokenView,
    view::{FailureView, JobDetail, JobView, TrialView},
};

/// The overview of a job, or a part of any of its tabs.
pub(in crate::http) async fn overview(
    app: App,
    UserViewer(viewer): UserViewer,
    request: HttpRequest,
    job: Path<JobId>,
    Query(part): Query<Part>,
    Query(board): Query<Board>,
    Query(filter): Query<event_page::Filter>,
) -> Result<HttpResponse, PageError> {
    let job = *job;
    let Some(name) = part.name() else {
        let query = (&board, &filter);
        return Ok(answer::html(tab_of(&app, job, Tab::Overview, query, viewer).await?));
    };
    let detail = app.shell.request(request::GetJob { job }).await?;
    let summary = &detail.summary;
    let part = match name {
        "head" => job_page::head(summary, cost_of(&app, &detail).await?, viewer),
        "best" => {
            let step = request::GetLeadingTrials { job, limit: overview::BEST };
            overview::best(&detail, &app.shell.request(step).await?, viewer)
        }
        "pace" => overview::pace(summary, &trials::all(&app, job).await?),
        "next" => overview::next(summary),
        "figures" => overview::figures_of(summary, &trials::all(&app, job).await?, viewer),
        "shares" => link_page::links(job, page_links_for(&app, summary, viewer).await?.as_deref()),
        "board" => {
            let trials = trials::all(&app, job).await?;
            job_page::leaders(summary, &detail.spec.search, &trials, &board, viewer)
        }
        "matrix" => job_page::matrix(&app.shell.request(request::GetHops { job }).await?),
        "gantt" => {
            let last = app.recent_events.of(&app.shell, job).await?;
            job_page::gantt(&timeline::collect(&app, summary, &last).await?)
        }
        "events" => {
            let last = app.recent_events.of(&app.shell, job).await?;
            let entries = job_events::entries(&last, CpuSharePolicy::Equal)?;
            event_page::list(job, &entries, last.has_earlier, &filter)
        }
        "space" => job_page::space(changed_space(&detail)?.as_deref()),
        other => return Err(no_part("a job's", other).into()),
    };
    Ok(answer::part(&request, part))
}

/// Another tab of a job.
pub(in crate::http) async fn tab(
    app: App,
    UserViewer(viewer): UserViewer,
    path: Path<(JobId, String)>,
    Query(board): Query<Board>,
    Query(filter): Query<event_page::Filter>,
) -> Result<HttpResponse, PageError> {
    let (job, name) = path.into_inner();
    let Some(tab) = Tab::of(&name) else {
        return Err(HttpError::new(ErrorKind::NotFound, "there is nothing at this address").into());
    };
    Ok(answer::html(tab_of(&app, job, tab, (&board, &filter), viewer).await?))
}

/// The whole page of a tab. `query`: what of the leader board and of the events is shown.
async fn tab_of(
    app: &App,
    job: JobId,
    tab: Tab,
    query: (&Board, &event_page::Filter),
    viewer: Viewer,
) -> Result<Markup, PageError> {
    let detail = app.shell.request(request::GetJob { job }).await?;
    let content = match tab {
        Tab::Overview => {
            let links = page_links_for(app, &detail.summary, viewer).await?;
            let trials = trials::all(app, job).await?;
            overview::content(&detail, &trials, links.as_deref(), viewer)
        }
        Tab::Trials => {
            job_page::trials_tab(&detail, &trials::all(app, job).await?, query.0, viewer)
        }
        Tab::Charts => job_page::charts_tab(&detail),
        Tab::Machines => {
            let last = app.recent_events.of(&app.shell, job).await?;
            let timeline = timeline::collect(app, &detail.summary, &last).await?;
            let hops = app.shell.request(request::GetHops { job }).await?;
            job_page::machines_tab(&detail, &hops, &timeline)
        }
        Tab::Events => {
            let last = app.recent_events.of(&app.shell, job).await?;
            let entries = job_events::entries(&last, CpuSharePolicy::Equal)?;
            event_page::tab(job, &entries, last.has_earlier, query.1)
        }
        Tab::File => {
            let spec = decimal::as_text(|| serde_json::to_string_pretty(&detail.spec));
            let spec = spec.map_err(|error| HttpError::fault(&error))?;
            job_page::file_tab(&detail, &spec, changed_space(&detail)?.as_deref())
        }
    };
    let cost = cost_of(app, &detail).await?;
    Ok(job_page::page(&detail, cost, tab, &content, viewer))
}

/// A trial, or a part of its page.
pub(in crate::http) async fn trial(
    app: App,
    UserViewer(viewer): UserViewer,
    request: HttpRequest,
    path: Path<(JobId, TrialId)>,
    Query(part): Query<Part>,
) -> Result<HttpResponse, PageError> {
    let (job, number) = path.into_inner();
    let detail = app.shell.request(request::GetJob { job }).await?;
    let step = request::GetTrials { job, from: number, limit: 1 };
    let found = app.shell.request(step).await?.into_iter().find(|trial| trial.trial == number);
    let unknown =
        || HttpError::new(ErrorKind::NotFound, format!("job {job} has no trial {number}"));
    let trial: TrialView = found.ok_or_else(unknown)?;
    if part.name() == Some("curves") {
        return Ok(HttpResponse::Ok().json(TrialCurves::of(&trial)));
    }
    // Each part is asked for alone, as often as something changes: none reads what it doesn't show.
    let id = detail.summary.job;
    let part = match part.name() {
        None => {
            let parts = parts_of(&app, detail, number).await?;
            return Ok(answer::html(trial_page::page(&parts, &trial, viewer)));
        }
        Some("head") => trial_page::head(&detail, &trial, viewer),
        Some("lineage") => trial_page::lineage(&parts_of(&app, detail, number).await?, &trial),
        Some("hops") => {
            let timeline = timeline_of(&app, &detail.summary, number).await?;
            let step = request::GetHistory { job: id, trial: number };
            trial_page::hops(&app.shell.request(step).await?, &timeline)
        }
        Some("gantt") => job_page::gantt(&timeline_of(&app, &detail.summary, number).await?),
        Some("failures") => trial_page::failed(&failures_of(&app, id, number).await?),
        Some(other) => return Err(no_part("a trial's", other).into()),
    };
    Ok(answer::part(&request, part))
}

/// The content of a trial's page.
async fn parts_of(
    app: &App,
    job: JobDetail,
    trial: TrialId,
) -> Result<trial_page::Parts, PageError> {
    let id = job.summary.job;
    Ok(trial_page::Parts {
        trials: trials::all(app, id).await?,
        history: app.shell.request(request::GetHistory { job: id, trial }).await?,
        timeline: timeline_of(app, &job.summary, trial).await?,
        failures: failures_of(app, id, trial).await?,
        job,
    })
}

/// The leases of a trial among the last events of its job.
async fn timeline_of(app: &App, job: &JobView, trial: TrialId) -> Result<Timeline, PageError> {
    let last = app.recent_events.of(&app.shell, job.job).await?;
    let mut timeline = timeline::collect(app, job, &last).await?;
    timeline.leases.retain(|bar| bar.trial == trial);
    Ok(timeline)
}

/// The errors of trainers at a trial.
async fn failures_of(app: &App, job: JobId, trial: TrialId) -> Result<Vec<FailureView>, PageError> {
    let mut failures = counted::known(app).await?;
    failures.retain(|failure| failure.job == job && failure.trial == trial);
    Ok(failures)
}

fn no_part(of: &str, name: &str) -> HttpError {
    HttpError::new(ErrorKind::NotFound, format!("{of} page has no part `{name}`"))
}

/// The cost of the machines that were bought for a job; none where there is neither a cost nor a budget.
async fn cost_of(app: &App, job: &JobDetail) -> Result<Option<Cost>, PageError> {
    let budget = job.spec.placement.budget;
    let costs = app.shell.request(request::GetCosts {}).await?;
    let paid = costs.jobs.iter().find(|of| of.job == job.summary.job).map(|of| of.cost);
    let is_known = paid.is_some() || budget.is_some();
    Ok(is_known.then(|| Cost { paid: paid.unwrap_or_default(), budget }))
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
