//! What hosts ask and report, and what operators do about hosts.

use super::{
    Site,
    auth::{Admin, Enroller, Host},
    bytes::{Offset, declared_bytes, declared_digest, receive},
    error::HttpError,
    finished,
    jobs::unexpected,
    openapi::Bytes,
};
use crate::folder::new_token;
use actix_web::{HttpRequest, web};
use sojourn_blobs::UploadName;
use sojourn_core::{Answer, Command, Query};
use sojourn_protocol::{
    api::{
        EnrolAnswer, EnrolRequest, HeartbeatAnswer, HeartbeatRequest, ReleaseAnswer,
        ReleaseRequest, ReportAnswer, UploadState, WorkAnswer, WorkRequest,
    },
    digest::{BlobRef, Digest},
    error::ErrorKind,
    ids::{HostId, LeaseId},
    report::{Outcome, Report},
    view::HostView,
};

/// Makes this machine a host: each time another one, with a token of its own.
#[utoipa::path(
    post,
    path = "/v1/enrol",
    operation_id = "enrol",
    request_body = EnrolRequest,
    responses((status = 200, description = "The machine is a host.", body = EnrolAnswer)),
    security(("enrolment" = []))
)]
pub(super) async fn enrol(
    site: web::Data<Site>,
    _: Enroller,
    request: web::Json<EnrolRequest>,
) -> Result<web::Json<EnrolAnswer>, HttpError> {
    let token = new_token().map_err(|error| HttpError::fault(&error))?;
    let token_sha256 = Digest::of(token.as_bytes());
    let name = request.into_inner().name;
    match site.shell.call(|to| Command::Enrol { to, name, token_sha256 }).await? {
        Answer::Enrolled(host) => Ok(web::Json(EnrolAnswer { host, token })),
        other => Err(unexpected(&other)),
    }
}

/// Asks for work. Held open up to `wait` where there is none. Live leases that the request doesn't hold are
/// given again, and new ones beside them, up to `wanted` in all.
#[utoipa::path(
    post,
    path = "/v1/work",
    operation_id = "work",
    request_body = WorkRequest,
    responses((status = 200, description = "Leases, and what else the host must hear.", body = WorkAnswer)),
    security(("host" = []))
)]
pub(super) async fn work(
    site: web::Data<Site>,
    Host(host): Host,
    request: web::Json<WorkRequest>,
) -> Result<web::Json<WorkAnswer>, HttpError> {
    let request = request.into_inner();
    match site.shell.call(|to| Command::Ask { to, host, request }).await? {
        Answer::Work(answer) => Ok(web::Json(*answer)),
        other => Err(unexpected(&other)),
    }
}

/// A sign of life for the leases that a host holds.
#[utoipa::path(
    post,
    path = "/v1/heartbeat",
    operation_id = "heartbeat",
    request_body = HeartbeatRequest,
    responses((status = 200, description = "Leases to drop, and ends of reports.", body = HeartbeatAnswer)),
    security(("host" = []))
)]
pub(super) async fn heartbeat(
    site: web::Data<Site>,
    Host(host): Host,
    request: web::Json<HeartbeatRequest>,
) -> Result<web::Json<HeartbeatAnswer>, HttpError> {
    let HeartbeatRequest { holding, reported } = request.into_inner();
    match site.shell.call(|to| Command::Heartbeat { to, host, holding, reported }).await? {
        Answer::Heartbeat(answer) => Ok(web::Json(answer)),
        other => Err(unexpected(&other)),
    }
}

/// Gives leases back unfinished.
#[utoipa::path(
    post,
    path = "/v1/release",
    operation_id = "release",
    request_body = ReleaseRequest,
    responses((status = 200, description = "The leases that were given back.", body = ReleaseAnswer)),
    security(("host" = []))
)]
pub(super) async fn release(
    site: web::Data<Site>,
    Host(host): Host,
    request: web::Json<ReleaseRequest>,
) -> Result<web::Json<ReleaseAnswer>, HttpError> {
    let ReleaseRequest { leases, reason } = request.into_inner();
    match site.shell.call(|to| Command::Release { to, host, leases, reason }).await? {
        Answer::Released(answer) => Ok(web::Json(answer)),
        other => Err(unexpected(&other)),
    }
}

/// Uploads a lease's checkpoint, or goes on with it; the body is what follows `offset`.
#[utoipa::path(
    put,
    path = "/v1/leases/{lease}/checkpoint",
    operation_id = "putCheckpoint",
    params(
        ("lease" = LeaseId, Path, description = "The lease."),
        ("offset" = Option<u64>, Query, description = "Bytes that the server holds already; 0 if left out."),
        ("sojourn-sha256" = Digest, Header, description = "SHA-256 of the whole decoded content."),
        ("sojourn-bytes" = u64, Header, description = "Size of the whole decoded content."),
        ("content-encoding" = Option<String>, Header, description = "`zstd`, where the body is compressed."),
    ),
    request_body(content = Bytes, content_type = "application/octet-stream"),
    responses((status = 200, description = "How far the upload is.", body = UploadState)),
    security(("host" = []))
)]
pub(super) async fn put_checkpoint(
    site: web::Data<Site>,
    Host(host): Host,
    path: web::Path<u64>,
    query: web::Query<Offset>,
    request: HttpRequest,
    body: web::Payload,
) -> Result<web::Json<UploadState>, HttpError> {
    let lease = LeaseId(path.into_inner());
    let blob = BlobRef { sha256: declared_digest(&request)?, bytes: declared_bytes(&request)? };
    let bytes = blob.bytes;
    site.shell.call(|to| Command::AuthorizeUpload { to, host, lease, bytes }).await?;
    site.traffic.uploaded();
    let name = UploadName::Lease(lease);
    let state = receive(&site, name, blob, query.offset, &request, body).await?;
    if state.complete {
        finished::stage(&site, lease, blob).await?;
    }
    Ok(web::Json(state))
}

/// How far the upload of a lease's checkpoint is.
#[utoipa::path(
    get,
    path = "/v1/leases/{lease}/checkpoint",
    operation_id = "checkpointState",
    params(
        ("lease" = LeaseId, Path, description = "The lease."),
    ),
    responses((status = 200, description = "How far the upload is.", body = UploadState)),
    security(("host" = []))
)]
pub(super) async fn checkpoint_state(
    site: web::Data<Site>,
    Host(host): Host,
    path: web::Path<u64>,
) -> Result<web::Json<UploadState>, HttpError> {
    let lease = LeaseId(path.into_inner());
    let uploads = site.uploads.clone();
    let state = web::block(move || uploads.state(UploadName::Lease(lease))).await?;
    let bytes = state.map_or(0, |(blob, _)| blob.bytes);
    let may = site.shell.call(|to| Command::AuthorizeUpload { to, host, lease, bytes }).await;
    match (state, may) {
        (Some((blob, state)), may) => {
            may?;
            if state.complete {
                finished::stage(&site, lease, blob).await?;
            }
            Ok(web::Json(state))
        }
        (None, Err(error)) if error.kind == ErrorKind::Unauthorized => Err(error.into()),
        // Nothing has come: whatever is wrong with the lease, the upload will say.
        (None, _) => Ok(web::Json(UploadState { offset: 0, complete: false })),
    }
}

/// Reports the end of a lease; a checkpoint has been uploaded before. The same report again gets the same answer.
#[utoipa::path(
    post,
    path = "/v1/results",
    operation_id = "report",
    request_body = Report,
    responses((status = 200, description = "The report is journalled.", body = ReportAnswer)),
    security(("host" = []))
)]
pub(super) async fn report(
    site: web::Data<Site>,
    Host(host): Host,
    request: web::Json<Report>,
) -> Result<web::Json<ReportAnswer>, HttpError> {
    let report = request.into_inner();
    let uploaded = match &report.outcome {
        Outcome::Trained(trained) => {
            let blob = trained.checkpoint;
            finished::is_whole(&site, report.lease, blob).await?.then_some(blob)
        }
        Outcome::Evaluated(_) | Outcome::Failed(_) => None,
    };
    match site.shell.call(|to| Command::Report { to, host, report, uploaded }).await? {
        Answer::Report(answer) => Ok(web::Json(answer)),
        other => Err(unexpected(&other)),
    }
}

/// Every host.
#[utoipa::path(
    get,
    path = "/v1/hosts",
    operation_id = "hosts",
    responses((status = 200, description = "All hosts.", body = Vec<HostView>)),
    security(("admin" = []))
)]
pub(super) async fn all(
    site: web::Data<Site>,
    _: Admin,
) -> Result<web::Json<Vec<HostView>>, HttpError> {
    match site.shell.call(|to| Command::Query { to, query: Query::Hosts }).await? {
        Answer::Hosts(hosts) => Ok(web::Json(hosts)),
        other => Err(unexpected(&other)),
    }
}

/// Ends a host's right to work; its leases go to others.
#[utoipa::path(
    post,
    path = "/v1/hosts/{host}/revoke",
    operation_id = "revokeHost",
    params(
        ("host" = HostId, Path, description = "The host."),
    ),
    responses((status = 200, description = "The host, revoked.", body = HostView)),
    security(("admin" = []))
)]
pub(super) async fn revoke(
    site: web::Data<Site>,
    _: Admin,
    path: web::Path<u64>,
) -> Result<web::Json<HostView>, HttpError> {
    let host = HostId(path.into_inner());
    match site.shell.call(|to| Command::RevokeHost { to, host }).await? {
        Answer::Host(host) => Ok(web::Json(*host)),
        other => Err(unexpected(&other)),
    }
}
