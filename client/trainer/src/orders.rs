//! Messages of the slot while a unit runs, shared by the thread that reads them and the one that computes.

use sojourn_protocol::{
    digest::Digest,
    trainer::{Pace, ShardArrived},
};
use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// The pace, which holds from unit to unit, and the bell for all that is said.
#[derive(Debug)]
pub(crate) struct Orders {
    pace: Mutex<Pace>,
    changed: Condvar,
}

/// The messages about one unit.
#[derive(Debug, Default)]
pub(crate) struct Said {
    stop: AtomicBool,
    /// Files that came after the unit began.
    here: Mutex<BTreeMap<Digest, PathBuf>>,
}

/// The pace, held: nothing is said meanwhile that would not be heard.
pub(crate) type Held<'a> = MutexGuard<'a, Pace>;

impl Default for Orders {
    fn default() -> Self {
        Self { pace: Mutex::new(Pace::FULL), changed: Condvar::new() }
    }
}

impl Orders {
    /// Compute for that share of the time from now on.
    pub(crate) fn pace(&self, pace: Pace) {
        *self.hold() = pace;
        self.changed.notify_all();
    }

    /// End the unit that this was said of.
    pub(crate) fn stop(&self, of: &Said) {
        // Held, so that a rest which has just looked at it hears of it.
        let _held = self.hold();
        of.stop.store(true, Ordering::Relaxed);
        self.changed.notify_all();
    }

    /// A file has come of the unit that this was said of.
    pub(crate) fn here(&self, of: &Said, file: ShardArrived) {
        let _held = self.hold();
        of.here.lock().unwrap_or_else(PoisonError::into_inner).insert(file.blob, file.path);
        self.changed.notify_all();
    }

    /// The pace that holds now.
    pub(crate) fn now(&self) -> Pace {
        *self.hold()
    }

    /// Holds everything as it is, for a look.
    pub(crate) fn hold(&self) -> Held<'_> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something is said.
    pub(crate) fn wait<'a>(&self, held: Held<'a>) -> Held<'a> {
        self.changed.wait(held).unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something is said, for so long at the most.
    pub(crate) fn wait_for<'a>(&self, held: Held<'a>, time: Duration) -> Held<'a> {
        self.changed.wait_timeout(held, time).unwrap_or_else(PoisonError::into_inner).0
    }
}

impl Said {
    /// Nothing yet.
    pub(crate) fn nothing() -> Arc<Self> {
        Arc::default()
    }

    /// Is the unit to end?
    pub(crate) fn stops(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Where a file lies, if it has come.
    pub(crate) fn file(&self, blob: Digest) -> Option<PathBuf> {
        self.here.lock().unwrap_or_else(PoisonError::into_inner).get(&blob).cloned()
    }
}
