//! The shell's counts of itself for monitoring: how the journal keeps up, and what has failed since the server started.

use parking_lot::Mutex;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use sojourn_core::{Invariant, JournalPosition};
use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// The upper end, in seconds, of the histogram's first bucket: a disk without a sync of its own.
const FIRST_BUCKET: f64 = 0.000_25;
/// Buckets, each twice as wide as the one before: the last ends at 8 s.
const BUCKETS: u16 = 16;

/// The counts; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct ShellCounts {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    append_seconds: Histogram,
    /// The last event that was passed to the journal.
    decided: AtomicU64,
    /// The last event that the journal has.
    durable: AtomicU64,
    journal_failures: AtomicU64,
    core_faults: AtomicU64,
    violated: Mutex<BTreeSet<Invariant>>,
}

impl Default for ShellCounts {
    fn default() -> Self {
        let buckets = exponential_buckets(FIRST_BUCKET, 2.0, BUCKETS);
        let shared = Shared {
            append_seconds: Histogram::new(buckets),
            decided: AtomicU64::new(0),
            durable: AtomicU64::new(0),
            journal_failures: AtomicU64::new(0),
            core_faults: AtomicU64::new(0),
            violated: Mutex::default(),
        };
        Self { shared: Arc::new(shared) }
    }
}

impl ShellCounts {
    /// The state was recovered from the journal, up to this event. It breaks these invariants, which an operator has accepted.
    pub(super) fn recovered(
        &self,
        position: JournalPosition,
        violated: impl IntoIterator<Item = Invariant>,
    ) {
        self.decided(position);
        self.shared.durable.store(position.0, Ordering::Relaxed);
        *self.shared.violated.lock() = violated.into_iter().collect();
    }

    /// All events up to this one are passed to the journal.
    pub(super) fn decided(&self, position: JournalPosition) {
        self.shared.decided.store(position.0, Ordering::Relaxed);
    }

    /// The journal has all events up to this one: the last append took so long.
    pub(super) fn appended(&self, position: JournalPosition, took: Duration) {
        self.shared.append_seconds.observe(took.as_secs_f64());
        self.shared.durable.store(position.0, Ordering::Relaxed);
    }

    /// The journal could not be written, or not be opened again.
    pub(super) fn journal_failed(&self) {
        self.shared.journal_failures.fetch_add(1, Ordering::Relaxed);
    }

    /// The core could not go on, and is read anew from the journal.
    pub(super) fn core_failed(&self) {
        self.shared.core_faults.fetch_add(1, Ordering::Relaxed);
    }

    /// How long appends take, with their sync.
    pub(crate) fn append_seconds(&self) -> &Histogram {
        &self.shared.append_seconds
    }

    /// The journal has all events up to this position.
    pub(crate) fn durable(&self) -> u64 {
        self.shared.durable.load(Ordering::Relaxed)
    }

    /// Events that were decided, and that the journal doesn't have yet.
    pub(crate) fn unwritten(&self) -> u64 {
        // Read first: what is written meanwhile doesn't count as decided before.
        let durable = self.durable();
        self.shared.decided.load(Ordering::Relaxed).saturating_sub(durable)
    }

    /// How often the journal has failed.
    pub(crate) fn journal_failures(&self) -> u64 {
        self.shared.journal_failures.load(Ordering::Relaxed)
    }

    /// How often the core has failed.
    pub(crate) fn core_faults(&self) -> u64 {
        self.shared.core_faults.load(Ordering::Relaxed)
    }

    /// Did the state break this invariant when it was recovered last?
    pub(crate) fn is_violated(&self, invariant: Invariant) -> bool {
        self.shared.violated.lock().contains(&invariant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_unwritten_from_their_decision_to_their_append() {
        let counts = ShellCounts::default();
        counts.recovered(JournalPosition(7), [Invariant::A1]);
        assert_eq!(counts.unwritten(), 0);
        assert!(counts.is_violated(Invariant::A1) && !counts.is_violated(Invariant::H1));
        counts.decided(JournalPosition(12));
        assert_eq!(counts.unwritten(), 5);
        counts.appended(JournalPosition(10), Duration::from_millis(3));
        assert_eq!(counts.unwritten(), 2);
        // An append that failed: what was decided is given up.
        counts.journal_failed();
        counts.recovered(JournalPosition(10), []);
        assert_eq!((counts.unwritten(), counts.journal_failures()), (0, 1));
        assert!(!counts.is_violated(Invariant::A1));
    }
}
