//! A journal in Redis, by URL.

use crate::cli::serve::open_error::OpenError;
use sojourn_protocol::error::error_chain;
use sojourn_server::journal::{
    Durability, JournalError, OpenJournal, RedisJournals, RedisSettings, RedisUrl,
};
use std::{path::Path, sync::Arc};

/// Refuses a URL that names no Redis.
pub(super) fn check(url: &str) -> Result<(), String> {
    RedisUrl::of(url).map(drop).map_err(|error| error.to_string())
}

/// The journal at a URL; `folder` is for notes about it.
pub(super) fn connect(
    url: &str,
    durability: Durability,
    folder: &Path,
) -> Result<Arc<dyn OpenJournal>, OpenError> {
    let url = RedisUrl::of(url).map_err(|error| OpenError::Other(error_chain(&error)))?;
    let settings = RedisSettings {
        url,
        durability,
        lease: RedisSettings::DEFAULT_LEASE,
        note: folder.join("redis.reached"),
    };
    match RedisJournals::connect(settings) {
        Ok(journals) => Ok(Arc::new(journals)),
        Err(error @ JournalError::Unreachable { .. }) => Err(OpenError::Unreachable(error)),
        Err(error) => Err(OpenError::Other(error_chain(&error))),
    }
}
