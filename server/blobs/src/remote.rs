//! The stores of S3, Google Cloud and Azure.

use crate::settings::StoreSettings;
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

pub(crate) type Built = (Arc<dyn ObjectStore>, Arc<dyn Signer>);

/// The store of a bucket or container, at a URL's path, and what signs its URLs.
pub(crate) fn open(
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
