//! A job's events, as the journal has them.

use super::{App, JsonAnswer, JsonResult, auth::User, error::HttpError};
use crate::event_view;
use actix_web::web;
use sojourn_core::{JournalPosition, Record, request};
use sojourn_protocol::{ids::JobId, spec::CpuSharePolicy, view::EventView};

/// Events in one answer, where the request says nothing.
const DEFAULT_EVENTS: usize = 1_000;
/// Events in one answer at most.
const MAX_EVENTS: usize = 10_000;

/// `?after=N&limit=M`.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Page {
    #[serde(default)]
    after: u64,
    limit: Option<usize>,
}

pub(super) async fn events(
    app: App,
    _: User,
    job: web::Path<JobId>,
    page: web::Query<Page>,
) -> JsonResult<Vec<EventView>> {
    // A job that isn't there is told from one without events.
    let detail = app.shell.request(request::GetJob { job: *job }).await?;
    let cpu_shares = detail.spec.placement.cpu_shares;
    let limit = page.limit.unwrap_or(DEFAULT_EVENTS).min(MAX_EVENTS);
    let records = app.shell.events(*job, JournalPosition(page.after), limit).await?;
    Ok(JsonAnswer(records.iter().map(|record| view(record, cpu_shares)).collect::<Result<_, _>>()?))
}

/// An event, as an answer has it.
pub(super) fn view(record: &Record, cpu_shares: CpuSharePolicy) -> Result<EventView, HttpError> {
    event_view(record, cpu_shares).map_err(|error| HttpError::fault(&error))
}
