//! Blobs up and down: in pieces, resumable, compressed where that helps, checked at the end.

use super::{ApiClient, ApiFailure, BYTES};
use reqwest::{Method, RequestBuilder, StatusCode, header};
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

/// Bytes of one request; what a broken connection costs at most.
const PIECE: u64 = 4 << 20;
/// Attempts in a row that get a transfer no further.
const ATTEMPTS: u32 = 6;
const PAUSE: Duration = Duration::from_millis(250);
const ZSTD_LEVEL: i32 = 3;

impl ApiClient {
    /// Uploads the file of a blob from where the server's part ends; `sent` is told the new offset
    /// after each piece.
    ///
    /// Done is what the answer to a piece says: only that has put the blob into the store. Where the
    /// server merely holds all bytes, a last piece without any is sent.
    pub(crate) async fn upload(
        &self,
        blob: BlobRef,
        path: &Path,
        sent: &mut dyn FnMut(u64),
    ) -> Result<(), ApiFailure> {
        let name = blob.sha256;
        let in_file = |source| ApiFailure::File { path: path.to_owned(), source };
        let mut file = File::open(path).map_err(in_file)?;
        let mut offset = self.uploaded(name).await?;
        let mut fruitless = 0;
        let mut mismatches = 0;
        loop {
            let bytes = piece(&mut file, offset).map_err(in_file)?;
            let before = offset;
            offset = match self.put(blob, before, &bytes).await {
                Ok(UploadState { offset, complete: true }) => {
                    sent(offset);
                    return Ok(());
                }
                Ok(UploadState { offset, complete: false }) => offset,
                Err(failure) if failure.kind() == Some(ErrorKind::DigestMismatch) => {
                    // Once may be the fault of what an earlier upload had left there.
                    mismatches += 1;
                    if mismatches > 1 {
                        return Err(failure);
                    }
                    self.take_up(name, before, failure, fruitless).await?
                }
                Err(failure) => self.take_up(name, before, failure, fruitless).await?,
            };
            sent(offset);
            fruitless = if offset > before { 0 } else { fruitless + 1 };
            if fruitless == ATTEMPTS {
                return Err(ApiFailure::Damaged { blob: name });
            }
        }
    }

    /// Where to go on after the piece from `before` on got no good answer; the failure again where that
    /// makes no sense.
    async fn take_up(
        &self,
        name: Digest,
        before: u64,
        failure: ApiFailure,
        attempt: u32,
    ) -> Result<u64, ApiFailure> {
        let mendable =
            matches!(failure.kind(), Some(ErrorKind::WrongOffset | ErrorKind::DigestMismatch));
        if attempt + 1 >= ATTEMPTS || !(mendable || failure.is_away()) {
            return Err(failure);
        }
        if failure.is_away() {
            tokio::time::sleep(PAUSE * 2u32.pow(attempt)).await;
        }
        match self.uploaded(name).await {
            // Still away: the same piece fails again and is counted.
            Err(error) if error.is_away() => Ok(before),
            other => other,
        }
    }

    /// How many bytes of an upload the server holds.
    async fn uploaded(&self, name: Digest) -> Result<u64, ApiFailure> {
        let state: Result<UploadState, ApiFailure> = self.get(&format!("uploads/{name}")).await;
        match state {
            Ok(state) => Ok(state.offset),
            Err(failure) if failure.kind() == Some(ErrorKind::NotFound) => Ok(0),
            Err(failure) => Err(failure),
        }
    }

    async fn put(
        &self,
        blob: BlobRef,
        offset: u64,
        bytes: &[u8],
    ) -> Result<UploadState, ApiFailure> {
        // Numbers with few digits shrink to a fraction, noise doesn't: the piece itself decides.
        let packed = zstd::bulk::compress(bytes, ZSTD_LEVEL)
            .ok()
            .filter(|packed| packed.len() < bytes.len() / 10 * 9);
        let path = format!("blobs/{}?offset={offset}", blob.sha256);
        let response = self
            .send(Method::PUT, &path, |request| {
                let (name, value) = BYTES;
                let request = request.header(name, value).header(BYTES_HEADER, blob.bytes);
                match &packed {
                    Some(packed) => {
                        request.header(header::CONTENT_ENCODING, "zstd").body(packed.clone())
                    }
                    None => request.body(bytes.to_vec()),
                }
            })
            .await?;
        self.answer(response).await
    }

    /// Downloads a blob whole and checks it; `received` is told how many bytes have come. What breaks off
    /// is gone on with: a name stands for the same bytes for ever.
    pub(crate) async fn download(
        &self,
        blob: BlobRef,
        received: &mut dyn FnMut(u64),
    ) -> Result<Vec<u8>, ApiFailure> {
        self.download_paused(blob, PAUSE, received).await
    }

    /// Downloads with such a pause after an attempt that got no further, and one twice as long after
    /// each that follows it.
    pub(super) async fn download_paused(
        &self,
        blob: BlobRef,
        pause: Duration,
        received: &mut dyn FnMut(u64),
    ) -> Result<Vec<u8>, ApiFailure> {
        let mut bytes = Vec::new();
        let (mut fruitless, mut most) = (0, 0);
        loop {
            let ended = self.receive(blob, &mut bytes, received).await;
            if ended.is_ok() && length(&bytes) == blob.bytes {
                let is_right = Digest::of(&bytes) == blob.sha256;
                let damaged = ApiFailure::Damaged { blob: blob.sha256 };
                return if is_right { Ok(bytes) } else { Err(damaged) };
            }
            let failure = ended.err().unwrap_or(ApiFailure::Damaged { blob: blob.sha256 });
            fruitless = if bytes.len() > most { 0 } else { fruitless + 1 };
            most = most.max(bytes.len());
            if fruitless == ATTEMPTS || !failure.is_away() {
                return Err(failure);
            }
            if fruitless > 0 {
                tokio::time::sleep(pause * 2u32.pow(fruitless - 1)).await;
            }
        }
    }

    /// One request for what is missing of a blob, or for all of it where the server knows no ranges.
    async fn receive(
        &self,
        blob: BlobRef,
        bytes: &mut Vec<u8>,
        received: &mut dyn FnMut(u64),
    ) -> Result<(), ApiFailure> {
        let path = format!("blobs/{}", blob.sha256);
        let from = bytes.len();
        let ranged = |request: RequestBuilder| match from {
            0 => request,
            from => request.header(header::RANGE, format!("bytes={from}-")),
        };
        let mut response = self.send(Method::GET, &path, ranged).await?;
        if response.status() != StatusCode::PARTIAL_CONTENT {
            bytes.clear();
        }
        let broken = |error| ApiFailure::unreachable(self.server(), error);
        while let Some(chunk) = response.chunk().await.map_err(broken)? {
            bytes.extend_from_slice(&chunk);
            if length(bytes) > blob.bytes {
                return Err(ApiFailure::Damaged { blob: blob.sha256 });
            }
            received(length(bytes));
        }
        Ok(())
    }
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

/// The next bytes of a file to send.
fn piece(file: &mut File, offset: u64) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    file.take(PIECE).read_to_end(&mut bytes)?;
    Ok(bytes)
}
