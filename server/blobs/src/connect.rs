//! Opens a store by its URL, with its settings, and verifies that it can be used.

use crate::{
    error::BlobError,
    probe::{self, ProbeError},
    remote,
    settings::StoreSettings,
    signed_urls,
    store::{BlobStore, Remote},
};
use reqwest::Url;

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
                let built = remote::open(parsed.scheme(), bucket, &parsed, settings);
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
