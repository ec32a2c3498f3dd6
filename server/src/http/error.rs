//! Errors as answers: one table from cause to kind. The cause of a fault is logged, and not sent.

use crate::{blob_lifecycle::PublishError, job_checks::CheckError};
use actix_web::{
    HttpResponse, HttpResponseBuilder, ResponseError,
    error::{JsonPayloadError, PayloadError},
    http::{StatusCode, header},
};
use sojourn_blobs::{BlobError, UploadError};
use sojourn_protocol::{
    error::{ApiError, ErrorKind},
    text::plain_line,
};
use std::{fmt, io, time::Duration};

/// The `Retry-After` of an unavailable server.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Characters of what is wrong with a body.
const MAX_CAUSE_CHARS: usize = 500;
/// The words for a caller whose token the server doesn't know.
const UNKNOWN: &str = "the token is unknown or was revoked";

/// An [`ApiError`] on its way out.
#[derive(Debug)]
pub(crate) struct HttpError {
    error: ApiError,
    /// The size of the blob, where a range was outside it.
    blob_bytes: Option<u64>,
    /// How long the caller is to wait before it asks again.
    retry_after: Option<Duration>,
}

impl HttpError {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        ApiError::new(kind, message).into()
    }

    /// The refusal of a token that the server knows: it is of another kind than the address takes, has expired, or was
    /// revoked. Only who has the very token hears this.
    pub(crate) fn unauthorized(why: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unauthorized, why)
    }

    /// The refusal of a token that the server doesn't know.
    pub(crate) fn unknown_token() -> Self {
        ApiError::unknown_token(UNKNOWN).into()
    }

    /// A fault of the server. The cause goes to the log alone.
    pub(crate) fn fault(cause: &(dyn std::error::Error + 'static)) -> Self {
        tracing::error!(error = cause, "a request failed");
        Self::new(ErrorKind::Internal, "the server failed; its log says why")
    }

    pub(crate) fn range(bytes: u64) -> Self {
        let message = format!("the range lies outside the blob's {bytes} bytes");
        let error = ApiError::new(ErrorKind::RangeNotSatisfiable, message);
        Self { error, blob_bytes: Some(bytes), retry_after: None }
    }

    /// The same, with the time after which the caller is to ask again.
    pub(crate) const fn retry_after(mut self, pause: Duration) -> Self {
        self.retry_after = Some(pause);
        self
    }

    /// The seconds after which the caller is to ask again: whole ones, and never too few.
    pub(crate) fn retry_seconds(&self) -> Option<u64> {
        let pause = match self.error.kind {
            ErrorKind::Unavailable | ErrorKind::TooManyRequests => {
                self.retry_after.unwrap_or(RETRY_AFTER)
            }
            _ => self.retry_after?,
        };
        Some(pause.as_secs() + u64::from(pause.subsec_nanos() > 0))
    }

    pub(crate) const fn kind(&self) -> ErrorKind {
        self.error.kind
    }

    pub(crate) fn json(error: &JsonPayloadError) -> Self {
        match error {
            JsonPayloadError::Overflow { limit } => too_large(*limit),
            JsonPayloadError::OverflowKnownLength { limit, .. } => too_large(*limit),
            JsonPayloadError::Deserialize(cause) => {
                // It repeats names out of the body, which may be of any length.
                let cause = plain_line(&cause.to_string(), MAX_CAUSE_CHARS);
                Self::new(ErrorKind::Invalid, format!("the body can't be understood: {cause}"))
            }
            JsonPayloadError::Payload(error) => Self::payload(error),
            other => Self::new(ErrorKind::Invalid, format!("the body can't be read: {other}")),
        }
    }

    /// The refusal of a body that didn't come whole. A sender deletes a result that is refused as invalid, so only what is wrong with
    /// the bytes themselves is.
    pub(crate) fn payload(error: &PayloadError) -> Self {
        match error {
            PayloadError::Io(error) if error.kind() == io::ErrorKind::QuotaExceeded => {
                Self::new(ErrorKind::TooManyRequests, error.to_string()).retry_after(RETRY_AFTER)
            }
            // It came too slowly, or the connection broke: the same may go well next time.
            PayloadError::Io(_) | PayloadError::Incomplete(_) => {
                Self::new(ErrorKind::Unavailable, format!("the body can't be read: {error}"))
            }
            other => Self::new(ErrorKind::Invalid, format!("the body can't be read: {other}")),
        }
    }
}

fn too_large(limit: usize) -> HttpError {
    HttpError::new(ErrorKind::TooLarge, format!("the body is larger than {limit} bytes"))
}

impl fmt::Display for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl ResponseError for HttpError {
    fn status_code(&self) -> StatusCode {
        let status = self.error.kind.status();
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    fn error_response(&self) -> HttpResponse {
        let mut answer = HttpResponseBuilder::new(self.status_code());
        if let Some(seconds) = self.retry_seconds() {
            answer.insert_header((header::RETRY_AFTER, seconds));
        }
        if let Some(bytes) = self.blob_bytes {
            answer.insert_header((header::CONTENT_RANGE, format!("bytes */{bytes}")));
        }
        answer.json(&self.error)
    }
}

impl From<ApiError> for HttpError {
    fn from(error: ApiError) -> Self {
        Self { error, blob_bytes: None, retry_after: None }
    }
}

impl From<CheckError> for HttpError {
    fn from(error: CheckError) -> Self {
        match error {
            CheckError::Refused(error) => error.into(),
            CheckError::Store(error) => error.into(),
            CheckError::Lost(error) => Self::fault(&error),
        }
    }
}

/// The answer for an upload's error; `None` if it is the server's fault.
fn upload_api_error(error: &UploadError) -> Option<ApiError> {
    let kind = match error {
        UploadError::WrongOffset { held, .. } => {
            let mut wrong = ApiError::new(ErrorKind::WrongOffset, error.to_string());
            wrong.offset = Some(*held);
            return Some(wrong);
        }
        UploadError::TooLarge { .. } => ErrorKind::TooLarge,
        UploadError::DigestMismatch { .. } => ErrorKind::DigestMismatch,
        UploadError::Undecodable(_) => ErrorKind::Invalid,
        UploadError::TakenOver(_) | UploadError::NotComplete { .. } | UploadError::Reported(_) => {
            ErrorKind::Conflict
        }
        UploadError::Full => ErrorKind::StorageFull,
        _ => return None,
    };
    Some(ApiError::new(kind, error.to_string()))
}

impl From<UploadError> for HttpError {
    fn from(error: UploadError) -> Self {
        if let UploadError::Store(error) = error {
            return error.into();
        }
        upload_api_error(&error).map_or_else(|| Self::fault(&error), Self::from)
    }
}

impl From<BlobError> for HttpError {
    fn from(error: BlobError) -> Self {
        let kind = match &error {
            BlobError::Missing(_) => ErrorKind::NotFound,
            BlobError::Unverified { .. } => ErrorKind::DigestMismatch,
            BlobError::Range { bytes, .. } => return Self::range(*bytes),
            BlobError::Full => ErrorKind::StorageFull,
            BlobError::Store(_) => {
                tracing::error!(error = &error as &dyn std::error::Error, "a request failed");
                let message = "the server's blob store fails; its log says why";
                return Self::new(ErrorKind::Unavailable, message);
            }
            _ => return Self::fault(&error),
        };
        Self::new(kind, error.to_string())
    }
}

impl From<PublishError> for HttpError {
    fn from(error: PublishError) -> Self {
        match error {
            PublishError::Refused(error) => error.into(),
            PublishError::Store(error) => error.into(),
            PublishError::Upload(error) => error.into(),
        }
    }
}

/// A blocking task that was cancelled or panicked.
impl From<actix_web::error::BlockingError> for HttpError {
    fn from(error: actix_web::error::BlockingError) -> Self {
        Self::fault(&error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_protocol::api::NoteRequest;

    #[test]
    fn a_refusal_of_a_body_does_not_repeat_the_body() {
        let body = format!("{{\"a\\u001b{}\":1}}", "x".repeat(1 << 20));
        let cause = serde_json::from_str::<NoteRequest>(&body).unwrap_err();
        let HttpError { error, .. } = HttpError::json(&JsonPayloadError::Deserialize(cause));
        assert!(error.message.starts_with("the body can't be understood: unknown field `ax"));
        assert!(error.message.len() < 1_000, "{} bytes", error.message.len());
    }
}
