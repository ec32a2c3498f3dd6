//! The transfers that run, for the owner's status.

use crate::{
    control::{Direction, Transfer},
    meter::Meter,
};
use parking_lot::Mutex;
use sojourn_protocol::{digest::BlobRef, ids::LeaseId};
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// The transfers that have their turn.
#[derive(Debug, Default)]
pub(super) struct Moving {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    transfers: BTreeMap<u64, One>,
}

#[derive(Debug)]
struct One {
    direction: Direction,
    blob: BlobRef,
    lease: Option<LeaseId>,
    done: Arc<AtomicU64>,
    meter: Meter,
}

/// A transfer that is shown for as long as this lives.
#[derive(Debug)]
pub(super) struct Shown<'a> {
    moving: &'a Moving,
    number: u64,
}

impl Moving {
    /// Registers a download; `done` counts its bytes.
    pub(super) fn download(&self, blob: BlobRef, done: Arc<AtomicU64>) -> Shown<'_> {
        self.show(Direction::Down, blob, None, done)
    }

    /// Registers an upload of a lease's checkpoint; `done` counts its bytes.
    pub(super) fn upload(&self, lease: LeaseId, blob: BlobRef, done: Arc<AtomicU64>) -> Shown<'_> {
        self.show(Direction::Up, blob, Some(lease), done)
    }

    fn show(
        &self,
        direction: Direction,
        blob: BlobRef,
        lease: Option<LeaseId>,
        done: Arc<AtomicU64>,
    ) -> Shown<'_> {
        let meter = Meter::new(done.load(Ordering::Relaxed));
        let mut state = self.state.lock();
        let number = state.next;
        state.next += 1;
        state.transfers.insert(number, One { direction, blob, lease, done, meter });
        Shown { moving: self, number }
    }

    /// All of them, the oldest first.
    pub(super) fn list(&self) -> Vec<Transfer> {
        let state = self.state.lock();
        let transfers = state.transfers.values().map(|one| {
            let bytes = one.done.load(Ordering::Relaxed);
            Transfer {
                direction: one.direction,
                blob: one.blob.sha256,
                lease: one.lease,
                bytes,
                of: one.blob.bytes,
                bytes_per_second: one.meter.rate(bytes),
            }
        });
        transfers.collect()
    }
}

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        self.moving.state.lock().transfers.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_protocol::digest::Digest;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn a_transfer_is_shown_for_as_long_as_it_moves() {
        let moving = Moving::default();
        let blob = BlobRef { sha256: Digest::of(b"shard"), bytes: 1000 };
        let (came, went) = (Arc::new(AtomicU64::new(400)), Arc::new(AtomicU64::new(0)));
        let comes = moving.download(blob, Arc::clone(&came));
        let goes = moving.upload(LeaseId(7), blob, went);
        tokio::time::advance(Duration::from_secs(2)).await;
        came.store(600, Ordering::Relaxed);
        let list = moving.list();
        assert_eq!(
            (list[0].direction, list[0].bytes, list[0].of, list[0].bytes_per_second),
            (Direction::Down, 600, 1000, Some(100.0)),
            "what was there before it began isn't speed"
        );
        assert_eq!((list[1].direction, list[1].lease), (Direction::Up, Some(LeaseId(7))));
        drop(comes);
        assert_eq!(moving.list().len(), 1);
        drop(goes);
        assert!(moving.list().is_empty());
    }
}
