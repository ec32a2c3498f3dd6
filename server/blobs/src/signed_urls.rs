//! Signed URLs, with which hosts reach the store without the server: each for one request, valid for minutes.

use crate::{
    error::BlobError,
    objects::{blob_key, size_of},
    probe,
    staging::{Staging, whole},
    store::{BlobStore, Remote},
};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use object_store::{
    ObjectStoreExt as _,
    path::Path as Key,
    signer::{HeaderName, HeaderValue, Method, SignedUrlOptions},
};
use reqwest::Url;
use sojourn_http::transport;
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::LeaseId,
};
use std::time::Duration;

/// The header with which a store accepts only bytes of a digest.
const CHECKSUM_HEADER: HeaderName = HeaderName::from_static("x-amz-checksum-sha256");
/// The most bytes of one request: S3's own limit.
const MAX_PUT_BYTES: u64 = 5 << 30;
/// How long the probe of a URL may take.
const PROBE_TIMEOUT: Duration = Duration::from_secs(30);

/// A URL that takes one object, with the headers that must be sent with it.
#[derive(Clone, PartialEq, Eq)]
pub struct SignedPut {
    /// The URL. Anybody who has it may use it.
    pub url: Url,
    /// Names and values.
    pub headers: Vec<(String, String)>,
}

impl std::fmt::Debug for SignedPut {
    /// Shows the path alone: the query is the signature.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SignedPut").field("path", &self.url.path()).finish_non_exhaustive()
    }
}

impl BlobStore {
    /// A URL that gives this blob, or ranges of it, for so long; `None` where the store has no such URLs. Says
    /// nothing of whether the blob is there, and in one piece ([`BlobStore::plain_size`]).
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn read_url(&self, blob: Digest, term: Duration) -> Result<Option<Url>, BlobError> {
        let Some(Remote { signer, .. }) = self.remote() else { return Ok(None) };
        let url = signer.signed_url(Method::GET, &blob_key(blob), term).await;
        url.map(Some).map_err(BlobError::store)
    }
}

impl Staging {
    /// Does the store take uploads by URL, each for its own bytes alone?
    #[must_use]
    pub fn takes_uploads(&self) -> bool {
        self.blobs().remote().is_some_and(|remote| remote.binds)
    }

    /// A URL that takes a lease's upload, or a part of one, and no other bytes, for so long; `None` where the
    /// store can't see to that, or it is too large for one request.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn upload_url(
        &self,
        lease: LeaseId,
        blob: BlobRef,
        term: Duration,
    ) -> Result<Option<SignedPut>, BlobError> {
        let key = whole(lease, blob.sha256);
        match self.blobs().remote() {
            Some(remote) if remote.binds && blob.bytes <= MAX_PUT_BYTES => {
                signed(remote, &key, blob.sha256, term).await.map(Some).map_err(BlobError::store)
            }
            _ => Ok(None),
        }
    }
}

async fn signed(
    Remote { signer, .. }: &Remote,
    key: &Key,
    sha256: Digest,
    term: Duration,
) -> object_store::Result<SignedPut> {
    let checksum = BASE64_STANDARD.encode(sha256.0);
    let mut options = SignedUrlOptions::new();
    if let Ok(value) = HeaderValue::from_str(&checksum) {
        options = options.with_signed_header(CHECKSUM_HEADER, value);
    }
    let url = signer.signed_url_opts(Method::PUT, key, term, &options).await?;
    Ok(SignedPut { url, headers: vec![(CHECKSUM_HEADER.as_str().to_owned(), checksum)] })
}

/// Why uploads by URL can't be used.
#[derive(Debug, thiserror::Error)]
enum UploadProbeError {
    #[error(transparent)]
    Store(#[from] object_store::Error),
    #[error("the store doesn't say what it took")]
    Unseen(#[source] BlobError),
    #[error("the store can't be reached by its URLs")]
    Unreached(#[from] reqwest::Error),
    #[error("the store answers {0} to a right upload")]
    Refused(u16),
    #[error("the store takes other bytes than the URL was signed for")]
    Unbound,
}

/// Probes whether the store refuses other bytes than a URL was signed for: not every S3 store does. Where it doesn't,
/// uploads go through the server.
pub(crate) async fn with_probe(mut blobs: BlobStore) -> BlobStore {
    let Some(remote) = blobs.remote().cloned() else { return blobs };
    let key = probe::key();
    let tried = probe_upload(&blobs, &remote, &key).await;
    // The probe may have left an object.
    let _ = blobs.store().delete(&key).await;
    match tried {
        Ok(()) => blobs.set_remote(Remote { binds: true, ..remote }),
        Err(error) => {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "uploads go through the server: the store's URLs don't do");
        }
    }
    blobs
}

async fn probe_upload(
    blobs: &BlobStore,
    remote: &Remote,
    key: &Key,
) -> Result<(), UploadProbeError> {
    let right: &[u8] = b"what the URL is signed for";
    let wrong: &[u8] = b"what the URL isn't meant for";
    let put = signed(remote, key, Digest::of(right), PROBE_TIMEOUT).await?;
    let http = transport::connect(&put.url, None, |builder| builder.timeout(PROBE_TIMEOUT))?;
    let send = |bytes: &'static [u8]| {
        let request = http.put(put.url.clone()).body(bytes);
        let headers = put.headers.iter();
        headers.fold(request, |request, (name, value)| request.header(name, value)).send()
    };
    let unbound = send(wrong).await.map_err(reqwest::Error::without_url)?;
    // Some stores refuse the bytes and keep them all the same.
    let kept = size_of(blobs.store().head(key).await).map_err(UploadProbeError::Unseen)?;
    if unbound.status().is_success() || kept.is_some() {
        return Err(UploadProbeError::Unbound);
    }
    let answer = send(right).await.map_err(reqwest::Error::without_url)?;
    if answer.status().is_success() {
        Ok(())
    } else {
        Err(UploadProbeError::Refused(answer.status().as_u16()))
    }
}
