//! Blobs: read by hosts and users, put there by users.

use super::{
    Site,
    auth::{Admin, Reader},
    bytes::{Offset, Wanted, declared_bytes, receive, wanted},
    error::HttpError,
    finished,
    jobs::unexpected,
    openapi::Bytes,
};
use crate::{
    collect::{self, CollectError},
    keeper::PublishError,
};
use actix_web::{HttpRequest, HttpResponse, body::SizedStream, http::header, web};
use futures::TryStreamExt as _;
use sojourn_blobs::{BlobError, UploadName};
use sojourn_core::{Answer, Command};
use sojourn_protocol::{
    api::{CollectAnswer, CollectRequest, MissingAnswer, MissingRequest, UploadState},
    digest::{BlobRef, Digest},
    direct::DIRECT_HEADER,
    error::ErrorKind,
};
use std::sync::Arc;

fn digest(text: &str) -> Result<Digest, HttpError> {
    text.parse().map_err(|error| HttpError::new(ErrorKind::Invalid, format!("{error}")))
}

/// The bytes of a blob, or a range of them. A host reads what its leases name.
#[utoipa::path(
    get,
    path = "/v1/blobs/{sha256}",
    operation_id = "blob",
    params(
        ("sha256" = Digest, Path, description = "The blob."),
        ("range" = Option<String>, Header, description = "One range, e.g. `bytes=100-199`."),
        ("sojourn-direct" = Option<String>, Header, description = "`follow`: a redirect to the store is followed, without the token."),
    ),
    responses(
        (status = 200, description = "All bytes.", content_type = "application/octet-stream", body = Bytes),
        (status = 206, description = "The range.", content_type = "application/octet-stream", body = Bytes,
         headers(("content-range" = String, description = "Which bytes of how many."))),
        (status = 307, description = "The store gives it, and ranges of it, for a short time; only where that was asked for.",
         headers(("location" = String, description = "Where to. Whoever has it may use it."))),
    ),
    security(("host" = []), ("admin" = []))
)]
pub(super) async fn get(
    site: web::Data<Site>,
    reader: Reader,
    path: web::Path<String>,
    request: HttpRequest,
) -> Result<HttpResponse, HttpError> {
    let blob = digest(&path)?;
    if let Reader::Host(host) = reader {
        site.shell.call(|to| Command::AuthorizeRead { to, host, blob }).await?;
        site.traffic.downloaded();
    }
    if follows(&request)
        && let Some(answer) = elsewhere(&site, blob).await?
    {
        return Ok(answer);
    }
    let bytes = match site.keeper.blobs().size(blob).await {
        Ok(bytes) => bytes.ok_or(BlobError::Missing(blob)),
        Err(error) => Err(error),
    };
    let bytes = match bytes {
        Ok(bytes) => bytes,
        Err(error) => return Err(unread(&site, blob, error).await),
    };
    let range = request.headers().get(header::RANGE).and_then(|value| value.to_str().ok());
    let (mut answer, range) = match wanted(range, bytes) {
        Wanted::Whole => (HttpResponse::Ok(), 0..bytes),
        Wanted::Part(range) => {
            let mut answer = HttpResponse::PartialContent();
            let says = format!("bytes {}-{}/{bytes}", range.start, range.end.saturating_sub(1));
            answer.insert_header((header::CONTENT_RANGE, says));
            (answer, range)
        }
        Wanted::Outside => return Err(HttpError::range(bytes)),
    };
    let length = range.end - range.start;
    let stream = match site.keeper.blobs().read(blob, range).await {
        Ok(stream) => stream,
        Err(error) => return Err(unread(&site, blob, error).await),
    };
    let traffic = Arc::clone(&site.traffic);
    let stream = stream.inspect_ok(move |bytes| traffic.sent(bytes.len()));
    let stream = stream.inspect_err(move |error| {
        // One that is stored in pieces is looked at as it is read.
        if is_lost(error) {
            let site = site.clone();
            tokio::spawn(async move { site.keeper.missed(blob).await });
        }
    });
    Ok(answer
        .insert_header((header::ACCEPT_RANGES, "bytes"))
        .insert_header((header::ETAG, format!("\"{blob}\"")))
        .insert_header((header::CONTENT_TYPE, "application/octet-stream"))
        .body(SizedStream::new(length, stream)))
}

/// Can whoever asks go on at another place?
fn follows(request: &HttpRequest) -> bool {
    request.headers().get(DIRECT_HEADER).is_some_and(|value| value == "follow")
}

/// Where the store itself gives a blob; `None` where it doesn't, or may not have it.
async fn elsewhere(site: &Site, blob: Digest) -> Result<Option<HttpResponse>, HttpError> {
    let Some(url) = site.keeper.blobs().read_url(blob, finished::term(site)).await? else {
        return Ok(None);
    };
    // One that is stored in pieces is put together here.
    if site.keeper.blobs().plain_size(blob).await?.is_none() {
        return Ok(None);
    }
    let mut answer = HttpResponse::TemporaryRedirect();
    answer.insert_header((header::LOCATION, url.as_str()));
    // It ends soon, and isn't everybody's.
    answer.insert_header((header::CACHE_CONTROL, "no-store"));
    Ok(Some(answer.finish()))
}

/// What whoever wanted to read a blob hears; the core too, where the blob has been lost.
async fn unread(site: &Site, blob: Digest, error: BlobError) -> HttpError {
    if is_lost(&error) { site.keeper.missed(blob).await.into() } else { error.into() }
}

/// Does it say that the store hasn't got a blob as it was?
const fn is_lost(error: &BlobError) -> bool {
    matches!(error, BlobError::Missing(_) | BlobError::Altered { .. } | BlobError::Shortened(_))
}

/// Uploads a blob, or goes on with it; the body is what follows `offset`.
#[utoipa::path(
    put,
    path = "/v1/blobs/{sha256}",
    operation_id = "putBlob",
    params(
        ("sha256" = Digest, Path, description = "SHA-256 of the whole decoded content."),
        ("offset" = Option<u64>, Query, description = "Bytes that the server holds already; 0 if left out."),
        ("sojourn-bytes" = u64, Header, description = "Size of the whole decoded content."),
        ("content-encoding" = Option<String>, Header, description = "`zstd`, where the body is compressed."),
    ),
    request_body(content = Bytes, content_type = "application/octet-stream"),
    responses((status = 200, description = "How far the upload is; once complete, the blob is stored.", body = UploadState)),
    security(("admin" = []))
)]
pub(super) async fn put(
    site: web::Data<Site>,
    _: Admin,
    path: web::Path<String>,
    query: web::Query<Offset>,
    request: HttpRequest,
    body: web::Payload,
) -> Result<web::Json<UploadState>, HttpError> {
    let sha256 = digest(&path)?;
    let blob = BlobRef { sha256, bytes: declared_bytes(&request)? };
    site.shell.call(|to| Command::AuthorizePublish { to, blob }).await?;
    let name = UploadName::Blob(sha256);
    let state = receive(&site, name, blob, query.offset, &request, body).await?;
    if state.complete {
        // A task of its own: a publish must come to its end even where nobody waits for it any more.
        let published = actix_web::rt::spawn(publish(site, name, blob)).await;
        published.map_err(|error| HttpError::fault(&error))??;
    }
    Ok(web::Json(state))
}

async fn publish(site: web::Data<Site>, name: UploadName, blob: BlobRef) -> Result<(), HttpError> {
    let uploads = site.uploads.clone();
    let file = web::block(move || uploads.complete(name, blob)).await??;
    let published = site.keeper.publish(blob, &file).await;
    // What was damaged in the spool folder must be sent anew.
    let damaged = matches!(&published, Err(PublishError::Store(BlobError::Unverified { .. })));
    if published.is_ok() || damaged {
        let uploads = site.uploads.clone();
        web::block(move || uploads.remove(name)).await??;
    }
    Ok(published?)
}

/// How far the upload of a blob is.
#[utoipa::path(
    get,
    path = "/v1/uploads/{sha256}",
    operation_id = "uploadState",
    params(
        ("sha256" = Digest, Path, description = "The blob."),
    ),
    responses((status = 200, description = "How far the upload is.", body = UploadState)),
    security(("admin" = []))
)]
pub(super) async fn upload_state(
    site: web::Data<Site>,
    _: Admin,
    path: web::Path<String>,
) -> Result<web::Json<UploadState>, HttpError> {
    let name = UploadName::Blob(digest(&path)?);
    let uploads = site.uploads.clone();
    let state = web::block(move || uploads.state(name)).await?.map(|(_, state)| state);
    Ok(web::Json(state.unwrap_or(UploadState { offset: 0, complete: false })))
}

/// Which of these blobs does the server lack?
#[utoipa::path(
    post,
    path = "/v1/blobs/missing",
    operation_id = "missingBlobs",
    request_body = MissingRequest,
    responses((status = 200, description = "The blobs to upload.", body = MissingAnswer)),
    security(("admin" = []))
)]
pub(super) async fn missing(
    site: web::Data<Site>,
    _: Admin,
    request: web::Json<MissingRequest>,
) -> Result<web::Json<MissingAnswer>, HttpError> {
    let blobs = request.into_inner().blobs;
    match site.shell.call(|to| Command::Missing { to, blobs }).await? {
        Answer::Missing(missing) => Ok(web::Json(MissingAnswer { missing })),
        other => Err(unexpected(&other)),
    }
}

/// Throws away what lies in the store and the journal doesn't know, or says what that would be.
#[utoipa::path(
    post,
    path = "/v1/blobs/collect",
    operation_id = "collectBlobs",
    request_body = CollectRequest,
    responses((status = 200, description = "What was found.", body = CollectAnswer)),
    security(("admin" = []))
)]
pub(super) async fn collect(
    site: web::Data<Site>,
    _: Admin,
    request: web::Json<CollectRequest>,
) -> Result<web::Json<CollectAnswer>, HttpError> {
    // A task of its own: it comes to its end, though nobody waits for it any more.
    let collected = actix_web::rt::spawn(async move {
        let staging = site.keeper.blobs().staging();
        collect::collect(&site.shell, &site.keeper, &staging, &request).await
    });
    match collected.await.map_err(|error| HttpError::fault(&error))? {
        Ok(answer) => Ok(web::Json(answer)),
        Err(CollectError::Core(error)) => Err(error.into()),
        Err(CollectError::Store(error)) => Err(error.into()),
    }
}
