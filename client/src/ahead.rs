//! Fetches shards before a unit needs them, as the server asks: one after the other, only into room that the
//! owner lends and nothing takes, and only while no unit waits for a blob of its own.

use crate::{cache::Class, host::Host, runner::UnitRunner, transfer::FetchError};
use sojourn_protocol::{digest::BlobRef, error::error_chain};
use std::sync::Arc;
use tokio::sync::watch;

/// Whether the line is free for what nobody waits for.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    /// How many blobs units wait for.
    awaited: watch::Sender<usize>,
}

/// A blob that a unit waits for, as long as this lives.
#[derive(Debug)]
pub(crate) struct Awaited<'a>(&'a Ahead);

impl Ahead {
    /// What is fetched ahead is left lying, and gone on with later.
    pub(crate) fn give_way(&self) -> Awaited<'_> {
        self.awaited.send_modify(|count| *count += 1);
        Awaited(self)
    }

    async fn until(&self, so: impl FnMut(&usize) -> bool) {
        // The sender lives as long as `self`.
        let _ = self.awaited.subscribe().wait_for(so).await;
    }
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        self.0.awaited.send_modify(|count| *count -= 1);
    }
}

/// Starts to fetch them; at once where there are none.
pub(crate) fn fetch<R: UnitRunner>(host: &Arc<Host<R>>, blobs: Vec<BlobRef>) {
    if blobs.is_empty() {
        return;
    }
    let fetching = Arc::clone(host);
    host.spawn(async move {
        for blob in blobs {
            // A unit that needs it will try again, and say why it can't be had.
            if let Err(error) = fetch_one(&fetching, blob).await {
                let (blob, reason) = (blob.sha256.short(), error_chain(&error));
                tracing::debug!(blob, reason, "a shard isn't fetched ahead");
                return;
            }
        }
    });
}

async fn fetch_one<R: UnitRunner>(host: &Host<R>, blob: BlobRef) -> Result<(), FetchError> {
    loop {
        host.ahead.until(|awaited| *awaited == 0).await;
        if !host.cache.has_free(blob.bytes) {
            return Ok(());
        }
        let flight = host.fetcher.flight(blob.sha256);
        tokio::select! {
            biased;
            fetched = host.fetcher.fetch(blob, Class::Data, &flight) => {
                fetched?;
                tracing::debug!(blob = %blob.sha256.short(), "fetched a shard ahead");
                return Ok(());
            }
            // It may be this very one: who waits for it goes on where this ends.
            () = host.ahead.until(|awaited| *awaited > 0) => {}
        }
    }
}
