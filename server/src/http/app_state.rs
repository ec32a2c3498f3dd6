//! The state that every handler can reach.

use super::{auth::Tokens, token_cache::TokenCache, traffic::Traffic};
use crate::{assimilation::AssimilationHandle, blob_lifecycle::BlobLifecycle, shell::ShellHandle};
use sojourn_blobs::{Staging, Uploads};
use std::{sync::Arc, time::Duration};

/// The parts of the server, as handlers use them. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct AppState {
    pub(crate) shell: ShellHandle,
    pub(crate) blobs: BlobLifecycle,
    pub(crate) uploads: Uploads,
    /// Complete uploads in the object store; `None` where the blobs are in the data folder.
    pub(crate) staging: Option<Staging>,
    /// A host that sends no heartbeat for so long loses its leases.
    pub(crate) lease_term: Duration,
    pub(crate) tokens: Tokens,
    pub(crate) token_cache: Arc<TokenCache>,
    pub(crate) traffic: Arc<Traffic>,
    pub(crate) assimilation: AssimilationHandle,
    /// The URL of the blobs, without secrets, for assimilators in processes of their own; `None` where only this process
    /// reaches the blobs.
    pub(crate) blobs_url: Option<String>,
    /// Whether the assimilators can evaluate a result: they have a trainer.
    pub(crate) has_trainer: bool,
}
