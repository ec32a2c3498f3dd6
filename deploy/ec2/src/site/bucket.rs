//! Where the server's machine fetches its programs: addresses of the file, or the archives of `make dist`, which are copied
//! into a bucket of the owner's and can be fetched from there for an hour.

use super::{SiteError, account::Account, boot::Packages};
use crate::settings::{Package, ServerSettingsError, bucket_name};
use aws_sdk_ec2::config::ProvideCredentials as _;
use object_store::{
    ObjectStore as _, ObjectStoreExt as _, StaticCredentialProvider, WriteMultipart,
    aws::{AmazonS3, AmazonS3Builder, AwsCredential},
    path::Path as Key,
    signer::Signer as _,
};
use reqwest::Method;
use sojourn_protocol::{digest::Hasher, error::error_chain};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::io::AsyncReadExt as _;

/// How long the archives can be fetched: the machine does it within minutes.
const TERM: Duration = Duration::from_secs(3600);
/// Bytes of a part of an archive that is copied.
const PART: usize = 8 << 20;
/// Parts that are on their way at a time.
const UPLOADS: usize = 4;

/// The archives, where the machine can fetch them. What is in a folder is copied into the bucket before.
pub(super) async fn packages(account: &Account) -> Result<Packages, SiteError> {
    let server = &account.server;
    if let (Some(release), Some(programs)) = (&server.release, &server.programs) {
        return Ok(Packages { release: release.clone(), programs: programs.clone() });
    }
    let (folder, store) = copied(account).await?;
    let release = copy(account, &store, &release_in(&folder)?).await?;
    let programs = copy(account, &store, &folder.join("programs.tar")).await?;
    Ok(Packages { release, programs })
}

/// Are the archives there, as far as this machine knows?
pub(super) fn check(account: &Account) -> Result<(), SiteError> {
    let server = &account.server;
    let wanted = |key| {
        ServerSettingsError {
        key,
        what: "is missing: either `release` and `programs` say where the programs are, or `dist` and `bucket` \
               from where and through which bucket they are copied"
            .to_owned(),
    }
    };
    match (&server.release, &server.programs, &server.dist, &server.bucket) {
        (Some(_), Some(_), _, _) => Ok(()),
        (Some(_), None, ..) => Err(wanted("programs").into()),
        (None, Some(_), ..) | (None, None, None, None) => Err(wanted("release").into()),
        (None, None, None, Some(_)) => Err(wanted("dist").into()),
        (None, None, Some(_), None) => Err(wanted("bucket").into()),
        (None, None, Some(folder), Some(_)) => {
            release_in(folder)?;
            let programs = folder.join("programs.tar");
            let unread = |source| SiteError::Archive { path: programs.clone(), source };
            std::fs::metadata(&programs).map(drop).map_err(unread)
        }
    }
}

/// Whether a fleet may have archives in a bucket, and removes them.
pub(super) async fn remove(account: &Account) -> Result<(), SiteError> {
    if account.server.bucket.is_none() {
        return Ok(());
    }
    let (_, store) = copied(account).await?;
    for key in keys(account, &store).await? {
        store.delete(&key).await?;
    }
    Ok(())
}

/// The keys in the fleet's folder of the bucket; none where the file names no bucket.
pub(super) async fn left(account: &Account) -> Result<Vec<String>, SiteError> {
    if account.server.bucket.is_none() {
        return Ok(vec![]);
    }
    let (_, store) = copied(account).await?;
    Ok(keys(account, &store).await?.iter().map(ToString::to_string).collect())
}

async fn keys(account: &Account, store: &AmazonS3) -> Result<Vec<Key>, SiteError> {
    let listed = store.list_with_delimiter(Some(&folder_of(account))).await;
    match listed {
        Ok(listed) => Ok(listed.objects.into_iter().map(|object| object.location).collect()),
        // The bucket itself is gone.
        Err(error) if is_missing(&error) => Ok(vec![]),
        Err(error) => Err(error.into()),
    }
}

/// Is there no such bucket? That of a listing is a general error to the library, with the answer in its text.
fn is_missing(error: &object_store::Error) -> bool {
    matches!(error, object_store::Error::NotFound { .. })
        || error_chain(error).contains("NoSuchBucket")
}

/// Is the bucket there, where one is needed?
pub(super) async fn reach(account: &Account) -> Result<(), SiteError> {
    let server = &account.server;
    let (None, Some(bucket)) = (&server.release, &server.bucket) else { return Ok(()) };
    let (_, store) = copied(account).await?;
    match store.list_with_delimiter(Some(&folder_of(account))).await {
        Err(error) if is_missing(&error) => Err(SiteError::NoBucket { bucket: bucket.clone() }),
        listed => Ok(listed.map(drop)?),
    }
}

/// The fleet's folder in the bucket: nothing else of it is touched.
fn folder_of(account: &Account) -> Key {
    Key::from(format!("sojourn-{}", account.settings.fleet))
}

/// The folder of the archives and the bucket.
async fn copied(account: &Account) -> Result<(PathBuf, AmazonS3), SiteError> {
    let server = &account.server;
    let bucket = server.bucket.as_deref().and_then(bucket_name).unwrap_or_default();
    let provider = account.config.credentials_provider().ok_or(SiteError::NoCredentials)?;
    let given = provider.provide_credentials().await.map_err(|_| SiteError::NoCredentials)?;
    let credentials = AwsCredential {
        key_id: given.access_key_id().to_owned(),
        secret_key: given.secret_access_key().to_owned(),
        token: given.session_token().map(str::to_owned),
    };
    let mut builder = AmazonS3Builder::new()
        .with_bucket_name(bucket)
        .with_region(&account.name)
        .with_credentials(Arc::new(StaticCredentialProvider::new(credentials)));
    if let Some(endpoint) = &account.settings.endpoint {
        builder = builder.with_endpoint(endpoint).with_allow_http(true);
    }
    Ok((server.dist.clone().unwrap_or_default(), builder.build()?))
}

/// The archive with the server's programs.
fn release_in(folder: &Path) -> Result<PathBuf, SiteError> {
    let unread = |source| SiteError::Archive { path: folder.to_owned(), source };
    let mut found = vec![];
    for entry in std::fs::read_dir(folder).map_err(unread)? {
        let name = entry.map_err(unread)?.file_name().to_string_lossy().into_owned();
        let is_small = name.starts_with("sojourn-") && !name.starts_with("sojourn-trainer-");
        if is_small && name.ends_with(".tar.gz") {
            found.push(folder.join(name));
        }
    }
    match (found.pop(), found.is_empty()) {
        (Some(one), true) => Ok(one),
        _ => Err(SiteError::Dist { folder: folder.to_owned() }),
    }
}

/// Copies an archive into the bucket; its address there, and its SHA-256.
async fn copy(account: &Account, store: &AmazonS3, file: &Path) -> Result<Package, SiteError> {
    let unread = |source| SiteError::Archive { path: file.to_owned(), source };
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let key = folder_of(account).join(name);
    let mut digest = Hasher::default();
    let mut upload = WriteMultipart::new_with_chunk_size(store.put_multipart(&key).await?, PART);
    let mut source = tokio::fs::File::open(file).await.map_err(unread)?;
    let mut part = vec![0; PART];
    loop {
        let count = source.read(&mut part).await.map_err(unread)?;
        let Some(bytes) = part.get(..count).filter(|bytes| !bytes.is_empty()) else { break };
        digest.update(bytes);
        upload.wait_for_capacity(UPLOADS).await?;
        upload.write(bytes);
    }
    upload.finish().await?;
    let url = store.signed_url(Method::GET, &key, TERM).await?;
    Ok(Package { url: url.into(), sha256: digest.finish().to_string() })
}
