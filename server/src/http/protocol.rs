//! The version of the protocol, checked in every request that says one and said in every answer, with what
//! the server understands beyond it.

use super::{AppState, auth::end_reading, body, error::HttpError, request_body};
use actix_web::{
    Error, ResponseError as _,
    body::{BoxBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    http::{
        StatusCode,
        header::{ALLOW, HeaderName, HeaderValue},
    },
    middleware::Next,
    web,
};
use sojourn_blobs::Staging;
use sojourn_protocol::{PROTOCOL_HEADER, PROTOCOL_VERSION, api::FEATURES_HEADER, error::ErrorKind};

/// The features of every server beyond the first version.
const FEATURES: &str = "awaiting-shards, decimal-seeds, delta-uploads, disk-reserves, engines, job-owners, made-checkpoints, several-classes, train-losses, unit-usage, unsupported-units, upload-progress, wrong-units";
/// The features of a server whose store takes uploads.
const WITH_STORE: &str = "awaiting-shards, decimal-seeds, delta-uploads, direct-uploads, disk-reserves, engines, job-owners, made-checkpoints, several-classes, train-losses, unit-usage, unsupported-units, upload-progress, wrong-units";

/// Middleware that refuses another version before anything else.
pub(crate) async fn check(
    mut request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let app = request.app_data::<web::Data<AppState>>();
    let staging = app.and_then(|app| app.staging.as_ref());
    let has_store = staging.is_some_and(Staging::takes_uploads);
    let said = request.headers().get(PROTOCOL_HEADER);
    let said = said.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let mut answer = match said.filter(|said| *said != PROTOCOL_VERSION.to_string()) {
        Some(said) => {
            let message =
                format!("protocol version `{said}` isn't the server's `{PROTOCOL_VERSION}`");
            let error = HttpError::new(ErrorKind::UnsupportedProtocol, message);
            // It isn't known who sends it.
            let has_body = body::drop_some(&mut request).await;
            let mut refusal = request.into_response(error.error_response());
            if has_body {
                end_reading(&mut refusal);
            }
            refusal
        }
        None => next.call(request).await?.map_into_boxed_body(),
    };
    // The framework's own refusal of a method has no body. Every refusal of this server has one.
    if answer.status() == StatusCode::METHOD_NOT_ALLOWED {
        let message = format!("this address doesn't take `{}`", answer.request().method());
        let error = HttpError::new(ErrorKind::Invalid, message);
        let allowed = answer.headers().get(ALLOW).cloned();
        let mut refusal = error.error_response();
        *refusal.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
        answer = answer.into_response(refusal);
        if let Some(allowed) = allowed {
            answer.headers_mut().insert(ALLOW, allowed);
        }
    }
    request_body::name_unknown_fields(&mut answer);
    let name = HeaderName::from_static(PROTOCOL_HEADER);
    answer.headers_mut().insert(name, HeaderValue::from(PROTOCOL_VERSION));
    let name = HeaderName::from_static(FEATURES_HEADER);
    let features = if has_store { WITH_STORE } else { FEATURES };
    answer.headers_mut().insert(name, HeaderValue::from_static(features));
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::{FEATURES, WITH_STORE};
    use sojourn_protocol::{
        api::{
            AWAITING_SHARDS, DECIMAL_SEEDS, DELTA_UPLOADS, DISK_RESERVES, ENGINES, JOB_OWNERS,
            PRODUCED_CHECKPOINTS, SEVERAL_CLASSES, TRAIN_LOSSES, UNIT_USAGE, UNSUPPORTED_UNITS,
            UPLOAD_PROGRESS, WRONG_UNITS,
        },
        direct::DIRECT_UPLOADS,
    };

    #[test]
    fn the_features_are_those_that_the_protocol_names() {
        assert_eq!(
            FEATURES,
            [
                AWAITING_SHARDS,
                DECIMAL_SEEDS,
                DELTA_UPLOADS,
                DISK_RESERVES,
                ENGINES,
                JOB_OWNERS,
                PRODUCED_CHECKPOINTS,
                SEVERAL_CLASSES,
                TRAIN_LOSSES,
                UNIT_USAGE,
                UNSUPPORTED_UNITS,
                UPLOAD_PROGRESS,
                WRONG_UNITS,
            ]
            .join(", ")
        );
        let mut with_store: Vec<&str> = FEATURES.split(", ").chain([DIRECT_UPLOADS]).collect();
        with_store.sort_unstable();
        assert_eq!(WITH_STORE, with_store.join(", "));
    }
}
