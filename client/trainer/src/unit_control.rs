//! The slot's messages about a running unit: its pace, a stop, shards that have arrived. One thread reads them from stdin,
//! another one trains.

use parking_lot::{Condvar, Mutex, MutexGuard};
use sojourn_protocol::{
    digest::Digest,
    trainer::{Pace, ShardArrived},
};
use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

/// The pace, which holds from unit to unit, and a condition variable that is notified of every message.
#[derive(Debug)]
pub(crate) struct UnitControl {
    pace: Mutex<Pace>,
    changed: Condvar,
}

/// The messages about one unit.
#[derive(Debug, Default)]
pub(crate) struct UnitMessages {
    stop: AtomicBool,
    /// Shards that arrived after the unit began.
    files: Mutex<BTreeMap<Digest, PathBuf>>,
}

/// The locked pace. No message is lost between a look at the state and the wait for the next message.
pub(crate) type Held<'a> = MutexGuard<'a, Pace>;

impl Default for UnitControl {
    fn default() -> Self {
        Self { pace: Mutex::new(Pace::FULL), changed: Condvar::new() }
    }
}

impl UnitControl {
    /// Sets the share of the time in which units compute.
    pub(crate) fn set_pace(&self, pace: Pace) {
        *self.hold() = pace;
        self.changed.notify_all();
    }

    /// Asks a unit to stop.
    pub(crate) fn stop(&self, unit: &UnitMessages) {
        // Locked, so that a thread that has just looked at the flag is woken by the notification.
        let _held = self.hold();
        unit.stop.store(true, Ordering::Relaxed);
        self.changed.notify_all();
    }

    /// Stores the path of a shard that has arrived for a unit.
    pub(crate) fn shard_arrived(&self, unit: &UnitMessages, file: ShardArrived) {
        let _held = self.hold();
        unit.files.lock().insert(file.blob, file.path);
        self.changed.notify_all();
    }

    /// The pace that holds now.
    pub(crate) fn now(&self) -> Pace {
        *self.hold()
    }

    /// Locks the pace.
    pub(crate) fn hold(&self) -> Held<'_> {
        self.pace.lock()
    }

    /// Waits for the next message.
    pub(crate) fn wait(&self, held: &mut Held<'_>) {
        self.changed.wait(held);
    }

    /// Waits for the next message, at most `time`.
    pub(crate) fn wait_for(&self, held: &mut Held<'_>, time: Duration) {
        self.changed.wait_for(held, time);
    }
}

impl UnitMessages {
    /// Whether the unit is to stop.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// The path of a shard, if it has arrived.
    pub(crate) fn file(&self, blob: Digest) -> Option<PathBuf> {
        self.files.lock().get(&blob).cloned()
    }
}
