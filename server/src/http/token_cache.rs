//! Caches the host of each token, so that the core is asked once. A token never changes its host, and the core checks with
//! every command whether the host may still act.

use parking_lot::RwLock;
use sojourn_protocol::{digest::Digest, ids::HostId};
use std::collections::BTreeMap;

/// Hosts by the hash of their token.
#[derive(Debug, Default)]
pub(crate) struct TokenCache(RwLock<BTreeMap<Digest, HostId>>);

impl TokenCache {
    /// The host with this token, if the core was asked before.
    pub(super) fn get(&self, token_sha256: Digest) -> Option<HostId> {
        self.0.read().get(&token_sha256).copied()
    }

    /// Stores the core's answer.
    pub(super) fn insert(&self, token_sha256: Digest, host: HostId) {
        self.0.write().insert(token_sha256, host);
    }
}
