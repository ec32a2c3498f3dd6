//! Opens a store by its URL, with its settings, and verifies that it can be used.

use crate::{
    error::BlobError,
    probe::{self, ProbeError},
    settings::StoreSettings,
    signed_urls,
    store::{BlobStore, Remote},
};
use object_store::{
    BackoffConfig, ClientConfigKey, ObjectStore, RetryConfig,
    aws::{AmazonS3Builder, AmazonS3ConfigKey},
    azure::{AzureConfigKey, MicrosoftAzureBuilder},
    gcp::{GoogleCloudStorageBuilder, GoogleConfigKey},
    path::Path as Key,
    prefix::PrefixStore,
    signer::Signer,
};
use reqwest::Url;
use std::{sync::Arc, time::Duration};

/// How long one request may take, including its bytes: a part over a slow link.
const REQUEST_TIMEOUT: &str = "120 seconds";

/// Why a store can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each variant's message says it")]
pub enum ConnectError {
    /// The URL names no store of a known kind.
    #[error(
        "`{0}` is no place for blobs: give s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX or \
         file:///FOLDER; keys and endpoints come from the environment"
    )]
    Url(String),
    #[error("the settings for `{url}` can't be used")]
    Settings { url: String, source: object_store::Error },
    #[error("the blob store `{url}` can't be used")]
    Probe { url: String, source: ProbeError },
    /// The folder can't be used.
    #[error(transparent)]
    Folder(BlobError),
}

impl BlobStore {
    /// Blobs in the store at a URL, once it was written, read and deleted in: an `s3://`, `gs://` or `az://`
    /// bucket with a prefix, or a `file://` folder that several processes may have open.
    ///
    /// # Errors
    /// [`ConnectError`], which says what is wrong.
    pub async fn connect(url: &str, settings: &StoreSettings) -> Result<Self, ConnectError> {
        let parsed = Url::parse(url).map_err(|_| ConnectError::Url(url.to_owned()))?;
        let plain = parsed.username().is_empty()
            && parsed.password().is_none()
            && parsed.query().is_none()
            && parsed.fragment().is_none();
        if !plain {
            // The URL may contain a secret.
            return Err(ConnectError::Url(format!("{}://...", parsed.scheme())));
        }
        let blobs = match (parsed.scheme(), parsed.host_str(), parsed.to_file_path()) {
            ("file", None, Ok(folder)) => {
                Self::open_shared(&folder).map_err(ConnectError::Folder)?
            }
            ("s3" | "gs" | "az", Some(bucket), _) => {
                let built = remote(parsed.scheme(), bucket, &parsed, settings);
                let fault = |source| ConnectError::Settings { url: url.to_owned(), source };
                let (store, signer) = built.map_err(fault)?;
                Self::over_remote(store, Remote { signer, binds: false })
            }
            _ => return Err(ConnectError::Url(url.to_owned())),
        };
        let fault = |source| ConnectError::Probe { url: url.to_owned(), source };
        probe::run(&blobs).await.map_err(fault)?;
        Ok(if parsed.scheme() == "s3" { signed_urls::with_probe(blobs).await } else { blobs })
    }
}

type Built = (Arc<dyn ObjectStore>, Arc<dyn Signer>);

fn remote(
    scheme: &str,
    bucket: &str,
    url: &Url,
    settings: &StoreSettings,
) -> object_store::Result<Built> {
    let prefix = Key::from_url_path(url.path())?;
    let retry = retry(settings.patience());
    let timeout = ClientConfigKey::Timeout;
    Ok(match scheme {
        "gs" => {
            let builder = GoogleCloudStorageBuilder::new()
                .with_config(GoogleConfigKey::Client(timeout), REQUEST_TIMEOUT);
            let builder = settings.of().fold(builder, |built, (key, value)| {
                GoogleCloudStorageBuilder::with_config(built, key, value)
            });
            within(builder.with_bucket_name(bucket).with_retry(retry).build()?, prefix)
        }
        "az" => {
            let builder = MicrosoftAzureBuilder::new()
                .with_config(AzureConfigKey::Client(timeout), REQUEST_TIMEOUT);
            let builder = settings.of().fold(builder, |built, (key, value)| {
                MicrosoftAzureBuilder::with_config(built, key, value)
            });
            within(builder.with_container_name(bucket).with_retry(retry).build()?, prefix)
        }
        _ => {
            let builder = AmazonS3Builder::new()
                .with_config(AmazonS3ConfigKey::Client(timeout), REQUEST_TIMEOUT);
            let builder = settings.of().fold(builder, |built, (key, value)| {
                AmazonS3Builder::with_config(built, key, value)
            });
            within(builder.with_bucket_name(bucket).with_retry(retry).build()?, prefix)
        }
    })
}

/// A folder of a store, as a store and as a signer of URLs.
fn within<T: ObjectStore + Signer + Clone>(store: T, prefix: Key) -> Built {
    let store = PrefixStore::new(store, prefix);
    (Arc::new(store.clone()), Arc::new(store))
}

/// Throttled and failed requests are retried, with exponential backoff.
fn retry(patience: Duration) -> RetryConfig {
    let backoff = BackoffConfig {
        init_backoff: Duration::from_millis(100),
        max_backoff: Duration::from_secs(10),
        base: 2.0,
    };
    RetryConfig { backoff, max_retries: 20, retry_timeout: patience }
}
