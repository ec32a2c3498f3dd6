//! The loop that looks at the room on the data folder's disk. Where it is less than the owner keeps free, no unit is begun.

use super::Owner;
use crate::{context::Context, control::DiskState};
use parking_lot::Mutex;
use sojourn_client_core::{Event, OwnerEvent};
use sojourn_files::{DiskSpace, Floor};
use std::{convert::Infallible, path::Path, time::Duration};
use tokio::time::sleep;

/// How often the disk is looked at.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// The room at the last look.
#[derive(Debug, Default)]
pub(crate) struct DiskWatch {
    state: Mutex<(Floor, Option<DiskState>)>,
}

impl DiskWatch {
    /// The room at the last look; none before the first, and where it can't be found out.
    pub(crate) fn seen(&self) -> Option<DiskState> {
        self.state.lock().1
    }

    /// Is less free than the owner keeps?
    pub(crate) fn is_low(&self) -> bool {
        self.seen().is_some_and(|disk| disk.is_low)
    }

    /// Looks at the disk of a folder. Gives what has changed: whether too little is free.
    pub(crate) fn look(&self, folder: &Path, owner: &Owner) -> Option<bool> {
        match DiskSpace::of(folder) {
            Ok(space) => self.take(space, owner.limits().disk_reserve.map(|size| size.0)),
            Err(error) => {
                tracing::debug!(%error, "the free room of the disk isn't known");
                None
            }
        }
    }

    fn take(&self, space: DiskSpace, reserve: Option<u64>) -> Option<bool> {
        let reserve = reserve.unwrap_or_else(|| space.default_reserve());
        let mut state = self.state.lock();
        let is_low = state.0.look(space.free, reserve);
        let before = state.1.replace(DiskState { free: space.free, reserve, is_low });
        (before.is_some_and(|before| before.is_low) != is_low).then_some(is_low)
    }
}

/// Looks for as long as the daemon runs.
pub(crate) async fn watch_disk<R>(context: &Context<R>) -> Infallible {
    let storage = &context.storage;
    loop {
        // The folders below this one may be deleted to make room.
        if let Some(is_low) = storage.disk.look(storage.folder.root(), &context.owner) {
            let DiskState { free, reserve, .. } = storage.disk.seen().unwrap_or_default();
            if is_low {
                tracing::warn!(
                    free,
                    reserve,
                    "the disk has less room left than is kept free: running units are finished, and no others begun"
                );
            } else {
                tracing::info!(free, reserve, "the disk has enough room again");
            }
            context.tell(Event::Owner(OwnerEvent::DiskLow(is_low)));
        }
        sleep(LOOK_INTERVAL).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_low_below_what_the_owner_keeps_free_or_below_two_gigabytes() {
        let watch = DiskWatch::default();
        let gigabytes = |free: u64| DiskSpace { free: free * 1_000_000_000, total: 1 << 40 };
        assert!(!watch.is_low() && watch.seen().is_none());
        assert_eq!(watch.take(gigabytes(3), None), None);
        assert_eq!(watch.take(gigabytes(1), None), Some(true));
        assert_eq!(watch.take(gigabytes(1), None), None, "said once");
        assert!(watch.is_low());
        assert_eq!(watch.take(gigabytes(1), Some(500_000_000)), Some(false));
        assert_eq!(watch.take(gigabytes(1), Some(0)), None);
        let seen = DiskState { free: 1_000_000_000, reserve: 0, is_low: false };
        assert_eq!(watch.seen(), Some(seen));
    }
}
