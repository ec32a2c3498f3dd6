//! The features of the server beyond the first version of its API, as its last answer named them. A server
//! may be replaced by an older or a newer one at any time.

use reqwest::header::HeaderMap;
use sojourn_protocol::{
    PROTOCOL_HEADER,
    api::{
        AWAITING_SHARDS, DELTA_UPLOADS, FEATURES_HEADER, Held, HeldState, PRODUCED_CHECKPOINTS,
        UPLOAD_PROGRESS,
    },
    direct::DIRECT_UPLOADS,
};
use std::sync::atomic::{AtomicBool, Ordering};

/// The features that this client can use.
#[derive(Debug, Default)]
pub(super) struct Features {
    awaiting_shards: AtomicBool,
    made_checkpoints: AtomicBool,
    upload_progress: AtomicBool,
    delta_uploads: AtomicBool,
    direct_uploads: AtomicBool,
}

impl Features {
    /// Takes note of what an answer says, if it is the server's own and not that of something before it.
    pub(super) fn hear(&self, headers: &HeaderMap) {
        if !headers.contains_key(PROTOCOL_HEADER) {
            return;
        }
        let words = headers.get(FEATURES_HEADER).and_then(|value| value.to_str().ok());
        let has = |wanted| words.unwrap_or_default().split(',').any(|word| word.trim() == wanted);
        self.awaiting_shards.store(has(AWAITING_SHARDS), Ordering::Relaxed);
        self.made_checkpoints.store(has(PRODUCED_CHECKPOINTS), Ordering::Relaxed);
        self.upload_progress.store(has(UPLOAD_PROGRESS), Ordering::Relaxed);
        self.delta_uploads.store(has(DELTA_UPLOADS), Ordering::Relaxed);
        self.direct_uploads.store(has(DIRECT_UPLOADS), Ordering::Relaxed);
    }

    /// Does it take checkpoints as deltas?
    pub(super) fn delta_uploads(&self) -> bool {
        self.delta_uploads.load(Ordering::Relaxed)
    }

    /// Does it let hosts put checkpoints in its store themselves?
    pub(super) fn direct_uploads(&self) -> bool {
        self.direct_uploads.load(Ordering::Relaxed)
    }

    /// Held leases in words that the server understands; `None` where it understands them as they are.
    pub(super) fn put(&self, holding: &[Held]) -> Option<Vec<Held>> {
        let sending = self.upload_progress.load(Ordering::Relaxed);
        let awaiting = self.awaiting_shards.load(Ordering::Relaxed);
        let made = self.made_checkpoints.load(Ordering::Relaxed);
        if sending && awaiting && made {
            return None;
        }
        let put = |state| match state {
            HeldState::Sending { .. } if !sending => HeldState::Finished,
            HeldState::Awaiting { done, of, .. } if !awaiting => HeldState::Running { done, of },
            _ => state,
        };
        let put = holding.iter().map(|held| Held {
            made: held.made.filter(|_| made),
            ..Held::new(held.lease, put(held.state))
        });
        Some(put.collect())
    }
}
