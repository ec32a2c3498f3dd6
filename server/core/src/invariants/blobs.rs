//! Invariants of blobs.

use super::{Invariant, Violation, holds};
use sojourn_protocol::digest::Digest;
use sojourn_state::{BlobStatus, State, Trial};
use std::collections::BTreeMap;

/// B1: what is referred to is in the store, and the counts are those of a recount.
pub(super) fn references_are_kept_and_counted(state: &State) -> Result<(), Violation> {
    let mut counts: BTreeMap<Digest, u32> = BTreeMap::new();
    for job in state.jobs.values() {
        let data = job.blobs().map(|blob| blob.sha256);
        let extras = job.extras.iter().map(|extra| extra.checkpoint.sha256);
        let trials = job.trials.iter().flat_map(Trial::blobs).map(|blob| blob.sha256);
        for digest in data.chain(trials).chain(extras) {
            *counts.entry(digest).or_default() += 1;
        }
    }
    for digest in counts.keys() {
        let status = state.blobs.status(digest);
        // A store may lose a blob; nobody may delete it.
        let kept = matches!(status, Some(BlobStatus::Published | BlobStatus::Lost));
        holds(Invariant::B1, kept, || format!("blob {digest:?} is referred to and not kept"))?;
    }
    let kept: BTreeMap<Digest, u32> = state.blobs.referenced().collect();
    holds(Invariant::B1, kept == counts, || "reference counts differ from a recount".into())
}
