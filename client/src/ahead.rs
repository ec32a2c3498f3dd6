//! Fetches shards before a unit needs them, as the server asks: one after the other, and only into room that
//! the owner lends and nothing takes.

use crate::{cache::Class, host::Host, runner::UnitRunner};
use sojourn_protocol::digest::BlobRef;
use std::sync::Arc;

/// Starts to fetch them; at once where there are none.
pub(crate) fn fetch<R: UnitRunner>(host: &Arc<Host<R>>, blobs: Vec<BlobRef>) {
    if blobs.is_empty() {
        return;
    }
    let fetching = Arc::clone(host);
    host.spawn(async move {
        for blob in blobs {
            if !fetching.cache.has_free(blob.bytes) {
                continue;
            }
            let flight = fetching.fetcher.flight(blob.sha256);
            match fetching.fetcher.fetch(blob, Class::Data, &flight).await {
                Ok(_) => tracing::debug!(blob = %blob.sha256.short(), "fetched a shard ahead"),
                // A unit that needs it will try again, and say why it can't be had.
                Err(error) => {
                    let reason = crate::unit::story(&error);
                    tracing::debug!(blob = %blob.sha256.short(), reason, "a shard isn't fetched ahead");
                    return;
                }
            }
        }
    });
}
