//! Blobs: read by hosts and users, uploaded by users.

use super::{
    App, AppState, JsonAnswer, JsonResult,
    auth::{Reader, User},
    direct::url_term,
    error::HttpError,
    packed,
    request_body::Body,
    uploads::{Offset, declared_bytes, receive},
};
use crate::orphans::{self, CollectError};
use actix_web::{HttpRequest, HttpResponse, body::SizedStream, http::header, web};
use futures::TryStreamExt as _;
use sojourn_blobs::{BlobError, UploadName};
use sojourn_core::request;
use sojourn_http::byte_range::Wanted;
use sojourn_protocol::{
    api::{CollectAnswer, CollectRequest, MissingAnswer, MissingRequest, UploadState},
    digest::{BlobRef, Digest},
    direct::{DIRECT_HEADER, ENCODING_HEADER},
    error::ErrorKind,
};
use std::sync::Arc;

fn digest(text: &str) -> Result<Digest, HttpError> {
    text.parse().map_err(|error| HttpError::new(ErrorKind::Invalid, format!("{error}")))
}

pub(super) async fn get(
    app: App,
    reader: Reader,
    path: web::Path<String>,
    request: HttpRequest,
) -> Result<HttpResponse, HttpError> {
    let blob = digest(&path)?;
    if let Reader::Host(host) = reader {
        app.shell.request(request::AuthorizeRead { host, blob }).await?;
        app.traffic.downloaded();
    }
    let packs = packed::accepts(&request);
    if follows(&request)
        && let Some(answer) = elsewhere(&app, blob, packs).await?
    {
        return Ok(answer);
    }
    let bytes = match app.blobs.store().size(blob).await {
        Ok(bytes) => bytes.ok_or(BlobError::Missing(blob)),
        Err(error) => Err(error),
    };
    let bytes = match bytes {
        Ok(bytes) => bytes,
        Err(error) => return Err(unread(&app, blob, error).await),
    };
    if packs && let Some(answer) = packed::answer(&app, BlobRef { sha256: blob, bytes }).await {
        return Ok(answer);
    }
    let range = request.headers().get(header::RANGE).and_then(|value| value.to_str().ok());
    let (mut answer, range) = match Wanted::read(range, bytes) {
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
    let stream = match app.blobs.store().read(blob, range).await {
        Ok(stream) => stream,
        Err(error) => return Err(unread(&app, blob, error).await),
    };
    let traffic = Arc::clone(&app.traffic);
    let stream = stream.inspect_ok(move |bytes| traffic.sent(bytes.len()));
    let stream = stream.inspect_err(move |error| {
        // A blob in pieces is verified as it is read.
        if is_lost(error) {
            let app = app.clone();
            tokio::spawn(async move { app.blobs.report_missing(blob).await });
        }
    });
    Ok(answer
        .insert_header((header::ACCEPT_RANGES, "bytes"))
        .insert_header((header::ETAG, format!("\"{blob}\"")))
        .insert_header((header::CONTENT_TYPE, "application/octet-stream"))
        .body(SizedStream::new(length, stream)))
}

/// Whether the client follows redirects to the store.
fn follows(request: &HttpRequest) -> bool {
    request.headers().get(DIRECT_HEADER).is_some_and(|value| value == "follow")
}

/// A redirect to the store; `None` if the store gives no URLs, or doesn't have the blob as one object.
async fn elsewhere(
    app: &AppState,
    blob: Digest,
    packs: bool,
) -> Result<Option<HttpResponse>, HttpError> {
    let (store, term) = (app.blobs.store(), url_term(app));
    let Some(mut url) = store.read_url(blob, term).await? else { return Ok(None) };
    // A blob in pieces is joined by the server.
    let Some(bytes) = store.plain_size(blob).await? else { return Ok(None) };
    let mut answer = HttpResponse::TemporaryRedirect();
    if packs
        && packed::size(app, BlobRef { sha256: blob, bytes }).await.is_some()
        && let Some(copy) = store.packed_url(blob, term).await?
    {
        url = copy;
        answer.insert_header((ENCODING_HEADER, packed::ZSTD));
    }
    answer.insert_header((header::LOCATION, url.as_str()));
    // The URL expires soon, and is for this client alone.
    answer.insert_header((header::CACHE_CONTROL, "no-store"));
    Ok(Some(answer.finish()))
}

/// The answer to a failed read. If the blob was lost, the core is told.
async fn unread(app: &AppState, blob: Digest, error: BlobError) -> HttpError {
    if is_lost(&error) { app.blobs.report_missing(blob).await.into() } else { error.into() }
}

/// Whether the error says that the store has lost the blob.
const fn is_lost(error: &BlobError) -> bool {
    matches!(error, BlobError::Missing(_) | BlobError::Altered { .. } | BlobError::Shortened(_))
}

pub(super) async fn put(
    app: App,
    _: User,
    path: web::Path<String>,
    query: web::Query<Offset>,
    request: HttpRequest,
    body: web::Payload,
) -> JsonResult<UploadState> {
    let sha256 = digest(&path)?;
    let blob = BlobRef { sha256, bytes: declared_bytes(&request)? };
    app.shell.request(request::AuthorizePublish { blob }).await?;
    let name = UploadName::Blob(sha256);
    let state = receive(&app, name, blob, query.offset, &request, body).await?;
    if state.complete {
        // A task of its own: a publish must end even if the client hangs up.
        let publish = async move { app.blobs.publish_upload(&app.uploads, blob).await };
        let published = actix_web::rt::spawn(publish).await;
        published.map_err(|error| HttpError::fault(&error))??;
    }
    Ok(JsonAnswer(state))
}

pub(super) async fn upload_state(
    app: App,
    _: User,
    path: web::Path<String>,
) -> JsonResult<UploadState> {
    let name = UploadName::Blob(digest(&path)?);
    let uploads = app.uploads.clone();
    let state = web::block(move || uploads.state(name)).await?.map(|(_, state)| state);
    Ok(JsonAnswer(state.unwrap_or(UploadState { offset: 0, complete: false })))
}

pub(super) async fn missing(
    app: App,
    _: User,
    Body(request): Body<MissingRequest>,
) -> JsonResult<MissingAnswer> {
    let missing = app.blobs.missing(request.blobs).await?;
    Ok(JsonAnswer(MissingAnswer { missing }))
}

pub(super) async fn collect(
    app: App,
    _: User,
    Body(request): Body<CollectRequest>,
) -> JsonResult<CollectAnswer> {
    // A task of its own: it ends even if the client hangs up.
    let collected = actix_web::rt::spawn(async move {
        let staging = app.blobs.store().staging();
        orphans::collect(&app.shell, &app.blobs, &staging, &request).await
    });
    match collected.await.map_err(|error| HttpError::fault(&error))? {
        Ok(answer) => Ok(JsonAnswer(answer)),
        Err(CollectError::Core(error)) => Err(error.into()),
        Err(CollectError::Store(error)) => Err(error.into()),
        Err(CollectError::Lease(lost)) => {
            Err(HttpError::new(ErrorKind::Unavailable, lost.to_string()))
        }
    }
}
