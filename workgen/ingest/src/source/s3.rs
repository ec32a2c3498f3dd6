//! `s3://bucket/key`, through `object_store`, which resumes cut downloads.
//!
//! Settings and credentials are AWS's environment variables; `AWS_ENDPOINT_URL` leads to another
//! service of the kind, and only that may be without TLS.

use super::spool::{CopyError, TemporaryCopy};
use crate::{error::FetchError, progress::Progress};
use futures::TryStreamExt;
use object_store::{
    ObjectStoreExt, RetryConfig,
    aws::{AmazonS3Builder, AmazonS3ConfigKey},
    path::Path,
};
use percent_encoding::percent_decode_str;
use reqwest::Url;
use sojourn_protocol::error::root_cause;
use std::time::Duration;

const RETRIES: usize = 3;
const PATIENCE: Duration = Duration::from_secs(30);

/// Downloads `url`; `variables` are those of the environment.
pub(super) async fn fetch(
    url: &Url,
    variables: impl Iterator<Item = (String, String)>,
    copy: &mut TemporaryCopy,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<(), CopyError> {
    let bucket = url.host_str().unwrap_or_default();
    // What can't stand in a URL is written there as `%20`; S3 knows the key without that.
    let key = percent_decode_str(url.path().trim_start_matches('/')).decode_utf8_lossy();
    if key.is_empty() || key.ends_with('/') {
        let reason = "it names no object: s3://BUCKET/KEY is wanted".to_owned();
        return Err(FetchError::BadUrl(reason).into());
    }
    let path = Path::parse(key).map_err(|error| FetchError::BadUrl(error.to_string()))?;
    let settings = Settings::of(variables);
    let failed = |error: object_store::Error| settings.told(&error);
    let store = settings.builder(bucket).build().map_err(failed)?;
    let answer = store.get(&path).await.map_err(failed)?;
    copy.expect(Some(answer.meta.size));
    let mut bytes = answer.into_stream();
    while let Some(part) = bytes.try_next().await.map_err(failed)? {
        copy.push(&part, progress)?;
    }
    Ok(())
}

/// Settings from the environment.
struct Settings {
    known: Vec<(AmazonS3ConfigKey, String)>,
}

impl Settings {
    fn of(variables: impl Iterator<Item = (String, String)>) -> Self {
        let known = variables.filter(|(name, value)| name.starts_with("AWS_") && !value.is_empty());
        let known = known.filter_map(|(name, value)| {
            let key = name.to_ascii_lowercase().parse::<AmazonS3ConfigKey>().ok()?;
            Some((key, value))
        });
        Self { known: known.collect() }
    }

    fn has(&self, wanted: &[AmazonS3ConfigKey]) -> bool {
        self.known.iter().any(|(key, _)| wanted.contains(key))
    }

    /// Does the environment say who is asking? Else only the machine itself may, where it is AWS's.
    fn has_credentials(&self) -> bool {
        self.has(&[
            AmazonS3ConfigKey::AccessKeyId,
            AmazonS3ConfigKey::SkipSignature,
            AmazonS3ConfigKey::WebIdentityTokenFile,
            AmazonS3ConfigKey::ContainerCredentialsRelativeUri,
            AmazonS3ConfigKey::ContainerCredentialsFullUri,
        ])
    }

    fn builder(&self, bucket: &str) -> AmazonS3Builder {
        let endpoint = [AmazonS3ConfigKey::Endpoint, AmazonS3ConfigKey::S3Endpoint];
        let is_plain = self
            .known
            .iter()
            .any(|(key, value)| endpoint.contains(key) && value.starts_with("http://"));
        let retry = RetryConfig {
            max_retries: if self.has_credentials() { RETRIES } else { 0 },
            retry_timeout: PATIENCE,
            ..RetryConfig::default()
        };
        let builder = AmazonS3Builder::new().with_bucket_name(bucket).with_retry(retry);
        let settings = self.known.iter();
        let builder = settings
            .fold(builder, |builder, (key, value)| builder.with_config(*key, value.clone()));
        if is_plain { builder.with_allow_http(true) } else { builder }
    }

    /// An error of the store as this package's error.
    fn told(&self, error: &object_store::Error) -> FetchError {
        match error {
            object_store::Error::NotFound { .. } => {
                FetchError::Store("there is no such object, or no such bucket".to_owned())
            }
            object_store::Error::PermissionDenied { .. }
            | object_store::Error::Unauthenticated { .. } => {
                FetchError::Store("these credentials may not read it".to_owned())
            }
            error => {
                let reason = root_cause(error);
                if self.has_credentials() {
                    FetchError::Store(reason)
                } else {
                    FetchError::NoCredentials(reason)
                }
            }
        }
    }
}
