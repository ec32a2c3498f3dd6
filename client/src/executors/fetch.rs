//! Has a blob on the disk: one that is there already, or one that is fetched however long the server is away.

use crate::{
    context::Context,
    message::Message,
    storage::cache::Class,
    transfer::{FetchError, SharedDownload},
};
use sojourn_client_core::{BlobClass, UnitError};
use sojourn_http::trace::UNITS;
use sojourn_protocol::{digest::BlobRef, error::error_chain};
use std::sync::Arc;

/// Fetches a blob, or finds it. `serial` names this attempt.
pub(crate) async fn fetch<R>(
    context: Arc<Context<R>>,
    blob: BlobRef,
    class: BlobClass,
    flight: Arc<SharedDownload>,
    serial: u64,
) {
    let class = match class {
        BlobClass::Checkpoint => Class::Checkpoint,
        BlobClass::Data => Class::Data,
    };
    let result = context.server.fetcher.fetch(blob, class, &flight).await;
    if result.is_ok() {
        let (name, bytes) = (blob.sha256.short(), blob.bytes);
        tracing::debug!(target: UNITS, blob = name, bytes, "blob fetched");
    }
    context.send(Message::Fetched { blob: blob.sha256, serial, result });
}

/// The error for units that need the blob; none where the daemon has to end.
pub(crate) fn unit_error<R>(context: &Context<R>, error: FetchError) -> Option<UnitError> {
    match error {
        FetchError::End(failure) => {
            context.note(&failure);
            None
        }
        error @ FetchError::Refused { .. } => Some(UnitError::Unit(error_chain(&error))),
        // A path that alters bytes will alter the next unit's too.
        error @ (FetchError::Altered { .. } | FetchError::Disk { .. }) => {
            Some(UnitError::Machine(error_chain(&error)))
        }
    }
}
