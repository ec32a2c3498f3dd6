//! Uploads: a request's body is streamed into the spool.

use super::{AppState, error::HttpError};
use crate::{storage_watch::Coming, traffic::Traffic};
use actix_web::{
    HttpRequest,
    http::header::{self, HeaderMap},
    web,
};
use bytes::BytesMut;
use futures::StreamExt as _;
use sojourn_blobs::{Encoding, Upload, UploadError, UploadName, Uploads};
use sojourn_protocol::{
    api::{BYTES_HEADER, SHA256_HEADER, UploadState},
    bounds::MAX_BLOB_BYTES,
    digest::{BlobRef, Digest},
    error::ErrorKind,
    quantity::to_u64,
};

/// Bytes written to the disk at once.
const WRITE_BYTES: usize = 256 << 10;
/// Most bytes that are read and dropped after a refusal, so that the client reads the answer.
const MAX_DRAINED_BYTES: usize = 8 << 20;

/// `?offset=N`.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Offset {
    #[serde(default)]
    pub(super) offset: u64,
}

fn invalid(message: String) -> HttpError {
    HttpError::new(ErrorKind::Invalid, message)
}

/// The digest that a header has.
pub(super) fn sha256(request: &HttpRequest, name: &str) -> Result<Digest, HttpError> {
    text(request.headers(), name)?.parse().map_err(|error| invalid(format!("{error}")))
}

/// The size that a header has.
pub(super) fn number(request: &HttpRequest, name: &str) -> Result<u64, HttpError> {
    let value = text(request.headers(), name)?;
    let bytes = value.parse().map_err(|_| invalid(format!("`{name}: {value}` is no size")))?;
    if bytes > MAX_BLOB_BYTES {
        let message = format!("`{name}` is {bytes}; at most {MAX_BLOB_BYTES} is taken");
        return Err(HttpError::new(ErrorKind::TooLarge, message));
    }
    Ok(bytes)
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Result<&'a str, HttpError> {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.ok_or_else(|| invalid(format!("the header `{name}` is needed")))
}

/// The declared digest of an upload.
pub(super) fn declared_digest(request: &HttpRequest) -> Result<Digest, HttpError> {
    sha256(request, SHA256_HEADER)
}

/// The declared size of an upload.
pub(super) fn declared_bytes(request: &HttpRequest) -> Result<u64, HttpError> {
    number(request, BYTES_HEADER)
}

fn encoding(request: &HttpRequest) -> Result<Encoding, HttpError> {
    let value = request.headers().get(header::CONTENT_ENCODING);
    match value.map(|value| value.as_bytes()) {
        None | Some(b"identity") => Ok(Encoding::Identity),
        Some(b"zstd") => Ok(Encoding::Zstd),
        Some(_) => Err(invalid("a body can be encoded as `zstd` or not at all".to_owned())),
    }
}

/// Streams a request's body into the spool.
pub(super) async fn receive(
    app: &AppState,
    name: UploadName,
    declared: BlobRef,
    offset: u64,
    request: &HttpRequest,
    mut body: web::Payload,
) -> Result<UploadState, HttpError> {
    let taken = match encoding(request) {
        Ok(encoding) => {
            let began = Began { uploads: app.uploads.clone(), name, declared, offset, encoding };
            feed(app, began, &mut body).await
        }
        Err(error) => Err(error),
    };
    if taken.is_err() {
        drain(&mut body).await;
    }
    taken
}

/// Reads and drops the rest of a refused body.
pub(super) async fn drain(body: &mut web::Payload) {
    let mut drained = 0;
    while let Some(Ok(chunk)) = body.next().await {
        drained += chunk.len();
        if drained > MAX_DRAINED_BYTES {
            break;
        }
    }
}

/// An upload as its request began it.
struct Began {
    uploads: Uploads,
    name: UploadName,
    declared: BlobRef,
    offset: u64,
    encoding: Encoding,
}

impl Began {
    /// Takes the first bytes of the body, or the whole of it.
    fn write(self, bytes: &[u8], whole: bool) -> Result<Fed, UploadError> {
        let Self { uploads, name, declared, offset, encoding } = self;
        if whole {
            return uploads.receive(name, declared, offset, encoding, bytes).map(Fed::Ended);
        }
        write(uploads.begin(name, declared, offset, encoding)?, bytes, whole)
    }
}

/// Why a group of bytes ended.
enum End {
    /// The group is full.
    More,
    /// The body ended.
    Whole,
    /// The connection broke, the body came too slowly, or it is invalid.
    Broken(HttpError),
}

/// An upload before or after a group was written.
enum Fed {
    Upload(Upload),
    Ended(UploadState),
}

/// Writes the body in groups: each is one call on a blocking thread. Most bodies are one group.
async fn feed(
    app: &AppState,
    began: Began,
    body: &mut web::Payload,
) -> Result<UploadState, HttpError> {
    // A blob lies in the spool and in the store for a moment.
    let stored = if matches!(began.name, UploadName::Blob(_)) { began.declared.bytes } else { 0 };
    let spooled = began.declared.bytes.saturating_sub(began.offset);
    let name = began.name;
    app.storage.admit(name, Coming { spooled, stored })?;
    let (mut group, mut end) = gather(&app.traffic, body).await;
    let mut whole = matches!(end, End::Whole);
    let mut fed = web::block(move || began.write(&group, whole)).await??;
    loop {
        let upload = match (fed, end) {
            (Fed::Ended(state), _) => return Ok(state),
            // Bytes before the break are kept: the upload goes on there.
            (Fed::Upload(_), End::Broken(error)) => return Err(error),
            (Fed::Upload(upload), End::More | End::Whole) => upload,
        };
        (group, end) = gather(&app.traffic, body).await;
        // Others fill the disk too.
        app.storage.admit(name, Coming { spooled: to_u64(group.len()), stored: 0 })?;
        whole = matches!(end, End::Whole);
        fed = web::block(move || write(upload, &group, whole)).await??;
    }
}

/// The next bytes of a body, as many as are given to the disk at once.
async fn gather(traffic: &Traffic, body: &mut web::Payload) -> (BytesMut, End) {
    let mut group = BytesMut::new();
    while group.len() < WRITE_BYTES {
        match body.next().await {
            Some(Ok(chunk)) => {
                traffic.received(chunk.len());
                group.extend_from_slice(&chunk);
            }
            Some(Err(error)) => {
                return (group, End::Broken(HttpError::payload(&error)));
            }
            None => return (group, End::Whole),
        }
    }
    (group, End::More)
}

/// The same for a body that is of no use where it breaks; and whether it has ended.
pub(super) async fn next_bytes(
    traffic: &Traffic,
    body: &mut web::Payload,
) -> Result<(BytesMut, bool), HttpError> {
    match gather(traffic, body).await {
        (bytes, End::More) => Ok((bytes, false)),
        (bytes, End::Whole) => Ok((bytes, true)),
        (_, End::Broken(error)) => Err(error),
    }
}

fn write(mut upload: Upload, bytes: &[u8], whole: bool) -> Result<Fed, UploadError> {
    upload.write(bytes)?;
    if whole { upload.finish().map(Fed::Ended) } else { Ok(Fed::Upload(upload)) }
}

#[cfg(test)]
mod tests {
    use super::super::body::pace;
    use super::*;
    use actix_web::{FromRequest as _, dev, error::PayloadError, test::TestRequest};
    use bytes::Bytes;
    use futures::stream;
    use std::io;

    /// The error of a body whose first bytes are followed by this.
    async fn broken(
        rest: impl futures::Stream<Item = Result<Bytes, PayloadError>> + 'static,
    ) -> HttpError {
        let first = stream::iter([Ok(Bytes::from_static(b"begun"))]);
        let mut request = TestRequest::put().to_srv_request();
        let payload = Box::pin(first.chain(rest));
        request.set_payload(dev::Payload::Stream { payload });
        pace(&mut request, None);
        let (request, mut body) = request.into_parts();
        let mut body = web::Payload::from_request(&request, &mut body).await.unwrap();
        let (group, end) = gather(&Traffic::default(), &mut body).await;
        assert_eq!(group, "begun");
        match end {
            End::Broken(error) => error,
            End::More | End::Whole => panic!("the body ended well"),
        }
    }

    /// A client deletes a result that is invalid.
    #[tokio::test(start_paused = true)]
    async fn an_upload_that_is_slow_or_cut_off_is_to_be_sent_again() {
        let slow = broken(stream::pending()).await;
        assert_eq!(slow.kind(), ErrorKind::Unavailable, "{slow}");
        for error in [
            PayloadError::Incomplete(None),
            PayloadError::Io(io::ErrorKind::ConnectionReset.into()),
        ] {
            let cut = broken(stream::iter([Err(error)])).await;
            assert_eq!(cut.kind(), ErrorKind::Unavailable, "{cut}");
        }
        let wrong = broken(stream::iter([Err(PayloadError::EncodingCorrupted)])).await;
        assert_eq!(wrong.kind(), ErrorKind::Invalid, "{wrong}");
    }
}
