//! Blobs to a server: in pieces, resumed where the server's part ends, compressed where that helps.

use crate::{
    client::{Call, HttpClient},
    download::MAX_FRUITLESS_ATTEMPTS,
    error::{CallError, TransferError},
    retry::{Backoff, RetryPolicy},
};
use bytes::Bytes;
use reqwest::{
    Method, RequestBuilder,
    header::{CONTENT_ENCODING, CONTENT_TYPE},
};
use sojourn_api::endpoints;
use sojourn_protocol::{
    api::{BYTES_HEADER, UploadState},
    digest::{BlobRef, Digest},
    error::ErrorKind,
};
use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::Path,
    time::Duration,
};

/// Bytes of one request, which is what a broken connection costs at most.
const PIECE_BYTES: u64 = 4 << 20;
/// The ceilings of the pauses between attempts that got no further.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const MAX_PAUSE: Duration = Duration::from_secs(8);
const ZSTD_LEVEL: i32 = 3;

/// A piece of a blob.
struct PutPiece {
    path: String,
    blob: BlobRef,
    bytes: Bytes,
    is_packed: bool,
}

impl PutPiece {
    fn new(blob: BlobRef, offset: u64, bytes: Vec<u8>) -> Self {
        let path = format!("{}?offset={offset}", endpoints::PutBlob::path(blob.sha256));
        // Numbers with few digits shrink to a fraction, noise doesn't: the piece itself decides.
        let packed = zstd::bulk::compress(&bytes, ZSTD_LEVEL)
            .ok()
            .filter(|packed| packed.len() < bytes.len() / 10 * 9);
        let is_packed = packed.is_some();
        Self { path, blob, bytes: packed.unwrap_or(bytes).into(), is_packed }
    }
}

impl Call for PutPiece {
    type Answer = UploadState;

    fn method(&self) -> Method {
        Method::PUT
    }

    fn path(&self) -> &str {
        &self.path
    }

    fn complete(&self, request: RequestBuilder) -> RequestBuilder {
        let request = request.header(CONTENT_TYPE, "application/octet-stream");
        let request = request.header(BYTES_HEADER, self.blob.bytes).body(self.bytes.clone());
        if self.is_packed { request.header(CONTENT_ENCODING, "zstd") } else { request }
    }
}

impl HttpClient {
    /// Uploads the file of a blob from where the server's part ends; `sent` is told the new offset after each piece.
    ///
    /// Only the answer to a piece ends it: that has put the blob into the store. Where the server merely holds all
    /// bytes, a last piece without any is sent.
    ///
    /// # Errors
    /// Where the file can't be read, the server refuses, or several attempts get no further.
    pub async fn upload(
        &self,
        blob: BlobRef,
        path: &Path,
        sent: &mut dyn FnMut(u64),
    ) -> Result<(), TransferError> {
        let name = blob.sha256;
        let in_file = |source| TransferError::File { path: path.to_owned(), source };
        let mut file = File::open(path).map_err(in_file)?;
        let mut offset = self.uploaded(name, RetryPolicy::WhileAway).await?;
        let mut backoff = Backoff::from(FIRST_PAUSE, MAX_PAUSE);
        let (mut fruitless, mut mismatches) = (0, 0);
        loop {
            let bytes = piece(&mut file, offset).map_err(in_file)?;
            let before = offset;
            let put = PutPiece::new(blob, before, bytes);
            offset = match self.call(put, RetryPolicy::WhileBusy).await {
                Ok(UploadState { offset, complete: true }) => {
                    sent(offset);
                    return Ok(());
                }
                Ok(UploadState { offset, complete: false }) => offset,
                Err(error) => {
                    // One mismatch may come from what an earlier upload had left there.
                    mismatches += u32::from(error.kind() == Some(ErrorKind::DigestMismatch));
                    let is_last = fruitless + 1 >= MAX_FRUITLESS_ATTEMPTS || mismatches > 1;
                    if is_last || !is_resumable(&error) {
                        return Err(error.into());
                    }
                    // The other upload of the blob gets as far as it can meanwhile.
                    if error.is_away() || is_taken_over(&error) {
                        tokio::time::sleep(backoff.next(error.retry_after())).await;
                    }
                    match self.uploaded(name, RetryPolicy::WhileBusy).await {
                        // Still away: the same piece fails again and is counted.
                        Err(error) if error.is_away() => before,
                        offset => offset?,
                    }
                }
            };
            sent(offset);
            if offset > before {
                fruitless = 0;
                backoff.reset();
            } else {
                fruitless += 1;
            }
            if fruitless == MAX_FRUITLESS_ATTEMPTS {
                return Err(TransferError::Damaged { blob: name });
            }
        }
    }

    /// How many bytes of an upload the server holds.
    async fn uploaded(&self, name: Digest, retries: RetryPolicy) -> Result<u64, CallError> {
        match self.call(endpoints::UploadState::request(name), retries).await {
            Ok(state) => Ok(state.offset),
            Err(error) if error.kind() == Some(ErrorKind::NotFound) => Ok(0),
            Err(error) => Err(error),
        }
    }
}

/// May an upload go on from another offset, or later?
fn is_resumable(error: &CallError) -> bool {
    matches!(error.kind(), Some(ErrorKind::WrongOffset | ErrorKind::DigestMismatch))
        || is_taken_over(error)
        || error.is_away()
}

/// Is somebody else sending the same blob?
fn is_taken_over(error: &CallError) -> bool {
    error.kind() == Some(ErrorKind::Conflict)
}

/// The next bytes of a file to send.
fn piece(file: &mut File, offset: u64) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    file.take(PIECE_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}
