//! Checks of jobs before the core hears of them: off the core's thread, few at a time, at a rate for each token.
//!
//! ```text
//!   job --> rate --> turn --> bounds, spec and trials (a blocking thread) --> graphs --> headers and labels of shards --> core
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `graphs.rs` | the files of users' models, read and checked as every trainer does |
//! | `shards.rs` | some shards of the data: their headers, and the range of their labels |
//!
//! Faults that can't be known without training show in training: see `hosts/strikes.rs` of the core.

mod graphs;
mod shards;

use crate::network::{Rate, RateLimiter};
use parking_lot::Mutex;
use sojourn_blobs::{BlobError, BlobStore};
use sojourn_core::{By, PreparedSubmission};
use sojourn_protocol::{
    bounds::Bounded,
    digest::Digest,
    error::{ApiError, ErrorKind, error_chain},
    manifest::DataManifest,
    spec::JobSpec,
};
use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    task::{JoinError, spawn_blocking},
};

/// Jobs that are checked at once.
const MAX_CHECKS: usize = 2;
/// Checks of one token: so many at once, and one more each second.
const RATE: Rate = Rate { burst: 30, interval: Duration::from_secs(1) };

/// Checks of jobs, and what bounds them.
#[derive(Debug)]
pub(crate) struct JobChecks {
    begun: Instant,
    turns: Semaphore,
    rates: RateLimiter,
    /// Descriptions of graphs that were checked before: each names its file.
    sound: Mutex<BTreeSet<Digest>>,
}

/// Why a job isn't taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CheckError {
    /// The job is wrong, or the server has no time for it now.
    #[error(transparent)]
    Refused(#[from] ApiError),
    /// The store failed.
    #[error("the store failed at the check of a job")]
    Store(#[from] BlobError),
    /// The thread of a check has ended without an answer.
    #[error("the check of a job has ended early")]
    Lost(#[from] JoinError),
}

impl CheckError {
    fn invalid(message: impl Into<String>) -> Self {
        ApiError::new(ErrorKind::Invalid, message).into()
    }
}

impl JobChecks {
    pub(crate) fn new() -> Self {
        Self {
            begun: Instant::now(),
            turns: Semaphore::new(MAX_CHECKS),
            rates: RateLimiter::new(RATE),
            sound: Mutex::default(),
        }
    }

    /// Takes a check from the share of a token.
    ///
    /// # Errors
    /// How long until there is one.
    pub(crate) fn admit(&self, by: By) -> Result<(), Duration> {
        let token = match by {
            By::Server => None,
            By::Token(token) => Some(token.0),
        };
        self.rates.take(self.begun.elapsed(), token)
    }

    /// The turn of a check, which lasts as long as the answer is kept.
    async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        // It is never closed.
        self.turns.acquire().await.ok()
    }

    /// Runs a check that reads nothing on a thread that may block.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        check: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, JoinError> {
        let _turn = self.turn().await;
        spawn_blocking(check).await
    }

    /// Checks a job whose blobs are stored, and prepares it for the core. Blobs that aren't there are left to the core, which names them.
    pub(crate) async fn prepare(
        &self,
        store: &BlobStore,
        spec: Box<JobSpec>,
        data: Box<DataManifest>,
    ) -> Result<PreparedSubmission, CheckError> {
        let _turn = self.turn().await;
        let prepared = spawn_blocking(move || {
            let outside = Bounded::new(&*spec).map(drop).and(Bounded::new(&*data).map(drop));
            outside.map_err(|error| ApiError::new(ErrorKind::Invalid, error.to_string()))?;
            PreparedSubmission::new(spec, data)
        });
        let prepared = prepared.await??;
        self.check_graphs(store, prepared.spec()).await?;
        shards::check(store, prepared.data()).await?;
        Ok(prepared)
    }
}

/// The bytes of a stored blob from its beginning, `limit` at most; `None` where it isn't there.
async fn beginning(
    store: &BlobStore,
    blob: Digest,
    limit: u64,
) -> Result<Option<Vec<u8>>, CheckError> {
    let Some(size) = store.size(blob).await? else { return Ok(None) };
    range(store, blob, 0..limit.min(size)).await
}

/// Some bytes of a stored blob; `None` where it isn't there.
async fn range(
    store: &BlobStore,
    blob: Digest,
    range: std::ops::Range<u64>,
) -> Result<Option<Vec<u8>>, CheckError> {
    use futures::TryStreamExt as _;
    let mut stream = match store.read(blob, range).await {
        Ok(stream) => stream,
        Err(BlobError::Missing(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let mut bytes = Vec::new();
    while let Some(chunk) = stream.try_next().await? {
        bytes.extend_from_slice(&chunk);
    }
    Ok(Some(bytes))
}

/// An error with its causes, in one line.
fn said(error: &(dyn std::error::Error + 'static)) -> String {
    error_chain(error)
}
