//! The page of a host with its buttons, and that of what went wrong on all hosts.

use super::{answer, answer::PageError, pages::Part};
use crate::http::{
    App,
    auth::{UserBy, UserViewer},
    error::HttpError,
    failures as counted,
};
use actix_web::{
    HttpRequest, HttpResponse,
    web::{Form, Path, Query},
};
use serde::Deserialize;
use sojourn_core::request;
use sojourn_page::{failures as failures_page, host as host_page};
use sojourn_protocol::{error::ErrorKind, ids::HostId};

/// The form that a button of a host's page sends.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(in crate::http) struct Button {
    action: Action,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Action {
    Block,
    Unblock,
    Revoke,
}

/// A host.
pub(in crate::http) async fn host(
    app: App,
    UserViewer(viewer): UserViewer,
    request: HttpRequest,
    host: Path<HostId>,
    Query(part): Query<Part>,
) -> Result<HttpResponse, PageError> {
    let detail = app.shell.request(request::GetHost { host: *host }).await?;
    let part = match part.name() {
        None => {
            let failures = counted::known(&app).await?;
            return Ok(answer::html(host_page::page(&detail, &failures, viewer)));
        }
        Some("head") => host_page::head(&detail.host, viewer),
        Some("leases") => host_page::leases(&detail.host),
        Some("devices") => host_page::devices(&detail.host),
        Some("cache") => host_page::cache(&detail),
        Some("errors") => host_page::errors(*host, &counted::known(&app).await?),
        Some(other) => {
            let message = format!("a host's page has no part `{other}`");
            return Err(HttpError::new(ErrorKind::NotFound, message).into());
        }
    };
    Ok(answer::part(&request, part))
}

/// Does what a button says, and leads back to the host's page.
pub(in crate::http) async fn act(
    app: App,
    by: UserBy,
    host: Path<HostId>,
    Form(button): Form<Button>,
) -> Result<HttpResponse, PageError> {
    let (host, by) = (*host, by.0);
    match button.action {
        Action::Block => {
            drop(app.shell.request(request::BlockHost { host, blocked: true, by }).await?)
        }
        Action::Unblock => {
            drop(app.shell.request(request::BlockHost { host, blocked: false, by }).await?);
        }
        Action::Revoke => drop(app.shell.request(request::RevokeHost { host }).await?),
    }
    Ok(answer::go_to(&format!("/hosts/{host}")))
}

/// The page of what went wrong on all hosts.
pub(in crate::http) async fn failures(
    app: App,
    _: UserViewer,
    request: HttpRequest,
    Query(part): Query<Part>,
) -> Result<HttpResponse, PageError> {
    let failures = counted::known(&app).await?;
    let hosts = app.shell.request(request::GetHosts {}).await?;
    Ok(match part.name() {
        None => answer::html(failures_page::page(&failures, &hosts)),
        Some(_) => answer::part(&request, failures_page::list(&failures, &hosts)),
    })
}
