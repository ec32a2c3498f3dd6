//! What the server understands beyond the first version of its API, as its last answer has said. A server
//! may be replaced by an older or a newer one at any time.

use reqwest::header::HeaderMap;
use sojourn_protocol::{
    PROTOCOL_HEADER,
    api::{DELTA_UPLOADS, FEATURES_HEADER, Held, HeldState, UPLOAD_PROGRESS},
};
use std::sync::atomic::{AtomicBool, Ordering};

/// The features that this client can use.
#[derive(Debug, Default)]
pub(super) struct Features {
    upload_progress: AtomicBool,
    delta_uploads: AtomicBool,
}

impl Features {
    /// Takes note of what an answer says, if it is the server's own and not that of something before it.
    pub(super) fn hear(&self, headers: &HeaderMap) {
        if !headers.contains_key(PROTOCOL_HEADER) {
            return;
        }
        let words = headers.get(FEATURES_HEADER).and_then(|value| value.to_str().ok());
        let has = |wanted| words.unwrap_or_default().split(',').any(|word| word.trim() == wanted);
        self.upload_progress.store(has(UPLOAD_PROGRESS), Ordering::Relaxed);
        self.delta_uploads.store(has(DELTA_UPLOADS), Ordering::Relaxed);
    }

    /// Does it take checkpoints as deltas?
    pub(super) fn delta_uploads(&self) -> bool {
        self.delta_uploads.load(Ordering::Relaxed)
    }

    /// Held leases in words that the server understands; `None` where it understands them as they are.
    pub(super) fn put(&self, holding: &[Held]) -> Option<Vec<Held>> {
        if self.upload_progress.load(Ordering::Relaxed) {
            return None;
        }
        let put = holding.iter().map(|held| match held.state {
            HeldState::Sending { .. } => Held { lease: held.lease, state: HeldState::Finished },
            _ => *held,
        });
        Some(put.collect())
    }
}
