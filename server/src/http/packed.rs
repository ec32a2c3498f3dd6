//! Compressed answers to whoever fetches a blob: the store keeps a copy of a shard that saves a tenth of its bytes.
//!
//! Hosts ask for it when they fetch shards. A range is of the blob's own bytes, which come as they are: so a download that
//! broke off goes on wherever its bytes came from.

use super::AppState;
use actix_web::{
    HttpRequest, HttpResponse,
    body::SizedStream,
    http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, ETAG, RANGE, VARY},
};
use futures::TryStreamExt as _;
use sojourn_protocol::digest::BlobRef;
use std::sync::Arc;

/// The encoding, as headers name it.
pub(super) const ZSTD: &str = "zstd";

/// Does a request for a blob take it compressed?
pub(super) fn accepts(request: &HttpRequest) -> bool {
    let headers = request.headers();
    let accepted = headers.get(ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    let mut names = accepted.unwrap_or_default().split(',').map(str::trim);
    names.any(|name| name == ZSTD) && !headers.contains_key(RANGE)
}

/// The size of a blob's compressed copy; `None` where it comes as it is. None is made while the disk is low.
pub(super) async fn size(app: &AppState, blob: BlobRef) -> Option<u64> {
    if app.storage.seen().is_low() {
        return None;
    }
    match app.blobs.store().packed_size(blob).await {
        Ok(bytes) => bytes,
        Err(error) => {
            let error = &error as &dyn std::error::Error;
            tracing::debug!(blob = %blob.sha256, error, "a blob is not compressed; it is sent as it is");
            None
        }
    }
}

/// A blob's compressed copy as an answer; `None` where it comes as it is.
pub(super) async fn answer(app: &AppState, blob: BlobRef) -> Option<HttpResponse> {
    size(app, blob).await?;
    let (bytes, stream) = app.blobs.store().read_packed(blob.sha256).await.ok()?;
    let traffic = Arc::clone(&app.traffic);
    let stream = stream.inspect_ok(move |bytes| traffic.sent(bytes.len()));
    let mut answer = HttpResponse::Ok();
    answer
        .insert_header((CONTENT_ENCODING, ZSTD))
        .insert_header((VARY, ACCEPT_ENCODING.as_str()))
        .insert_header((ETAG, format!("\"{}-{ZSTD}\"", blob.sha256)))
        .insert_header((CONTENT_TYPE, "application/octet-stream"));
    Some(answer.body(SizedStream::new(bytes, stream)))
}
