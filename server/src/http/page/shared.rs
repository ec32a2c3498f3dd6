//! The page of a job for whoever has a link to it (`/share#SECRET`). The secret is behind the `#`, which browsers send to nobody: the
//! page at that address has a script that sends it as a form, and the answer is a cookie for that job's page alone.

use super::{answer, answer::PageError, is_of_own_page, timeline};
use crate::http::{
    App, AppState,
    access::Caller,
    auth::{self, Guest},
    changes as changed,
    error::HttpError,
    page::pages::Part,
    trials,
};
use actix_web::{
    HttpRequest, HttpResponse,
    http::StatusCode,
    web::{Form, Json, Path, Query},
};
use serde::Deserialize;
use sojourn_core::request;
use sojourn_page::{job::Board, shared as shared_page};
use sojourn_protocol::{api::SearchView, digest::Digest, error::ErrorKind, ids::JobId};

/// The fields of the page's form.
#[derive(Deserialize)]
pub(in crate::http) struct Link {
    secret: String,
}

/// The page that a link leads to.
pub(in crate::http) async fn show() -> HttpResponse {
    answer::html(shared_page::open(None))
}

/// The answer for a job's page to a browser that has opened no link to it.
pub(super) fn without_link() -> HttpResponse {
    let why = "this page is open to those with a link to it: open the link again";
    answer::with_status(StatusCode::UNAUTHORIZED, shared_page::open(Some(why)))
}

/// Lets a browser see the job of a link.
pub(in crate::http) async fn open(
    app: App,
    request: HttpRequest,
    Form(link): Form<Link>,
) -> Result<HttpResponse, PageError> {
    if !is_of_own_page(&request) {
        let message = "a page of another server sent this";
        return Err(HttpError::new(ErrorKind::Forbidden, message).into());
    }
    let secret = link.secret.trim();
    let error = match auth::holder(&app, Digest::of(secret.as_bytes())).await {
        Ok(Caller::Guest(job)) => {
            let mut answer = answer::go_to(&format!("/share/{job}"));
            let cookie = app.sessions.guest(secret, job, &request);
            answer.add_cookie(&cookie).map_err(|error| HttpError::fault(&error))?;
            return Ok(answer);
        }
        Ok(_) => HttpError::unauthorized("this is a token and no link: sign in with it"),
        Err(error) => auth::failed(&request, error),
    };
    let status = match error.kind() {
        ErrorKind::TooManyRequests => StatusCode::TOO_MANY_REQUESTS,
        _ => StatusCode::UNAUTHORIZED,
    };
    Ok(answer::with_status(status, shared_page::open(Some(&error.to_string()))))
}

/// The job's page, or a part of it.
pub(in crate::http) async fn job(
    app: App,
    guest: Guest,
    request: HttpRequest,
    job: Path<JobId>,
    Query(part): Query<Part>,
    Query(board): Query<Board>,
) -> Result<HttpResponse, PageError> {
    let job = shown_to(&guest, *job)?;
    let detail = app.shell.request(request::GetJob { job }).await?;
    let part = match part.name() {
        None => {
            let parts = shared_page::Parts {
                trials: trials::all(&app, job).await?,
                hops: app.shell.request(request::GetHops { job }).await?,
                timeline: timeline_of(&app, &detail.summary).await?,
            };
            return Ok(answer::html(shared_page::page(&detail, parts, &board)));
        }
        Some("head") => shared_page::head(&detail.summary),
        Some("figures") => shared_page::figures(&detail.summary, &trials::all(&app, job).await?),
        Some("matrix") => shared_page::matrix(app.shell.request(request::GetHops { job }).await?),
        Some("gantt") => shared_page::gantt(timeline_of(&app, &detail.summary).await?),
        Some("board") => shared_page::leaders(&detail, trials::all(&app, job).await?, &board),
        Some(other) => {
            let message = format!("a job's page has no part `{other}`");
            return Err(HttpError::new(ErrorKind::NotFound, message).into());
        }
    };
    Ok(answer::part(&request, part))
}

/// The trials of the job, as its charts show them.
pub(in crate::http) async fn search(
    app: App,
    guest: Guest,
    job: Path<JobId>,
) -> Result<Json<SearchView>, HttpError> {
    let job = shown_to(&guest, *job)?;
    Ok(Json(app.shell.request(request::GetSearch { job }).await?))
}

/// Says that something has changed.
pub(in crate::http) async fn changes(
    app: App,
    guest: Guest,
    job: Path<JobId>,
) -> Result<HttpResponse, HttpError> {
    shown_to(&guest, *job)?;
    Ok(changed::stream(&app))
}

/// The job, where it is the one that the guest's link shows.
fn shown_to(guest: &Guest, job: JobId) -> Result<JobId, HttpError> {
    if guest.0 == job {
        return Ok(job);
    }
    Err(HttpError::new(ErrorKind::NotFound, "the link shows another job"))
}

async fn timeline_of(
    app: &AppState,
    job: &sojourn_protocol::view::JobView,
) -> Result<sojourn_page::job::Timeline, HttpError> {
    let last = app.recent_events.of(&app.shell, job.job).await?;
    timeline::collect(app, job, &last).await
}
