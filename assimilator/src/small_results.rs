//! Small results, of which many are assimilated at once beside the threads.
//!
//! A result in hop order needs no merge: it is read, checked, stored and offered. If it is small, nearly all of that time
//! is waiting for syncs, which results at the same time share. Larger ones, and merges, take cores and memory, so only the
//! threads do these.

use crate::queue::Unit;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;

/// Small results that the server assimilates at once beside its threads.
pub const DEFAULT_SMALL_RESULTS: usize = 32;
/// The largest checkpoint of a small result, in bytes.
pub(crate) const MAX_SMALL_RESULT_BYTES: u64 = 128 << 10;

/// The small results that are under way beside the threads.
#[derive(Debug)]
pub(crate) struct SmallResults {
    most: usize,
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    running: usize,
    /// One of them has failed since a thread looked for work.
    has_failed: bool,
    is_stopping: bool,
}

/// One small result after the other, until it is dropped.
pub(crate) struct Permit(Arc<SmallResults>);

impl Permit {
    /// A thread is to pause before it takes more.
    pub(crate) fn failed(&self) {
        self.0.state.lock().has_failed = true;
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.state.lock().running -= 1;
        self.0.ended.notify_all();
    }
}

impl SmallResults {
    pub(crate) fn up_to(most: usize) -> Self {
        Self { most, state: Mutex::default(), ended: Condvar::new() }
    }

    /// A permit, if the unit is small and fewer than the most are under way.
    pub(crate) fn permit(self: &Arc<Self>, unit: &Unit) -> Option<Permit> {
        let mut state = self.state.lock();
        if !unit.is_small(MAX_SMALL_RESULT_BYTES) || state.running >= self.most {
            return None;
        }
        state.running += 1;
        Some(Permit(Arc::clone(self)))
    }

    /// Whether one has failed since this was last asked.
    pub(crate) fn take_failure(&self) -> bool {
        std::mem::take(&mut self.state.lock().has_failed)
    }

    /// Whether whoever has a permit is to end after the result at hand.
    pub(crate) fn is_stopping(&self) -> bool {
        self.state.lock().is_stopping
    }

    /// Returns when none is under way. The threads have ended, so nobody begins one.
    pub(crate) fn stop(&self) {
        let mut state = self.state.lock();
        state.is_stopping = true;
        self.ended.wait_while(&mut state, |state| state.running > 0);
    }
}
