//! Downloads the blobs that units need into the cache: each once, however many units wait for it, resumed by range, and
//! verified before it is used. A partial file of a dropped download or of an earlier run is continued.

use crate::{
    api::Api,
    contact::Contact,
    storage::cache::{Cache, Class, Pin},
    transfer::{
        Bandwidth,
        part::{Appended, Part},
    },
};
use parking_lot::Mutex;
use sojourn_http::{Backoff, CallError, Encoding, Recovery};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    error::{ErrorKind, error_chain},
};
use std::{
    collections::BTreeMap,
    io,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::sync::mpsc;

/// How often the whole content may come altered before the unit is given back.
const MAX_ALTERED: u32 = 3;
/// How often a store may fail before the blob comes through the server.
const MAX_STORE_FAILURES: u32 = 2;
/// Chunks between network and disk.
const MAX_CHUNKS_AHEAD: usize = 32;

/// Why a blob can't be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    #[error("the server refuses this host")]
    End(#[source] CallError),
    #[error("the server refuses blob `{}`: {reason}", blob.short())]
    Refused { blob: Digest, reason: String },
    #[error("blob `{}` arrives altered", blob.short())]
    Altered { blob: Digest },
    #[error("blob `{}` can't be written", blob.short())]
    Disk { blob: Digest, source: io::Error },
}

/// Fetches blobs.
#[derive(Debug)]
pub(crate) struct Fetcher {
    api: Api,
    cache: Arc<Cache>,
    contact: Arc<Contact>,
    bandwidth: Arc<Bandwidth>,
    longest_pause: Duration,
    flights: Mutex<BTreeMap<Digest, Weak<SharedDownload>>>,
}

/// A download that all units that need the blob share (single flight).
#[derive(Debug, Default)]
pub(crate) struct SharedDownload {
    /// Held by the task that downloads, until its last byte is written.
    alone: Arc<tokio::sync::Mutex<()>>,
    /// Bytes of the blob that are here.
    fetched: Arc<AtomicU64>,
    /// Bytes that have come over the network, those that came twice too.
    received: Arc<AtomicU64>,
}

impl SharedDownload {
    /// How many bytes of the blob are here, as they come.
    pub(crate) fn fetched(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.fetched)
    }

    /// How many bytes have come over the network for it, as they come.
    pub(crate) fn received(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.received)
    }
}

/// How a request ended.
enum Ended {
    /// With the answer's end, early or not.
    Normally,
    /// With more bytes than the blob has, or bytes that can't be unpacked; nothing of it counts.
    Malformed,
    /// Without an answer of the server: the store wasn't asked.
    Unopened(CallError),
    /// Broken off.
    Broken(CallError),
}

impl Fetcher {
    pub(crate) fn new(
        api: Api,
        cache: Arc<Cache>,
        contact: Arc<Contact>,
        bandwidth: Arc<Bandwidth>,
        longest_pause: Duration,
    ) -> Self {
        Self { api, cache, contact, bandwidth, longest_pause, flights: Mutex::default() }
    }

    /// The blob, verified and pinned: from the cache, or from the server however long that is away.
    pub(crate) async fn fetch(
        &self,
        blob: BlobRef,
        class: Class,
        flight: &SharedDownload,
    ) -> Result<Pin, FetchError> {
        let alone = Arc::clone(&flight.alone).lock_owned().await;
        if let Some(pin) = self.cache.pin(blob).await {
            flight.fetched.store(blob.bytes, Ordering::Relaxed);
            return Ok(pin);
        }
        let disk = |source| FetchError::Disk { blob: blob.sha256, source };
        let room = self.cache.reserve(blob);
        let mut part = Part::take_up(blob, room, flight.fetched(), alone).await.map_err(disk)?;
        // Bytes from the disk: if the whole is wrong, the server need not be to blame.
        let mut found = part.written() > 0;
        if found && part.is_long_enough() {
            if part.is_right() {
                return part.publish(class).await.map_err(disk);
            }
            part = part.rewound().map_err(disk)?;
        }
        let mut backoff = Backoff::new(self.longest_pause);
        let (mut altered, mut store_failures) = (0, 0);
        // Weights are noise: of a checkpoint hardly anything is saved.
        let mut accepts = if class == Class::Data { Encoding::Zstd } else { Encoding::Identity };
        loop {
            let before = part.written();
            let direct = store_failures < MAX_STORE_FAILURES;
            let attempt = self.attempt(blob, part, direct, accepts, &flight.received);
            let (reached, ended) = attempt.await.map_err(disk)?;
            part = reached;
            let advanced = part.written() > before;
            let asked_store = !matches!(ended, Ended::Unopened(_));
            let failure = match ended {
                Ended::Normally if part.is_long_enough() => {
                    if part.is_right() {
                        return part.publish(class).await.map_err(disk);
                    }
                    None
                }
                // Ended early, without an error: taken up where it ended.
                Ended::Normally => {
                    if advanced {
                        backoff.reset();
                    }
                    self.contact.pause(&mut backoff, None).await;
                    continue;
                }
                Ended::Malformed => None,
                Ended::Unopened(failure) | Ended::Broken(failure) => Some(failure),
            };
            if !advanced && asked_store {
                store_failures += 1;
            }
            let Some(failure) = failure else {
                // The server looks at what lies in its store, and its users hear if that is damaged.
                store_failures = MAX_STORE_FAILURES;
                accepts = Encoding::Identity;
                altered += u32::from(!std::mem::take(&mut found));
                part = part.rewound().map_err(disk)?;
                if altered >= MAX_ALTERED {
                    return Err(FetchError::Altered { blob: blob.sha256 });
                }
                let blob = blob.sha256.short();
                tracing::warn!(blob, "a blob came altered; fetching it again");
                self.contact.pause(&mut backoff, None).await;
                continue;
            };
            match failure.recovery() {
                Recovery::End => return Err(FetchError::End(failure)),
                Recovery::Amend(ErrorKind::RangeNotSatisfiable) if part.written() > 0 => {
                    part = part.rewound().map_err(disk)?;
                    self.contact.pause(&mut backoff, None).await;
                }
                Recovery::Gone | Recovery::Amend(_) => {
                    let reason = failure.to_string();
                    return Err(FetchError::Refused { blob: blob.sha256, reason });
                }
                Recovery::Retry => {
                    if advanced {
                        backoff.reset();
                    }
                    if backoff.attempts() == 0 && !self.contact.is_away() {
                        let (blob, cause) = (blob.sha256.short(), error_chain(&failure));
                        tracing::warn!(blob, cause, "a download broke off; trying again");
                    }
                    self.contact.pause(&mut backoff, failure.retry_after()).await;
                }
            }
        }
    }

    /// The blob, if it is in the cache and nobody is about to fetch it.
    pub(super) async fn at_hand(&self, blob: BlobRef) -> Option<Pin> {
        let flight = self.flight(blob.sha256);
        let _alone = Arc::clone(&flight.alone).try_lock_owned().ok()?;
        self.cache.pin(blob).await
    }

    /// One request, in its turn. Gives the part back as far as it came.
    async fn attempt(
        &self,
        blob: BlobRef,
        part: Part,
        direct: bool,
        accepts: Encoding,
        received: &AtomicU64,
    ) -> io::Result<(Part, Ended)> {
        let _permit = self.bandwidth.download.permit().await;
        let _shown = self.bandwidth.moving.download(blob, part.count());
        let mut download = match self.api.blob(blob.sha256, part.written(), direct, accepts).await {
            Ok(download) => download,
            Err(failure) if failure.is_of_store() => return Ok((part, Ended::Broken(failure))),
            Err(failure) => return Ok((part, Ended::Unopened(failure))),
        };
        let part = if download.from() == part.written() { part } else { part.rewound()? };
        let encoding = download.encoding();
        let mut coming = part.written();
        // The line's speed is that of the bytes on it.
        let moved: Arc<AtomicU64> = Arc::default();
        let run = self.bandwidth.download.speed.begin(Arc::clone(&moved));
        // One thread writes and hashes, so that neither holds up the network or other tasks.
        let (chunks, taken) = mpsc::channel(MAX_CHUNKS_AHEAD);
        let writer = tokio::task::spawn_blocking(move || part.append(taken, encoding));
        let ended = loop {
            match download.next().await {
                Ok(Some(chunk)) => {
                    coming = coming.saturating_add(chunk.len() as u64);
                    if coming > blob.bytes {
                        break Ended::Malformed;
                    }
                    let bytes = chunk.len();
                    received.fetch_add(bytes as u64, Ordering::Relaxed);
                    moved.fetch_add(bytes as u64, Ordering::Relaxed);
                    // A closed channel: the writer has failed, and says why below.
                    if chunks.send(chunk).await.is_err() {
                        break Ended::Normally;
                    }
                    // Bytes that aren't read fill the connection's buffers, so that the server sends no faster.
                    self.bandwidth.download.take(bytes).await;
                }
                Ok(None) => break Ended::Normally,
                Err(failure) => break Ended::Broken(failure),
            }
        };
        drop(chunks);
        let appended = writer.await.map_err(io::Error::other)??;
        drop(run);
        Ok(match appended {
            Appended::Whole(part) => (part, ended),
            Appended::Malformed(part) => (part, Ended::Malformed),
        })
    }

    /// The shared download of a blob.
    pub(crate) fn flight(&self, digest: Digest) -> Arc<SharedDownload> {
        let mut flights = self.flights.lock();
        flights.retain(|_, flight| flight.strong_count() > 0);
        if let Some(flight) = flights.get(&digest).and_then(Weak::upgrade) {
            return flight;
        }
        let flight: Arc<SharedDownload> = Arc::default();
        flights.insert(digest, Arc::downgrade(&flight));
        flight
    }
}
