//! Whose token is whose, as the core has said. A token means one host for as long as there is one, and
//! whether that host may still do anything the core looks at with every command; so it is asked once.

use sojourn_protocol::{digest::Digest, ids::HostId};
use std::{
    collections::BTreeMap,
    sync::{PoisonError, RwLock},
};

/// Hosts by the hash of their token.
#[derive(Debug, Default)]
pub(crate) struct KnownHosts(RwLock<BTreeMap<Digest, HostId>>);

impl KnownHosts {
    /// The host with this token, where the core was asked before.
    pub(super) fn get(&self, token_sha256: Digest) -> Option<HostId> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(&token_sha256).copied()
    }

    /// Remembers what the core has said.
    pub(super) fn insert(&self, token_sha256: Digest, host: HostId) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(token_sha256, host);
    }
}
