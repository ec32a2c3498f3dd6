//! Sends a finished checkpoint to the server, from any offset on. One attempt per call.

use super::READ;
use crate::api::{Api, ApiFailure};
use bytes::Bytes;
use futures::stream;
use reqwest::Body;
use sojourn_protocol::{api::UploadState, digest::BlobRef, ids::LeaseId};
use std::{
    io::{self, Read, Seek, SeekFrom},
    path::Path,
    time::Duration,
};
use tokio::{fs::File, io::AsyncReadExt, sync::watch};

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
    let source = path.to_owned();
    let opened = tokio::task::spawn_blocking(move || open(&source, blob.bytes, offset));
    let (file, first) = opened.await.map_err(io::Error::other)??;
    // Every chunk that the connection takes is a step; the last wait is for the answer.
    let (steps, mut moved) = watch::channel(());
    let rest = blob.bytes.saturating_sub(offset);
    let begin = (File::from_std(file), Some(first), rest, steps);
    let chunks = stream::try_unfold(begin, |(mut file, first, rest, steps)| async move {
        if rest == 0 {
            return Ok(None);
        }
        let chunk = match first {
            Some(first) => first,
            None => {
                let mut chunk = vec![0; wanted(rest)];
                let read = file.read(&mut chunk).await?;
                chunk.truncate(read);
                chunk
            }
        };
        if chunk.is_empty() {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
        }
        steps.send_replace(());
        let rest = rest.saturating_sub(chunk.len() as u64);
        Ok(Some((Bytes::from(chunk), (file, None, rest, steps))))
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

/// The file at `offset` and its first chunk, in one trip to the threads that may block: most checkpoints of
/// small models are no longer than that. Blocks.
fn open(path: &Path, bytes: u64, offset: u64) -> io::Result<(std::fs::File, Vec<u8>)> {
    let mut file = std::fs::File::open(path)?;
    if file.metadata()?.len() != bytes {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    file.seek(SeekFrom::Start(offset))?;
    let mut first = vec![0; wanted(bytes.saturating_sub(offset))];
    file.read_exact(&mut first)?;
    Ok((file, first))
}

/// How much of `rest` is read at once.
fn wanted(rest: u64) -> usize {
    usize::try_from(rest).unwrap_or(READ).min(READ)
}
