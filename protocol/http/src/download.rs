//! Blobs from a server: a stream that begins at any byte, and whole blobs that are resumed where they break off and
//! verified at the end.

use crate::{
    client::{Call, HttpClient},
    error::{CallError, TransferError},
    retry::{Backoff, RetryPolicy},
    store::StoreClient,
};
use bytes::Bytes;
use reqwest::{
    Method, RequestBuilder, Response, StatusCode,
    header::{ACCEPT_ENCODING, CONTENT_ENCODING, HeaderMap, HeaderName, RANGE},
};
use sojourn_api::endpoints;
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    direct::{DIRECT_HEADER, ENCODING_HEADER},
};
use std::time::Duration;

/// Attempts in a row that get a transfer no further.
pub(crate) const MAX_FRUITLESS_ATTEMPTS: u32 = 6;
/// The ceilings of the pauses between them.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const MAX_PAUSE: Duration = Duration::from_secs(8);

/// Which way a blob comes.
#[derive(Debug, Clone, Copy)]
pub enum Route<'a> {
    /// Through the server.
    Server,
    /// From the store, where the server says so.
    Store(&'a StoreClient),
}

/// How a blob's bytes travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// As they are.
    Identity,
    /// All of them as one zstd frame.
    Zstd,
}

impl Encoding {
    const ZSTD: &'static str = "zstd";

    /// The encoding that such a header names.
    fn of(headers: &HeaderMap, name: &HeaderName) -> Self {
        match headers.get(name).is_some_and(|value| value == Self::ZSTD) {
            true => Self::Zstd,
            false => Self::Identity,
        }
    }
}

/// A blob that is coming.
#[derive(Debug)]
pub struct Download {
    from: u64,
    encoding: Encoding,
    response: Response,
    server: String,
    stall: Duration,
}

impl Download {
    /// The first byte that comes; 0 where the range was ignored.
    #[must_use]
    pub const fn from(&self) -> u64 {
        self.from
    }

    /// How the bytes are encoded that come; [`Encoding::Identity`] unless another was accepted.
    #[must_use]
    pub const fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// The next bytes; `None` at the end.
    ///
    /// # Errors
    /// Where the connection breaks, or stands still for too long.
    pub async fn next(&mut self) -> Result<Option<Bytes>, CallError> {
        match tokio::time::timeout(self.stall, self.response.chunk()).await {
            Ok(chunk) => chunk.map_err(|error| CallError::from_transport(&self.server, error)),
            Err(_) => Err(CallError::timed_out(&self.server, self.stall)),
        }
    }
}

/// A blob from a byte on.
struct GetBlob {
    path: String,
    from: u64,
}

impl GetBlob {
    fn new(digest: Digest, from: u64) -> Self {
        Self { path: endpoints::Blob::path(digest), from }
    }
}

impl Call for GetBlob {
    type Answer = ();

    fn method(&self) -> Method {
        Method::GET
    }

    fn path(&self) -> &str {
        &self.path
    }

    fn complete(&self, request: RequestBuilder) -> RequestBuilder {
        match self.from {
            0 => request,
            from => request.header(RANGE, format!("bytes={from}-")),
        }
    }
}

impl HttpClient {
    /// A blob from byte `from` on. One attempt; an answer that stands still for `stall` is an error. `accepts`: how the bytes
    /// may travel, where all of them are wanted.
    ///
    /// # Errors
    /// Where neither server nor store gives it.
    pub async fn open_blob(
        &self,
        digest: Digest,
        from: u64,
        route: Route<'_>,
        accepts: Encoding,
        stall: Duration,
    ) -> Result<Download, CallError> {
        let get = GetBlob::new(digest, from);
        let accepts = if from == 0 { accepts } else { Encoding::Identity };
        let mut request = get.complete(self.request(get.method(), get.path()));
        if accepts == Encoding::Zstd {
            request = request.header(ACCEPT_ENCODING, Encoding::ZSTD);
        }
        if let Route::Store(_) = route {
            request = request.header(DIRECT_HEADER, "follow");
        }
        let response = match tokio::time::timeout(stall, self.send(request)).await {
            Ok(response) => response?,
            Err(_) => return Err(CallError::timed_out(&self.server(), stall)),
        };
        let (response, encoding) = match route {
            Route::Store(store) if response.status() == StatusCode::TEMPORARY_REDIRECT => {
                // The store knows nothing of what it keeps.
                let name = HeaderName::from_static(ENCODING_HEADER);
                let encoding = Encoding::of(response.headers(), &name);
                (store.get(&response, from, stall).await?, encoding)
            }
            _ => {
                let response = self.accept(response).await?;
                let encoding = Encoding::of(response.headers(), &CONTENT_ENCODING);
                (response, encoding)
            }
        };
        let is_partial = response.status() == StatusCode::PARTIAL_CONTENT;
        let from = if is_partial { from } else { 0 };
        Ok(Download { from, encoding, response, server: self.server(), stall })
    }

    /// A whole blob, verified; `received` is told how many bytes have come. What breaks off is resumed: a name stands
    /// for the same bytes for ever.
    ///
    /// # Errors
    /// Where the server refuses, or gets no further for several attempts, or sends other bytes than the name says.
    pub async fn download(
        &self,
        blob: BlobRef,
        received: &mut dyn FnMut(u64),
    ) -> Result<Vec<u8>, TransferError> {
        self.download_with(blob, Backoff::from(FIRST_PAUSE, MAX_PAUSE), received).await
    }

    /// As [`HttpClient::download`], with such pauses after attempts that got no further.
    pub(crate) async fn download_with(
        &self,
        blob: BlobRef,
        mut backoff: Backoff,
        received: &mut dyn FnMut(u64),
    ) -> Result<Vec<u8>, TransferError> {
        let damaged = || TransferError::Damaged { blob: blob.sha256 };
        let mut bytes = Vec::new();
        let mut most = 0;
        loop {
            let ended = self.receive(blob, &mut bytes, received).await;
            if ended.is_ok() && bytes.len() as u64 == blob.bytes {
                return if Digest::of(&bytes) == blob.sha256 { Ok(bytes) } else { Err(damaged()) };
            }
            let error = ended.err().unwrap_or_else(damaged);
            let is_away = error.call().is_some_and(CallError::is_away);
            let has_advanced = bytes.len() > most;
            most = most.max(bytes.len());
            if !is_away || (!has_advanced && backoff.attempts() + 1 == MAX_FRUITLESS_ATTEMPTS) {
                return Err(error);
            }
            if has_advanced {
                backoff.reset();
            } else {
                let asked = error.call().and_then(CallError::retry_after);
                tokio::time::sleep(backoff.next(asked)).await;
            }
        }
    }

    /// One request for the missing end of a blob, or for all of it where the server knows no ranges.
    async fn receive(
        &self,
        blob: BlobRef,
        bytes: &mut Vec<u8>,
        received: &mut dyn FnMut(u64),
    ) -> Result<(), TransferError> {
        let get = GetBlob::new(blob.sha256, bytes.len() as u64);
        let mut response = self.send_call(&get, RetryPolicy::WhileBusy).await?;
        if response.status() != StatusCode::PARTIAL_CONTENT {
            bytes.clear();
        }
        while let Some(chunk) = response.chunk().await.map_err(|error| self.failed(error))? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() as u64 > blob.bytes {
                return Err(TransferError::Damaged { blob: blob.sha256 });
            }
            received(bytes.len() as u64);
        }
        Ok(())
    }
}
