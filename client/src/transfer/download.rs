//! Gets the blobs that units need into the cache: each once however many units wait for it, resumed by
//! range, verified before anyone sees it.

use crate::{
    api::{Api, ApiFailure, Remedy},
    backoff::Backoff,
    cache::{Cache, Class, Pin, Reservation},
    contact::Contact,
};
use bytes::Bytes;
use sojourn_protocol::{
    digest::{BlobRef, Digest, Hasher},
    error::ErrorKind,
};
use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Write},
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};
use tokio::sync::mpsc;

/// How often the whole content may come altered before the unit is given back.
const MOST_ALTERED: u32 = 3;
/// Chunks between network and disk.
const AHEAD: usize = 32;

/// Why a blob can't be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    /// The daemon can't go on with this server.
    #[error("the server refuses this host")]
    End(#[source] ApiFailure),
    /// The server doesn't give it (any more).
    #[error("the server refuses blob `{}`: {reason}", blob.short())]
    Refused { blob: Digest, reason: String },
    /// It arrives with other bytes than its name says, again and again.
    #[error("blob `{}` arrives altered", blob.short())]
    Altered { blob: Digest },
    /// The disk doesn't take it.
    #[error("blob `{}` can't be written", blob.short())]
    Disk { blob: Digest, source: io::Error },
}

/// Fetches blobs.
#[derive(Debug)]
pub(crate) struct Fetcher {
    api: Api,
    cache: Arc<Cache>,
    contact: Arc<Contact>,
    longest_pause: Duration,
    flights: Mutex<BTreeMap<Digest, Weak<tokio::sync::Mutex<()>>>>,
}

/// How a request ended.
enum Ended {
    /// With the answer's end, early or not.
    Normally,
    /// With more bytes than the blob has; nothing of it counts.
    TooLong,
    /// Broken off.
    Broken(ApiFailure),
}

/// The bytes of one blob so far.
struct Part {
    file: File,
    hasher: Hasher,
    written: u64,
}

impl Fetcher {
    pub(crate) fn new(
        api: Api,
        cache: Arc<Cache>,
        contact: Arc<Contact>,
        longest_pause: Duration,
    ) -> Self {
        Self { api, cache, contact, longest_pause, flights: Mutex::default() }
    }

    /// The blob, verified and pinned: from the cache, or from the server however long that is away.
    pub(crate) async fn fetch(&self, blob: BlobRef, class: Class) -> Result<Pin, FetchError> {
        let flight = self.flight(blob.sha256);
        let _alone = flight.lock().await;
        if let Some(pin) = self.cache.pin(blob).await {
            return Ok(pin);
        }
        let disk = |source| FetchError::Disk { blob: blob.sha256, source };
        let room = self.cache.reserve(blob);
        let mut part = Part::begin(&room).map_err(disk)?;
        let mut backoff = Backoff::new(self.longest_pause);
        let mut altered = 0;
        loop {
            let before = part.written;
            let (reached, ended) = self.attempt(blob, part).await.map_err(disk)?;
            part = reached;
            let advanced = part.written > before;
            let failure = match ended {
                Ended::Normally if part.written == blob.bytes => {
                    if part.hasher.clone().finish() == blob.sha256 {
                        drop(part);
                        return room.publish(class).map_err(disk);
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
                Ended::TooLong => None,
                Ended::Broken(failure) => Some(failure),
            };
            let Some(failure) = failure else {
                altered += 1;
                if altered >= MOST_ALTERED {
                    return Err(FetchError::Altered { blob: blob.sha256 });
                }
                let blob = blob.sha256.short();
                tracing::warn!(blob, "a blob came altered; fetching it again");
                part = Part::begin(&room).map_err(disk)?;
                self.contact.pause(&mut backoff, None).await;
                continue;
            };
            match failure.remedy() {
                Remedy::End => return Err(FetchError::End(failure)),
                Remedy::Mend(ErrorKind::RangeNotSatisfiable) if part.written > 0 => {
                    part = Part::begin(&room).map_err(disk)?;
                    self.contact.pause(&mut backoff, None).await;
                }
                Remedy::Gone | Remedy::Mend(_) => {
                    let reason = failure.to_string();
                    return Err(FetchError::Refused { blob: blob.sha256, reason });
                }
                Remedy::Later => {
                    if advanced {
                        backoff.reset();
                    }
                    if backoff.attempts() == 0 && !self.contact.is_away() {
                        let (blob, cause) = (blob.sha256.short(), failure.whole_story());
                        tracing::warn!(blob, cause, "a download broke off; trying again");
                    }
                    self.contact.pause(&mut backoff, failure.retry_after()).await;
                }
            }
        }
    }

    /// One request. Gives the part back as far as it came.
    async fn attempt(&self, blob: BlobRef, part: Part) -> io::Result<(Part, Ended)> {
        let mut download = match self.api.blob(blob.sha256, part.written).await {
            Ok(download) => download,
            Err(failure) => return Ok((part, Ended::Broken(failure))),
        };
        let part = if download.from == part.written { part } else { part.rewound()? };
        let mut coming = part.written;
        // One thread writes and hashes, so that neither holds up the network or other tasks.
        let (chunks, taken) = mpsc::channel(AHEAD);
        let writer = tokio::task::spawn_blocking(move || part.append(taken));
        let ended = loop {
            match download.next().await {
                Ok(Some(chunk)) => {
                    coming = coming.saturating_add(chunk.len() as u64);
                    if coming > blob.bytes {
                        break Ended::TooLong;
                    }
                    // A closed channel: the writer has failed, and says why below.
                    if chunks.send(chunk).await.is_err() {
                        break Ended::Normally;
                    }
                }
                Ok(None) => break Ended::Normally,
                Err(failure) => break Ended::Broken(failure),
            }
        };
        drop(chunks);
        let part = writer.await.map_err(io::Error::other)??;
        Ok((part, ended))
    }

    fn flight(&self, digest: Digest) -> Arc<tokio::sync::Mutex<()>> {
        let mut flights = self.flights.lock().unwrap_or_else(PoisonError::into_inner);
        flights.retain(|_, flight| flight.strong_count() > 0);
        if let Some(flight) = flights.get(&digest).and_then(Weak::upgrade) {
            return flight;
        }
        let flight = Arc::default();
        flights.insert(digest, Arc::downgrade(&flight));
        flight
    }
}

impl Part {
    fn begin(room: &Reservation) -> io::Result<Self> {
        Ok(Self { file: File::create(room.path())?, hasher: Hasher::default(), written: 0 })
    }

    fn rewound(mut self) -> io::Result<Self> {
        self.file.set_len(0)?;
        io::Seek::rewind(&mut self.file)?;
        Ok(Self { file: self.file, hasher: Hasher::default(), written: 0 })
    }

    /// Takes chunks until there are no more. Blocks.
    fn append(mut self, mut chunks: mpsc::Receiver<Bytes>) -> io::Result<Self> {
        while let Some(chunk) = chunks.blocking_recv() {
            self.file.write_all(&chunk)?;
            self.hasher.update(&chunk);
            self.written = self.written.saturating_add(chunk.len() as u64);
        }
        Ok(self)
    }
}
