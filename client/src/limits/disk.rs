//! The loop that looks at the room on the data folder's disk. Where it is less than the owner keeps free, no unit is begun.

use super::{Fact, Owner};
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
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    floor: Floor,
    /// None before the first look, and where it can't be found out.
    seen: Option<DiskState>,
    /// Is no unit begun?
    is_low: bool,
}

impl DiskWatch {
    /// The room at the last look; none before the first, and where it can't be found out.
    pub(crate) fn seen(&self) -> Option<DiskState> {
        self.state.lock().seen
    }

    /// Is less free than the owner keeps, or is that unknown?
    pub(crate) fn is_low(&self) -> bool {
        self.state.lock().is_low
    }

    /// Looks at the disk of a folder. Gives what has changed: whether too little is free.
    pub(crate) fn look(&self, folder: &Path, owner: &Owner) -> Option<bool> {
        let space = DiskSpace::of(folder);
        let unknown: &[Fact] = if space.is_ok() { &[] } else { &[Fact::FreeDisk] };
        owner.unknowns().set(&[Fact::FreeDisk], unknown);
        match space {
            Ok(space) => self.take(space, owner.limits().disk_reserve.map(|size| size.0)),
            Err(error) => {
                tracing::debug!(%error, "the free room of the disk isn't known");
                self.lose_sight()
            }
        }
    }

    /// The room can't be found out: no unit is begun. Gives what has changed.
    fn lose_sight(&self) -> Option<bool> {
        let mut state = self.state.lock();
        state.seen = None;
        (!std::mem::replace(&mut state.is_low, true)).then_some(true)
    }

    fn take(&self, space: DiskSpace, reserve: Option<u64>) -> Option<bool> {
        let reserve = reserve.unwrap_or_else(|| space.default_reserve());
        let mut state = self.state.lock();
        let is_low = state.floor.look(space.free, reserve);
        state.seen = Some(DiskState { free: space.free, reserve, is_low });
        (std::mem::replace(&mut state.is_low, is_low) != is_low).then_some(is_low)
    }
}

/// Looks for as long as the daemon runs.
pub(crate) async fn watch_disk<R>(context: &Context<R>) -> Infallible {
    let storage = &context.storage;
    loop {
        // The folders below this one may be deleted to make room.
        if let Some(is_low) = storage.disk.look(storage.folder.root(), &context.owner) {
            let seen = storage.disk.seen();
            let DiskState { free, reserve, .. } = seen.unwrap_or_default();
            if is_low && seen.is_none() {
                tracing::warn!("running units are finished, and no others begun");
            } else if is_low {
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
        // A disk whose room can't be found out may be full.
        assert_eq!((watch.lose_sight(), watch.lose_sight()), (Some(true), None));
        assert!(watch.is_low() && watch.seen().is_none());
        assert_eq!(watch.take(gigabytes(1), Some(0)), Some(false));
    }
}
