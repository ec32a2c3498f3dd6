//! What users do and see: jobs, trials, events; and whether the server lives.

use super::{Site, auth::Admin, error::HttpError};
use actix_web::web;
use sojourn_core::{Answer, Command, JournalPosition, Query, Record};
use sojourn_protocol::{
    api::{
        EvaluateRequest, ExtendRequest, Health, PauseRequest, PlacementRequest, RollbackRequest,
        RolledBack, SubmitAnswer, SubmitRequest,
    },
    error::ErrorKind,
    ids::{JobId, TrialId},
    view::{EvaluationView, EventView, JobDetail, JobView, TrialHistory, TrialView},
};

/// Events in one answer, where the request says nothing.
const EVENTS: usize = 1_000;
/// Events in one answer at most.
const MOST_EVENTS: usize = 10_000;

const NO_TRAINER: &str = "`placement.merge.canary` needs a trainer on the server's machine: put `sojourn-trainer` beside \
                          the server's program and start it again, or leave `canary` out";

/// The core answered another question than was asked: a fault of the program.
pub(super) fn unexpected(answer: &Answer) -> HttpError {
    tracing::error!(?answer, "the core gave an answer of another kind");
    HttpError::new(ErrorKind::Internal, "the server failed; its log says why")
}

/// Is the server there?
#[utoipa::path(
    get,
    path = "/v1/health",
    operation_id = "health",
    responses((status = 200, description = "The server lives.", body = Health))
)]
pub(super) async fn health(site: web::Data<Site>) -> Result<web::Json<Health>, HttpError> {
    let totals = site.traffic.totals();
    match site.shell.call(|to| Command::Query { to, query: Query::Position }).await? {
        Answer::Position(position) => Ok(web::Json(Health {
            status: "ready".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            journal_position: position.0,
            received_bytes: totals.received_bytes,
            sent_bytes: totals.sent_bytes,
            checkpoint_uploads: totals.uploads,
            blob_downloads: totals.downloads,
        })),
        other => Err(unexpected(&other)),
    }
}

/// Starts a job whose blobs have been uploaded.
#[utoipa::path(
    post,
    path = "/v1/jobs",
    operation_id = "submitJob",
    request_body = SubmitRequest,
    responses((status = 200, description = "The job is taken.", body = SubmitAnswer)),
    security(("admin" = []))
)]
pub(super) async fn submit(
    site: web::Data<Site>,
    _: Admin,
    request: web::Json<SubmitRequest>,
) -> Result<web::Json<SubmitAnswer>, HttpError> {
    let SubmitRequest { spec, data, again, nonce } = request.into_inner();
    let canary = spec.placement.merge.is_some_and(|merge| merge.canary.is_some());
    if canary && !site.has_trainer {
        return Err(HttpError::new(ErrorKind::Invalid, NO_TRAINER));
    }
    let (spec, data) = (Box::new(spec), Box::new(data));
    match site.shell.call(|to| Command::Submit { to, spec, data, again, nonce }).await? {
        Answer::Submitted(answer) => Ok(web::Json(answer)),
        other => Err(unexpected(&other)),
    }
}

/// Ends a job.
#[utoipa::path(
    post,
    path = "/v1/jobs/{job}/cancel",
    operation_id = "cancelJob",
    params(
        ("job" = JobId, Path, description = "The job."),
    ),
    responses((status = 200, description = "The job, cancelled.", body = JobView)),
    security(("admin" = []))
)]
pub(super) async fn cancel(
    site: web::Data<Site>,
    _: Admin,
    path: web::Path<u64>,
) -> Result<web::Json<JobView>, HttpError> {
    let job = JobId(path.into_inner());
    match site.shell.call(|to| Command::Cancel { to, job }).await? {
        Answer::JobSummary(job) => Ok(web::Json(*job)),
        other => Err(unexpected(&other)),
    }
}

/// Evaluates a trial's best checkpoint outside the search; what is open or done already is given again.
#[utoipa::path(
    post,
    path = "/v1/jobs/{job}/trials/{trial}/evaluate",
    operation_id = "evaluate",
    params(
        ("job" = JobId, Path, description = "The job."),
        ("trial" = TrialId, Path, description = "The trial."),
    ),
    request_body = EvaluateRequest,
    responses((status = 200, description = "How far it is.", body = EvaluationView)),
    security(("admin" = []))
)]
pub(super) async fn evaluate(
    site: web::Data<Site>,
    _: Admin,
    path: web::Path<(u64, u32)>,
    request: web::Json<EvaluateRequest>,
) -> Result<web::Json<EvaluationView>, HttpError> {
    let (job, trial) = path.into_inner();
    let (job, trial, split) = (JobId(job), TrialId(trial), request.split);
    match site.shell.call(|to| Command::Evaluate { to, job, trial, split }).await? {
        Answer::Evaluation(view) => Ok(web::Json(*view)),
        other => Err(unexpected(&other)),
    }
}

/// Lets a job stand still until it is resumed.
#[utoipa::path(
    post,
    path = "/v1/jobs/{job}/pause",
    operation_id = "pauseJob",
    params(
        ("job" = JobId, Path, description = "The job."),
    ),
    request_body = PauseRequest,
    responses((status = 200, description = "The job, paused.", body = JobView)),
    security(("admin" = []))
)]
pub(super) async fn pause(
    site: web::Data<Site>,
    _: Admin,
    path: web::Path<u64>,
    request: web::Json<PauseRequest>,
) -> Result<web::Json<JobView>, HttpError> {
    let (job, PauseRequest { now }) = (JobId(path.into_inner()), request.into_inner());
    match site.shell.call(|to| Command::Pause { to, job, now }).await? {
        Answer::JobSummary(job) => Ok(web::Json(*job)),
        other => Err(unexpected(&other)),
    }
}

/// Evaluations of a trial outside the search.
#[utoipa::path(
    get,
    path = "/v1/jobs/{job}/trials/{trial}/evaluations",
    operation_id = "evaluations",
    params(
        ("job" = JobId, Path, description = "The job."),
        ("trial" = TrialId, Path, description = "The trial."),
    ),
    responses((status = 200, description = "All of them.", body = Vec<EvaluationView>)),
    security(("admin" = []))
)]
pub(super) async fn evaluations(
    site: web::Data<Site>,
    _: Admin,
    path: web::Path<(u64, u32)>,
) -> Result<web::Json<Vec<EvaluationView>>, HttpError> {
    let (job, trial) = path.into_inner();
    match query(&site, Query::Evaluations { job: JobId(job), trial: TrialId(trial) }).await? {
        Answer::Evaluations(evaluations) => Ok(web::Json(evaluations)),
        other => Err(unexpected(&other)),
    }
}

/// Lets a paused job go on.
#[utoipa::path(
    post,
    path = "/v1/jobs/{job}/resume",
    operation_id = "resumeJob",
    params(
        ("job" = JobId, Path, description = "The job."),
    ),
    responses((status = 200, description = "The job as it goes on.", body = JobView)),
    security(("admin" = []))
)]
pub(super) async fn resume(
    site: web::Data<Site>,
    _: Admin,
    path: web::Path<u64>,
) -> Result<web::Json<JobView>, HttpError> {
    let job = JobId(path.into_inner());
    match site.shell.call(|to| Command::Resume { to, job }).await? {
        Answer::JobSummary(job) => Ok(web::Json(*job)),
        other => Err(unexpected(&other)),
    }
}

/// Has a job's trials train for longer, also after its end.
#[utoipa::path(
    post,
    path = "/v1/jobs/{job}/extend",
    operation_id = "extendJob",
    params(
        ("job" = JobId, Path, description = "The job."),
    ),
    request_body = ExtendRequest,
    responses((status = 200, description = "The job, extended.", body = JobView)),
    security(("admin" = []))
)]
pub(super) async fn extend(
    site: web::Data<Site>,
    _: Admin,
    path: web::Path<u64>,
    request: web::Json<ExtendRequest>,
) -> Result<web::Json<JobView>, HttpError> {
    let (job, ExtendRequest { epochs, trial }) = (JobId(path.into_inner()), request.into_inner());
    match site.shell.call(|to| Command::Extend { to, job, epochs, trial }).await? {
        Answer::JobSummary(job) => Ok(web::Json(*job)),
        other => Err(unexpected(&other)),
    }
}

/// Changes whose turn a job is, and on how many hosts it may be.
#[utoipa::path(
    post,
    path = "/v1/jobs/{job}/placement",
    operation_id = "placeJob",
    params(
        ("job" = JobId, Path, description = "The job."),
    ),
    request_body = PlacementRequest,
    responses((status = 200, description = "The job, placed so.", body = JobView)),
    security(("admin" = []))
)]
pub(super) async fn place(
    site: web::Data<Site>,
    _: Admin,
    path: web::Path<u64>,
    request: web::Json<PlacementRequest>,
) -> Result<web::Json<JobView>, HttpError> {
    let (job, placement) = (JobId(path.into_inner()), request.into_inner());
    match site.shell.call(|to| Command::Place { to, job, placement }).await? {
        Answer::JobSummary(job) => Ok(web::Json(*job)),
        other => Err(unexpected(&other)),
    }
}

/// Takes trials back to an earlier state, as if they had not been trained since.
#[utoipa::path(
    post,
    path = "/v1/jobs/{job}/rollback",
    operation_id = "rollbackJob",
    params(
        ("job" = JobId, Path, description = "The job."),
    ),
    request_body = RollbackRequest,
    responses((status = 200, description = "The trials that were taken back, and to where.", body = Vec<RolledBack>)),
    security(("admin" = []))
)]
pub(super) async fn rollback(
    site: web::Data<Site>,
    _: Admin,
    path: web::Path<u64>,
    request: web::Json<RollbackRequest>,
) -> Result<web::Json<Vec<RolledBack>>, HttpError> {
    let (job, request) = (JobId(path.into_inner()), request.into_inner());
    match site.shell.call(|to| Command::Rollback { to, job, request }).await? {
        Answer::RolledBack(trials) => Ok(web::Json(trials)),
        other => Err(unexpected(&other)),
    }
}

async fn query(site: &Site, query: Query) -> Result<Answer, HttpError> {
    Ok(site.shell.call(|to| Command::Query { to, query }).await?)
}

/// Every job.
#[utoipa::path(
    get,
    path = "/v1/jobs",
    operation_id = "jobs",
    responses((status = 200, description = "All jobs.", body = Vec<JobView>)),
    security(("admin" = []))
)]
pub(super) async fn all(
    site: web::Data<Site>,
    _: Admin,
) -> Result<web::Json<Vec<JobView>>, HttpError> {
    match query(&site, Query::Jobs).await? {
        Answer::Jobs(jobs) => Ok(web::Json(jobs)),
        other => Err(unexpected(&other)),
    }
}

/// A job with all that was submitted.
#[utoipa::path(
    get,
    path = "/v1/jobs/{job}",
    operation_id = "job",
    params(
        ("job" = JobId, Path, description = "The job."),
    ),
    responses((status = 200, description = "The job.", body = JobDetail)),
    security(("admin" = []))
)]
pub(super) async fn one(
    site: web::Data<Site>,
    _: Admin,
    path: web::Path<u64>,
) -> Result<web::Json<JobDetail>, HttpError> {
    match query(&site, Query::Job { job: JobId(path.into_inner()) }).await? {
        Answer::Job(job) => Ok(web::Json(*job)),
        other => Err(unexpected(&other)),
    }
}

/// A job's trials.
#[utoipa::path(
    get,
    path = "/v1/jobs/{job}/trials",
    operation_id = "trials",
    params(
        ("job" = JobId, Path, description = "The job."),
    ),
    responses((status = 200, description = "All its trials.", body = Vec<TrialView>)),
    security(("admin" = []))
)]
pub(super) async fn trials(
    site: web::Data<Site>,
    _: Admin,
    path: web::Path<u64>,
) -> Result<web::Json<Vec<TrialView>>, HttpError> {
    match query(&site, Query::Trials { job: JobId(path.into_inner()) }).await? {
        Answer::Trials(trials) => Ok(web::Json(trials)),
        other => Err(unexpected(&other)),
    }
}

/// All that is needed to train a trial again.
#[utoipa::path(
    get,
    path = "/v1/jobs/{job}/trials/{trial}/history",
    operation_id = "history",
    params(
        ("job" = JobId, Path, description = "The job."),
        ("trial" = TrialId, Path, description = "The trial."),
    ),
    responses((status = 200, description = "The trial's history.", body = TrialHistory)),
    security(("admin" = []))
)]
pub(super) async fn history(
    site: web::Data<Site>,
    _: Admin,
    path: web::Path<(u64, u32)>,
) -> Result<web::Json<TrialHistory>, HttpError> {
    let (job, trial) = path.into_inner();
    match query(&site, Query::History { job: JobId(job), trial: TrialId(trial) }).await? {
        Answer::History(history) => Ok(web::Json(*history)),
        other => Err(unexpected(&other)),
    }
}

/// `?after=N&limit=M`.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Page {
    #[serde(default)]
    after: u64,
    limit: Option<usize>,
}

/// A job's history, a page at a time.
#[utoipa::path(
    get,
    path = "/v1/jobs/{job}/events",
    operation_id = "events",
    params(
        ("job" = JobId, Path, description = "The job."),
        ("after" = Option<u64>, Query, description = "Only events after this journal position."),
        ("limit" = Option<u64>, Query, description = "Events at most; 1,000 if left out, 10,000 at most."),
    ),
    responses((status = 200, description = "Events in the order of the journal.", body = Vec<EventView>)),
    security(("admin" = []))
)]
pub(super) async fn events(
    site: web::Data<Site>,
    _: Admin,
    path: web::Path<u64>,
    page: web::Query<Page>,
) -> Result<web::Json<Vec<EventView>>, HttpError> {
    let job = JobId(path.into_inner());
    // A job that isn't there is told from one without events.
    query(&site, Query::Job { job }).await?;
    let limit = page.limit.unwrap_or(EVENTS).min(MOST_EVENTS);
    let records = site.shell.events(job, JournalPosition(page.after), limit).await?;
    Ok(web::Json(records.into_iter().map(view).collect::<Result<_, _>>()?))
}

/// An event is written as `{"kind": {...}}`.
fn view(record: Record) -> Result<EventView, HttpError> {
    let value = serde_json::to_value(&record.event).map_err(|error| HttpError::fault(&error))?;
    let (kind, event) = match value {
        serde_json::Value::Object(object) => object.into_iter().next().unwrap_or_default(),
        other => (String::new(), other),
    };
    Ok(EventView { position: record.position.0, at: record.at, kind, event })
}
