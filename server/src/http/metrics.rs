//! The metrics for Prometheus, and the middleware that times requests.

use super::{App, AppState, auth::User, error::HttpError};
use crate::metrics::{PREFIX, Scrape};
use actix_web::{
    Error, HttpRequest, HttpResponse,
    body::MessageBody,
    dev::{ServiceRequest, ServiceResponse},
    http::header::ACCEPT,
    middleware::Next,
    web,
};
use sojourn_core::request;
use sojourn_programs::metrics::{TextFormat, text};
use std::time::Instant;

/// A scraper that understands OpenMetrics says so with this media type.
const OPEN_METRICS: &str = "application/openmetrics-text";

pub(super) async fn metrics(
    app: App,
    _: User,
    request: HttpRequest,
) -> Result<HttpResponse, HttpError> {
    let accept = request.headers().get(ACCEPT);
    let format = match accept.and_then(|accept| accept.to_str().ok()) {
        Some(accept) if accept.contains(OPEN_METRICS) => TextFormat::OpenMetrics,
        _ => TextFormat::Prometheus,
    };
    // Before the core answers: it does so only when all events so far are written.
    let unwritten_events = app.shell.counts().unwritten();
    let scrape = Scrape {
        figures: app.shell.request(request::GetFigures {}).await?,
        shell: app.shell.counts().clone(),
        unwritten_events,
        disks: app.storage.disks(),
        uploads: app.quota.held(),
        traffic: app.traffic.totals(),
        request_times: app.request_times.clone(),
    };
    let text = text(PREFIX, scrape, format).map_err(|error| HttpError::fault(&error))?;
    Ok(HttpResponse::Ok().content_type(format.media_type()).body(text))
}

/// Middleware that takes the time of each request until its answer begins.
pub(crate) async fn time_requests<B: MessageBody + 'static>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<B>, Error> {
    let begun = Instant::now();
    let app = request.app_data::<web::Data<AppState>>().cloned();
    let (route, method) = (request.match_pattern(), request.method().clone());
    let answer = next.call(request).await;
    let status = match &answer {
        Ok(answer) => answer.status(),
        Err(error) => error.as_response_error().status_code(),
    };
    if let Some(app) = app {
        app.request_times.observe(route, method.as_str(), status.as_u16(), begun.elapsed());
    }
    answer
}
