//! Sends a finished checkpoint to the server, from any offset on. One attempt per call.

use super::READ;
use crate::api::{Api, ApiFailure};
use bytes::Bytes;
use futures::stream;
use reqwest::Body;
use sojourn_protocol::{api::UploadState, digest::BlobRef, ids::LeaseId};
use std::{io, path::Path, time::Duration};
use tokio::{
    fs::File,
    io::{AsyncReadExt, AsyncSeekExt, SeekFrom},
    sync::watch,
};

/// Why an upload broke off.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UploadError {
    /// The server, or the way to it.
    #[error(transparent)]
    Server(#[from] ApiFailure),
    /// The result's file can't be read.
    #[error("the finished checkpoint can't be read")]
    Disk(#[from] io::Error),
}

/// Sends `blob`, which lies in `path`, from `offset` on. Gives up where nothing moves for `stall`.
pub(crate) async fn upload(
    api: &Api,
    lease: LeaseId,
    blob: BlobRef,
    path: &Path,
    offset: u64,
    stall: Duration,
) -> Result<UploadState, UploadError> {
    let mut file = File::open(path).await?;
    if file.metadata().await?.len() != blob.bytes {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    }
    file.seek(SeekFrom::Start(offset)).await?;
    let rest = blob.bytes.saturating_sub(offset);
    // Every chunk that the connection takes is a step; the last wait is for the answer.
    let (steps, mut moved) = watch::channel(());
    let chunks = stream::try_unfold((file, rest, steps), |(mut file, rest, steps)| async move {
        if rest == 0 {
            return Ok(None);
        }
        let wanted = usize::try_from(rest).unwrap_or(READ).min(READ);
        let mut chunk = vec![0; wanted];
        let read = file.read(&mut chunk).await?;
        if read == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
        }
        chunk.truncate(read);
        steps.send_replace(());
        let rest = rest.saturating_sub(read as u64);
        Ok(Some((Bytes::from(chunk), (file, rest, steps))))
    });
    let sent = api.upload(lease, blob, offset, Body::wrap_stream(chunks));
    let stalled = async {
        loop {
            match tokio::time::timeout(stall, moved.changed()).await {
                Ok(Ok(())) => {}
                // All is sent: the answer has as long as any step.
                Ok(Err(_)) => return tokio::time::sleep(stall).await,
                Err(_) => return,
            }
        }
    };
    tokio::select! {
        answer = sent => Ok(answer?),
        () = stalled => Err(ApiFailure::silent(stall).into()),
    }
}
