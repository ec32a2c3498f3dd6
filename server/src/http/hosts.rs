//! What hosts ask and report, and what operators do about hosts.

use super::{
    Site,
    auth::{Admin, Enroller, Host},
    bytes::{Offset, declared_bytes, declared_digest, receive},
    error::HttpError,
    jobs::unexpected,
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

pub(super) async fn work(
    site: web::Data<Site>,
    Host(host): Host,
    request: web::Json<WorkRequest>,
) -> Result<web::Json<WorkAnswer>, HttpError> {
    let request = request.into_inner();
    match site.shell.call(|to| Command::Ask { to, host, request }).await? {
        Answer::Work(answer) => Ok(web::Json(answer)),
        other => Err(unexpected(&other)),
    }
}

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
    Ok(web::Json(receive(&site, name, blob, query.offset, &request, body).await?))
}

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
        (Some((_, state)), may) => may.map(|_| web::Json(state)).map_err(HttpError::from),
        (None, Err(error)) if error.kind == ErrorKind::Unauthorized => Err(error.into()),
        // Nothing has come: whatever is wrong with the lease, the upload will say.
        (None, _) => Ok(web::Json(UploadState { offset: 0, complete: false })),
    }
}

pub(super) async fn report(
    site: web::Data<Site>,
    Host(host): Host,
    request: web::Json<Report>,
) -> Result<web::Json<ReportAnswer>, HttpError> {
    let report = request.into_inner();
    let uploaded = match &report.outcome {
        Outcome::Trained(trained) => {
            let (name, blob) = (UploadName::Lease(report.lease), trained.checkpoint);
            let uploads = site.uploads.clone();
            let complete = web::block(move || uploads.complete(name, blob)).await?;
            complete.is_ok().then_some(blob)
        }
        Outcome::Evaluated(_) | Outcome::Failed(_) => None,
    };
    match site.shell.call(|to| Command::Report { to, host, report, uploaded }).await? {
        Answer::Report(answer) => Ok(web::Json(answer)),
        other => Err(unexpected(&other)),
    }
}

pub(super) async fn all(
    site: web::Data<Site>,
    _: Admin,
) -> Result<web::Json<Vec<HostView>>, HttpError> {
    match site.shell.call(|to| Command::Query { to, query: Query::Hosts }).await? {
        Answer::Hosts(hosts) => Ok(web::Json(hosts)),
        other => Err(unexpected(&other)),
    }
}

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
