//! The features of the server beyond the first version of its API, as its last answer named them. A server
//! may be replaced by an older or a newer one at any time.

use reqwest::header::HeaderMap;
use sojourn_protocol::{
    PROTOCOL_HEADER,
    api::{
        AWAITING_SHARDS, DELTA_UPLOADS, DISK_RESERVES, FEATURES_HEADER, Held, HeldState,
        PRODUCED_CHECKPOINTS, SEVERAL_CLASSES, UPLOAD_PROGRESS,
    },
    direct::DIRECT_UPLOADS,
    inventory::Inventory,
};

/// The features that this client can use.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Features {
    awaiting_shards: bool,
    disk_reserves: bool,
    produced_checkpoints: bool,
    several_classes: bool,
    upload_progress: bool,
    /// The server accepts checkpoints as deltas.
    pub(super) delta_uploads: bool,
    /// The server lets hosts put checkpoints in its store themselves.
    pub(super) direct_uploads: bool,
}

impl Features {
    /// The features that an answer names; `None` if the answer is a proxy's and not the server's own.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        headers.get(PROTOCOL_HEADER)?;
        let names = headers.get(FEATURES_HEADER).and_then(|value| value.to_str().ok());
        let has = |wanted| names.unwrap_or_default().split(',').any(|name| name.trim() == wanted);
        Some(Self {
            awaiting_shards: has(AWAITING_SHARDS),
            disk_reserves: has(DISK_RESERVES),
            produced_checkpoints: has(PRODUCED_CHECKPOINTS),
            several_classes: has(SEVERAL_CLASSES),
            upload_progress: has(UPLOAD_PROGRESS),
            delta_uploads: has(DELTA_UPLOADS),
            direct_uploads: has(DIRECT_UPLOADS),
        })
    }

    /// Held leases, reduced to what the server understands.
    pub(super) fn reduce(self, holding: &[Held]) -> Vec<Held> {
        let reduce = |state| match state {
            HeldState::Sending { .. } if !self.upload_progress => HeldState::Finished,
            HeldState::Awaiting { done, of, .. } if !self.awaiting_shards => {
                HeldState::Running { done, of }
            }
            _ => state,
        };
        let reduced = holding.iter().map(|held| Held {
            result: held.result.filter(|_| self.produced_checkpoints),
            ..Held::new(held.lease, reduce(held.state))
        });
        reduced.collect()
    }

    /// An inventory, reduced to what the server understands.
    pub(super) fn reduce_inventory(self, inventory: &Inventory) -> Inventory {
        let mut reduced = inventory.clone();
        reduced.disk_is_low &= self.disk_reserves;
        if !self.several_classes {
            reduced.devices.iter_mut().for_each(|device| device.classes = Vec::new());
        }
        reduced
    }
}
